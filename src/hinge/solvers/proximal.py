"""Proximal point steps by Newton's method in the space of the weights, for linear kernels of few features.

Near a point β⁰ the problem is solved with ‖β − β⁰‖² / 2σ added. For given weights w and multipliers μ its variables
are then known, β = clip(β⁰ + σ (v − Xw − μ), lo, hi), and what is left is to find the w and μ that fit them:

    w = Xᵀβ,   Σ β as it should be in every group.

These are the stationarity conditions of a convex function of as many unknowns as there are features and groups,
smooth but for kinks, so that Newton's method with a line search finds them in a few steps (Yan & Li 2020). Its
matrix is I + σ X_JᵀX_J, J being the variables strictly inside their box. The violation left is at most the largest
change of β divided by σ: σ grows tenfold from step to step, and four or five of them reach the tolerance.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from hinge.jit import compiled
from hinge.optimality import multipliers_of
from hinge.problem import Vector
from hinge.solvers.run import Run
from hinge.solvers.state import State

# σ of the first step, in widths of the box for a residual of the size of the violation; and how it grows.
_FIRST = 0.1
_GROWTH = 10.0

# A step is solved to this share of what its σ leaves of the violation, and of the tolerance.
_INNER_SHARE = 0.1

# Beyond so many steps something is wrong; block decomposition takes over.
_MOST_STEPS = 12
_MOST_NEWTON_STEPS = 40

# The line search ends where the slope has fallen to this share.
_SLOPE_SHARE = 0.3
_MOST_TRIALS = 30

# Keeps the matrix positive where all variables of a group rest at bounds.
_RIDGE = 1e-9


def proximal_steps(state: State, tol: float, run: Run) -> None:
    """Bring the violation of ``state`` down to ``tol``, or as far as Newton's method gets.

    Raises
    ------
    Stop
        A limit was reached.
    """
    violation = state.violation()
    if violation <= tol:
        return
    width = float(np.max(state.problem.hi - state.problem.lo))
    point = _Point(state, _FIRST * width / violation)
    try:
        for _ in range(_MOST_STEPS):
            accuracy = _INNER_SHARE * max(tol, min(width / point.sigma, violation))
            is_solved = point.solve(accuracy, violation, run)
            violation = state.adopt(point.beta)
            run.objective = state.objective()
            if violation <= tol or not is_solved:
                return
            point.start_from(point.beta, _GROWTH * point.sigma)
    except LinAlgError:
        state.adopt(point.beta)
    except BaseException:
        state.abandon_for(point.beta)
        raise


class _Point:
    """Weights and multipliers on their way to the next proximal point.

    Attributes
    ----------
    sigma : float
        How far variables may move for a given residual.
    beta : array of shape (n_variables,)
        The variables that belong to the weights.
    """

    def __init__(self, state: State, sigma: float) -> None:
        problem = state.problem
        self.state, self.problem, self.gram = state, problem, state.gram
        self.weights = self.gram.weights(problem.coefficients(state.beta))
        self.levels = multipliers_of(problem, state.beta, state.residual)
        self._members = [np.flatnonzero(problem.group == g) for g in range(problem.n_groups)]
        self.slack = problem.v - self._spread(self.gram.project(self.weights), self.levels)
        self._reach = float(np.sqrt(self.gram.magnitude))
        self.start_from(state.beta, sigma)

    def start_from(self, beta: Vector, sigma: float) -> None:
        """Begin the next step, from the variables ``beta``."""
        self.sigma = sigma
        self.goal = beta + sigma * self.slack
        self.beta = np.clip(self.goal, self.problem.lo, self.problem.hi)

    def solve(self, accuracy: float, violation: float, run: Run) -> bool:
        """Take Newton steps until weights and variables fit; return whether they do."""
        problem = self.problem
        for _ in range(_MOST_NEWTON_STEPS):
            gradient = self._gradient()
            misfit = float(np.linalg.norm(gradient[: len(self.weights)])) * self._reach
            if misfit <= accuracy and np.abs(gradient[len(self.weights) :]).sum() * self._reach**2 <= accuracy:
                return True
            run.check(violation, problem.n_samples)
            step = self._newton_step(gradient)
            if not self._move(step, float(np.dot(gradient, step))):
                return False
            run.count(1, 0.0)
        return False

    def _gradient(self) -> Vector:
        misfit = self.weights - self.gram.weights(self.problem.coefficients(self.beta))
        sums = [self.beta[members].sum() for members in self._members]
        return np.concatenate([misfit, self.problem.sums - np.array(sums)])

    def _newton_step(self, gradient: Vector) -> Vector:
        problem, d = self.problem, len(self.weights)
        inside = np.flatnonzero((self.goal > problem.lo) & (self.goal < problem.hi))
        matrix = np.zeros((len(gradient), len(gradient)))
        matrix[:d, :d] = self.sigma * self.gram.moments(inside % problem.n_samples)
        matrix[np.arange(d), np.arange(d)] += 1.0
        for g in range(problem.n_groups):
            mine = inside[problem.group[inside] == g] % problem.n_samples
            matrix[d + g, :d] = self.sigma * self.gram.samples.combine(mine, np.ones(len(mine)))
            matrix[d + g, d + g] = self.sigma * (max(len(mine), 1.0) + _RIDGE * len(problem.v))
        factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        return -cho_solve(factor, gradient, check_finite=False)

    def _move(self, step: Vector, slope: float) -> bool:
        """Go along ``step`` to where the slope has nearly vanished; return whether that is further than nowhere."""
        d = len(self.weights)
        direction, shift = step[:d], step[d:]
        falling = self._spread(self.gram.project(direction), shift)
        own = float(np.dot(direction, self.weights) + np.dot(self.problem.sums, shift))
        growth = float(np.dot(direction, direction))
        box = self.problem.lo, self.problem.hi

        def slope_at(length: float) -> float:
            return own + length * growth - clipped_dot(self.goal, falling, -self.sigma * length, *box)

        length = _root(slope_at, slope)
        if length <= 0:
            return False
        self.weights = self.weights + length * direction
        self.levels = self.levels + length * shift
        self.slack -= length * falling
        self.goal -= self.sigma * length * falling
        np.clip(self.goal, *box, out=self.beta)
        return True

    def _spread(self, image: Vector, levels: Vector) -> Vector:
        """Return image + level for every variable."""
        copies = self.problem.n_variables // self.problem.n_samples
        spread = np.tile(image, copies)
        if self.problem.n_groups:
            spread += levels[self.problem.group]
        return spread


def _root(slope_at: Callable[[float], float], slope: float) -> float:
    """Return a length at which a slope, negative and rising, has nearly vanished: 1 if that does, else by bisection.

    The false position is tried first; the half of what is left guards it.
    """
    low, high = 0.0, 1.0
    low_slope, high_slope = slope, slope_at(1.0)
    if not slope < 0:
        return 0.0
    if high_slope <= _SLOPE_SHARE * -slope:
        return 1.0
    for trial in range(_MOST_TRIALS):
        share = low_slope / (low_slope - high_slope) if trial % 3 else 0.5
        length = low + min(max(share, 0.05), 0.95) * (high - low)
        here = slope_at(length)
        if abs(here) <= _SLOPE_SHARE * -slope:
            return length
        if here > 0:
            high, high_slope = length, here
        else:
            low, low_slope = length, here
    return low


@compiled
def clipped_dot(goal: Vector, falling: Vector, factor: float, lo: Vector, hi: Vector) -> float:
    """Dot product of ``falling`` with clip(goal + factor · falling, lo, hi)."""
    total = 0.0
    for t in range(goal.shape[0]):
        total += falling[t] * min(max(goal[t] + factor * falling[t], lo[t]), hi[t])
    return total
