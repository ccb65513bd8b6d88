"""Sequential minimal optimisation as one compiled loop over cached kernel rows.

The loop serves two masters. For `smo` the rows are those of the cache, and when one is missing the loop returns
and is called again once the row is there. For `block` they are the small kernel matrix of a working set, all
present. Variable t belongs to row ``t % n``; β and r hold one or two runs of n variables.

Every pair moves mass inside one group, from j to i. Without groups each variable moves alone, as if its partner
had residual 0 and kernel values 0 (Platt eq. 23).

Working-set rules: MVP takes the maximal violating pair (Bottou & Lin alg. 1.3; LIBSVM document eq. 3.6-3.7).
SECOND_ORDER keeps its i and takes the j of largest unconstrained gain (Bottou & Lin eq. 1.27). MG takes the
pair of largest gain among those that share a variable with the last pair (Glasmachers & Igel section 2.3); HMG
does so unless both variables of the last pair are at a bound, where MVP steps in (section 2.4).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge.runtime.jit import compiled, larger, smaller

MVP, SECOND_ORDER, MG, HMG = 0, 1, 2, 3

CONVERGED, NEEDS_ROWS, STEP_LIMIT, STUCK, UNBOUNDED = 0, 1, 2, 3, 4

# Rounding of a pair's curvature k(x, x) + k(y, y) − 2k(x, y), in units of the last place of its first two terms. A
# curvature below that is unknown; taken for as large as it may be, its step cannot raise the objective. (LIBSVM
# document eq. 3.23 has a small number in its place, whatever the scale of the kernel.)
ROUNDING = 4.0

# Pairs are compared by what they would gain without a box. Of a flat one that would be without limit: its
# curvature counts as this share of its first two terms, as in LIBSVM.
_FLAT = 1e-12

# The second stopping test of Glasmachers & Igel: when no pair that shares a variable with the last one violates by
# this share of the tolerance, maximum gain is at its end. The paper looks at the length of the step, which
# depends on the scale of K and C. If the shared variable is free, the whole violation is then below the tolerance.
_SETTLED = 0.4

# Extremes are found block by block, so that only one block is searched for the variable that has it.
_SEARCHED = 256

# HMG's η: how near to its bounds, relative to the box, a variable counts as being there.
_ETA = 1e-8


@compiled
def pair_step(gradient: float, curvature: float, room_i: float, room_j: float) -> float:
    """Return the best step along β_i += δ, β_j −= δ: δ minimises ½ curvature δ² − gradient δ within the rooms.

    Parameters
    ----------
    gradient : float
        r_i − r_j, positive.
    curvature : float
        K_ii + K_jj − 2 K_ij; where it is not positive the step runs to the end of the segment.
    room_i, room_j : float
        hi_i − β_i and β_j − lo_j.

    Returns
    -------
    float
        The step; infinite where nothing stops it.
    """
    step = gradient / curvature if curvature > 0 else np.inf
    return min(step, room_i, room_j)


@compiled
def _curvature(
    i: int, j: int, n: int, row_i: Any, diagonal: Any, rounding: float, room: float
) -> tuple[float, float]:
    """Curvature of the objective along β_i += δ, β_j −= δ; the same, but at least its rounding.

    The latter is zero where a sample has both variables, and where nothing ends a step that is flat or nearly so.
    """
    value = diagonal[i % n] + diagonal[j % n] - 2.0 * row_i[j % n]
    least = rounding * (abs(diagonal[i % n]) + abs(diagonal[j % n]))
    if value > least:
        return value, value
    return max(value, 0.0), 0.0 if room == np.inf or i % n == j % n else least


@compiled
def _mark(t: int, beta: Any, lo: Any, hi: Any, group: Any, up: Any, down: Any) -> None:
    """Note which ways variable t may move: 0 where it may, an infinity that loses every comparison elsewhere."""
    up[group[t], t] = 0.0 if beta[t] < hi[t] else -np.inf
    down[group[t], t] = 0.0 if beta[t] > lo[t] else np.inf


@compiled
def _extremes(r: Any, up: Any, down: Any) -> tuple[float, float]:
    """Largest residual that may grow and smallest that may fall."""
    top, bottom = r.dtype.type(-np.inf), r.dtype.type(np.inf)
    for t in range(r.shape[0]):
        top = larger(top, r[t] + up[t])
        bottom = smaller(bottom, r[t] + down[t])
    return top, bottom


@compiled
def _subtract(r: Any, row: Any, step: float) -> None:
    n, length = row.shape[0], r.dtype.type(step)
    for first in range(0, r.shape[0], n):
        part = r[first : first + n]
        for t in range(n):
            part[t] -= length * row[t]


@compiled
def _subtract_pair(r: Any, row_i: Any, row_j: Any, step: float, up: Any, down: Any) -> tuple[float, float, int]:
    """r −= step (row_i − row_j), and in the same pass the new extremes and where the block of the top begins."""
    top, bottom = r.dtype.type(-np.inf), r.dtype.type(np.inf)
    length, place = r.dtype.type(step), 0
    for first in range(0, r.shape[0], _SEARCHED):
        last = min(first + _SEARCHED, r.shape[0])
        part, mark_up, mark_down = r[first:last], up[first:last], down[first:last]
        part_i, part_j = row_i[first:last], row_j[first:last]
        highest = r.dtype.type(-np.inf)
        for t in range(part.shape[0]):
            value = part[t] - length * (part_i[t] - part_j[t])
            part[t] = value
            highest = larger(highest, value + mark_up[t])
            bottom = smaller(bottom, value + mark_down[t])
        if highest > top:
            top, place = highest, first
    return top, bottom, place


@compiled
def _place(values: Any, marks: Any, wanted: float, start: int) -> int:
    extreme = values.dtype.type(wanted)
    for t in range(start, values.shape[0]):
        if values[t] + marks[t] == extreme:
            return t
    return -1


@compiled
def _second_order(
    i: int, r: Any, down: Any, row: Any, diagonal: Any, top: float, rounding: float, score: Any
) -> int:
    """Return the j of largest (r_i − r_j)² / curvature (Bottou & Lin eq. 1.27), -1 where none is positive."""
    n = row.shape[0]
    best, place = row.dtype.type(0), 0
    nothing = row.dtype.type(0)
    share, least = row.dtype.type(max(rounding, _FLAT)), np.finfo(row.dtype).tiny
    own, own_size, highest = diagonal[i % n], abs(diagonal[i % n]), r.dtype.type(top)
    for first in range(0, r.shape[0], n):
        for begin in range(0, n, _SEARCHED):
            end = min(begin + _SEARCHED, n)
            part, marks = r[first + begin : first + end], down[first + begin : first + end]
            values, own_values = row[begin:end], diagonal[begin:end]
            marked_score = score[first + begin : first + end]
            largest = row.dtype.type(0)
            for t in range(part.shape[0]):
                gradient = larger(row.dtype.type(highest - (part[t] + marks[t])), nothing)
                size = own_size + abs(own_values[t])
                curvature = larger(own + own_values[t] - values[t] - values[t], share * size + least)
                value = gradient * gradient / curvature
                marked_score[t] = value
                largest = larger(largest, value)
            if largest > best:
                best, place = largest, first + begin
    if best > 0 and np.isfinite(best):
        for t in range(place, score.shape[0]):
            if score[t] == best:
                return t
    return -1


@compiled
def _best_partner(
    b: int,
    beta: Any,
    r: Any,
    lo: Any,
    hi: Any,
    up: Any,
    down: Any,
    row: Any,
    diagonal: Any,
    rounding: float,
    score: Any,
) -> tuple[float, int, float]:
    """Partner of b with the largest gain within the box (Glasmachers & Igel eq. 3).

    Returns the gain, the partner (-1 where none gains) and the largest violation of any pair with b. At most one
    of the two ways between b and another variable goes downhill, so one pass without branches finds both.
    """
    n = row.shape[0]
    own, here, grows, falls = diagonal[b % n], float(r[b]), hi[b] - beta[b], beta[b] - lo[b]
    best, place, steepest, least = 0.0, 0, 0.0, np.finfo(np.float64).tiny
    for first in range(0, r.shape[0], n):
        for begin in range(0, n, _SEARCHED):
            start, stop = first + begin, first + min(begin + _SEARCHED, n)
            part, part_up, part_down, gains = r[start:stop], up[start:stop], down[start:stop], score[start:stop]
            at, low, high = beta[start:stop], lo[start:stop], hi[start:stop]
            values, own_values = row[begin : begin + _SEARCHED], diagonal[begin : begin + _SEARCHED]
            largest = 0.0
            for t in range(part.shape[0]):
                rise = larger(here - (part[t] + part_down[t]), 0.0)  # of β_b
                fall = larger(part[t] + part_up[t] - here, 0.0)
                room = smaller(grows, at[t] - low[t]) if rise > 0 else smaller(falls, high[t] - at[t])
                slope = rise + fall
                size = abs(own) + abs(own_values[t])
                curvature = larger(own + own_values[t] - 2.0 * values[t], rounding * size + least)
                step = smaller(slope / curvature, room)
                gain = step * (slope - 0.5 * curvature * step)
                gains[t] = gain
                largest = larger(largest, gain)
                steepest = larger(steepest, slope if room > 0 else 0.0)
            if largest > best:
                best, place = largest, start
    if best > 0:
        for t in range(place, r.shape[0]):
            if score[t] == best:
                return best, t, steepest
    return 0.0, -1, steepest


@compiled
def _best_single(beta: Any, r: Any, lo: Any, hi: Any, diagonal: Any, by_gain: bool) -> int:
    """Variable to move alone: of largest gain, or of largest residual."""
    best, chosen = 0.0, -1
    n = diagonal.shape[0]
    for t in range(r.shape[0]):
        room = hi[t] - beta[t] if r[t] > 0 else beta[t] - lo[t]
        if room <= 0:
            continue
        merit = abs(r[t])
        if by_gain:
            curvature = diagonal[t % n]
            step = pair_step(merit, curvature, room, np.inf)
            merit = step * merit - 0.5 * max(curvature, 0.0) * step * step
        if merit > best:
            best, chosen = merit, t
    return chosen


@compiled
def _move(t: int, step: float, beta: Any, lo: Any, hi: Any) -> float:
    """Move β_t by ``step``; one that reaches its bound is assigned the bound (LIBSVM document section 3.6).

    Returns the distance really moved.
    """
    before = beta[t]
    after = before + step
    if step > 0 and (step >= hi[t] - before or after > hi[t]):
        after = hi[t]
    elif step < 0 and (-step >= before - lo[t] or after < lo[t]):
        after = lo[t]
    beta[t] = after
    return after - before


@compiled
def _is_at_bound(t: int, beta: Any, lo: Any, hi: Any) -> bool:
    near = _ETA * (hi[t] - lo[t]) if np.isfinite(hi[t] - lo[t]) else 0.0
    return beta[t] - lo[t] <= near or hi[t] - beta[t] <= near


@compiled
def _largest_violation(top: Any, bottom: Any, n_groups: int) -> tuple[float, int]:
    if n_groups == 0:
        return max(top[0], -bottom[0], 0.0), 0
    violation, group = 0.0, 0
    for g in range(n_groups):
        if top[g] - bottom[g] > violation:
            violation, group = top[g] - bottom[g], g
    return violation, group


@compiled
def _related_pair(
    last: Any,
    rows: Any,
    slot_of: Any,
    diagonal: Any,
    rounding: float,
    beta: Any,
    r: Any,
    lo: Any,
    hi: Any,
    up: Any,
    down: Any,
    score: Any,
) -> tuple[int, int, float]:
    """Pair of largest gain among those that share a variable with the ``last``, and their largest violation."""
    n = diagonal.shape[0]
    i, j, most, steepest = -1, -1, 0.0, 0.0
    for which in range(2):
        b = last[which]
        row = rows[slot_of[b % n]]
        gain, partner, slope = _best_partner(b, beta, r, lo, hi, up, down, row, diagonal, rounding, score)
        steepest = max(steepest, slope)
        if gain > most:
            most = gain
            i, j = (b, partner) if r[b] > r[partner] else (partner, b)
    return i, j, steepest


@compiled
def optimise(
    rows: Any,
    slot_of: Any,
    last_use: Any,
    diagonal: Any,
    beta: Any,
    r: Any,
    lo: Any,
    hi: Any,
    group: Any,
    n_groups: int,
    rule: int,
    tol: float,
    max_steps: int,
    pair: Any,
    tally: Any,
    clock: int,
) -> tuple[int, int, float, int, int, int]:
    """Take steps until the violation is at most ``tol``, a row is missing or ``max_steps`` are done.

    Parameters
    ----------
    rows, slot_of, last_use : arrays
        Kernel rows, the slot of each row (-1 where it is absent) and when each slot was last used.
    diagonal : float64 array
        k(x, x), one value a row.
    beta, r, lo, hi, group : arrays
        The state; ``beta`` and ``r`` are changed in place. ``r`` may be single where that is exact enough: the
        loop is as fast as memory gives it r, rows and marks.
    n_groups : int
        0 for single-variable steps.
    rule : int
        Working-set rule.
    tol : float
        Largest violation allowed.
    max_steps : int
        Most steps to take.
    pair : int64 array of shape (max(n_groups, 1), 2) or None
        The last pair of each group (-1 where there is none), kept for the next call. MG and HMG need it; without
        it nothing of theirs is compiled, which takes seconds.
    tally : float64 array of length 2
        To which the objective's change and the steps' way, Σ |δ| √k(x, x), are added.
    clock : int
        Current time of the cache.

    Returns
    -------
    code, steps, violation, first, second, clock
        Why the loop returned; with NEEDS_ROWS the one or two rows it must have.
    """
    n = diagonal.shape[0]
    row_diagonal = diagonal.astype(rows.dtype)
    rounding = ROUNDING * float(np.finfo(rows.dtype).eps)
    n_marks = max(n_groups, 1)
    up = np.full((n_marks, r.shape[0]), r.dtype.type(-np.inf))
    down = np.full((n_marks, r.shape[0]), r.dtype.type(np.inf))
    top, bottom = np.empty(n_marks), np.empty(n_marks)
    score = np.empty(r.shape[0], dtype=rows.dtype)
    gains = np.empty(r.shape[0] if rule >= MG else 0)
    for t in range(r.shape[0]):
        _mark(t, beta, lo, hi, group, up, down)
    for g in range(n_marks):
        top[g], bottom[g] = _extremes(r, up[g], down[g])

    steps, place = 0, 0
    while True:
        violation, g = _largest_violation(top, bottom, n_groups)
        if violation <= tol:
            return CONVERGED, steps, violation, -1, -1, clock
        if steps >= max_steps:
            return STEP_LIMIT, steps, violation, -1, -1, clock

        # ---- choose i (which grows) and j (which falls)
        i, j = -1, -1
        if n_groups == 0:
            i = _best_single(beta, r, lo, hi, diagonal, rule != MVP)
            if i < 0:
                return STUCK, steps, violation, -1, -1, clock
        if pair is not None:
            first, second = pair[g, 0], pair[g, 1]
            stays_near = n_groups > 0 and rule >= MG and first >= 0
            if rule == HMG and stays_near:
                stays_near = not (_is_at_bound(first, beta, lo, hi) and _is_at_bound(second, beta, lo, hi))
            if stays_near:
                if slot_of[first % n] < 0 or slot_of[second % n] < 0:
                    return NEEDS_ROWS, steps, violation, first % n, second % n, clock
                clock += 1
                last_use[slot_of[first % n]] = clock
                last_use[slot_of[second % n]] = clock
                i, j, steepest = _related_pair(
                    pair[g], rows, slot_of, diagonal, rounding, beta, r, lo, hi, up[g], down[g], gains
                )
                if steepest < _SETTLED * tol:
                    if rule == MG:
                        return STUCK, steps, violation, -1, -1, clock
                    i, j = -1, -1
        if i < 0:
            i = _place(r, up[g], top[g], place)
            if rule == SECOND_ORDER:
                if slot_of[i % n] < 0:
                    return NEEDS_ROWS, steps, violation, i % n, -1, clock
                j = _second_order(i, r, down[g], rows[slot_of[i % n]], row_diagonal, top[g], rounding, score)
            if j < 0:
                j = _place(r, down[g], bottom[g], 0)

        # ---- move
        slot_i = slot_of[i % n]
        slot_j = slot_of[j % n] if j >= 0 else slot_i
        if slot_i < 0 or slot_j < 0:
            return NEEDS_ROWS, steps, violation, i % n, j % n if j >= 0 else -1, clock
        clock += 1
        last_use[slot_i] = clock
        last_use[slot_j] = clock
        steps += 1
        if j < 0:
            direction = 1.0 if r[i] > 0 else -1.0
            slope, curvature = float(abs(r[i])), max(diagonal[i % n], 0.0)
            step = pair_step(slope, curvature, hi[i] - beta[i] if direction > 0 else beta[i] - lo[i], np.inf)
            moved = _move(i, direction * step, beta, lo, hi) if np.isfinite(step) else 0.0
            way = abs(moved) * np.sqrt(abs(diagonal[i % n]))
        else:
            slope, room_i, room_j = float(r[i] - r[j]), hi[i] - beta[i], beta[j] - lo[j]
            curvature, most = _curvature(i, j, n, rows[slot_i], diagonal, rounding, min(room_i, room_j))
            step = pair_step(slope, most, room_i, room_j)
            moved, way = 0.0, 0.0
            if np.isfinite(step):
                moved, fallen = abs(_move(i, step, beta, lo, hi)), abs(_move(j, -step, beta, lo, hi))
                way = moved * np.sqrt(abs(diagonal[i % n])) + fallen * np.sqrt(abs(diagonal[j % n]))
                moved += fallen
                if pair is not None:
                    pair[g, 0], pair[g, 1] = i, j
        if not np.isfinite(step):
            return UNBOUNDED, steps, violation, -1, -1, clock
        if moved == 0:
            return STUCK, steps, violation, -1, -1, clock
        tally[0] -= step * (slope - 0.5 * curvature * step)
        tally[1] += way
        _mark(i, beta, lo, hi, group, up, down)
        if j < 0:
            _subtract(r, rows[slot_i], moved)
            top[0], bottom[0] = _extremes(r, up[0], down[0])
            continue
        _mark(j, beta, lo, hi, group, up, down)
        if n_groups == 1 and r.shape[0] == n:
            top[0], bottom[0], place = _subtract_pair(r, rows[slot_i], rows[slot_j], step, up[0], down[0])
            continue
        _subtract(r, rows[slot_i], step)
        _subtract(r, rows[slot_j], -step)
        for k in range(n_groups):
            top[k], bottom[k] = _extremes(r, up[k], down[k])
