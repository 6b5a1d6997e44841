"""The figure that every ``plot()`` returns: it displays in a notebook or a window and saves files for print."""

import sys
from importlib import import_module
from io import BytesIO
from typing import Any

import matplotlib
from matplotlib.figure import Figure as Base

FINE = 2
"""Pixels of a notebook's picture per displayed pixel."""


class Figure(Base):
    """A matplotlib figure that displays without pyplot.

    On the last line of a notebook's cell it displays itself, with any backend. `show` displays it anywhere in a cell.
    In a script, `show` opens a window, and tools that collect pyplot's figures find it. Saved files have enough
    resolution for print, and keep text as text, in fonts that journals accept.
    """

    def savefig(self, fname: Any, *, transparent: bool | None = None, **kwargs: Any) -> None:
        """Write a file as `matplotlib.figure.Figure.savefig` does, by default with 300 dots per inch."""
        if matplotlib.rcParams["savefig.dpi"] == "figure":  # matplotlib's default
            kwargs.setdefault("dpi", 300)
        kind = str(kwargs.get("format") or fname).rpartition(".")[2].lower()
        fonts: Any = {"ps.fonttype" if kind in ("ps", "eps") else "pdf.fonttype": 42}
        with matplotlib.rc_context(fonts):
            super().savefig(fname, transparent=transparent, **kwargs)

    def show(self, warn: bool = True) -> None:
        """Show the figure: below the cell in a notebook; elsewhere in a window, until it is closed."""
        if _in_notebook():
            import_module("IPython.display").display(self)
            return
        import matplotlib.pyplot as plt

        if self.canvas.manager is None:
            try:
                plt.figure(self)
            except ValueError:  # before matplotlib 3.11: take the canvas of a new figure
                canvas = plt.figure().canvas
                canvas.figure = self
                self.set_canvas(canvas)
        plt.show()

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """Return the picture for a notebook and the size at which to show it."""
        content = BytesIO()
        self.savefig(content, format="png", dpi=FINE * self.dpi)
        width, height = (round(side * self.dpi) for side in self.get_size_inches())
        return content.getvalue(), {"width": width, "height": height}


def _in_notebook() -> bool:
    """Return whether a notebook's kernel runs this; IPython in a terminal has none."""
    shell = sys.modules.get("IPython")
    return shell is not None and hasattr(shell.get_ipython(), "kernel")
