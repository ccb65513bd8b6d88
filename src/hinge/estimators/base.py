"""What the five kernel machines share: parameters, input, attributes.

scikit-learn's conventions live in this package and nowhere else. The course of a fit is `hinge.training.course`:
an estimator says what it is about (`_formulation`), makes attributes of what it came to (`_publish`) and answers
of decisions (`_answers`).
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from hinge.arrays import Vector
from hinge.data.given import RowKernel
from hinge.data.structure import canonical
from hinge.estimators.fitting import Trainable
from hinge.estimators.inputs import cache_bytes, is_opaque, opaque_rows, resolve_gamma, thread_count
from hinge.kernel.gram import Gram
from hinge.kernel.kernels import KERNELS, Kernel, kind_of
from hinge.settings import Settings
from hinge.training.course import Course, Fit
from hinge.training.data import TrainingData, select


class KernelMachine(Trainable):
    """Base of the kernel machines."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Trainable._parameter_constraints,
        "kernel": [StrOptions(set(KERNELS)), callable],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "shrinking": ["boolean"],
        "probability": ["boolean"],
        "random_state": ["random_state"],
        "cache_size": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left"), Options(Integral, {-1}), None],
        "solver": [StrOptions({"auto", "block", "smo"})],
        "precision": [StrOptions({"auto", "single", "double"})],
    }

    # The attribute that holds what turns decisions into probabilities.
    _calibration: ClassVar[str]

    # Samples whose decisions are known, and these: a search sets them while it scores.
    _known: tuple[Any, Vector] | None = None

    # ------------------------------------------------------------------ what each estimator says

    def _answers(self, decisions: Vector) -> Any:
        """Return the predictions that follow from the decisions of all machines."""
        raise NotImplementedError

    # ------------------------------------------------------------------ fitting

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on the samples X with the targets y.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features) or (n_samples, n_samples)
            The samples; for ``kernel="precomputed"`` their kernel matrix. float32 data stays float32. For a
            kernel of your own, X may also be a list or an array of arbitrary objects.
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
        if sp.issparse(X) and self.kernel != "precomputed":
            X = canonical(X)
        if callable(self.kernel) and is_opaque(X):
            X = opaque_rows(X)
            y = None if y is None else self._check_targets(y)
        elif self.kernel == "precomputed" and sp.issparse(X):
            raise TypeError("Sparse precomputed kernels are not supported: pass K.toarray().")
        elif y is None and not self.__sklearn_tags__().target_tags.required:
            X = validate_data(self, X, **self._checks())
        else:
            X, y = validate_data(self, X, y, **self._checks())
            y = self._check_targets(y)
        if y is not None and len(y) != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} samples, but y has {len(y)}.")
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"Precomputed matrix must be a square matrix: kernel values of the training samples with each "
                f"other. Input is a {X.shape[0]}x{X.shape[1]} matrix."
            )
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        return select(X, y, sample_weight, is_gram=self.kernel == "precomputed")

    def _checks(self) -> dict[str, Any]:
        return {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C"}

    def _kernel_of(self, data: TrainingData) -> Kernel:
        if callable(self.kernel):
            return Kernel(RowKernel(self.kernel, is_opaque=getattr(data.X, "dtype", np.dtype(float)).kind == "O"))
        uses_gamma = "gamma" in kind_of(self.kernel).uses
        gamma = resolve_gamma(self.gamma, data.X, data.weights) if uses_gamma else 0.0
        return Kernel(self.kernel, gamma=gamma, coef0=float(self.coef0), degree=int(self.degree))

    def _course(self, data: TrainingData, kernel: Kernel) -> Course:
        formulation, seed = self._formulation(data), 0
        if self.probability and formulation.n_runs > 1:
            seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        past = getattr(self, "_past", None) if self.warm_start else None
        return Course(formulation, kernel, self._settings(), bool(self.probability), seed, past)

    def _gram(self, course: Course) -> Gram:
        return Gram(
            course.formulation.data.X, course.kernel, cache_bytes=cache_bytes(self.cache_size),
            precision=self.precision, threads=thread_count(self.n_jobs),
        )  # fmt: skip

    def _settings(self) -> Settings:
        return Settings(
            solver=self.solver,
            tol=float(self.tol),
            shrinking=bool(self.shrinking),
            max_iter=None if self.max_iter in (-1, None) else int(self.max_iter),
        )

    # ------------------------------------------------------------------ attributes

    def _publish(self, fit: Fit) -> None:
        super()._publish(fit)
        model = fit.model
        self._gamma = 0.0 if callable(model.kernel.name) else model.kernel.gamma
        self.support_ = model.support.astype(np.int32)
        self.support_vectors_ = model.support_vectors
        self.intercept_ = model.intercepts
        self.shape_fit_ = fit.formulation.data.shape
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
        vectors = self.support_vectors_
        return type(vectors)(values) if sp.issparse(vectors) else values

    @property
    def coef_(self) -> Any:
        """Weights of the features, one row a machine; only for ``kernel="linear"``."""
        if self.kernel != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        if not hasattr(self, "_model"):
            raise AttributeError(f"this {type(self).__name__} is not fitted yet; coef_ exists after fit")
        weights = self._model.weights()
        (weights.data if sp.issparse(weights) else weights).flags.writeable = False
        return weights

    # ------------------------------------------------------------------ predicting

    def _decide(self, X: Any) -> Vector:
        """Check X and return the decision values of all machines."""
        if self._known is not None and X is self._known[0]:
            return self._known[1].copy()
        check_is_fitted(self)
        if callable(self.kernel) and self._model.kernel.name.is_opaque:  # type: ignore[union-attr]
            X = opaque_rows(X)
        elif self.kernel == "precomputed":
            X = self._check_gram_rows(X)
        else:
            if sp.issparse(X) and X.format != "csr":
                X = canonical(X)  # its indices are checked before anyone follows them; those of CSR rows later
            X = validate_data(self, X, reset=False, **self._checks())
        return self._model.decide(X, threads=thread_count(self.n_jobs))

    def _check_gram_rows(self, X: Any) -> Any:
        if sp.issparse(X):
            raise TypeError("Sparse precomputed kernels are not supported: pass K.toarray().")
        shape = getattr(X, "shape", None) or np.shape(X)
        if len(shape) == 2 and shape[1] != self.shape_fit_[0]:
            raise ValueError(
                f"X.shape[1] = {shape[1]} should be equal to {self.shape_fit_[0]}, the number of samples at "
                "training time: X must hold kernel values of the new samples with all training samples. "
                f"(X has {shape[1]} features, but {type(self).__name__} is expecting {self.shape_fit_[0]} "
                "features as input.)"
            )
        return validate_data(self, X, reset=False, **self._checks())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.positive_only = self.kernel in KERNELS and kind_of(self.kernel).needs_nonnegative
        return tags
