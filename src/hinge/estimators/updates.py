"""Exact updates of fitted machines: samples come and go, weights and prices change, and the machine follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_y, _num_samples, check_consistent_length

from hinge.arrays import Index, Vector
from hinge.data.collection import Collection
from hinge.data.structure import canonical
from hinge.estimators.base import KernelMachine
from hinge.estimators.compressing import Compressible
from hinge.estimators.fitting import Run
from hinge.estimators.inputs import checked_weights, collected
from hinge.kernel.kernels import Kernel
from hinge.training.course import Course, Fit
from hinge.training.data import TrainingData
from hinge.training.formulation import NuClassification
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


class Updatable(Compressible, KernelMachine):
    """What kernel machines do when their training set changes."""

    # What may be in a stream, where its first part said so.
    _expected: NDArray[Any] | None = None

    # Prices and kernel of the last fit.
    _terms: Any = None

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def add(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add samples to the training set: the machine becomes what a fit to all of them would make.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_new, n_features)
            The new samples; for ``kernel="precomputed"`` their kernel values with all samples, the new ones last:
            shape (n_new, n_old + n_new).
        y : array-like of shape (n_new,)
            Their labels, new classes among them or not, or the numbers to predict; none for `OneClassSVM`.
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
        return self._update(lambda old: _added(self, old, X, y, sample_weight))

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
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
        return self._update(lambda old: _without(self, old, indices))

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
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
        return self._update(lambda old: _reweighted(self, old, indices, weights, sample_weight))

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
        twin = object.__new__(type(self))
        twin.__dict__.update(vars(self), **parameters)
        twin._validate_params()
        return self._update(_Planned.same, parameters)

    @available_if(_takes_rows)  # type: ignore[untyped-decorator]
    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
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

    def _update(self, plan: Callable[[TrainingData], _Planned], parameters: dict[str, Any] | None = None) -> Self:
        """Carry out a plan, which says what becomes of the training set."""

        def begin(twin: Any) -> tuple[Course, Run]:
            fit, terms = _fit_of(self), twin._current_terms()
            if not _are_same(terms[1], self._terms[1]):
                raise ValueError(
                    f"the kernel of this {type(self).__name__} is not what it was at the fit: fit again, an "
                    "update cannot follow it"
                )
            planned = plan(fit.formulation.data)
            after = twin._formulation(planned.after)
            union = after if planned.union is planned.after else twin._formulation(planned.union)
            course = twin._course_of(union, fit.model.kernel)
            change = Update(fit, union, after, planned.kept, _are_same(terms[0], self._terms[0]))
            return course, lambda course, trainer: _run(twin, change, course, trainer)

        return self._carry_out(begin, parameters or {})


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


# ---------------------------------------------------------------------- what becomes of the training set


class _Planned:
    """A training set after an update, and the union of it with the one before.

    Parameters
    ----------
    union, after : TrainingData
        Both; samples of the union that are gone have weight 0.
    kept : int64 array
        Which samples of the union are in the new training set.
    """

    def __init__(self, union: TrainingData, after: TrainingData, kept: Index) -> None:
        self.union, self.after, self.kept = union, after, kept

    @classmethod
    def same(cls, data: TrainingData) -> _Planned:
        """Return the training set as it is."""
        return cls(data, data, np.arange(len(data.places)))


def _added(machine: Any, old: TrainingData, X: Any, y: Any, sample_weight: Any) -> _Planned:
    """Return the training set with new samples at its end."""
    n_old, is_gram = old.shape[0], machine.kernel == "precomputed"
    if old.y is not None and y is None:
        raise ValueError(f"This {type(machine).__name__} estimator requires y to be passed, but y is None.")
    rows = _checked_rows(machine, X, n_old)
    n_new = _num_samples(rows)
    weights = np.ones(n_new) if sample_weight is None else checked_weights(sample_weight, rows)
    if old.y is None:
        targets = None
    else:
        check_consistent_length(rows, y)
        is_plain = machine._is_plain_target(y)
        checked = y if is_plain else _check_y(y, y_numeric=old.y.dtype.kind == "f", estimator=machine)
        targets = checked if is_plain else machine._check_targets(checked)
        if (targets.dtype.kind in "biuf") != (old.y.dtype.kind in "biuf"):
            raise ValueError(
                f"y has labels like {targets[0]!r}, the machine was trained with some like {old.y[0]!r}"
            )
        targets = np.concatenate([old.y, targets[weights > 0]])
    counted = np.flatnonzero(weights > 0)
    if is_gram:
        values = _with_border(old.X, np.asarray(rows), old.places, counted, n_old)
    else:
        values = _stacked(old.X, rows[counted] if len(counted) < n_new else rows)
    shape = (n_old + n_new, n_old + n_new) if is_gram else (n_old + n_new, *old.shape[1:])
    data = TrainingData(
        values, targets, np.concatenate([old.weights, weights[counted]]),
        np.concatenate([old.places, n_old + counted]), shape,
    )  # fmt: skip
    return _Planned.same(data)


def _checked_rows(machine: Any, X: Any, n_old: int) -> Any:
    """Check and convert new samples."""
    if callable(machine.kernel):
        return collected(X)
    if machine.kernel != "precomputed":
        return machine._check_rows(canonical(X) if sp.issparse(X) else X, reset=False)
    if sp.issparse(X):
        raise TypeError("Sparse precomputed kernels are not supported: pass K.toarray().")
    values = np.asarray(X, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] != n_old + len(values) or not np.isfinite(values).all():
        raise ValueError(
            f"X must hold finite kernel values of the new samples with the {n_old} samples of the training set "
            f"and then with each other, {n_old} columns and one for each row; its shape is {values.shape}"
        )
    return values


def _with_border(K: Any, rows: Any, places: Index, counted: Index, n_old: int) -> Any:
    """Return a kernel matrix with new rows and columns."""
    rows = rows[counted]
    beside, between = rows[:, places], rows[:, n_old + counted]
    return np.block([[K, beside.T], [beside, between]])


def _stacked(old: Any, new: Any) -> Any:
    """Return old and new samples, in the form of the old."""
    if isinstance(old, Collection):
        return Collection(_joined(old.selected(), new.selected()))
    if sp.issparse(old):
        new = canonical(type(old)(new))
        pairs = (old.data, new.data), (old.indices, new.indices), (old.indptr, new.indptr[1:] + old.indptr[-1])
        return type(old)(
            tuple(np.concatenate(pair) for pair in pairs), shape=(old.shape[0] + new.shape[0], old.shape[1])
        )
    return np.vstack([old, new.toarray() if sp.issparse(new) else new])


def _joined(old: Any, new: Any) -> Any:
    """Return a container of the samples of two."""
    if hasattr(old, "iloc"):
        import pandas as pd

        return pd.concat([old, new], ignore_index=True)
    if sp.issparse(old):
        return sp.vstack([old, new], format="csr")
    if hasattr(old, "shape"):
        return np.concatenate([old, new])
    return [*old, *new]


def _numbers(indices: Any, n: int) -> Index:
    """Return the numbers of samples that a user means."""
    found = np.atleast_1d(np.asarray(indices))
    if found.dtype == bool:
        if found.shape != (n,):
            raise ValueError(f"a mask of samples must have a value for each of the {n}, got shape {found.shape}")
        return np.flatnonzero(found)
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise ValueError(f"samples are named by their numbers, got {indices!r}")
    found = found.astype(np.int64)
    wrong = found[(found < 0) | (found >= n)]
    if len(wrong):
        raise IndexError(
            f"there is no sample {wrong[0]}: the training set has {n} now, numbered from 0; the numbers of those "
            "behind a forgotten one have changed"
        )
    return found


def _without(machine: Any, old: TrainingData, indices: Any) -> _Planned:
    """Return the training set without some samples, whose numbers the next ones take."""
    gone = np.unique(_numbers(indices, old.shape[0]))
    n_left = old.shape[0] - len(gone)
    shape = (n_left, n_left) if machine.kernel == "precomputed" else (n_left, *old.shape[1:])
    return _left(machine, old, np.where(np.isin(old.places, gone), 0.0, old.weights), gone, shape)


def _reweighted(machine: Any, old: TrainingData, indices: Any, weights: Any, sample_weight: Any) -> _Planned:
    """Return the training set with other weights."""
    n = old.shape[0]
    if sample_weight is not None:
        if indices is not None or weights is not None:
            raise ValueError("pass indices and weights, or sample_weight for all samples")
        indices, weights = np.arange(n), sample_weight
    if indices is None or weights is None:
        raise ValueError("pass the numbers of samples and their weights, or sample_weight for all samples")
    numbers, values = _numbers(indices, n), np.asarray(weights, dtype=np.float64)
    if values.shape not in ((), numbers.shape):
        raise ValueError(
            f"weights must be one number or one for each of {len(numbers)} samples, got {values.shape}"
        )
    if not (np.isfinite(values) & (values >= 0)).all():
        raise ValueError("weights must be finite and not negative; weight 0 leaves a sample out")
    whole = np.zeros(n)
    whole[old.places] = old.weights
    whole[numbers] = values
    missing = np.flatnonzero(whole > 0)
    missing = missing[~np.isin(missing, old.places)]
    if len(missing):
        raise ValueError(
            f"sample {missing[0]} had the weight 0, and such samples are not kept: add it, instead of giving it a "
            "weight again"
        )
    return _left(machine, old, whole[old.places], np.empty(0, np.int64), old.shape)


def _left(machine: Any, old: TrainingData, weights: Vector, gone: Index, shape: tuple[int, ...]) -> _Planned:
    """Return what is left of a training set where some weights have become 0."""
    is_left = weights > 0
    kept = np.flatnonzero(is_left)
    if not len(kept):
        raise ValueError("no sample would be left: at least one must count")
    if len(kept) == len(weights) and not len(gone):
        return _Planned.same(TrainingData(old.X, old.y, weights, old.places, shape))
    targets = old.y
    if hasattr(machine, "classes_"):
        targets = _with_classes_left(old, is_left)
    union = TrainingData(old.X, targets, weights, old.places, old.shape)
    rows = (
        old.X
        if len(kept) == len(weights)
        else old.X[np.ix_(kept, kept) if machine.kernel == "precomputed" else kept]
    )
    places = old.places[kept]
    places = places - np.searchsorted(gone, places)
    after = TrainingData(rows, None if old.y is None else old.y[kept], weights[kept], places, shape)
    return _Planned(union, after, kept)


def _with_classes_left(old: TrainingData, is_left: NDArray[np.bool_]) -> Any:
    """Return labels of which none is of a class that is gone: its samples, which do not count, get another."""
    labels, codes = old.classes
    counts = np.bincount(codes[is_left], minlength=len(labels))
    if np.count_nonzero(counts) < 2:
        lost = labels[counts == 0][:1]
        last = old.places[~is_left & (old.y == lost)]
        raise ValueError(
            f"sample {last[-1]} is the last one of class {lost.tolist()[0]!r}, and one class alone leaves nothing "
            "to tell apart: keep it, or add samples of another class first"
        )
    if (counts > 0).all():
        return old.y
    return np.where(counts[codes] == 0, labels[np.argmax(counts > 0)], old.y)


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
