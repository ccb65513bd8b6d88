"""What machines make of kernel values: Σ coefficient · value for each of them.

A support vector of one class in k takes part in k − 1 of k(k − 1)/2 machines. From a few classes on, most
coefficients are zero, and walking those that are not is faster than any product of matrices.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import Floats, is_sparse, sparse
from hinge.data.layout import LAYOUT
from hinge.runtime.jit import compiled_exactly
from hinge.runtime.prices import (
    MULTIPLY_ADDS_PER_KERNEL_FUNCTION,
    MULTIPLY_ADDS_PER_SPARSE_ONE,
    SECONDS_PER_KERNEL_FUNCTION,
)
from hinge.runtime.threads import lazy

# Where a smaller share of the coefficients is zero, a product of matrices is faster.
_SPARSE_SHARE = 0.25

# Rows whose sums are added up together, so that each coefficient is read once for all of them.
_LANES = 8


class Combination:
    """The coefficients of all machines, ready to be multiplied with kernel values.

    Parameters
    ----------
    coefficients : array or CSR matrix of shape (n_machines, n_support)
        One row a machine.

    Examples
    --------
    >>> sums = np.zeros((1, 2))
    >>> Combination(np.array([[1.0, 2.0], [3.0, 4.0]])).add(np.array([[1.0, 10.0]]), 0, sums)
    >>> sums
    array([[21., 43.]])
    """

    def __init__(self, coefficients: Any) -> None:
        self._coefficients = coefficients
        self._by_dtype: dict[Any, Floats] = {}

    @lazy
    def _sparse(self) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.float64]] | None:
        """Where the coefficients of each support vector begin, whose they are, and what they are."""
        given = self._coefficients
        n_values = given.nnz if is_sparse(given) else np.count_nonzero(given)
        if not is_sparse(given) and n_values > _SPARSE_SHARE * given.size:
            return None
        columns = sparse().csc_array(given)
        return columns.indptr.astype(np.int64), columns.indices.astype(np.uint32), columns.data

    def seconds(self, n_rows: int) -> float:
        """Guess how long one thread takes for this many rows of kernel values."""
        each = float(self._coefficients.size)
        if self._sparse is not None:
            each = MULTIPLY_ADDS_PER_SPARSE_ONE * len(self._sparse[2])
        return SECONDS_PER_KERNEL_FUNCTION / MULTIPLY_ADDS_PER_KERNEL_FUNCTION * each * n_rows

    def add(self, tile: Floats, start: int, sums: NDArray[np.float64]) -> None:
        """Add to ``sums`` what rows of kernel values with the support vectors from ``start`` on contribute.

        In single precision no more values are added up than `precision.ErrorInSingle` counts on.
        """
        if self._sparse is not None:
            indptr, machines, values = self._sparse
            _add_sparse(tile, indptr[start:], machines, values, sums)
            return
        coefficients = self._in(tile.dtype)[:, start : start + tile.shape[1]]
        width = LAYOUT.flat_tile[0] if tile.dtype == np.float32 else tile.shape[1]
        for first in range(0, tile.shape[1], width):
            strip = slice(first, first + width)
            sums += tile[:, strip] @ coefficients[:, strip].T

    def _in(self, dtype: Any) -> Floats:
        if dtype not in self._by_dtype:
            self._by_dtype[dtype] = self._coefficients.astype(dtype, copy=False)
        return self._by_dtype[dtype]


@compiled_exactly
def _add_sparse(tile: Any, indptr: Any, machines: Any, values: Any, sums: Any) -> None:
    """Add ``tile[q, s] · coefficient`` to ``sums[q, machine]`` for all coefficients of all support vectors.

    Every sum grows in the order of the support vectors, whatever rows are beside it.
    """
    n_rows, n_machines = sums.shape
    strip = np.zeros((n_machines, _LANES))
    factors = np.zeros(_LANES)
    for top in range(0, n_rows, _LANES):
        filled = min(_LANES, n_rows - top)
        if filled == 1:
            row, alone = tile[top], sums[top]
            for s in range(row.shape[0]):
                factor = np.float64(row[s])
                for p in range(indptr[s], indptr[s + 1]):
                    alone[machines[p]] += factor * values[p]
            continue
        for m in range(n_machines):
            for k in range(_LANES):
                strip[m, k] = sums[top + k, m] if k < filled else 0.0
        for s in range(tile.shape[1]):
            for k in range(_LANES):
                factors[k] = np.float64(tile[top + k, s]) if k < filled else 0.0
            for p in range(indptr[s], indptr[s + 1]):
                m, value = machines[p], values[p]
                for k in range(_LANES):
                    strip[m, k] += factors[k] * value
        for m in range(n_machines):
            for k in range(filled):
                sums[top + k, m] = strip[m, k]
