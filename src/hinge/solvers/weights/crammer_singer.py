"""All classes in one linear machine (Crammer & Singer 2001), by descent a sample at a time (Keerthi et al. 2008).

With a weight vector w_m for each class and e_im = 0 for a sample's own class y_i, 1 for the others, the dual is

    minimise  ½ Σ_m ‖w_m‖² + Σ e_im α_im     with   w_m = Σ_i α_im x_i,   Σ_m α_im = 0,   α_im ≤ C_i [m = y_i].

The variables of one sample are a problem of their own whose matrix is k(x, x) times the identity: it is solved
exactly by sorting. With g_im = w_m·x_i + e_im, a point is optimal when max_m g_im ≤ g_im wherever α_im is below
its bound; what this fails by is the *violation*. The primal objective is ½ Σ ‖w_m‖² + Σ C_i max_m (g_im − g_iy).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hinge.arrays import Floats, Index, Vector
from hinge.kernel.gram import Gram
from hinge.kernel.rounding import UNIT
from hinge.runtime.jit import borrowing, compiled, inlined
from hinge.solvers.state import FELT
from hinge.solvers.weights.descent import SEED, shuffle


@dataclass(frozen=True, eq=False)
class ClassProblem:
    """The samples of all classes in one problem.

    Parameters
    ----------
    codes : int64 array of shape (n_samples,)
        Class number of each sample.
    costs : array of shape (n_samples,)
        C of each sample.
    n_classes : int
        Number of classes.
    """

    codes: Index
    costs: Vector
    n_classes: int


@dataclass(frozen=True)
class Standing:
    """What a point of a `ClassProblem` proves, from its variables alone.

    Attributes
    ----------
    violation : float
        Largest violation of the optimality conditions.
    rounding : float
        Bound on how much larger the true one may be.
    objective : float
        The dual objective, which is minimised.
    gap : float
        Primal minus dual objective.
    disagreement : float
        What of the gap is there because weights are not those of the variables to the last digit.
    """

    violation: float
    rounding: float
    objective: float
    gap: float
    disagreement: float


class ClassDescent:
    """A point on its way to the optimum.

    Parameters
    ----------
    problem : ClassProblem
        What is solved.
    gram : Gram
        Linear kernel values of the samples.
    accuracy : float
        How exactly the violation must be known: where rounding may be felt beside that, twice the digits are
        computed. By default they always are.

    Attributes
    ----------
    alpha : array of shape (n_samples, n_classes)
        The variables.
    weights : array of shape (n_features, n_classes)
        Weight vectors, one column per class: those of the variables, or of their own
        (`hinge.solvers.weights.apart`).
    order : int64 array
        The samples that are not set aside.
    distance : float
        Largest violation that the last sweep met.

    Examples
    --------
    >>> from hinge import Gram, Kernel
    >>> gram = Gram(np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]), Kernel("linear"))
    >>> descent = ClassDescent(ClassProblem(np.arange(3), np.ones(3), 3), gram)
    >>> while descent.distance > 1e-9:
    ...     descent.sweep()
    >>> descent.standing().gap < 1e-8
    True
    """

    def __init__(self, problem: ClassProblem, gram: Gram, accuracy: float = 0.0) -> None:
        self.problem, self.gram, self.accuracy = problem, gram, accuracy
        self._rows = ClassRows(*gram.weights.rows(), problem.codes, problem.costs, gram.diagonal)
        self.alpha = np.zeros((gram.n, problem.n_classes))
        self.weights = np.zeros((gram.weights.n_features, problem.n_classes))
        self._random = np.full(1, SEED, dtype=np.uint64)
        self.distance = np.inf
        self._lack: Floats | None = None
        self.look_at_all()

    def look_at_all(self) -> None:
        """Take back the samples that were set aside."""
        self.order: Index = np.arange(self.gram.n)
        self._reach = np.inf

    def sweep(self) -> None:
        """Solve the problem of every sample that is not set aside, one after another in random order."""
        shuffle(self.order, self._random)
        n_kept, self.distance = sweep_classes(self._rows, self.order, self._reach, self.alpha, self.weights)
        self.order, self._reach = self.order[:n_kept], self.distance
        self._lack = None

    def begin_again(self) -> None:
        """Go back to where all variables are nought."""
        self.take(np.zeros_like(self.alpha), np.zeros_like(self.weights))

    def take(self, alpha: Floats, weights: Floats) -> None:
        """Go to these variables, and these weights of their own."""
        self.alpha[:], self.weights[:] = alpha, weights
        high, low = self.sharp_weights(alpha)
        self._lack, self._is_sharp = (high - weights) + low, True

    def sharp_weights(self, alpha: Floats) -> Floats:
        """Return the weight vectors of variables as the sum of two."""
        return np.stack([self.gram.weights.sharp(column) for column in columns_of(alpha)], axis=-1)

    @property
    def lack(self) -> Floats:
        """By how much the weight vectors of the variables are more than the weights, as far as that is felt."""
        if self._lack is None:  # steps have added up: the weights are computed anew
            weights = self.gram.weights
            error = max(float(self.gram.rounding(column).max()) for column in columns_of(self.alpha))
            if 2 * error > FELT * self.accuracy:
                own = [weights.sharp(column).sum(axis=0) for column in columns_of(self.alpha)]
                self.take(self.alpha, np.column_stack(own))
            else:
                self.weights[:] = np.column_stack([weights.of(column) for column in columns_of(self.alpha)])
                self._lack, self._is_sharp, self._error = np.zeros_like(self.weights), False, error
        assert self._lack is not None
        return self._lack

    def slopes(self) -> Floats:
        """Compute the slope of every variable from the weights."""
        project = self.gram.weights.project_sharply if self._is_sharp else self.gram.weights.project
        slopes = np.column_stack([project(column) for column in columns_of(self.weights)])
        slopes += 1.0
        slopes[np.arange(self.gram.n), self.problem.codes] -= 1.0
        return slopes

    def standing(self) -> Standing:
        """Return what weights and variables prove."""
        problem, gram, lack = self.problem, self.gram, self.lack
        slopes, own = self.slopes(), (np.arange(gram.n), problem.codes)
        bounds = np.zeros_like(self.alpha)
        bounds[own] = problem.costs
        top = slopes.max(axis=1)
        least = np.where(self.alpha < bounds, slopes, np.inf).min(axis=1)
        if self._is_sharp:
            products = float(gram.lengths.max()) * float(np.linalg.norm(self.weights, axis=0).max())
            self._error = 4 * UNIT * float(np.abs(slopes).max()) + 8 * len(self.weights) * UNIT**2 * products
        made = self.weights + lack
        objective = 0.5 * float(np.vdot(made, made)) + float(self.alpha.sum() - self.alpha[own].sum())
        losses = float(np.dot(problem.costs, top - slopes[own]))
        return Standing(
            violation=max(float((top - least).max()), 0.0),
            rounding=2.0 * self._error,
            objective=objective,
            gap=max(0.5 * float(np.vdot(self.weights, self.weights)) + losses + objective, 0.0),
            disagreement=0.5 * float(np.vdot(lack, lack)),
        )


def columns_of(values: Floats) -> list[Vector]:
    """Return the columns, each in one piece."""
    return list(np.ascontiguousarray(values.T))


class ClassRows(NamedTuple):
    """Samples for `sweep_classes`: rows as in `hinge.data.products.row_dot`, classes, costs, squared norms."""

    indptr: Any
    indices: Any
    values: Any
    codes: Any
    costs: Any
    norms: Any


@compiled
def sweep_classes(
    rows: ClassRows, order: Index, reach: float, alpha: Floats, weights: Floats
) -> tuple[int, float]:
    """Solve the problem of each sample of ``order`` exactly.

    Samples without variables whose margin is clear by ``reach`` are set aside: the others are moved to the front.

    Returns
    -------
    int, float
        How many samples were not set aside, and the largest violation met.
    """
    k = alpha.shape[1]
    slopes, sorted_slopes, before = np.empty(k), np.empty(k), np.empty(k)
    n_kept, worst = 0, 0.0
    for place in range(order.shape[0]):
        i = order[place]
        own, cost, mine = rows.codes[i], rows.costs[i], alpha[i]
        _add_slopes(rows.values, rows, i, own, weights, slopes)
        top, least, is_clear = -np.inf, np.inf, mine[own] == 0.0
        for m in range(k):
            top = max(top, slopes[m])
            if mine[m] < (cost if m == own else 0.0):
                least = min(least, slopes[m])
            is_clear = is_clear and (m == own or slopes[m] < slopes[own] - reach)
        if is_clear:
            continue
        order[n_kept] = i
        n_kept += 1
        worst = max(worst, top - least)
        if top > least:
            before[:] = mine
            for m in range(k):
                slopes[m] -= rows.norms[i] * mine[m]
            _solve_sample(slopes, sorted_slopes, rows.norms[i], own, cost, mine)
            for m in range(k):
                before[m] = mine[m] - before[m]
            _add_weights(rows.values, rows, i, before, weights)
    return n_kept, worst


@borrowing
def _add_slopes(values: Any, rows: ClassRows, i: int, own: int, weights: Any, slopes: Any) -> None:
    """Set ``slopes`` to the slope of every variable of sample i."""
    for m in range(slopes.shape[0]):
        slopes[m] = 0.0 if m == own else 1.0
    if values.ndim == 2:  # known when this is compiled, for an argument
        for f in range(weights.shape[0]):
            _add_line(float(values[i, f]), weights[f], slopes)
    else:
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            _add_line(float(values[p]), weights[np.uint32(rows.indices[p])], slopes)


@borrowing
def _add_weights(values: Any, rows: ClassRows, i: int, step: Any, weights: Any) -> None:
    """Add ``step`` times sample i to the weights of all classes."""
    if values.ndim == 2:  # known when this is compiled, for an argument
        for f in range(weights.shape[0]):
            _add_line(float(values[i, f]), step, weights[f])
    else:
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            _add_line(float(values[p]), step, weights[np.uint32(rows.indices[p])])


@inlined
def _add_line(factor: float, line: Any, total: Any) -> None:
    """Add a multiple of a line, a number for each class."""
    for m in range(line.shape[0]):
        total[m] += factor * line[m]


@compiled
def _solve_sample(linear: Any, ordered: Any, curvature: float, own: int, cost: float, mine: Any) -> None:
    """Minimise ½ curvature Σα² + Σ linear α over the variables of one sample; ``ordered`` is room for sorting."""
    k = linear.shape[0]
    if not curvature > 0:  # nothing moves the decisions of such a sample: its variables are where they cost least
        mine[:] = 0.0
        mine[own] = cost
        mine[0 if own > 0 else 1] = -cost
        return
    # All is seen from the slope of the sample's own class, because beside a large cost differences would be lost.
    # Variables below their bounds have the same slope, ``level``.
    for m in range(k):
        ordered[m] = linear[m] - linear[own] if m != own else -np.inf
    ordered.sort()
    level, bound = _common_level(ordered, 0.0, 1), curvature * cost
    is_bounded = level >= bound
    if is_bounded:  # the own class is at its bound: the others share what that is
        level = _common_level(ordered, bound, 0)
    total, largest = 0.0, 1 if own == 0 else 0
    for m in range(k):
        if m != own:
            mine[m] = min(0.0, level - (linear[m] - linear[own])) / curvature
            total -= mine[m]
            largest = m if mine[m] < mine[largest] else largest
    if is_bounded:  # bounds are met to the last bit, and so is the sum
        mine[largest] -= cost - total
        total = cost
    mine[own] = min(total, cost)


@borrowing
def _common_level(ordered: Any, bound: float, n_more: int) -> float:
    """Return the level ℓ with Σ max(0, e − ℓ) = ``bound`` + ``n_more`` ℓ over the ascending values e."""
    total, taken = -bound, n_more
    for place in range(ordered.shape[0] - 1, 0, -1):
        if taken > 0 and not total < taken * ordered[place]:
            break
        total += ordered[place]
        taken += 1
    return total / taken


@compiled
def project_classes(goal: Floats, codes: Index, costs: Vector, out: Floats) -> None:
    """Fill ``out`` with the feasible variables nearest to ``goal``, sample by sample."""
    linear, ordered = np.empty(goal.shape[1]), np.empty(goal.shape[1])
    for i in range(goal.shape[0]):
        for m in range(goal.shape[1]):
            linear[m] = -goal[i, m]
        _solve_sample(linear, ordered, 1.0, codes[i], costs[i], out[i])
