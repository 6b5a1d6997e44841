"""The same network drawn again with another seed."""

import json
from typing import Any

from .. import networks
from ..errors import InputError
from . import DirectedNetwork, Network

ARGUMENTS: dict[str, tuple[str, ...]] = {
    "geometric": ("nodes", "graphs"),
    "waypoint": ("nodes", "radius", "graphs", "speed", "pause"),
    "erdos_renyi": ("nodes", "p", "graphs"),
    "expander": ("nodes", "degree", "graphs"),
    "directed_geometric": ("nodes", "radius", "graphs"),
    "directed_erdos_renyi": ("nodes", "p", "graphs"),
}
"""The generators that take a seed, and what else of a recipe they are called with."""

STILL = ("ring", "star", "path", "complete", "directed_ring")
PLAIN = {"static": "k", "slowed": "every", "bounded": "chi"}
"""Networks made from one other network and one number."""


def drawn_again(network: Network | DirectedNetwork, seed: int) -> Network | DirectedNetwork:
    """Return the network that the same recipe gives with another seed; every part of it that has a seed gets this one.

    Examples
    --------
    >>> first = networks.geometric(20, 0.3, graphs=3, seed=0)
    >>> drawn_again(first, 5).recipe
    {'generator': 'geometric', 'nodes': 20, 'graphs': 3, 'seed': 5, 'radius': 0.3}
    >>> bool((drawn_again(first, 0).matrix(2) == first.matrix(2)).all())
    True
    """
    if '"seed"' not in json.dumps(network.recipe):
        raise InputError(
            f"seeds cannot draw {network!r} again: nothing in it is random; leave seeds out, or give a list of networks"
        )
    made: Network | DirectedNetwork = _build(network.recipe, seed)
    return made


def _build(recipe: dict[str, Any], seed: int) -> Any:
    generator = recipe.get("generator", "network")
    make = getattr(networks, generator, None)
    if generator in ARGUMENTS:
        given = {name: recipe[name] for name in ARGUMENTS[generator]}
        if generator == "geometric":  # with a chi the radius is what was found, not what was asked for
            asked = "chi" if "chi" in recipe else "radius"
            given[asked] = recipe[asked]
        return make(**given, seed=seed)  # type: ignore[misc]  # every name of the table is a generator
    if generator in STILL:
        return make(recipe["nodes"])  # type: ignore[misc]  # likewise
    if generator == "torus":
        return networks.torus(recipe["rows"], recipe["columns"])
    if generator in PLAIN:
        return make(_build(recipe["network"], seed), recipe[PLAIN[generator]])  # type: ignore[misc]  # likewise
    if generator == "cyclic":
        return networks.cyclic([_build(member, seed) for member in recipe["networks"]])
    if generator == "alternate":
        return networks.alternate([_build(member, seed) for member in recipe["networks"]], recipe["every"])
    if generator == "redraw":
        return networks.redraw(_build(recipe["network"], seed), recipe["rounds"], seed)
    if generator == "failing":
        inner = _build(recipe["network"], seed)
        return networks.failing(inner, recipe["probability"], graphs=recipe["graphs"], seed=seed)
    raise InputError(
        f"seeds cannot draw a network made by {generator} again: its graphs are given, not drawn; "
        "give a list of networks instead of seeds"
    )
