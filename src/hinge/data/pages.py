"""Arrays that live in a file: which ones do, and how they are gone through without filling the memory.

The system keeps every page of a mapped file that a process has touched as long as it has room, and counts it as
memory of that process. Whoever goes through such an array lets its pages go on the way (`madvise`); they are read
again when somebody asks for them.
"""

from __future__ import annotations

import errno
import mmap
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from hinge.arrays import Index, is_sparse, sparse
from hinge.data.layout import LAYOUT

_LET_GO = getattr(mmap, "MADV_DONTNEED", None)


def mapping_of(array: Any) -> mmap.mmap | None:
    """Return the map of a file that an array's values live in; None for those in memory.

    Nor does it count where the process has its own copy of what it changed (mode "c" of `numpy.memmap`): pages
    that were let go would lose that.

    Examples
    --------
    >>> mapping_of(np.zeros(3)) is None
    True
    """
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap) and array.mode == "c":
            return None
        array = array.base
    return array if isinstance(array, mmap.mmap) else None


def arrays_of(X: Any) -> tuple[Any, ...]:
    """Return the arrays with the values of samples: one, or values and indices of a CSR matrix."""
    return (X.data, X.indices) if is_sparse(X) and X.format == "csr" else (X,)


def is_mapped(X: Any) -> bool:
    """Whether the values of an array, or of a CSR matrix, live in a file."""
    if type(X) is np.ndarray and X.base is None:
        return False
    return any(mapping_of(array) is not None for array in arrays_of(X))


class Pages:
    """The pages of one array or CSR matrix that are in memory: counted, and let go when they are too many.

    Parameters
    ----------
    X : array or CSR matrix
        The rows; what is in memory stays there.
    """

    def __init__(self, X: Any) -> None:
        self._maps = {id(found): found for array in arrays_of(X) if (found := mapping_of(array)) is not None}
        self._touched = 0
        self._lock = threading.Lock()

    def touch(self, n_bytes: float) -> None:
        """Count bytes that were read one after the other."""
        with self._lock:
            self._touched += int(n_bytes) + LAYOUT.page_bytes
            is_full = self._touched > LAYOUT.resident_bytes
        if is_full:
            self.let_go()

    def let_go(self) -> None:
        """Let all pages go; who reads them meanwhile reads them again from the file."""
        with self._lock:
            self._touched = 0
        if _LET_GO is not None:
            for found in self._maps.values():
                found.madvise(_LET_GO)


def bytes_per_row(X: Any) -> float:
    """Return the bytes that a row takes, on average."""
    n = max(X.shape[0], 1)
    return sum(array.nbytes for array in arrays_of(X)) / n


def windows(X: Any) -> Iterator[slice]:
    """Cut the rows of an array or CSR matrix into ranges to look at one after the other.

    What is in memory is one range. Pages of what is mapped are let go behind each.

    Examples
    --------
    >>> list(windows(np.zeros((5, 2))))
    [slice(0, 5, None)]
    """
    n = X.shape[0]
    if not is_mapped(X):
        yield slice(0, n)
        return
    pages, height = Pages(X), rows_at_once(bytes_per_row(X))
    try:
        for start in range(0, n, height):
            yield slice(start, min(start + height, n))
            pages.touch(bytes_per_row(X) * height)
    finally:
        pages.let_go()


def rows_at_once(n_bytes: float) -> int:
    """Return how many rows of this many bytes are looked at together."""
    return max(int(LAYOUT.window_bytes / max(n_bytes, 1.0)), 1)


def gather(X: Any, index: Index, pages: Pages) -> Any:
    """Return a copy of the rows ``index`` of an array or CSR matrix, in memory."""
    first, last = (int(index.min()), int(index.max())) if len(index) else (0, 0)
    if last - first < 2 * len(index):  # read one after the other, those in between too
        rows = X[first : last + 1][index - first]
        pages.touch(bytes_per_row(X) * (last - first + 1))
        return rows
    is_dense, order = isinstance(X, np.ndarray), np.argsort(index, kind="stable")
    ascending = index[order]
    places = ascending * bytes_per_row(X) if is_dense else X.indptr[ascending].astype(np.int64) * X.data.itemsize
    regions = np.concatenate([[0], np.cumsum(np.diff(places // LAYOUT.page_bytes) != 0)])
    ends = np.flatnonzero(np.diff(regions // (LAYOUT.resident_bytes // LAYOUT.page_bytes))) + 1
    parts = [slice(a, b) for a, b in zip([0, *ends.tolist()], [*ends.tolist(), len(index)], strict=True)]
    if not is_dense:
        pieces = []
        for part in parts:
            pieces.append(X[ascending[part]])
            pages.let_go()
        return type(X)(sparse().vstack(pieces, format="csr"))[np.argsort(order)]
    rows = np.empty((len(index), *X.shape[1:]), X.dtype)
    for part in parts:
        rows[order[part]] = X[ascending[part]]
        pages.let_go()
    return rows


def rows_of(X: Any, index: Index, room: int | None = None) -> Any:
    """Return the rows ``index`` of X, which may be mapped; where they take more than ``room`` bytes, so are they.

    They are then in a file without a name, which the system removes with the array.

    Raises
    ------
    OSError
        The disk for temporary files is full.
    """
    if not is_mapped(X):
        return X[index]
    pages = Pages(X)
    if not isinstance(X, np.ndarray) or room is None or bytes_per_row(X) * len(index) <= room:
        return gather(X, index, pages)
    height = rows_at_once(bytes_per_row(X))
    with tempfile.TemporaryFile() as file:
        for start in range(0, len(index), height):
            write(file, gather(X, index[start : start + height], pages), f"{len(index)} support vectors")
        file.flush()
        return np.memmap(file, X.dtype, "r", shape=(len(index), *X.shape[1:]))


def write(file: Any, values: Any, what: str) -> None:
    """Append an array to a temporary file; a full disk is told in words.

    Raises
    ------
    OSError
        There is no room for ``what``.
    """
    try:
        file.write(np.ascontiguousarray(values).data)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        name = file.name if isinstance(file.name, str) else tempfile.gettempdir()
        where = name if os.path.isdir(name) else os.path.dirname(name)
        raise OSError(
            error.errno,
            f"the disk is full while {what} are written there; choose another folder (TMPDIR in the environment, "
            "or --tmp of hinge train)",
            where,
        ) from error


def reduced(X: Any, compute: Callable[[Any], Any], combine: Callable[[Any, Any], Any]) -> Any:
    """Return what ``compute`` finds in the rows of X, range by range, combined from first to last.

    Examples
    --------
    >>> float(reduced(np.array([[1.0], [3.0]]), np.max, max))
    3.0
    """
    if not is_mapped(X):
        return compute(X)
    result = None
    for part in windows(X):
        found = compute(X[part])
        result = found if result is None else combine(result, found)
    return result
