"""Arrays whose memory begins at a multiple of 64 bytes, and sparse ones.

On a CPU `jax.device_put` shares such memory instead of copying it.
"""

import sys
from typing import Any

import numpy as np

ALIGNMENT = 64


def empty(shape: tuple[int, ...], dtype: Any = np.float64) -> np.ndarray:
    """Return an aligned, uninitialised array.

    Examples
    --------
    >>> empty((3, 5)).ctypes.data % 64
    0
    """
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    memory = np.empty(size + ALIGNMENT, dtype=np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    array: np.ndarray = memory[start : start + size].view(dtype).reshape(shape)
    return array


def zeros(shape: tuple[int, ...], dtype: Any = np.float64) -> np.ndarray:
    """Return an aligned array of zeros."""
    array = empty(shape, dtype)
    array[...] = 0
    return array


def like(values: np.ndarray) -> np.ndarray:
    """Return the array itself if it is aligned, else an aligned copy."""
    if values.flags.c_contiguous and values.ctypes.data % ALIGNMENT == 0:
        return values
    array = empty(values.shape, values.dtype)
    array[...] = values
    return array


def is_sparse(values: Any) -> bool:
    """Return whether `values` is a scipy.sparse matrix, without importing SciPy."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(values))
