"""Put problems and settings of methods on the device, in a form that compiled loops take as arguments."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from ...algorithms import Method
from ...dynamics.wrapping import bare
from ...problems.base import Problem

_registered: set[type[Method]] = set()


def register(cls: type[Method]) -> None:
    """Make a method's hyper-parameters visible to JAX without running its checks on tracers."""
    if cls in _registered:
        return

    def unflatten(names: tuple[str, ...], values: Any) -> Method:
        return bare(cls, zip(names, values, strict=True))

    def flatten(method: Method) -> tuple[tuple[Any, ...], tuple[str, ...]]:
        parameters = method.parameters()
        return tuple(parameters.values()), tuple(parameters)

    jax.tree_util.register_pytree_node(cls, flatten, unflatten)
    _registered.add(cls)


def place(tree: Any, dtype: str) -> Any:
    """Put a tree of arrays on the device, floats cast to `dtype`."""

    def cast(leaf: Any) -> np.ndarray:
        array = np.asarray(leaf)
        return array.astype(dtype, copy=False) if array.dtype.kind == "f" else array

    return jax.device_put(jax.tree.map(cast, tree))  # one call for all: it costs more than a small array


def stack(trees: Sequence[Any], dtype: str, batched: bool) -> Any:
    """Return all settings as one tree of arrays; if not `batched`, the only one, of scalars."""
    return place(jax.tree.map(lambda *leaves: np.asarray(leaves if batched else leaves[0], dtype=dtype), *trees), dtype)


def stack_problems(problems: Sequence[Problem]) -> tuple[Problem, tuple[int | None, ...]]:
    """Return one problem of shared or stacked arrays, and the axis of the stack for each array: None if shared."""
    trees = {id(problem): jax.tree.flatten(problem) for problem in {id(p): p for p in problems}.values()}
    columns = zip(*(trees[id(problem)][0] for problem in problems), strict=True)
    leaves, shared = [], []
    for column in columns:
        alike = all(leaf is column[0] or np.array_equal(leaf, column[0]) for leaf in column)
        leaves.append(column[0] if alike else np.stack(column))
        shared.append(None if alike else 0)
    return jax.tree.unflatten(trees[id(problems[0])][1], leaves), tuple(shared)
