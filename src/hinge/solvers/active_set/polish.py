"""Polishing: from a solution within the tolerance to the exact one, by direct solves on the free variables.

A solver stops at a violation of tol; two runs on the same data in another order then agree to about tol and no
better. Once the solver knows (nearly) which variables are free, the rest is linear algebra: with the others
held at their bounds the optimum of the free set F is the solution of

    K_FF δ + μ_g = r_F    and in every group    Σ δ = 0.

A primal active-set method does this: step to that point, or to the first bound on the way, which then holds its
variable; where all of F fits, free the variables at bounds that still violate; repeat. It is meant for the last
few corrections, so it works within a budget and gives the solver's own answer back where it cannot improve it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from hinge.arrays import Index, Vector
from hinge.dual.optimality import count_support, excess_of, group_extremes, multipliers_of, violation_of
from hinge.dual.problem import DualProblem
from hinge.dual.residuals import exact_residual
from hinge.kernel.gram import Gram
from hinge.report import Report, Solution
from hinge.runtime.threads import blas_on_one_thread
from hinge.solvers.conclusion import solution_at

# A factorisation of this many free variables takes a few milliseconds.
_MOST_FREE = 400

_MOST_ROUNDS = 100
_PATIENCE = 12

# The violation aimed at, relative to the size of the residuals.
AIM = 1e-11

# Relative size of the ridge that makes K_FF positive definite; refinement takes its effect out again.
_RIDGE = 1e-10
_REFINEMENTS = 5

# Most variables freed at once: the worst violators.
_MOST_FREED = 32


def polish(
    problem: DualProblem, gram: Gram, solution: Solution, tol: float = 1e-3, most_evaluations: float = 4e6
) -> Solution:
    """Return the solution with its violation brought down to rounding, or as it was where that is too dear.

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
        Kernel evaluations that polishing may take; by default about a hundredth of a second.

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
    >>> polish(problem, gram, solve(problem, gram)).report.violation < 1e-10
    True
    """
    point = _Point(problem, gram.in_double(), solution.beta.copy(), tol, most_evaluations)
    n_support, _ = count_support(problem, solution.beta)
    if len(point.free()) > min(_MOST_FREE, gram.largest_block) or n_support * gram.n > most_evaluations:
        return solution
    # What overflows is found by its result: such a point is never the best, and an infinite direction ends the
    # rounds. Small factorisations lose more to waking threads than they gain.
    with np.errstate(all="ignore"), blas_on_one_thread():
        return _best_of(point, solution)


def _best_of(point: _Point, solution: Solution) -> Solution:
    """Return the best point seen from ``point`` on; where steps only seem to help, the first one."""
    point.refresh()
    start = point.solution(solution.report)
    best, least = None, point.violation()
    try:
        for violation in point.rounds():
            if violation < least:
                least, best = violation, (point.beta.copy(), point.residual.copy())
    except LinAlgError:  # a kernel that is not positive semi-definite, or overflow
        pass
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
        rounding = self.gram.rounding(self.problem.coefficients(self.beta))
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
        """Take steps; yield the violation whenever the free set is settled."""
        aim = AIM * (1.0 + float(np.abs(self.residual).max()))
        members = self.free()
        least, vain = np.inf, 0
        for _ in range(_MOST_ROUNDS):
            members, is_settled = self._step(members)
            if not is_settled:
                if self.budget <= 0:
                    return
                continue
            violation = self.violation()
            yield violation
            vain = vain + 1 if violation > 0.5 * least else 0
            least = min(least, violation)
            if violation <= aim or vain > _PATIENCE or self.budget <= 0:
                return
            members = np.union1d(self.free(), self._violators(violation))
            if len(members) > _MOST_FREE:
                return

    def _step(self, members: Index) -> tuple[Index, bool]:
        """Step towards the optimum of ``members``; return those still free and whether it was reached."""
        problem = self.problem
        while len(members):
            direction = self._direction(members)
            room = np.where(direction > 0, problem.hi[members], problem.lo[members]) - self.beta[members]
            blocked = (direction != 0) & (room == 0)
            if not blocked.any():
                break
            members = members[~blocked]
        if not len(members):
            return members, True
        reach = np.where(direction != 0, room / direction, np.inf)
        length = min(1.0, float(reach.min()))
        stopped = reach <= length
        target = np.where(stopped, self.beta[members] + room, self.beta[members] + length * direction)
        self._move(members, np.clip(target, problem.lo[members], problem.hi[members]))
        return members[~stopped], length == 1.0

    def _move(self, members: Index, target: Vector) -> None:
        """Set β of ``members`` and bring the residual up to date."""
        problem = self.problem
        change = np.zeros(problem.n_variables)
        change[members] = target - self.beta[members]
        self.beta[members] = target
        coefficients = problem.coefficients(change)
        self.budget -= self.gram.n * int(np.count_nonzero(coefficients))
        self.residual.reshape(-1, problem.n_samples)[...] -= self.gram.product(coefficients)
        if problem.ridge is not None:
            self.residual -= problem.ridge * change

    def _direction(self, members: Index) -> Vector:
        """Solve K_FF δ + μ = r_F, Σδ = 0 in every group, by a ridged factor and refinement."""
        problem = self.problem
        samples = members % problem.n_samples
        self.budget -= len(samples) ** 2 / 2
        kernel = self.gram.block(samples)
        if problem.ridge is not None:
            kernel = kernel + np.diag(problem.ridge[members])
        ridged = kernel + _RIDGE * float(np.abs(kernel.diagonal()).max()) * np.eye(len(members))
        factor = cho_factor(ridged, lower=True, overwrite_a=True, check_finite=False)
        groups = np.unique(problem.group[members]) if problem.n_groups else np.empty(0, np.int8)
        indicator = (problem.group[members][:, None] == groups[None, :]).astype(np.float64)
        solved = cho_solve(factor, indicator, check_finite=False)
        schur = indicator.T @ solved
        direction, remainder = np.zeros(len(members)), self.residual[members].copy()
        for _ in range(_REFINEMENTS):
            part = cho_solve(factor, remainder, check_finite=False)
            level = np.linalg.solve(schur, indicator.T @ part) if len(groups) else np.zeros(0)
            part -= solved @ level
            part -= indicator @ ((indicator.T @ part) / indicator.sum(axis=0))  # exactly Σδ = 0, whatever cancels
            direction += part
            remainder -= kernel @ part + indicator @ level
        if not np.isfinite(direction).all():
            raise LinAlgError("the direct solve overflowed")
        # Rounding alone is no reason to move: it would push variables that rest at bounds.
        negligible = 1e-15 * float(np.abs(self.beta).max(initial=0.0))
        return np.where(np.abs(direction) > negligible, direction, 0.0)

    def _violators(self, violation: float) -> Index:
        """The variables at bounds that violate most, and the worst pair of every group."""
        problem, beta, residual = self.problem, self.beta, self.residual
        multipliers = multipliers_of(problem, beta, residual)
        excess = excess_of(problem, residual, multipliers)
        wrong = np.where(beta < problem.hi, excess, 0.0)
        wrong = np.maximum(wrong, np.where(beta > problem.lo, -excess, 0.0))
        worst = np.argsort(-wrong, kind="stable")[:_MOST_FREED]
        worst = worst[wrong[worst] > 0.1 * violation]
        pairs = []
        top, bottom = group_extremes(problem, beta, residual)
        for g in range(problem.n_groups):
            if top[g] - bottom[g] >= 0.5 * violation:
                mine = problem.group == g
                pairs.append(np.argmax(np.where(mine & (beta < problem.hi), residual, -np.inf)))
                pairs.append(np.argmin(np.where(mine & (beta > problem.lo), residual, np.inf)))
        return np.union1d(worst, np.array(pairs, dtype=np.int64))
