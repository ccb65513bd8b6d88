"""`OneClassSVM`: novelty detection."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin, _fit_context
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from hinge.arrays import Vector
from hinge.estimators.base import KernelMachine
from hinge.estimators.documentation import documented
from hinge.estimators.intervals import CertifiedLabels
from hinge.training.course import Fit
from hinge.training.data import TrainingData
from hinge.training.formulation import OneClass
from hinge.training.probability import normality

#: A decision value this small beside the offset is the rounding of its sum.
ROUNDING = 1e-12


@documented
class OneClassSVM(OutlierMixin, CertifiedLabels, KernelMachine):  # type: ignore[misc]
    """Novelty detection: the region where most of the data lies.

    Finds a function that is positive on a region with at least a share 1 − ν of the samples, as far from the
    origin of the kernel's space as possible.

    Parameters
    ----------
    %(kernel)s
    %(tol)s
    nu : float, default=0.5
        In (0, 1]: bounds the share of outliers among the training samples from above and that of support vectors
        from below.
    %(shrinking)s
    %(verbose)s
    probability : bool, default=False
        Compute density marks, which give `predict_proba`.
    %(ours)s
    %(stop)s

    Attributes
    ----------
    %(support)s
    n_support_ : int32 array of shape (1,)
        Number of support vectors.
    dual_coef_ : array or sparse matrix of shape (1, n_SV)
        Coefficients of the support vectors.
    intercept_ : array of shape (1,)
        The intercept.
    offset_ : array of shape (1,)
        ``-intercept_``: `decision_function` is `score_samples` minus this.
    coef_ : array or sparse matrix of shape (1, n_features)
        Weights of the features; only for the linear kernel.
    n_iter_ : int
        Steps that the solver took.
    density_marks_ : array of shape (11,)
        Decision values that cut the outliers and the others into five parts each; only with
        ``probability=True``.
    %(outcome)s

    Examples
    --------
    >>> import numpy as np
    >>> from hinge import OneClassSVM
    >>> X = np.array([[0.0], [0.44], [0.45], [0.46], [1.0]])
    >>> machine = OneClassSVM(gamma="auto").fit(X)
    >>> machine.predict(X)
    array([-1,  1,  1,  1, -1])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelMachine._parameter_constraints,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
        "stop": [StrOptions({"tolerance", "labels"}), "array-like", "sparse matrix"],
    }

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        nu: float = 0.5,
        shrinking: bool = True,
        cache_size: str | float = "auto",
        verbose: bool | int = False,
        max_iter: int = -1,
        probability: bool = False,
        solver: str = "auto",
        precision: str = "auto",
        n_jobs: int | None = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        callback: Any = None,
        trace: Any = False,
        gap_tol: float | None = None,
        rule: str = "second_order",
        stop: Any = "tolerance",
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.nu = nu
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.probability = probability
        self.solver = solver
        self.precision = precision
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.callback = callback
        self.trace = trace
        self.gap_tol = gap_tol
        self.rule = rule
        self.stop = stop

    _calibration: ClassVar[str] = "density_marks_"

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
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

    def _formulation(self, data: TrainingData) -> OneClass:
        return OneClass(data, float(self.nu))

    def _publish(self, fit: Fit) -> None:
        super()._publish(fit)
        self._publish_single(fit)
        self.offset_ = 0.0 - fit.model.intercepts

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
        """Return the signed distance of each sample from the boundary, in the kernel's units.

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

    def _settled(self, decisions: Vector) -> Vector:
        """Return decisions in which samples on the boundary have exactly 0."""
        decisions = decisions[:, 0]
        return np.where(np.abs(decisions) <= ROUNDING * np.abs(self.offset_), 0.0, decisions)

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
        edge = ROUNDING * (np.abs(self.offset_) + np.abs(upper[:, 0] - lower[:, 0]))
        return np.where(self._answers(decisions) > 0, lower[:, 0] >= 0, upper[:, 0] < -edge)

    def _has_probability(self) -> bool:
        if not self._calibrates:
            raise AttributeError("predict_proba is not available when probability=False")
        return True

    @available_if(_has_probability)  # type: ignore[untyped-decorator]
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
        if not hasattr(self, "density_marks_"):
            raise NotFittedError(
                "predict_proba is not available when fitted with probability=False, or when the fit was stopped "
                "before its end; fit this OneClassSVM again"
            )
        normal = normality(decisions, self.density_marks_)
        return np.column_stack([1 - normal, normal])
