"""Checks of arguments that many generators share."""

from typing import Any

import numpy as np

from ..errors import InputError, InputTypeError, shown
from ..util.checks import check_whole

LONGEST = 20_000_000
"""The longest period, and so the most graphs."""
MOST_LINKS = 200_000_000
"""The most links of one graph, and of all graphs together if they must be held (16 bytes each)."""


def truth(name: str, value: Any) -> bool:
    """Return `value` if it is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise InputTypeError(f"{name} must be True or False, got {shown(value)}; e.g. {name}=True")
    return bool(value)


def node_count(nodes: Any, least: int = 2) -> int:
    """Return the number of nodes, at least `least`."""
    return check_whole("nodes", nodes, least, "e.g. nodes=100", MOST_LINKS)


def graph_count(graphs: Any) -> int:
    """Return the number of graphs, at least one."""
    return check_whole("graphs", graphs, 1, "e.g. graphs=1000", LONGEST)


def seed_number(seed: Any) -> int:
    """Return the seed, an int from 0 to 2^128 - 1."""
    return check_whole("seed", seed, 0, "e.g. seed=0", 2**128 - 1)


def link_count(expected: float, what: str, remedy: str) -> None:
    """Refuse links that would not fit in memory."""
    if expected > MOST_LINKS:
        raise InputError(
            f"{what} would have about {expected:.2g} links in memory, more than the {MOST_LINKS:.0e} that fit; {remedy}"
        )
