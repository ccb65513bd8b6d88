"""The compiled steps of a free set: see `hinge.solvers.active_set.free_set`.

``members[:n_free]`` are the free variables, ``inverse`` is the inverse of their system: first a row a group, then
one a variable in the order of ``members``; see `inverse.py`. Variable t belongs to row ``t % n`` of
the kernel matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge.kernel.accumulate import add_rows
from hinge.runtime.jit import compiled
from hinge.solvers.active_set.inverse import add, copy_row, remove, times

# Violators freed between two updates of all residuals are those that violate by this share of the worst.
_FREED_SHARE = 0.3

# What one moved variable costs for each residual, in multiplications of a change.
PASS = 0.4

UNDER_WAY, TOO_MANY, VAIN = 0, 1, 2


@compiled
def can_drop(inverse: Any, members: Any, n_free: int, group: Any, n_groups: int, place: int) -> bool:
    """Whether the variable at ``place`` is not the last of its group."""
    if n_groups == 0:
        return n_free > 1
    count = 0
    for f in range(n_free):
        count += group[members[f]] == group[members[place]]
    return count > 1 and inverse[n_groups + place, n_groups + place] > 0


@compiled
def _first_bound(
    length: float,
    factor: float,
    direction: Any,
    n_groups: int,
    members: Any,
    n_free: int,
    beta: Any,
    lo: Any,
    hi: Any,
) -> tuple[float, int]:
    """How far the free variables go along ``factor * direction``, ``length`` at most; who stops them, or -1."""
    first = -1
    for f in range(n_free):
        t, d = members[f], factor * direction[n_groups + f]
        if d > 0:
            reach = (hi[t] - beta[t]) / d
        elif d < 0:
            reach = (lo[t] - beta[t]) / d
        else:
            continue
        if reach < length:
            length, first = max(reach, 0.0), f
    return length, first


@compiled
def _walk(
    beta: Any, lo: Any, hi: Any, group: Any, n_groups: int, members: Any, n_free: int, inverse: Any,
    direction: Any, dragged: Any, pace: Any, column: Any,
) -> tuple[bool, int, int, float]:  # fmt: skip
    """Step along ``direction`` (and ``pace`` for the dragged), dropping what comes to a bound on the way.

    Returns whether the end was reached, the number still free, the number of variables dropped, and the share of
    ``pace`` that the dragged have gone.
    """
    dropped, left = 0, 1.0
    while True:
        length, first = _first_bound(1.0, 1.0, direction, n_groups, members, n_free, beta, lo, hi)
        for f in range(n_free):
            t = members[f]
            beta[t] = min(max(beta[t] + length * direction[n_groups + f], lo[t]), hi[t])
        for k in range(dragged.shape[0]):
            beta[dragged[k]] += length * left * pace[k]
        left *= 1.0 - length
        if first < 0:
            return True, n_free, dropped, 1.0 - left
        t = members[first]
        beta[t] = hi[t] if direction[n_groups + first] > 0 else lo[t]
        if not can_drop(inverse, members, n_free, group, n_groups, first):
            return False, n_free, dropped, 1.0 - left
        size, place = n_groups + n_free, n_groups + first
        share = direction[place] / inverse[place, place]
        copy_row(inverse, size, place, column)
        for j in range(size):
            direction[j] = (1.0 - length) * (direction[j] - share * column[j])
        remove(inverse, size, place, column)
        direction[place] = direction[size - 1]
        n_free -= 1
        members[first] = members[n_free]
        dropped += 1


@compiled
def subtract_image(kernel: Any, residual: Any, changed: Any, step: Any) -> None:
    """residual −= K δ, for every run of variables."""
    n = kernel.shape[0]
    image = np.zeros(n)
    moved = step != 0.0
    add_rows(kernel, changed[moved] % n, step[moved], image)
    for first in range(0, residual.shape[0], n):
        for t in range(n):
            residual[first + t] -= image[t]


@compiled
def drag(
    kernel: Any, beta: Any, residual: Any, lo: Any, hi: Any, group: Any, n_groups: int, members: Any, n_free: int,
    inverse: Any, dragged: Any, target: Any,
) -> tuple[bool, int]:  # fmt: skip
    """Take the variables ``dragged`` to their targets; the free ones follow, so that their residuals stay equal.

    Returns whether the end was reached, and how many are still free.
    """
    size = n_groups + n_free
    pace = target - beta[dragged]
    pulled = np.zeros(residual.shape[0])
    subtract_image(kernel, pulled, dragged, pace)  # −K δ of the dragged
    right = np.zeros(size)
    if n_groups > 0:
        for k in range(dragged.shape[0]):
            right[group[dragged[k]]] -= pace[k]
    for f in range(n_free):
        right[n_groups + f] = pulled[members[f]]
    direction = np.zeros(size)
    times(inverse, size, right, direction)
    everyone = members[:n_free].copy()
    before = beta[everyone].copy()
    ok, n_free, _, share = _walk(
        beta, lo, hi, group, n_groups, members, n_free, inverse, direction, dragged, pace, np.empty(size)
    )
    if ok:
        for k in range(dragged.shape[0]):
            beta[dragged[k]] = target[k]
    subtract_image(kernel, residual, everyone, beta[everyone] - before)
    for t in range(residual.shape[0]):
        residual[t] += share * pulled[t]
    return ok, n_free


@compiled
def _enter(
    entrant: int, kernel: Any, beta: Any, lo: Any, hi: Any, group: Any, n_groups: int, members: Any, n_free: int,
    inverse: Any, dependent: float, excess: float, levels: Any, border: Any, pull: Any, column: Any,
) -> tuple[bool, int, int]:  # fmt: skip
    """Move a variable that violates until it does not, or is at a bound; the free ones follow.

    Those that come to a bound on the way are dropped. The entrant joins the free ones if it ends inside its box,
    which it cannot if its curvature, given the free ones, is at most ``dependent`` times k(x, x).
    Returns whether that went well, the number free and the number dropped.
    """
    n = kernel.shape[0]
    row = kernel[entrant % n]
    size = n_groups + n_free
    for g in range(n_groups):
        border[g] = 1.0 if group[entrant] == g else 0.0
    for f in range(n_free):
        border[n_groups + f] = row[members[f] % n]
    times(inverse, size, border, pull)
    curvature = row[entrant % n]
    flat = dependent * abs(curvature)
    for j in range(size):
        curvature -= border[j] * pull[j]
    sign = 1.0 if excess > 0 else -1.0
    wanted, dropped = abs(excess), 0
    while True:
        own = hi[entrant] - beta[entrant] if sign > 0 else beta[entrant] - lo[entrant]
        best = wanted / curvature if curvature > flat else np.inf
        length, first = _first_bound(min(own, best), -sign, pull, n_groups, members, n_free, beta, lo, hi)
        if not length < np.inf:
            return False, n_free, dropped
        for f in range(n_free):
            t = members[f]
            beta[t] = min(max(beta[t] - length * sign * pull[n_groups + f], lo[t]), hi[t])
        beta[entrant] = min(max(beta[entrant] + length * sign, lo[entrant]), hi[entrant])
        for g in range(n_groups):
            levels[g] -= length * sign * pull[g]
        wanted -= length * max(curvature, 0.0)
        if first < 0:
            if length == own:
                beta[entrant] = hi[entrant] if sign > 0 else lo[entrant]
                return True, n_free, dropped
            add(inverse, size, pull, curvature)
            members[n_free] = entrant
            return True, n_free + 1, dropped
        t, place = members[first], n_groups + first
        beta[t] = lo[t] if sign * pull[place] > 0 else hi[t]
        if not can_drop(inverse, members, n_free, group, n_groups, first):
            if n_groups == 0 or not curvature > flat:
                return False, n_free, dropped
            # The last of its group: the entrant takes its place.
            add(inverse, size, pull, curvature)
            remove(inverse, size + 1, place, column)
            members[first] = entrant
            return True, n_free, dropped + 1
        share = pull[place] / inverse[place, place]
        curvature += share * pull[place]
        copy_row(inverse, size, place, column)
        for j in range(size):
            pull[j] -= share * column[j]
        remove(inverse, size, place, column)
        size -= 1
        n_free -= 1
        pull[place] = pull[size]
        members[first] = members[n_free]
        dropped += 1


@compiled
def to_optimum(
    kernel: Any, beta: Any, residual: Any, lo: Any, hi: Any, group: Any, n_groups: int, members: Any, n_free: int,
    inverse: Any,
) -> tuple[bool, int, int]:  # fmt: skip
    """Take the free variables to their optimum: they are there but for rounding, unless this is the beginning.

    Returns whether that went well, how many are still free and how many were dropped on the way.
    """
    size = n_groups + n_free
    right, direction, column = np.zeros(size), np.zeros(size), np.zeros(size)
    moved = members[:n_free].copy()
    before = beta[moved]
    for f in range(n_free):
        right[n_groups + f] = residual[moved[f]]
    times(inverse, size, right, direction)
    _keep_sums(direction, members, n_free, group, n_groups)
    ok, n_free, dropped, _ = _walk(
        beta, lo, hi, group, n_groups, members, n_free, inverse, direction, np.empty(0, np.int64), np.empty(0),
        column,
    )  # fmt: skip
    subtract_image(kernel, residual, moved, beta[moved] - before)
    return ok, n_free, dropped


@compiled
def free_worst(
    kernel: Any, beta: Any, residual: Any, lo: Any, hi: Any, group: Any, n_groups: int, members: Any, n_free: int,
    inverse: Any, dependent: float, tol: float, most_work: float, most_freed: int,
) -> tuple[int, int, int, float]:  # fmt: skip
    """Free the variables that violate most, one after the other; then bring all residuals up to date.

    Returns how it ended, how many variables are free, how often one was freed or dropped, and the multiplications.
    """
    room = members.shape[0] - n_groups
    border, pull, column = np.zeros(members.shape[0]), np.zeros(members.shape[0]), np.zeros(members.shape[0])
    levels, wrong = np.zeros(max(n_groups, 1)), np.zeros(beta.shape[0])
    _set_levels(residual, members, n_free, group, n_groups, levels)
    worst = _find_wrong(beta, residual, lo, hi, group, n_groups, levels, members, n_free, wrong)
    candidates = np.empty(most_freed, np.int64)
    n_candidates = _most_wrong(wrong, _FREED_SHARE * worst, candidates)
    moved, n_moved = np.concatenate((members[:n_free], candidates[:n_candidates])), n_free
    before = beta[moved]
    code, changes, work = UNDER_WAY, 0, 0.0
    for place in range(n_candidates):
        chosen = candidates[place]
        if n_free >= room:
            code = TOO_MANY
            break
        n_moved += 1
        excess = residual[chosen] - (levels[group[chosen]] if n_groups > 0 else 0.0)
        excess -= _image_at(chosen, kernel, moved[:n_moved], beta, before)
        may_move = beta[chosen] < hi[chosen] if excess > 0 else beta[chosen] > lo[chosen]
        if abs(excess) <= 0.25 * tol or not may_move:
            continue
        ok, n_free, dropped = _enter(
            chosen, kernel, beta, lo, hi, group, n_groups, members, n_free, inverse, dependent, excess, levels,
            border, pull, column,
        )  # fmt: skip
        changes += dropped + 1
        work += (dropped + 1.0) * n_free * n_free + PASS * beta.shape[0]
        if not ok or work > most_work:
            code = VAIN
            break
    moved = moved[:n_moved]
    subtract_image(kernel, residual, moved, beta[moved] - before[:n_moved])
    return code, n_free, changes, work + PASS * n_moved * beta.shape[0]


@compiled
def _image_at(t: int, kernel: Any, moved: Any, beta: Any, before: Any) -> float:
    """How much of t's residual the variables that ``moved`` have taken since ``before``."""
    n = kernel.shape[0]
    row, total = kernel[t % n], 0.0
    for k in range(moved.shape[0]):
        total += row[moved[k] % n] * (beta[moved[k]] - before[k])
    return total


@compiled
def _find_wrong(
    beta: Any, residual: Any, lo: Any, hi: Any, group: Any, n_groups: int, levels: Any, members: Any, n_free: int,
    wrong: Any,
) -> float:  # fmt: skip
    """Set ``wrong`` to how much each variable that is not free in the system violates; return the worst."""
    worst = 0.0
    for t in range(beta.shape[0]):
        excess = residual[t] - (levels[group[t]] if n_groups > 0 else 0.0)
        wrong[t] = 0.0
        if excess > 0 and beta[t] < hi[t]:
            wrong[t] = excess
        elif excess < 0 and beta[t] > lo[t]:
            wrong[t] = -excess
    for f in range(n_free):
        wrong[members[f]] = 0.0
    for t in range(beta.shape[0]):
        worst = max(worst, wrong[t])
    return worst


@compiled
def _most_wrong(wrong: Any, least: float, places: Any) -> int:
    """Put the places of the largest entries above ``least`` into ``places``, largest first; return how many."""
    count = 0
    for t in range(wrong.shape[0]):
        if wrong[t] > least and (count < places.shape[0] or wrong[t] > wrong[places[count - 1]]):
            count = min(count + 1, places.shape[0])
            k = count - 1
            while k > 0 and wrong[places[k - 1]] < wrong[t]:
                places[k] = places[k - 1]
                k -= 1
            places[k] = t
    return count


@compiled
def _keep_sums(direction: Any, members: Any, n_free: int, group: Any, n_groups: int) -> None:
    """Take out of ``direction`` what rounding adds to the groups' sums."""
    for g in range(n_groups):
        total, count = 0.0, 0
        for f in range(n_free):
            if group[members[f]] == g:
                total += direction[n_groups + f]
                count += 1
        if count > 0:
            for f in range(n_free):
                if group[members[f]] == g:
                    direction[n_groups + f] -= total / count


@compiled
def _set_levels(residual: Any, members: Any, n_free: int, group: Any, n_groups: int, levels: Any) -> None:
    """Set ``levels`` to the mean residual of each group's free variables."""
    levels[:] = 0.0
    counts = np.zeros(max(n_groups, 1))
    for f in range(n_free):
        if n_groups > 0:
            levels[group[members[f]]] += residual[members[f]]
            counts[group[members[f]]] += 1.0
    for g in range(n_groups):
        levels[g] /= max(counts[g], 1.0)
