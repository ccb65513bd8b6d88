"""What the kernel machines share: parameters, input, attributes.

scikit-learn's conventions live in this package and nowhere else. The course of a fit is `hinge.training.course`:
an estimator says what it is about (`_formulation`), makes attributes of what it came to (`_publish`) and answers
of decisions (`_answers`).
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import Hidden, Interval, Options, StrOptions
from sklearn.utils.validation import (
    _check_feature_names,
    _check_y,
    check_array,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from hinge.arrays import Vector
from hinge.certificates import Certificates
from hinge.data.collection import Collection
from hinge.data.given import RowKernel
from hinge.data.pages import is_mapped
from hinge.data.structure import canonical
from hinge.estimators.exchange import KernelExchange
from hinge.estimators.fitting import Trainable
from hinge.estimators.inputs import (
    cache_bytes,
    checked_weights,
    collected,
    is_plain,
    is_plain_numbers,
    resolve_gamma,
    thread_limit,
)
from hinge.estimators.intervals import Certified
from hinge.estimators.parameters import parametrised
from hinge.estimators.proofs import prove
from hinge.estimators.stand_in import StandIn
from hinge.kernel.gram import Gram, Precision
from hinge.kernel.kernels import KERNELS, Kernel, kind_of
from hinge.settings import RULES, Settings
from hinge.trace import Tracing
from hinge.training.course import Course, Fit, Past
from hinge.training.data import TrainingData, select
from hinge.training.formulation import Formulation


@parametrised
class KernelMachine(StandIn, KernelExchange, Certified, Trainable):
    """Base of the kernel machines."""

    kernel: Any = "rbf"
    degree: int = 3
    gamma: str | float = "scale"
    coef0: float = 0.0
    shrinking: bool = True
    probability: bool | str = False
    cache_size: str | float = "auto"
    max_iter: int = -1
    solver: Literal["auto", "block", "smo"] = "auto"
    precision: Precision = "auto"
    trace: Any = False
    gap_tol: float | None = None
    rule: str = "second_order"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Trainable._parameter_constraints,
        "kernel": [StrOptions(set(KERNELS)), callable],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "shrinking": ["boolean"],
        "probability": ["boolean", Hidden(StrOptions({"deprecated"}))],
        "cache_size": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left"), Options(Integral, {-1}), None],
        "solver": [StrOptions({"auto", "block", "smo"})],
        "precision": [StrOptions({"auto", "single", "double"})],
        "trace": ["boolean", Tracing],
        "gap_tol": [Interval(Real, 0.0, None, closed="neither"), None],
        "rule": [StrOptions(set(RULES))],
    }

    # Whether there is nothing to fit without targets.
    _needs_targets: ClassVar[bool] = True

    # The attribute that holds what turns decisions into probabilities.
    _calibration: ClassVar[str]

    # Samples whose decisions are known, and these: a search sets them while it scores.
    _known: tuple[Any, Vector] | None = None

    # ------------------------------------------------------------------ what each estimator says

    def _is_plain_target(self, y: Any) -> bool:
        """Whether `_check_targets` and scikit-learn's checks would return y as it is."""
        return is_plain_numbers(y)

    def _answers(self, decisions: Vector) -> Any:
        """Return the predictions that follow from the decisions of all machines."""
        raise NotImplementedError

    # ------------------------------------------------------------------ fitting

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

    def _training_data(self, X: Any, y: Any, sample_weight: Any) -> TrainingData:
        is_supervised = y is not None or self._needs_targets
        if callable(self.kernel):  # nobody but the kernel knows what X may be
            if is_supervised and y is None:
                raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but y is None.")
            check_consistent_length(X, y)
            X, y = collected(X), self._check_targets(self._checked(y)) if is_supervised else None
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
        if self._is_plain_target(y) and is_plain(X) and len(y) == X.shape[0]:
            return self._known_by_features(X), y
        if is_mapped(X) and is_plain(X):  # scikit-learn's checks would read the file into memory
            check_consistent_length(X, y)
            return self._known_by_features(X), self._check_targets(self._checked(y))
        X, y = validate_data(self, X, y, multi_output=self._has_columns, **self._checks())
        return X, self._check_targets(y)

    @property
    def _has_columns(self) -> bool:
        """Whether y may have several columns."""
        return bool(self.__sklearn_tags__().target_tags.multi_output)

    def _checked(self, y: Any) -> Any:
        """Check y as scikit-learn does, whatever X may be."""
        return _check_y(y, multi_output=self._has_columns, estimator=self)

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
        if callable(self.kernel):
            return Kernel(RowKernel(self.kernel))
        uses_gamma = "gamma" in kind_of(self.kernel).uses
        gamma = resolve_gamma(self.gamma, data.X, data.weights) if uses_gamma else 0.0
        return Kernel(self.kernel, gamma=gamma, coef0=float(self.coef0), degree=int(self.degree))

    def _course(self, data: TrainingData, kernel: Kernel) -> Course:
        past = getattr(self, "_past", None) if self.warm_start else None
        return self._course_of(self._formulation(data), kernel, past)

    def _course_of(self, formulation: Formulation, kernel: Kernel, past: Past | None = None) -> Course:
        seed = self._seed() if self._calibrates else 0
        return Course(formulation, kernel, self._settings(), self._calibrates, seed, past)

    @property
    def _calibrates(self) -> bool:
        """Whether probabilities are wanted; scikit-learn's default is the word "deprecated", for no."""
        return self.probability != "deprecated" and bool(self.probability)

    def _seed(self) -> int:
        """Return what folds are drawn by, besides the values of the samples."""
        return 0

    def _gram(self, course: Course) -> Gram:
        return Gram(
            course.formulation.data.X, course.kernel, cache_bytes=cache_bytes(self.cache_size),
            precision=self.precision, threads=thread_limit(self.n_jobs),
        )  # fmt: skip

    def _settings(self) -> Settings:
        if self.rule != Settings.rule and self.solver != "smo":
            raise ValueError(
                f"rule={self.rule!r} needs solver='smo': solver={self.solver!r} moves pairs by {Settings.rule!r}"
            )
        return Settings(
            solver=self.solver,
            rule=self.rule,
            tol=float(self.tol),
            gap_tol=None if self.gap_tol is None else float(self.gap_tol),
            shrinking=bool(self.shrinking),
            max_iter=None if self.max_iter in (-1, None) else int(self.max_iter),
            trace=self.trace if isinstance(self.trace, Tracing) else Tracing() if self.trace else None,
        )

    # ------------------------------------------------------------------ attributes

    def _publish(self, fit: Fit) -> None:
        super()._publish(fit)
        model, self._fitted = fit.model, fit
        for name in ("_proofs", "compression_"):
            self.__dict__.pop(name, None)
        self._gamma = 0.0 if callable(model.kernel.name) else model.kernel.gamma
        self.support_ = model.support.astype(np.int32)
        vectors = model.support_vectors
        self.support_vectors_ = vectors.selected() if isinstance(vectors, Collection) else vectors
        self.intercept_ = model.intercepts
        self.shape_fit_ = fit.formulation.data.shape
        self.__dict__.pop(self._calibration, None)
        if fit.calibration is not None:
            setattr(self, self._calibration, fit.calibration)

    def _publish_single(self, fit: Fit) -> None:
        """Set what estimators have in common that tell no classes apart."""
        self.n_support_ = np.array([len(fit.model.support)], dtype=np.int32)
        self.dual_coef_ = self._as_input(fit.model.coefficients)
        self.n_iter_: Any = int(fit.report.iterations)

    def _as_input(self, values: Vector) -> Any:
        """Return a sparse matrix where the training data was one, as scikit-learn does."""
        vectors = self._model.support_vectors
        return type(vectors)(values) if sp.issparse(vectors) else values

    @property
    def coef_(self) -> Any:
        """Weights of the features, one row per machine; only for ``kernel="linear"``."""
        if self.kernel != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        if not hasattr(self, "_model"):
            raise AttributeError(f"this {type(self).__name__} is not fitted yet; coef_ exists after fit")
        return self._model.weights()

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

    def _decide(self, X: Any, signs: bool = False) -> Vector:
        """Check X and return the decision values of all machines, or anything with their ``signs``."""
        if self._known is not None and X is self._known[0]:
            return self._known[1].copy()
        self._check_fitted()
        return self._model.decide(self._queries(X), thread_limit(self.n_jobs), signs)

    def _queries(self, X: Any) -> Any:
        """Check and convert samples that are to be decided."""
        if callable(self._model.kernel.name):
            return collected(X)
        if self.kernel == "precomputed":
            return self._check_gram_rows(X)
        if sp.issparse(X) and X.format != "csr":
            X = canonical(X)  # its indices are checked before anyone follows them; those of CSR rows later
        return self._check_rows(X, reset=False)

    def _check_fitted(self) -> None:
        if "_model" not in vars(self):
            check_is_fitted(self)

    def _check_calibrated(self) -> None:
        if not hasattr(self, self._calibration):
            raise NotFittedError(
                "predict_proba is not available when fitted with probability=False, or when the fit was stopped "
                f"before its end; fit this {type(self).__name__} again"
            )

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


def has_probability(machine: Any) -> bool:
    """Whether `predict_proba` is there: for ``available_if``, which shows the error."""
    if not machine._calibrates:
        raise AttributeError("predict_proba is not available when probability=False")
    return True
