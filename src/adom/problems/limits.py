"""The numbers that problems can be computed with: real, finite, not too large, and few enough to fit in memory."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, InputTypeError
from ..util.arrays import is_sparse

LARGEST = 1e75
"""The largest number in data: L contains its square, and methods multiply two such squares."""
EXTREME = 1e150
"""The largest mu and L; the smallest are 1 / EXTREME."""
LARGEST_DIM = 2**31 - 1
"""The most nodes, coordinates or classes."""
VECTORS = 16
"""The approximate count of numbers that a run stores per node and feature."""
REAL = "fiub"
"""The kinds of NumPy dtypes that are real numbers."""


def as_numbers(name: str, values: Any, largest: float = LARGEST) -> np.ndarray:
    """Return finite float64 numbers; refuse anything but real numbers instead of guessing a conversion.

    Examples
    --------
    >>> as_numbers("weights", [1, 2.5]).tolist()
    [1.0, 2.5]
    """
    array = as_array(name, values)
    if array.dtype.kind == "O" and not any(item is None or isinstance(item, str | bytes) for item in array.flat):
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise InputTypeError(f"{name} must be numbers, got {_kind(values)} ({error}); convert them first") from None
    if array.dtype.kind not in REAL:
        raise InputTypeError(f"{name} must be real numbers, got {_kind(values)} of {array.dtype}; convert them first")
    with np.errstate(over="ignore"):
        array = array.astype(np.float64, copy=False)
    check_numbers(name, array, largest)
    return array


def as_array(name: str, values: Any) -> np.ndarray:
    """Return a NumPy array; refuse masked and sparse values, and rows of unequal lengths."""
    if is_sparse(values):
        raise InputTypeError(f"{name} must be a dense array, got a sparse one; give its toarray()")
    if np.ma.isMaskedArray(values) and np.ma.getmaskarray(values).any():
        raise InputError(f"{name} must have no gaps, got masked values; drop those samples or fill the values in")
    try:
        return np.asarray(values)
    except (TypeError, ValueError, OverflowError) as error:
        reason = str(error).splitlines()[0]
        raise InputTypeError(f"{name} must be an array of numbers, got {_kind(values)} ({reason})") from None


def _kind(values: Any) -> str:
    return "an array" if isinstance(values, np.ndarray) else f"a {type(values).__name__}"


def check_numbers(name: str, values: np.ndarray, largest: float = LARGEST) -> None:
    """Refuse NaN, infinity, and numbers whose products overflow, naming the first one."""
    if bad := flaw(values, largest):
        index, reason = bad
        raise InputError(f"{name}{list(index) or ''} {reason}")


def flaw(values: np.ndarray, largest: float = LARGEST) -> tuple[tuple[int, ...], str] | None:
    """Return the index of the first invalid number and the reason; None if there is none."""
    if not values.size:
        return None
    if np.isfinite(values).all() and max(float(values.max()), -float(values.min())) <= largest:
        return None
    bad = ~(np.isfinite(values) & (np.abs(values) <= largest))
    index = tuple(int(i) for i in np.argwhere(bad)[0])
    value = values[index]
    if not np.isfinite(value):
        return index, f"is {value}; all values must be finite: drop that sample or fill the value in"
    rule = f"numbers must be at most {largest:g} in size, as products of larger ones overflow: scale them down"
    return index, f"is {value:.6g}; {rule}"


def check_room(nodes: int, dim: int, of: Any = None) -> None:
    """Refuse a problem whose run would not fit into memory.

    `of` describes the features in the message: a name, or the matrix itself.
    """
    need = VECTORS * 8 * nodes * dim
    if need <= memory():
        return
    what = of if isinstance(of, str) else f"{nodes} nodes x {dim} coordinates"
    if is_sparse(of):
        what += f" ({np.unique(of.indices).size} of {of.shape[1]} features occur)"
    remedy = "leave out features that never occur by numbering the others anew, or take fewer nodes or features"
    check_memory(f"{what}: a run would hold about", need, remedy)


def check_memory(what: str, need: float, remedy: str) -> None:
    """Refuse more bytes than this process may use."""
    have = memory()
    if need > have:
        raise InputError(f"{what} {need / 1e9:.3g} GB, and this machine has {have / 1e9:.3g} GB; {remedy}")


def memory() -> float:
    """Return the most bytes of memory that this process may use, infinity if unknown."""
    limits = [np.inf]
    with suppress(AttributeError, OSError, ValueError):  # not available on every system
        limits.append(float(os.sysconf("SC_PAGE_SIZE")) * float(os.sysconf("SC_PHYS_PAGES")))
    with suppress(OSError, ValueError):  # a container's own limit; "max" means none
        limits.append(float(Path("/sys/fs/cgroup/memory.max").read_text()))
    return min(limits)
