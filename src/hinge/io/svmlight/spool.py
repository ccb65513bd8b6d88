"""LIBSVM text larger than memory: read once, into arrays in files that are mapped to memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import sparse
from hinge.data.pages import windows, write
from hinge.io.budget import Budget
from hinge.io.svmlight.read import Data, Reader
from hinge.io.svmlight.source import Source, open_source

_WHAT = "its samples"


def spool_data(source: Source, folder: Path, *, threads: int | None = None) -> Data:
    """Read a data file as `hinge.io.read_data` does, index 0 being column 0, into files of a folder.

    Parameters
    ----------
    source : path, "-" or binary file
        LIBSVM text.
    folder : path
        Where its samples are to be: mapped to memory, dense or without zeros, whatever is smaller. They are gone
        with the folder.
    threads : int, optional
        Number of threads.

    Raises
    ------
    DataFileError
        The file is malformed.
    OSError
        The disk is full.
    """
    y, lengths, width = [np.empty(0)], [np.zeros(1, np.int64)], 0
    paths = folder / "values", folder / "columns"
    reader = Reader(zero_based=True, threads=threads)
    with open_source(source) as (file, name), paths[0].open("wb") as values, paths[1].open("wb") as columns:
        for piece in reader.sound_pieces(file, name, Budget(name)):
            y.append(piece.y)
            lengths.append(np.diff(piece.ends, prepend=0))
            width = max(width, piece.top + 1)
            write(values, piece.values, _WHAT)
            write(columns, piece.columns, _WHAT)
    indptr = np.cumsum(np.concatenate(lengths))
    shape = len(indptr) - 1, width
    X = sparse().csr_matrix(
        (_mapped(paths[0], np.float64), _mapped(paths[1], np.int32), indptr), shape=shape, copy=False
    )
    X.has_canonical_format = True  # indices ascend strictly along every line
    return Data(_smaller(X, folder), np.concatenate(y), zero_based=True)


def _mapped(path: Path, dtype: Any) -> NDArray[Any]:
    if path.stat().st_size == 0:  # no file of nothing can be mapped
        return np.empty(0, dtype)
    return np.memmap(path, dtype, "r")


def _smaller(X: Any, folder: Path) -> Any:
    """Return the rows dense where that takes no more room on the disk; their zeros are then written out."""
    n, width = X.shape
    if n * width * X.data.itemsize > X.data.nbytes + X.indices.nbytes or n * width == 0:
        return X
    path = folder / "rows"
    with path.open("wb") as file:
        for part in windows(X):
            write(file, X[part].toarray(), _WHAT)
    for name in ("values", "columns"):
        (folder / name).unlink()
    return np.memmap(path, X.dtype, "r", shape=X.shape)
