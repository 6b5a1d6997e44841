"""Arrays that JAX takes over as they are.

On a CPU `jax.device_put` uses an array's own memory if it begins at a multiple of 64 bytes, which NumPy's seldom does,
and copies it otherwise. What is large is therefore made here.
"""

from typing import Any

import numpy as np

ALIGNMENT = 64


def empty(shape: tuple[int, ...], dtype: Any = np.float64) -> np.ndarray:
    """Return an array whose values are yet to be set, and whose memory begins at a multiple of 64 bytes.

    Examples
    --------
    >>> empty((3, 5)).ctypes.data % 64
    0
    """
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    memory = np.empty(size + ALIGNMENT, dtype=np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    made: np.ndarray = memory[start : start + size].view(dtype).reshape(shape)
    return made


def zeros(shape: tuple[int, ...], dtype: Any = np.float64) -> np.ndarray:
    """Return an array of zeros that begins at a multiple of 64 bytes."""
    made = empty(shape, dtype)
    made[...] = 0
    return made


def like(values: np.ndarray, dtype: Any = None) -> np.ndarray:
    """Return a copy that begins at a multiple of 64 bytes, or the array itself if it does already."""
    wanted = np.dtype(dtype or values.dtype)
    if values.dtype == wanted and values.flags.c_contiguous and values.ctypes.data % ALIGNMENT == 0:
        return values
    made = empty(values.shape, wanted)
    made[...] = values
    return made
