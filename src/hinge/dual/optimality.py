"""How far a point is from optimal: violation, multipliers, objective, duality gap. Pure functions of β and r."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import Floats, Vector
from hinge.dual.problem import DualProblem
from hinge.kernel.rounding import UNIT
from hinge.runtime.jit import borrowing

#: Lines of what `survey` finds: extremes as in `group_extremes`, number and total residual of the free variables.
TOP, BOTTOM, N_FREE, TOTAL, N_FOUND = range(5)


def group_extremes(problem: DualProblem, beta: Vector, residual: Vector) -> tuple[Vector, Vector]:
    """Return, for each group, the largest residual that may grow and the smallest that may fall.

    An empty side is −∞ or +∞. A problem without groups has one such pair for all variables.
    """
    found = _surveyed(problem, beta, residual, residual)
    return found[TOP], found[BOTTOM]


def _surveyed(problem: DualProblem, beta: Vector, above: Vector, below: Vector) -> Floats:
    found = np.empty((N_FOUND, max(problem.n_groups, 1)))
    survey(beta, above, below, problem.lo, problem.hi, problem.group, found)
    return found


def violation_of(problem: DualProblem, beta: Vector, residual: Vector) -> float:
    """Return the amount by which the optimality conditions fail, zero where they hold."""
    return float(violation_between(_surveyed(problem, beta, residual, residual), problem.n_groups))


def most_violation_of(problem: DualProblem, beta: Vector, residual: Vector, error: Vector) -> float:
    """Return how large the violation can be, where every residual is known to within its ``error`` only."""
    return float(violation_between(_surveyed(problem, beta, residual + error, residual - error), problem.n_groups))


def doubt_of(problem: DualProblem, beta: Vector, residual: Vector, error: Vector) -> float:
    """Return by how much the true violation may exceed the one that the residual shows.

    ``error`` bounds how far the residual of each sample may be from its true value.
    """
    errors = np.tile(error, problem.n_variables // problem.n_samples)
    return max(most_violation_of(problem, beta, residual, errors) - violation_of(problem, beta, residual), 0.0)


@borrowing
def violation_between(found: Any, n_groups: int) -> float:
    """Return the violation of what `survey` found; no number where an extreme is none."""
    violation = 0.0
    if n_groups == 0:
        if not found[TOP, 0] <= violation:
            violation = found[TOP, 0]
        if not -found[BOTTOM, 0] <= violation:
            violation = -found[BOTTOM, 0]
    for g in range(n_groups):
        if not found[TOP, g] - found[BOTTOM, g] <= violation:
            violation = found[TOP, g] - found[BOTTOM, g]
    return violation


def multipliers_of(problem: DualProblem, beta: Vector, residual: Vector) -> Vector:
    """Return each group's multiplier: the mean over its free variables, else the middle of the interval.

    LIBSVM document, section 3.7. Where one side of the interval is open, its finite end.
    """
    found = _surveyed(problem, beta, residual, residual)
    levels = np.empty(found.shape[1])
    levels_between(found, levels)
    return levels[: problem.n_groups]


@borrowing
def levels_between(found: Any, levels: Any) -> None:
    """Set the multiplier of every group to what follows from `survey`."""
    for g in range(levels.shape[0]):
        top, bottom = found[TOP, g], found[BOTTOM, g]
        if found[N_FREE, g] > 0:
            levels[g] = found[TOTAL, g] / found[N_FREE, g]
        elif np.isfinite(top) and np.isfinite(bottom):
            levels[g] = 0.5 * (top + bottom)
        elif np.isfinite(top):
            levels[g] = top
        elif np.isfinite(bottom):
            levels[g] = bottom
        else:
            levels[g] = 0.0


@borrowing
def survey(beta: Any, above: Any, below: Any, lo: Any, hi: Any, group: Any, found: Any) -> None:
    """Look at each group, whose residuals are between ``below`` and ``above``: both the same where they are known.

    The lines of ``found`` are set: TOP to the largest of ``above`` that may grow, and so on.
    """
    for g in range(found.shape[1]):
        found[TOP, g], found[BOTTOM, g], found[N_FREE, g], found[TOTAL, g] = -np.inf, np.inf, 0.0, 0.0
    for t in range(beta.shape[0]):
        g = group[t]
        can_grow, can_fall = beta[t] < hi[t], beta[t] > lo[t]
        if can_grow and above[t] > found[TOP, g]:
            found[TOP, g] = above[t]
        if can_fall and below[t] < found[BOTTOM, g]:
            found[BOTTOM, g] = below[t]
        if can_grow and can_fall:
            found[N_FREE, g] += 1.0
            found[TOTAL, g] += above[t]


def objective_of(problem: DualProblem, beta: Vector, residual: Vector) -> float:
    """Return ½ βᵀKβ − vᵀβ, ridge included.

    The variables of a sample are added up before they meet Kβ: two large ones may nearly cancel.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # whoever needs it looks whether it is finite
        quadratic = np.dot(problem.coefficients(beta), _image_of(problem, beta, residual))
        if problem.ridge is not None:
            quadratic += np.dot(problem.ridge * beta, beta)
        return float(0.5 * quadratic - np.dot(problem.v, beta))


def doubt_of_objective(problem: DualProblem, beta: Vector, residual: Vector, error: Vector) -> float:
    """Return by how much `objective_of` may be wrong, where the residual of each sample may be by ``error``."""
    magnitudes, n = np.abs(problem.coefficients(beta)), problem.n_samples
    with np.errstate(over="ignore", invalid="ignore"):
        image, linear = _image_of(problem, beta, residual), np.abs(problem.v)
        of_image = error + 2.0 * UNIT * (linear[:n] + np.abs(residual[:n]))
        terms = 0.5 * np.dot(magnitudes, np.abs(image)) + np.dot(linear, np.abs(beta))
        if problem.ridge is not None:
            terms += np.dot(problem.ridge * beta, beta)
        doubt = float(0.5 * np.dot(magnitudes, of_image) + UNIT * (len(beta) + 4) * terms)
    return doubt if np.isfinite(doubt) else np.inf


def _image_of(problem: DualProblem, beta: Vector, residual: Vector) -> Vector:
    """Return Kβ, given the residual."""
    first = slice(problem.n_samples)
    image = problem.v[first] - residual[first]
    return image if problem.ridge is None else image - problem.ridge[first] * beta[first]


def excess_of(problem: DualProblem, residual: Vector, multipliers: Vector) -> Vector:
    """Return how far each residual is above the multiplier of its group (above 0 where there is no group)."""
    return residual - multipliers[problem.group] if problem.n_groups else residual


def count_support(problem: DualProblem, beta: Vector) -> tuple[int, int]:
    """Return the number of support vectors, and of those with a variable at its bound."""
    return support_counts(beta, problem.lo, problem.hi, problem.n_samples)


@borrowing
def support_counts(beta: Any, lo: Any, hi: Any, n_samples: int) -> tuple[int, int]:
    """`count_support`, for compiled code."""
    n_support, n_bounded = 0, 0
    for first in range(n_samples):
        coefficient, is_bounded, t = 0.0, False, first
        while t < beta.shape[0]:  # a range with a step would divide
            coefficient += beta[t]
            is_bounded |= beta[t] != 0 and (beta[t] == lo[t] or beta[t] == hi[t])
            t += n_samples
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
    if problem.ridge is not None:
        return _ridged_gap(problem, beta, excess_of(problem, residual, multipliers))
    return float(gap_between(beta, residual, problem.lo, problem.hi, problem.group, levels))


def _ridged_gap(problem: DualProblem, beta: Vector, excess: Vector) -> float:
    assert problem.ridge is not None
    room = np.where(excess > 0, problem.hi - beta, beta - problem.lo)
    step = np.minimum(np.abs(excess) / problem.ridge, room)
    return float(np.dot(step, np.abs(excess) - 0.5 * problem.ridge * step))


@borrowing
def gap_between(beta: Any, residual: Any, lo: Any, hi: Any, group: Any, levels: Any) -> float:
    """`gap_of`, for compiled code."""
    gap = 0.0
    for t in range(beta.shape[0]):
        excess = residual[t] - levels[group[t]]
        room = hi[t] - beta[t] if excess > 0 else beta[t] - lo[t]
        if excess != 0 and room > 0:
            gap += abs(excess) * room
    return gap


def free_and_near(
    problem: DualProblem, beta: Vector, residual: Vector, multipliers: Vector, width: float | Vector
) -> NDArray[np.bool_]:
    """Mark the variables that violate, or that would if their residual changed by ``width``."""
    excess = excess_of(problem, residual, multipliers)
    return ((beta < problem.hi) & (excess > -width)) | ((beta > problem.lo) & (excess < width))
