"""A primal active-set method on a kernel matrix in memory: from near the optimum to the last digit.

With the others held at their bounds the optimum of the free variables F is the solution of

    K_FF δ + μ_g = r_F    and in every group    Σ δ = 0.

Step to that point, or to the first bound on the way, which then holds its variable; where all of F fits, free the
variables at bounds that still violate; repeat. The Cholesky factor of K_FF follows F, a column at a time.
What rounding makes of it does not last: a direction that reaches its end is refined with K itself. For more than a
few hundred variables there is `hinge.solvers.active_set.free_set`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hinge.dual.optimality import N_FOUND, levels_between, survey, violation_between
from hinge.runtime.jit import borrowing, inlined
from hinge.solvers.pairs.step import Point

# A factor of this many free variables takes a millisecond or two.
MOST_FREE = 400

# The violation aimed at, relative to the size of the residuals.
AIM = 1e-11

#: How many directions in a row need not halve the violation: where few variables are free they cost nothing
#: beside pair steps, and lead to the end more often than not.
PATIENCE = 12

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

# A part of an unrefined direction that is smaller than this share of the largest may have the wrong sign.
_DOUBTFUL = 1e-6


# Lines of `Room.lines`: of each variable, each sample, each member.
_BEST_BETA, _BEST_RESIDUAL, _WRONG, _IMAGE, _DIRECTION, _REMAINDER, _PART, _SCALE, _N_LINES = range(9)

# Lines of `Room.groups`, after those of `survey`; from the last on, what the groups' multipliers do to the sums.
_LEVELS, _TOTALS, _SUMS, _COUNTS, _SCHUR = range(N_FOUND, N_FOUND + 5)


class Room(NamedTuple):
    """Room for `settle` to work in, for compiled code: for its problem, or for a larger one.

    Few arrays, as each of them takes its time whenever compiled code is called.

    Attributes
    ----------
    members : int64 array of shape (n_variables,)
        The variables that move.
    lines : float64 array of shape (_N_LINES, n_variables)
        Vectors.
    factor : float64 array
        R of the kernel values of the members, RᵀR, each measured by its own size; its upper half counts.
    pulls : float64 array
        How the members answer to the multiplier of each group.
    groups : float64 array
        What is known of each group, in columns; the first lines are those of `survey`.
    """

    members: Any
    lines: Any
    factor: Any
    pulls: Any
    groups: Any

    @classmethod
    def of(cls, n_variables: int, n_groups: int) -> Room:
        """Make room for a problem of this size."""
        most, groups = min(n_variables, MOST_FREE), max(n_groups, 1)
        members, lines = np.empty(n_variables, np.int64), np.empty((_N_LINES, n_variables))
        factor, pulls = np.empty((most, most)), np.empty((groups, most))
        return cls(members, lines, factor, pulls, np.empty((_SCHUR + groups, groups)))


@borrowing
def settle(
    kernel: Any, point: Point, room: Room, aim: float, patience: int, most_work: float
) -> tuple[int, float]:
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
    most_work : float
        Multiply-adds after which no direction is begun. On the way to an end every step brings the objective down,
        so that the point stays where it is then.

    Returns
    -------
    int, float
        The number of directions, and the multiply-adds that they took, roughly.
    """
    beta, residual, n_groups, found = point.beta, point.residual, point.n_groups, room.groups
    best_beta, best_residual = room.lines[_BEST_BETA], room.lines[_BEST_RESIDUAL]
    _copy(beta, best_beta, beta.shape[0])
    _copy(residual, best_residual, beta.shape[0])
    survey(beta, residual, residual, point.lo, point.hi, point.group, found)
    best, vain, rounds, work = violation_between(found, n_groups), 0, 0, 0.0
    count, n_wanted = 0, _list_free(point, room.members)  # members in the factor, and those that are to be
    while n_wanted <= MOST_FREE and best > aim:
        if work > most_work:
            return rounds, work
        rounds += 1
        work += _work_of(count, n_wanted, kernel.shape[0])
        if not _extend(kernel, room, count, n_wanted):
            break
        count = n_wanted
        if count > 0 and not _solve(kernel, point, room, count):
            break
        n_blocked = _drop_blocked(room, count, point)
        if n_blocked > 0:
            count -= n_blocked
            n_wanted = count
            if count > 0:
                continue
        elif count > 0:
            count, is_there = _step(room, count, point, kernel.shape[0])
            n_wanted = count
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
        count = _keep_free(room, count, point)
        n_wanted = _list_violators(room, count, violation, point)
    _copy(best_beta, beta, beta.shape[0])
    _copy(best_residual, residual, beta.shape[0])
    return rounds, work


@inlined
def _work_of(first: int, size: int, n: int) -> float:
    """Guess the multiply-adds of a direction of ``size`` members, ``first`` of them in the factor already."""
    return (size - first) * 0.25 * size * size + size * (4.0 * size + 2.0 * n)


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
    beta, members, direction, kept = point.beta, room.members, room.lines[_DIRECTION], count
    for k in range(count - 1, -1, -1):
        t = members[k]
        if (direction[k] > 0 and beta[t] >= point.hi[t]) or (direction[k] < 0 and beta[t] <= point.lo[t]):
            _drop(room, k, kept)
            kept -= 1
    return count - kept


@borrowing
def _keep_free(room: Room, count: int, point: Point) -> int:
    """Drop the members that have not left their bound; return how many are left."""
    beta, members, kept = point.beta, room.members, count
    for k in range(count - 1, -1, -1):
        t = members[k]
        if not point.lo[t] < beta[t] < point.hi[t]:
            _drop(room, k, kept)
            kept -= 1
    return kept


@borrowing
def _first_bound(room: Room, count: int, point: Point) -> tuple[float, float]:
    """Return the share of the direction that leads to the first bound, 1 at most, and that member's part of it."""
    beta, members, direction = point.beta, room.members, room.lines[_DIRECTION]
    length, part = 1.0, 0.0
    for k in range(count):
        t, d = members[k], direction[k]
        if d != 0:
            share = ((point.hi[t] if d > 0 else point.lo[t]) - beta[t]) / d
            if share < length:
                length, part = share, d
    return length, part


@borrowing
def _step(room: Room, count: int, point: Point, n: int) -> tuple[int, bool]:
    """Move along the direction to its end or to the first bound; those at a bound then are members no more.

    Returns the number of members, and whether the end was reached.
    """
    beta, lo, hi = point.beta, point.lo, point.hi
    members, direction, image = room.members, room.lines[_DIRECTION], room.lines[_IMAGE]
    length, _ = _first_bound(room, count, point)
    kept = count
    for k in range(count - 1, -1, -1):
        t, d = members[k], direction[k]
        bound = hi[t] if d > 0 else lo[t]
        is_stopped = d != 0 and (bound - beta[t]) / d <= length
        beta[t] = bound if is_stopped else clipped(beta[t] + length * d, lo[t], hi[t])
        if is_stopped:
            _drop(room, k, kept)
            kept -= 1
    for first in range(0, beta.shape[0], n):
        for t in range(n):
            point.residual[first + t] -= length * image[t]
    return kept, length == 1.0


@borrowing
def _add(target: Any, values: Any, factor: float, size: int) -> None:
    for t in range(size):
        target[t] += factor * values[t]


@borrowing
def _solve(kernel: Any, point: Point, room: Room, size: int) -> bool:
    """Solve for the direction and its image; return whether that went well.

    Where a bound is on the way, beyond doubt, the factor is sharp enough. An end that is reached is refined.
    """
    n, group, members, image = kernel.shape[0], point.group, room.members, room.lines[_IMAGE]
    direction, remainder, part = room.lines[_DIRECTION], room.lines[_REMAINDER], room.lines[_PART]
    levels, totals = room.groups[_LEVELS], room.groups[_TOTALS]
    for t in range(n):
        image[t] = 0.0
    for k in range(size):
        direction[k], remainder[k] = 0.0, point.residual[members[k]]
    for g in range(totals.shape[0]):
        levels[g], totals[g] = 0.0, 0.0
    _pull(point, room, size)
    for attempt in range(_REFINEMENTS):
        _copy(remainder, part, size)
        _substitute(room, part, size)
        _keep_sums(point, room, size)
        largest, change = 0.0, 0.0
        for k in range(size):
            direction[k] += part[k]
            largest = abs(direction[k]) if abs(direction[k]) > largest else largest
            change = abs(part[k]) if abs(part[k]) > change else change
            _add(image, kernel[members[k] % n], part[k], n)
        if not np.isfinite(largest):
            return False
        if attempt == 0:
            length, blocker = _first_bound(room, size, point)
            if length < 1 and abs(blocker) > _DOUBTFUL * largest:
                break
        if change <= _ROUNDING * largest:
            break
        for g in range(totals.shape[0]):
            totals[g] += levels[g]
        for k in range(size):
            remainder[k] = point.residual[members[k]] - image[members[k] % n] - totals[group[members[k]]]
    _close_sums(kernel, point, room, size)
    _drop_dust(direction, size, point.beta)
    return True


@borrowing
def _extend(kernel: Any, room: Room, first: int, size: int) -> bool:
    """Take the members from ``first`` on into the factor; return whether there is one."""
    n, members, factor, part = kernel.shape[0], room.members, room.factor, room.lines[_PART]
    scale, largest = room.lines[_SCALE], 0.0
    if first < size:
        for t in range(n):
            largest = kernel[t, t] if kernel[t, t] > largest else largest
    for k in range(first, size):
        row = kernel[members[k] % n]
        # Each sample is measured by its own size: beside one that is huge all others would look like nothing.
        own = row[members[k] % n]
        measure = own if own > 0 else largest
        scale[k] = 1.0 / np.sqrt(measure) if measure > 0 else 1.0
        for j in range(k):
            part[j] = row[members[j] % n] * scale[j] * scale[k]
        _substitute_forward(factor, part, k)
        pivot = own * scale[k] * scale[k] + _RIDGE
        for j in range(k):
            factor[j, k] = part[j]
            pivot -= part[j] * part[j]
        if not pivot > 0:
            return False
        factor[k, k] = np.sqrt(pivot)
    return True


@borrowing
def _drop(room: Room, place: int, size: int) -> None:
    """Take a member out of the list and of the factor, which rotations of its lines make triangular again."""
    members, scale, factor = room.members, room.lines[_SCALE], room.factor
    for k in range(place, size - 1):
        members[k], scale[k] = members[k + 1], scale[k + 1]
    for i in range(size):
        row = factor[i]
        for j in range(place if i <= place else i - 1, size - 1):
            row[j] = row[j + 1]
    for i in range(place, size - 1):
        upper, lower = factor[i], factor[i + 1]
        length = np.sqrt(upper[i] * upper[i] + lower[i] * lower[i])
        cosine, sine = upper[i] / length, lower[i] / length
        upper[i] = length
        for j in range(i + 1, size - 1):
            above, below = upper[j], lower[j]
            upper[j] = cosine * above + sine * below
            lower[j] = cosine * below - sine * above


@borrowing
def _substitute_forward(factor: Any, values: Any, size: int) -> None:
    """Solve with the transposed factor, in place."""
    for k in range(size):
        row = factor[k]
        value = values[k] / row[k]
        values[k] = value
        for j in range(k + 1, size):
            values[j] -= value * row[j]


@borrowing
def _substitute(room: Room, values: Any, size: int) -> None:
    """Solve with the factor and its transpose, in place."""
    factor, scale = room.factor, room.lines[_SCALE]
    for k in range(size):
        values[k] *= scale[k]
    _substitute_forward(factor, values, size)
    for k in range(size - 1, -1, -1):
        row, rest = factor[k], 0.0
        for j in range(k + 1, size):
            rest += row[j] * values[j]
        values[k] = (values[k] - rest) / row[k]
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
        _substitute(room, pull, size)
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
def _close_sums(kernel: Any, point: Point, room: Room, size: int) -> None:
    """Give what the sums of ``direction`` are not zero by to the member of each group that is smallest.

    Where its parts cancel, each of them is as large as what rounding takes from their sum.
    """
    group, members, direction, scale = point.group, room.members, room.lines[_DIRECTION], room.lines[_SCALE]
    n = kernel.shape[0]
    for g in range(point.n_groups):
        total, chosen = 0.0, -1
        for k in range(size):
            if group[members[k]] == g:
                total += direction[k]
                if chosen < 0 or scale[k] > scale[chosen]:
                    chosen = k
        if chosen >= 0:
            direction[chosen] -= total
            _add(room.lines[_IMAGE], kernel[members[chosen] % n], -total, n)


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
