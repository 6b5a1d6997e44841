"""What a problem is made of, at the door: real, finite numbers of a size that can be computed with, and that fit."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..errors import InputError, InputTypeError, shown

LARGEST = 1e75
"""The largest number in data; L holds squares of them, and methods multiply two such."""
EXTREME = 1e150
"""mu and L lie between 1 over this and this."""
LARGEST_DIM = 2**31 - 1
VECTORS = 16
"""How many numbers a run holds for each node and feature, about."""
REAL = "fiub"


def as_numbers(name: str, values: Any, largest: float = LARGEST) -> np.ndarray:
    """Return finite float64 numbers; refuse all that is not made of real numbers, without a guess at what is meant.

    Examples
    --------
    >>> as_numbers("weights", [1, 2.5]).tolist()
    [1.0, 2.5]
    """
    array = as_array(name, values)
    if array.dtype.kind == "O" and not any(one is None or isinstance(one, str | bytes) for one in array.flat):
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
    """Return a NumPy array; refuse what has gaps, what is sparse, and rows of unlike lengths."""
    if sp.issparse(values):
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
    """Refuse NaN, infinity, and numbers whose products overflow, naming the first place."""
    found = flaw(values, largest)
    if found is not None:
        place = f"[{', '.join(map(str, found[0]))}]" if found[0] else ""
        raise InputError(f"{name}{place} {found[1]}")


def flaw(values: np.ndarray, largest: float = LARGEST) -> tuple[tuple[int, ...], str] | None:
    """Return the place of the first number that cannot be computed with, and what is wrong with it; None if all can."""
    if not values.size:
        return None
    if np.isfinite(values).all() and max(float(values.max()), -float(values.min())) <= largest:
        return None
    bad = ~(np.isfinite(values) & (np.abs(values) <= largest))
    place = tuple(int(i) for i in np.argwhere(bad)[0])
    value = values[place]
    if not np.isfinite(value):
        return place, f"is {value}; all values must be finite: drop that sample or fill the value in"
    rule = f"numbers must be at most {largest:g} in size, as products of larger ones overflow: scale them down"
    return place, f"is {value:.6g}; {rule}"


def as_number(name: str, value: Any, example: float) -> float:
    """Return a real number as a float; a whole one that is too large for it as infinity."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise InputTypeError(f"{name} must be a number, got {shown(value)}; e.g. {name}={example:g}")
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf


def check_whole(name: str, value: Any, least: int = 1, remedy: str = "") -> int:
    """Return a whole number; refuse what is none, or is too small or too large to count with."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(
            f"{name} must be a whole number of at least {least}, got {shown(value)}; "
            f"{remedy or f'e.g. {name}={max(least, 10)}'}"
        )
    if value > LARGEST_DIM:
        raise InputError(f"{name} must be at most {LARGEST_DIM}, got {shown(value)}; give the number that is meant")
    return int(value)


def check_room(nodes: int, dim: int, of: Any = None) -> None:
    """Refuse a problem of which a run cannot fit into this machine's memory.

    `of` is what has so many features: a name for it, or the matrix.
    """
    need, have = VECTORS * 8 * nodes * dim, memory()
    if need <= have:
        return
    what = of if isinstance(of, str) else f"{nodes} nodes x {dim} coordinates"
    if sp.issparse(of):
        what += f" ({np.unique(of.indices).size} of {of.shape[1]} features occur)"
    raise InputError(
        f"{what}: a run would hold about {_size(need)}, and this machine has {_size(have)}; leave out features that "
        "never occur by numbering the others anew, or take fewer nodes or features"
    )


def check_filled(nodes: int, samples: int, dim: int) -> None:
    """Refuse dense nodes that do not fit into memory once they are filled up to the samples of the largest."""
    need, have = 8 * nodes * samples * dim, memory()
    if need > have:
        raise InputError(
            f"{nodes} nodes filled up to {samples} samples x {dim} features take {_size(need)}, and this machine has "
            f"{_size(have)}; deal the samples out more evenly, or give them as scipy.sparse arrays"
        )


def _size(numbers: float) -> str:
    return f"{numbers / 1e9:.3g} GB"


def memory() -> float:
    """Return how many bytes of memory this process may have at most, infinity where nobody says."""
    found = [np.inf]
    with suppress(AttributeError, OSError, ValueError):  # not everywhere
        found.append(float(os.sysconf("SC_PAGE_SIZE")) * float(os.sysconf("SC_PHYS_PAGES")))
    with suppress(OSError, ValueError):  # a container's own limit; "max" is none
        found.append(float(Path("/sys/fs/cgroup/memory.max").read_text()))
    return min(found)
