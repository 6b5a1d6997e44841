"""The figure that every ``plot()`` returns: it shows itself in a notebook, in a window, and in good files."""

import sys
from importlib import import_module
from io import BytesIO
from typing import Any

import matplotlib
from matplotlib.figure import Figure as Base

FINE = 2
"""Points of the picture for one of the screen's."""


class Figure(Base):
    """A matplotlib figure that needs no pyplot to be seen.

    As the last line of a notebook's cell it is shown, whatever backend there is. `show` does so anywhere in a cell,
    opens a window from a script, and lets tools that collect pyplot's figures find it. Files are fine enough for
    print, and text in them stays text, in fonts that journals take.
    """

    def savefig(self, fname: Any, *, transparent: bool | None = None, **kwargs: Any) -> None:
        """Write a file as `matplotlib.figure.Figure.savefig` does, by default with 300 dots an inch."""
        if matplotlib.rcParams["savefig.dpi"] == "figure":  # nobody has said otherwise
            kwargs.setdefault("dpi", 300)
        kind = str(kwargs.get("format") or fname).rpartition(".")[2].lower()
        fonts: Any = {"ps.fonttype" if kind in ("ps", "eps") else "pdf.fonttype": 42}
        with matplotlib.rc_context(fonts):
            super().savefig(fname, transparent=transparent, **kwargs)

    def show(self, warn: bool = True) -> None:
        """Show the figure: below the cell in a notebook, in a window elsewhere, which is waited for."""
        if _in_notebook():
            import_module("IPython.display").display(self)
            return
        import matplotlib.pyplot as plt

        if self.canvas.manager is None:
            _adopt(self)
        plt.show()

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """Return the picture for a notebook, with the size at which it is shown."""
        content = BytesIO()
        self.savefig(content, format="png", dpi=FINE * self.dpi)
        width, height = (round(side * self.dpi) for side in self.get_size_inches())
        return content.getvalue(), {"width": width, "height": height}


def _in_notebook() -> bool:
    """Return whether a notebook's kernel runs this; a terminal's IPython has none and cannot show pictures."""
    shell = sys.modules.get("IPython")
    return shell is not None and hasattr(shell.get_ipython(), "kernel")


def _adopt(figure: Base) -> None:
    """Make pyplot know a figure that it did not make."""
    import matplotlib.pyplot as plt

    try:
        plt.figure(figure)
    except ValueError:  # before matplotlib 3.11: give it the place of a new one
        canvas = plt.figure().canvas
        canvas.figure = figure
        figure.set_canvas(canvas)
