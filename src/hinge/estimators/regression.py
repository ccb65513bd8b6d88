"""`SVR` and `NuSVR`: support vector regression."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions

from hinge.arrays import Vector
from hinge.dual.formulations import epsilon_svr, nu_svr
from hinge.estimators.compressing import Compressible
from hinge.estimators.documentation import documented
from hinge.estimators.parameters import parametrised
from hinge.estimators.updates import Updatable
from hinge.training.course import Fit
from hinge.training.data import TrainingData
from hinge.training.formulation import Regression


class KernelRegressor(RegressorMixin, Updatable, Compressible):  # type: ignore[misc]
    """Base of the regressors."""

    _calibration: ClassVar[str] = "noise_scale_"

    # How many columns y had; None where it was a vector.
    _n_targets: int | None = None

    def _check_targets(self, y: Any) -> Any:
        return np.asarray(y, dtype=np.float64) if np.ndim(y) == 2 else super()._check_targets(y)

    def _publish(self, fit: Fit) -> None:
        super()._publish(fit)
        self._publish_single(fit)
        y = fit.formulation.data.y
        self._n_targets = None if y.ndim == 1 else y.shape[1]
        if self._n_targets is not None:
            self.n_iter_ = self._ledger.column("iterations").astype(np.int32)

    def predict(self, X: Any) -> Vector:
        """Return the predicted number of each sample.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The samples; for ``kernel="precomputed"`` their kernel values with all training samples.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_targets)
            Predictions; as many columns as y had.
        """
        return self._answers(self._decide(X))

    def _answers(self, decisions: Vector) -> Vector:
        return np.asarray(decisions[:, 0]) if self._n_targets is None else decisions

    def _shown_interval(self, lower: Vector, upper: Vector) -> tuple[Vector, Vector]:
        return self._answers(lower), self._answers(upper)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


@documented
@parametrised
class SVR(KernelRegressor):
    """ε-support vector regression.

    Finds a function that stays within ε of the targets, as flat as possible, at a price C for every unit by
    which a target lies outside that tube.

    Parameters
    ----------
    %(kernel)s
    %(tol)s
    C : float, default=1.0
        Price of a deviation beyond ε.
    epsilon : float, default=0.1
        Half the width of the tube in which deviations are free, in units of y.
    %(shrinking)s
    %(verbose)s
    probability : bool, default=False
        Estimate the scale of the noise, ``noise_scale_``, by five-fold cross-validation.
    fit_intercept : bool, default=True
        False for a machine without intercept.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
        What a deviation costs: its size beyond ε, or the square of that. The squared loss has no upper bound on
        coefficients; it needs a finite C, and ``solver`` ``"block"`` or ``"auto"``.
    %(ours)s

    Attributes
    ----------
    %(support)s
    %(targets)s
    noise_scale_ : float, or array of shape (n_targets,)
        Scale σ of the noise if it is Laplace-distributed, density exp(−|z| / σ) / 2σ: the mean absolute deviation
        of held-out samples, gross outliers left out. Only with ``probability=True``.
    %(outcome)s

    See Also
    --------
    NuSVR : The same with a bound on the share of samples outside the tube; it finds ε.

    Notes
    -----
    Several targets, y of shape (n_samples, n_targets), have a machine each, the one that a fit to that column
    alone finds. They share kernel values where the matrix fits the cache, and ``reports_`` has a report for each.

    Examples
    --------
    >>> import numpy as np
    >>> from hinge import SVR
    >>> x = np.linspace(0.0, 1.0, 21)
    >>> machine = SVR(kernel="linear", C=100.0, epsilon=0.05).fit(x[:, None], 2 * x + 1)
    >>> machine.predict([[0.5]]).round(6), machine.coef_.round(6)
    (array([2.]), array([[1.9]]))
    """

    C: float = 1.0
    epsilon: float = 0.1
    fit_intercept: bool = True
    loss: str = "epsilon_insensitive"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Updatable._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right")],
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
        "fit_intercept": ["boolean"],
        "loss": [StrOptions({"epsilon_insensitive", "squared_epsilon_insensitive"})],
    }

    def _formulation(self, data: TrainingData) -> Regression:
        C, epsilon, has_intercept = float(self.C), float(self.epsilon), bool(self.fit_intercept)
        is_squared = self.loss == "squared_epsilon_insensitive"
        return Regression(data, lambda y, weights: epsilon_svr(y, C, epsilon, weights, has_intercept, is_squared))


@documented
@parametrised
class NuSVR(KernelRegressor):
    """ν-support vector regression.

    As `SVR`, but ν takes the place of ε: at most a share ν of the samples lies outside the tube, and the tube is
    as narrow as that allows.

    Parameters
    ----------
    nu : float, default=0.5
        In (0, 1]: bounds the share of samples outside the tube from above and that of support vectors from
        below.
    C : float, default=1.0
        Price of a deviation beyond the tube.
    %(kernel)s
    %(shrinking)s
    %(tol)s
    %(verbose)s
    probability : bool, default=False
        Estimate the scale of the noise, ``noise_scale_``, by five-fold cross-validation.
    %(ours)s

    Attributes
    ----------
    %(support)s
    %(targets)s
    epsilon_ : float, or array of shape (n_targets,)
        Half the width of the tube that ν led to.
    noise_scale_ : float, or array of shape (n_targets,)
        Scale of Laplace-distributed noise; only with ``probability=True``. See `SVR`.
    %(outcome)s

    See Also
    --------
    SVR : The same with ε given.

    Examples
    --------
    >>> import numpy as np
    >>> from hinge import NuSVR
    >>> x = np.linspace(0.0, 1.0, 21)
    >>> machine = NuSVR(kernel="linear", C=100.0, nu=0.3).fit(x[:, None], 2 * x + 1)
    >>> machine.predict([[0.5]]).round(4)
    array([2.])
    """

    nu: float = 0.5
    C: float = 1.0

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Updatable._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }

    def _formulation(self, data: TrainingData) -> Regression:
        C, nu = float(self.C), float(self.nu)
        return Regression(data, lambda y, weights: nu_svr(y, C, nu, weights))

    def _publish(self, fit: Fit) -> None:
        super()._publish(fit)
        widths = [float(np.subtract(*machine.solution.multipliers)) / 2 for machine in fit.machines]
        self.epsilon_ = widths[0] if self._n_targets is None else np.array(widths)
