"""All classes in one linear machine: proximal point steps by Newton's method in the weights of all classes.

As in `hinge.solvers.weights.proximal`, where each sample has one variable per class: near a point α⁰ the problem
is solved with Σ (α − α⁰)² / 2σ added. For given weights the variables of a sample are the feasible ones nearest to
α⁰ − σg, and what is left is to find the weights that fit. Newton's matrix is I + Σ σ J_i ⊗ x_i x_iᵀ, where J_i
takes the mean off the classes whose variables are below their bounds: as many rows as features times classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray

from hinge.arrays import Floats
from hinge.data.layout import LAYOUT
from hinge.kernel.rounding import UNIT
from hinge.runtime.interrupt import requested
from hinge.solvers.policies import Proximal
from hinge.solvers.weights.crammer_singer import ClassDescent, Standing, columns_of, project_classes
from hinge.solvers.weights.newton import solve_by_rows, solve_scaled
from hinge.solvers.weights.proximal import root

# Rows of the matrix, features times classes, up to which it is factorised.
_MOST_ROWS = 1500

# Multiply-adds of a step up to which nobody misses it.
_LITTLE_WORK = 3e7

# σ of the first step, in units of 1 / k(x, x) of the usual sample; it grows by as much from step to step, and by
# the square where Newton's method had no trouble.
_GROWTH = 10.0


def fits_newton(descent: ClassDescent) -> bool:
    """Whether there are few enough features and classes."""
    return descent.weights.size <= _MOST_ROWS


def is_quick(descent: ClassDescent) -> bool:
    """Whether Newton's method takes no time worth speaking of."""
    rows = descent.weights.size
    return rows <= _MOST_ROWS and float(rows) ** 2 * (len(descent.alpha) + rows) <= _LITTLE_WORK


def newton_steps(descent: ClassDescent, is_done: Callable[[Standing], bool], policy: Proximal) -> int:
    """Go on until ``is_done``, or as far as Newton's method gets; return how many steps it took.

    From here on the weights are of their own: see `hinge.solvers.weights.apart`.
    """
    usual = float(np.quantile(descent.gram.diagonal, policy.usual)) or 1.0
    sigma, n_steps, n_retreats = _GROWTH / usual, 0, 0
    descent.take(descent.alpha, descent.weights + descent.lack)
    standing = descent.standing()
    best = standing, descent.alpha.copy(), descent.weights.copy()
    for _ in range(policy.steps):
        if is_done(standing) or n_retreats > policy.retreats or requested():
            break
        before = descent.alpha.copy(), descent.weights.copy()
        try:
            n_newton = _proximal_step(descent, sigma, policy)
        except LinAlgError:
            break
        n_steps, after = n_steps + n_newton, descent.standing()
        if n_newton and after.objective >= standing.objective and after.gap >= standing.gap:
            descent.take(*before)
            sigma, n_retreats = sigma / policy.huge, n_retreats + 1
            continue
        standing, sigma = after, _GROWTH ** (2 if n_newton <= policy.few else 1) * sigma
        if is_done(standing) or _rank(standing) < _rank(best[0]):
            best = standing, descent.alpha.copy(), descent.weights.copy()
    descent.take(*best[1:])
    return n_steps


def _rank(standing: Standing) -> tuple[float, float]:
    """The gap, and where that is nothing but rounding the violation."""
    return max(standing.gap, 8 * UNIT * abs(standing.objective)), standing.violation


def _proximal_step(descent: ClassDescent, sigma: float, policy: Proximal) -> int:
    """Move variables and weights to the end of one proximal step; return how many Newton steps that took."""
    gram, origin, lack, n_newton = descent.gram, descent.alpha.copy(), descent.lack, 0
    start = origin - sigma * descent.slopes()
    change, image = np.zeros_like(descent.weights), np.zeros_like(origin)
    longest = float(gram.lengths.max())
    while n_newton < policy.steps and not requested():
        alpha = _nearest(descent, start - sigma * image)
        high, low = descent.sharp_weights(alpha - origin)
        misfit = ((change - lack) - high) - low
        left = float(np.abs(alpha - origin).max()) / sigma
        floor = 1e-15 * longest * float(np.abs(alpha).T.dot(gram.lengths).max(initial=0.0))
        if longest * float(np.linalg.norm(misfit)) <= max(1e-3 * left, floor):
            break
        direction = _direction(descent, alpha, misfit, sigma)
        falling = np.column_stack([gram.weights.project(column) for column in columns_of(direction)])
        own, growth = float(np.vdot(direction, change - lack)), float(np.vdot(direction, direction))

        def slope_at(
            length: float,
            falling: Floats = falling,
            image: Floats = image,
            own: float = own,
            growth: float = growth,
        ) -> float:
            moved = _nearest(descent, start - sigma * (image + length * falling)) - origin
            return own + length * growth - float(np.vdot(falling, moved))

        length = root(slope_at, float(np.vdot(direction, misfit)), policy)
        n_newton += 1
        if length <= 0:
            break
        change = change + length * direction
        image = image + length * falling
    descent.take(_nearest(descent, start - sigma * image), descent.weights + change)
    return n_newton


def _nearest(descent: ClassDescent, goal: Floats) -> Floats:
    nearest = np.empty_like(goal)
    project_classes(goal, descent.problem.codes, descent.problem.costs, nearest)
    return nearest


def _direction(descent: ClassDescent, alpha: Floats, misfit: Floats, sigma: float) -> Floats:
    """Return Newton's step for what the weights lack."""
    d, k = misfit.shape
    bounds = np.zeros_like(alpha)
    bounds[np.arange(len(alpha)), descent.problem.codes] = descent.problem.costs
    is_free = alpha < bounds
    share = sigma / np.maximum(np.count_nonzero(is_free, axis=1), 1)
    matrix = np.zeros((k, d, k, d))
    for m in range(k):
        for other in range(m + 1):
            both = np.flatnonzero(is_free[:, m] & is_free[:, other])
            factors = sigma - share[both] if m == other else -share[both]
            # Moments of factors of one sign, of which the lower half counts.
            lower = np.tril(descent.gram.weights.moments(both, np.abs(factors)))
            block = lower + np.tril(lower, -1).T
            matrix[m, :, other, :] = block if m == other else -block
    square = matrix.reshape(k * d, k * d)
    square[np.arange(k * d), np.arange(k * d)] += 1.0
    right = np.concatenate(columns_of(misfit))
    try:
        solved = solve_scaled(square, right)
    except LinAlgError:
        solved = solve_by_rows(_rows_of(descent, is_free, sigma), np.ones(k * d), right)
    return -solved.reshape(k, d).T


def _rows_of(descent: ClassDescent, is_free: NDArray[np.bool_], sigma: float) -> Iterator[Floats]:
    """Give the rows whose products make Newton's matrix, some at a time: J is its own square."""
    k = is_free.shape[1]
    n_free = np.count_nonzero(is_free, axis=1)
    samples = np.flatnonzero(n_free > 1)
    for start in range(0, len(samples), LAYOUT.read_rows):
        some = samples[start : start + LAYOUT.read_rows]
        part, own = is_free[some], np.sqrt(sigma) * descent.gram.weights.dense_rows(some)
        for m in range(k):
            mine = np.flatnonzero(part[:, m])
            if len(mine):
                share = part[mine] * (-1.0 / n_free[some[mine], None])
                share[:, m] += 1.0
                yield (share[:, :, None] * own[mine, None, :]).reshape(len(mine), -1)
