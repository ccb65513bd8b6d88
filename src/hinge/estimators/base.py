"""What all five estimators share: parameters, input, attributes, warnings.

scikit-learn's conventions live in this package and nowhere else. The course of a fit is `hinge.training.course`:
an estimator says what it is about (`_formulation`), makes attributes of what it came to (`_publish`) and answers
of decisions (`_answers`).
"""

from __future__ import annotations

import warnings
from functools import cache
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Hidden, Interval, Options, StrOptions
from sklearn.utils.validation import (
    _check_feature_names,
    _check_y,
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from hinge.arrays import Vector
from hinge.certificates import Certificates
from hinge.data.collection import Collection
from hinge.data.given import RowKernel
from hinge.data.structure import canonical
from hinge.estimators.diagnosis import convergence_message
from hinge.estimators.exchange import Exchange
from hinge.estimators.inputs import (
    cache_bytes,
    checked_weights,
    is_plain,
    is_plain_numbers,
    resolve_gamma,
    thread_count,
)
from hinge.estimators.libsvm_names import LibsvmNames
from hinge.estimators.proofs import prove
from hinge.estimators.stand_in import StandIn
from hinge.kernel.gram import Gram
from hinge.kernel.kernels import KERNELS, Kernel, kind_of
from hinge.report import Reports
from hinge.runtime import interrupt
from hinge.runtime.threads import blas_on_one_thread
from hinge.settings import Settings
from hinge.trace import Tracing
from hinge.training.course import Course, Fit, Past
from hinge.training.data import TrainingData, select
from hinge.training.formulation import Formulation
from hinge.training.progress import CallbackListener, Listener, TaskListener, Watch, verbose_listener
from hinge.training.trainer import Trainer

try:  # scikit-learn 1.9 and later
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # pragma: no cover

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks yet."""


# Types of parameters whose values never change, and all of these, class by class, that have passed the checks.
_IMMUTABLE = frozenset({str, int, float, bool, type(None)})
_MOST_PASSED = 1000
_passed: set[tuple[Any, ...]] = set()


@cache
def _parameter_names(cls: type[BaseEstimator]) -> list[str]:
    return list(cls._get_param_names())


class KernelMachine(StandIn, Exchange, LibsvmNames, CallbackSupportMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions(set(KERNELS)), callable],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "shrinking": ["boolean"],
        "probability": ["boolean", Hidden(StrOptions({"deprecated"}))],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "cache_size": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "verbose": ["verbose"],
        "max_iter": [Interval(Integral, 1, None, closed="left"), Options(Integral, {-1}), None],
        "solver": [StrOptions({"auto", "block", "smo"})],
        "precision": [StrOptions({"auto", "single", "double"})],
        "n_jobs": [Integral, None],
        "time_limit": [Interval(Real, 0.0, None, closed="neither"), None],
        "warm_start": ["boolean"],
        "callback": [callable, None],
        "trace": ["boolean", Tracing],
    }

    # The attribute that holds what turns decisions into probabilities.
    _calibration: ClassVar[str]

    # Samples whose decisions are known, and these: a search sets them while it scores.
    _known: tuple[Any, Vector] | None = None

    # ------------------------------------------------------------------ what each estimator says

    def _check_targets(self, y: Any) -> Any:
        """Check and convert y."""
        return column_or_1d(y, warn=True).astype(np.float64, copy=False)

    def _is_plain_target(self, y: Any) -> bool:
        """Whether `_check_targets` and scikit-learn's checks would return y as it is."""
        return is_plain_numbers(y)

    def _formulation(self, data: TrainingData) -> Formulation:
        """Return what a fit to these samples is about."""
        raise NotImplementedError

    def _answers(self, decisions: Vector) -> Any:
        """Return the predictions that follow from the decisions of all machines."""
        raise NotImplementedError

    # ------------------------------------------------------------------ fitting

    def _validate_params(self) -> None:
        """Check the parameters, as scikit-learn's decorator of `fit` asks: those that passed once do so again.

        Whether a number, a string or None is allowed depends on its type and value alone. Everything else is
        looked at every time.
        """
        cls: Any = type(self)
        values = [getattr(self, name, None) for name in _parameter_names(cls)]
        types = [type(value) for value in values]
        if not _IMMUTABLE.issuperset(types):
            super()._validate_params()
            return
        key = cls, tuple(types), tuple(values)
        if key not in _passed:
            super()._validate_params()
            if len(_passed) >= _MOST_PASSED:
                _passed.clear()
            _passed.add(key)

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on the samples X with the targets y.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features) or (n_samples, n_samples)
            The samples; for ``kernel="precomputed"`` their kernel matrix. float32 data stays float32. For a
            kernel of your own, X may be any container of any objects.
        y : array-like of shape (n_samples,)
            Class labels, or the numbers to predict.
        sample_weight : array-like of shape (n_samples,), optional
            How often each sample counts: weight k is the same as k repetitions, weight 0 the same as leaving
            the sample out.

        Returns
        -------
        self
            The fitted estimator. Ctrl-C raises KeyboardInterrupt within about a second and still leaves the best
            model so far in place, with ``fit_status_`` 1 and ``report_.status`` ``"interrupted"``; before the
            first step was taken the estimator stays as it was.
        """
        return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Fit a copy and take all its attributes over at once: several threads may fit the same estimator."""
        twin: Self = object.__new__(type(self))
        twin.__dict__.update(vars(self))
        with interrupt.within(self.time_limit), blas_on_one_thread():
            data = twin._training_data(X, y, sample_weight)
            course = twin._course(data, twin._kernel_of(data))
            gram = Gram(
                data.X, course.kernel, cache_bytes=cache_bytes(self.cache_size), precision=self.precision,
                threads=thread_count(self.n_jobs),
            )  # fmt: skip
            with interrupt.catching() as scope:
                listeners = self._listeners()
                try:
                    fit = course.run(Trainer(gram, course.settings, Watch(listeners)))
                finally:
                    for listener in listeners:
                        listener.close()
                twin._publish(fit)
                self._take_over(twin)
                is_interrupted = interrupt.pressed()
                scope.is_answered = True  # by what is said below
        for listener in listeners:
            if isinstance(listener, TaskListener):
                listener.complete()
        self._check_finite()
        self._tell_outcome(fit, is_interrupted)
        return self

    def _take_over(self, twin: Self) -> None:
        """Replace all attributes that a fit sets by those of the copy, in one step."""
        # Parameters, and what scikit-learn's callbacks keep here, belong to whoever calls `fit`.
        own = {name: value for name, value in vars(self).items() if not _is_of_fit(name)}
        self.__dict__ = {**vars(twin), **own}

    def _training_data(self, X: Any, y: Any, sample_weight: Any) -> TrainingData:
        is_supervised = y is not None or self.__sklearn_tags__().target_tags.required
        if callable(self.kernel):  # nobody but the kernel knows what X may be
            if is_supervised and y is None:
                raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but y is None.")
            check_consistent_length(X, y)
            X, y = Collection(X), self._check_targets(_check_y(y, estimator=self)) if is_supervised else None
        elif sp.issparse(X) and self.kernel == "precomputed":
            raise TypeError("Sparse precomputed kernels are not supported: pass K.toarray().")
        else:
            X = canonical(X) if sp.issparse(X) else X
            X, y = self._check_pairs(X, y) if is_supervised else (self._check_rows(X, reset=True), None)
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"Precomputed matrix must be a square matrix: kernel values of the training samples with each "
                f"other. Input is a {X.shape[0]}x{X.shape[1]} matrix."
            )
        if sample_weight is not None:
            sample_weight = checked_weights(sample_weight, X)
        return select(X, y, sample_weight, is_gram=self.kernel == "precomputed")

    def _check_pairs(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Check and convert samples and targets."""
        if self._is_plain_target(y) and is_plain(X) and len(y) == len(X):
            return self._known_by_features(X), y
        X, y = validate_data(self, X, y, **self._checks())
        return X, self._check_targets(y)

    def _check_rows(self, X: Any, *, reset: bool) -> Any:
        """Check and convert samples; ``reset`` in a fit, which says how many features there are.

        scikit-learn's own checks take longer than the prediction of a row: what they would not change is not shown
        to them.
        """
        if is_plain(X):
            if reset:
                return self._known_by_features(X)
            known = vars(self)
            if known.get("n_features_in_") == X.shape[1] and "feature_names_in_" not in known:
                return X
        return validate_data(self, X, reset=reset, **self._checks())

    def _known_by_features(self, X: Any) -> Any:
        """Note the features of samples without names; return the samples."""
        self.__dict__.pop("feature_names_in_", None)
        self.n_features_in_ = X.shape[1]
        return X

    def _checks(self) -> dict[str, Any]:
        return {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C"}

    def _kernel_of(self, data: TrainingData) -> Kernel:
        """Return the kernel; γ may depend on the samples."""
        if callable(self.kernel):
            return Kernel(RowKernel(self.kernel))
        uses_gamma = "gamma" in kind_of(self.kernel).uses
        gamma = resolve_gamma(self.gamma, data.X, data.weights) if uses_gamma else 0.0
        return Kernel(self.kernel, gamma=gamma, coef0=float(self.coef0), degree=int(self.degree))

    def _course(self, data: TrainingData, kernel: Kernel) -> Course:
        """Return the fit to make."""
        past = getattr(self, "_past", None) if self.warm_start else None
        seed = self._seed() if self._calibrates else 0
        return Course(self._formulation(data), kernel, self._settings(), self._calibrates, seed, past)

    @property
    def _calibrates(self) -> bool:
        """Whether probabilities are wanted; scikit-learn's default is the word "deprecated", for no."""
        return self.probability != "deprecated" and bool(self.probability)

    def _seed(self) -> int:
        """Return what folds are drawn by, besides the values of the samples."""
        return 0

    def _settings(self) -> Settings:
        return Settings(
            solver=self.solver,
            tol=float(self.tol),
            shrinking=bool(self.shrinking),
            max_iter=None if self.max_iter in (-1, None) else int(self.max_iter),
            trace=self.trace if isinstance(self.trace, Tracing) else Tracing() if self.trace else None,
        )

    def _listeners(self) -> list[Listener]:
        listeners: list[Listener] = []
        if self.callback is not None:
            listeners.append(CallbackListener(self.callback))
        if (shown := verbose_listener(self.verbose)) is not None:
            listeners.append(shown)
        if hasattr(self, "_skl_callbacks"):
            context = self._init_callback_context(max_subtasks=None, sequential_subtasks=False)
            context.call_on_fit_task_begin(estimator=self)
            listeners.append(TaskListener(self, context))
        return listeners

    # ------------------------------------------------------------------ attributes

    def _publish(self, fit: Fit) -> None:
        """Set all attributes."""
        model = self._model = fit.model
        self._gamma = 0.0 if callable(model.kernel.name) else model.kernel.gamma
        self.support_ = model.support.astype(np.int32)
        vectors = model.support_vectors
        self.support_vectors_ = vectors.selected() if isinstance(vectors, Collection) else vectors
        self.intercept_ = model.intercepts
        self.shape_fit_ = fit.formulation.data.shape
        scheme = getattr(self, "multi_class", "ovo")
        self.reports_ = Reports((m.solution.report for m in fit.machines), fit.formulation.labels, scheme)
        self.report_ = fit.report
        self.fit_status_ = 0 if fit.report.converged else 1
        self._past = Past.of(fit) if self.warm_start else None
        self.__dict__.pop(self._calibration, None)
        if fit.calibration is not None:
            setattr(self, self._calibration, fit.calibration)

    def _publish_single(self, fit: Fit) -> None:
        """Set what estimators of one machine have in common."""
        self.n_support_ = np.array([len(fit.model.support)], dtype=np.int32)
        self.dual_coef_ = self._as_input(fit.model.coefficients)
        self.n_iter_: Any = int(fit.report.iterations)

    def _as_input(self, values: Vector) -> Any:
        """Return a sparse matrix where the training data was one, as scikit-learn does."""
        vectors = self._model.support_vectors
        return type(vectors)(values) if sp.issparse(vectors) else values

    @property
    def coef_(self) -> Any:
        """Weights of the features, one row a machine; only for ``kernel="linear"``."""
        if self.kernel != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        if not hasattr(self, "_model"):
            raise AttributeError(f"this {type(self).__name__} is not fitted yet; coef_ exists after fit")
        return self._model.weights()

    def _check_finite(self) -> None:
        coefficients = self._model.coefficients
        values = coefficients.data if sp.issparse(coefficients) else coefficients
        if not (np.isfinite(values).all() and np.isfinite(self._model.intercepts).all()):
            raise ValueError(
                "The dual coefficients or intercepts are not finite. The input data may contain large values and "
                "need to be preprocessed."
            )

    def _tell_outcome(self, fit: Fit, is_interrupted: bool) -> None:
        for note in fit.notes:
            warnings.warn(note, stacklevel=5)
        if self.fit_status_ != 0:
            names = getattr(self, "feature_names_in_", None)
            is_gram = self.kernel == "precomputed"
            message = convergence_message(self.report_, float(self.tol), fit.formulation.data.X, names, is_gram)
        elif not fit.is_complete:
            message = "The fit was stopped before its probabilities were calibrated: predict_proba is missing."
            self.fit_status_ = 1
        elif is_interrupted:
            message = "The fit was complete when Ctrl-C was pressed."
        else:
            return
        if is_interrupted:
            raise KeyboardInterrupt(message)
        warnings.warn(message, ConvergenceWarning, stacklevel=5)

    def certificate(self, X: Any, y: Any = None, sample_weight: Any = None) -> Certificates:
        """Prove the fit again, from its coefficients alone.

        Parameters
        ----------
        X, y, sample_weight : array-like
            What the estimator was fitted to.

        Returns
        -------
        Certificates
            Feasibility, violation and duality gap of every machine, computed in double precision or beyond.

        See Also
        --------
        hinge.certificate : The same for machines of scikit-learn.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from hinge import SVC
        >>> X, y = load_iris(return_X_y=True)
        >>> SVC().fit(X, y).certificate(X, y).proves(1e-3)
        True
        """
        return prove(type(self), self, X, y, sample_weight, {})

    # ------------------------------------------------------------------ predicting

    def _decide(self, X: Any) -> Vector:
        """Check X and return the decision values of all machines."""
        if self._known is not None and X is self._known[0]:
            return self._known[1].copy()
        self._check_fitted()
        if callable(self._model.kernel.name):
            X = Collection(X)
        elif self.kernel == "precomputed":
            X = self._check_gram_rows(X)
        else:
            if sp.issparse(X) and X.format != "csr":
                X = canonical(X)  # its indices are checked before anyone follows them; those of CSR rows later
            X = self._check_rows(X, reset=False)
        return self._model.decide(X, threads=thread_count(self.n_jobs))

    def _check_fitted(self) -> None:
        if "_model" not in vars(self):
            check_is_fitted(self)

    def _check_gram_rows(self, X: Any) -> Any:
        if sp.issparse(X):
            raise TypeError("Sparse precomputed kernels are not supported: pass K.toarray().")
        if not is_plain(X) or "feature_names_in_" in vars(self):
            _check_feature_names(self, X, reset=False)
            X = check_array(X, input_name="X", estimator=self, **self._checks())
        if X.shape[1] != self.shape_fit_[0]:
            raise ValueError(
                f"X.shape[1] = {X.shape[1]} should be equal to {self.shape_fit_[0]}, the number of samples at "
                "training time: X must hold kernel values of the new samples with all training samples. "
                f"(X has {X.shape[1]} features, but {type(self).__name__} is expecting {self.shape_fit_[0]} "
                "features as input.)"
            )
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.positive_only = self.kernel in KERNELS and kind_of(self.kernel).needs_nonnegative
        return tags


@cache
def _is_of_fit(name: str) -> bool:
    """Whether an attribute belongs to a fit, by scikit-learn's convention."""
    return (name.startswith("_") or name.endswith("_")) and "callback" not in name
