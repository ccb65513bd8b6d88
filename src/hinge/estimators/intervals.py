"""Certified predictions: what the exact optimum would answer, as far as a fit proves it, converged or stopped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from hinge.arrays import Vector
from hinge.data.collection import Collection
from hinge.data.storage import store
from hinge.dual.enclosure import Enclosure, enclose
from hinge.estimators.inputs import thread_count
from hinge.kernel.gram import Gram
from hinge.kernel.kernels import Kernel
from hinge.kernel.rounding import UNIT
from hinge.kernel.source import Source
from hinge.model import Model, self_values
from hinge.settings import Settings
from hinge.training.course import Course, Fit, Past
from hinge.training.formulation import NuClassification
from hinge.training.machine import half_margin
from hinge.training.trainer import Trainer

# Tiles of predictions are summed in another order than those of training, for which rounding is bounded.
_OTHER_ORDER = 4.0

# Samples whose mean decisions are seen from.
_ANCHORS = 128

# Tolerances at which a fit that stops by its labels looks at them, before its own.
_STAGES = (0.1, 0.01, 1e-3, 1e-4, 1e-5)


class _Proof(NamedTuple):
    """Where the exact optimum of a machine is; whether decisions are divided by half the margin, and its size.

    Those of a sphere are divided by one half.
    """

    enclosure: Enclosure
    is_divided: bool
    scale: float


class Certified:
    """What kernel machines say of the exact optimum."""

    # The last fit, with the samples that it counted, as they were given; copies and files are without it.
    _fitted: Fit | None = None

    def decision_interval(self, X: Any, diagonal: Any = None) -> tuple[Vector, Vector]:
        """Return between which values the decision of the exact optimum is, of every sample.

        The optimum is what a fit would come to without tolerance, limits and rounding. This holds for any fit,
        converged or stopped, and for every optimum where there are several. The intervals are as narrow as the
        fit is exact: they shrink with the root of the duality gap.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The samples; for ``kernel="precomputed"`` their kernel values with all training samples.
        diagonal : array-like of shape (n_samples,), optional
            k(x, x) of every sample; needed for ``kernel="precomputed"``, and for nothing else.

        Returns
        -------
        lower, upper : arrays
            Of the same shape as `decision_function` (of regressions: `predict`) returns. Infinite where nothing is
            known.

        Raises
        ------
        ValueError
            The kernel is not positive semi-definite, so that there is no such bound. Of precomputed kernels and of
            functions it is taken for granted that they are.

        See Also
        --------
        certificate : Violation and duality gap of a fit.

        Notes
        -----
        The first call computes a residual of all training samples, about the work of a good training run.

        Examples
        --------
        >>> from sklearn.datasets import make_moons
        >>> from hinge import SVR
        >>> X, y = make_moons(200, noise=0.2, random_state=0)
        >>> machine = SVR(tol=0.1).fit(X, y)
        >>> lower, upper = machine.decision_interval(X)
        >>> bool((lower <= machine.predict(X)).all() and (machine.predict(X) <= upper).all())
        True
        """
        _, lower, upper = self._machine_intervals(X, diagonal)
        return self._shown_interval(lower, upper)

    def _shown_interval(self, lower: Vector, upper: Vector) -> tuple[Vector, Vector]:
        """Return intervals of the shape of decisions, given those of all machines."""
        return lower[:, 0], upper[:, 0]

    def _machine_intervals(self: Any, X: Any, diagonal: Any) -> tuple[Vector, Vector, Vector]:
        """Return the decisions of every machine, and between which values the exact ones are, one column each."""
        self._check_fitted()
        threads = thread_count(self.n_jobs)
        if "_proofs" not in vars(self):
            self._proofs = _proofs_of(self._last_fit(), threads)
        X, model, proofs = self._queries(X), self._model, self._proofs
        sums = _Sums(X.astype(np.float64) if getattr(X, "dtype", None) == np.float32 else X, threads)
        values, errors = sums.of(model)
        own = lengths = self_values(sums.X, model.kernel, diagonal)
        if proofs.anchor is None:
            lengths = np.sqrt(lengths) * (1 + 8 * UNIT)
        else:
            seen, (error,) = sums.of(proofs.anchor.mean)
            lengths = proofs.anchor.distances(lengths, seen[:, 0], error)
        ends = [
            _ends(proof, values[:, k], lengths, error)
            for k, (proof, error) in enumerate(zip(proofs.machines, errors, strict=True))
        ]
        lower, upper = zip(*ends, strict=True)
        decisions, low, high = values + model.intercepts, np.column_stack(lower), np.column_stack(upper)
        if model.own == 0:
            return decisions, low, high
        n_terms = 8 + (X.shape[1] if model.kernel.has_features else 0)
        error = n_terms * model.kernel.amplification * UNIT * own[:, None]
        return decisions + model.own * own[:, None], *_shifted(low, high, model.own * own[:, None], error)

    def _last_fit(self) -> Fit:
        if self._fitted is None:
            raise NotFittedError(
                f"this {type(self).__name__} is without its training samples, as those are that come from a file "
                "or are copied: fit it again"
            )
        return self._fitted


class CertifiedLabels(Certified):
    """What kernel machines with labels say of the exact optimum's."""

    def predict_certain(self: Any, X: Any, diagonal: Any = None) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return the label of each sample, and whether the exact optimum is proved to answer the same.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The samples; for ``kernel="precomputed"`` their kernel values with all training samples.
        diagonal : array-like of shape (n_samples,), optional
            k(x, x) of every sample; needed for ``kernel="precomputed"``, and for nothing else.

        Returns
        -------
        labels : array of shape (n_samples,)
            What `predict` answers.
        is_certain : bool array of shape (n_samples,)
            Whether no further step of training can change the label: of many classes, whether no votes that are
            still open can.

        See Also
        --------
        decision_interval : Where the decisions of the exact optimum are.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from hinge import SVC
        >>> X, y = load_iris(return_X_y=True)
        >>> labels, is_certain = SVC().fit(X, y).predict_certain(X)
        >>> int(is_certain.sum()), len(X)
        (150, 150)
        """
        self._check_fitted()
        if self._calibrates:
            raise ValueError("with probability=True labels follow from probabilities, of which nothing is certain")
        decisions, lower, upper = self._machine_intervals(X, diagonal)
        return self._answers(decisions), self._is_certain(decisions, lower, upper)

    def _is_certain(self, decisions: Vector, lower: Vector, upper: Vector) -> NDArray[np.bool_]:
        """Whether all decisions between ``lower`` and ``upper`` have the same label as ``decisions``."""
        raise NotImplementedError

    def _run(self: Any, course: Course, trainer: Trainer) -> Fit:
        """Make the fit; where labels stop it, in stages of finer and finer tolerance."""
        stop = self.stop
        if isinstance(stop, str) and stop == "tolerance":
            return course.run(trainer)
        if self._calibrates:
            raise ValueError("stop by labels and probability=True exclude each other: probabilities never settle")
        _check_positive(course.kernel)
        queries, diagonal = stop, None
        if isinstance(stop, str):
            data = course.formulation.data
            queries, diagonal = data.X, trainer.gram.diagonal if course.kernel.is_precomputed else None
        elif course.kernel.is_precomputed:
            raise ValueError("stop=samples needs features; kernel='precomputed' has stop='labels' only")
        fit: Any = None
        for settings in _stages(course.settings):
            stage = Trainer(trainer.gram, settings, trainer.watch, trainer.sharing)
            before, fit = fit, replace(course, settings=settings).run(stage)
            if before is not None:
                fit = replace(fit, report=fit.report.after(before.report))
            if settings.tol == course.settings.tol or not fit.report.converged or trainer.watch.is_stopped:
                break
            self._publish(fit)
            if self._is_certain(*self._machine_intervals(queries, diagonal)).all():
                break
            course = replace(course, past=Past.of(fit))
        return fit


def _stages(settings: Settings) -> Iterator[Settings]:
    """The tolerances of a fit that looks at labels on its way; the last one is its own."""
    for tol in _STAGES:
        if tol > settings.tol:
            yield replace(settings, tol=tol)
    yield settings


def surely_largest(chosen: NDArray[np.intp], lower: Vector, upper: Vector) -> NDArray[np.bool_]:
    """Whether the class ``chosen`` is the first with the largest score, wherever scores are between the two.

    Examples
    --------
    >>> surely_largest(np.array([0, 1]), np.array([[2, 1], [0, 1]]), np.array([[2, 2], [1, 2]]))
    array([ True, False])
    """
    rows = np.arange(len(chosen))
    least = lower[rows, chosen][:, None]
    order = np.arange(lower.shape[1])
    beaten = (least > upper) | ((least == upper) & (chosen[:, None] < order))
    beaten[rows, chosen] = True
    return np.asarray(beaten.all(axis=1))


# ---------------------------------------------------------------------- from enclosures to decisions


def _check_positive(kernel: Kernel) -> None:
    if kernel.has_features and not kernel.is_positive:
        raise ValueError(
            f"the {kernel.label} kernel with these parameters is not positive semi-definite: what the gap proves "
            "of a decision holds for kernels that are"
        )


class _Anchor(NamedTuple):
    """Where decisions are seen from in feature space: the mean of some samples, and its squared length."""

    mean: Model
    square: float

    @classmethod
    def of(cls, fit: Fit, gram: Gram) -> tuple[_Anchor, Vector]:
        """Return an anchor among the samples of a fit, and the distance of every sample from it."""
        data, kernel = fit.formulation.data, fit.model.kernel
        chosen = np.unique(np.linspace(0, gram.n - 1, min(gram.n, _ANCHORS)).astype(np.int64))
        shares = np.full(len(chosen), 1.0 / len(chosen))
        vectors = np.empty((len(chosen), 0)) if kernel.is_precomputed else data.X[chosen]
        mean = Model(kernel, vectors, data.places[chosen], shares[None, :], np.zeros(1))
        everywhere = np.zeros(gram.n)
        everywhere[chosen] = shares
        products, errors = gram.product(everywhere), gram.rounding(everywhere)
        square = float(shares @ (products + errors)[chosen]) * (1 + 256 * UNIT)
        anchor = cls(mean, square)
        return anchor, anchor.distances(gram.diagonal, products, errors)

    def distances(self, diagonal: Vector, products: Vector, errors: Vector) -> Vector:
        """Return how far samples are away at most, by products with the anchor that are known to within errors."""
        squares = diagonal - 2 * products + self.square
        slack = 2 * errors + 16 * UNIT * (np.abs(diagonal) + 2 * np.abs(products) + abs(self.square))
        return np.sqrt(np.maximum(squares + slack, 0.0)) * (1 + 8 * UNIT)


class _Proofs(NamedTuple):
    """Where the exact optimum of every machine is, and where that is seen from; None for the origin."""

    machines: list[_Proof]
    anchor: _Anchor | None


def _proofs_of(fit: Fit, threads: int) -> _Proofs:
    """Enclose the exact optimum of every machine of a fit."""
    formulation, kernel = fit.formulation, fit.model.kernel
    _check_positive(kernel)
    tasks = formulation.tasks()
    if isinstance(formulation, NuClassification) and formulation.has_prices:
        raise ValueError("class weights make nu infeasible: the problem of such machines is not known exactly")
    gram = Gram(formulation.data.X, kernel, precision="double", threads=threads)
    anchor, lengths = _Anchor.of(fit, gram) if tasks[0].problem.n_groups else (None, gram.lengths)
    proofs = []
    for task, machine in zip(tasks, fit.machines, strict=True):
        if len(machine.samples) != len(task.samples):  # the fit did not come to it
            proofs.append(_Proof(Enclosure.unknown(task.problem.n_groups), task.divide, 1.0))
            continue
        whole = len(task.samples) == gram.n and np.array_equal(task.samples, np.arange(gram.n))
        part = gram if whole else gram.part(task.samples, threads=gram.team.size, cache_bytes=gram.cache_bytes)
        half = half_margin(machine.solution) if task.divide else 0.5 if task.is_sphere else 1.0
        enclosure = enclose(task.problem, part, machine.solution.beta, lengths[task.samples])
        proofs.append(_Proof(enclosure, task.divide, half if half > 0 else 1.0))
    return _Proofs(proofs, anchor)


class _Sums:
    """Sums over the support vectors of a model, with bounds on their rounding; X is double."""

    def __init__(self, X: Any, threads: int) -> None:
        self.X, self._threads = X, threads

    def of(self, model: Model) -> tuple[Vector, list[Vector]]:
        """Return the sums of every machine, one column each, and a bound on the error of each column."""
        sums = replace(model, intercepts=np.zeros(len(model.intercepts)), own=0.0)
        return sums.decide(self.X, threads=self._threads), list(self._errors(model))

    def _errors(self, model: Model) -> Iterator[Vector]:
        kernel, n = model.kernel, len(model.support)
        rows = model.coefficients.toarray() if sp.issparse(model.coefficients) else model.coefficients
        if not kernel.has_features:  # the values are taken as they are: only their sums are rounded
            sizes = self._largest(model)
            for row in rows:
                yield np.full(self.X.shape[0], (n + 8) * UNIT * float(np.abs(row) @ sizes))
            return
        samples = store(_stacked(model.support_vectors, self.X), kernel)
        source, padded = Source(samples, kernel, kernel.statistic, kernel.of_self(samples)), np.zeros(samples.n)
        for row in rows:
            padded[:n] = row
            yield _OTHER_ORDER * source.rounding(padded, False, None)[n:]

    def _largest(self, model: Model) -> Vector:
        """The largest kernel value of each support vector with a row of X."""
        if model.kernel.is_precomputed:
            return np.asarray(np.abs(self.X[:, model.support]).max(axis=0, initial=0.0))
        values = model.kernel.of_self(store(Collection.of(model.support_vectors), model.kernel, budget=0))
        return np.sqrt(values * float(self_values(self.X, model.kernel).max(initial=0.0)))


def _stacked(vectors: Any, X: Any) -> Any:
    if sp.issparse(vectors) or sp.issparse(X):
        return sp.vstack([sp.csr_array(vectors), sp.csr_array(X)], format="csr")
    return np.vstack([np.asarray(vectors, np.float64), X])


def _ends(proof: _Proof, centre: Vector, lengths: Vector, rounding: Vector) -> tuple[Vector, Vector]:
    """Return between which values a machine's decisions are; ``centre`` are its sums without intercept."""
    enclosure = proof.enclosure
    doubt = (rounding + 8 * UNIT * np.abs(centre)) * proof.scale
    with np.errstate(invalid="ignore"):
        reach = np.where(lengths > 0, enclosure.radius * lengths, 0.0) + doubt
    n_groups = max(len(enclosure.lower), 1)
    low = centre * proof.scale - reach + float(enclosure.lower.sum()) / n_groups
    high = centre * proof.scale + reach + float(enclosure.upper.sum()) / n_groups
    slack = 8 * UNIT * (np.abs(low) + np.abs(high))
    low, high = np.where(np.isnan(slack), -np.inf, low - slack), np.where(np.isnan(slack), np.inf, high + slack)
    return _divided(low, high, enclosure) if proof.is_divided else (low / proof.scale, high / proof.scale)


def _shifted(low: Vector, high: Vector, shift: Vector, error: Vector) -> tuple[Vector, Vector]:
    """Add what is known to within ``error``."""
    lower, upper = low + shift, high + shift
    return lower - error - UNIT * np.abs(lower), upper + error + UNIT * np.abs(upper)


def _divided(low: Vector, high: Vector, enclosure: Enclosure) -> tuple[Vector, Vector]:
    """Divide by half the margin, which is in an interval itself; where it is not above 0 nothing is divided."""
    least = float(enclosure.lower[1] - enclosure.upper[0]) / 2 * (1 - 8 * UNIT)
    most = float(enclosure.upper[1] - enclosure.lower[0]) / 2 * (1 + 8 * UNIT)
    if not least > 0:
        least, most = 0.0, max(most, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        lower = np.where(low > 0, low / most, np.where(low < 0, low / least, 0.0))
        upper = np.where(high < 0, high / most, np.where(high > 0, high / least, 0.0))
    lower, upper = lower * (1 - 8 * UNIT * np.sign(lower)), upper * (1 + 8 * UNIT * np.sign(upper))
    return np.where(np.isnan(lower), -np.inf, lower), np.where(np.isnan(upper), np.inf, upper)
