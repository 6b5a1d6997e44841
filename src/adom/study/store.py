"""Finished members of a sweep in a folder: one file each, named by a digest of all that determines it.

A member is found again only by exactly the same problem, network, method, parameters, oracle and budget, in the same
version of this package. Files are whole or not there; nothing in them is ever unpickled.
"""

import hashlib
import json
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax

from .. import __version__
from ..algorithms import Method
from ..errors import InputError
from ..networks import DirectedNetwork, Network
from ..problems.base import Problem
from ..run.endings import FINISHED
from ..run.own_code import own_code
from ..run.result import Result, load
from ..util.programs import Program, array_digest
from .members import Member

FORMAT = "adom-sweep-2"


@dataclass(frozen=True)
class Budget:
    """What every member of a sweep is given."""

    rounds: int
    record_every: int
    dtype: str


@dataclass
class Keys:
    """Makes the keys of members; data that several of them share is read once."""

    budget: Budget
    hidden: str = ""  # what no key can hold, where there is such a thing: results must not be kept by such keys
    _seen: dict[int, tuple[Any, str]] = field(default_factory=dict)  # the object is kept, so that its id stays its own
    _methods: dict[type[Method], str] = field(default_factory=dict)

    def key(self, member: Member, aim: float | dict[str, float] | None) -> str:
        """Return the digest of all that determines a member's result; `aim` is where it stops."""
        assert member.method is not None
        parameters = {name: float(value) for name, value in member.method.parameters().items()}
        content = {
            "format": FORMAT,
            "version": __version__,
            "problem": self._once(member.problem, self._problem_digest),
            "network": self._once(member.network, _network_digest),
            "method": self._method_text(member),
            "parameters": parameters,
            "oracle": member.oracle,
            "tol": aim,
            **vars(self.budget),
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]

    def _problem_digest(self, problem: Problem) -> str:
        leaves = [self._once(leaf, array_digest) for leaf in jax.tree.leaves(problem)]
        parts = [*_kinds(problem), *self._told(problem.own_code(), "the problem"), *leaves]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def _method_text(self, member: Member) -> str:
        """Return a method's class; one of someone's own is known by what it computes."""
        cls = member.cls
        if cls not in self._methods:
            assert member.method is not None
            found = own_code(member.method, member.problem.nodes, member.problem.dim, self.budget.dtype)
            facts = (cls.oracle, cls.rounds_per_step, cls.vectors_per_round, cls.directed)
            self._methods[cls] = " ".join(map(str, (cls.__qualname__, *facts, *self._told(found, cls.title))))
        return self._methods[cls]

    def _told(self, code: Program, whose: str) -> list[str]:
        if code.hidden and not self.hidden:
            self.hidden = f"{whose} has code that a key cannot hold ({code.hidden})"
        return [code.digest]

    def _once(self, thing: Any, digest: Callable[[Any], str]) -> str:
        if id(thing) not in self._seen:
            self._seen[id(thing)] = (thing, digest(thing))
        return self._seen[id(thing)][1]


def _network_digest(network: Network | DirectedNetwork) -> str:
    """Return the digest of how a network was made; where its graphs were given, the recipe has their digest."""
    content = hashlib.sha256(json.dumps([type(network).__name__, network.recipe], sort_keys=True).encode())
    content.update(network.order.tobytes())
    return content.hexdigest()


def _kinds(problem: Problem) -> list[str]:
    """Return what a problem is beside its arrays and its code, with the problem inside it if there is one."""
    settled = [value for name in problem.static_fields if not callable(value := getattr(problem, name))]
    found = [f"{type(problem).__qualname__} {problem.nodes} {problem.dim} {settled!r}"]
    for name in problem.array_fields:
        value = getattr(problem, name)
        found += _kinds(value) if isinstance(value, Problem) else [f"{name} {type(value).__qualname__}"]
    return found


@dataclass(frozen=True)
class Store:
    """The folder of a sweep's finished members; without a folder nothing is kept."""

    folder: Path | None

    @classmethod
    def at(cls, folder: str | os.PathLike[str] | None) -> "Store":
        """Return the store in a folder, which is made if need be."""
        if folder is None:
            return cls(None)
        path = Path(folder)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot make the folder {path}: {error.strerror or error}; choose another") from None
        return cls(path)

    def find(self, key: str) -> Result | None:
        """Return the member of that key if it is there, whole and finished; say so if it is not whole."""
        if self.folder is None or not (path := self.folder / f"{key}.npz").exists():
            return None
        try:
            found = load(path)
        except InputError as error:
            warnings.warn(f"{error}; it is done again", stacklevel=4)
            return None
        if (found.provenance.get("sweep") or {}).get("key") != key or found.status not in FINISHED:
            warnings.warn(f"{path} is not the member that its name says; it is done again", stacklevel=4)
            return None
        return found

    def keep(self, key: str, result: Result) -> None:
        """Save a finished member at once."""
        if self.folder is not None:
            result.save(self.folder / f"{key}.npz")
