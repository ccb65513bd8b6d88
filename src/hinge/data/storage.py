"""Intake: from the caller's data to a storage, checked on the way."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from hinge.arrays import Floats
from hinge.data import products
from hinge.data.bits import BitSamples
from hinge.data.dense import DenseSamples
from hinge.data.given import GivenGram, symmetric
from hinge.data.samples import READ_ROWS, Samples
from hinge.data.sparse import SparseSamples
from hinge.data.structure import canonical, compact

# 0/1 features are packed when comparing words costs less than walking the non-zeros of a row.
_WORDS_PER_NONZERO = 1.0
_ALWAYS_PACK_WORDS = 8

# From this share of non-zeros on, a dense matrix product is faster than a walk over the non-zeros: sooner where
# features are few.
_DENSE_SHARE, _DENSE_SHARE_OF_FEW = 0.25, 0.1
_MANY_FEATURES = 128


def as_samples(X: Any, pack: bool = True, skip_zeros: bool = True) -> Samples:
    """Choose the storage for a data matrix: packed bits where every value is 0 or 1, else CSR or dense.

    ``pack=False`` keeps dense data dense and CSR data CSR; ``skip_zeros=False`` takes CSR only for the sparsest.

    Examples
    --------
    >>> as_samples(np.eye(3)).storage
    'bits'
    >>> as_samples(np.array([[0.5, 1.0], [2.0, 0.0]])).storage
    'dense'
    """
    if sp.issparse(X):
        _, (matrix,) = compact(as_csr(X))
        refuse_nonfinite(matrix.data, "X")
        bits = packed(matrix) if pack else None
        if bits is None and pack and matrix.nnz > dense_from(matrix.shape, skip_zeros):
            return DenseSamples(matrix.toarray())
        return bits or SparseSamples.of(matrix)
    rows = _as_floats(X, "X")
    if rows.ndim != 2:
        raise ValueError(f"X must be a matrix with one row per sample, got {rows.ndim} dimension(s)")
    rows = np.ascontiguousarray(rows)
    refuse_nonfinite(rows, "X")
    bits = packed(rows) if pack else None
    if bits is None and pack and skip_zeros and is_mostly_zero(rows):
        return SparseSamples.of(rows)
    return bits or DenseSamples(rows)


def as_csr(X: Any) -> Any:
    """Return a matrix as a CSR array of floats in the form of `canonical`."""
    if not sp.issparse(X):
        return sp.csr_array(X)
    return sp.csr_array(canonical(X))


def given_gram(matrix: Any) -> GivenGram:
    """Check a precomputed kernel matrix: square, finite; of an asymmetric one the symmetric part is taken."""
    if sp.issparse(matrix):
        raise TypeError("a precomputed kernel matrix must be dense: pass K.toarray()")
    matrix = _as_floats(matrix, "the precomputed kernel matrix")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"a precomputed kernel matrix must be square, with a row and a column per training sample; got shape "
            f"{matrix.shape}. To train on features, choose another kernel"
        )
    refuse_nonfinite(matrix, "the precomputed kernel matrix")
    return GivenGram(symmetric(matrix))


def _as_floats(values: Any, name: str) -> Floats:
    values = np.asarray(values)
    if values.dtype.kind == "c":
        raise ValueError(
            f"Complex data not supported: {name} has complex values; pass its real part if it is meant"
        )
    return values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)


def refuse_nonfinite(values: Floats, name: str) -> None:
    """Raise ValueError if some value is NaN or infinite."""
    # A finite sum proves that every value is finite, in one pass without a temporary array.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):
            return
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        where = f" (first at position {tuple(int(k) for k in bad[0])})"
        raise ValueError(f"{name} contains NaN or infinity{where}; remove or impute these values first")


def dense_from(shape: tuple[int, int], skip_zeros: bool) -> float:
    """Number of non-zeros from which on dense storage is the better one."""
    share = _DENSE_SHARE if skip_zeros and shape[1] >= _MANY_FEATURES else _DENSE_SHARE_OF_FEW
    return share * shape[0] * shape[1]


def is_mostly_zero(rows: Floats) -> bool:
    """Whether dense data is better stored without its zeros."""
    if rows.shape[1] < _MANY_FEATURES:
        return False
    return products.count_nonzeros(rows, np.zeros(len(rows) + 1, np.int64)) <= dense_from(rows.shape, True)


def packed(rows: Any) -> BitSamples | None:
    """Return the rows of an array or a CSR matrix in packed bits, if all values are 0 or 1 and it is worth it."""
    return _packed_sparse(rows) if sp.issparse(rows) else _packed_dense(rows)


def _worth_packing(n_features: int, nonzeros_per_row: float) -> bool:
    words = -(-n_features // 64)
    return words <= max(_ALWAYS_PACK_WORDS, _WORDS_PER_NONZERO * nonzeros_per_row)


def _packed_dense(rows: Floats) -> BitSamples | None:
    n, n_features = rows.shape
    if n_features == 0 or n == 0:
        return None
    if not np.array_equal(rows[0] == 1, rows[0] != 0):  # of most other data the first row tells
        return None
    n_words = -(-n_features // 64)
    padded = np.zeros((n, n_words * 8), np.uint8)
    n_ones = 0
    for start in range(0, n, READ_ROWS):
        part = rows[start : start + READ_ROWS]
        ones = part == 1
        if not np.array_equal(ones, part != 0):
            return None
        n_ones += int(np.count_nonzero(ones))
        words = np.packbits(ones, axis=1, bitorder="little")
        padded[start : start + READ_ROWS, : words.shape[1]] = words
    if not _worth_packing(n_features, n_ones / n):
        return None
    return BitSamples(np.ascontiguousarray(padded.view("<u8").T.astype(np.uint64, copy=False)), n_features)


def _packed_sparse(matrix: Any) -> BitSamples | None:
    n, n_features = matrix.shape
    if n_features == 0 or n == 0 or not _worth_packing(n_features, matrix.nnz / n):
        return None
    if not np.isin(matrix.data, (0, 1)).all():
        return None
    words = np.zeros((-(-n_features // 64), n), np.uint64)
    indptr, indices = matrix.indptr.astype(np.int64, copy=False), matrix.indices.astype(np.int32, copy=False)
    products.pack_rows(indptr, indices, matrix.data, words)
    return BitSamples(words, n_features)
