"""The types of arrays, by what they hold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Kernel values and features: float32 or float64.
Floats = NDArray[np.floating]

# Coefficients, residuals, bounds: what answers rest on is always double.
Vector = NDArray[np.float64]

# Numbers of samples.
Index = NDArray[np.int64]

# Rows of features as compiled loops take them: where rows begin, columns and values; a dense array has no columns.
FeatureRows = tuple[NDArray[np.int64], NDArray[np.int32], Floats]
