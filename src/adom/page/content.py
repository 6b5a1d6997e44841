"""Content of a page before its layout: figures of panels of curves, runs, claims, and a network in motion."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..run.result import Result
from ..study.replay import Motion


@dataclass(frozen=True)
class Line:
    """One curve: the runs of all seeds of one method."""

    label: str
    method: str  # its name in `METHODS`, by which `feed.looks` chooses the colour
    runs: Sequence[Result]  # one per seed
    variant: str = ""  # tells it apart from other lines of the same method in the panel, which have the same colour
    shown: bool = True  # whether it is visible at first


@dataclass(frozen=True)
class Panel:
    """Curves in one picture."""

    name: str  # unique in its figure
    title: str
    lines: Sequence[Line]
    about: str = ""  # its settings in words
    row: int = 0  # its position in the figure
    column: int = 0
    reason: str = ""  # why there are no lines, or fewer than there should be


@dataclass(frozen=True)
class Figure:
    """Panels under one or several protocols."""

    name: str
    title: str
    caption: str
    pages: Mapping[str, Sequence[Panel]]  # protocol of the parameters -> panels; the key is "" where there is only one


@dataclass(frozen=True)
class Run:
    """One row of the table of runs."""

    cells: Mapping[str, Any]  # column -> text or number
    details: Mapping[str, str]  # parameters, network, versions, commit and the like


@dataclass(frozen=True)
class Profile:
    """A performance profile, drawn into the element "profile-N" of the ledgers, where N is its number."""

    title: str
    xlabel: str
    ylabel: str
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    """Label -> (ratios at which its share rises, the first one 1; its share from each of these ratios on)."""
    end: float  # end of the axis of ratios


@dataclass(frozen=True)
class Content:
    """Everything that a page shows."""

    title: str
    inputs: Sequence[str]  # its sources, one line each
    figures: Sequence[Figure]
    runs: Sequence[Run]
    ledgers: Sequence[str] = ()  # the claims of each reproduction, as HTML
    motion: Motion | None = None
    motionless: str = ""  # why there is no motion, and how to get one
    tab: str = "Claims"  # name of the tab with the ledgers
    profiles: Sequence[Profile] = ()
    """One for each element "profile-N" in the ledgers. A page with profiles opens on the tab of the ledgers."""
