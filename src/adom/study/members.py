"""The members of a sweep: every combination of what it varies, read and checked before anything runs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np

from ..algorithms import Constants, Method
from ..errors import InputError, InputTypeError, nearest
from ..networks import DirectedNetwork, Network
from ..networks.reseed import drawn_again
from ..problems.base import Problem
from ..problems.oracle_spec import parse_oracle
from ..run.constants import ASSUMED, assumed, check_pair, constants, make_method
from ..run.request import check_budget
from .compare import Member as Entry
from .compare import read_members, with_settings

Axes = dict[str, list[float]]


@dataclass(frozen=True)
class Member:
    """One run of a sweep.

    Attributes
    ----------
    number : int
        Its place in the sweep.
    label : str
        What the sweep calls its method.
    method : Method, optional
        With its parameters; None where they were refused.
    protocol : str or dict
        The base of its parameters, as `adom.solve` takes it; "given" for an instance.
    values, factors, assume : dict
        What replaces some of the base's parameters, what multiplies them, and what multiplies the constants that they
        are computed from.
    oracle : str, optional
        How a dual method gets grad F*.
    problem, network
        What it runs on; `place` is the network's place among the sweep's.
    refused : str
        Why it cannot run; empty where it can.
    """

    number: int
    label: str
    cls: type[Method]
    method: Method | None
    protocol: Any
    values: dict[str, float]
    factors: dict[str, float]
    assume: dict[str, float]
    oracle: str | None
    problem: Problem
    network: Network | DirectedNetwork
    place: int = 0
    refused: str = ""

    @property
    def base(self) -> str:
        """What the base of its parameters is called."""
        if not isinstance(self.protocol, dict):
            return str(self.protocol)
        changed = [f"{name}={value:.3g}" for name, value in self.protocol.items() if name != "protocol"]
        return f"{self.protocol.get('protocol', 'theory')} with {', '.join(changed)}"

    @property
    def text(self) -> str:
        """What it is, in words.

        Examples
        --------
        >>> import adom
        >>> problem = adom.Quadratic([[[1.0]], [[2.0]]], [[1.0], [0.0]])
        >>> asked = Asked(factors={"eta": [0.5]}, assume={"chi": 2.0})
        >>> expand(problem, adom.networks.path(2), asked, rounds=10)[0].text
        'adom, unit, chi x 2, eta x 0.5, oracle auto'
        """
        parts = [self.label, self.base]
        parts += [f"{name} = {value:.4g}" for name, value in self.values.items()]
        parts += [f"{name} x {value:.4g}" for name, value in {**self.assume, **self.factors}.items()]
        parts += [f"oracle {self.oracle}"] if self.oracle else []
        return ", ".join(parts)


@dataclass(frozen=True)
class Asked:
    """What a sweep is asked to vary, as `adom.sweep` takes it."""

    methods: Any = "adom"
    parameters: Any = "unit"
    grid: Any = None
    factors: Any = None
    assume: Any = None
    settings: Any = None
    oracles: Any = "auto"
    kappas: Any = None
    seeds: Any = None


@dataclass(frozen=True)
class _Axes:
    """What is varied for one method."""

    settings: list[dict[str, float]]
    grid: Axes
    factors: Axes
    assume: Axes = field(default_factory=dict)

    def points(self) -> Iterator[tuple[dict[str, float], dict[str, float], dict[str, float]]]:
        """Return every combination as values, factors and assumed constants."""
        for setting, grid, factors, assume in product(
            self.settings, _grid(self.grid), _grid(self.factors), _grid(self.assume)
        ):
            yield {**setting, **grid}, factors, assume


def expand(problem: Problem, network: Any, asked: Asked, rounds: int) -> list[Member]:
    """Return all members; those that a method's own rules or the budget refuse say so."""
    networks = _networks(problem, network, asked.seeds)
    problems = _problems(problem, asked.kappas)
    entries = _entries(asked)
    axes = _axes(asked, [one for one, _ in entries])
    oracles = [str(parse_oracle(one)) for one in _several(asked.oracles, tuple)]
    members: list[Member] = []
    for (entry, protocol), where in product(entries, _several_places(problems, networks)):
        one, net, place = where
        check_pair(one, net, directed=entry.cls.directed, title=entry.cls.title)
        base = make_method(one, net, entry.method, entry.parameters)
        true = constants(one, net) if asked.assume is not None else None  # chi of a large network takes long
        for values, factors, assume in axes[entry.label].points():
            method, refused = _method(entry, base, true, (values, factors, assume), rounds)
            for oracle in oracles if entry.cls.oracle == "dual" else [None]:
                described = (entry.label, entry.cls, method, protocol, values, factors, assume)
                members.append(Member(len(members), *described, oracle, one, net, place, refused))
    return members


def _method(
    entry: Entry,
    base: Method,
    true: Constants | None,
    point: tuple[dict[str, float], dict[str, float], dict[str, float]],
    rounds: int,
) -> tuple[Method | None, str]:
    """Return the method at one point of the sweep, or why there is none."""
    values, factors, assume = point
    try:
        if true is not None:
            base = _assuming(entry, assumed(true, **assume))
        known = base.parameters()
        scaled = {name: like(known[name], known[name] * factor) for name, factor in factors.items()}
        method = replace(base, **values, **scaled)  # type: ignore[type-var]  # every method is a dataclass
        check_budget(method, rounds)
    except InputError as error:
        return None, str(error)
    return method, ""


def _assuming(entry: Entry, told: Constants) -> Method:
    overrides = dict(entry.parameters) if isinstance(entry.parameters, dict) else {}
    protocol = overrides.pop("protocol", "theory") if overrides else entry.parameters
    method: Method = getattr(entry.cls, protocol)(told)
    return replace(method, **overrides)  # type: ignore[type-var]  # every method is a dataclass


def like(base: Any, value: float) -> float:
    """Return the value, rounded to a whole number of at least 1 where the base counts something."""
    return max(1, round(value)) if isinstance(base, int) else value


def _grid(axes: Axes) -> list[dict[str, float]]:
    return [dict(zip(axes, point, strict=True)) for point in product(*axes.values())]


def _several_places(
    problems: list[Problem], networks: list[Network | DirectedNetwork]
) -> list[tuple[Problem, Network | DirectedNetwork, int]]:
    return [(one, net, place) for one in problems for place, net in enumerate(networks)]


def _networks(problem: Problem, network: Any, seeds: Any) -> list[Network | DirectedNetwork]:
    given = list(network) if isinstance(network, list | tuple) else [network]
    if not given:
        raise InputError("got no networks; give one, or a list of them")
    for one in given:
        check_pair(problem, one, directed=True)
    if seeds is None:
        return given
    found = []
    for one, seed in product(given, _several(seeds)):
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise InputError(f"seeds must be whole numbers of at least 0, got {seed!r}; e.g. seeds=range(5)")
        found.append(drawn_again(one, int(seed)))
    return found


def _problems(problem: Problem, kappas: Any) -> list[Problem]:
    if kappas is None:
        return [problem]
    again = getattr(problem, "with_kappa", None)
    if again is None:
        raise InputError(
            f"kappas needs a problem whose regulariser can be chosen, got {problem!r}; "
            "take adom.LogisticRegression, or sweep each problem by itself"
        )
    return [again(number("kappas", kappa)) for kappa in _several(kappas)]


def _entries(asked: Asked) -> list[tuple[Entry, Any]]:
    """Return each method with each base of its parameters; an instance is its own base."""
    entries = read_members(_numbered(asked.methods))
    bases = _several(asked.parameters, dict)
    found: list[tuple[Entry, Any]] = []
    for base in bases:
        if base == "tuned" or (isinstance(base, dict) and "tuned" in base.values()):
            raise InputError("a sweep cannot start from tuned parameters, got 'tuned'; adom.compare takes them")
        for entry in with_settings(entries, base, "auto"):
            instance = isinstance(entry.method, Method)
            pair = (entry, "given" if instance else entry.parameters)
            if pair not in found:
                found.append(pair)
    return found


def _numbered(methods: Any) -> Any:
    """Give instances of one class, which would all be called the same, a number each."""
    if isinstance(methods, str | Method | type) or not isinstance(methods, Iterable):
        return [methods] if isinstance(methods, type) else methods
    methods = list(methods)
    names = [one.name for one in methods if isinstance(one, Method)]
    seen: dict[str, int] = {}
    found: list[Any] = []
    for one in methods:
        if isinstance(one, Method) and names.count(one.name) > 1:
            seen[one.name] = seen.get(one.name, 0) + 1
            found.append((f"{one.name} {seen[one.name]}", one))
        else:
            found.append(one)
    return found


def _axes(asked: Asked, entries: Sequence[Entry]) -> dict[str, _Axes]:
    """Return what is varied for each method, by label."""
    known = {entry.label: [*entry.cls.__dataclass_fields__] for entry in entries}  # type: ignore[attr-defined]  # a dataclass
    grid = _by_method("grid", asked.grid, entries)
    factors = _by_method("factors", asked.factors, entries, positive=True)
    assume = {} if asked.assume is None else _read_axes("assume", asked.assume, positive=True)
    settings = _settings(asked.settings)
    for name in assume:
        if name not in ASSUMED:
            raise InputError(
                f"assume scales the constants {', '.join(ASSUMED)}, got {name!r}; factors scales parameters"
            )
    if assume and (given := next((one for one in entries if isinstance(one.method, Method)), None)):
        raise InputError(
            f"assume changes the constants that parameters are computed from, but {given.label!r} is an instance that "
            "has its own; take the method's name"
        )
    for what, per_method in (("grid", grid), ("factors", factors), ("settings", {"": _names_of(settings)})):
        for name in {name for axes in per_method.values() for name in axes}:
            _check_owned(what, name, known, everyone=what == "settings")
    found = {}
    for label, names in known.items():
        own = {name: values for name, values in grid[label].items() if name in names}
        scaled = {name: values for name, values in factors[label].items() if name in names}
        twice = [name for name in scaled if name in own] + [n for n in _names_of(settings) if n in {**own, **scaled}]
        if twice:
            raise InputError(f"{twice[0]} is given in two of grid, factors and settings; leave it in one of them")
        found[label] = _Axes(settings, own, scaled, assume)
    return found


def _by_method(what: str, given: Any, entries: Sequence[Entry], *, positive: bool = False) -> dict[str, Axes]:
    """Return axes for every label, whether they were given for all methods or by method."""
    if given is None:
        return {entry.label: {} for entry in entries}
    if not isinstance(given, Mapping):
        raise InputTypeError(f"{what} must be a dict of lists, got {given!r}; e.g. {what}={{'eta': [0.5, 1, 2]}}")
    if not any(isinstance(value, Mapping) for value in given.values()):
        read = _read_axes(what, given, positive=positive)
        return {entry.label: read for entry in entries}
    names = {name for entry in entries for name in (entry.label, entry.cls.name)}
    for name in given:
        if name not in names:
            raise InputError(
                f"{what} names {name!r}, which is no method of this sweep; it has {', '.join(sorted(names))}"
            )
    found = {}
    for entry in entries:
        own = given.get(entry.label, given.get(entry.cls.name, {}))
        found[entry.label] = _read_axes(what, own, positive=positive)
        for name in found[entry.label]:
            _check_owned(what, name, {entry.label: [*entry.cls.__dataclass_fields__]})  # type: ignore[attr-defined]  # as above
    return found


def _read_axes(what: str, given: Any, *, positive: bool) -> Axes:
    if not isinstance(given, Mapping):
        raise InputTypeError(f"{what} must be a dict of lists, got {given!r}; e.g. {what}={{'eta': [0.5, 1, 2]}}")
    return {
        str(name): [number(f"{what}[{name!r}]", value, positive=positive) for value in _several(values)]
        for name, values in given.items()
    }


def _settings(given: Any) -> list[dict[str, float]]:
    if given is None:
        return [{}]
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        raise InputTypeError(f"settings must be a list of dicts, got {given!r}; e.g. settings=[{{'eta': 0.1}}]")
    found = []
    for one in given:
        if not isinstance(one, Mapping):
            raise InputTypeError(f"settings must be a list of dicts, got {one!r} in it; e.g. {{'eta': 0.1}}")
        found.append({str(name): number(f"settings, {name}", value, positive=False) for name, value in one.items()})
    return _some("settings", found)


def _names_of(settings: list[dict[str, float]]) -> dict[str, None]:
    return {name: None for one in settings for name in one}


def _check_owned(what: str, name: str, known: dict[str, list[str]], *, everyone: bool = False) -> None:
    """Refuse a parameter that no method has, or, where it is needed for everyone, that some method has not."""
    owners = [label for label, names in known.items() if name in names]
    if owners and not (everyone and len(owners) < len(known)):
        return
    lacking = next(label for label in known if label not in owners)
    raise InputError(f"{what}: {lacking} has no parameter {name!r}; {nearest(name, known[lacking], 'it has')}")


def _several(given: Any, *single: type) -> list[Any]:
    """Return a list of what was given, whether it was one or several."""
    if isinstance(given, (str, *single)) or not isinstance(given, Iterable):
        return [given]
    return _some("one of the lists", list(given))


def _some(what: str, found: list[Any]) -> list[Any]:
    if not found:
        raise InputError(f"{what} of the sweep is empty; give one value at least, or leave it out")
    return found


def number(what: str, value: Any, *, positive: bool = True) -> float:
    """Return a finite number, positive where it has to be."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise InputTypeError(f"{what} must be a number, got {value!r}; e.g. 0.5")
    if not np.isfinite(value) or (positive and value <= 0):
        raise InputError(f"{what} must be {'positive and ' if positive else ''}finite, got {value!r}; e.g. 0.5")
    return float(value)
