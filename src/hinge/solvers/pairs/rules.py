"""Working-set rules: which pair moves next.

A rule is a compiled function that returns CHOSEN with i (which grows) and j (which falls); or NEEDS_ROWS with one
or two kernel rows that it must see first (-1 for none); or STUCK, where it gives up. `hinge.settings.RULES` is the
table of the rules, `choose_pair` the one place that calls them by their number in it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hinge.runtime.jit import borrowing, inlined, larger, smaller
from hinge.settings import RULES
from hinge.solvers.pairs.step import CHOSEN, NEEDS_ROWS, STUCK, Point, Rows, pair_step, rounding_of, use_rows

#: Numbers of the rules: their places in the table.
NUMBER_OF = {name: number for number, name in enumerate(RULES)}
MVP, SECOND_ORDER, MG, HMG = NUMBER_OF.values()

# Pairs are compared by what they would gain without a box. Of a flat one that would be without limit: its
# curvature counts as this share of its first two terms, as in LIBSVM.
_FLAT = 1e-12

# The second stopping test of Glasmachers & Igel: when no pair that shares a variable with the last one violates by
# this share of the tolerance, maximum gain is at its end. The paper looks at the length of the step, which
# depends on the scale of K and C. If the shared variable is free, the whole violation is then below the tolerance.
SETTLED = 0.4

# HMG's η: how near to its bounds, relative to the box, a variable counts as being there.
ETA = 1e-8

# Variables per block: extremes are found block by block, so that only one is searched for who has them.
BLOCK = 256


class Search(NamedTuple):
    """What the search for a pair knows of a point, and the arrays that it works with.

    Attributes
    ----------
    up, down : arrays of shape (n_groups, n_variables)
        Which way variables of the group may move: 0 where they may, an infinity that loses every comparison
        elsewhere.
    top, bottom : float64 arrays
        Of each group the largest residual that may grow and the smallest that may fall.
    begin : int64 array
        No variable of the group before this one has the top.
    diagonal : array
        k(x, x) in the precision of the rows.
    score, gain : arrays
        Merit of every partner: in the precision of the rows, and in double for rules that remember a pair.
    """

    up: Any
    down: Any
    top: Any
    bottom: Any
    begin: Any
    diagonal: Any
    score: Any
    gain: Any

    @classmethod
    def of(cls, n_variables: int, n_groups: int, residual: Any, values: Any, looks_back: bool) -> Search:
        """Make room for this many variables, or fewer.

        Parameters
        ----------
        n_variables, n_groups : int
            Size of the problem.
        residual, values : dtype
            Precision of residual and rows.
        looks_back : bool
            Whether the rule remembers a pair.
        """
        n_marks = max(n_groups, 1)
        return cls(
            np.empty((n_marks, n_variables), residual), np.empty((n_marks, n_variables), residual),
            np.empty(n_marks), np.empty(n_marks), np.empty(n_marks, np.int64),
            np.empty(n_variables, values), np.empty(n_variables, values),
            np.empty(n_variables if looks_back else 0),
        )  # fmt: skip


@inlined
def choose_pair(
    rule: int, g: int, point: Point, rows: Rows, search: Search, last: Any, tol: float
) -> tuple[int, int, int]:
    """Ask a rule for a pair of group g; without ``last`` nothing of the rules that look back is compiled."""
    if point.n_groups == 0:
        return _variable(point, rows.diagonal, rule != MVP)
    if rule == MVP:
        return maximal_violating_pair(g, point, search)
    if rule == SECOND_ORDER:
        return second_order(g, point, rows, search)
    if last is not None:
        if rule == MG:
            return maximum_gain(g, point, rows, search, last[g], tol)
        if rule == HMG:
            return hybrid_maximum_gain(g, point, rows, search, last[g], tol)
    raise ValueError("no working-set rule has this number and memory")


@inlined
def maximal_violating_pair(g: int, point: Point, search: Search) -> tuple[int, int, int]:
    """The largest residual that may grow, the smallest that may fall (Bottou & Lin alg. 1.3)."""
    i = _place(point.residual, search.up[g], search.top[g], search.begin[g])
    return CHOSEN, i, _place(point.residual, search.down[g], search.bottom[g], 0)


@inlined
def second_order(g: int, point: Point, rows: Rows, search: Search) -> tuple[int, int, int]:
    """The i of the maximal violating pair, and the j of largest unconstrained gain (Bottou & Lin eq. 1.27)."""
    i = _place(point.residual, search.up[g], search.top[g], search.begin[g])
    row = i % rows.slot_of.shape[0]
    slot = rows.slot_of[row]
    if slot < 0:
        return NEEDS_ROWS, row, -1
    own = search.diagonal[row]
    j = _steepest_partner(own, search.top[g], point.residual, search.down[g], rows.values[slot], search)
    if j < 0:
        j = _place(point.residual, search.down[g], search.bottom[g], 0)
    return CHOSEN, i, j


@inlined
def maximum_gain(g: int, point: Point, rows: Rows, search: Search, last: Any, tol: float) -> tuple[int, int, int]:
    """The pair of largest gain of those that share a variable with the last (Glasmachers & Igel section 2.3)."""
    if last[0] < 0:
        return maximal_violating_pair(g, point, search)
    n = rows.slot_of.shape[0]
    if rows.slot_of[last[0] % n] < 0 or rows.slot_of[last[1] % n] < 0:
        return NEEDS_ROWS, last[0] % n, last[1] % n
    use_rows(rows, last[0], last[1])
    i, j, most, steepest = -1, -1, 0.0, 0.0
    for b in last:
        row, up, down = rows.values[rows.slot_of[b % n]], search.up[g], search.down[g]
        gain, partner, slope = _best_partner(b, point, up, down, row, rows.diagonal, search.gain)
        steepest = max(steepest, slope)
        if gain > most:
            most = gain
            i, j = (b, partner) if point.residual[b] > point.residual[partner] else (partner, b)
    if steepest < SETTLED * tol:
        return STUCK, -1, -1
    return (CHOSEN, i, j) if i >= 0 else maximal_violating_pair(g, point, search)


@inlined
def hybrid_maximum_gain(
    g: int, point: Point, rows: Rows, search: Search, last: Any, tol: float
) -> tuple[int, int, int]:
    """Maximum gain, or MVP where both of the last pair are at a bound (Glasmachers & Igel section 2.4)."""
    if last[0] >= 0 and _is_at_bound(last[0], point) and _is_at_bound(last[1], point):
        return maximal_violating_pair(g, point, search)
    code, i, j = maximum_gain(g, point, rows, search, last, tol)
    return (code, i, j) if code != STUCK else maximal_violating_pair(g, point, search)


@borrowing
def _variable(point: Point, diagonal: Any, by_gain: bool) -> tuple[int, int, int]:
    """The variable to move alone: of largest gain, or of largest residual."""
    best, chosen = 0.0, -1
    beta, r, n = point.beta, point.residual, diagonal.shape[0]
    for t in range(r.shape[0]):
        room = point.hi[t] - beta[t] if r[t] > 0 else beta[t] - point.lo[t]
        if room <= 0:
            continue
        merit = abs(r[t])
        if by_gain:
            curvature = diagonal[t % n]
            step = pair_step(merit, curvature, room, np.inf)
            merit = step * merit - 0.5 * max(curvature, 0.0) * step * step
        if merit > best:
            best, chosen = merit, t
    return CHOSEN if chosen >= 0 else STUCK, chosen, -1


@borrowing
def _place(values: Any, marks: Any, wanted: float, start: int) -> int:
    extreme = values.dtype.type(wanted)
    for t in range(start, values.shape[0]):
        if values[t] + marks[t] == extreme:
            return t
    return -1


@inlined
def _is_at_bound(t: int, point: Point) -> bool:
    low, high = point.lo[t], point.hi[t]
    near = ETA * (high - low) if np.isfinite(high - low) else 0.0
    return point.beta[t] - low <= near or high - point.beta[t] <= near


@inlined
def _steepest_partner(own: float, top: float, r: Any, down: Any, row: Any, search: Search) -> int:
    """Return the j of largest (r_i − r_j)² / curvature (Bottou & Lin eq. 1.27), -1 where none is positive."""
    n, score, diagonal = row.shape[0], search.score, search.diagonal
    best, place = row.dtype.type(0), 0
    nothing = row.dtype.type(0)
    share, least = row.dtype.type(max(rounding_of(row), _FLAT)), np.finfo(row.dtype).tiny
    own_size, highest = abs(own), r.dtype.type(top)
    for first in range(0, r.shape[0], n):
        for begin in range(0, n, BLOCK):
            end = min(begin + BLOCK, n)
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
        for t in range(place, r.shape[0]):
            if score[t] == best:
                return t
    return -1


@borrowing
def _best_partner(
    b: int, point: Point, up: Any, down: Any, row: Any, diagonal: Any, score: Any
) -> tuple[float, int, float]:
    """Partner of b with the largest gain within the box (Glasmachers & Igel eq. 3).

    Returns the gain, the partner (-1 where none gains) and the largest violation of any pair with b. At most one
    of the two ways between b and another variable goes downhill, so one pass without branches finds both.
    """
    beta, r, lo, hi, _, _ = point
    n, rounding = row.shape[0], rounding_of(row)
    own, here, grows, falls = diagonal[b % n], float(r[b]), hi[b] - beta[b], beta[b] - lo[b]
    best, place, steepest, least = 0.0, 0, 0.0, np.finfo(np.float64).tiny
    for first in range(0, r.shape[0], n):
        for begin in range(0, n, BLOCK):
            start, stop = first + begin, first + min(begin + BLOCK, n)
            part, part_up, part_down, gains = r[start:stop], up[start:stop], down[start:stop], score[start:stop]
            at, low, high = beta[start:stop], lo[start:stop], hi[start:stop]
            values, own_values = row[begin : begin + BLOCK], diagonal[begin : begin + BLOCK]
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
