"""The one place that decides how data is stored, for training and for prediction, and checks it on the way.

Samples whose features are all 0 or 1 become packed bits; those that are mostly zero, rows of a CSR matrix; all
others, rows of an array. Which it is depends on the data and on what the kernel asks of it, not on the form in
which it came. Kernel matrices, and the containers that kernel functions look into, are kept as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from hinge.arrays import Floats
from hinge.data import products
from hinge.data.bits import packed
from hinge.data.cancellation import cancels_in_double, cancels_in_single, comparison_of
from hinge.data.collection import Collection
from hinge.data.dense import DenseSamples
from hinge.data.given import CalledKernel, GivenGram, RowKernel, symmetric
from hinge.data.layout import LAYOUT
from hinge.data.samples import Demands, Samples
from hinge.data.sparse import SparseSamples
from hinge.data.structure import canonical, compact

# From this share of non-zeros on, a dense matrix product is faster than a walk over the non-zeros: sooner where
# features are few. From the smaller share on, samples far from zero are seen from their centre, zeros and all.
_DENSE_SHARE, DENSE_SHARE_OF_FEW = 0.25, 0.1


def store(X: Any, kernel: Demands, budget: int | None = None) -> Samples:
    """Store the rows of X so that ``kernel`` compares them fast, and as exactly as it can.

    Parameters
    ----------
    X : array, CSR matrix or Collection
        The samples.
    kernel : Demands
        The kernel.
    budget : int, optional
        Bytes: a kernel function is called once for all values while they are no more than that.

    Raises
    ------
    ValueError
        X is not finite, is not defined for this kernel, or its squares overflow.

    Examples
    --------
    >>> from hinge import Kernel
    >>> store(np.eye(3), Kernel("rbf")).storage
    'bits'
    >>> store(np.array([[0.5, 1.0], [2.0, 0.0]]), Kernel("rbf")).storage
    'dense'
    """
    if kernel.is_precomputed:
        return _given_gram(X)
    if callable(kernel.name):
        return _called(Collection.of(X), RowKernel.of(kernel.name), budget)
    if sp.issparse(X):
        _, (rows,) = compact(sp.csr_array(canonical(X)))
    else:
        rows = _as_floats(X, "X")
        if rows.ndim != 2:
            raise ValueError(f"X must be a matrix with one row per sample, got {rows.ndim} dimension(s)")
        rows = np.ascontiguousarray(rows)
    return _stored([rows], kernel)[0]


def store_alike(vectors: Any, queries: Any, kernel: Demands) -> tuple[Samples, Samples]:
    """Store support vectors and new samples in the same way, so that one can be compared with the other.

    Either are the rows of an array or of a CSR matrix in the form of `canonical`.

    Raises
    ------
    ValueError
        New samples are not finite, not defined for this kernel, or so large that their squares overflow.
    """
    if sp.issparse(vectors) or sp.issparse(queries):
        _, (vectors, queries) = compact(sp.csr_array(vectors), sp.csr_array(queries))
    else:
        vectors, queries = np.ascontiguousarray(vectors), np.ascontiguousarray(queries)
    first, second = _stored([vectors, queries], kernel)
    return first, second


def _stored(parts: Sequence[Any], kernel: Demands) -> list[Samples]:
    """Store arrays or CSR matrices alike, as the first of them had better be, and check the last."""
    _refuse_nonfinite(parts[-1].data if sp.issparse(parts[-1]) else parts[-1], "X")
    stored = _chosen(parts, kernel)
    samples = stored[-1]
    kernel.check(samples)
    if kernel.squares:
        _refuse_overflow(samples)
    if kernel.by_differences is None or comparison_of(stored[0], kernel) == kernel.statistic:
        return stored
    return [part.as_given() for part in stored]  # differences need no centre; moving to it would round


def _chosen(parts: Sequence[Any], kernel: Demands) -> list[Samples]:
    first = parts[0]
    if kernel.is_linear:  # a weight vector needs the features themselves
        return [SparseSamples.of(part) if sp.issparse(part) else DenseSamples(part) for part in parts]
    bits = packed(first)
    if bits is not None:
        others = [packed(part) for part in parts[1:]]
        if all(other is not None for other in others):
            return [bits, *(other for other in others if other is not None)]
    if all(_is_mostly_zero(part) for part in parts):
        sparse = [SparseSamples.of(part) for part in parts]
        is_very_sparse = sp.issparse(first) and first.nnz <= DENSE_SHARE_OF_FEW * first.shape[0] * first.shape[1]
        if is_very_sparse or not cancels_in_single(sparse[0], kernel):
            sparse[-1].is_far_from_zero = cancels_in_double(sparse[0], kernel)
            return list(sparse)
    rows = [part.toarray() if sp.issparse(part) else part for part in parts]
    dense = DenseSamples(rows[0])
    dense = dense if kernel.by_differences is None else dense.centered()
    return [dense, *(DenseSamples(part, dense.center) for part in rows[1:])]


def _is_mostly_zero(part: Any) -> bool:
    """Whether rows are better stored without their zeros."""
    n, n_features = part.shape
    share = _DENSE_SHARE if n_features >= LAYOUT.many_features else DENSE_SHARE_OF_FEW
    if sp.issparse(part):
        return bool(part.nnz <= share * n * n_features)
    if n_features < LAYOUT.many_features:
        return False
    return products.count_nonzeros(part, np.zeros(n + 1, np.int64)) <= share * n * n_features


def _called(samples: Collection, function: RowKernel, budget: int | None) -> Samples:
    """Store samples of a kernel function: by all their values where they fit."""
    if budget is not None and 8 * samples.n_contained**2 > budget:
        return CalledKernel(samples, function)
    called = GivenGram(function.matrix(samples), storage=CalledKernel.storage)
    called.n_computed = samples.n_contained**2
    return called


def _given_gram(matrix: Any) -> GivenGram:
    """Check a precomputed kernel matrix: square, finite; of an asymmetric one the symmetric part is taken."""
    if sp.issparse(matrix):
        raise TypeError("a precomputed kernel matrix must be dense: pass K.toarray()")
    matrix = _as_floats(matrix, "the precomputed kernel matrix")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"a precomputed kernel matrix must be square, with a row and a column per training sample; got shape "
            f"{matrix.shape}. To train on features, choose another kernel"
        )
    _refuse_nonfinite(matrix, "the precomputed kernel matrix")
    return GivenGram(symmetric(matrix))


def _as_floats(values: Any, name: str) -> Floats:
    values = np.asarray(values)
    if values.dtype.kind == "c":
        raise ValueError(
            f"Complex data not supported: {name} has complex values; pass its real part if it is meant"
        )
    return values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)


def _refuse_nonfinite(values: Floats, name: str) -> None:
    # A finite sum proves that every value is finite, in one pass without a temporary array.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):
            return
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        where = f" (first at position {tuple(int(k) for k in bad[0])})"
        raise ValueError(f"{name} contains NaN or infinity{where}; remove or impute these values first")


def _refuse_overflow(samples: Samples) -> None:
    norms = samples.squared_norms(np.float64)
    if not np.isfinite(norms).all():
        row = int(np.argmin(np.isfinite(norms)))
        raise ValueError(
            f"X has values so large that their squares overflow, in row {row} for one; scale the features, for "
            "instance with StandardScaler"
        )
