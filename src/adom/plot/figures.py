"""Figures of results and networks, at the width of a column of a paper; matplotlib is loaded when one is drawn."""

from .curves import AXES, convergence
from .graphs import network_picture
from .style import save
from .sweeps import sweep_figure

__all__ = ["AXES", "convergence", "network_picture", "save", "sweep_figure"]
