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
from hinge.runtime.jit import borrowing, compiled, inlined
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
    """

    violation: float
    rounding: float
    objective: float
    gap: float


class ClassDescent:
    """A point on its way to the optimum.

    Parameters
    ----------
    problem : ClassProblem
        What is solved.
    gram : Gram
        Linear kernel values of the samples.

    Attributes
    ----------
    alpha : array of shape (n_samples, n_classes)
        The variables.
    weights : array of shape (n_features, n_classes)
        Their weight vectors, one column per class.
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

    def __init__(self, problem: ClassProblem, gram: Gram) -> None:
        self.problem, self.gram = problem, gram
        self._rows = ClassRows(*gram.weights.rows(), problem.codes, problem.costs, gram.diagonal)
        self.alpha = np.zeros((gram.n, problem.n_classes))
        self.weights = np.zeros((gram.weights.n_features, problem.n_classes))
        self._random = np.full(1, SEED, dtype=np.uint64)
        self.distance = np.inf
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

    def slopes(self) -> Floats:
        """Compute the weights anew from the variables, and the slope of every variable."""
        gram, columns = self.gram, range(self.problem.n_classes)
        self.weights[:] = np.column_stack([gram.weights.of(self.alpha[:, m]) for m in columns])
        slopes = np.column_stack([gram.weights.project(self.weights[:, m]) for m in columns])
        slopes += 1.0
        slopes[np.arange(gram.n), self.problem.codes] -= 1.0
        return slopes

    def standing(self) -> Standing:
        """Return what the point proves, computed from its variables alone."""
        problem, gram = self.problem, self.gram
        slopes, own = self.slopes(), (np.arange(gram.n), problem.codes)
        bounds = np.zeros_like(self.alpha)
        bounds[own] = problem.costs
        top = slopes.max(axis=1)
        least = np.where(self.alpha < bounds, slopes, np.inf).min(axis=1)
        error = np.max([gram.rounding(alpha) for alpha in self.alpha.T], axis=0)
        size = float(np.vdot(self.weights, self.weights))
        objective = 0.5 * size + float(self.alpha.sum() - self.alpha[own].sum())
        losses = float(np.dot(problem.costs, top - slopes[own]))
        return Standing(
            violation=max(float((top - least).max()), 0.0),
            rounding=2.0 * float(error.max()),
            objective=objective,
            gap=max(0.5 * size + losses + objective, 0.0),
        )


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
    # The place of equal slopes: variables at their bounds are those of the smallest.
    for m in range(k):
        ordered[m] = linear[m] + (curvature * cost if m == own else 0.0)
    ordered.sort()
    level, taken = ordered[k - 1] - curvature * cost, 1
    while taken < k and level < taken * ordered[k - 1 - taken]:
        level += ordered[k - 1 - taken]
        taken += 1
    level /= taken
    for m in range(k):
        mine[m] = min(cost if m == own else 0.0, (level - linear[m]) / curvature)


@compiled
def project_classes(goal: Floats, codes: Index, costs: Vector, out: Floats) -> None:
    """Fill ``out`` with the feasible variables nearest to ``goal``, sample by sample."""
    linear, ordered = np.empty(goal.shape[1]), np.empty(goal.shape[1])
    for i in range(goal.shape[0]):
        for m in range(goal.shape[1]):
            linear[m] = -goal[i, m]
        _solve_sample(linear, ordered, 1.0, codes[i], costs[i], out[i])
