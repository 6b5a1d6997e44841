"""Finished runs of a sweep or a comparison in a folder: one file per run, named by a digest of all that determines it.

A run is reused only for exactly the same problem, network, method, parameters, oracle and budget, in the same version
of this package. Files are complete or absent; nothing in them is unpickled.
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
from ..algorithms.base import plain
from ..dynamics.endings import FINISHED
from ..errors import InputError, without_remedy
from ..networks import DirectedNetwork, Network
from ..problems.base import Problem
from ..run.result import Result, load
from ..run.user_code import try_steps, user_code
from ..util.files import make_folder
from ..util.programs import Program, array_digest

FORMAT = "adom-sweep-2"


@dataclass
class Keys:
    """Keys of runs with the same budget; data that several runs share is read once."""

    rounds: int
    record_every: int
    dtype: str
    _hidden: str = ""  # why no digest can identify some code, in words
    _failed: tuple[Any, ...] = ()  # arguments of `try_steps` for a user's method whose step JAX cannot trace
    _digests: dict[int, tuple[Any, str]] = field(default_factory=dict)  # keeps the object, so that its id stays unique
    _methods: dict[type[Method], str] = field(default_factory=dict)

    def key(self, run: Any, aim: float | dict[str, float] | None, **more: str) -> str:
        """Return the digest of all that determines the result of a run or member.

        `aim` is the error at which it stops, and `more` holds further entries of the digest.
        """
        parameters = {name: float(value) for name, value in run.method.parameters().items()}
        content = {
            "format": FORMAT,
            "version": __version__,
            "problem": self._once(run.problem, self._problem_digest),
            "network": self._once(run.network, _network_digest),
            "method": self._method_text(run.method, run.problem),
            "parameters": parameters,
            "oracle": run.oracle,
            "tol": aim,
            "rounds": self.rounds,
            "record_every": self.record_every,
            "dtype": self.dtype,
            **more,
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]

    def check(self) -> None:
        """Refuse to save runs of code that no digest can identify; a user's method may raise its own error first."""
        if self._failed:
            try_steps(*self._failed)
        if self._hidden:
            raise InputError(f"a run's file is named by a digest of its code, and {self._hidden}; leave folder out")

    def _problem_digest(self, problem: Problem) -> str:
        leaves = [self._once(leaf, array_digest) for leaf in jax.tree.leaves(problem)]
        parts = [*_descriptions(problem), self._code_digest(problem.user_code(), "the problem"), *leaves]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def _method_text(self, method: Method, problem: Problem) -> str:
        """Return a text that identifies a method's class, and the computation of a user's own method."""
        cls = type(method)
        if cls not in self._methods:
            place = (problem.nodes, problem.dim, self.dtype)
            code = user_code(method, *place)
            self._failed = (type(plain(method)), *place) if code.failed else self._failed
            facts = (cls.oracle, cls.rounds_per_step, cls.vectors_per_round, cls.directed)
            self._methods[cls] = " ".join(map(str, (cls.__qualname__, *facts, self._code_digest(code, cls.title))))
        return self._methods[cls]

    def _code_digest(self, code: Program, owner: str) -> str:
        if code.hidden and not self._hidden:
            self._hidden = f"{owner} has code that no digest can hold ({code.hidden})"
        return code.digest

    def _once(self, data: Any, digest: Callable[[Any], str]) -> str:
        if id(data) not in self._digests:
            self._digests[id(data)] = (data, digest(data))
        return self._digests[id(data)][1]


def _network_digest(network: Network | DirectedNetwork) -> str:
    """Return the digest of a network's recipe and order; the recipe has a digest of any graphs that were given."""
    content = hashlib.sha256(json.dumps([type(network).__name__, network.recipe], sort_keys=True).encode())
    content.update(network.order.tobytes())
    return content.hexdigest()


def _descriptions(problem: Problem) -> list[str]:
    """Return the types and settings of a problem and of the problem inside it, without arrays and code."""
    settings = [value for name in problem.static_fields if not callable(value := getattr(problem, name))]
    texts = [f"{type(problem).__qualname__} {problem.nodes} {problem.dim} {settings!r}"]
    for name in problem.array_fields:
        value = getattr(problem, name)
        texts += _descriptions(value) if isinstance(value, Problem) else [f"{name} {type(value).__qualname__}"]
    return texts


@dataclass(frozen=True)
class Store:
    """The folder of finished runs; without a folder nothing is saved."""

    folder: Path | None
    home: str = "sweep"  # entry of the provenance that holds the key

    @classmethod
    def at(cls, folder: str | os.PathLike[str] | None, home: str = "sweep") -> "Store":
        """Return the store in a folder, which is created if need be; refuse one that cannot be written to."""
        path = None if folder is None else Path(folder)
        if path is not None:
            make_folder(path, "choose another")
        return cls(path, home)

    def find(self, key: str) -> Result | None:
        """Return the finished run with that key, or None; warn about a file that is damaged or holds another run."""
        if self.folder is None or not (path := self.folder / f"{key}.npz").exists():
            return None
        try:
            result = load(path)
        except InputError as error:
            warnings.warn(f"{without_remedy(error)}; the run is made again", stacklevel=4)
            return None
        if (result.provenance.get(self.home) or {}).get("key") != key or result.status not in FINISHED:
            warnings.warn(f"{path} does not hold the run named in its file name; the run is made again", stacklevel=4)
            return None
        return result

    def keep(self, key: str, result: Result) -> None:
        """Save a finished run."""
        if self.folder is not None:
            result.save(self.folder / f"{key}.npz")
