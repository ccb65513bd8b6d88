"""LIBSVM text larger than memory: read once, into arrays in files that are mapped to memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hinge.data.pages import windows, write
from hinge.io.budget import Budget
from hinge.io.svmlight.errors import LineError, malformed
from hinge.io.svmlight.read import Data, Piece, parsed_pieces, too_long
from hinge.io.svmlight.source import LineTooLongError, Source, open_source

_WHAT = "its samples"


def spool_data(source: Source, folder: Path, *, threads: int | None = None, max_errors: int = 10) -> Data:
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
    max_errors : int
        How many malformed lines the error describes.

    Raises
    ------
    DataFileError
        The file is malformed.
    OSError
        The disk is full.
    """
    y, lengths, width = [np.empty(0)], [np.zeros(1, np.int64)], 0
    paths = folder / "values", folder / "columns"
    with open_source(source) as (file, name), paths[0].open("wb") as values, paths[1].open("wb") as columns:
        for piece in _whole(file, name, threads, max_errors):
            y.append(piece.y)
            lengths.append(np.diff(piece.ends, prepend=0))
            width = max(width, piece.top + 1)
            write(values, piece.values, _WHAT)
            write(columns, piece.columns, _WHAT)
    indptr = np.cumsum(np.concatenate(lengths))
    shape = len(indptr) - 1, width
    X = sp.csr_matrix(
        (_mapped(paths[0], np.float64), _mapped(paths[1], np.int32), indptr), shape=shape, copy=False
    )
    X.has_canonical_format = True  # indices ascend strictly along every line
    return Data(_smaller(X, folder), np.concatenate(y), zero_based=True)


def _whole(file: BinaryIO, name: str, threads: int | None, max_errors: int) -> Iterator[Piece]:
    """Yield the pieces of a file, or raise the error that lists its malformed lines."""
    errors: list[LineError] = []
    n_lines = n_errors = 0
    try:
        for piece in parsed_pieces(file, Budget(name), zero_based=True, threads=threads, max_errors=max_errors):
            errors += [replace(error, line=error.line + n_lines) for error in piece.errors]
            n_errors, n_lines = n_errors + piece.n_errors, n_lines + piece.n_lines
            del errors[max_errors:]
            if not n_errors:
                yield piece
    except LineTooLongError:
        errors.append(too_long(n_lines))
        n_errors += 1
    if n_errors:
        raise malformed(name, errors, n_errors)


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
