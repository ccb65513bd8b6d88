"""A fitted estimator under the private names that scikit-learn's wrapper of LIBSVM uses.

Exporters and libraries for graphs read them. LIBSVM's two-class machine is positive for the first class, ours and
the public attributes of both for the second: there the signs differ.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hinge.arrays import Vector


class LibsvmNames:
    """Adds ``_dual_coef_``, ``_intercept_``, ``_n_support``, ``_sparse``, ``_probA`` and ``_probB``."""

    dual_coef_: Any
    intercept_: Vector
    n_support_: NDArray[np.int32]
    support_vectors_: Any

    @property
    def _is_two_class(self) -> bool:
        return len(getattr(self, "classes_", ())) == 2

    @property
    def _dual_coef_(self) -> Any:
        return -self.dual_coef_ if self._is_two_class else self.dual_coef_

    @property
    def _intercept_(self) -> Vector:
        return 0.0 - self.intercept_ if self._is_two_class else self.intercept_

    @property
    def _n_support(self) -> NDArray[np.int32]:
        counts = self.n_support_
        return counts if hasattr(self, "classes_") else np.array([counts[0], 0], dtype=np.int32)

    @property
    def _sparse(self) -> bool:
        return bool(sp.issparse(self.support_vectors_))

    @property
    def _probA(self) -> Vector:  # noqa: N802
        return getattr(self, "probA_", np.empty(0))

    @property
    def _probB(self) -> Vector:  # noqa: N802
        return getattr(self, "probB_", np.empty(0))
