"""The compiled steps of a free set: see `hinge.solvers.active_set.free_set`.

Let F be the members: the free variables, in the order of ``members``. All steps rest on one linear system,

    [ 0   E'  ] [ λ ]   [ s ]        E: one column per group, marking its members
    [ E  K_FF ] [ δ ] = [ g ]

whose inverse M is kept: first one row per group, then one per member (`inverse.py`). The step δ changes the sums
of the members by s and their residuals by λ − g, where each group has a level λ of its own. There are three kinds:

* to the optimum of F: s = 0 and g = r_F, so that the residuals of a group become equal;
* after variables D that are dragged by δ_D: s = −Σ δ_D and g = −K_FD δ_D, so that they stay equal;
* after an entrant t that grows by one: −M (e_t, K_Ft), where e_t marks its group. The curvature along this
  direction is k_tt − (e_t, K_Ft)' M (e_t, K_Ft), and levels change by its first rows.

Each goes no further than to the first bound of a member. That one is dropped from F, and the others go on.
Variable t belongs to row ``t % n`` of the kernel matrix.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hinge.arrays import Floats, Index, Vector
from hinge.kernel.accumulate import add_rows
from hinge.runtime.jit import borrowing
from hinge.runtime.prices import CHANGES_PER_MOVE
from hinge.solvers.active_set.direct import clipped
from hinge.solvers.active_set.inverse import add, copy_row, remove, times

# Violators freed between two updates of all residuals are those that violate by this share of the worst.
_FREED_SHARE = 0.3

# Looking at all residuals is like some moved variables more.
_LOOKS = 10

# How freeing ended.
UNDER_WAY, TOO_MANY, VAIN = range(3)


class System(NamedTuple):
    """A feasible point, its free variables and the inverse of their system.

    Attributes
    ----------
    kernel : array of shape (n, n)
        Kernel values.
    beta, residual, lo, hi, group : arrays
        The point, its residual, the box and the groups, of all variables.
    n_groups : int
        Number of groups.
    dependent : float
        Share of k(x, x) up to which the curvature of an entrant says that it depends on the members.
    members : array
        The first ``counts[FREE]`` are the free variables.
    inverse : array
        The inverse of their system, in its lower half; there is room for more.
    right, direction, column : arrays
        A right-hand side of the system, the solution, and a row of the inverse.
    counts : int64 array
        Members; how often a variable was freed or dropped.
    work : float64 array
        One value: multiplications spent.
    """

    kernel: Any
    beta: Any
    residual: Any
    lo: Any
    hi: Any
    group: Any
    n_groups: int
    dependent: float
    members: Any
    inverse: Any
    right: Any
    direction: Any
    column: Any
    counts: Any
    work: Any


# Places of `System.counts`.
FREE, CHANGES = range(2)


class Desk(NamedTuple):
    """Where variables that are to be freed are listed.

    Attributes
    ----------
    levels : float64 array
        The level of each group; one at least.
    wrong : float64 array of shape (n_variables,)
        How much each variable violates.
    candidates : int64 array
        Those to be freed.
    moved, before : arrays
        All that may move, members first, and where they were.
    """

    levels: Any
    wrong: Any
    candidates: Any
    moved: Any
    before: Any


def subtract_image(kernel: Floats, residual: Vector, changed: Index, step: Vector) -> None:
    """residual −= K δ, for every run of variables."""
    n, moved = kernel.shape[0], step != 0.0
    image = np.zeros(n)
    add_rows(kernel, changed[moved] % n, step[moved], image)
    residual.reshape(-1, n)[...] -= image


def to_optimum(system: System) -> bool:
    """Take the members to their optimum: they are there but for rounding, unless this is the beginning.

    Returns whether they got there.
    """
    n_free, changes = int(system.counts[FREE]), int(system.counts[CHANGES])
    moved = system.members[:n_free].copy()
    before = system.beta[moved]
    is_there, _ = _walk(system, system.residual, moved[:0], before[:0])
    subtract_image(system.kernel, system.residual, moved, system.beta[moved] - before)
    system.work[0] += float(system.counts[CHANGES] - changes) * float(system.counts[FREE]) ** 2
    system.work[0] += CHANGES_PER_MOVE * (n_free + _LOOKS) * system.beta.shape[0]
    return bool(is_there)


def drag(system: System, dragged: Index, target: Vector) -> bool:
    """Take the variables ``dragged`` to their targets while the members follow; return whether they got there."""
    pace, pulled = target - system.beta[dragged], np.zeros(len(system.residual))
    subtract_image(system.kernel, pulled, dragged, pace)  # −K δ of the dragged
    moved = system.members[: system.counts[FREE]].copy()
    before = system.beta[moved]
    is_there, share = _walk(system, pulled, dragged, pace)
    if is_there:
        system.beta[dragged] = target
    subtract_image(system.kernel, system.residual, moved, system.beta[moved] - before)
    system.residual[:] += share * pulled
    return bool(is_there)


def free_worst(system: System, tol: float, most_work: float, most_freed: int) -> int:
    """Free the variables that violate most, one after the other; then bring all residuals up to date.

    Returns how it ended.
    """
    beta, most = system.beta, int(system.counts[FREE]) + most_freed
    desk = Desk(
        np.zeros(max(system.n_groups, 1)), np.empty(len(beta)), np.empty(most_freed, np.int64),
        np.empty(most, np.int64), np.empty(most),
    )  # fmt: skip
    code, n_moved = _free_worst(system, desk, tol, most_work)
    moved = desk.moved[:n_moved]
    subtract_image(system.kernel, system.residual, moved, beta[moved] - desk.before[:n_moved])
    return int(code)


@borrowing
def _free_worst(system: System, desk: Desk, tol: float, most_work: float) -> tuple[int, int]:
    """Free the variables that violate most; return how it ended, and how many may have moved."""
    beta, members, counts, levels = system.beta, system.members, system.counts, desk.levels
    candidates, moved, before = desk.candidates, desk.moved, desk.before
    _find_levels(system, levels, before)
    worst = _find_wrong(system, levels, desk.wrong)
    n_candidates = _most_wrong(desk.wrong, _FREED_SHARE * worst, candidates)
    n_moved, spent = counts[FREE], 0.0
    for k in range(n_moved):
        moved[k], before[k] = members[k], beta[members[k]]
    code = UNDER_WAY
    for c in range(n_candidates):
        chosen = candidates[c]
        if counts[FREE] + system.n_groups >= members.shape[0]:
            code = TOO_MANY
            break
        moved[n_moved], before[n_moved] = chosen, beta[chosen]
        n_moved += 1
        excess = system.residual[chosen] - levels[system.group[chosen]]
        excess -= _image_at(chosen, system.kernel, moved, n_moved, beta, before)
        may_move = beta[chosen] < system.hi[chosen] if excess > 0 else beta[chosen] > system.lo[chosen]
        if abs(excess) <= 0.25 * tol or not may_move:
            continue
        changes = counts[CHANGES]
        is_fine = _enter(system, chosen, excess, levels)
        counts[CHANGES] += 1
        spent += float(counts[CHANGES] - changes) * counts[FREE] * counts[FREE] + CHANGES_PER_MOVE * beta.shape[0]
        if not is_fine or spent > most_work:
            code = VAIN
            break
    system.work[0] += spent + CHANGES_PER_MOVE * n_moved * beta.shape[0]
    return code, n_moved


@borrowing
def drop(system: System, place: int, left: float) -> bool:
    """Drop the member at ``place``, unless it is the last of its group; return whether that was done.

    ``direction`` becomes ``left`` times that of the others.
    """
    n_groups, n_free, direction, column = system.n_groups, system.counts[FREE], system.direction, system.column
    if not _can_drop(system, place):
        return False
    size, row = n_groups + n_free, n_groups + place
    share = direction[row] / system.inverse[row, row]
    copy_row(system.inverse, size, row, column)
    for j in range(size):
        direction[j] = left * (direction[j] - share * column[j])
    remove(system.inverse, size, row, column)
    direction[row] = direction[size - 1]
    system.members[place] = system.members[n_free - 1]
    system.counts[FREE] -= 1
    system.counts[CHANGES] += 1
    return True


@borrowing
def _can_drop(system: System, place: int) -> bool:
    """Whether the member at ``place`` is not the last of its group."""
    n_groups, n_free, members, group = system.n_groups, system.counts[FREE], system.members, system.group
    if n_groups == 0:
        return n_free > 1
    count = 0
    for f in range(n_free):
        count += group[members[f]] == group[members[place]]
    return count > 1 and system.inverse[n_groups + place, n_groups + place] > 0


@borrowing
def _first_bound(system: System, length: float, factor: float) -> tuple[float, int]:
    """How far the members go along ``factor * direction``, ``length`` at most; who stops them, or -1."""
    n_groups, beta, lo, hi, members = system.n_groups, system.beta, system.lo, system.hi, system.members
    first = -1
    for f in range(system.counts[FREE]):
        t, d = members[f], factor * system.direction[n_groups + f]
        if d > 0:
            reach = (hi[t] - beta[t]) / d
        elif d < 0:
            reach = (lo[t] - beta[t]) / d
        else:
            continue
        if reach < length:
            length, first = (reach if reach > 0 else 0.0), f
    return length, first


@borrowing
def _advance(system: System, length: float, factor: float, first: int) -> None:
    """Move the members along ``factor * direction``, the one at ``first``, if any, to the bound that it meets."""
    n_groups, beta, lo, hi, members = system.n_groups, system.beta, system.lo, system.hi, system.members
    for f in range(system.counts[FREE]):
        t = members[f]
        beta[t] = clipped(beta[t] + length * factor * system.direction[n_groups + f], lo[t], hi[t])
    if first >= 0:
        t = members[first]
        beta[t] = hi[t] if factor * system.direction[n_groups + first] > 0 else lo[t]


@borrowing
def _walk(system: System, pulled: Any, dragged: Any, pace: Any) -> tuple[bool, float]:
    """Move the members by what ``pulled`` asks of them while the dragged go at their pace.

    What comes to a bound on the way is dropped. Returns whether the end was reached, and the share of ``pace``
    that the dragged have gone.
    """
    n_groups, n_free = system.n_groups, system.counts[FREE]
    for g in range(n_groups):
        system.right[g] = 0.0
    if n_groups > 0:
        for k in range(dragged.shape[0]):
            system.right[system.group[dragged[k]]] -= pace[k]
    for f in range(n_free):
        system.right[n_groups + f] = pulled[system.members[f]]
    times(system.inverse, n_groups + n_free, system.right, system.direction)
    if dragged.shape[0] == 0:
        _keep_sums(system)
    left = 1.0
    while True:
        length, first = _first_bound(system, 1.0, 1.0)
        _advance(system, length, 1.0, first)
        for k in range(dragged.shape[0]):
            system.beta[dragged[k]] += length * left * pace[k]
        left *= 1.0 - length
        if first < 0 or not drop(system, first, 1.0 - length):
            return first < 0, 1.0 - left


@borrowing
def _enter(system: System, entrant: int, excess: float, levels: Any) -> bool:
    """Move a variable that violates by ``excess`` until it does not, or is at a bound; the members follow.

    Those that come to a bound on the way are dropped. The entrant becomes a member if it ends inside its box,
    which it cannot if it depends on the members: nothing but a bound stops it then. Returns whether it went well.
    """
    n_groups, beta, counts, direction = system.n_groups, system.beta, system.counts, system.direction
    lo, hi = system.lo[entrant], system.hi[entrant]
    curvature, flat = _pull(system, entrant)
    sign = 1.0 if excess > 0 else -1.0
    wanted = abs(excess)
    while True:
        own = hi - beta[entrant] if sign > 0 else beta[entrant] - lo
        best = wanted / curvature if curvature > flat else np.inf
        length, first = _first_bound(system, own if own < best else best, -sign)
        if not length < np.inf:
            return False
        _advance(system, length, -sign, first)
        beta[entrant] = clipped(beta[entrant] + length * sign, lo, hi)
        for g in range(n_groups):
            levels[g] -= length * sign * direction[g]
        wanted -= length * (curvature if curvature > 0 else 0.0)
        if first < 0:
            if length == own:
                beta[entrant] = hi if sign > 0 else lo
            else:
                _join(system, entrant, curvature)
            return True
        row = n_groups + first
        gained = direction[row] / system.inverse[row, row] * direction[row]
        if drop(system, first, 1.0):
            curvature += gained
            continue
        if n_groups == 0 or not curvature > flat:
            return False
        _join(system, entrant, curvature)  # the last of its group: the entrant takes its place
        remove(system.inverse, n_groups + counts[FREE], row, system.column)
        system.members[first] = entrant
        counts[FREE] -= 1
        counts[CHANGES] += 1
        return True


@borrowing
def _pull(system: System, entrant: int) -> tuple[float, float]:
    """Set ``direction`` to M (e_t, K_Ft); return the curvature, and that up to which the entrant is dependent."""
    n, n_groups, n_free, right = system.kernel.shape[0], system.n_groups, system.counts[FREE], system.right
    row = system.kernel[entrant % n]
    for g in range(n_groups):
        right[g] = 1.0 if system.group[entrant] == g else 0.0
    for f in range(n_free):
        right[n_groups + f] = row[system.members[f] % n]
    times(system.inverse, n_groups + n_free, right, system.direction)
    curvature = row[entrant % n]
    flat = system.dependent * abs(curvature)
    for j in range(n_groups + n_free):
        curvature -= right[j] * system.direction[j]
    return curvature, flat


@borrowing
def _join(system: System, entrant: int, curvature: float) -> None:
    """Make a variable a member, given that ``direction`` is its pull."""
    n_free = system.counts[FREE]
    add(system.inverse, system.n_groups + n_free, system.direction, curvature)
    system.members[n_free] = entrant
    system.counts[FREE] += 1


@borrowing
def _image_at(t: int, kernel: Any, moved: Any, count: int, beta: Any, before: Any) -> float:
    """How much of t's residual the first of those that ``moved`` have taken since ``before``."""
    n = kernel.shape[0]
    row, total = kernel[t % n], 0.0
    for k in range(count):
        total += row[moved[k] % n] * (beta[moved[k]] - before[k])
    return total


@borrowing
def _find_wrong(system: System, levels: Any, wrong: Any) -> float:
    """Set ``wrong`` to how much each variable that is no member violates; return the worst."""
    beta, worst = system.beta, 0.0
    for t in range(beta.shape[0]):
        excess = system.residual[t] - levels[system.group[t]]
        wrong[t] = 0.0
        if excess > 0 and beta[t] < system.hi[t]:
            wrong[t] = excess
        elif excess < 0 and beta[t] > system.lo[t]:
            wrong[t] = -excess
    for f in range(system.counts[FREE]):
        wrong[system.members[f]] = 0.0
    for t in range(beta.shape[0]):
        worst = wrong[t] if wrong[t] > worst else worst
    return worst


@borrowing
def _most_wrong(wrong: Any, least: float, places: Any) -> int:
    """Put the places of the largest entries above ``least`` into ``places``, largest first; return how many."""
    count = 0
    for t in range(wrong.shape[0]):
        if wrong[t] > least and (count < places.shape[0] or wrong[t] > wrong[places[count - 1]]):
            count += count < places.shape[0]
            k = count - 1
            while k > 0 and wrong[places[k - 1]] < wrong[t]:
                places[k] = places[k - 1]
                k -= 1
            places[k] = t
    return count


@borrowing
def _keep_sums(system: System) -> None:
    """Take out of ``direction`` what rounding adds to the groups' sums."""
    n_groups, n_free, direction = system.n_groups, system.counts[FREE], system.direction
    for g in range(n_groups):
        total, count = 0.0, 0
        for f in range(n_free):
            if system.group[system.members[f]] == g:
                total += direction[n_groups + f]
                count += 1
        if count > 0:
            for f in range(n_free):
                if system.group[system.members[f]] == g:
                    direction[n_groups + f] -= total / count


@borrowing
def _find_levels(system: System, levels: Any, counts: Any) -> None:
    """Set ``levels`` to the mean residual of each group's members; zero where there are no groups."""
    n_groups = system.n_groups
    for g in range(n_groups):
        levels[g], counts[g] = 0.0, 0.0
    if n_groups > 0:
        for f in range(system.counts[FREE]):
            t = system.members[f]
            levels[system.group[t]] += system.residual[t]
            counts[system.group[t]] += 1.0
        for g in range(n_groups):
            levels[g] /= counts[g] if counts[g] > 1.0 else 1.0
