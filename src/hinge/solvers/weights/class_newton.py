"""All classes in one linear machine: proximal point steps by Newton's method in the weights of all classes.

As in `hinge.solvers.weights.proximal`, where each sample has one variable per class: near a point α⁰ the problem
is solved with Σ (α − α⁰)² / 2σ added. For given weights the variables of a sample are the feasible ones nearest to
α⁰ − σg, and what is left is to find the weights that fit. Newton's matrix is I + Σ σ J_i ⊗ x_i x_iᵀ, where J_i
takes the mean off the classes whose variables are below their bounds: as many rows as features times classes.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from hinge.arrays import Floats
from hinge.solvers.policies import Proximal
from hinge.solvers.weights.crammer_singer import ClassDescent, project_classes
from hinge.solvers.weights.proximal import root

# Rows of the matrix, features times classes, up to which it is factorised.
_MOST_ROWS = 1500

# Multiply-adds of a step up to which nobody misses it.
_LITTLE_WORK = 3e7

# σ of the first step, in units of 1 / k(x, x) of the usual sample; it grows by as much from step to step.
_GROWTH = 10.0


def fits_newton(descent: ClassDescent) -> bool:
    """Whether there are few enough features and classes."""
    return descent.weights.size <= _MOST_ROWS


def is_quick(descent: ClassDescent) -> bool:
    """Whether Newton's method takes no time worth speaking of."""
    rows = descent.weights.size
    return rows <= _MOST_ROWS and float(rows) ** 2 * (len(descent.alpha) + rows) <= _LITTLE_WORK


def newton_steps(descent: ClassDescent, tol: float, policy: Proximal) -> int:
    """Bring the violation down to ``tol``, or as far as Newton's method gets; return how many steps it took."""
    usual = float(np.quantile(descent.gram.diagonal, policy.usual)) or 1.0
    sigma, n_steps = _GROWTH / usual, 0
    standing = descent.standing()
    least, best = standing.violation, descent.alpha.copy()
    for _ in range(policy.steps):
        if standing.violation <= tol:
            break
        before = descent.alpha.copy()
        try:
            n_steps += _proximal_step(descent, sigma, policy)
            after = descent.standing()
        except LinAlgError:
            descent.alpha[:] = before
            break
        if not (after.objective < standing.objective or after.violation < standing.violation):
            descent.alpha[:] = before
            break
        standing, sigma = after, _GROWTH * sigma
        if standing.violation < least:
            least, best = standing.violation, descent.alpha.copy()
    descent.alpha[:] = (
        best  # long steps may lower the objective and leave a larger violation, where rounding rules
    )
    descent.slopes()  # whatever the weights were, they are those of the variables now
    return n_steps


def _proximal_step(descent: ClassDescent, sigma: float, policy: Proximal) -> int:
    """Move the variables to the end of one proximal step; return how many Newton steps that took."""
    gram, origin, n_newton = descent.gram, descent.alpha.copy(), 0
    start = origin - sigma * descent.slopes()
    change, image = np.zeros_like(descent.weights), np.zeros_like(origin)
    longest = float(gram.lengths.max())
    while n_newton < policy.steps:
        alpha = _nearest(descent, start - sigma * image)
        misfit = change - _weights_of(descent, alpha - origin)
        left = float(np.abs(alpha - origin).max()) / sigma
        floor = 1e-15 * longest * float(np.abs(alpha).T.dot(gram.lengths).max(initial=0.0))
        if longest * float(np.linalg.norm(misfit)) <= max(1e-3 * left, floor):
            break
        direction = _direction(descent, alpha, misfit, sigma)
        falling = np.column_stack([gram.weights.project(column) for column in direction.T])
        own, growth = float(np.vdot(direction, change)), float(np.vdot(direction, direction))

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
    descent.alpha[:] = _nearest(descent, start - sigma * image)
    return n_newton


def _nearest(descent: ClassDescent, goal: Floats) -> Floats:
    nearest = np.empty_like(goal)
    project_classes(goal, descent.problem.codes, descent.problem.costs, nearest)
    return nearest


def _weights_of(descent: ClassDescent, alpha: Floats) -> Floats:
    return np.column_stack([descent.gram.weights.of(np.ascontiguousarray(column)) for column in alpha.T])


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
    scale = 1 / np.sqrt(square.diagonal())
    square *= scale
    square *= scale[:, None]
    factor = cho_factor(square, lower=True, overwrite_a=True, check_finite=False)
    solved = scale * cho_solve(factor, scale * misfit.T.ravel(), check_finite=False)
    if not np.isfinite(solved).all():
        raise LinAlgError("the direct solve overflowed")
    return -solved.reshape(k, d).T
