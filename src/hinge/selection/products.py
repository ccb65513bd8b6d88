"""Compiled loops over a kernel matrix."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hinge.jit import compiled
from hinge.samples import Floats, Index


@compiled
def weighted_sums(
    matrix: Floats, rows: Index, support: Index, coefficients: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return ``matrix[rows][:, support] @ coefficients`` without a copy of the matrix."""
    sums = np.empty(rows.shape[0])
    for k in range(rows.shape[0]):
        row = matrix[rows[k]]
        total = 0.0
        for s in range(support.shape[0]):
            total += coefficients[s] * row[support[s]]
        sums[k] = total
    return sums
