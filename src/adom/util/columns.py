"""The columns of a run's history, each described once, and the metrics by which runs are compared.

The recorder, result files, tables, figures, pages and the command line read these tables. A new column needs a line
here and the engines that measure it; if it is a cost, it is a metric too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ..errors import InputError


@dataclass(frozen=True)
class Column:
    """One column of the table `Result.history`."""

    name: str
    kind: Literal["count", "cost", "state"]  # costs are what runs are compared by; states are of the nodes' rows
    words: str
    axis: str  # label of an axis; after a comma, what may be left out
    metric: str = ""  # name of a cost as a metric, if not that of the column
    head: str = ""  # of a printed table, if shorter than `words`
    whole: bool = False
    per_node: bool = False  # an average over the nodes
    timed: bool = False  # differs each time that a run is made
    links: bool = False  # counted by the links, which serve all runs of a fit
    instead_of: str = ""  # the column whose place it takes if that is unknown

    @property
    def to_target(self) -> str:
        """The column of a table of runs with the cost up to the first record at the target."""
        return f"{self.metric or self.name}_to_target"

    def total(self, last: Mapping[str, float]) -> float:
        """Return the value at the end, given the last record."""
        return int(last[self.name]) if self.whole else float(last[self.name])


_ALL = (
    Column("iteration", "count", "iterations", "iterations", whole=True),
    Column("round", "cost", "rounds", "communication rounds", "rounds", whole=True, links=True),
    Column("gradients", "cost", "gradients", "gradients per node", per_node=True),
    Column("floats_sent", "cost", "floats sent", "numbers sent over all links", head="floats", whole=True, links=True),
    Column("seconds", "cost", "seconds", "time (s), without compilation and metrics", timed=True),
    Column("error", "state", "error", "squared distance to x*, sum over nodes"),
    Column("gradient_norm", "state", "gradient norm", "gradient norm at the mean", instead_of="error"),
    Column("consensus", "state", "consensus", "squared distance to the mean, sum over nodes"),
)
COLUMNS = {column.name: column for column in _ALL}
"""All columns by name, in the order of a history."""
STATES = {column.name: column for column in _ALL if column.kind == "state"}
MEASURES = ("error", *(column.name for column in _ALL if column.instead_of == "error"))
"""The states of which a run has one, unless it is not monitored."""
ADDING = tuple(column.name for column in _ALL if column.kind != "state")
"""Columns that go on from run to run in the history of a fit."""
BY_LINKS = tuple(column.name for column in _ALL if column.links)
"""Those that the links count, so a run over the links of the run before does not start them anew."""
AXES = {column.name: column.axis for column in _ALL if column.kind == "cost"}
"""Horizontal axes of figures and their labels."""
METRICS = {column.metric or column.name: column for column in _ALL if column.kind == "cost"}
"""All metrics by name, rounds first: what a run spent, in all and up to the first record at the target."""
HEADS = tuple(column.head or column.words for column in METRICS.values())
"""Heads of the metrics in a printed table."""
TO_TARGET = tuple(column.to_target for column in METRICS.values())


def totals(last: Mapping[str, float]) -> dict[str, float]:
    """Return what a run spent in all by every metric, given its last record.

    Examples
    --------
    >>> totals({"round": 20.0, "gradients": 31.5, "floats_sent": 800, "seconds": 0.1})
    {'rounds': 20, 'gradients': 31.5, 'floats_sent': 800, 'seconds': 0.1}
    """
    return {metric: column.total(last) for metric, column in METRICS.items()}


def metric_of(name: str, argument: str = "cost") -> Column:
    """Return the column of a metric; refuse any other value of an argument.

    Examples
    --------
    >>> metric_of("rounds").name, metric_of("rounds").to_target
    ('round', 'rounds_to_target')
    """
    if name not in METRICS:
        raise InputError(f"{argument} must be one of {', '.join(METRICS)}, got {name!r}")
    return METRICS[name]
