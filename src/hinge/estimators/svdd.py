"""`SVDD`: novelty detection by a sphere."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import Vector
from hinge.estimators.documentation import documented
from hinge.estimators.inputs import thread_count
from hinge.estimators.novelty import NoveltyDetector
from hinge.estimators.parameters import parametrised
from hinge.estimators.updates import Updatable
from hinge.kernel.kernels import Kernel
from hinge.model import Model, self_values
from hinge.training.course import Fit
from hinge.training.data import TrainingData
from hinge.training.formulation import Sphere


@documented
@parametrised
class SVDD(NoveltyDetector, Updatable):
    """Support vector data description: the smallest sphere around most of the data.

    Finds the centre a and the radius R for which R² + (1 / νn) Σ ξ is least, where ξ is what the squared distance
    of a sample from a exceeds R² by, in the kernel's space (Tax & Duin 2004). For kernels whose k(x, x) is alike
    for all x, such as ``"rbf"``, it is the machine of `OneClassSVM`; with others it does not depend on where the
    origin of that space lies.

    Parameters
    ----------
    %(kernel)s
    %(tol)s
    nu : float, default=0.5
        In (0, 1]: bounds the share of samples outside the sphere from above and that of support vectors from
        below. The price of a sample outside is C = 1 / νn; at ν < 1 / n the sphere holds all samples.
    %(shrinking)s
    %(verbose)s
    probability : bool, default=False
        Compute density marks, which give `predict_proba`.
    %(ours)s
    %(stop)s

    Attributes
    ----------
    radius_ : float
        The radius R.
    %(support)s
    n_support_ : int32 array of shape (1,)
        Number of support vectors.
    dual_coef_ : array or sparse matrix of shape (1, n_SV)
        The centre: a = Σ coefficient · φ(support vector). They add up to 1.
    intercept_ : array of shape (1,)
        R² − ‖a‖².
    offset_ : array of shape (1,)
        −R²: `decision_function` is `score_samples` minus this.
    coef_ : array or sparse matrix of shape (1, n_features)
        The centre's features; only for the linear kernel.
    n_iter_ : int
        Steps that the solver took.
    density_marks_ : array of shape (11,)
        Decision values that cut the outliers and the others into five parts each; only with
        ``probability=True``.
    %(outcome)s

    See Also
    --------
    OneClassSVM : A plane between most of the data and the origin.

    Notes
    -----
    Of new samples k(x, x) has to be known. Of a precomputed kernel that is so where all training samples have the
    same; otherwise pass ``diagonal=`` to `decision_function`, `predict` and `distance`.

    Examples
    --------
    >>> import numpy as np
    >>> from hinge import SVDD
    >>> X = np.array([[3.0, 1.0], [5.0, 1.0], [4.0, 0.5], [4.0, 1.5]])
    >>> machine = SVDD(kernel="linear", nu=0.1).fit(X)
    >>> machine.radius_, machine.coef_
    (1.0, array([[4., 1.]]))
    >>> machine.distance([[4.0, 4.0]]), machine.predict([[4.0, 4.0], [4.5, 1.0]])
    (array([3.]), array([-1,  1]))
    """

    # k(x, x) of every sample of a precomputed kernel, where they are all alike.
    _self_value: float | None = None

    def _formulation(self, data: TrainingData) -> Sphere:
        if data.diagonal is not None:
            return Sphere(data, float(self.nu), data.diagonal)
        return self._formulation_by(data, self._kernel_of(data))

    def _formulation_by(self, data: TrainingData, kernel: Kernel) -> Sphere:
        return Sphere(data, float(self.nu), data.self_values(kernel))

    def _publish(self, fit: Fit) -> None:
        super()._publish(fit)
        assert isinstance(fit.formulation, Sphere)
        lengths, kernel = fit.formulation.diagonal, fit.model.kernel
        is_known = kernel.is_precomputed and lengths.min() == lengths.max()
        self._self_value = float(lengths[0]) if is_known else None
        solution = fit.machines[0].solution
        # βᵀKβ, from the objective ½ βᵀKβ − vᵀβ and βᵀr = vᵀβ − βᵀKβ
        square = -2.0 * (solution.report.objective + float(solution.beta @ solution.residual))
        self._publish_radius(square)

    def _publish_sphere(self, model: Model) -> None:
        """Set the attributes of a machine that comes from a file; its support vectors tell ‖a‖²."""
        self._model = model
        values = model.decide(model.support_vectors) - model.intercepts
        values += self_values(model.support_vectors, model.kernel)[:, None]
        self._publish_radius(float(model.coefficients[0] @ values[:, 0]) / 4)

    def _publish_radius(self, square: float) -> None:
        """Set what follows from ‖a‖²."""
        self.radius_ = float(np.sqrt(max(float(self._model.intercepts[0]) + square, 0.0)))
        self.offset_ = np.array([-(self.radius_**2)])
        self.dual_coef_ = self._as_input(self._model.coefficients / 2)

    @property
    def coef_(self) -> Any:
        """The features of the centre; only for ``kernel="linear"``."""
        return super().coef_ / 2

    def _decide(self, X: Any, signs: bool = False, diagonal: Any = None) -> Vector:
        """Check X and return R² minus the squared distance of each sample from the centre."""
        if self._known is not None and X is self._known[0]:
            return self._known[1].copy()
        self._check_fitted()
        X = self._queries(X)
        if diagonal is None and self._self_value is not None:
            diagonal = np.full(X.shape[0], self._self_value)
        return self._model.decide(X, threads=thread_count(self.n_jobs), diagonal=diagonal)

    def decision_function(self, X: Any, diagonal: Any = None) -> Vector:
        """Return R² minus the squared distance of each sample from the centre.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The samples; for ``kernel="precomputed"`` their kernel values with all training samples.
        diagonal : array-like of shape (n_samples,), optional
            k(x, x) of every sample, for ``kernel="precomputed"``; not needed where all training samples have the
            same.

        Returns
        -------
        array of shape (n_samples,)
            Positive for inliers. Samples on the sphere, as free support vectors are, get exactly 0.
        """
        return self._settled(self._decide(X, diagonal=diagonal))

    def distance(self, X: Any, diagonal: Any = None) -> Vector:
        """Return the distance of each sample from the centre, in the kernel's space.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The samples; for ``kernel="precomputed"`` their kernel values with all training samples.
        diagonal : array-like of shape (n_samples,), optional
            k(x, x) of every sample, as for `decision_function`.

        Returns
        -------
        array of shape (n_samples,)
            Distances; ``radius_`` is that of the sphere.

        Examples
        --------
        >>> from hinge import SVDD
        >>> SVDD(kernel="linear", nu=0.1).fit([[0.0], [2.0]]).distance([[5.0]])
        array([4.])
        """
        return np.sqrt(np.maximum(self.radius_**2 - self.decision_function(X, diagonal), 0.0))

    def predict(self, X: Any, diagonal: Any = None) -> NDArray[np.int64]:
        """Return +1 for inliers and -1 for outliers.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The samples; for ``kernel="precomputed"`` their kernel values with all training samples.
        diagonal : array-like of shape (n_samples,), optional
            k(x, x) of every sample, as for `decision_function`.

        Returns
        -------
        array of shape (n_samples,)
            +1 where the decision value is not negative.
        """
        return self._answers(self._decide(X, diagonal=diagonal))

    @property
    def _size(self) -> float:
        """What the rounding of decisions is relative to: R² and ‖a‖² are sums of kernel values."""
        return float(np.abs(self.intercept_).max() + 2 * self.radius_**2)
