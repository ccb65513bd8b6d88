"""How far a point is from optimal: violation, multipliers, objective, duality gap. Pure functions of β and r."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import Vector
from hinge.dual.problem import DualProblem
from hinge.runtime.jit import compiled


def group_extremes(problem: DualProblem, beta: Vector, residual: Vector) -> tuple[Vector, Vector]:
    """Return, for each group, the largest residual that may grow and the smallest that may fall.

    An empty side is −∞ or +∞. A problem without groups has one such pair for all variables.
    """
    top, bottom, _, _ = _survey(beta, residual, problem.lo, problem.hi, problem.group, max(problem.n_groups, 1))
    return top, bottom


def violation_of(problem: DualProblem, beta: Vector, residual: Vector) -> float:
    """Return the amount by which the optimality conditions fail, zero where they hold."""
    return _largest(problem, *group_extremes(problem, beta, residual))


def most_violation_of(problem: DualProblem, beta: Vector, residual: Vector, error: Vector) -> float:
    """Return how large the violation can be, where every residual is known to within its ``error`` only."""
    up, down = (
        group_extremes(problem, beta, residual + error)[0],
        group_extremes(problem, beta, residual - error)[1],
    )
    return _largest(problem, up, down)


def doubt_of(problem: DualProblem, beta: Vector, residual: Vector, error: Vector) -> float:
    """Return by how much the true violation may exceed the one that the residual shows.

    ``error`` bounds how far the residual of each sample may be from its true value.
    """
    errors = np.tile(error, problem.n_variables // problem.n_samples)
    return max(most_violation_of(problem, beta, residual, errors) - violation_of(problem, beta, residual), 0.0)


def _largest(problem: DualProblem, top: Vector, bottom: Vector) -> float:
    if problem.n_groups == 0:
        return float(max(top[0], -bottom[0], 0.0))
    return float(max(np.max(top - bottom), 0.0))


def multipliers_of(problem: DualProblem, beta: Vector, residual: Vector) -> Vector:
    """Return each group's multiplier: the mean over its free variables, else the middle of the interval.

    LIBSVM document, section 3.7. Where one side of the interval is open, its finite end.
    """
    top, bottom, n_free, total = _survey(
        beta, residual, problem.lo, problem.hi, problem.group, max(problem.n_groups, 1)
    )
    multipliers = np.zeros(problem.n_groups)
    for g in range(problem.n_groups):
        if n_free[g]:
            multipliers[g] = total[g] / n_free[g]
        else:
            ends = [end for end in (top[g], bottom[g]) if np.isfinite(end)]
            multipliers[g] = np.mean(ends) if ends else 0.0
    return multipliers


@compiled
def _survey(beta: Any, residual: Any, lo: Any, hi: Any, group: Any, n_groups: int) -> tuple[Any, Any, Any, Any]:
    """For each group: top and bottom as in `group_extremes`, number and total residual of the free variables."""
    top, bottom = np.full(n_groups, -np.inf), np.full(n_groups, np.inf)
    n_free, total = np.zeros(n_groups, np.int64), np.zeros(n_groups)
    for t in range(beta.shape[0]):
        g, r = group[t], residual[t]
        can_grow, can_fall = beta[t] < hi[t], beta[t] > lo[t]
        if can_grow and r > top[g]:
            top[g] = r
        if can_fall and r < bottom[g]:
            bottom[g] = r
        if can_grow and can_fall:
            n_free[g] += 1
            total[g] += r
    return top, bottom, n_free, total


def objective_of(problem: DualProblem, beta: Vector, residual: Vector) -> float:
    """Return ½ βᵀKβ − vᵀβ, ridge included, which is −½ βᵀ(v + r)."""
    with np.errstate(over="ignore", invalid="ignore"):  # whoever needs it looks whether it is finite
        return float(-0.5 * np.dot(beta, problem.v + residual))


def excess_of(problem: DualProblem, residual: Vector, multipliers: Vector) -> Vector:
    """Return how far each residual is above the multiplier of its group (above 0 where there is no group)."""
    return residual - multipliers[problem.group] if problem.n_groups else residual


def count_support(problem: DualProblem, beta: Vector) -> tuple[int, int]:
    """Return the number of support vectors, and of those with a variable at its bound."""
    return _count_support(beta, problem.lo, problem.hi, problem.n_samples)


@compiled
def _count_support(beta: Any, lo: Any, hi: Any, n_samples: int) -> tuple[int, int]:
    n_support, n_bounded = 0, 0
    for first in range(n_samples):
        coefficient, is_bounded = 0.0, False
        for t in range(first, beta.shape[0], n_samples):
            coefficient += beta[t]
            is_bounded |= beta[t] != 0 and (beta[t] == lo[t] or beta[t] == hi[t])
        n_support += coefficient != 0
        n_bounded += coefficient != 0 and is_bounded
    return n_support, n_bounded


def gap_of(problem: DualProblem, beta: Vector, residual: Vector, multipliers: Vector) -> float:
    """Return the duality gap: how much the objective could at most still fall (for a convex problem).

    By convexity no feasible point is better by more than Σ max (r_t − μ)(b − β_t) over b in the box of t, where
    μ is the multiplier of t's group. For C-SVC this is the classical primal minus dual objective. A ridge takes
    ½ ρ_t (b − β_t)² off each term, which makes it finite where the box is not.
    """
    levels = multipliers if problem.n_groups else np.zeros(1)
    ridge = np.zeros(1) if problem.ridge is None else problem.ridge
    return float(_gap(beta, residual, problem.lo, problem.hi, problem.group, levels, ridge))


@compiled
def _gap(beta: Any, residual: Any, lo: Any, hi: Any, group: Any, levels: Any, ridge: Any) -> float:
    gap, is_ridged = 0.0, ridge.shape[0] == beta.shape[0]
    for t in range(beta.shape[0]):
        excess = residual[t] - levels[group[t]]
        room = hi[t] - beta[t] if excess > 0 else beta[t] - lo[t]
        if excess != 0 and room > 0:
            rho = ridge[t] if is_ridged else 0.0
            if rho * room > abs(excess):
                gap += 0.5 * excess * (excess / rho)
            elif rho > 0:
                gap += (abs(excess) - 0.5 * rho * room) * room
            else:
                gap += abs(excess) * room
    return gap


def free_and_near(
    problem: DualProblem, beta: Vector, residual: Vector, multipliers: Vector, width: float | Vector
) -> NDArray[np.bool_]:
    """Mark the variables that violate, or that would if their residual changed by ``width``."""
    excess = excess_of(problem, residual, multipliers)
    return ((beta < problem.hi) & (excess > -width)) | ((beta > problem.lo) & (excess < width))
