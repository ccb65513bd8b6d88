"""Hybrid maximum gain over one, two or all cached rows (Glasmachers & Igel, sections 2.4, 2.5 and 4.6).

Idea. Of all pairs whose kernel value is at hand, take the one whose step gains most (eq. 3). At hand are the
rows of the last pair, because its step needed them. The variants differ in how many rows are searched:

- *one row*: only that of the variable that came in last, so that each variable is used in two steps in a row;
- *two rows*: both of the last pair. This is HMG as published, and what production's ``smo-hmg`` does;
- *all rows*: every row in the cache: with a large cache, the greedy choice among all pairs.

Where both variables of the last pair are at a bound, or no pair at hand violates any more, the maximal
violating pair steps in (section 2.4).

Cost. A pass over n for each row searched and one for the step. A step computes at most one new row, since one
of its variables had its row already.

When to use. Two rows where kernel values are expensive and the cache is small. One row saves half the search and
pays with more steps; all rows give a bound on what any choice by gain could save (table 7), at a price that no
saved step repays.

No shrinking in these three, so that they differ in nothing else, and the run ends on the violation of all samples.
More variants ask why the paper's figures are others:

- *published*: a step chosen by gain ends the run when it is shorter than ε (section 2.4), whatever the violation
  is. Such a run is no solution to the tolerance: it is reported as one that used up its steps.
- *early*: the maximal violating pair steps in as soon as the pair of largest gain violates by less than ε.
- *shrinking*: samples are set aside as by production's ``smo``, which is LIBSVM's way.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hinge.arrays import Index
from hinge.lab.algorithms.course import ONE_GROUP, laboratory
from hinge.lab.algorithms.pairs import curvature_of, move, subtract_row
from hinge.lab.registry import Algorithm
from hinge.report import Status
from hinge.runtime.jit import compiled, larger, smaller
from hinge.solvers.block.shrinking import ActiveSet, unsettled
from hinge.solvers.pairs.loop import Outcome
from hinge.solvers.pairs.rules import ETA, SETTLED
from hinge.solvers.pairs.step import CONVERGED, NEEDS_ROWS, STEP_LIMIT, STUCK, Point, Rows, use_rows
from hinge.solvers.run import Run, Stop
from hinge.solvers.state import State

ONE_ROW, TWO_ROWS, ALL_ROWS = 1, 2, 3
USUAL, BY_LENGTH, EARLY = 0, 1, 2

_STEPS_PER_LOOK = 500
_STEPS_A_ROUND = 1000  # between two looks at what can be set aside, as in LIBSVM


@dataclass(frozen=True)
class Variant:
    """How a hybrid maximum gain differs from the others.

    Attributes
    ----------
    searched : int
        ONE_ROW, TWO_ROWS or ALL_ROWS.
    ending : int
        USUAL, BY_LENGTH (a short step ends the run, as in the paper, and not the violation) or EARLY.
    shrinks : bool
        Whether samples are set aside.
    """

    searched: int
    ending: int = USUAL
    shrinks: bool = False


def hybrid_maximum_gain(variant: Variant, state: State, tol: float, run: Run) -> None:
    """Take steps on all samples, or on those that are not set aside, until the run is over."""
    last = np.full(2, -1, dtype=np.int64)
    period = min(state.gram.n, _STEPS_A_ROUND) if variant.shrinks else run.max_iter
    steps = period
    while not _burst(variant, state, tol, run, steps, last):
        keep = unsettled(state)
        with ActiveSet(state, keep, run) as active:
            inner = _followed(last, state.variables_of(keep))
            while not _burst(variant, active.part, tol, run, period, inner):
                keep = unsettled(active.part)
                inner = _followed(inner, active.part.variables_of(keep))
                active.narrow(keep)
            last[:] = state.variables_of(active.samples)[inner] if inner[0] >= 0 else -1
        steps = 1  # all samples again: is it over, or what can be set aside now?
    if variant.ending == BY_LENGTH and state.violation() > tol:
        raise Stop(Status.ITERATION_LIMIT)


def _followed(last: Index, kept: Index) -> Index:
    """Return the places of the last pair among the variables that are kept; -1 where one of them is not."""
    places = np.searchsorted(kept, last)
    found = (places < len(kept)) & (kept[np.minimum(places, len(kept) - 1)] == last)
    return places if found.all() else np.full(2, -1, dtype=np.int64)


def _burst(variant: Variant, state: State, tol: float, run: Run, most: int, last: Index) -> bool:
    """Take up to ``most`` steps; where a row is missing the loop returns, and goes on when it is there."""
    problem, gram = state.problem, state.gram
    done = 0
    while True:
        point, rows = Point.of(problem, state.beta, state.residual), Rows.of_cache(gram)
        limit = min(_STEPS_PER_LOOK, run.steps_left, most - done)
        outcome = _steps(variant.searched, variant.ending, point, rows, last, tol, limit)
        done += outcome.steps
        gram.cache.clock = int(rows.clock[0])
        state.note_steps(outcome.way)
        run.count(outcome.steps, outcome.change)
        if outcome.code == CONVERGED:
            return True
        if outcome.code == STUCK or state.is_lost(outcome.violation):
            raise Stop(Status.STALLED)
        run.check(state, outcome.violation)
        if outcome.code == NEEDS_ROWS:
            gram.rows(np.unique(np.array([outcome.first, outcome.second])))
        elif done >= most:
            return False


@compiled
def _gain_with(b: int, t: int, r: Any, beta: Any, lo: Any, hi: Any, curvature: float) -> tuple[float, float]:
    """Gain of the pair (b, t) within the box and its step, positive where mass moves from t to b (eq. 3)."""
    gradient = r[b] - r[t]
    up, down = smaller(hi[b] - beta[b], beta[t] - lo[t]), smaller(beta[b] - lo[b], hi[t] - beta[t])
    room = up if gradient > 0 else down
    step = smaller(abs(gradient) / curvature, room)
    gain = step * (abs(gradient) - 0.5 * curvature * step)
    return gain, step if gradient > 0 else -step


@compiled
def _largest_gain(b: int, row: Any, diagonal: Any, beta: Any, r: Any, lo: Any, hi: Any) -> tuple[float, float]:
    """Largest gain of a pair with b, and the largest violation of one that can move.

    The same as `_gain_with`, but a run of n variables at a time and without a branch: this loop is where all the
    time goes, and so it vectorises.
    """
    n = diagonal.shape[0]
    own, r_b, up_b, down_b = diagonal[b % n], r[b], hi[b] - beta[b], beta[b] - lo[b]
    best, steepest = 0.0, 0.0
    for first in range(0, r.shape[0], n):
        r_t, beta_t, lo_t, hi_t = (
            r[first : first + n],
            beta[first : first + n],
            lo[first : first + n],
            hi[first : first + n],
        )
        for t in range(n):
            gradient = r_b - r_t[t]
            size = abs(gradient)
            curvature = curvature_of(own, diagonal[t], row[t])
            up, down = smaller(up_b, beta_t[t] - lo_t[t]), smaller(down_b, hi_t[t] - beta_t[t])
            step = smaller(size / curvature, up if gradient > 0 else down)
            best = larger(best, step * (size - 0.5 * curvature * step))
            steepest = larger(steepest, size if step > 0 else 0.0)
    return best, steepest


@compiled
def _best_partner(b: int, row: Any, diagonal: Any, beta: Any, r: Any, lo: Any, hi: Any) -> int:
    """Who makes the largest gain with b."""
    n = diagonal.shape[0]
    best, partner = 0.0, -1
    for t in range(r.shape[0]):
        curvature = curvature_of(diagonal[b % n], diagonal[t % n], row[t % n])
        gain, _ = _gain_with(b, t, r, beta, lo, hi, curvature)
        if gain > best:
            best, partner = gain, t
    return partner


@compiled
def _is_at_bound(t: int, beta: Any, lo: Any, hi: Any) -> bool:
    near = ETA * (hi[t] - lo[t])
    return beta[t] - lo[t] <= near or hi[t] - beta[t] <= near


@compiled
def _extremes(beta: Any, r: Any, lo: Any, hi: Any) -> tuple[int, int]:
    """The maximal violating pair."""
    top, bottom, i, j = -np.inf, np.inf, -1, -1
    for t in range(r.shape[0]):
        if beta[t] < hi[t] and r[t] > top:
            top, i = r[t], t
        if beta[t] > lo[t] and r[t] < bottom:
            bottom, j = r[t], t
    return i, j


@compiled
def _searchable(searched: int, last: Any, point: Point, rows: Rows) -> tuple[Any, bool]:
    """The variables whose rows are searched, and whether rows of the last pair are missing for that."""
    beta, lo, hi, n = point.beta, point.lo, point.hi, len(rows.diagonal)
    if last[0] < 0 or (_is_at_bound(last[0], beta, lo, hi) and _is_at_bound(last[1], beta, lo, hi)):
        return last[2:], False
    if searched == ALL_ROWS:
        return np.arange(beta.shape[0]), False
    chosen, lacks = last[2 - searched :], False
    for t in chosen:
        lacks = lacks or rows.slot_of[t % n] < 0
    return chosen, lacks


@compiled
def _best_at_hand(chosen: Any, top: float, bottom: float, point: Point, rows: Rows) -> tuple[int, float]:
    """Of these variables the one with the largest gain in its row, -1 for none; the largest violation at hand."""
    beta, r, lo, hi, _, _ = point
    diagonal, n = rows.diagonal, len(rows.diagonal)
    b, gain, steepest = -1, 0.0, 0.0
    for t in chosen:
        slot = rows.slot_of[t % n]
        # A variable that could only move the wrong way has no gain with anyone.
        if slot >= 0 and ((beta[t] < hi[t] and r[t] > bottom) or (beta[t] > lo[t] and r[t] < top)):
            best, slope = _largest_gain(t, rows.values[slot], diagonal, beta, r, lo, hi)
            steepest = max(steepest, slope)
            if best > gain:
                b, gain = t, best
    return b, steepest


@compiled
def _is_given_up(ending: int, steepest: float, slope: float, tol: float) -> bool:
    """Whether pairs at hand violate too little: the largest of them, or the one of largest gain."""
    if ending == EARLY:
        return slope < tol
    return ending == USUAL and steepest < SETTLED * tol


@compiled
def _steps(
    searched: int, ending: int, point: Point, rows: Rows, last: Any, tol: float, max_steps: int
) -> Outcome:  # fmt: skip
    """Steps until done, until a row is missing or until ``max_steps``; ``last[1]`` is the newest variable."""
    beta, r, lo, hi, _, _ = point
    slot_of, diagonal, n = rows.slot_of, rows.diagonal, len(rows.diagonal)
    steps, change, way = 0, 0.0, 0.0
    while True:
        top, bottom = _extremes(beta, r, lo, hi)
        violation = r[top] - r[bottom] if top >= 0 and bottom >= 0 else 0.0
        chosen, lacks = _searchable(searched, last, point, rows)
        by_length = ending == BY_LENGTH and len(chosen) > 0  # the length of this step decides whether it is over
        is_over = violation <= tol and not by_length
        if is_over or steps >= max_steps:
            code = CONVERGED if is_over else STEP_LIMIT
            return Outcome(code, steps, violation, change, way, -1, -1)

        # ---- the best pair at hand
        if lacks:
            return Outcome(NEEDS_ROWS, steps, violation, change, way, last[0] % n, last[1] % n)
        b, steepest = _best_at_hand(chosen, r[top], r[bottom], point, rows)
        partner = -1 if b < 0 else _best_partner(b, rows.values[slot_of[b % n]], diagonal, beta, r, lo, hi)
        if b < 0 and by_length:
            return Outcome(CONVERGED, steps, violation, change, way, -1, -1)
        if b < 0 or _is_given_up(ending, steepest, abs(r[b] - r[partner]), tol):  # section 2.4
            b, partner = bottom, top  # the maximal violating pair
            last[:] = -1  # a small cache must not fetch the last pair's rows again when it has fetched these
        if slot_of[b % n] < 0 or slot_of[partner % n] < 0:
            return Outcome(NEEDS_ROWS, steps, violation, change, way, b % n, partner % n)

        # ---- move
        row_b, row_partner = rows.values[slot_of[b % n]], rows.values[slot_of[partner % n]]
        curvature = curvature_of(diagonal[b % n], diagonal[partner % n], row_b[partner % n])
        gain, step = _gain_with(b, partner, r, beta, lo, hi, curvature)
        if by_length and abs(step) < tol:
            return Outcome(CONVERGED, steps, violation, change, way, -1, -1)
        use_rows(rows, b, partner)
        before_b, before_partner = beta[b], beta[partner]
        move(b, step, beta, lo, hi)
        move(partner, -step, beta, lo, hi)
        if beta[b] == before_b and beta[partner] == before_partner:
            return Outcome(STUCK, steps, violation, change, way, -1, -1)
        subtract_row(r, row_b, step)
        subtract_row(r, row_partner, -step)
        last[0], last[1] = b, partner
        change -= gain
        way += abs(step) * (np.sqrt(abs(diagonal[b % n])) + np.sqrt(abs(diagonal[partner % n])))
        steps += 1


def _variant(name: str, title: str, variant: Variant, reference: str) -> Algorithm:
    body = partial(hybrid_maximum_gain, variant)
    return laboratory(f"hmg-{name}", f"Hybrid maximum gain, {title}", reference, ONE_GROUP, body)


_ONE, _TWO, _ALL = (Variant(searched) for searched in (ONE_ROW, TWO_ROWS, ALL_ROWS))

ALGORITHMS = (
    _variant("one-row", "one row", _ONE, "Glasmachers & Igel, section 4.6 and table 6"),
    _variant("two-rows", "two rows", _TWO, "Glasmachers & Igel, section 2.4"),
    _variant("all-rows", "all cached rows", _ALL, "Glasmachers & Igel, sections 2.5 and 4.6, table 7"),
    *(
        _variant(name, title, variant, "Glasmachers & Igel, sections 2.4 and 4.6")
        for name, title, variant in (
            ("one-row-published", "one row, the paper's own end of a run", Variant(ONE_ROW, BY_LENGTH)),
            ("two-rows-published", "two rows, the paper's own end of a run", Variant(TWO_ROWS, BY_LENGTH)),
            ("two-rows-early", "two rows, given up early", Variant(TWO_ROWS, EARLY)),
            ("one-row-shrinking", "one row, with shrinking", Variant(ONE_ROW, shrinks=True)),
            ("two-rows-shrinking", "two rows, with shrinking", Variant(TWO_ROWS, shrinks=True)),
        )
    ),
)
