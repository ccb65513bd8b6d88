"""Exact updates of fitted machines: samples come and go, weights and prices change, and the machine follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if

from hinge.estimators.base import KernelMachine
from hinge.estimators.fitting import Run
from hinge.estimators.training_sets import Planned, added, reweighted, without
from hinge.kernel.kernels import Kernel
from hinge.training.course import Course, Fit
from hinge.training.data import TrainingData
from hinge.training.formulation import Formulation, NuClassification
from hinge.training.trainer import Trainer
from hinge.training.update import Update, update

# Parameters that an update may change, those that it follows when they were changed before, and those that it
# cannot follow: other kernel values are another fit.
_CHANGEABLE = ("C", "nu", "epsilon", "class_weight", "tol")
_FOLLOWED = (*_CHANGEABLE, "multi_class", "fit_intercept", "loss")
_OF_KERNEL = ("kernel", "degree", "gamma", "coef0")


def _takes_rows(machine: Any) -> bool:
    if isinstance(machine.kernel, str) and machine.kernel == "precomputed":
        raise AttributeError(
            "partial_fit is not available with kernel='precomputed': new samples come with their kernel values "
            "with the old ones, which `add` takes"
        )
    return True


class Updatable(KernelMachine):
    """What kernel machines do when their training set changes."""

    # What may be in a stream, where its first part said so.
    _expected: NDArray[Any] | None = None

    # Prices and kernel of the last fit.
    _terms: Any = None

    def add(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add samples to the training set: the machine becomes what a fit to all of them would make.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_new, n_features)
            The new samples; for ``kernel="precomputed"`` their kernel values with all samples, the new ones last:
            shape (n_new, n_old + n_new).
        y : array-like of shape (n_new,)
            Their labels, new classes among them or not, or the numbers to predict; novelty detectors have none.
        sample_weight : array-like of shape (n_new,), optional
            Their weights.

        Returns
        -------
        self
            The machine, certified like any fit. The new samples have the numbers that follow the old ones. Where
            the update fails or is interrupted the machine stays as it was; a limit leaves the best point so far,
            with a ConvergenceWarning.

        See Also
        --------
        forget : Take samples out again.
        partial_fit : The same in scikit-learn's words.

        Notes
        -----
        γ stays what it was at the fit: ``gamma="scale"`` and ``"auto"`` are not computed anew, because another γ
        is another kernel. The training samples are referenced, not copied: do not change them in place.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from hinge import SVC
        >>> X, y = load_iris(return_X_y=True)
        >>> machine = SVC(gamma=0.5).fit(X[:120], y[:120]).add(X[120:], y[120:])
        >>> machine.certificate(X, y).proves(1e-3)
        True
        """
        return self._update(lambda old: added(self, old, X, y, sample_weight))

    def forget(self, indices: Any) -> Self:
        """Take samples out of the training set: the machine becomes what it would be had it never seen them.

        Parameters
        ----------
        indices : array-like of int, or of bool with a value for each sample
            Numbers of the samples in the training set as it is now, as `support_` counts them. Those that stay
            move up.

        Returns
        -------
        self
            The machine, certified like any fit; nothing in it refers to the samples any more.

        Raises
        ------
        IndexError
            There is no such sample.
        ValueError
            Fewer than two classes would be left, or no sample.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from hinge import SVC
        >>> X, y = load_iris(return_X_y=True)
        >>> machine = SVC(gamma=0.5).fit(X, y).forget([0, 70])
        >>> machine.shape_fit_
        (148, 4)
        """
        return self._update(lambda old: without(self, old, indices))

    def reweight(self, indices: Any = None, weights: Any = None, *, sample_weight: Any = None) -> Self:
        """Give samples other weights.

        Parameters
        ----------
        indices : array-like of int, or of bool with a value for each sample
            Numbers of the samples in the training set as it is now.
        weights : float or array-like
            Their weights, or one for all of them. Weight 0 leaves a sample out, but its number stays.
        sample_weight : array-like of shape (n_samples,), optional
            Instead of the two, the weights of all samples.

        Returns
        -------
        self
            The machine, certified like any fit.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from hinge import SVC
        >>> X, y = load_iris(return_X_y=True)
        >>> machine = SVC(gamma=0.5).fit(X, y).reweight([0, 70], 2.5)
        >>> machine.reweight(sample_weight=[1.0] * 150).certificate(X, y).proves(1e-3)
        True
        """
        return self._update(lambda old: reweighted(self, old, indices, weights, sample_weight))

    def change(self, **parameters: Any) -> Self:
        """Change prices and go on from where the machine is.

        Parameters
        ----------
        **parameters
            C, nu, epsilon, class_weight or tol, as far as the machine has them. Parameters of the kernel need a
            new fit.

        Returns
        -------
        self
            The machine, certified like any fit, with these parameters.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from hinge import SVC
        >>> X, y = load_iris(return_X_y=True)
        >>> SVC(gamma=0.5).fit(X, y).change(C=10.0).certificate(X, y).proves(1e-3)
        True
        """
        allowed = [name for name in _CHANGEABLE if name in self.get_params(deep=False)]
        for name in parameters:
            if name not in allowed:
                raise ValueError(
                    f"{name} cannot be changed in a fitted {type(self).__name__}: set it and fit again. "
                    f"What can be changed: {', '.join(allowed)}"
                )
        return self._update(Planned.same, parameters)

    @available_if(_takes_rows)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to the samples of all calls together: the first call fits, the others `add`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_new, n_features)
            The next samples.
        y : array-like of shape (n_new,)
            Their targets.
        sample_weight : array-like of shape (n_new,), optional
            Their weights.

        Returns
        -------
        self
            The machine that a fit to all samples so far would make. It keeps all of them.
        """
        if "_model" in vars(self):
            return self.add(X, y, sample_weight)  # type: ignore[no-any-return]
        return self._fit(X, y, sample_weight)

    # ------------------------------------------------------------------ how

    def _publish(self, fit: Fit) -> None:
        super()._publish(fit)
        self._terms = self._current_terms()

    def _course(self, data: TrainingData, kernel: Kernel) -> Course:
        self._expected = None
        return super()._course(data, kernel)

    def _current_terms(self: Any) -> tuple[list[Any], list[Any]]:
        """Return the parameters that a fit depends on: those that an update follows, and those of the kernel."""
        known = vars(self)
        return [known.get(name) for name in _FOLLOWED], [known.get(name) for name in _OF_KERNEL]

    def _formulation_by(self, data: TrainingData, kernel: Kernel) -> Formulation:
        """Return what a fit to these samples is about, by a kernel that is known."""
        return self._formulation(data)

    def _update(self, plan: Callable[[TrainingData], Planned], parameters: dict[str, Any] | None = None) -> Self:
        """Carry out a plan, which says what becomes of the training set."""

        def begin(twin: Any) -> tuple[Course, Run]:
            fit, terms = _fit_of(self), twin._current_terms()
            if not _are_same(terms[1], self._terms[1]):
                raise ValueError(
                    f"the kernel of this {type(self).__name__} is not what it was at the fit: fit again, an "
                    "update cannot follow it"
                )
            planned = plan(fit.formulation.data)
            after = twin._formulation_by(planned.after, fit.model.kernel)
            union = after
            if planned.union is not planned.after:
                union = twin._formulation_by(planned.union, fit.model.kernel)
            course = twin._course_of(union, fit.model.kernel)
            change = Update(fit, union, after, planned.kept, _are_same(terms[0], self._terms[0]))
            return course, lambda course, trainer: _run(twin, change, course, trainer)

        parameters = parameters or {}
        return self._under_checks(lambda: self._carry_out(begin, parameters), parameters)


class UpdatableClassifier(Updatable):
    """What classifiers do when their training set changes."""

    @available_if(_takes_rows)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Fit to the samples of all calls together: the first call fits, the others `add`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_new, n_features)
            The next samples.
        y : array-like of shape (n_new,)
            Their labels. The first call needs two classes at least.
        classes : array-like, optional
            All labels that may come, in the first call; others are an error then. `classes_` are those that have
            come so far.
        sample_weight : array-like of shape (n_new,), optional
            Their weights.

        Returns
        -------
        self
            The machine that a fit to all samples so far would make. It keeps all of them.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from hinge import SVC
        >>> X, y = load_iris(return_X_y=True)
        >>> machine = SVC(gamma=0.5)
        >>> for start in range(3):
        ...     machine = machine.partial_fit(X[start::3], y[start::3], classes=[0, 1, 2])
        >>> machine.shape_fit_
        (150, 4)
        """
        expected = _checked_expectation(self, y, classes)
        super().partial_fit(X, y, sample_weight)
        self._expected = expected
        return self


def _run(machine: Any, change: Update, course: Course, trainer: Trainer) -> Fit:
    """Make the fit of a changed training set."""
    after = course if change.after is change.union else machine._course_of(change.after, course.kernel)
    prices = [
        form.has_prices for form in (change.union, change.before.formulation) if isinstance(form, NuClassification)
    ]
    if not (any(prices) or machine._calibrates):
        return update(change, course, trainer)
    gram = trainer.gram if after is course else machine._gram(after)
    own = Trainer(gram, after.settings, trainer.watch, trainer.sharing)
    if any(prices):  # such machines are trained twice, with prices that only the first of them tells
        return after.run(own)
    return after.calibrated(update(change, course, trainer), own)


def _are_same(first: list[Any], second: list[Any]) -> bool:
    """Whether parameters are equal, or the same objects."""
    return all(
        a is b or (isinstance(a, str | int | float | dict) and type(a) is type(b) and a == b)
        for a, b in zip(first, second, strict=True)
    )


def _fit_of(machine: Any) -> Fit:
    machine._check_fitted()
    if machine._fitted is None:
        raise NotFittedError(
            f"this {type(machine).__name__} is without its training samples, as those are that come from a file, "
            "a pickle or a copy: fit it to them once, here, and update it then"
        )
    fit: Fit = machine._fitted
    if fit.formulation.data.y is not None and fit.formulation.data.y.ndim > 1:
        raise ValueError(
            f"updates are for one target: fit this {type(machine).__name__} again, or each column of y by itself"
        )
    return fit


def _checked_expectation(machine: Any, y: Any, classes: Any) -> NDArray[Any]:
    """Return the classes that may come in a stream, having looked whether those of ``y`` are among them."""
    expected = machine._expected if classes is None else np.unique(np.asarray(classes))
    if machine._expected is not None and classes is not None and not np.array_equal(expected, machine._expected):
        raise ValueError(f"classes={classes!r} are not those of the first call, {machine._expected.tolist()!r}")
    if expected is not None and len(others := np.setdiff1d(np.asarray(y), expected)):
        raise ValueError(
            f"y has the label {others.tolist()[0]!r}, which is not among the classes {expected.tolist()!r}"
        )
    return expected
