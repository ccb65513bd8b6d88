"""What all five estimators share: parameters, input, the course of a fit, attributes, warnings.

scikit-learn's conventions live in this package and nowhere else. An estimator says which tasks its data makes
(`_tasks`), how a model becomes its attributes (`_publish`) and what probabilities it gives (`_calibrate`);
everything else is here.
"""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d, validate_data

from hinge.arrays import Vector
from hinge.data.given import GivenGram, RowKernel
from hinge.data.structure import canonical
from hinge.estimators.diagnosis import convergence_message
from hinge.estimators.inputs import (
    TrainingData,
    cache_bytes,
    is_opaque,
    opaque_rows,
    resolve_gamma,
    select,
    thread_count,
)
from hinge.kernel.gram import Gram
from hinge.kernel.kernels import KERNELS, Kernel, kind_of
from hinge.model import Model
from hinge.report import Report
from hinge.runtime import interrupt
from hinge.runtime.interrupt import Cancelled
from hinge.settings import Settings
from hinge.training.course import (
    Machine,
    Task,
    assemble,
    combined_report,
    held_out_decisions,
    keep_values,
    sizes_of,
    train,
)
from hinge.training.probability import N_FOLDS, folds_by_content
from hinge.training.progress import CallbackListener, Listener, TaskListener, Watch, verbose_listener

try:  # scikit-learn 1.9 and later
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # pragma: no cover

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks yet."""


class KernelMachine(CallbackSupportMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions(set(KERNELS)), callable],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "shrinking": ["boolean"],
        "probability": ["boolean"],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "cache_size": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "verbose": ["verbose"],
        "max_iter": [Interval(Integral, 1, None, closed="left"), Options(Integral, {-1}), None],
        "random_state": ["random_state"],
        "solver": [StrOptions({"auto", "block", "smo"})],
        "precision": [StrOptions({"auto", "single", "double"})],
        "n_jobs": [Integral, None],
        "time_limit": [Interval(Real, 0.0, None, closed="neither"), None],
        "warm_start": ["boolean"],
        "callback": [callable, None],
    }

    # How often every machine is trained when probabilities are wanted: once on all samples, then by folds.
    _n_runs: ClassVar[int] = 1 + N_FOLDS

    # ------------------------------------------------------------------ what each estimator says

    def _check_targets(self, y: Any) -> Any:
        """Check and convert y."""
        return column_or_1d(y, warn=True).astype(np.float64, copy=False)

    def _tasks(self, data: TrainingData) -> Sequence[Task]:
        """Return the machines to train."""
        raise NotImplementedError

    def _second_thoughts(self, data: TrainingData, machines: Sequence[Machine]) -> dict[int, Task]:
        """Return tasks that must be solved again, knowing the machines."""
        return {}

    def _order(self, data: TrainingData) -> Any:
        """Return what support vectors are sorted by, before their place; None for nothing else."""
        return None

    def _publish(self, model: Model, data: TrainingData, machines: Sequence[Machine]) -> None:
        """Set the attributes that differ between estimators."""
        raise NotImplementedError

    def _task_without(self, k: int, held_out: NDArray[np.bool_], data: TrainingData) -> Task | float:
        """Return task k without the samples marked, or their decision value where nothing is left to train."""
        raise NotImplementedError

    def _calibrate(
        self, data: TrainingData, gram: Gram, machines: Sequence[Machine], settings: Settings, watch: Watch
    ) -> None:
        """Fit what probabilities need, or raise Cancelled if the fit has to stop."""
        raise NotImplementedError

    def _forget_scratch(self) -> None:
        """Drop what only the course of a fit needs."""

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

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Fit a copy and take all its attributes over at once: several threads may fit the same estimator."""
        started = time.perf_counter()
        twin: Self = copy.copy(self)
        with interrupt.within(self.time_limit):
            data = twin._training_data(X, y, sample_weight)
            kernel = twin._resolve_kernel(data)
            gram = Gram(
                data.X, kernel, cache_bytes=cache_bytes(self.cache_size), precision=self.precision,
                threads=thread_count(self.n_jobs),
            )  # fmt: skip
            with interrupt.catching() as scope:
                listeners = self._listeners()
                try:
                    is_complete = twin._learn(data, kernel, gram, listeners, started)
                finally:
                    for listener in listeners:
                        listener.close()
                self._take_over(twin)
                is_interrupted = interrupt.pressed()
                scope.is_answered = True  # by what is said below
        for listener in listeners:
            if isinstance(listener, TaskListener):
                listener.complete()
        self._check_finite()
        self._tell_outcome(data, is_complete, is_interrupted)
        return self

    def _learn(
        self, data: TrainingData, kernel: Kernel, gram: Gram, listeners: Sequence[Listener], started: float
    ) -> bool:
        """Train and set all attributes; return whether probabilities are there if they are wanted."""
        tasks, settings = self._tasks(data), self._settings()
        n_runs = self._n_runs if self.probability else 1
        watch = Watch(listeners, n_runs * len(tasks))
        gram = keep_values(gram, n_runs * int(sizes_of(tasks).sum()))
        machines = train(gram, self._started(tasks, data), settings, watch)
        for k, task in self._second_thoughts(data, machines).items():
            (machines[k],) = train(gram, [task], settings, watch, first=n_runs * len(tasks) + k)
        self._model = assemble(kernel, data.X, machines, data.places, self._order(data))
        self._set_common(data, gram, machines, started)
        self._publish(self._model, data, machines)
        try:
            if self.probability:
                if watch.is_stopped:
                    raise Cancelled
                self._calibrate(data, gram, machines, settings, watch)
        except Cancelled:
            return False
        finally:
            self._forget_scratch()
        return True

    def _take_over(self, twin: Self) -> None:
        """Replace all attributes that a fit sets by those of the copy, in one step."""
        parameters = self._get_param_names()
        # What scikit-learn's callbacks keep here belongs to whoever calls `fit`.
        own = {name: value for name, value in vars(self).items() if name in parameters or "callback" in name}
        self.__dict__ = {**vars(twin), **own}

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

    def _resolve_kernel(self, data: TrainingData) -> Kernel:
        if callable(self.kernel):
            self._gamma = 0.0
            return Kernel(RowKernel(self.kernel, is_opaque=getattr(data.X, "dtype", np.dtype(float)).kind == "O"))
        uses_gamma = "gamma" in kind_of(self.kernel).uses
        self._gamma = resolve_gamma(self.gamma, data.X, data.weights) if uses_gamma else 0.0
        return Kernel(self.kernel, gamma=self._gamma, coef0=float(self.coef0), degree=int(self.degree))

    def _settings(self) -> Settings:
        return Settings(
            solver=self.solver,
            tol=float(self.tol),
            shrinking=bool(self.shrinking),
            max_iter=None if self.max_iter in (-1, None) else int(self.max_iter),
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

    def _held_out(
        self, data: TrainingData, gram: Gram, machines: Sequence[Machine], settings: Settings, watch: Watch
    ) -> list[Vector]:
        """Decisions by five folds, drawn by ``random_state``; Cancelled if the fit was stopped."""
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        strata = getattr(self, "_codes", np.zeros(len(data.places), np.intp))
        is_gram = isinstance(gram.samples, GivenGram) and (
            self.kernel == "precomputed" or data.X.dtype.kind == "O"  # only kernel values tell objects apart
        )
        rows = gram.samples.matrix if is_gram else data.X  # type: ignore[attr-defined]
        folds = folds_by_content(rows, strata, data.weights, seed, is_gram)

        def without(k: int, held_out: NDArray[np.bool_]) -> Task | float:
            return self._task_without(k, held_out, data)

        return held_out_decisions(gram, machines, folds, without, settings, watch)

    # ------------------------------------------------------------------ resuming

    def _started(self, tasks: Sequence[Task], data: TrainingData) -> Sequence[Task]:
        """Give each task the β that the same task ended with in the last fit, if there was one."""
        past = getattr(self, "_resume", None) if self.warm_start else None
        if past is None or past["key"] != self._resume_key(tasks, data):
            return tasks
        started = []
        for task, (places, beta) in zip(tasks, past["betas"], strict=True):
            if not len(places):  # that fit did not come to it
                started.append(task)
                continue
            whole = np.zeros((len(beta), data.shape[0]))
            whole[:, places] = beta
            start = whole[:, data.places[task.samples]].ravel()
            started.append(replace(task, start=start))
        return started

    def _remember(self, machines: Sequence[Machine], data: TrainingData) -> None:
        betas = [
            (data.places[machine.samples], machine.solution.beta.reshape(-1, max(len(machine.samples), 1)))
            for machine in machines
        ]
        self._resume = {"key": self._resume_key(machines, data), "betas": betas}

    def _resume_key(self, tasks: Sequence[Any], data: TrainingData) -> tuple[Any, ...]:
        return data.shape[0], len(tasks), tuple(getattr(self, "classes_", ()))

    # ------------------------------------------------------------------ attributes

    def _set_common(self, data: TrainingData, gram: Gram, machines: Sequence[Machine], started: float) -> None:
        model = self._model
        self.support_ = model.support.astype(np.int32)
        self.support_vectors_ = model.support_vectors
        self.shape_fit_ = data.shape
        self.reports_ = tuple(machine.solution.report for machine in machines)
        self.report_: Report = combined_report(machines, gram, time.perf_counter() - started)
        self.fit_status_ = 0 if self.report_.converged else 1
        if self.warm_start:
            self._remember(machines, data)
        elif hasattr(self, "_resume"):
            del self._resume

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

    def _check_finite(self) -> None:
        coefficients = self._model.coefficients
        values = coefficients.data if sp.issparse(coefficients) else coefficients
        if not (np.isfinite(values).all() and np.isfinite(self._model.intercepts).all()):
            raise ValueError(
                "The dual coefficients or intercepts are not finite. The input data may contain large values and "
                "need to be preprocessed."
            )

    def _tell_outcome(self, data: TrainingData, is_complete: bool, is_interrupted: bool) -> None:
        if self.fit_status_ != 0:
            names = getattr(self, "feature_names_in_", None)
            is_gram = self.kernel == "precomputed"
            message = convergence_message(self.report_, float(self.tol), data.X, names, is_gram)
        elif not is_complete:
            message = "The fit was stopped before its probabilities were calibrated: predict_proba is missing."
            self.fit_status_ = 1
        elif is_interrupted:
            message = "The fit was complete when Ctrl-C was pressed."
        else:
            return
        if is_interrupted:
            raise KeyboardInterrupt(message)
        warnings.warn(message, ConvergenceWarning, stacklevel=4)

    # ------------------------------------------------------------------ predicting

    def _decide(self, X: Any) -> Vector:
        """Check X and return the decision values of all machines."""
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
