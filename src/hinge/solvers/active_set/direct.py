"""A primal active-set method on a kernel matrix in memory: from near the optimum to the last digit.

With the others held at their bounds the optimum of the free variables F is the solution of

    K_FF δ + μ_g = r_F    and in every group    Σ δ = 0.

Step to that point, or to the first bound on the way, which then holds its variable; where all of F fits, free the
variables at bounds that still violate; repeat. Every step factorises K_FF anew, which keeps rounding out and is
quick for a few hundred variables: `hinge.solvers.active_set.free_set` is for more of them, and for many changes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge.dual.optimality import levels_between, survey, violation_between
from hinge.runtime.jit import borrowing, compiled
from hinge.solvers.pairs.step import Point

# A factorisation of this many free variables takes a few milliseconds.
MOST_FREE = 400

# The violation aimed at, relative to the size of the residuals.
AIM = 1e-11

# Relative size of the ridge that makes K_FF positive definite; refinement takes its effect out again.
_RIDGE = 1e-10
_REFINEMENTS = 5

# Most variables freed at once: those that violate most, and by at least this share of the worst.
_MOST_FREED = 32
_FREED_SHARE = 0.1

#: Where rounding hides the rest, a violation of this many times the aim will do.
HIDDEN = 100.0

# Corrections of this share of a direction, and steps of this share of β, are rounding.
_ROUNDING = 1e-15


@compiled
def settle(kernel: Any, point: Point, aim: float, patience: int, most_rounds: int) -> tuple[float, int]:
    """Bring the violation of a feasible point down to ``aim``, or as far as it goes.

    Parameters
    ----------
    kernel : array of shape (n, n)
        Kernel values; variable t belongs to row t % n.
    point : Point
        The point and its residual, changed in place to those of the least violation that was seen.
    aim : float
        The violation that is wanted.
    patience : int
        How many times in a row the violation may not be halved.
    most_rounds : int
        Most directions to solve for.

    Returns
    -------
    float, int
        The violation, and the number of directions.
    """
    beta, residual, lo, hi, group, n_groups = point
    members = np.empty(beta.shape[0], np.int64)
    best_beta, best_residual = beta.copy(), residual.copy()
    top, bottom, _, _ = survey(beta, residual, lo, hi, group, n_groups)
    best, vain, rounds = violation_between(top, bottom, n_groups), 0, 0
    count = _list_free(beta, lo, hi, members)
    while rounds < most_rounds and count <= MOST_FREE:
        rounds += 1
        direction = np.zeros(count)
        if count > 0 and not _solve(kernel, members[:count], residual, group, n_groups, direction):
            break
        _drop_dust(direction, beta)
        n_blocked = _drop_blocked(members, direction, beta, lo, hi)
        if n_blocked > 0:
            count -= n_blocked
            if count > 0:
                continue
        elif count > 0:
            count, is_there = _step(kernel, members, direction, point)
            if not is_there:
                continue
        if not _is_finite(residual):  # comparisons with what is no number would find no violation
            break
        top, bottom, n_free, total = survey(beta, residual, lo, hi, group, n_groups)
        violation = violation_between(top, bottom, n_groups)
        vain = 0 if violation <= 0.5 * best else vain + 1
        if violation < best:
            best = violation
            _copy(beta, best_beta)
            _copy(residual, best_residual)
        if not violation > aim or vain > patience:
            break
        levels = levels_between(top, bottom, n_free, total)
        count = _list_free(beta, lo, hi, members)
        count += _list_violators(members[count:], violation, levels, point)
    _copy(best_beta, beta)
    _copy(best_residual, residual)
    return best, rounds


@borrowing
def _is_finite(values: Any) -> bool:
    total = 0.0
    for t in range(values.shape[0]):
        total += abs(values[t])
    return bool(np.isfinite(total))


@borrowing
def _copy(source: Any, target: Any) -> None:
    # Slices that are assigned to slices take seconds to compile.
    for t in range(source.shape[0]):
        target[t] = source[t]


@borrowing
def _list_free(beta: Any, lo: Any, hi: Any, members: Any) -> int:
    """List the variables strictly inside their box; return how many there are."""
    count = 0
    for t in range(beta.shape[0]):
        if lo[t] < beta[t] < hi[t]:
            members[count] = t
            count += 1
    return count


@compiled
def _list_violators(places: Any, violation: float, levels: Any, point: Point) -> int:
    """List the variables at bounds that violate most; return how many there are.

    Where no variable of a group is free, half of the violation is the most that one of them can show.
    """
    beta, residual, lo, hi, group, _ = point
    wrong, count = np.empty(beta.shape[0]), 0
    least = _FREED_SHARE * violation
    for t in range(beta.shape[0]):
        excess = residual[t] - levels[group[t]]
        is_wrong = (beta[t] == lo[t] and excess > least) or (beta[t] == hi[t] and excess < -least)
        wrong[t] = abs(excess) if is_wrong and lo[t] < hi[t] else 0.0
    for t in range(beta.shape[0]):
        if wrong[t] > 0 and (count < _MOST_FREED or wrong[t] > wrong[places[count - 1]]):
            count = min(count + 1, _MOST_FREED)
            k = count - 1
            while k > 0 and wrong[places[k - 1]] < wrong[t]:
                places[k] = places[k - 1]
                k -= 1
            places[k] = t
    return count


@borrowing
def _drop_dust(direction: Any, beta: Any) -> None:
    """Rounding alone is no reason to move: it would push variables that rest at bounds."""
    largest = 0.0
    for t in range(beta.shape[0]):
        largest = max(largest, abs(beta[t]))
    for k in range(direction.shape[0]):
        if abs(direction[k]) <= _ROUNDING * largest:
            direction[k] = 0.0


@borrowing
def _drop_blocked(members: Any, direction: Any, beta: Any, lo: Any, hi: Any) -> int:
    """Drop the members at a bound that would leave their box; return how many those are."""
    kept = 0
    for k in range(direction.shape[0]):
        t = members[k]
        if (direction[k] > 0 and beta[t] >= hi[t]) or (direction[k] < 0 and beta[t] <= lo[t]):
            continue
        members[kept] = t
        kept += 1
    return direction.shape[0] - kept


@compiled
def _step(kernel: Any, members: Any, direction: Any, point: Point) -> tuple[int, bool]:
    """Move along ``direction`` to its end or to the first bound; those at a bound then are members no more.

    Returns the number of members, and whether the end was reached.
    """
    beta, residual, lo, hi, _, _ = point
    n, length = kernel.shape[0], 1.0
    for k in range(direction.shape[0]):
        t = members[k]
        if direction[k] != 0:
            length = min(length, ((hi[t] if direction[k] > 0 else lo[t]) - beta[t]) / direction[k])
    image, kept = np.zeros(n), 0
    for k in range(direction.shape[0]):
        t, d, before = members[k], direction[k], beta[members[k]]
        bound = hi[t] if d > 0 else lo[t]
        is_stopped = d != 0 and (bound - before) / d <= length
        beta[t] = bound if is_stopped else min(max(before + length * d, lo[t]), hi[t])
        _add(image, kernel[t % n], beta[t] - before)
        if not is_stopped:
            members[kept] = t
            kept += 1
    for first in range(0, residual.shape[0], n):
        _add(residual[first : first + n], image, -1.0)
    return kept, length == 1.0


@borrowing
def _add(target: Any, values: Any, factor: float) -> None:
    for t in range(target.shape[0]):
        target[t] += factor * values[t]


@compiled
def _solve(kernel: Any, members: Any, residual: Any, group: Any, n_groups: int, direction: Any) -> bool:
    """Solve for the direction, by a ridged factor and refinement; return whether that went well."""
    size, n = members.shape[0], kernel.shape[0]
    matrix, factor, scale = np.empty((size, size)), np.empty((size, size)), np.empty(size)
    for k in range(size):
        row = kernel[members[k] % n]
        for j in range(size):
            matrix[k, j] = row[members[j] % n]
    _scale_of(matrix, scale)
    if not _factorise(matrix, scale, factor):
        return False
    pulls, schur = np.zeros((n_groups, size)), np.zeros((n_groups, n_groups))
    for k in range(size if n_groups > 0 else 0):
        pulls[group[members[k]], k] = 1.0
    for g in range(n_groups):
        _substitute(factor, scale, pulls[g])
        for k in range(size):
            schur[group[members[k]], g] += pulls[g, k]
    remainder, part, levels = np.empty(size), np.empty(size), np.zeros(max(n_groups, 1))
    for k in range(size):
        remainder[k] = residual[members[k]]
    for _ in range(_REFINEMENTS):
        _copy(remainder, part)
        _substitute(factor, scale, part)
        _keep_sums(members, group, pulls, schur, part, levels)
        largest, change = 0.0, 0.0
        for k in range(size):
            direction[k] += part[k]
            largest, change = max(largest, abs(direction[k])), max(change, abs(part[k]))
        if not np.isfinite(largest):
            return False
        if change <= _ROUNDING * largest:
            break
        for k in range(size):
            level = levels[group[members[k]]] if n_groups > 0 else 0.0
            remainder[k] -= _dot(matrix[k], part) + level
    return True


@borrowing
def _scale_of(matrix: Any, scale: Any) -> None:
    """Measure each sample by its own size: beside one that is huge all others would look like nothing."""
    largest = 0.0
    for k in range(scale.shape[0]):
        largest = max(largest, matrix[k, k])
    for k in range(scale.shape[0]):
        own = matrix[k, k] if matrix[k, k] > 0 else largest
        scale[k] = 1.0 / np.sqrt(own) if own > 0 else 1.0


@borrowing
def _factorise(matrix: Any, scale: Any, factor: Any) -> bool:
    """Put the Cholesky factor of the scaled matrix into the lower half of ``factor``; return whether it exists."""
    size = scale.shape[0]
    for j in range(size):
        row = factor[j, :j]
        pivot = matrix[j, j] * scale[j] * scale[j] + _RIDGE - _dot(row, row)
        if not pivot > 0:
            return False
        factor[j, j] = np.sqrt(pivot)
        weight = 1.0 / factor[j, j]
        for i in range(j + 1, size):
            factor[i, j] = weight * (matrix[i, j] * scale[i] * scale[j] - _dot(factor[i, :j], row))
    return True


@borrowing
def _dot(a: Any, b: Any) -> float:
    total = 0.0
    for k in range(a.shape[0]):
        total += a[k] * b[k]
    return total


@borrowing
def _substitute(factor: Any, scale: Any, values: Any) -> None:
    """Solve with the factor, in place."""
    size = scale.shape[0]
    for k in range(size):
        values[k] = (values[k] * scale[k] - _dot(factor[k, :k], values[:k])) / factor[k, k]
    for k in range(size - 1, -1, -1):
        values[k] /= factor[k, k]
        _add(values[:k], factor[k, :k], -values[k])
    for k in range(size):
        values[k] *= scale[k]


@compiled
def _keep_sums(members: Any, group: Any, pulls: Any, schur: Any, part: Any, levels: Any) -> None:
    """Take the groups' multipliers out of ``part``, so that its sums are zero, exactly, whatever cancels."""
    n_groups, size = pulls.shape[0], part.shape[0]
    sums, counts = np.zeros(n_groups), np.zeros(n_groups)
    for k in range(size if n_groups > 0 else 0):
        sums[group[members[k]]] += part[k]
        counts[group[members[k]]] += 1.0
    _small_solve(schur, sums, counts, levels)
    for g in range(n_groups):
        _add(part, pulls[g], -levels[g])
        sums[g] = 0.0
    for k in range(size if n_groups > 0 else 0):
        sums[group[members[k]]] += part[k]
    for k in range(size if n_groups > 0 else 0):
        part[k] -= sums[group[members[k]]] / counts[group[members[k]]]


@borrowing
def _small_solve(schur: Any, sums: Any, counts: Any, levels: Any) -> None:
    """Solve for the multipliers of one or two groups; one without members has none."""
    n_groups = sums.shape[0]
    for g in range(n_groups):
        levels[g] = sums[g] / schur[g, g] if counts[g] > 0 else 0.0
    if n_groups == 2 and counts[0] > 0 and counts[1] > 0:
        determinant = schur[0, 0] * schur[1, 1] - schur[0, 1] * schur[1, 0]
        levels[0] = (sums[0] * schur[1, 1] - sums[1] * schur[0, 1]) / determinant
        levels[1] = (sums[1] * schur[0, 0] - sums[0] * schur[1, 0]) / determinant
