"""Content of a page before its layout: figures of panels of curves, runs, claims, and a network in motion."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..run.result import Result
from ..study.replay import Motion


@dataclass(frozen=True)
class Line:
    """One curve: the runs of all seeds of one method.

    Attributes
    ----------
    label : str
    method : str
        Its name in `METHODS`, by which `layout.looks` chooses the colour.
    runs : sequence of Result
        One per seed.
    variant : str
        Name that tells it apart from other lines of the same method in the panel, which have the same colour.
    shown : bool
        Whether it is visible at first.
    """

    label: str
    method: str
    runs: Sequence[Result]
    variant: str = ""
    shown: bool = True


@dataclass(frozen=True)
class Panel:
    """Curves in one picture.

    Attributes
    ----------
    name, title : str
        `name` is unique in its figure.
    lines : sequence of Line
    about : str
        Its settings in words.
    row, column : int
        Its position in the figure.
    reason : str
        Why there are no lines, or fewer than there should be.
    """

    name: str
    title: str
    lines: Sequence[Line]
    about: str = ""
    row: int = 0
    column: int = 0
    reason: str = ""


@dataclass(frozen=True)
class Figure:
    """Panels under one or several protocols.

    Attributes
    ----------
    name, title, caption : str
    pages : mapping
        Protocol of the parameters -> panels; the key is "" where there is only one.
    """

    name: str
    title: str
    caption: str
    pages: Mapping[str, Sequence[Panel]]


@dataclass(frozen=True)
class Run:
    """One row of the table of runs.

    Attributes
    ----------
    cells : mapping
        Column -> text or number.
    details : mapping
        Parameters, network, versions, commit and the like.
    """

    cells: Mapping[str, Any]
    details: Mapping[str, str]


@dataclass(frozen=True)
class Profile:
    """A performance profile, drawn into the element "profile-N" of the ledgers, where N is its number.

    Attributes
    ----------
    title : str
    xlabel, ylabel : str
    curves : mapping
        Label -> (ratios at which its share rises, the first one 1; its share from each of these ratios on).
    end : float
        End of the axis of ratios.
    """

    title: str
    xlabel: str
    ylabel: str
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    end: float


@dataclass(frozen=True)
class Content:
    """Everything that a page shows.

    Attributes
    ----------
    title : str
    inputs : sequence of str
        Its sources, one line each.
    figures : sequence of Figure
    runs : sequence of Run
    ledgers : sequence of str
        The claims of each reproduction, as HTML.
    motion : Motion, optional
    motionless : str
        Why there is no motion, and how to get one.
    tab : str
        Name of the tab with the ledgers.
    profiles : sequence of Profile
        One for each element "profile-N" in the ledgers. A page with profiles opens on the tab of the ledgers.
    """

    title: str
    inputs: Sequence[str]
    figures: Sequence[Figure]
    runs: Sequence[Run]
    ledgers: Sequence[str] = ()
    motion: Motion | None = None
    motionless: str = ""
    tab: str = "Claims"
    profiles: Sequence[Profile] = ()
