"""Instances of a comparison: every problem on every network, drawn with every seed.

Seeds act on problems and networks by one rule: a function is called with the seed; a network that adom drew is drawn
again from its recipe; anything else is the same for all seeds. Seeds that would change nothing are refused.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import jax
import numpy as np

from ..errors import InputError, InputTypeError, shown
from ..networks import DirectedNetwork, Network
from ..problems.base import Problem
from ..run.constants import check_pair
from ..util.checks import check_whole
from ..util.text import numbered

EXAMPLE = "problem=lambda seed: adom.LogisticRegression(...)"


class NothingDrawnError(InputError):
    """Seeds change neither the problem nor the network."""


class Instance(NamedTuple):
    """The names of a problem and a network, and the seed; None if nothing is drawn."""

    problem: str
    network: str
    seed: int | None = None

    def __str__(self) -> str:
        seed = "" if self.seed is None else f", seed {self.seed}"
        return f"{self.problem} on {self.network}{seed}"


Built = dict[Instance, tuple[Problem, Network | DirectedNetwork]]
"""Problem and network of every instance."""


@dataclass(frozen=True)
class Instances:
    """Problems and networks by name, and the seeds that draw them.

    Attributes
    ----------
    problems : dict
        Name -> problem, or a function from a seed to one.
    networks : dict
        Name -> network, or a function from a seed to one.
    seeds : list of int, optional
        None if nothing is drawn.
    """

    problems: dict[str, Any]
    networks: dict[str, Any]
    seeds: list[int] | None

    def build(self) -> tuple[Built, dict[tuple[str, str], list[str]]]:
        """Return problem and network of every instance, and which of them seeds change; refuse seeds without effect."""
        made: dict[tuple[int, int | None], Any] = {}

        def once(source: Any, seed: int | None) -> Any:
            key = (id(source), seed if is_drawn(source) else None)
            if key not in made:
                made[key] = _drawn(source, seed)
            return made[key]

        built: Built = {}
        drawn: dict[tuple[str, str], list[str]] = {}
        seeds: list[int | None] = [*self.seeds] if self.seeds else [None]
        for name, on in product(self.problems, self.networks):
            group = {}
            for seed in seeds:
                problem, network = once(self.problems[name], seed), once(self.networks[on], seed)
                check_pair(problem, network)
                group[Instance(name, on, seed)] = (problem, network)
            changing = {"problem": not _same_problems(*group.values()), "network": not _same_networks(*group.values())}
            drawn[name, on] = [kind for kind, changes in changing.items() if changes]
            if len(group) > 1 and not drawn[name, on]:
                raise NothingDrawnError(
                    f"the seeds change neither {name!r} nor {on!r}: all runs would be the same; give a problem or a "
                    f"network that depends on the seed, e.g. {EXAMPLE}, or a network that adom draws"
                )
            built |= group
        return built, drawn

    def at(self, problem: str, network: str, seed: int) -> tuple[Problem, Network | DirectedNetwork]:
        """Return one problem and network, drawn with another seed."""
        drawn = _drawn(self.problems[problem], seed), _drawn(self.networks[network], seed)
        check_pair(*drawn)
        return drawn


def is_drawn(source: Any) -> bool:
    """Return whether a seed changes a problem or a network."""
    return _is_function(source) or bool(getattr(source, "drawn", False))


def _is_function(source: Any) -> bool:
    return callable(source) and not isinstance(source, Problem | Network | DirectedNetwork)


def _check_call(name: str, source: Any, *given: Any) -> None:
    """Refuse a function that does not take a seed, or a seed and a split."""
    if _is_function(source):
        what, names = ("a seed", "seed") if len(given) == 1 else ("a seed and a split", "seed, split")
        try:
            takes = inspect.signature(source)
        except ValueError:  # for some functions that are not written in Python
            return
        try:
            takes.bind(*given)
        except TypeError as error:
            raise InputTypeError(
                f"{name!r} is called with {what}, and its arguments are {takes}: {error}; write {name}({names})"
            ) from None


def _drawn(source: Any, seed: int | None) -> Any:
    if seed is None or not is_drawn(source):
        return source
    return source(seed) if _is_function(source) else source.reseeded(seed)


def _same_problems(first: tuple[Problem, Any], *others: tuple[Problem, Any]) -> bool:
    """Return whether all instances have the same problem."""
    leaves = jax.tree.leaves(first[0])
    for problem, _ in others:
        same = problem is first[0]
        if not same and type(problem) is type(first[0]):
            own = jax.tree.leaves(problem)
            same = len(own) == len(leaves) and all(map(np.array_equal, own, leaves))
        if not same:
            return False
    return True


def _same_networks(first: tuple[Problem, Any], *others: tuple[Problem, Any]) -> bool:
    """Return whether all instances have the same network."""
    return all(network is first[1] or network.recipe == first[1].recipe for _, network in others)


def read_instances(problem: Any, network: Any, seeds: Any, splits: Any, networks: Any) -> Instances:
    """Read the arguments of `adom.compare` that define problems, networks and seeds."""
    problems = problem if isinstance(problem, Mapping) else {_name(problem, "problem"): problem}
    many = {} if network is None else _by_name(network)
    more = {} if networks is None else _by_name(networks)
    twice = next((name for name in more if name in many), None)
    if twice is not None:
        raise InputError(f"network and networks both have {twice!r}; leave one out, or name them by a dict")
    many |= more
    if not many or not problems:
        raise InputError(f"got no {'networks' if problems else 'problems'} to compare on; give at least one")
    read = _seeds(seeds)
    if splits is not None:
        problems = _split_up(dict(problems), splits)
        if read is None:  # functions are called with 0, and networks stay as they were given
            read, many = [0], {name: n if _is_function(n) else _always(n) for name, n in many.items()}
    for name, source in (*problems.items(), *many.items()):
        if read is None and _is_function(source):
            raise InputError(f"{name!r} is a function of a seed, but no seeds were given; e.g. seeds=5")
        _check_call(name, source, 0)
    return Instances({str(name): source for name, source in problems.items()}, many, read)


def _always(source: Any) -> Callable[[int], Any]:
    """Return a function of the seed that draws nothing."""
    return lambda _: source


def _by_name(networks: Any) -> dict[str, Any]:
    """Return networks by name: the keys of a dict, or the names in their recipes."""
    if isinstance(networks, Mapping):
        return {str(name): network for name, network in networks.items()}
    if isinstance(networks, int | float | str):
        raise InputTypeError(
            f"networks must be networks in a list, or by name in a dict, got {networks!r}; "
            "e.g. networks={'ring': adom.networks.ring(20)}, and seeds=5 draws each of them five times"
        )
    several = list(networks) if isinstance(networks, list | tuple) else [networks]
    return dict(zip(numbered([_name(each, "network") for each in several]), several, strict=True))


def _name(source: Any, otherwise: str) -> str:
    """Return the name of a problem or network: that of its class, recipe or function.

    Examples
    --------
    >>> from adom.networks import ring
    >>> _name(ring(3), "network"), _name(lambda seed: ring(3), "network")
    ('ring', 'network')
    """
    if isinstance(source, Network | DirectedNetwork):
        return str(source.recipe.get("generator", otherwise))
    name = str(getattr(source, "__name__", "") if callable(source) else type(source).__name__)
    return name if name.isidentifier() else otherwise


def _seeds(seeds: Any) -> list[int] | None:
    """Read a number of seeds, counted from 0, or the seeds themselves."""
    if seeds is None:
        return None
    if isinstance(seeds, str) or not isinstance(seeds, Iterable):
        return list(range(check_whole("seeds", seeds, 1, "e.g. seeds=5 for 0 to 4, or seeds=[3, 4]", 10**6)))
    read = [check_whole("seeds", seed, 0, "e.g. seeds=[0, 1, 2]") for seed in seeds]
    if not read or len(set(read)) < len(read):
        raise InputError(f"seeds must be at least one number, all different, got {shown(read)}; e.g. seeds=5")
    return read


def _split_up(problems: dict[Any, Any], splits: Any) -> dict[Any, Any]:
    """Return every problem under every split, as functions of the seed alone."""
    ways = [splits] if isinstance(splits, str) or not isinstance(splits, Iterable) else list(splits)
    twice = next((way for number, way in enumerate(ways) if way in ways[:number]), None)
    if twice is not None:
        raise InputError(f"splits names {twice!r} twice; leave one out")
    if not ways:
        raise InputError("got no splits to compare on; e.g. splits=['shuffled', 'label'], or leave splits out")
    for name, source in problems.items():
        if not _is_function(source):
            raise InputError(
                f"splits cannot split {name!r} again: its samples are already assigned to nodes; give a function, "
                "e.g. problem=lambda seed, split: adom.LogisticRegression.from_nodes("
                "adom.data.split(features, labels, nodes, split, seed=seed), kappa=100)"
            )
        _check_call(name, source, 0, ways[0])
    alone = len(problems) == 1

    def at(make: Callable[..., Any], way: Any) -> Callable[[int], Any]:
        return lambda seed: make(seed, way)

    return {
        str(way) if alone else f"{name}, {way}": at(make, way) for (name, make), way in product(problems.items(), ways)
    }
