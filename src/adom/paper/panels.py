"""All panels of the paper's figures, and of a few more figures that its claims need, as data.

====================  ======  ======================================================================================
figure                panels  what is varied (rows x columns, as in the paper)
====================  ======  ======================================================================================
network               1       three rounds of a geometric network; nothing is run
slow2                 8       two graphs taking turns: geometric, ring and star  x  rounds from one change to the next
kappa                 16      kappa  x  dimension
chi                   16      chi  x  dimension
real_kappa            12      data set  x  kappa
real_chi              12      data set  x  chi
real_networks         6       kappa  x  data set, on infectious_ct1
complete              4       ADOM and PNGD on the complete graph, kappa
theory                11      Theorem 1 and its lemmas checked in every round
rates                 9       how rounds grow with kappa and chi, for every method of Table 1
heterogeneity         3       data split by label against data split at random, chi
====================  ======  ======================================================================================

The paper gives neither the positions of its panels nor the lengths of its axes. Its text calls the bottom row of figure
kappa the one with most rounds, so kappa grows by rows there. A panel's name says what is run: where a miniature has
d = 25 instead of the paper's d = 100, the name has d25.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from .runs import PROTOCOLS, PaperPanel

DIMS = (40, 60, 80, 100)
KAPPAS = (10.0, 1e2, 1e3, 1e4)
CHIS = (9.0, 32.0, 134.0, 521.0)
SWITCHES = (50, 20, 10, 5)
SETS = ("a6a", "w6a", "ijcnn1")
INFECTIOUS = {"network": "infectious", "nodes": 50, "graphs": 200, "chi": 232.0}
COMPARED = {"adom": "gd:1", "mudag": "", "acc-dngd": "", "apm": ""}
"""The methods of most figures, with ADOM's oracle: one step of gradient descent."""
SLOW = {"adom": "agd:3", "dnm": "agd:30"}
TABLE1 = {"adom": "exact", "mudag": "", "acc-dngd": "", "apm": "", "diging": "", "panda": "auto"}


@dataclass(frozen=True)
class Size:
    """How large the problems are: the paper's, or a miniature."""

    nodes: int = 100  # of the geometric networks
    graphs: int = 1000
    slow: int = 100  # nodes of figure slow2
    samples: int = 100  # per node, of synthetic data
    real: int | None = None  # the most samples per node of real data; None: all
    dims: Mapping[int, int] = field(default_factory=lambda: {dim: dim for dim in DIMS})  # the paper's -> the one run
    chis: Mapping[float, float] = field(default_factory=dict)  # likewise
    verified: tuple[str, ...] = ("slow2", "kappa", "chi")  # figures on which the theorem is checked

    def chi(self, value: float) -> float:
        """Return the chi that is run in place of the paper's."""
        return self.chis.get(value, value)


FULL = Size()
QUICK = Size(
    nodes=20,
    graphs=40,
    slow=40,
    samples=20,
    real=20,
    dims={40: 10, 60: 15, 80: 20, 100: 25},
    chis={134.0: 60.0, 400.0: 130.0, 521.0: 120.0},
    verified=("slow2", "kappa"),
)


@dataclass(frozen=True)
class PaperFigure:
    """One figure: its panels, the methods that are run on each, and its caption."""

    panels: Callable[[Size], Iterator[PaperPanel]]
    methods: Mapping[str, str]  # method -> oracle; empty for a primal method
    caption: str
    protocols: tuple[str, ...] = PROTOCOLS  # under which it is run


def _settings(size: Size, data: str, samples: int | None, kappa: float, **more: Any) -> dict[str, Any]:
    network = {"network": "geometric", "nodes": size.nodes, "graphs": size.graphs}
    return {"data": data, "samples": samples, "kappa": kappa, **network, **more}


def _synthetic(size: Size, dim: int, kappa: float, **network: Any) -> dict[str, Any]:
    return _settings(size, "synthetic", size.samples, kappa, dim=size.dims[dim], **network)


def _slow2(size: Size) -> Iterator[PaperPanel]:
    chi = size.chi(400.0)
    pairs = {
        "geometric": {"network": "geometric", "graphs": 2, "chi": chi},
        "ring-star": {"network": "ring-star", "graphs": 2, "chi": ring_chi(size.slow)},
    }
    for (row, (name, network)), (column, every) in product(enumerate(pairs.items()), enumerate(SWITCHES)):
        settings = _synthetic(size, 40, 30.0, nodes=size.slow, **network, every=every)
        title = f"{name.replace('-', ' and ')}, every {every} rounds"
        yield PaperPanel("slow2", f"{name}-every{every}", row, column, title, settings)


def _kappa(size: Size) -> Iterator[PaperPanel]:
    for (row, kappa), (column, dim) in product(enumerate(KAPPAS), enumerate(DIMS)):
        settings = _synthetic(size, dim, kappa, chi=size.chi(30.0))
        title = f"$\\kappa$ = {_number(kappa)}, d = {size.dims[dim]}"
        yield PaperPanel("kappa", f"d{size.dims[dim]}-kappa{kappa:g}", row, column, title, settings)


def _chi(size: Size) -> Iterator[PaperPanel]:
    for (row, chi), (column, dim) in product(enumerate(CHIS), enumerate(DIMS)):
        settings = _synthetic(size, dim, 100.0, chi=size.chi(chi))
        title = f"$\\chi$ = {size.chi(chi):g}, d = {size.dims[dim]}"
        yield PaperPanel("chi", f"d{size.dims[dim]}-chi{size.chi(chi):g}", row, column, title, settings)


def _real_kappa(size: Size) -> Iterator[PaperPanel]:
    for (row, name), (column, kappa) in product(enumerate(SETS), enumerate(KAPPAS)):
        settings = _settings(size, name, size.real, kappa, chi=size.chi(30.0))
        title = f"{name}, $\\kappa$ = {_number(kappa)}"
        yield PaperPanel("real_kappa", f"{name}-kappa{kappa:g}", row, column, title, settings)


def _real_chi(size: Size) -> Iterator[PaperPanel]:
    for (row, name), (column, chi) in product(enumerate(SETS), enumerate(CHIS)):
        run = size.chi(chi)
        settings = _settings(size, name, size.real, 100.0, chi=run)
        yield PaperPanel("real_chi", f"{name}-chi{run:g}", row, column, f"{name}, $\\chi$ = {run:g}", settings)


def _real_networks(size: Size) -> Iterator[PaperPanel]:
    for (row, kappa), (column, name) in product(enumerate((10.0, 1e4)), enumerate(SETS)):
        settings = _settings(size, name, size.real, kappa, **INFECTIOUS)
        title = f"{name}, $\\kappa$ = {_number(kappa)}"
        yield PaperPanel("real_networks", f"{name}-kappa{kappa:g}", row, column, title, settings)


SMALL = Size(nodes=20, graphs=100, samples=50, dims={40: 10})
"""For figures that need many rounds or exact oracles rather than many nodes."""


def _complete(size: Size) -> Iterator[PaperPanel]:
    for column, kappa in enumerate(KAPPAS):
        settings = _synthetic(SMALL, 40, kappa, network="complete", graphs=1, chi=1.0)
        yield PaperPanel("complete", f"kappa{kappa:g}", 0, column, f"$\\kappa$ = {_number(kappa)}", settings)


def _theory(size: Size) -> Iterator[PaperPanel]:
    """Yield the first panel of every row of the figures `size.verified`, and one small panel."""
    rows = [panel for name in size.verified for panel in FIGURES[name].panels(size) if panel.column == 0]
    small = _synthetic(SMALL, 40, 10.0, chi=4.0)
    rows.append(PaperPanel("", "small", 0, 0, "20 nodes, d = 10", small))
    for row, panel in enumerate(rows):
        name = f"{panel.figure}-{panel.name}".strip("-")
        yield PaperPanel("theory", name, row, 0, panel.title, panel.settings)


def _rates(size: Size) -> Iterator[PaperPanel]:
    for column, kappa in enumerate((10.0, 30.0, 100.0, 300.0, 1000.0)):
        settings = _synthetic(SMALL, 40, kappa, chi=5.0)
        yield PaperPanel("rates", f"kappa{kappa:g}", 0, column, f"$\\kappa$ = {_number(kappa)}, $\\chi$ = 5", settings)
    for column, chi in enumerate((4.0, 8.0, 16.0, 32.0)):
        settings = _synthetic(SMALL, 40, 20.0, chi=chi)
        yield PaperPanel("rates", f"chi{chi:g}", 1, column, f"$\\kappa$ = 20, $\\chi$ = {chi:g}", settings)


def _heterogeneity(size: Size) -> Iterator[PaperPanel]:
    for column, chi in enumerate((9.0, 32.0, 134.0)):
        run = size.chi(chi)
        settings = _synthetic(size, 40, 100.0, chi=run)
        yield PaperPanel("heterogeneity", f"chi{run:g}", 0, column, f"$\\chi$ = {run:g}", settings)


FIGURES = {
    "network": PaperFigure(lambda size: iter(()), {}, "A sample time-varying network with n = 20 nodes", ()),
    "slow2": PaperFigure(
        _slow2, SLOW, "DNM and ADOM, kappa = 30: two geometric graphs taking turns (top), a ring and a star (bottom)"
    ),
    "kappa": PaperFigure(_kappa, COMPARED, "Mudag, Acc-DNGD, APM and ADOM, chi fixed, over kappa and d"),
    "chi": PaperFigure(_chi, COMPARED, "Mudag, Acc-DNGD, APM and ADOM, kappa = 100, over chi and d"),
    "real_kappa": PaperFigure(_real_kappa, COMPARED, "LIBSVM data sets, chi fixed, over kappa"),
    "real_chi": PaperFigure(_real_chi, COMPARED, "LIBSVM data sets, kappa = 100, over chi"),
    "real_networks": PaperFigure(_real_networks, COMPARED, "LIBSVM data sets on the temporal graphs of infectious_ct1"),
    "complete": PaperFigure(
        _complete, {"adom": "exact", "pngd": "exact"}, "ADOM and PNGD on the complete graph", ("theory", "unit")
    ),
    "theory": PaperFigure(_theory, {"adom": "exact"}, "Theorem 1 and its lemmas, checked in every round", ("theory",)),
    "rates": PaperFigure(_rates, TABLE1, "The methods of Table 1 over kappa and chi", ("theory", "unit")),
    "heterogeneity": PaperFigure(
        _heterogeneity, COMPARED, "Data split at random (solid) and by label (dashed)", ("theory", "unit")
    ),
}
"""All figures by name, the paper's first."""


def panels(names: Sequence[str], size: Size = FULL) -> list[PaperPanel]:
    """Return the panels of some figures.

    Examples
    --------
    >>> [len(panels([name])) for name in ("slow2", "kappa", "chi", "real_kappa", "real_chi", "real_networks")]
    [8, 16, 16, 12, 12, 6]
    >>> panels(["chi"])[-1].settings["chi"]
    521.0
    """
    return [panel for name in names for panel in FIGURES[name].panels(size)]


def ring_chi(nodes: int) -> float:
    """Return chi of a ring with an even number of nodes; from 10 nodes on, a star has a smaller one.

    Examples
    --------
    >>> round(ring_chi(100))
    1014
    """
    from math import cos, pi

    return 2 / (1 - cos(2 * pi / nodes))


def _number(value: float) -> str:
    """Return a number in TeX for a title; powers of ten are written as powers.

    Examples
    --------
    >>> _number(1000.0), _number(30.0)
    ('$10^{3}$', '30')
    """
    exponent = len(f"{value:.0f}") - 1
    return f"$10^{{{exponent}}}$" if exponent > 1 and value == 10**exponent else f"{value:g}"
