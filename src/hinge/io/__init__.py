"""Data files: LIBSVM / svmlight text, and tables by their ending. Model files: LIBSVM's text.

>>> import tempfile, os
>>> path = os.path.join(tempfile.mkdtemp(), "data.xz")
>>> write_data(path, [[0, 1.5], [2, 0]], [1, -1])
>>> X, y = load(path)
>>> X.toarray()
array([[0. , 1.5],
       [2. , 0. ]])
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from hinge.io.atomic import atomic_write
from hinge.io.models.libsvm_model import LibsvmModel, ModelFileError
from hinge.io.models.read import read_libsvm_model
from hinge.io.models.write import write_libsvm_model
from hinge.io.svmlight.errors import DataFileError, LineError
from hinge.io.svmlight.read import MAX_INDEX, Data, read_data
from hinge.io.svmlight.write import write_data
from hinge.io.tables import READERS, ending, read_table

__all__ = [
    "MAX_INDEX",
    "Data",
    "DataFileError",
    "LibsvmModel",
    "LineError",
    "ModelFileError",
    "atomic_write",
    "load",
    "read_data",
    "read_libsvm_model",
    "read_table",
    "write_data",
    "write_libsvm_model",
]


def load(
    path: Any, *, n_features: int | None = None, label: str | int | None = None, dtype: DTypeLike = np.float64
) -> Data:
    """Read a data file of any known format.

    The endings ``.npz``, ``.npy``, ``.csv``, ``.tsv`` and ``.parquet`` go to `read_table`; everything else,
    standard input ``"-"`` and open files included, is LIBSVM / svmlight text and goes to `read_data`.

    Parameters
    ----------
    path : path, "-" or binary file
        What to read.
    n_features : int or None
        Number of features: fills up what a text file lacks, and must be right for a table.
    label : str, int or None
        Label column of a table; see `read_table`.
    dtype : float64 or float32
        Type of the values in ``X``.

    Returns
    -------
    Data
        Samples and labels.

    Examples
    --------
    >>> import io
    >>> X, y = load(io.BytesIO(b"1 1:2 2:3\\n0 1:1\\n"))
    >>> X.shape, y
    ((2, 2), array([1., 0.]))
    """
    if not isinstance(path, str | os.PathLike) or ending(path) not in READERS:
        if label is not None:
            raise ValueError("label names a column of a table; in LIBSVM text the label always comes first")
        return read_data(path, n_features=n_features, dtype=dtype)
    data = read_table(path, label=label, dtype=dtype)
    if n_features is not None and data.X.shape[1] != n_features:
        raise DataFileError(f"expected {n_features} features, found {data.X.shape[1]}", os.fspath(path))
    return data
