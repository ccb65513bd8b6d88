"""Write LIBSVM / svmlight text that reads back as exactly the same numbers."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hinge.arrays import is_sparse, sparse
from hinge.io.atomic import atomic_write

# Values made into text at once.
_BATCH = 2**16

_COMPRESSIONS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def write_data(
    target: str | os.PathLike[str] | BinaryIO,
    X: Any,
    y: ArrayLike,
    *,
    qid: ArrayLike | None = None,
    zero_based: bool = False,
    digits: int | None = None,
) -> None:
    """Write samples and labels in LIBSVM / svmlight format.

    A file that is there already is replaced only when the new one is complete.

    Parameters
    ----------
    target : path, "-" or binary file
        Where to write; ``"-"`` is standard output. The endings ``.gz``, ``.bz2`` and ``.xz`` compress.
    X : array or sparse matrix of shape (n_samples, n_features)
        The samples. Of a sparse matrix all stored entries are written, of an array those that are not zero.
    y : array of shape (n_samples,)
        The labels or targets.
    qid : array of shape (n_samples,) or None
        Query ids; rows with a negative one get none.
    zero_based : bool
        Whether the first column is called 0 instead of 1.
    digits : int or None
        Significant digits; None writes the shortest text that reads back as the same number.

    Examples
    --------
    >>> write_data("-", [[0.5, 0, 1 / 3], [0, 4, 0]], [1, -1])
    1 1:0.5 3:0.3333333333333333
    -1 2:4
    """
    matrix = _as_csr(X)
    labels = _checked("y", np.asarray(y), len(matrix.indptr) - 1)
    queries = None if qid is None else _checked("qid", np.asarray(qid), len(labels))
    if queries is not None and queries.dtype.kind not in "iu":
        raise ValueError(f"qid must be integers, got {queries.dtype}")
    if digits is not None and not 1 <= digits <= 17:
        raise ValueError(f"digits must lie between 1 and 17, got {digits}")
    with _open_target(target) as file:
        for lines in _lines(matrix, labels, queries, 0 if zero_based else 1, digits):
            file.write(lines)


def _as_csr(X: Any) -> Any:
    """Return the samples as CSR with ascending indices, one entry per place, numbers all finite."""
    matrix = sparse().csr_matrix(X if is_sparse(X) else np.atleast_2d(np.asarray(X)))
    if matrix.dtype.kind not in "biuf":
        raise ValueError(f"X must hold real numbers, got {matrix.dtype}")
    if matrix.dtype.itemsize > 8:
        matrix = matrix.astype(np.float64)
    if not np.isfinite(matrix.data).all():
        raise ValueError("X holds NaN or infinity, which no data file may")
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def _checked(name: str, array: NDArray[Any], length: int) -> NDArray[Any]:
    if array.shape != (length,):
        raise ValueError(f"{name} must hold one number for each of {length} samples, got shape {array.shape}")
    if array.dtype.kind not in "biuf" or not np.isfinite(array).all():
        raise ValueError(f"{name} must hold finite numbers")
    return array.astype(np.float64) if array.dtype.itemsize > 8 else array


@contextmanager
def _open_target(target: str | os.PathLike[str] | BinaryIO) -> Iterator[Any]:
    if target == "-":
        yield sys.stdout.buffer if hasattr(sys.stdout, "buffer") else _Encoded(sys.stdout)
        sys.stdout.flush()
    elif isinstance(target, str | os.PathLike):
        compress = _COMPRESSIONS.get(os.path.splitext(os.fspath(target))[1])
        with atomic_write(target, "wb") as file:
            if compress is None:
                yield file
            else:
                with compress(file, "wb") as packed:
                    yield packed
    else:
        yield target


class _Encoded:
    """Standard output that was replaced by a text stream, as notebooks and tests do."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, data: bytes) -> None:
        self._stream.write(data.decode("ascii"))


def _lines(X: Any, y: NDArray[Any], qid: NDArray[Any] | None, first: int, digits: int | None) -> Iterator[bytes]:
    """Make the text of as many rows as hold about `_BATCH` values, time after time."""
    start = 0
    while start < len(y):
        stop = int(np.searchsorted(X.indptr, X.indptr[start] + _BATCH, side="right")) - 1
        stop = min(max(stop, start + 1), start + _BATCH, len(y))
        ends = (X.indptr[start : stop + 1] - X.indptr[start]).tolist()
        here = slice(X.indptr[start], X.indptr[stop])
        columns = (X.indices[here].astype(np.int64) + first).tolist()
        values = _texts(X.data[here], digits)
        features = [f"{column}:{value}" for column, value in zip(columns, values, strict=True)]
        heads = _texts(y[start:stop], digits)
        if qid is not None:
            heads = [
                head if query < 0 else f"{head} qid:{query}"
                for head, query in zip(heads, qid[start:stop].tolist(), strict=True)
            ]
        rows = [" ".join([head, *features[ends[i] : ends[i + 1]]]) for i, head in enumerate(heads)]
        yield ("\n".join(rows) + "\n").encode("ascii")
        start = stop


def _texts(values: NDArray[Any], digits: int | None) -> list[str]:
    """Write numbers. Most data repeats a few values over and over, so each different one is written once."""
    if values.dtype.kind == "f" and values.dtype.itemsize in (4, 8):
        bits = np.ascontiguousarray(values).view(f"i{values.dtype.itemsize}")  # tells -0.0 from 0.0
        different, which = np.unique(bits, return_inverse=True)
        if 4 * len(different) < len(values):
            texts = np.array(_number_texts(different.view(values.dtype), digits), object)
            return texts[which].tolist()  # type: ignore[no-any-return]
    return _number_texts(values, digits)


def _number_texts(values: NDArray[Any], digits: int | None) -> list[str]:
    """Write numbers, integers without a point."""
    if values.dtype.kind in "biu":
        return [str(int(value)) for value in values.tolist()]
    if digits is not None:
        return [f"{value:.{digits}g}" for value in values.tolist()]
    texts = _short_texts(values) if values.dtype.itemsize < 8 else map(repr, values.tolist())
    return [text.removesuffix(".0") for text in texts]


def _short_texts(values: NDArray[Any]) -> list[str]:
    """Write numbers of fewer bits than float64 with as few digits as their own type needs.

    Readers round to float64 first; the rare text that would then round to a neighbour gets all its digits.
    """
    texts: list[str] = values.astype("U32").tolist()
    back = np.array(texts, np.float64).astype(values.dtype)
    for k in np.flatnonzero(back != values):
        texts[k] = repr(float(values[k]))
    return texts
