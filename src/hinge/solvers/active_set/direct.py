"""A primal active-set method on a kernel matrix in memory: from near the optimum to the last digit.

With the others held at their bounds the optimum of the free variables F is the solution of

    K_FF δ + μ_g = r_F    and in every group    Σ δ = 0.

Step to that point, or to the first bound on the way, which then holds its variable; where all of F fits, free the
variables at bounds that still violate; repeat. Every step factorises K_FF anew, which keeps rounding out and is
quick for a few hundred variables: `hinge.solvers.active_set.free_set` is for more of them, and for many changes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hinge.dual.optimality import N_FOUND, levels_between, survey, violation_between
from hinge.runtime.jit import borrowing, inlined
from hinge.solvers.pairs.step import Point

# A factorisation of this many free variables takes a few milliseconds.
MOST_FREE = 400

# The violation aimed at, relative to the size of the residuals.
AIM = 1e-11

# Relative size of the ridge that makes K_FF positive definite; refinement takes its effect out again.
_RIDGE = 1e-10
_REFINEMENTS = 5

#: Most variables freed at once: those that violate most, and by at least this share of the worst.
MOST_FREED = 32
FREED_SHARE = 0.1

#: Where rounding hides the rest, a violation of this many times the aim will do.
HIDDEN = 100.0

# Corrections of this share of a direction, and steps of this share of β, are rounding.
_ROUNDING = 1e-15


# Lines of `Room.lines`: of each variable, each sample, each member.
_BEST_BETA, _BEST_RESIDUAL, _WRONG, _IMAGE, _DIRECTION, _REMAINDER, _PART, _SCALE, _N_LINES = range(9)

# Lines of `Room.groups`, after those of `survey`; from the last on, what the groups' multipliers do to the sums.
_LEVELS, _SUMS, _COUNTS, _SCHUR = range(N_FOUND, N_FOUND + 4)


class Room(NamedTuple):
    """Room for `settle` to work in, for compiled code: for its problem, or for a larger one.

    Few arrays, as each of them takes its time whenever compiled code is called.

    Attributes
    ----------
    members : int64 array of shape (n_variables,)
        The variables that move.
    lines : float64 array of shape (_N_LINES, n_variables)
        Vectors.
    matrix, factor : float64 arrays
        Kernel values of the members, and their Cholesky factor.
    pulls : float64 array
        How the members answer to the multiplier of each group.
    groups : float64 array
        What is known of each group, in columns; the first lines are those of `survey`.
    """

    members: Any
    lines: Any
    matrix: Any
    factor: Any
    pulls: Any
    groups: Any

    @classmethod
    def of(cls, n_variables: int, n_groups: int) -> Room:
        """Make room for a problem of this size."""
        most, groups = min(n_variables, MOST_FREE), max(n_groups, 1)
        members, lines = np.empty(n_variables, np.int64), np.empty((_N_LINES, n_variables))
        matrix, factor, pulls = np.empty((most, most)), np.empty((most, most)), np.empty((groups, most))
        return cls(members, lines, matrix, factor, pulls, np.empty((_SCHUR + groups, groups)))


@borrowing
def settle(
    kernel: Any, point: Point, room: Room, aim: float, patience: int, most_rounds: int
) -> tuple[float, int]:
    """Bring the violation of a feasible point down to ``aim``, or as far as it goes.

    Parameters
    ----------
    kernel : array of shape (n, n)
        Kernel values; variable t belongs to row t % n.
    point : Point
        The point and its residual, changed in place to those of the least violation that was seen.
    room : Room
        Room to work in.
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
    beta, residual, n_groups, found = point.beta, point.residual, point.n_groups, room.groups
    best_beta, best_residual = room.lines[_BEST_BETA], room.lines[_BEST_RESIDUAL]
    _copy(beta, best_beta, beta.shape[0])
    _copy(residual, best_residual, beta.shape[0])
    survey(beta, residual, residual, point.lo, point.hi, point.group, found)
    best, vain, rounds = violation_between(found, n_groups), 0, 0
    count = _list_free(point, room.members)
    while rounds < most_rounds and count <= MOST_FREE:
        rounds += 1
        if count > 0 and not _solve(kernel, point, room, count):
            break
        _drop_dust(room.lines[_DIRECTION], count, beta)
        n_blocked = _drop_blocked(room, count, point)
        if n_blocked > 0:
            count -= n_blocked
            if count > 0:
                continue
        elif count > 0:
            count, is_there = _step(kernel, room, count, point)
            if not is_there:
                continue
        if not _is_finite(residual):  # comparisons with what is no number would find no violation
            break
        survey(beta, residual, residual, point.lo, point.hi, point.group, found)
        violation = violation_between(found, n_groups)
        vain = 0 if violation <= 0.5 * best else vain + 1
        if violation < best:
            best = violation
            _copy(beta, best_beta, beta.shape[0])
            _copy(residual, best_residual, beta.shape[0])
        if not violation > aim or vain > patience:
            break
        levels_between(found, found[_LEVELS])
        count = _list_free(point, room.members)
        count = _list_violators(room, count, violation, point)
    _copy(best_beta, beta, beta.shape[0])
    _copy(best_residual, residual, beta.shape[0])
    return best, rounds


@inlined
def clipped(value: float, low: float, high: float) -> float:
    """Return the point of an interval next to ``value``."""
    if value < low:
        return low
    return high if value > high else value


@borrowing
def _is_finite(values: Any) -> bool:
    total = 0.0
    for t in range(values.shape[0]):
        total += abs(values[t])
    return bool(np.isfinite(total))


@borrowing
def _copy(source: Any, target: Any, size: int) -> None:
    # Slices that are assigned to slices take seconds to compile.
    for t in range(size):
        target[t] = source[t]


@borrowing
def _list_free(point: Point, members: Any) -> int:
    """List the variables strictly inside their box; return how many there are."""
    beta, lo, hi, count = point.beta, point.lo, point.hi, 0
    for t in range(beta.shape[0]):
        if lo[t] < beta[t] < hi[t]:
            members[count] = t
            count += 1
    return count


@borrowing
def _list_violators(room: Room, first: int, violation: float, point: Point) -> int:
    """List the variables at bounds that violate most, from place ``first`` on; return where the list ends.

    Where no variable of a group is free, half of the violation is the most that one of them can show.
    """
    beta, residual, lo, hi, group, _ = point
    members, wrong, levels, end = room.members, room.lines[_WRONG], room.groups[_LEVELS], first
    least = FREED_SHARE * violation
    for t in range(beta.shape[0]):
        excess = residual[t] - levels[group[t]]
        is_wrong = (beta[t] == lo[t] and excess > least) or (beta[t] == hi[t] and excess < -least)
        wrong[t] = abs(excess) if is_wrong and lo[t] < hi[t] else 0.0
    for t in range(beta.shape[0]):
        if wrong[t] > 0 and (end < first + MOST_FREED or wrong[t] > wrong[members[end - 1]]):
            if end < first + MOST_FREED:
                end += 1
            k = end - 1
            while k > first and wrong[members[k - 1]] < wrong[t]:
                members[k] = members[k - 1]
                k -= 1
            members[k] = t
    return end


@borrowing
def _drop_dust(direction: Any, count: int, beta: Any) -> None:
    """Rounding alone is no reason to move: it would push variables that rest at bounds."""
    largest = 0.0
    for t in range(beta.shape[0]):
        largest = abs(beta[t]) if abs(beta[t]) > largest else largest
    for k in range(count):
        if abs(direction[k]) <= _ROUNDING * largest:
            direction[k] = 0.0


@borrowing
def _drop_blocked(room: Room, count: int, point: Point) -> int:
    """Drop the members at a bound that would leave their box; return how many those are."""
    beta, members, direction, kept = point.beta, room.members, room.lines[_DIRECTION], 0
    for k in range(count):
        t = members[k]
        if (direction[k] > 0 and beta[t] >= point.hi[t]) or (direction[k] < 0 and beta[t] <= point.lo[t]):
            continue
        members[kept] = t
        kept += 1
    return count - kept


@borrowing
def _step(kernel: Any, room: Room, count: int, point: Point) -> tuple[int, bool]:
    """Move along the direction to its end or to the first bound; those at a bound then are members no more.

    Returns the number of members, and whether the end was reached.
    """
    beta, lo, hi = point.beta, point.lo, point.hi
    members, direction, image = room.members, room.lines[_DIRECTION], room.lines[_IMAGE]
    n, length = kernel.shape[0], 1.0
    for k in range(count):
        t = members[k]
        if direction[k] != 0:
            share = ((hi[t] if direction[k] > 0 else lo[t]) - beta[t]) / direction[k]
            length = share if share < length else length
    kept = 0
    for t in range(n):
        image[t] = 0.0
    for k in range(count):
        t, d, before = members[k], direction[k], beta[members[k]]
        bound = hi[t] if d > 0 else lo[t]
        is_stopped = d != 0 and (bound - before) / d <= length
        beta[t] = bound if is_stopped else clipped(before + length * d, lo[t], hi[t])
        _add(image, kernel[t % n], beta[t] - before, n)
        if not is_stopped:
            members[kept] = t
            kept += 1
    for t in range(beta.shape[0]):
        point.residual[t] -= image[t % n]
    return kept, length == 1.0


@borrowing
def _add(target: Any, values: Any, factor: float, size: int) -> None:
    for t in range(size):
        target[t] += factor * values[t]


@borrowing
def _solve(kernel: Any, point: Point, room: Room, size: int) -> bool:
    """Solve for the direction, by a ridged factor and refinement; return whether that went well."""
    n, n_groups, group, members, matrix = kernel.shape[0], point.n_groups, point.group, room.members, room.matrix
    direction, remainder, part = room.lines[_DIRECTION], room.lines[_REMAINDER], room.lines[_PART]
    scale, levels = room.lines[_SCALE], room.groups[_LEVELS]
    for k in range(size):
        row = members[k] % n
        for j in range(size):
            matrix[k, j] = kernel[row, members[j] % n]
        direction[k], remainder[k] = 0.0, point.residual[members[k]]
    _scale_of(matrix, scale, size)
    if not _factorise(matrix, scale, room.factor, size):
        return False
    _pull(point, room, size)
    for _ in range(_REFINEMENTS):
        _copy(remainder, part, size)
        _substitute(room.factor, scale, part, size)
        _keep_sums(point, room, size)
        largest, change = 0.0, 0.0
        for k in range(size):
            direction[k] += part[k]
            largest = abs(direction[k]) if abs(direction[k]) > largest else largest
            change = abs(part[k]) if abs(part[k]) > change else change
        if not np.isfinite(largest):
            return False
        if change <= _ROUNDING * largest:
            break
        for k in range(size):
            level = levels[group[members[k]]] if n_groups > 0 else 0.0
            remainder[k] -= _dot(matrix[k], part, size) + level
    _close_sums(point, room, size)
    return True


@borrowing
def _scale_of(matrix: Any, scale: Any, size: int) -> None:
    """Measure each sample by its own size: beside one that is huge all others would look like nothing."""
    largest = 0.0
    for k in range(size):
        largest = matrix[k, k] if matrix[k, k] > largest else largest
    for k in range(size):
        own = matrix[k, k] if matrix[k, k] > 0 else largest
        scale[k] = 1.0 / np.sqrt(own) if own > 0 else 1.0


@borrowing
def _factorise(matrix: Any, scale: Any, factor: Any, size: int) -> bool:
    """Put the Cholesky factor of the scaled matrix into the lower half of ``factor``; return whether it exists."""
    for j in range(size):
        row = factor[j]
        pivot = matrix[j, j] * scale[j] * scale[j] + _RIDGE - _dot(row, row, j)
        if not pivot > 0:
            return False
        row[j] = np.sqrt(pivot)
        weight = 1.0 / row[j]
        for i in range(j + 1, size):
            factor[i, j] = weight * (matrix[i, j] * scale[i] * scale[j] - _dot(factor[i], row, j))
    return True


@borrowing
def _dot(a: Any, b: Any, size: int) -> float:
    total = 0.0
    for k in range(size):
        total += a[k] * b[k]
    return total


@borrowing
def _substitute(factor: Any, scale: Any, values: Any, size: int) -> None:
    """Solve with the factor, in place."""
    for k in range(size):
        values[k] = (values[k] * scale[k] - _dot(factor[k], values, k)) / factor[k, k]
    for k in range(size - 1, -1, -1):
        values[k] /= factor[k, k]
        _add(values, factor[k], -values[k], k)
    for k in range(size):
        values[k] *= scale[k]


@borrowing
def _pull(point: Point, room: Room, size: int) -> None:
    """Find how the members answer to each group's multiplier, and what that does to the sums."""
    group, members, groups = point.group, room.members, room.groups
    for g in range(point.n_groups):
        pull = room.pulls[g]
        for k in range(size):
            pull[k] = 1.0 if group[members[k]] == g else 0.0
        _substitute(room.factor, room.lines[_SCALE], pull, size)
        for other in range(point.n_groups):
            groups[_SCHUR + other, g] = 0.0
        for k in range(size):
            groups[_SCHUR + group[members[k]], g] += pull[k]


@borrowing
def _keep_sums(point: Point, room: Room, size: int) -> None:
    """Take the groups' multipliers out of ``part``, so that its sums are zero, exactly, whatever cancels."""
    group, members, part = point.group, room.members, room.lines[_PART]
    sums, counts, levels = room.groups[_SUMS], room.groups[_COUNTS], room.groups[_LEVELS]
    if point.n_groups == 0:
        return
    _add_up(members, group, part, size, sums, counts)
    _small_solve(room.groups, point.n_groups)
    for g in range(point.n_groups):
        _add(part, room.pulls[g], -levels[g], size)
    _add_up(members, group, part, size, sums, counts)
    for k in range(size):
        part[k] -= sums[group[members[k]]] / counts[group[members[k]]]


@borrowing
def _close_sums(point: Point, room: Room, size: int) -> None:
    """Give what the sums of ``direction`` are not zero by to the member of each group that is smallest.

    Where its parts cancel, each of them is as large as what rounding takes from their sum.
    """
    group, members, direction, scale = point.group, room.members, room.lines[_DIRECTION], room.lines[_SCALE]
    for g in range(point.n_groups):
        total, chosen = 0.0, -1
        for k in range(size):
            if group[members[k]] == g:
                total += direction[k]
                if chosen < 0 or scale[k] > scale[chosen]:
                    chosen = k
        if chosen >= 0:
            direction[chosen] -= total


@borrowing
def _add_up(members: Any, group: Any, part: Any, size: int, sums: Any, counts: Any) -> None:
    """Add up what ``part`` has of each group, and count its members."""
    for g in range(sums.shape[0]):
        sums[g], counts[g] = 0.0, 0.0
    for k in range(size):
        g = group[members[k]]
        sums[g] += part[k]
        counts[g] += 1.0


@borrowing
def _small_solve(groups: Any, n_groups: int) -> None:
    """Solve for the multipliers of one or two groups; one without members has none."""
    sums, counts, levels = groups[_SUMS], groups[_COUNTS], groups[_LEVELS]
    for g in range(n_groups):
        levels[g] = sums[g] / groups[_SCHUR + g, g] if counts[g] > 0 else 0.0
    if n_groups == 2 and counts[0] > 0 and counts[1] > 0:
        first, second = groups[_SCHUR], groups[_SCHUR + 1]
        determinant = first[0] * second[1] - first[1] * second[0]
        levels[0] = (sums[0] * second[1] - sums[1] * first[1]) / determinant
        levels[1] = (sums[1] * first[0] - sums[0] * second[0]) / determinant
