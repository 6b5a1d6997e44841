"""The jobs of a reproduction: which method runs in which panel, under which protocol, for how many rounds.

A panel's rounds are a multiple of chi sqrt(kappa), the order of ADOM's rate, so that all panels of a figure show the
same part of the convergence. Parameters are tuned on the draw of seed 0 and judged on other draws, which take over the
multiples of mu, L and chi that the search chose. Panels that differ only in the dimension share a search; in the
miniature all panels of a row do. Searches on the full real data use 50 samples per node.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, sqrt
from typing import TYPE_CHECKING

from ..algorithms import method_class
from ..errors import InputError, nearest
from .panels import FIGURES, FULL, QUICK, Size, panels
from .runs import PROTOCOLS, TUNE, VERIFY, PaperJob, PaperPanel

if TYPE_CHECKING:
    from ..run.calls.tuning import Stages

OTHERS = "others"
"""The variant of methods that a figure does not show."""
EVERY = ("adom", "dnm", "mudag", "acc-dngd", "apm", "diging", "panda", "adom+", "acc-gt")
"""Methods that run under `auto`: those of a figure, and in the first panel of a row all others too."""
PART = 50
"""Samples per node of real data in searches."""
SLOW_SEARCH = 1000
"""Most rounds of a candidate in figure slow2: DNM takes 30 inner steps a round, and hundreds of rounds at most."""
TUNED_ON = 0
"""The seed of the draw that parameters are tuned on; judged runs have seeds from 1."""
ACCURACY = 1e-10
"""Squared error, relative to the start, at which runs stop; also the target of searches."""


@dataclass(frozen=True)
class Scale:
    """How long runs are, and how many."""

    size: Size
    seeds: int  # draws that each panel is run on
    times: Mapping[str, float]  # protocol -> rounds as a multiple of chi sqrt(kappa)
    most: Mapping[str, int]  # protocol -> the most rounds
    least: int  # the least rounds
    small: int  # the most rounds of figures complete and rates, whose problems are small
    records: int  # the most records of a run; rounds are a multiple of it
    stages: "Stages"  # of a search
    search: int  # the most rounds of its candidates
    exact: int  # the most rounds with the exact oracle, run in the first panel of a row
    verified: int  # the most rounds of a verification
    oracles: int  # first panels of a row in which ADOM also runs with oracle auto
    searched: Mapping[str, int]  # figure -> the column whose panel is tuned for its whole row
    found: int  # rows and columns of a figure that are run under auto

    @property
    def candidates(self) -> int:
        """How many settings a search tries."""
        return sum(count for count, _ in self.stages)


FULL_SCALE = Scale(
    FULL,
    seeds=3,
    times={"theory": 7.0, "unit": 5.0, "tuned": 3.0, "auto": 5.0},
    most={"theory": 40_000, "unit": 30_000, "tuned": 20_000, "auto": 30_000},
    least=800,
    small=100_000,
    records=400,
    stages=((16, 16.0), (8, 4.0)),
    search=4000,
    exact=1200,
    verified=400,
    oracles=1,
    searched={"kappa": 0, "chi": 0},
    found=4,
)
QUICK_SCALE = replace(
    FULL_SCALE,
    size=QUICK,
    seeds=1,
    most={"theory": 16_000, "unit": 10_000, "tuned": 6_000, "auto": 10_000},
    least=600,
    small=16_000,
    records=200,
    stages=((8, 16.0), (4, 4.0)),
    search=3000,
    exact=400,
    verified=64,
    searched={"kappa": 0, "chi": 0, "real_kappa": 1, "real_chi": 1, "real_networks": 0, "slow2": 1},
    found=1,
)
SCALES = {"full": FULL_SCALE, "quick": QUICK_SCALE}


def make_jobs(
    figures: Sequence[str], scale: Scale, protocols: Sequence[str] = PROTOCOLS, seeds: int | None = None
) -> list[PaperJob]:
    """Return all jobs of some figures, or of single panels of them such as "kappa/d40-kappa100".

    Examples
    --------
    >>> jobs = make_jobs(["kappa"], SCALES["full"], ["unit"], seeds=3)
    >>> len([job for job in jobs if not job.variant]) == 16 * 4 * 3
    True
    """
    draws = range(1, (scale.seeds if seeds is None else seeds) + 1)
    jobs: list[PaperJob] = []
    for given in figures:
        name, _, chosen = given.partition("/")
        for panel in FIGURES[name].panels(scale.size):
            for protocol in FIGURES[name].protocols:
                if protocol in protocols and chosen in ("", panel.name):
                    jobs += _on_panel(panel, protocol, draws, scale)
    return list(dict.fromkeys(jobs))


def _on_panel(panel: PaperPanel, protocol: str, draws: Iterable[int], scale: Scale) -> Iterator[PaperJob]:
    methods = FIGURES[panel.figure].methods
    if panel.figure == "theory":
        rounds = min(scale.verified, rounds_of(panel, protocol, scale))
        yield PaperJob(panel, protocol, 1, "adom", "exact", rounds, 0.0, VERIFY)
        return
    rounds = rounds_of(panel, protocol, scale)
    if protocol == "auto":
        yield from _nothing_known(panel, methods, rounds, scale)
        return
    shared: dict[str, str] = {}
    if protocol == "tuned":
        searched = searched_for(panel, scale)
        most = min(scale.search, SLOW_SEARCH) if panel.figure == "slow2" else scale.search
        budget = min(most, rounds_of(searched, protocol, scale))
        for method, oracle in methods.items():
            about = (searched, protocol, TUNED_ON, method, oracle, budget, ACCURACY)
            search = PaperJob(*about, TUNE, candidates=scale.candidates)
            shared[method] = search.key
            yield search
    for seed in draws:
        for method, oracle in methods.items():
            budget = min(rounds, rounds_of(panel, "unit", scale)) if method == "dnm" else rounds
            about = (panel, protocol, seed, method, oracle, budget, ACCURACY)
            yield PaperJob(*about, records=scale.records, tuning=shared.get(method, ""))
            if panel.figure == "heterogeneity":
                yield PaperJob(*about, variant="split-label", records=scale.records)
        if panel.figure in ("slow2", "kappa", "chi") and protocol != "tuned":
            yield from _oracles(panel, protocol, seed, rounds, scale)


def _nothing_known(panel: PaperPanel, methods: Iterable[str], rounds: int, scale: Scale) -> Iterator[PaperJob]:
    """Yield the jobs under `auto`, on one draw: the figure's methods, and in a row's first panel all others."""
    if max(panel.row, panel.column) >= scale.found:
        return
    for method in EVERY:
        shown = method in methods
        if shown or panel.column == 0:
            oracle = "auto" if method_class(method).oracle == "dual" else ""
            variant = "" if shown else OTHERS
            yield PaperJob(panel, "auto", 1, method, oracle, rounds, ACCURACY, variant, scale.records)


def _oracles(panel: PaperPanel, protocol: str, seed: int, rounds: int, scale: Scale) -> Iterator[PaperJob]:
    """Yield ADOM's jobs with oracles other than the paper's; the slow `auto` on one draw only."""
    if seed == 1 and panel.column < scale.oracles:
        yield PaperJob(panel, protocol, seed, "adom", "auto", rounds, ACCURACY, "auto", scale.records)
    if panel.column == 0:
        most = min(rounds, scale.exact)
        yield PaperJob(panel, protocol, seed, "adom", "exact", most, ACCURACY, "exact", scale.records)


def searched_for(panel: PaperPanel, scale: Scale) -> PaperPanel:
    """Return the panel that tunes a panel's parameters: itself or one of its row, with a part of full real data."""
    column = scale.searched.get(panel.figure, panel.column)
    row = (other for other in panels([panel.figure], scale.size) if other.row == panel.row)
    searched = next(other for other in row if other.column == column)
    if searched.settings["samples"] is not None:
        return searched
    return replace(searched, name=f"{searched.name}-part", settings={**searched.settings, "samples": PART})


def rounds_of(panel: PaperPanel, protocol: str, scale: Scale) -> int:
    """Return a panel's budget, mostly a multiple of chi sqrt(kappa): bounded, then rounded up to whole records."""
    settings = panel.settings
    if panel.figure == "complete":
        wanted = (250.0 if protocol == "theory" else 40.0) * sqrt(settings["kappa"])
        most = scale.small
    elif panel.figure == "rates":
        wanted, most = 20.0 * settings["kappa"] * settings["chi"] ** 2, scale.small
    else:
        wanted, most = scale.times[protocol] * settings["chi"] * sqrt(settings["kappa"]), scale.most[protocol]
    if panel.figure == "slow2":
        wanted *= 0.6  # DNM takes 30 inner steps a round
    return scale.records * ceil(min(max(wanted, scale.least), most) / scale.records)


def read_names(figures: Sequence[str] | None, size: Size = FULL) -> list[str]:
    """Return the requested figures and panels, all figures by default, in the order of `FIGURES`.

    Panels whose sizes differ from the paper's have other names.
    """
    for given in figures or ():
        name, _, panel_name = given.partition("/")
        if name not in FIGURES:
            raise InputError(f"no figure is called {name!r}; {nearest(name, FIGURES)}")
        known = [panel.name for panel in panels([name], size)]
        if panel_name and panel_name not in known:
            raise InputError(f"figure {name} has no panel {panel_name!r}; {nearest(panel_name, known, 'it has')}")
    order = list(FIGURES)
    return sorted(dict.fromkeys(figures or order), key=lambda given: order.index(given.partition("/")[0]))


def read_protocols(protocols: Sequence[str]) -> None:
    """Refuse unknown ways to choose parameters, or none."""
    for protocol in protocols:
        if protocol not in PROTOCOLS:
            raise InputError(f"unknown protocol {protocol!r}; {nearest(protocol, PROTOCOLS)}")
    if not protocols:
        raise InputError(f"protocols names none; give some of {', '.join(PROTOCOLS)}")
