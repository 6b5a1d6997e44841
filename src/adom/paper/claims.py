"""The paper's claims, each with its place in the paper and a function that judges it from a reproduction's runs.

Such a function takes the table of all runs and a protocol. Its docstring, after the first line, is the rule that the
ledger prints.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from ..errors import InputError, nearest
from . import judges
from .runs import PROTOCOLS
from .verdicts import NOT_JUDGED, NOT_TESTED, Entry, full_verdict

GIVEN = ("theory", "unit", "tuned")
"""Protocols that fix all parameters before a run."""


@dataclass(frozen=True)
class Claim:
    """A claim of the paper.

    A miniature can judge claims about problems of any size, and claims about problems that it runs at their full size.
    It cannot judge rankings, growth of rounds or final errors: these depend on sizes, rounds and the number of draws.
    """

    name: str
    statement: str  # what the paper says
    where: str
    judge: Callable[[pd.DataFrame, str], Entry]
    protocols: tuple[str, ...] = PROTOCOLS  # under which it can be tested
    miniature: bool = False  # whether a miniature can judge it

    @property
    def rule(self) -> str:
        """How the verdict is computed."""
        text = inspect.getdoc(self.judge) or ""
        return " ".join(text.partition("\n\n")[2].split())

    def entry(self, runs: pd.DataFrame, protocol: str) -> Entry:
        """Return the claim's ledger entry under a protocol."""
        entry = self.judge(runs, protocol)
        return replace(entry, claim=self.name, statement=self.statement, where=self.where, protocol=protocol)

    def in_miniature(self, entry: Entry) -> Entry:
        """Return an entry for a miniature: "not judged" if it cannot judge the claim, plus the full run's verdict."""
        judged = self.miniature or entry.verdict == NOT_TESTED
        full = full_verdict(entry.claim, entry.protocol)
        return replace(entry, verdict=entry.verdict if judged else NOT_JUDGED, full_run=full)


GROUPS = {
    "Theory": (
        Claim(
            "theorem-1",
            "With the exact oracle, error <= C (1 - sqrt(mu/L) / (7 chi))^k",
            "Theorem 1",
            judges.theorem,
            ("theory",),
            miniature=True,
        ),
        Claim(
            "lemmas",
            "Contraction, descent, error feedback and Lyapunov function",
            "Lemmas 1-4",
            judges.lemmas,
            ("theory",),
            miniature=True,
        ),
        Claim(
            "complete-graph",
            "On the complete graph ADOM is PNGD, at rate sqrt(kappa)",
            "Sections 2.2, 3.3",
            judges.complete,
            GIVEN,
            miniature=True,
        ),
        Claim(
            "rates",
            "Rounds to a target grow like chi and sqrt(kappa) for ADOM, and like its row for each other method",
            "Table 1",
            judges.rates,
            GIVEN,
        ),
    ),
    "ADOM and DNM": (
        Claim(
            "dnm-diverges", "DNM diverges in 7 of 8 panels, ADOM converges in all", "Figure slow2", judges.dnm_diverges
        ),
        Claim("dnm-faster", "Where DNM converges it can be faster than ADOM", "Section 6.1", judges.dnm_faster),
    ),
    "ADOM against Mudag, Acc-DNGD and APM": (
        Claim("best-over-kappa", "ADOM is best in all 16 panels", "Figure kappa", judges.best_over_kappa),
        Claim("best-over-chi", "ADOM is best in all 16 panels", "Figure chi", judges.best_over_chi),
        Claim(
            "best-on-real-data",
            "ADOM is best on a6a, w6a and ijcnn1 for every setting; Acc-DNGD almost does not converge for some",
            "Figures real_kappa, real_chi",
            judges.best_on_real_data,
        ),
        Claim(
            "real-networks",
            "infectious_ct1 has 200 graphs on 50 nodes, chi about 232; ADOM is best; for kappa 10 Mudag passes APM "
            "after some accuracy, for large kappa the reverse",
            "Figure real_networks",
            judges.real_networks,
        ),
    ),
    "How the methods behave": (
        Claim("acc-dngd-worsens", "Acc-DNGD gets worse as chi and kappa grow", "Section 6.2", judges.acc_dngd_worsens),
        Claim(
            "apm-flattens", "APM is sub-linear: its slope flattens as rounds grow", "Section 6.2", judges.apm_flattens
        ),
        Claim(
            "few-inner-steps",
            "T <= 3 inner steps are enough; T = 1 is enough outside figure slow2",
            "Section 6, appendix",
            judges.few_inner_steps,
            GIVEN,
        ),
        Claim(
            "early-progress",
            "APM and Mudag often diverge at first while ADOM makes progress at once",
            "Appendix, real data",
            judges.early_progress,
        ),
    ),
}
"""All claims by topic."""

CLAIMS = {claim.name: claim for claims in GROUPS.values() for claim in claims}
"""All claims by id."""


def find_claim(name: str) -> Claim:
    """Return the claim with an id."""
    if name not in CLAIMS:
        raise InputError(f"there is no claim {name!r}; {nearest(name, CLAIMS, 'claims:')}")
    return CLAIMS[name]


def entries(runs: pd.DataFrame, protocols: Sequence[str]) -> list[Entry]:
    """Return the entries of all claims under the given protocols; claims with one protocol always have theirs."""
    return [
        claim.entry(runs, protocol)
        for claim in CLAIMS.values()
        for protocol in PROTOCOLS
        if protocol in claim.protocols and (protocol in protocols or claim.protocols == (protocol,))
    ]
