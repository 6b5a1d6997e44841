"""Recipes: how a network was made, as data, and the same network made again with another seed."""

from collections.abc import Callable
from inspect import signature
from typing import Any, TypeVar

from ..errors import InputError

Maker = TypeVar("Maker", bound=Callable[..., Any])
GENERATORS: dict[str, Callable[..., Any]] = {}
"""Functions that can be called again with the arguments that stand in a recipe."""


def generator(make: Maker) -> Maker:
    """Register a function whose parameters are named as in the recipes of its networks."""
    GENERATORS[make.__name__] = make
    return make


def buildable(recipe: dict[str, Any]) -> bool:
    """Return whether `rebuild` can make the network of a recipe: no part of it was given as graphs."""
    parts = [*recipe.get("networks", []), *([recipe["network"]] if "network" in recipe else [])]
    return recipe.get("generator") in GENERATORS and all(map(buildable, parts))


def rebuild(recipe: dict[str, Any], seed: int) -> Any:
    """Return the network of a recipe; every part of it that has a seed gets this one."""
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
    if name == "geometric" and "chi" in recipe:  # then the radius was a result
        del arguments["radius"]
    make = GENERATORS[name]
    return make(**{key: arguments[key] for key in signature(make).parameters if key in arguments})
