"""Members of a sweep: every combination of its settings, read and checked before anything runs."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ..algorithms import Method
from ..errors import InputError, InputTypeError, nearest
from ..networks import DirectedNetwork, Network
from ..problems.base import Problem
from ..run.constants import ASSUMED, assumed, check_pair, constants, make_method
from ..run.request import AUTO, TUNED, Stop, check_budget, method_from, parse_oracle
from ..run.result import protocol_text
from ..util.checks import is_number
from .instances import Instance, read_instances
from .jobs import Job
from .methods import LabelledMethod, check_names, read_methods, with_settings

Axes = dict[str, list[float]]
Point = tuple[dict[str, float], dict[str, float], dict[str, float]]
"""Values that replace parameters of the base, factors of such parameters, and factors of the assumed constants."""


@dataclass(frozen=True, kw_only=True)
class SweepMember(Job):
    """One job of a sweep.

    Attributes
    ----------
    number : int
        Its position in the sweep.
    values, factors, assume : dict
        Values that replace parameters of the base, factors of such parameters, and factors of the constants from
        which parameters are computed. The base is the `protocol`.
    drawn : int
        Index of the network among all pairs of network and seed.
    given : int
        Index of the network among those given, before a seed draws it.
    kappa : float, optional
        The requested condition number; None for the problem as it was given.
    refused : str
        Why it cannot run; empty if it can.
    """

    number: int
    values: dict[str, float] = field(default_factory=dict)
    factors: dict[str, float] = field(default_factory=dict)
    assume: dict[str, float] = field(default_factory=dict)
    drawn: int = 0
    given: int = 0
    kappa: float | None = None
    refused: str = ""

    @property
    def seed(self) -> int | None:
        """Seed that drew problem and network; None if the sweep draws nothing."""
        return self.at.seed

    @property
    def place(self) -> dict[str, Any]:
        """Its base, settings and network, for the provenance of its result."""
        settings = {"values": self.values, "factors": self.factors, "assume": self.assume}
        where = {"network": self.given, "seed": self.seed, "kappa": self.kappa}
        return {"label": self.label, "base": self.protocol, **settings, **where}

    @property
    def asked(self) -> Any:
        """The base with the parameters that were changed, as `adom.solve` takes them."""
        if self.protocol == "given" or not (self.values or self.factors or self.assume):
            return self.protocol
        assert self.method is not None
        changed = {name: float(value) for name, value in self.method.parameters().items()}
        if not self.assume:
            changed = {name: changed[name] for name in {**self.values, **self.factors}}
        return {**(self.protocol if isinstance(self.protocol, dict) else {"protocol": self.protocol}), **changed}

    @property
    def base(self) -> str:
        """The base of its parameters, in words."""
        return protocol_text(self.protocol)

    @property
    def text(self) -> str:
        """Label, parameters and oracle in words.

        Examples
        --------
        >>> import adom
        >>> from adom.run.request import Stop
        >>> problem = adom.Quadratic([[[1.0]], [[2.0]]], [[1.0], [0.0]])
        >>> spec = SweepSpec(factors={"eta": [0.5]}, assume={"chi": 2.0})
        >>> expand(problem, adom.networks.path(2), spec, 10, Stop())[0].text
        'adom, unit, chi x 2, eta x 0.5, oracle auto'
        """
        parts = [self.label, self.base]
        parts += [f"{name} = {value:.4g}" for name, value in self.values.items()]
        parts += [f"{name} x {value:.4g}" for name, value in {**self.assume, **self.factors}.items()]
        parts += [f"oracle {self.oracle}"] if self.oracle else []
        return ", ".join(parts)


@dataclass(frozen=True)
class SweepSpec:
    """The settings that a sweep varies, as `adom.sweep` takes them."""

    methods: Any = "adom"
    parameters: Any = "unit"
    grid: Any = None
    factors: Any = None
    assume: Any = None
    settings: Any = None
    oracles: Any = "auto"
    kappas: Any = None
    seeds: Any = None


def expand(problem: Any, network: Any, spec: SweepSpec, rounds: int, stop: Stop) -> list[SweepMember]:
    """Return all members, including those that a method's own rules or the budget refuse."""
    places = _places(problem, network, spec)
    entries = _entries(spec)
    points = _points(spec, entries)
    oracles = [str(parse_oracle(oracle)) for oracle in _list(spec.oracles, tuple)]
    members: list[SweepMember] = []
    for entry, kappa, (drawn, (at, given, problems, net)) in product(entries, places[0].problems, enumerate(places)):
        cls, own_problem = entry.cls, problems[kappa]
        check_pair(own_problem, net, cls)
        base = make_method(own_problem, net, entry.method, entry.parameters)
        true = constants(own_problem, net) if spec.assume is not None else None  # chi of a large network is slow
        shared: dict[str, Any] = {
            "label": entry.label,
            "cls": cls,
            "protocol": "given" if entry.is_instance else entry.parameters,
        }
        shared |= {"problem": own_problem, "network": net, "at": at, "drawn": drawn, "given": given, "kappa": kappa}
        shared |= {"tol": stop.error(own_problem)}
        for values, factors, assume in points[entry.label]:
            method, refused = None, ""
            try:
                if true is not None:
                    base = method_from(entry.method, entry.parameters, partial(assumed, true, **assume))
                method = _varied(base, values, factors, rounds)
            except InputError as error:
                refused = str(error)
            setting: dict[str, Any] = {
                "method": method,
                "refused": refused,
                "values": values,
                "factors": factors,
                "assume": assume,
            }
            for oracle in oracles if cls.oracle == "dual" else [None]:
                members.append(SweepMember(number=len(members), oracle=oracle, **setting, **shared))
    return members


def _varied(base: Method, values: dict[str, float], factors: dict[str, float], rounds: int) -> Method:
    """Return the base with some parameters replaced or scaled; scaled counts are rounded, to at least 1."""
    scaled: dict[str, float] = {}
    for name, factor in factors.items():
        value = base.parameters()[name]
        scaled[name] = max(1, round(value * factor)) if isinstance(value, int) else value * factor
    method = replace(base, **values, **scaled)  # type: ignore[type-var]  # every method is a dataclass
    check_budget(method, rounds)
    return method


class _Place(NamedTuple):
    """A network as a seed drew it, its index among those given, and the problems that members solve on it."""

    at: Instance
    given: int
    problems: dict[float | None, Problem]  # by requested kappa
    network: Network | DirectedNetwork


def _places(problem: Any, network: Any, spec: SweepSpec) -> list[_Place]:
    """Return every network drawn with every seed, and the problems on it."""
    if isinstance(problem, Mapping):
        raise InputTypeError(
            f"a sweep takes one problem, got {len(problem)} by name; sweep each by itself, or use adom.compare"
        )
    instances = read_instances(problem, network, spec.seeds, None, None)
    built, _ = instances.build()
    numbers = {name: number for number, name in enumerate(instances.networks)}
    by_seed = {at.seed: _problems(own, spec.kappas) for at, (own, _) in built.items()}
    return [_Place(at, numbers[at.network], by_seed[at.seed], drawn) for at, (_, drawn) in built.items()]


def _problems(problem: Problem, kappas: Any) -> dict[float | None, Problem]:
    if kappas is None:
        return {None: problem}
    with_kappa: Callable[[float], Problem] | None = getattr(problem, "with_kappa", None)
    if with_kappa is None:
        raise InputError(
            f"kappas needs a problem whose regulariser can be chosen, got {problem!r}; "
            "take adom.LogisticRegression, or sweep each problem by itself"
        )
    return {kappa: with_kappa(kappa) for kappa in (number("kappas", kappa) for kappa in _list(kappas))}


def _entries(spec: SweepSpec) -> list[LabelledMethod]:
    """Return each method with each base of its parameters; an instance is its own base."""
    methods = read_methods(spec.methods)
    entries: list[LabelledMethod] = []
    for base in _list(spec.parameters, dict):
        for found in (TUNED, AUTO):
            if base == found or (isinstance(base, dict) and found in base.values()):
                raise InputError(
                    f"a sweep cannot start from {found} parameters, got {found!r}; use adom.compare for them"
                )
        entries += [entry for entry in with_settings(methods, base, "auto") if entry not in entries]
    return entries


def _points(spec: SweepSpec, entries: list[LabelledMethod]) -> dict[str, list[Point]]:
    """Return every combination of varied parameters for each method, by label."""
    grid = _axes_by_label("grid", spec.grid, entries)
    factors = _axes_by_label("factors", spec.factors, entries, positive=True)
    assume = {} if spec.assume is None else _read_axes("assume", spec.assume, positive=True)
    settings = [{}] if spec.settings is None else _read_settings(spec.settings)
    for name in assume:
        if name not in ASSUMED:
            raise InputError(
                f"assume scales the constants {', '.join(ASSUMED)}, got {name!r}; use factors for parameters"
            )
    if assume and (instance := next((entry for entry in entries if entry.is_instance), None)):
        raise InputError(
            f"assume changes the constants that parameters are computed from, but {instance.label!r} is an instance "
            "that has its own; take the method's name"
        )
    listed = list(dict.fromkeys(name for setting in settings for name in setting))
    for name, entry in product(listed, entries):
        _check_parameter("settings", name, entry)
    points = {}
    for entry in entries:
        own, scaled = grid[entry.label], factors[entry.label]
        twice = [name for name in scaled if name in own] + [name for name in listed if name in {**own, **scaled}]
        if twice:
            raise InputError(f"{twice[0]} is given in two of grid, factors and settings; keep it in one of them")
        combinations = product(settings, _combinations(own), _combinations(scaled), _combinations(assume))
        points[entry.label] = [({**setting, **values}, by, of) for setting, values, by, of in combinations]
    return points


def _combinations(axes: Axes) -> list[dict[str, float]]:
    return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]


def _axes_by_label(
    argument: str, given: Any, entries: list[LabelledMethod], *, positive: bool = False
) -> dict[str, Axes]:
    """Return the axes of every method, by label; axes given for all apply to the methods with that parameter."""
    if isinstance(given, Mapping) and any(isinstance(value, Mapping) for value in given.values()):
        check_names(argument, given, entries)
        by_label = {entry.label: _read_axes(argument, entry.own(given, {}), positive=positive) for entry in entries}
        for entry in entries:
            for name in by_label[entry.label]:
                _check_parameter(argument, name, entry)
        return by_label
    axes = {} if given is None else _read_axes(argument, given, positive=positive)
    for name in axes:
        if not any(name in entry.parameter_names for entry in entries):
            _check_parameter(argument, name, entries[0])
    return {
        entry.label: {name: values for name, values in axes.items() if name in entry.parameter_names}
        for entry in entries
    }


def _check_parameter(argument: str, name: str, entry: LabelledMethod) -> None:
    """Refuse a parameter that the method does not have."""
    known = entry.parameter_names
    if name not in known:
        raise InputError(f"{argument}: {entry.label} has no parameter {name!r}; {nearest(name, known, 'it has')}")


def _read_axes(argument: str, given: Any, *, positive: bool) -> Axes:
    if not isinstance(given, Mapping):
        example = f"e.g. {argument}={{'eta': [0.5, 1, 2]}}"
        raise InputTypeError(f"{argument} must be a dict of lists, got {given!r}; {example}")
    return {
        str(name): [number(f"{argument}[{name!r}]", value, positive=positive) for value in _list(values)]
        for name, values in given.items()
    }


def _read_settings(given: Any) -> list[dict[str, float]]:
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        raise InputTypeError(f"settings must be a list of dicts, got {given!r}; e.g. settings=[{{'eta': 0.1}}]")
    settings = []
    for setting in _not_empty("settings", list(given)):
        if not isinstance(setting, Mapping):
            raise InputTypeError(f"settings must be a list of dicts, got {setting!r} in it; e.g. {{'eta': 0.1}}")
        settings.append({str(name): number(f"settings, {name}", v, positive=False) for name, v in setting.items()})
    return settings


def _list(given: Any, *single: type) -> list[Any]:
    """Return one or several values as a list."""
    if isinstance(given, (str, *single)) or not isinstance(given, Iterable):
        return [given]
    return _not_empty("one of the lists", list(given))


def _not_empty(argument: str, values: list[Any]) -> list[Any]:
    if not values:
        raise InputError(f"{argument} of the sweep is empty; give at least one value, or leave it out")
    return values


def number(argument: str, value: Any, *, positive: bool = True) -> float:
    """Return a finite number, by default a positive one; refuse anything else."""
    if not is_number(value):
        raise InputTypeError(f"{argument} must be a number, got {value!r}; e.g. 0.5")
    if not np.isfinite(value) or (positive and value <= 0):
        raise InputError(f"{argument} must be {'positive and ' if positive else ''}finite, got {value!r}; e.g. 0.5")
    return float(value)
