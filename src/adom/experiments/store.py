"""Finished members of a sweep in a folder: one file each, named by a digest of all that determines it.

A member is found again only by exactly the same problem, network, method, parameters, oracle and budget, in the same
version of this package. Files are whole or not there; nothing in them is ever unpickled.
"""

import hashlib
import inspect
import json
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np

from .. import __version__
from ..algorithms import METHODS
from ..engine.result import Result, load
from ..errors import InputError
from ..networks import DirectedNetwork, Network
from ..problems.base import Problem
from .members import Member

FORMAT = "adom-sweep-1"
FINISHED = ("converged", "max_rounds", "diverged")


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
    _seen: dict[int, tuple[Any, str]] = field(default_factory=dict)  # the object is kept, so that its id stays its own

    def key(self, member: Member, aim: float | dict[str, float] | None) -> str:
        """Return the digest of all that determines a member's result; `aim` is where it stops."""
        assert member.method is not None
        parameters = {name: float(value) for name, value in member.method.parameters().items()}
        content = {
            "format": FORMAT,
            "version": __version__,
            "problem": self._problem(member.problem),
            "network": self._once(member.network, _network_digest),
            "method": _method_name(member),
            "parameters": parameters,
            "oracle": member.oracle,
            "tol": aim,
            **vars(self.budget),
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]

    def _problem(self, problem: Problem) -> list[str]:
        leaves = [self._once(leaf, _array_digest) for leaf in jax.tree.leaves(problem)]
        return [type(problem).__qualname__, *(_code(getattr(problem, name)) for name in problem.static_fields), *leaves]

    def _once(self, thing: Any, digest: Callable[[Any], str]) -> str:
        if id(thing) not in self._seen:
            self._seen[id(thing)] = (thing, digest(thing))
        return self._seen[id(thing)][1]


def _array_digest(leaf: Any) -> str:
    array = np.ascontiguousarray(leaf)
    content = hashlib.sha256(f"{array.dtype.str} {array.shape}".encode())
    content.update(array.data if array.size else b"")
    return content.hexdigest()


def _network_digest(network: Network | DirectedNetwork) -> str:
    """Return the digest of how a network was made; where its graphs were given, the recipe has their digest."""
    content = hashlib.sha256(json.dumps([type(network).__name__, network.recipe], sort_keys=True).encode())
    content.update(network.order.tobytes())
    return content.hexdigest()


def _method_name(member: Member) -> str:
    """Return the name of a method of the table; a method of someone's own is known by its code."""
    cls = member.cls
    if METHODS.get(cls.name) == f"{cls.__module__.rpartition('.')[2]}:{cls.__name__}":
        return cls.name
    return f"{cls.__qualname__} {_code(cls)}"


def _code(thing: Any) -> str:
    """Return the source of a function or class as far as it can be had, anything else as text."""
    if not callable(thing):
        return repr(thing)
    try:
        return inspect.getsource(thing)
    except (OSError, TypeError):
        return f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', type(thing).__qualname__)}"


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
        if found.provenance.get("sweep", {}).get("key") != key or found.status not in FINISHED:
            warnings.warn(f"{path} is not the member that its name says; it is done again", stacklevel=4)
            return None
        return found

    def keep(self, key: str, result: Result) -> None:
        """Save a finished member at once."""
        if self.folder is not None:
            result.save(self.folder / f"{key}.npz")
