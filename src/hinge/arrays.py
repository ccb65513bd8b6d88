"""The types of arrays, by what they hold."""

from __future__ import annotations

from typing import NamedTuple

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
