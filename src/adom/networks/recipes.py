"""What generators share: the registry, recipes (how a network was made, and may be made again), checks of arguments."""

from collections.abc import Callable
from inspect import signature
from typing import Any, TypeVar

import numpy as np

from ..errors import InputError, InputTypeError, shown
from ..util.checks import check_whole, is_number

Maker = TypeVar("Maker", bound=Callable[..., Any])
GENERATORS: dict[str, Callable[..., Any]] = {}
"""Functions, by name, that can be called again with the arguments in a recipe."""
SUITED: dict[str, Callable[[int], dict[str, Any]]] = {}
"""By name of a generator: the arguments that suit a number of nodes, for a user who gives none (`adom solve`)."""

HIDDEN = {"seed", "graphs"}
"""Arguments that are left out of a network's name."""
SHOWN = 3
"""The most member networks that a name lists."""

LONGEST = 20_000_000
"""The longest period, and so the most graphs."""
MOST_LINKS = 200_000_000
"""The most links of one graph, and of all graphs together if they must be held (16 bytes each)."""


def generator(make: Maker) -> Maker:
    """Register a function whose parameters have the same names as in its recipes."""
    GENERATORS[make.__name__] = make
    return make


def suited(arguments: Callable[[int], dict[str, Any]]) -> Callable[[Maker], Maker]:
    """Register arguments of a generator, as a function of the number of nodes, that mostly give connected graphs."""

    def register(make: Maker) -> Maker:
        SUITED[make.__name__] = arguments
        return make

    return register


def buildable(recipe: dict[str, Any]) -> bool:
    """Return whether `rebuild` can make a recipe's network; it cannot if a part was given as graphs."""
    parts = [*recipe.get("networks", []), *([recipe["network"]] if "network" in recipe else [])]
    return recipe.get("generator") in GENERATORS and all(map(buildable, parts))


def called(recipe: dict[str, Any]) -> str:
    """Return a network's name: its generator, or for a wrapped network the calls that made it, with arguments.

    Flags and texts at their defaults are left out.

    Examples
    --------
    >>> from adom.networks import delayed, quantised, ring
    >>> called(ring(4).recipe), called(delayed(quantised(ring(4), 6, feedback=False), 2).recipe)
    ('ring', 'delayed(quantised(ring, bits=6, feedback=False), rounds=2)')
    """
    name = str(recipe.get("generator", "network"))
    parts = [*recipe.get("networks", []), *([recipe["network"]] if "network" in recipe else [])]
    if not parts or name not in GENERATORS:
        return name
    inside = [called(part) for part in parts[:SHOWN]] + ["..."] * (len(parts) > SHOWN)
    usual = {key: parameter.default for key, parameter in signature(GENERATORS[name]).parameters.items()}
    given = []
    for key, value in recipe.items():
        if key in {*usual} - HIDDEN and (is_number(value) or (isinstance(value, bool | str) and value != usual[key])):
            given.append(f"{key}={value!r}")
    return f"{name}({', '.join([*inside, *given])})"


def rebuild(recipe: dict[str, Any], seed: int) -> Any:
    """Return the network of a recipe, with every seed in it replaced by this one."""
    name = recipe.get("generator", "network")
    if name not in GENERATORS:
        raise InputError(
            f"seeds cannot draw a network made by {name} again: its graphs are given, not drawn; "
            "give a list of networks instead of seeds"
        )
    arguments = {**recipe, "seed": seed}
    if "network" in recipe:
        arguments["network"] = rebuild(recipe["network"], seed)
    if "networks" in recipe:
        arguments["networks"] = [rebuild(member, seed) for member in recipe["networks"]]
    if name == "geometric" and "chi" in recipe:  # the radius was searched for this chi
        del arguments["radius"]
    make = GENERATORS[name]
    return make(**{key: arguments[key] for key in signature(make).parameters if key in arguments})


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
