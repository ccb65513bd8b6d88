"""Intake: from the caller's data to a storage, checked on the way."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from hinge import products
from hinge.given import GivenGram
from hinge.samples import READ_ROWS, BitSamples, DenseSamples, Floats, Samples, SparseSamples

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
        matrix = as_csr(X)
        _refuse_nonfinite(matrix.data, "X")
        packed = _packed_sparse(matrix) if pack else None
        if packed is None and pack and matrix.nnz > _dense_from(matrix.shape, skip_zeros):
            return DenseSamples(matrix.toarray())
        return packed or SparseSamples.of(matrix)
    rows = np.asarray(X)
    if rows.dtype not in (np.float32, np.float64):
        rows = rows.astype(np.float64)
    if rows.ndim != 2:
        raise ValueError(f"X must be a matrix with one row per sample, got {rows.ndim} dimension(s)")
    rows = np.ascontiguousarray(rows)
    _refuse_nonfinite(rows, "X")
    packed = _packed_dense(rows) if pack else None
    if packed is None and pack and skip_zeros and _is_mostly_zero(rows):
        return SparseSamples.of(rows)
    return packed or DenseSamples(rows)


def as_csr(X: Any) -> Any:
    """Return a matrix as a CSR array of floats, every row with each feature once at most."""
    matrix = sp.csr_array(X)
    if matrix.dtype not in (np.float32, np.float64):
        matrix = matrix.astype(np.float64)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()  # the caller's matrix stays as it is
        matrix.sum_duplicates()
    return matrix


def given_gram(matrix: Any) -> GivenGram:
    """Check a precomputed kernel matrix: square, finite, symmetric."""
    if sp.issparse(matrix):
        raise TypeError("a precomputed kernel matrix must be dense: pass K.toarray()")
    matrix = np.asarray(matrix)
    if matrix.dtype not in (np.float32, np.float64):
        matrix = matrix.astype(np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"a precomputed kernel matrix must be square, with a row and a column per training sample; got shape "
            f"{matrix.shape}. To train on features, choose another kernel"
        )
    _refuse_nonfinite(matrix, "the precomputed kernel matrix")
    asymmetry = _largest_asymmetry(matrix)
    scale = float(np.abs(matrix).max(initial=0.0))
    allowed = 1e-4 if matrix.dtype == np.float32 else 1e-8
    if asymmetry > allowed * scale:
        raise ValueError(
            f"a precomputed kernel matrix must be symmetric; K and its transpose differ by up to {asymmetry:.3g}. "
            "Pass (K + K.T) / 2 if the difference is only rounding"
        )
    return GivenGram(matrix)


def _largest_asymmetry(matrix: Floats, tile: int = 512) -> float:
    largest = 0.0
    n = matrix.shape[0]
    for i in range(0, n, tile):
        for j in range(i, n, tile):
            difference = matrix[i : i + tile, j : j + tile] - matrix[j : j + tile, i : i + tile].T
            largest = max(largest, float(np.abs(difference).max()))
    return largest


def _refuse_nonfinite(values: Floats, name: str) -> None:
    # A finite sum proves that every value is finite, in one pass without a temporary array.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):
            return
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        where = f" (first at position {tuple(int(k) for k in bad[0])})"
        raise ValueError(f"{name} contains NaN or infinity{where}; remove or impute these values first")


def _dense_from(shape: tuple[int, int], skip_zeros: bool) -> float:
    """Number of non-zeros from which on dense storage is the better one."""
    share = _DENSE_SHARE if skip_zeros and shape[1] >= _MANY_FEATURES else _DENSE_SHARE_OF_FEW
    return share * shape[0] * shape[1]


def _is_mostly_zero(rows: Floats) -> bool:
    """Whether dense data is better stored without its zeros."""
    if rows.shape[1] < _MANY_FEATURES:
        return False
    return products.count_nonzeros(rows, np.zeros(len(rows) + 1, np.int64)) <= _dense_from(rows.shape, True)


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
        packed = np.packbits(ones, axis=1, bitorder="little")
        padded[start : start + READ_ROWS, : packed.shape[1]] = packed
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
