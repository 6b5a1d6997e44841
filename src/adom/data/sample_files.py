"""Whole files of labelled samples: all blocks of `adom.data.tables`, joined."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..util.checks import check_whole
from .tables import open_table
from .text_files import join


def read(
    path: str | os.PathLike[str], *, label: str | int | None = None, features: int | None = None
) -> tuple[Any, np.ndarray]:
    r"""Read labelled samples from a file.

    ===============  ==================================================================================
    CSV              one sample per line; a first line of names, or of column numbers and names, is skipped
    Parquet          needs pyarrow
    NumPy archive    ``.npz`` with arrays ``features`` and ``labels`` (or ``X`` and ``y``); or the arrays of
                     `scipy.sparse.save_npz`, and labels
    LIBSVM           any other file: ``label index:value index:value ...`` with increasing indices from 1; a ``#``
                     begins a comment
    ===============  ==================================================================================

    CSV and LIBSVM files may be compressed by bzip2, gzip or xz.

    Parameters
    ----------
    path : path
    label : str or int, optional
        The column of labels in a CSV file: its name, or its number from 0; by default the last.
    features : int, optional
        Number of features. A LIBSVM file may lack the last ones; in other files the number must be exact.

    Returns
    -------
    features : array or scipy.sparse.csr_array of shape (samples, features)
        Sparse from LIBSVM and sparse archives, dense otherwise; float64.
    labels : array of shape (samples,)

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "two.svm")
    ...     _ = file.write_text("+1 1:0.5 3:2\n-1 2:1\n")
    ...     A, b = read(file)
    >>> A.toarray().tolist(), b.tolist()
    ([[0.5, 0.0, 2.0], [0.0, 1.0, 0.0]], [1.0, -1.0])
    """
    if features is not None:
        check_whole("features", features, remedy="leave it out to count them")
    table = open_table(path, -1 if label is None else label, dim=features, plain=True)
    blocks = [(block, labels) for block, labels in table.blocks if labels is not None]
    if not blocks:
        raise InputError(f"{path} holds no samples; give a file with at least one")
    if len(blocks) > 1 or hasattr(blocks[0][0], "indptr"):
        return join(Path(path), blocks, features)
    return blocks[0]


def feature_names(path: str | os.PathLike[str], label: str | int | None = None) -> list[str] | None:
    """Return the names of the features in a file; None if it does not name them."""
    return open_table(path, -1 if label is None else label, plain=True).names or None
