"""The paper's claims: what each says and where, and the function that judges it from the results of a reproduction.

A function takes all outcomes and a protocol, and its docstring states its rule; the ledger prints that very text.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from . import claims_curves as curves
from . import claims_ranks as ranks
from . import claims_theory as theory
from . import full_run
from .runs import Outcome
from .verdicts import NOT_JUDGED, NOT_TESTED, Entry, Finding

PROTOCOLS = ("theory", "unit", "tuned")


@dataclass(frozen=True)
class Claim:
    """A claim of the paper.

    Attributes
    ----------
    name, statement, where : str
        Its id, what the paper says, and where.
    judge : callable
        (outcomes, protocol) -> `Finding`.
    protocols : tuple of str
        Those it can be tested under.
    miniature : bool
        Whether a miniature can judge it: it speaks of problems of any size, or those of the miniature are the same. Who
        is ahead, how rounds grow, and what becomes of a method depend on sizes, rounds and the number of draws.
    """

    name: str
    statement: str
    where: str
    judge: Callable[[Sequence[Outcome], str], Finding]
    protocols: tuple[str, ...] = PROTOCOLS
    miniature: bool = False

    @property
    def rule(self) -> str:
        """How the verdict is computed."""
        text = inspect.getdoc(self.judge) or ""
        return " ".join(text.partition("\n\n")[2].split())

    def entry(self, outcomes: Sequence[Outcome], protocol: str) -> Entry:
        """Return the claim's entry of the ledger under a protocol."""
        return self.judge(outcomes, protocol).entry(self.name, self.statement, self.where, protocol)

    def in_miniature(self, entry: Entry) -> Entry:
        """Return an entry as a miniature gives it: without a verdict where it cannot tell, the full run's beside it."""
        told = self.miniature or entry.verdict == NOT_TESTED
        full = full_run.verdict(entry.claim, entry.protocol)
        return replace(entry, verdict=entry.verdict if told else NOT_JUDGED, full_run=full)


GROUPS = {
    "Theory": (
        Claim(
            "thm",
            "With the exact oracle, error <= C (1 - sqrt(mu/L) / (7 chi))^k",
            "Theorem 1",
            theory.theorem,
            ("theory",),
            miniature=True,
        ),
        Claim(
            "lem",
            "Contraction, descent, error feedback and Lyapunov function",
            "Lemmas 1-4",
            theory.lemmas,
            ("theory",),
            miniature=True,
        ),
        Claim(
            "png",
            "On the complete graph ADOM is PNGD, at rate sqrt(kappa)",
            "Sections 2.2, 3.3",
            theory.complete,
            miniature=True,
        ),
        Claim(
            "rate",
            "Rounds to a target grow like chi and sqrt(kappa) for ADOM, and like its row for each other method",
            "Table 1",
            theory.rates,
        ),
    ),
    "ADOM and DNM": (
        Claim("dnm7", "DNM diverges in 7 of 8 panels, ADOM converges in all", "Figure slow2", ranks.dnm_diverges),
        Claim("dnmf", "Where DNM converges it can be faster than ADOM", "Section 6.1", ranks.dnm_faster),
    ),
    "ADOM against Mudag, Acc-DNGD and APM": (
        Claim("kap", "ADOM is best in all 16 panels", "Figure kappa", ranks.best_over_kappa),
        Claim("chi", "ADOM is best in all 16 panels", "Figure chi", ranks.best_over_chi),
        Claim(
            "real",
            "ADOM is best on a6a, w6a and ijcnn1 for every setting; Acc-DNGD almost does not converge for some",
            "Figures real_kappa, real_chi",
            ranks.best_on_real_data,
        ),
        Claim(
            "net",
            "infectious_ct1 has 200 graphs on 50 nodes, chi about 232; ADOM is best; for kappa 10 Mudag passes APM "
            "after some accuracy, for large kappa the reverse",
            "Figure real_networks",
            ranks.real_networks,
        ),
    ),
    "How the methods behave": (
        Claim("acc", "Acc-DNGD gets worse as chi and kappa grow", "Section 6.2", curves.acc_dngd_worsens),
        Claim("apm", "APM is sub-linear: its slope flattens as rounds grow", "Section 6.2", curves.apm_flattens),
        Claim(
            "T",
            "T <= 3 inner steps are enough; T = 1 is enough outside figure slow2",
            "Section 6, appendix",
            curves.few_inner_steps,
        ),
        Claim(
            "early",
            "APM and Mudag often diverge at first while ADOM makes progress at once",
            "Appendix, real data",
            curves.early_progress,
        ),
    ),
}
"""All claims, by what they are about."""

CLAIMS = {claim.name: claim for claims in GROUPS.values() for claim in claims}
"""All claims by id."""


def entries(outcomes: Sequence[Outcome], protocols: Sequence[str], names: Sequence[str] | None = None) -> list[Entry]:
    """Return the entries of claims (all of them by default) under each protocol that they can be tested under."""
    return [
        claim.entry(outcomes, protocol)
        for name, claim in CLAIMS.items()
        if names is None or name in names
        for protocol in PROTOCOLS
        if protocol in claim.protocols and (protocol in protocols or claim.protocols == (protocol,))
    ]
