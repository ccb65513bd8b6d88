"""A fit as every estimator runs it: on a copy, stoppable, told to whoever listens, honest about its end.

An estimator says what data, course, Gram matrix and attributes are; what happens around them is here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import column_or_1d

from hinge.estimators.diagnosis import convergence_message
from hinge.estimators.documentation import Linked
from hinge.estimators.parameters import parametrised
from hinge.kernel.gram import Gram
from hinge.kernel.kernels import Kernel
from hinge.report import Reports
from hinge.runtime import interrupt
from hinge.runtime.threads import blas_on_one_thread
from hinge.training.course import Course, Fit, Past
from hinge.training.data import TrainingData
from hinge.training.formulation import Formulation
from hinge.training.machine import ledger_of
from hinge.training.progress import BarListener, CallbackListener, Listener, TaskListener, Watch, verbose_listener
from hinge.training.trainer import Sharing, Trainer

try:  # scikit-learn 1.9 and later
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback._callback_support import callback_management_context
except ImportError:  # pragma: no cover
    callback_management_context = nullcontext

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks yet."""


# Types of parameters whose values never change, and all of these, class by class, that have passed the checks.
_IMMUTABLE = frozenset({str, int, float, bool, type(None)})
_MOST_PASSED = 1000
_passed: set[tuple[Any, ...]] = set()


#: Makes a fit of a course, with a trainer.
Run = Callable[[Course, Trainer], Fit]


@cache
def _parameter_names(cls: type[BaseEstimator]) -> list[str]:
    return list(cls._get_param_names())


@parametrised
class Trainable(Linked, CallbackSupportMixin, BaseEstimator):  # type: ignore[misc]
    """Base of all estimators."""

    tol: float = 1e-3
    verbose: bool | int = False
    n_jobs: int | None = None
    time_limit: float | None = None
    warm_start: bool = False
    callback: Any = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "verbose": ["verbose"],
        "n_jobs": [Integral, None],
        "time_limit": [Interval(Real, 0.0, None, closed="neither"), None],
        "warm_start": ["boolean"],
        "callback": [callable, None],
    }

    # What machines of one fit share.
    _sharing: ClassVar[Sharing] = Sharing()

    # ------------------------------------------------------------------ what each estimator says

    def _check_targets(self, y: Any) -> Any:
        """Check and convert y."""
        return column_or_1d(y, warn=True).astype(np.float64, copy=False)

    def _training_data(self, X: Any, y: Any, sample_weight: Any) -> TrainingData:
        """Check the input and return the samples that count."""
        raise NotImplementedError

    def _formulation(self, data: TrainingData) -> Formulation:
        """Return what a fit to these samples is about."""
        raise NotImplementedError

    def _kernel_of(self, data: TrainingData) -> Kernel:
        """Return the kernel; its parameters may depend on the samples."""
        raise NotImplementedError

    def _course(self, data: TrainingData, kernel: Kernel) -> Course:
        """Return the fit to make."""
        raise NotImplementedError

    def _gram(self, course: Course) -> Gram:
        """Return the kernel values of the samples."""
        raise NotImplementedError

    def _run(self, course: Course, trainer: Trainer) -> Fit:
        """Make the fit."""
        return course.run(trainer)

    def _publish(self, fit: Fit) -> None:
        """Set all attributes."""
        self._model = fit.model
        self._ledger = ledger_of(fit.machines)
        self.report_ = fit.report
        self.fit_status_ = 0 if fit.report.converged else 1
        self._past = Past.of(fit) if self.warm_start else None

    @property
    def reports_(self) -> Reports:
        """The report of every machine; ``reports_.names`` says which classes it tells apart."""
        if "_ledger" not in vars(self):
            raise AttributeError(f"this {type(self).__name__} is not fitted yet; reports_ exists after fit")
        return Reports(self._ledger, getattr(self, "classes_", ()), getattr(self, "multi_class", "ovo"))

    # ------------------------------------------------------------------ fitting

    def _validate_params(self) -> None:
        """Check the parameters, as scikit-learn's tools ask, too: those that passed once do so again.

        Whether a number, a string or None is allowed depends on its type and value alone. Everything else is
        looked at every time.
        """
        cls: Any = type(self)
        values = tuple(map(vars(self).get, _parameter_names(cls)))
        types = tuple(map(type, values))
        if not _IMMUTABLE.issuperset(types):
            super()._validate_params()
            return
        key = cls, types, values
        if key not in _passed:
            super()._validate_params()
            if len(_passed) >= _MOST_PASSED:
                _passed.clear()
            _passed.add(key)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Check the parameters and fit."""
        return self._under_checks(lambda: self._fit_to(X, y, sample_weight))

    def _under_checks(self, run: Callable[[], Self], parameters: dict[str, Any] | None = None) -> Self:
        """Check the parameters, some of which may be new, and run what fits.

        This is what scikit-learn's decorator of `fit` does. Setting up its contexts for fits that have no callback
        takes as long as all of our checks.
        """
        if not get_config()["skip_parameter_validation"]:
            (self._twin(parameters) if parameters else self)._validate_params()
        if not hasattr(self, "_skl_callbacks"):
            return run()
        with callback_management_context(self):
            return run()

    def _twin(self, parameters: dict[str, Any]) -> Self:
        """Return a copy with other ``parameters``."""
        twin: Self = object.__new__(type(self))
        twin.__dict__.update(vars(self), **parameters)
        return twin

    def _fit_to(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Fit to samples, whatever was before."""

        def begin(twin: Self) -> tuple[Course, Run]:
            data = twin._training_data(X, y, sample_weight)
            return twin._course(data, twin._kernel_of(data)), twin._run

        return self._carry_out(begin)

    def _carry_out(
        self, begin: Callable[[Self], tuple[Course, Run]], parameters: dict[str, Any] | None = None
    ) -> Self:
        """Fit a copy and take all its attributes over at once: several threads may fit the same estimator.

        ``begin`` returns the course, and what runs it. An update, which changes ``parameters``, maybe none of
        them, is dropped when it is interrupted.
        """
        twin = self._twin(parameters or {})
        with interrupt.within(self.time_limit), blas_on_one_thread(), interrupt.catching() as scope:
            with interrupt.foreign:  # input is checked by others' code
                course, run = begin(twin)
                gram = twin._gram(course)
            if interrupt.pressed():  # and they, or Python itself, have swallowed what was raised there
                raise interrupt.Cancelled
            listeners = self._listeners()
            try:
                fit = run(course, Trainer(gram, course.settings, Watch(listeners), self._sharing))
            finally:
                for listener in listeners:
                    listener.close()
            is_interrupted = interrupt.pressed()
            if is_interrupted and parameters is not None:
                raise KeyboardInterrupt("The update was interrupted: the machine is as it was.")
            twin._publish(fit)
            self._take_over(twin, parameters or {})
            scope.is_answered = True  # by what is said below
        for listener in listeners:
            if isinstance(listener, TaskListener):
                listener.complete()
        self._check_finite()
        self._tell_outcome(fit, is_interrupted)
        return self

    def _take_over(self, twin: Self, parameters: dict[str, Any]) -> None:
        """Replace all attributes that a fit sets by those of the copy, and some parameters, in one step."""
        # Parameters, and what scikit-learn's callbacks keep here, belong to whoever calls `fit`.
        own = {name: value for name, value in vars(self).items() if not _is_of_fit(name)}
        self.__dict__ = {**vars(twin), **own, **parameters}

    def _listeners(self) -> list[Listener]:
        listeners: list[Listener] = []
        if self.callback is not None:
            listeners.append(CallbackListener(self.callback))
        if (shown := verbose_listener(self.verbose, self._on_terminal)) is not None:
            listeners.append(shown)
        if hasattr(self, "_skl_callbacks"):
            context = self._init_callback_context(max_subtasks=None, sequential_subtasks=False)
            context.call_on_fit_task_begin(estimator=self)
            listeners.append(TaskListener(self, context))
        return listeners

    def _on_terminal(self) -> Listener:
        """Return what shows progress on a terminal."""
        return BarListener()

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
            warnings.warn(note, stacklevel=6)
        if self.fit_status_ != 0:
            names = getattr(self, "feature_names_in_", None)
            is_gram = self._model.kernel.is_precomputed
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
        warnings.warn(message, ConvergenceWarning, stacklevel=6)


@cache
def _is_of_fit(name: str) -> bool:
    """Whether an attribute belongs to a fit, by scikit-learn's convention."""
    return (name.startswith("_") or name.endswith("_")) and "callback" not in name
