"""Sparse matrices as callers pass them: structure checked before compiled code follows it, one form for all.

SciPy does not look at the index arrays of a CSR matrix that it is given, nor do compiled loops: an index out of
range would read or write somewhere in memory. One pass over the indices tells.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import Index
from hinge.data.pages import windows
from hinge.runtime.jit import compiled

# Columns are numbered anew from this many on, where entries are fewer than columns: an array with an entry for
# each column would take more memory and time than the data.
_MANY_COLUMNS = 1 << 20

_LARGEST_INDEX = np.iinfo(np.int32).max


def canonical(X: Any) -> Any:
    """Return a sparse matrix as CSR: every row with each feature once at most, in ascending order, without zeros.

    The caller's matrix stays as it is; where it has this form already, it is returned itself.

    Raises
    ------
    ValueError
        An index is out of range, or the index arrays do not belong together.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> twice = sp.csr_array(([1.0, 2.0, 0.0], [1, 1, 0], [0, 3]), shape=(1, 4))
    >>> rows = canonical(twice)
    >>> rows.indices.tolist(), rows.data.tolist()
    ([1], [3.0])
    """
    if np.iscomplexobj(X):
        raise ValueError("Complex data not supported: X has complex values; pass its real part if it is meant")
    is_tidy = check_structure(X)
    matrix = X if X.format == "csr" else X.tocsr()
    if matrix.dtype not in (np.float32, np.float64):
        matrix = matrix.astype(np.float64)
    if X.format != "csr":
        is_tidy = check_structure(matrix)
    length = int(matrix.indptr[-1])
    stored = matrix.data[:length]
    n_ones = sum(np.count_nonzero(stored[part]) for part in windows(stored))
    if is_tidy and len(matrix.data) == length and n_ones == length:
        return matrix
    copy = type(matrix)((stored.copy(), matrix.indices[:length].copy(), matrix.indptr.copy()), shape=matrix.shape)
    copy.has_canonical_format = False  # whatever the copy inherited: duplicates are looked for
    copy.sum_duplicates()
    copy.eliminate_zeros()
    return copy


def compact(*matrices: Any) -> tuple[Index | None, tuple[Any, ...]]:
    """Number the columns that occur in some of the CSR matrices anew, where there are many that do not.

    Returns
    -------
    columns : array of int, or None
        The old numbers of the columns that occur, ascending; None where all of them were kept.
    matrices : tuple
        The matrices with the new numbers.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> wide = sp.csr_array(([1.0, 2.0], [7, 2_000_000_000], [0, 1, 2]), shape=(2, 2_000_000_001))
    >>> columns, (narrow,) = compact(wide)
    >>> columns, narrow.toarray()
    (array([         7, 2000000000]), array([[1., 0.],
           [0., 2.]]))
    """
    width = int(matrices[0].shape[1])
    n_entries = sum(int(matrix.indptr[-1]) for matrix in matrices)
    if width <= max(_MANY_COLUMNS, n_entries) and width <= _LARGEST_INDEX:
        return None, matrices
    columns, numbers = np.unique(np.concatenate([matrix.indices for matrix in matrices]), return_inverse=True)
    narrow, start = [], 0
    for matrix in matrices:
        part = numbers[start : start + len(matrix.indices)].astype(np.int32)
        narrow.append(type(matrix)((matrix.data, part, matrix.indptr), shape=(matrix.shape[0], len(columns))))
        start += len(matrix.indices)
    return columns.astype(np.int64), tuple(narrow)


def check_structure(X: Any) -> bool:
    """Check the index arrays of a sparse matrix; return whether every line lists its entries once, in order."""
    if X.format == "coo":
        _check_coordinates(X)
        return False
    if X.format not in ("csr", "csc", "bsr"):
        return False  # these cannot be out of order
    n_lines, width = X.shape if X.format != "csc" else X.shape[::-1]
    if X.format == "bsr":
        n_lines, width = n_lines // X.blocksize[0], width // X.blocksize[1]
    indptr, indices = np.asarray(X.indptr).astype(np.int64, copy=False), np.asarray(X.indices)
    n_entries = min(len(indices), len(X.data))
    if len(indptr) != n_lines + 1 or indptr[0] != 0:
        raise ValueError(
            f"X is not a valid {X.format.upper()} matrix: indptr has {len(indptr)} entries and begins with "
            f"{indptr[0] if len(indptr) else 'none'}; it must have {n_lines + 1} and begin with 0"
        )
    broken, is_tidy, is_outside = -1, True, False
    for part in windows(X) if X.format == "csr" else [slice(0, n_lines)]:
        found, *rest = _survey(indptr[part.start : part.stop + 1], indices, n_entries, width)
        is_tidy, is_outside = is_tidy and rest[0], is_outside or rest[1]
        if found >= 0:
            broken = part.start + found
            break
    if broken >= 0:
        raise ValueError(
            f"X is not a valid {X.format.upper()} matrix: indptr[{broken + 1}] = {indptr[broken + 1]} does not "
            f"lie between indptr[{broken}] = {indptr[broken]} and the number of entries, {n_entries}"
        )
    if is_outside:
        stored = indices[: indptr[-1]]
        place = int(np.argmax((stored < 0) | (stored >= width)))
        line = int(np.searchsorted(indptr, place, side="right")) - 1
        what, whose = ("row", "column") if X.format == "csc" else ("column", "row")
        raise ValueError(
            f"X is not a valid {X.format.upper()} matrix: {whose} {line} has an entry in {what} {stored[place]}, "
            f"but {what}s go from 0 to {width - 1}"
        )
    return bool(is_tidy)


def _check_coordinates(X: Any) -> None:
    for axis, (numbers, length) in enumerate(zip(X.coords, X.shape, strict=True)):
        if len(numbers) != len(X.data) or (len(numbers) and not 0 <= numbers.min() <= numbers.max() < length):
            raise ValueError(
                f"X is not a valid COO matrix: its {('row', 'column')[axis]} numbers must be one for each entry "
                f"and go from 0 to {length - 1}"
            )


@compiled
def _survey(
    indptr: NDArray[np.int64], indices: NDArray[np.integer], n_entries: int, width: int
) -> tuple[int, bool, bool]:
    """Find the first line whose end is impossible, or -1; whether entries are in order; whether one is outside."""
    in_order, outside = True, False
    for i in range(indptr.shape[0] - 1):
        start, stop = indptr[i], indptr[i + 1]
        if stop < start or stop > n_entries:
            return i, False, False
        line = indices[start:stop]
        for p in range(line.shape[0]):
            outside |= (line[p] < 0) | (line[p] >= width)
        later = line[1:]
        for p in range(later.shape[0]):
            in_order &= later[p] > line[p]
    return -1, in_order, outside
