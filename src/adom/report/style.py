"""What all figures share: palette, sizes, and how they are written to files.

Only matplotlib's object interface is used, so no window, backend or global state is involved.
"""

import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..engine.result import atomic
from ..errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#B8A800"),
    *("#882255", "#888888", "#332288"),
)
"""Okabe and Ito's palette, which the colour-blind can tell apart, its yellow darkened; then three of Tol's."""
METADATA: dict[str, dict[str, Any]] = {
    ".png": {"Software": "adom"},
    ".pdf": {"Creator": "adom", "Producer": None, "CreationDate": None},
    ".svg": {"Creator": "adom", "Date": None},
}
"""What a file says about its making, for each suffix that `save` takes."""
STYLE: dict[Any, Any] = {
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def style() -> AbstractContextManager[None]:
    """Return a context in which figures are made in the house's sizes."""
    import matplotlib

    return matplotlib.rc_context(STYLE)


def save(figure: "Figure", path: str | os.PathLike[str]) -> Path:
    """Write a figure as PNG, PDF or SVG, by the path's suffix, whole or not at all; return the path.

    The file holds neither the time nor anything of the machine: the same figure gives the same bytes.
    """
    target = Path(path)
    kind = target.suffix.lower()
    if kind not in METADATA:
        raise InputError(f"cannot draw to {target}: the suffix must be one of {', '.join(METADATA)}; rename it")

    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "adom", "pdf.fonttype": 42}), atomic(target) as partial:
        figure.savefig(partial, format=kind[1:], dpi=300, metadata=METADATA[kind])
    return target
