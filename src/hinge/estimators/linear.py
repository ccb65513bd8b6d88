"""`LinearSVC` and `LinearSVR`: linear machines by their weights, with scikit-learn's parameters."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import RegressorMixin
from sklearn.linear_model._base import LinearClassifierMixin, LinearModel, SparseCoefMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Hidden, Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from hinge.data.structure import canonical
from hinge.dual.formulations import c_svc, epsilon_svr
from hinge.estimators.documentation import documented
from hinge.estimators.exchange import LinearExchange
from hinge.estimators.fitting import Trainable
from hinge.estimators.inputs import checked_weights, class_weights_of, thread_count
from hinge.estimators.parameters import parametrised
from hinge.estimators.stand_in import StandIn
from hinge.kernel.gram import Gram
from hinge.kernel.kernels import Kernel
from hinge.settings import Settings, Sizes
from hinge.training.course import Course, Fit
from hinge.training.crammer_singer import run_crammer_singer
from hinge.training.data import TrainingData, select
from hinge.training.formulation import Classification, Formulation, Regression
from hinge.training.linear import Threshold, run_linear, with_feature
from hinge.training.trainer import Sharing, Trainer

# No problem is so small that its kernel matrix would be worth computing, not even one for many machines.
_NO_WORKING_SET = Sizes(one_set=1)
_NO_MATRIX = Sharing(most_samples=0)

# Where features are so large that no variables in double precision meet the tolerance, a relative gap of this many
# times the tolerance does: the weights are as good as any.
_NEGLIGIBLE_GAP = 1e-3


@parametrised
class LinearMachine(StandIn, LinearExchange, Trainable):
    """Base of the linear machines."""

    tol: float = 1e-4
    C: float = 1.0
    fit_intercept: bool = True
    intercept_scaling: float = 1.0
    dual: str | bool = "auto"
    verbose: bool | int = 0
    random_state: Any = None
    max_iter: int = 1000
    gap_tol: float | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Trainable._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right")],
        "dual": ["boolean", StrOptions({"auto"})],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [Interval(Real, 0.0, None, closed="right")],
        "random_state": ["random_state"],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "gap_tol": [Interval(Real, 0.0, None, closed="neither"), None],
    }

    _sharing = _NO_MATRIX

    # The loss that is squared, and the one that has no primal method in LIBLINEAR.
    _squared_loss: ClassVar[str]
    _plain_loss: ClassVar[str]

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on the samples X with the targets y.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The samples; float32 data stays float32.
        y : array-like of shape (n_samples,)
            Class labels, or the numbers to predict.
        sample_weight : array-like of shape (n_samples,), optional
            How often each sample counts: weight k is the same as k repetitions, weight 0 the same as leaving
            the sample out.

        Returns
        -------
        self
            The fitted estimator. Ctrl-C raises KeyboardInterrupt and still leaves the best model so far in place.
        """
        return self._fit(X, y, sample_weight)

    @property
    def _threshold(self) -> Threshold:
        return Threshold(float(self.intercept_scaling) if self.fit_intercept else 0.0)

    def _training_data(self, X: Any, y: Any, sample_weight: Any) -> TrainingData:
        self._check_options()
        X = canonical(X) if sp.issparse(X) else X
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], order="C")
        y = self._check_targets(y)
        check_random_state(self.random_state)
        if sample_weight is not None:
            sample_weight = checked_weights(sample_weight, X)
        return with_feature(select(X, y, sample_weight, is_gram=False), self._threshold)

    def _check_options(self) -> None:
        """Refuse what scikit-learn refuses, for the same reason."""
        if self.loss == self._plain_loss and self.dual is False:
            raise ValueError(
                f"Unsupported set of arguments: The combination of penalty='l2' and loss='{self.loss}' is not "
                "supported when dual=False: this loss has no smooth primal problem. Leave dual at its default; "
                "the answer is the same"
            )

    def _kernel_of(self, data: TrainingData) -> Kernel:
        return Kernel("linear")

    def _gram(self, course: Course) -> Gram:
        return Gram(course.formulation.data.X, course.kernel, threads=thread_count(self.n_jobs))

    def _course(self, data: TrainingData, kernel: Kernel) -> Course:
        past = getattr(self, "_past", None) if self.warm_start else None
        most = max(int(self.max_iter), 1) * len(data.places)
        tol, gap_tol = float(self.tol) * self._scale_of(data), None
        negligible = _NEGLIGIBLE_GAP * float(self.tol)
        if self.gap_tol is not None:
            gap_tol = float(self.gap_tol)
        elif self._has_many_free:
            gap_tol = negligible
        settings = Settings(tol=tol, gap_tol=gap_tol, weights_gap=negligible, max_iter=most, sizes=_NO_WORKING_SET)
        return Course(self._formulation(data), kernel, settings, past=past)

    @property
    def _has_many_free(self) -> bool:
        """Whether this many variables are inside their box that their rounding is felt."""
        return bool(self.loss == self._squared_loss)

    def _scale_of(self, data: TrainingData) -> float:
        """Return what a violation is measured by."""
        return 1.0

    def _run(self, course: Course, trainer: Trainer) -> Fit:
        return run_linear(course, trainer, self._threshold)

    def _publish(self, fit: Fit) -> None:
        super()._publish(fit)
        n = len(fit.formulation.data.places)
        # A pass is a step of every sample; Newton's method takes a few steps in all.
        self.n_iter_ = max(1, *(-(-report.iterations // n) for report in self.reports_))
        self.coef_ = fit.model.support_vectors
        self.intercept_: Any = fit.model.intercepts if self.fit_intercept else 0.0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@documented
class LinearSVC(LinearClassifierMixin, SparseCoefMixin, LinearMachine):  # type: ignore[misc]
    """Linear support vector classification, for two classes or many, with scikit-learn's parameters.

    Finds f(x) = w·x + b with ½‖w‖² + C Σ loss as small as possible; the loss of a sample of label y = ±1 is
    max(0, 1 − y f(x)), or its square. It is solved in the weights, so that no kernel value is ever computed, to a
    certified violation and duality gap. Features need not be scaled for the fit to converge.

    Parameters
    ----------
    penalty : {"l2"}, default="l2"
        The norm of w. ``"l1"`` is refused: scikit-learn's own LinearSVC has it.
    loss : {"hinge", "squared_hinge"}, default="squared_hinge"
        What a violated margin costs: its size, or its square.
    dual : "auto" or bool, default="auto"
        Accepted as in scikit-learn. The method is chosen by the data, and the answer is the same.
    tol : float, default=1e-4
        Largest violation of the optimality conditions at which the solver stops, checked in double precision or
        beyond: by so much a sample's margin may be off.
    C : float, default=1.0
        Price of a violated margin: the larger, the closer the fit.
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
        One machine for each class against all others, or all classes in one problem (Crammer & Singer 2001), where
        the loss is the plain hinge between a sample's own class and the best of the others.
    %(threshold)s
    class_weight : dict, "balanced" or None, default=None
        Factor of C for each class; ``"balanced"`` gives all classes the same total.
    %(linear)s

    Attributes
    ----------
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        Weights of the features.
    intercept_ : array of shape (1,) or (n_classes,)
        Intercepts; 0.0 without one.
    classes_ : array of shape (n_classes,)
        The labels.
    class_weight_ : array of shape (n_classes,)
        Factor of C for each class.
    %(linear_outcome)s

    See Also
    --------
    LinearSVR : Regression.
    SVC : Other kernels; its linear kernel has a free intercept and decides many classes by pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from hinge import LinearSVC
    >>> X = np.array([[-1.0, -1.0], [-2.0, -1.0], [1.0, 1.0], [2.0, 1.0]])
    >>> machine = LinearSVC().fit(X, ["left", "left", "right", "right"])
    >>> machine.predict([[-0.8, -1.0], [3.0, 0.5]])
    array(['left', 'right'], dtype='<U5')
    >>> machine.coef_.round(4), machine.intercept_.round(4)
    (array([[0.4444, 0.4444]]), array([0.]))
    >>> str(machine.report_.status), machine.report_.gap < 1e-6
    ('converged', True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearMachine._parameter_constraints,
        "penalty": [StrOptions({"l2"}), Hidden(StrOptions({"l1"}))],
        "loss": [StrOptions({"hinge", "squared_hinge"})],
        "multi_class": [StrOptions({"ovr", "crammer_singer"})],
        "class_weight": [StrOptions({"balanced"}), dict, None],
    }

    _squared_loss, _plain_loss = "squared_hinge", "hinge"

    def __init__(
        self,
        penalty: str = "l2",
        loss: str = "squared_hinge",
        *,
        dual: str | bool = "auto",
        tol: float = 1e-4,
        C: float = 1.0,
        multi_class: str = "ovr",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: Any = None,
        verbose: bool | int = 0,
        random_state: Any = None,
        max_iter: int = 1000,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        callback: Any = None,
        gap_tol: float | None = None,
    ) -> None:
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.tol = tol
        self.C = C
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.callback = callback
        self.gap_tol = gap_tol

    def _check_options(self) -> None:
        if self.penalty == "l1":
            raise ValueError(
                f"Unsupported set of arguments: penalty='l1' (with loss='{self.loss}', dual={self.dual}): a "
                "machine with few weights has no dual problem of the kind that Hinge solves. "
                "sklearn.svm.LinearSVC has it; where hinge.patch() has put this class in its place, call "
                "hinge.unpatch() before it is imported"
            )
        if self.multi_class == "ovr":
            super()._check_options()
        elif self._threshold.is_free:
            raise ValueError("multi_class='crammer_singer' needs a finite intercept_scaling")

    @property
    def _has_many_free(self) -> bool:
        return super()._has_many_free or self.multi_class == "crammer_singer"

    def _check_targets(self, y: Any) -> Any:
        check_classification_targets(y)
        return column_or_1d(y, warn=True)

    def _formulation(self, data: TrainingData) -> Formulation:
        weights, C = class_weights_of(self.class_weight, data), float(self.C)
        is_free, is_squared = self._threshold.is_free, self.loss == self._squared_loss
        return Classification(data, "ovr", weights, lambda y, costs: c_svc(y, C, costs, is_free, is_squared))

    def _run(self, course: Course, trainer: Trainer) -> Fit:
        if self.multi_class == "ovr":
            return super()._run(course, trainer)
        return run_crammer_singer(course, trainer, self._threshold, float(self.C))

    def _publish(self, fit: Fit) -> None:
        super()._publish(fit)
        assert isinstance(fit.formulation, Classification)
        self.classes_ = fit.formulation.labels
        self.class_weight_ = fit.formulation.class_weights

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        return tags


@documented
@parametrised
class LinearSVR(RegressorMixin, LinearMachine, LinearModel):  # type: ignore[misc]
    """Linear support vector regression, with scikit-learn's parameters.

    Finds f(x) = w·x + b with ½‖w‖² + C Σ loss as small as possible; the loss of a sample is what ``|y − f(x)|``
    exceeds ε by, or its square. It is solved in the weights to a certified violation and duality gap.

    Parameters
    ----------
    epsilon : float, default=0.0
        Half-width of the tube in which deviations are free.
    tol : float, default=1e-4
        Largest violation of the optimality conditions at which the solver stops, as a share of the mean ``|y|``.
    C : float, default=1.0
        Price of a deviation beyond ε.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
        What a deviation costs: its size beyond ε, or the square of that.
    %(threshold)s
    dual : "auto" or bool, default="auto"
        Accepted as in scikit-learn. The method is chosen by the data, and the answer is the same.
    %(linear)s

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Weights of the features.
    intercept_ : array of shape (1,)
        The intercept; 0.0 without one.
    %(linear_outcome)s

    See Also
    --------
    LinearSVC : Classification.
    SVR : Other kernels.

    Examples
    --------
    >>> import numpy as np
    >>> from hinge import LinearSVR
    >>> X = np.arange(10.0)[:, None]
    >>> machine = LinearSVR(C=100.0, epsilon=0.5).fit(X, 2 * X[:, 0] + 1)
    >>> machine.predict([[20.0]]).round(1), str(machine.report_.status)
    (array([40.5]), 'converged')
    """

    epsilon: float = 0.0
    loss: str = "epsilon_insensitive"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearMachine._parameter_constraints,
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
        "loss": [StrOptions({"epsilon_insensitive", "squared_epsilon_insensitive"})],
    }

    _squared_loss, _plain_loss = "squared_epsilon_insensitive", "epsilon_insensitive"

    def _scale_of(self, data: TrainingData) -> float:
        size = float(np.average(np.abs(data.y), weights=data.weights))
        return size if size > 0 else 1.0

    def _formulation(self, data: TrainingData) -> Formulation:
        C, epsilon = float(self.C), float(self.epsilon)
        is_free, is_squared = self._threshold.is_free, self.loss == self._squared_loss
        return Regression(data, lambda y, costs: epsilon_svr(y, C, epsilon, costs, is_free, is_squared))

    def _publish(self, fit: Fit) -> None:
        super()._publish(fit)
        self.coef_ = self.coef_.ravel()
