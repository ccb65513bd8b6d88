"""What the machines of novelty detection share: a region of the data, and what is inside."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from hinge.arrays import Vector
from hinge.estimators.base import KernelMachine, has_probability
from hinge.estimators.intervals import CertifiedLabels
from hinge.estimators.parameters import parametrised
from hinge.training.course import Fit
from hinge.training.probability import normality

#: A decision value this small beside the sizes that it is a sum of is their rounding.
ROUNDING = 1e-12


@parametrised
class NoveltyDetector(OutlierMixin, CertifiedLabels, KernelMachine):  # type: ignore[misc]
    """Base of the machines of novelty detection."""

    nu: float = 0.5
    stop: Any = "tolerance"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelMachine._parameter_constraints,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
        "stop": [StrOptions({"tolerance", "labels"}), "array-like", "sparse matrix"],
    }

    _needs_targets: ClassVar[bool] = False
    _calibration: ClassVar[str] = "density_marks_"

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the region of the samples X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features) or (n_samples, n_samples)
            The samples; for ``kernel="precomputed"`` their kernel matrix.
        y : ignored
            Accepted so that pipelines can pass it.
        sample_weight : array-like of shape (n_samples,), optional
            How often each sample counts: weight k is the same as k repetitions, weight 0 the same as leaving
            the sample out.

        Returns
        -------
        self
            The fitted estimator.
        """
        return self._fit(X, None, sample_weight)

    def _publish(self, fit: Fit) -> None:
        super()._publish(fit)
        self._publish_single(fit)

    def score_samples(self, X: Any) -> Vector:
        """Return the raw score of each sample: its decision value plus ``offset_``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        array of shape (n_samples,)
            Scores; the larger, the more normal.
        """
        return self.decision_function(X) + self.offset_

    def decision_function(self, X: Any) -> Vector:
        """Return how far inside the boundary each sample is, in the kernel's units.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The samples; for ``kernel="precomputed"`` their kernel values with all training samples.

        Returns
        -------
        array of shape (n_samples,)
            Positive for inliers. Samples on the boundary, as free support vectors are, get exactly 0.
        """
        return self._settled(self._decide(X))

    @property
    def _size(self) -> float:
        """What the rounding of decisions is relative to."""
        return float(np.abs(self.offset_).max())

    def _settled(self, decisions: Vector) -> Vector:
        """Return decisions in which samples on the boundary have exactly 0."""
        decisions = decisions[:, 0]
        return np.where(np.abs(decisions) <= ROUNDING * self._size, 0.0, decisions)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return +1 for inliers and -1 for outliers.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The samples; for ``kernel="precomputed"`` their kernel values with all training samples.

        Returns
        -------
        array of shape (n_samples,)
            +1 where the decision value is not negative.
        """
        return self._answers(self._decide(X))

    def _answers(self, decisions: Vector) -> NDArray[np.int64]:
        return np.where(self._settled(decisions) >= 0, 1, -1)

    def _is_certain(self, decisions: Vector, lower: Vector, upper: Vector) -> NDArray[np.bool_]:
        # The exact machine settles decisions on the boundary too, by its own offset.
        edge = ROUNDING * (self._size + np.abs(upper[:, 0] - lower[:, 0]))
        return np.where(self._answers(decisions) > 0, lower[:, 0] >= 0, upper[:, 0] < -edge)

    @available_if(has_probability)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Vector:
        """Return the probabilities of outlier and inlier; only with ``probability=True``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The samples; for ``kernel="precomputed"`` their kernel values with all training samples.

        Returns
        -------
        array of shape (n_samples, 2)
            Columns for -1 and +1. Inliers have at least one half in the second.
        """
        decisions = self.decision_function(X)
        self._check_calibrated()
        normal = normality(decisions, self.density_marks_)
        return np.column_stack([1 - normal, normal])
