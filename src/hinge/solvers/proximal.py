"""Proximal point steps by Newton's method in the space of the weights, for linear kernels of few features.

Near a point β⁰ the problem is solved with ‖β − β⁰‖² / 2σ added. For given weights w and multipliers μ its
variables are then known, β = clip(β⁰ + σ (v − Xw − μ), lo, hi), and what is left is to find the w and μ that fit:

    w = Xᵀβ,   Σ β as it should be in every group.

These are the stationarity conditions of a convex function of as many unknowns as there are features and groups,
smooth but for kinks, so that Newton's method with a line search finds them in a few steps (Yan & Li 2020). Its
matrix is I + σ X_JᵀX_J, J being the variables strictly inside their box. The violation left is at most the largest
change of β divided by σ: σ grows from step to step, and about ten of them reach the tolerance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from hinge.jit import compiled
from hinge.optimality import excess_of, multipliers_of
from hinge.problem import DualProblem, Vector
from hinge.rounding import UNIT
from hinge.solvers.run import Run
from hinge.solvers.state import State

# σ of the first step, in widths of the box for a residual of the size of the violation; and how it grows.
_FIRST = 0.1
_GROWTH = 4.0

# A step is solved to this share of what its σ leaves of the violation, and of the tolerance.
_INNER_SHARE = 0.5

# Beyond so many steps something is wrong; block decomposition takes over.
_MOST_STEPS = 20
_MOST_NEWTON_STEPS = 40

# The line search ends where the slope has fallen to this share.
_SLOPE_SHARE = 0.3
_MOST_TRIALS = 30

# Weights are summed up to twice the digits where rounding could leave more than this share of the accuracy wanted.
_ROUNDING_SHARE = 0.1

# Weights and variables fit where what is left is the effect of so many units in the last place of all variables.
_ULPS = 8.0

# Keeps the matrix positive where all variables of a group rest at bounds.
_RIDGE = 1e-9


def proximal_steps(state: State, tol: float, run: Run) -> None:
    """Bring the violation of ``state`` down to ``tol``, or as far as Newton's method gets.

    Raises
    ------
    Stop
        A limit was reached; the state is at the last proximal point.
    """
    violation = state.violation()
    width = float(np.max(state.problem.hi - state.problem.lo))
    sigma = _FIRST * width / violation if violation > 0 else 1.0
    everyone = np.arange(state.problem.n_variables)
    problem = _with_sums_of(state)
    for _ in range(_MOST_STEPS):
        if violation <= tol:
            return
        step = _Step(state, sigma)
        try:
            is_solved = step.solve(_INNER_SHARE * max(tol, min(width / sigma, violation)), violation, run)
        except LinAlgError:
            is_solved = False
        before = state.beta.copy(), state.residual.copy()
        change = state.move(everyone, problem.near(step.beta))
        if change > 0:  # weights that do not fit yet
            state.beta[:], state.residual[:] = before
            change = 0.0
        run.count(step.n_newton, change)
        state.sharpen(tol)
        if not is_solved:
            return
        violation = state.violation()
        sigma *= _GROWTH


def _with_sums_of(state: State) -> DualProblem:
    """Return the problem with the sums that the state has: a part of a larger one keeps its own."""
    problem = state.problem
    sums = [state.beta[problem.group == g].sum() for g in range(problem.n_groups)]
    return replace(problem, sums=np.array(sums))


class _Step:
    """One proximal point step: the change of the weights and the multipliers on their way to fit.

    All of it is relative to the point β⁰ of the state, whose residual is known: w stands for Xᵀ(β − β⁰).

    Attributes
    ----------
    beta : array of shape (n_variables,)
        The variables that belong to the weights and multipliers.
    goal : array of shape (n_variables,)
        Where they would be without the box.
    n_newton : int
        Newton steps taken.
    """

    def __init__(self, state: State, sigma: float) -> None:
        problem = state.problem
        self.problem, self.gram, self.sigma = problem, state.gram, sigma
        self.origin = state.beta.copy()
        self.weights = np.zeros(self.gram.samples.n_features)
        self.n_newton = 0
        self._members = [np.flatnonzero(problem.group == g) for g in range(problem.n_groups)]
        self._reach = float(np.sqrt(self.gram.magnitude))
        multipliers = multipliers_of(problem, state.beta, state.residual)
        self.goal = self.origin + sigma * excess_of(problem, state.residual, multipliers)
        self.beta = np.clip(self.goal, problem.lo, problem.hi)

    def solve(self, accuracy: float, violation: float, run: Run) -> bool:
        """Take Newton steps until weights and variables fit; return whether they do."""
        d = len(self.weights)
        for _ in range(min(_MOST_NEWTON_STEPS, run.steps_left)):
            gradient = self._gradient(accuracy)
            misfit = self._reach * float(np.linalg.norm(gradient[:d]))
            misfit = max(misfit, self._reach**2 * float(np.abs(gradient[d:]).sum()))
            if misfit <= max(accuracy, _ULPS * UNIT * self._reach**2 * float(np.linalg.norm(self.beta))):
                return True
            run.check(violation, self.problem.n_samples)
            step = self._newton_step(gradient)
            if not self._move(step, float(np.dot(gradient, step))):
                return False
            self.n_newton += 1
        return False

    def _gradient(self, accuracy: float) -> Vector:
        moved = self.beta - self.origin
        coefficients = self.problem.coefficients(moved)
        if float(self.gram.rounding(coefficients).max()) <= _ROUNDING_SHARE * accuracy:
            misfit = self.weights - self.gram.weights(coefficients)
        else:  # features of very different sizes: what the weights lack would drown in the rounding of a sum
            high, low = self.gram.sharp_weights(coefficients)
            misfit = (self.weights - high) - low
        return np.concatenate([misfit, [-moved[members].sum() for members in self._members]])

    def _newton_step(self, gradient: Vector) -> Vector:
        problem, d = self.problem, len(self.weights)
        inside = np.flatnonzero((self.goal > problem.lo) & (self.goal < problem.hi))
        matrix = np.zeros((len(gradient), len(gradient)))
        matrix[:d, :d] = self.sigma * self.gram.moments(inside % problem.n_samples)
        matrix[np.arange(d), np.arange(d)] += 1.0
        for g in range(problem.n_groups):
            mine = inside[problem.group[inside] == g] % problem.n_samples
            matrix[d + g, :d] = self.sigma * self.gram.weights(
                np.bincount(mine, minlength=problem.n_samples).astype(np.float64)
            )
            matrix[d + g, d + g] = self.sigma * (max(len(mine), 1.0) + _RIDGE * len(problem.v))
        factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        return -cho_solve(factor, gradient, check_finite=False)

    def _move(self, step: Vector, slope: float) -> bool:
        """Go along ``step`` to where its slope has nearly vanished; return False if that is nowhere."""
        problem, d = self.problem, len(self.weights)
        direction, shift = step[:d], step[d:]
        falling = np.tile(self.gram.project(direction), problem.n_variables // problem.n_samples)
        if problem.n_groups:
            falling += shift[problem.group]
        own = float(np.dot(direction, self.weights) + np.dot(self.origin, falling))
        growth = float(np.dot(direction, direction))

        def slope_at(length: float) -> float:
            fitting = clipped_dot(self.goal, falling, -self.sigma * length, problem.lo, problem.hi)
            return own + length * growth - fitting

        length = _root(slope_at, slope)
        if length <= 0:
            return False
        self.weights = self.weights + length * direction
        self.goal -= self.sigma * length * falling
        np.clip(self.goal, problem.lo, problem.hi, out=self.beta)
        return True


def _root(slope_at: Callable[[float], float], slope: float) -> float:
    """Return a length at which a slope, negative at 0 and rising, has nearly vanished; at most 1.

    By false position, with a bisection every third time.
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
