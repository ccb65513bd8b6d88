"""A kernel matrix as a matrix of features: K = A Aᵀ, for methods that work on a weight vector."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import Floats

# What is left of a sample, as a share of its own k(x, x), when it counts as a combination of those before it.
_DEPENDENT = 1e-15

# Largest error of a kernel value, beside √(k(x, x) k(y, y)), at which the features stand for the matrix.
_FAITHFUL = 1e-9


def features_of(matrix: Floats) -> NDArray[np.float64] | None:
    """Return A with A Aᵀ = K, as many columns as K has rank; None where K is not positive semi-definite.

    A Cholesky factor with pivoting, of the matrix scaled to a diagonal of ones: its errors are then relative to
    each sample's own size, and its columns fall from coarse to fine, so that what tells samples apart is not lost
    beside what they share.
    """
    diagonal = matrix.diagonal().astype(np.float64)
    if not (diagonal >= 0).all():
        return None
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    scaled = matrix / scale / scale[:, None]
    # LAPACK reads columns: what it calls the lower half is the transpose's.
    from scipy.linalg.lapack import dpstrf  # takes long, and most fits end without it

    factor, order, rank, _ = dpstrf(scaled.T, lower=1, tol=_DEPENDENT * np.sqrt(len(scaled)))
    features = np.empty((len(scaled), rank))
    features[order - 1] = np.tril(factor[:, :rank])
    if not np.abs(features @ features.T - scaled).max(initial=0.0) <= _FAITHFUL:
        return None
    features *= scale[:, None]
    return features
