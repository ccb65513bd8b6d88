"""The one place that decides how data is stored, for training and for prediction, and checks it on the way.

Samples whose features are all 0 or 1 become packed bits; those that are mostly zero, rows of a CSR matrix; all
others, rows of an array; those of a large file that is mapped to memory stay there. Which it is depends on the
data and on what the kernel asks of it, not on the form in which it came. Kernel matrices, and the containers that
kernel functions look into, are kept as they are.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from hinge.arrays import Floats, is_sparse, sparse
from hinge.data import products
from hinge.data.bits import packed, worth_packing
from hinge.data.cancellation import cancels_in_double, cancels_in_single, comparison_of
from hinge.data.collection import Collection
from hinge.data.dense import DenseSamples
from hinge.data.given import CalledKernel, GivenGram, RowKernel, symmetric
from hinge.data.layout import LAYOUT
from hinge.data.mapped import SHARES, MappedSamples, stays_in_file
from hinge.data.pages import arrays_of, is_mapped, reduced, windows
from hinge.data.samples import Demands, Samples
from hinge.data.sharded import Form, ShardedRows, ShardedSamples
from hinge.data.sparse import SparseSamples
from hinge.data.structure import canonical, compact
from hinge.runtime.threads import lazy

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
        Bytes: a kernel function is called once for all values while they are no more than that, and data in a
        mapped file that is large beside it stays there.

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
    rows: Any
    if isinstance(X, ShardedRows):
        samples = _ShardedForms(X, kernel).alone()
        _check(samples, kernel)
        return samples
    if callable(kernel.name):
        return _called(Collection.of(X), RowKernel.of(kernel.name), budget)
    if is_sparse(X):
        _, (rows,) = compact(sparse().csr_array(canonical(X)))
    else:
        rows = _as_floats(X, "X")
        if rows.ndim != 2:
            raise ValueError(f"X must be a matrix with one row per sample, got {rows.ndim} dimension(s)")
        rows = np.ascontiguousarray(rows)
    _refuse_nonfinite(rows.data if is_sparse(rows) else rows, "X")
    samples = _forms_of(rows, kernel, budget).alone()
    if budget is not None and not samples.reserved_bytes and is_mapped(rows):
        samples.reserved_bytes = int(SHARES.copies * sum(array.nbytes for array in arrays_of(rows)))
    _check(samples, kernel)
    return samples


class Reference:
    """Samples that many others will be compared with, such as support vectors: what they are stored as is kept.

    Parameters
    ----------
    rows : array or CSR matrix
        The samples.
    kernel : Demands
        The kernel.

    Examples
    --------
    >>> from hinge import Kernel
    >>> vectors = Reference(np.eye(3), Kernel("rbf"))
    >>> [stored.storage for stored in vectors.beside(np.ones((2, 3)))]
    ['bits', 'bits']
    >>> [stored.storage for stored in vectors.beside(np.full((2, 3), 0.5))]
    ['dense', 'dense']
    """

    def __init__(self, rows: Any, kernel: Demands) -> None:
        self._rows = canonical(rows) if is_sparse(rows) else rows
        self._kernel = kernel

    def beside(self, queries: Any) -> tuple[Samples, Samples]:
        """Store these samples and ``queries``, an array or a canonical CSR matrix, in the same way.

        Raises
        ------
        ValueError
            New samples are not finite, not defined for this kernel, or so large that their squares overflow.
        """
        kernel = self._kernel
        if is_sparse(self._rows) or is_sparse(queries):
            columns, (rows, queries) = compact(self._as_csr, sparse().csr_array(queries))
            forms = self._sparse_forms if columns is None else _Forms(rows, kernel)
            values = queries.data
        else:
            forms = self._dense_forms
            values = queries = np.ascontiguousarray(queries)
        _refuse_nonfinite(values, "X")
        stored = forms.beside(queries)
        _check(stored[1], kernel)
        return stored

    @lazy
    def _as_csr(self) -> Any:
        return sparse().csr_array(self._rows)

    @lazy
    def _sparse_forms(self) -> _Forms:
        return _Forms(self._as_csr, self._kernel)

    @lazy
    def _dense_forms(self) -> _Forms:
        return _Forms(np.ascontiguousarray(self._rows), self._kernel)


class _Forms:
    """The rows of an array or of a CSR matrix in every form that they may be stored in; each is made when used."""

    def __init__(self, rows: Any, kernel: Demands) -> None:
        self._rows = rows
        self._kernel = kernel

    def alone(self) -> Samples:
        """Return the form that is best for these rows."""
        return self._bits or self._sparse or self._dense

    def beside(self, others: Any) -> tuple[Samples, Samples]:
        """Return the best form that other rows can have too, and these in the same."""
        if self._bits is not None and (bits := packed(others)) is not None:
            return self._bits, bits
        if self._sparse is not None and _is_mostly_zero(others):
            return self._sparse, SparseSamples.of(others)
        self._dense.keeps_double = True
        return self._dense, DenseSamples(_as_array(others), self._dense.center)

    @lazy
    def _bits(self) -> Samples | None:
        # A weight vector needs the features themselves.
        return None if self._kernel.is_linear else self._as_bits()

    @lazy
    def _sparse(self) -> Any:
        kernel = self._kernel
        if kernel.is_linear:
            return self._as_sparse(False) if self._is_sparse else None
        most = _most_nonzeros(self._rows.shape[1], self._is_sparse)
        if most < 0 or self._share > most:
            return None
        sparse = self._as_sparse(False)
        is_very_sparse = self._is_sparse and self._share <= DENSE_SHARE_OF_FEW
        if not is_very_sparse and cancels_in_single(sparse, kernel):
            return None
        return self._as_sparse(True) if cancels_in_double(sparse, kernel) else sparse

    @lazy
    def _dense(self) -> Any:
        kernel, dense = self._kernel, self._as_dense()
        if kernel.by_differences is None:
            return dense
        centered = dense.centered()
        # Differences need no centre; moving to it would round.
        return centered if comparison_of(centered, kernel) == kernel.statistic else dense

    @property
    def _is_sparse(self) -> bool:
        return is_sparse(self._rows)

    @property
    def _share(self) -> float:
        return _share_of_nonzeros(self._rows)

    def _as_bits(self) -> Samples | None:
        return packed(self._rows)

    def _as_sparse(self, is_far_from_zero: bool) -> Any:
        sparse = SparseSamples.of(self._rows)
        sparse.is_far_from_zero = is_far_from_zero
        return sparse

    def _as_dense(self) -> Any:
        return DenseSamples(_as_array(self._rows))


class _MappedForms(_Forms):
    """The same of rows that stay in their file."""

    def __init__(self, rows: Any, kernel: Demands, budget: int) -> None:
        super().__init__(rows, kernel)
        self._budget = budget

    def _as_sparse(self, is_far_from_zero: bool) -> Any:
        sparse = MappedSamples(self._rows, "sparse", self._budget)
        sparse.is_far_from_zero = is_far_from_zero
        return sparse

    def _as_dense(self) -> Any:
        return MappedSamples(self._rows, "dense", self._budget)


def _forms_of(rows: Any, kernel: Demands, budget: int | None) -> _Forms:
    if budget is not None and stays_in_file(rows, budget):
        return _MappedForms(rows, kernel, budget)
    return _Forms(rows, kernel)


class _ShardedForms(_Forms):
    """The same of rows in shards, by what these say of theirs."""

    @lazy
    def _facts(self) -> list[Any]:
        return self._rows.contents("facts")

    @property
    def _is_sparse(self) -> bool:
        return bool(self._rows.shards.is_sparse)

    @property
    def _share(self) -> float:
        return sum(facts.n_nonzeros for facts in self._facts) / max(self._rows.shape[0] * self._rows.shape[1], 1)

    def _as_bits(self) -> Samples | None:
        n_features = self._rows.shape[1]
        is_worth = n_features > 0 and worth_packing(n_features, self._share * n_features)
        return self._in("bits") if is_worth and all(facts.is_binary for facts in self._facts) else None

    def _as_sparse(self, is_far_from_zero: bool) -> Any:
        return self._in("sparse", is_far_from_zero)

    def _as_dense(self) -> Any:
        return self._in("dense")

    def _in(self, kind: str, is_far_from_zero: bool = False) -> ShardedSamples:
        return ShardedSamples(self._rows, Form(kind, None, is_far_from_zero))


def _check(samples: Samples, kernel: Demands) -> None:
    kernel.check(samples)
    if kernel.squares:
        _refuse_overflow(samples)


def _as_array(rows: Any) -> Floats:
    return rows.toarray() if is_sparse(rows) else rows


def _is_mostly_zero(part: Any) -> bool:
    """Whether rows are better stored without their zeros."""
    most = _most_nonzeros(part.shape[1], is_sparse(part))
    return most > 0 and _share_of_nonzeros(part) <= most


def _most_nonzeros(n_features: int, is_sparse: bool) -> float:
    """Share of non-zeros up to which rows are better stored without their zeros; below zero where they are not."""
    if n_features >= LAYOUT.many_features:
        return _DENSE_SHARE
    return DENSE_SHARE_OF_FEW if is_sparse else -1.0


def _share_of_nonzeros(part: Any) -> float:
    n_entries = max(part.shape[0] * part.shape[1], 1)
    if is_sparse(part):
        return float(part.nnz / n_entries)
    return reduced(part, _count_nonzeros, int.__add__) / n_entries


def _count_nonzeros(rows: Floats) -> int:
    return int(products.count_nonzeros(rows, np.zeros(len(rows) + 1, np.int64)))


def _called(samples: Collection, function: RowKernel, budget: int | None) -> Samples:
    """Store samples of a kernel function: by all their values where they fit."""
    if budget is not None and 8 * samples.n_contained**2 > budget:
        return CalledKernel(samples, function)
    called = GivenGram(function.matrix(samples), storage=CalledKernel.storage)
    called.n_computed = samples.n_contained**2
    return called


def _given_gram(matrix: Any) -> GivenGram:
    """Check a precomputed kernel matrix: square, finite; of an asymmetric one the symmetric part is taken."""
    if is_sparse(matrix):
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
        if isfinite(reduced(values, lambda part: part.sum(dtype=np.float64), np.add)):
            return
    for part in windows(values):
        bad = np.argwhere(~np.isfinite(values[part]))
        if not len(bad):
            continue
        bad[0, 0] += part.start
        where = f" (first at position {tuple(int(k) for k in bad[0])})"
        raise ValueError(f"{name} contains NaN or infinity{where}; remove or impute these values first")


def _refuse_overflow(samples: Samples) -> None:
    if not isfinite(samples.largest_norm):
        norms = samples.squared_norms(np.float64)
        row = int(np.argmin(np.isfinite(norms)))
        raise ValueError(
            f"X has values so large that their squares overflow, in row {row} for one; scale the features, for "
            "instance with StandardScaler"
        )
