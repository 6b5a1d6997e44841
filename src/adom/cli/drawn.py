"""Problems and networks of the command line, as functions of the seed if a seed draws them."""

from dataclasses import replace
from typing import Any

from .settings import Config

DRAWN = ("shuffled", "dirichlet")
"""Splits that depend on the seed."""


def networks_by_seed(by_name: dict[str, Config], *, drawn: bool) -> dict[str, Any]:
    """Return the networks by name, with `drawn` as functions of the seed, which one with its own seed ignores."""
    from . import output

    with output.busy("building the networks"):
        return {name: _network(config, drawn=drawn) for name, config in by_name.items()}


def problem_by_seed(config: Config, network: Any, *, drawn: bool, ways: bool = False) -> Any:
    """Return the problem on a network, as a function of the seed if that draws it; with `ways`, of the split too."""
    from . import build, output

    given = config.problem
    with output.busy("building the problem"):
        nodes = (network(given.seed) if callable(network) else network).nodes

    def make(seed: int, split: str | None = given.split) -> Any:
        own = replace(given, seed=seed if drawn else given.seed, split=split)
        return build.problem(replace(config, problem=own), nodes)

    changing = given.own is not None or (given.data is None and given.shards is None) or given.split in DRAWN
    return make if ways or (drawn and changing) else make(given.seed)


def _network(config: Config, *, drawn: bool) -> Any:
    from . import build

    if drawn and config.network.seed is None:
        return lambda seed: build.network(replace(config, network=replace(config.network, seed=seed)))
    network = build.network(config)
    return (lambda _: network) if drawn else network  # a bare network would be drawn again with every seed
