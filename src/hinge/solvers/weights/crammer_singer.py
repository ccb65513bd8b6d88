"""All classes in one linear machine (Crammer & Singer 2001), by descent a sample at a time (Keerthi et al. 2008).

With a weight vector w_m for each class and e_im = 0 for a sample's own class y_i, 1 for the others, the dual is

    minimise  ½ Σ_m ‖w_m‖² + Σ e_im α_im     with   w_m = Σ_i α_im x_i,   Σ_m α_im = 0,   α_im ≤ C_i [m = y_i].

The variables of one sample are a problem of their own whose matrix is k(x, x) times the identity: it is solved
exactly by sorting. With g_im = w_m·x_i + e_im, a point is optimal when max_m g_im ≤ g_im wherever α_im is below its
bound; what this fails by is the *violation*. The primal objective ½ Σ ‖w_m‖² + Σ C_i max_m (g_im − g_iy) closes the gap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hinge.arrays import Floats, Index, Vector
from hinge.kernel.gram import Gram
from hinge.runtime.jit import compiled
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
        Their weight vectors, one column a class.
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
        self.problem, self._gram = problem, gram
        self._rows = gram.weights.rows()
        self.alpha = np.zeros((gram.n, problem.n_classes))
        self.weights = np.zeros((gram.weights.n_features, problem.n_classes))
        self._random = np.full(1, SEED, dtype=np.uint64)
        self.distance = np.inf
        self.look_at_all()

    def look_at_all(self) -> None:
        """Take back the samples that were set aside."""
        self.order: Index = np.arange(self._gram.n)
        self._reach = np.inf

    def sweep(self) -> None:
        """Solve the problem of every sample that is not set aside, one after another in random order."""
        shuffle(self.order, self._random)
        n_kept, self.distance = sweep_classes(
            *self._rows, self.order, self.problem.codes, self.problem.costs, self._gram.diagonal, self._reach,
            self.alpha, self.weights,
        )  # fmt: skip
        self.order, self._reach = self.order[:n_kept], self.distance

    def standing(self) -> Standing:
        """Compute the weights anew, and everything that the point proves."""
        problem, gram = self.problem, self._gram
        columns = range(problem.n_classes)
        self.weights[:] = np.column_stack([gram.weights.of(self.alpha[:, m]) for m in columns])
        slopes = np.column_stack([gram.weights.project(self.weights[:, m]) for m in columns])
        slopes += 1.0
        own = np.arange(gram.n), problem.codes
        slopes[own] -= 1.0
        bounds = np.zeros_like(self.alpha)
        bounds[own] = problem.costs
        top = slopes.max(axis=1)
        least = np.where(self.alpha < bounds, slopes, np.inf).min(axis=1)
        error = np.max([gram.rounding(self.alpha[:, m]) for m in columns], axis=0)
        size = float(np.vdot(self.weights, self.weights))
        objective = 0.5 * size + float(self.alpha.sum() - self.alpha[own].sum())
        losses = float(np.dot(problem.costs, top - slopes[own]))
        return Standing(
            violation=max(float((top - least).max()), 0.0),
            rounding=2.0 * float(error.max()),
            objective=objective,
            gap=max(0.5 * size + losses + objective, 0.0),
        )


@compiled
def sweep_classes(
    indptr: Any,
    indices: Any,
    values: Any,
    order: Index,
    codes: Index,
    costs: Vector,
    norms: Vector,
    reach: float,
    alpha: Floats,
    weights: Floats,
) -> tuple[int, float]:
    """Solve the problem of each sample of ``order`` exactly.

    Samples without variables whose margin is clear by ``reach`` are set aside: the others are moved to the front.

    Returns
    -------
    int, float
        How many samples were not set aside, and the largest violation met.
    """
    k = alpha.shape[1]
    slopes, sorted_slopes = np.empty(k), np.empty(k)
    n_kept, worst = 0, 0.0
    for place in range(order.shape[0]):
        i = order[place]
        own, cost, curvature, mine = codes[i], costs[i], norms[i], alpha[i]
        for m in range(k):
            slopes[m] = 0.0 if m == own else 1.0
        if values.ndim == 2:
            for f in range(weights.shape[0]):
                value, line = float(values[i, f]), weights[f]
                for m in range(k):
                    slopes[m] += value * line[m]
        else:
            for p in range(indptr[i], indptr[i + 1]):
                value, line = float(values[p]), weights[np.uint32(indices[p])]
                for m in range(k):
                    slopes[m] += value * line[m]
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
        if not top > least:
            continue
        # The place of equal slopes: variables at their bounds are those of the largest ones.
        for m in range(k):
            slopes[m] -= curvature * mine[m]
            sorted_slopes[m] = slopes[m] + (curvature * cost if m == own else 0.0)
        sorted_slopes.sort()
        level, taken = sorted_slopes[k - 1] - curvature * cost, 1
        while taken < k and level < taken * sorted_slopes[k - 1 - taken]:
            level += sorted_slopes[k - 1 - taken]
            taken += 1
        level /= taken
        if curvature > 0:
            for m in range(k):
                new = min(cost if m == own else 0.0, (level - slopes[m]) / curvature)
                slopes[m], mine[m] = new - mine[m], new
        else:  # nothing moves the decisions of such a sample: its variables are where they cost least
            for m in range(k):
                slopes[m], mine[m] = 0.0, 0.0
            mine[own] = cost
            mine[0 if own > 0 else 1] = -cost
        if values.ndim == 2:
            for f in range(weights.shape[0]):
                value, line = float(values[i, f]), weights[f]
                for m in range(k):
                    line[m] += value * slopes[m]
        else:
            for p in range(indptr[i], indptr[i + 1]):
                value, line = float(values[p]), weights[np.uint32(indices[p])]
                for m in range(k):
                    line[m] += value * slopes[m]
    return n_kept, worst
