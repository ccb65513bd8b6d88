"""Polishing: from a solution within the tolerance to the exact one, by direct solves on the free variables.

A solver stops at a violation of tol; two runs on the same data in another order then agree to about tol and no
better. Once the solver knows (nearly) which variables are free, the rest is linear algebra. The free variables and
the worst violators are a small problem, which `hinge.solvers.active_set.direct` settles; one product brings all
residuals up to date; and so on until nobody violates. It is meant for the last few corrections, so it works
within a budget and gives the solver's own answer back where it cannot improve it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hinge.arrays import Index, Vector
from hinge.dual.optimality import count_support, excess_of, multipliers_of, violation_of
from hinge.dual.problem import DualProblem
from hinge.dual.residuals import exact_residual
from hinge.kernel.gram import Gram
from hinge.report import Report, Solution
from hinge.runtime.threads import blas_on_one_thread
from hinge.solvers.active_set.direct import (
    AIM,
    FREED_SHARE,
    HIDDEN,
    MOST_FREE,
    MOST_FREED,
    PATIENCE,
    Room,
    settle,
)
from hinge.solvers.conclusion import solution_at
from hinge.solvers.pairs.step import Point
from hinge.solvers.policies import USUAL

# Rounds of polishing.
_MOST_ROUNDS = 20

# Multiply-adds of the directions in a round, some hundredths of a second.
_MOST_WORK = 1e8


def polish(
    problem: DualProblem, gram: Gram, solution: Solution, tol: float, most_evaluations: float = np.inf
) -> Solution:
    """Return the solution with its violation brought down to rounding, or as it was where that takes too long.

    Parameters
    ----------
    problem : DualProblem
        What was solved.
    gram : Gram
        Its kernel values.
    solution : Solution
        A solution near the optimum.
    tol : float
        The tolerance it was solved to: residuals are computed exactly enough for that.
    most_evaluations : float
        Kernel evaluations that polishing may take.

    Returns
    -------
    Solution
        A feasible point whose violation is not larger. Its report is computed from β alone, so that it is right
        whatever the solver believed.

    Examples
    --------
    >>> from hinge import Gram, Kernel, solve
    >>> from hinge.dual.formulations import c_svc
    >>> gram = Gram(np.array([[0.0], [0.7], [2.0], [3.1]]), Kernel("rbf"))
    >>> problem = c_svc([-1, -1, 1, 1], C=10.0)
    >>> polish(problem, gram, solve(problem, gram), 1e-3).report.violation < 1e-10
    True
    """
    if _is_polished(solution):
        return solution
    point = _Point(problem, gram.in_double(), solution.beta.copy(), tol, most_evaluations)
    n_support, _ = count_support(problem, solution.beta)
    if len(point.free()) > min(MOST_FREE, gram.largest_block) or n_support * gram.n > most_evaluations:
        return solution
    # What overflows is found by its result: such a point is never the best. Small products lose more to waking
    # threads than they gain.
    with np.errstate(all="ignore"), blas_on_one_thread():
        return _best_of(point, solution)


def _is_polished(solution: Solution) -> bool:
    """Whether the violation is down to rounding already."""
    aim = AIM * (1.0 + float(np.abs(solution.residual).max()))
    violation, rounding = solution.report.violation, solution.report.rounding
    return (violation <= aim and rounding <= aim) or violation <= min(rounding, HIDDEN * aim)


def _best_of(point: _Point, solution: Solution) -> Solution:
    """Return the best point seen from ``point`` on; where steps only seem to help, the first one."""
    point.refresh()
    start = point.solution(solution.report)
    best, least = None, point.violation()
    for violation in point.rounds():
        if violation < least:
            least, best = violation, (point.beta.copy(), point.residual.copy())
    if best is None:
        return start
    point.beta, point.residual = best
    if point.is_rough:  # the residual of the steps may be wrong by as much as they gained
        point.refresh()
    polished = point.solution(solution.report)
    return min(start, polished, key=lambda found: found.report.violation + found.report.rounding)


@dataclass(eq=False)
class _Point:
    """A feasible point being polished, with its residual."""

    problem: DualProblem
    gram: Gram
    beta: Vector
    tol: float
    budget: float

    def refresh(self) -> None:
        """Compute the residual anew."""
        coefficients = self.problem.coefficients(self.beta)
        self.budget -= self.gram.n * int(np.count_nonzero(coefficients))
        everyone = np.arange(self.gram.n)
        residual, self.error = exact_residual(self.problem, self.gram, self.beta, everyone, self.tol)
        self.residual = residual.ravel()

    @property
    def is_rough(self) -> bool:
        """Whether double precision is not enough to tell the residual of this point."""
        rounding = self.gram.rounding(self.problem.coefficients(np.abs(self.beta)))
        return float(rounding.max()) > float(self.error.max())

    def free(self) -> Index:
        """Variables strictly inside their box."""
        return np.flatnonzero((self.beta > self.problem.lo) & (self.beta < self.problem.hi))

    def violation(self) -> float:
        return violation_of(self.problem, self.beta, self.residual)

    def solution(self, report: Report) -> Solution:
        """Return the point as it is now, with the report of the run that led near it."""
        return solution_at(self.problem, self.beta.copy(), self.residual.copy(), self.error, **vars(report))

    def rounds(self) -> Iterator[float]:
        """Settle the free variables and the worst violators; yield the violation after every round."""
        aim = AIM * (1.0 + float(np.abs(self.residual).max()))
        violation, vain = self.violation(), 0
        least = violation
        for _ in range(_MOST_ROUNDS):
            chosen = np.union1d(self.free(), self._violators(violation))
            if not 0 < len(chosen) <= MOST_FREE:
                return
            self._settle(chosen, aim)
            violation = self.violation()
            yield violation
            vain = vain + 1 if violation > 0.5 * least else 0
            least = min(least, violation)
            if violation <= aim or vain > USUAL.patience or self.budget <= 0:
                return

    def _settle(self, chosen: Index, aim: float) -> None:
        """Take the variables ``chosen`` to their optimum, and bring the residual up to date."""
        problem, n = self.problem, self.gram.n
        inner, kernel = problem.restrict(chosen, len(chosen), self.beta), self.gram.block(chosen % n)
        if problem.ridge is not None:
            kernel = kernel + np.diag(problem.ridge[chosen])
        target, residual = self.beta[chosen], self.residual[chosen]
        room = Room.of(inner.n_variables, inner.n_groups)
        settle(kernel, Point.of(inner, target, residual), room, aim, PATIENCE, _MOST_WORK)
        change = np.zeros(problem.n_variables)
        change[chosen] = target - self.beta[chosen]
        self.beta[chosen] = target
        coefficients = problem.coefficients(change)
        self.budget -= len(chosen) ** 2 / 2 + n * int(np.count_nonzero(coefficients))
        self.residual.reshape(-1, n)[...] -= self.gram.product(coefficients)
        if problem.ridge is not None:
            self.residual -= problem.ridge * change

    def _violators(self, violation: float) -> Index:
        """The variables at bounds that violate most."""
        problem, beta = self.problem, self.beta
        excess = excess_of(problem, self.residual, multipliers_of(problem, beta, self.residual))
        wrong = np.where(beta < problem.hi, excess, 0.0)
        wrong = np.maximum(wrong, np.where(beta > problem.lo, -excess, 0.0))
        worst = np.argsort(-wrong, kind="stable")[:MOST_FREED]
        return worst[wrong[worst] > FREED_SHARE * violation]
