"""Palette and sizes of all figures, and how they are written to files.

Only matplotlib's object interface is used, so no window, backend or global state is involved.
"""

import os
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError, InputTypeError, nearest
from ..util.files import atomic

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#B8A800"),
    *("#882255", "#888888", "#332288"),
)
"""Okabe and Ito's palette, which the colour-blind can tell apart, its yellow darkened; then three of Tol's."""
MARKERS = ("o", "s", "^", "D", "v", "P", "<", "*", ">", "h", "d")
STYLE_FILES = Path(__file__).parents[1] / "styles"
METADATA: dict[str, dict[str, Any]] = {
    ".png": {"Software": "adom"},
    ".pdf": {"Creator": "adom", "Producer": None, "CreationDate": None},
    ".svg": {"Creator": "adom", "Date": None},
}
"""Metadata of a file, for each suffix that `save` takes."""
OWN = {"figure.constrained_layout.use", "lines.markersize"}
"""Settings that the figures choose themselves, panel by panel."""
STYLES = ("column", "page", "slide")
"""Styles of a figure, each a file in `adom.styles`."""


def style(name: str | None = None) -> AbstractContextManager[None]:
    """Return a context that draws figures in one of the styles, by default "column"."""
    import matplotlib

    kept = {key: value for key, value in _settings(name or "column").items() if key not in OWN}
    return matplotlib.rc_context(kept)


def marks(number: int) -> tuple[int, int]:
    """Return the colour and the marker of a line by its number; no two of the first 121 share both.

    Examples
    --------
    >>> marks(0), marks(10), marks(11), marks(22)
    ((0, 0), (10, 10), (0, 4), (0, 8))
    """
    colour, turn = number % len(COLOURS), number // len(COLOURS)
    return colour, (colour + 4 * turn) % len(MARKERS)


def size(name: str | None, panels: int = 1) -> tuple[float, float]:
    """Return width and height of a figure in a style; without one, several panels get a page.

    Examples
    --------
    >>> size(None), size(None, panels=4), size("slide")
    ((3.5, 2.2), (7.0, 2.5), (10.0, 5.0))
    """
    width, height = _settings(name or ("column" if panels == 1 else "page"))["figure.figsize"]
    return width, height


def magnification(name: str | None) -> float:
    """Return how many times as large as in print a style draws everything.

    Examples
    --------
    >>> magnification("column"), magnification("page"), magnification("slide")
    (1.0, 1.0, 2.5)
    """
    ratio: float = _settings(name or "column")["font.size"] / _settings("column")["font.size"]
    return ratio


@cache
def _settings(name: str) -> dict[Any, Any]:
    """Return matplotlib's settings for a style."""
    if name not in STYLES:
        raise InputError(f"unknown style {name!r}; {nearest(name, STYLES)}")
    import matplotlib

    return dict(matplotlib.rc_params_from_file(STYLE_FILES / f"{name}.mplstyle", use_default_template=False))


def plain(text: object) -> str:
    r"""Return a text with its dollar signs escaped: matplotlib would read text between two of them as mathematics.

    Examples
    --------
    >>> plain("costs $5 and $x"), plain("ADOM")
    ('costs \\$5 and \\$x', 'ADOM')
    """
    return str(text).replace("$", r"\$")


def save(figure: "Figure", path: str | os.PathLike[str]) -> Path:
    """Write a figure as PNG, PDF or SVG, by the path's suffix, whole or not at all; return the path.

    The file holds no date and nothing about the machine, so the same figure gives the same bytes.
    """
    target = Path(path)
    kind = target.suffix.lower()
    if kind not in METADATA:
        raise InputError(f"cannot draw to {target}: the suffix must be one of {', '.join(METADATA)}; rename it")

    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "adom", "pdf.fonttype": 42}), atomic(target) as partial:
        figure.savefig(partial, format=kind[1:], dpi=300, metadata=METADATA[kind])
    return target


def check_axes(ax: Any) -> None:
    """Refuse to draw into anything but the axes of one panel."""
    if ax is not None:
        from matplotlib.axes import Axes

        if not isinstance(ax, Axes):
            raise InputTypeError(
                f"ax must be the axes of one panel, got {type(ax).__name__}; e.g. ax=axes[0] of plt.subplots(1, 2)"
            )
