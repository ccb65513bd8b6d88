"""The types of arrays, by what they hold; and sparse matrices, which most processes never see."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# Kernel values and features: float32 or float64.
Floats = NDArray[np.floating]

# Coefficients, residuals, bounds: what answers rest on is always double.
Vector = NDArray[np.float64]

# Numbers of samples.
Index = NDArray[np.int64]


class FeatureRows(NamedTuple):
    """Rows of features for compiled loops: those of a CSR matrix, or of ``values`` if that has two axes."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: Floats


def sparse() -> Any:
    """Return SciPy's module of sparse matrices, whose import takes as long as the training of a small file.

    Examples
    --------
    >>> sparse().csr_array([[0.0, 2.0]]).nnz
    1
    """
    import scipy.sparse

    return scipy.sparse


def is_sparse(X: Any) -> bool:
    """Whether X is a sparse matrix of SciPy's; while nobody has imported these there is none.

    Examples
    --------
    >>> is_sparse(np.eye(2)), is_sparse(sparse().eye_array(2))
    (False, True)
    """
    asks = getattr(sys.modules.get("scipy.sparse"), "issparse", None)  # not there yet while a thread imports it
    return asks is not None and bool(asks(X))
