"""Platt's sequential minimal optimisation, 1998 (Platt, section 2), with and without a threshold.

Idea. The smallest problem that keeps Σβ is that of two variables, and it has a closed form. The first one is
any sample that violates the optimality conditions: passes over all samples alternate with passes over those
that are not at a bound, until these are consistent (section 2.2). The second one is chosen to make a long step:
the free sample whose error differs most; if that fails, any free sample and then any sample at all, from a
random place on. The threshold is set after each step so that both samples satisfy their conditions (section
2.3). Without a threshold each variable moves alone (eq. 23), and only the first choice is left to make.

Cost. No matrix is kept. Here the error cache holds the error of *every* sample, not only of the free ones: it
is the residual of the other solvers, and it costs two kernel rows a step instead of an evaluation of the
machine for each bounded sample that a pass visits. With the linear kernel the weight vector brings the errors
up to date (section 2.4), and no row is needed at all. Sparse and binary dot products are the Gram matrix's own
affair.

When to use. For history, and for linear machines on sparse data. A choice by the largest violation or gain
needs fewer steps.

In our words, E₁ − E₂ is r₂ − r₁, the threshold is the multiplier μ, and a sample violates when it is off μ by
more than half the tolerance on the wrong side: then no pair violates by more than the tolerance. Platt's ε for
"positive progress" is tiny here, because what he gives up for speed must still be found at small tolerances.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hinge.jit import compiled
from hinge.lab.coordinate_ascent import sweep
from hinge.lab.course import NO_GROUP, ONE_GROUP, laboratory, row_of
from hinge.lab.pairs import move, subtract_row
from hinge.report import Status
from hinge.solvers.run import Run, Stop
from hinge.solvers.state import State

# A step shorter than this, relative to the variable, is no progress (eps in the pseudo-code).
_EPS = 1e-10

# Steps between two looks at clock, limits and callback; a look computes the violation of all samples.
_STEPS_PER_LOOK = 200

_SEED = 1998


class _Machine:
    """The machine in training: β, errors and threshold; the procedures of section 2.5 are its methods."""

    def __init__(self, state: State, tol: float, run: Run) -> None:
        self.state, self.tol, self.run = state, tol, run
        self.box = (state.problem.lo, state.problem.hi)
        self.random = np.random.default_rng(_SEED)
        self.threshold = float(np.mean(state.extremes()))

    def examine_pass(self, only_free: bool) -> int:
        """Examine every sample that violates when its turn comes; return how many steps that made."""
        state, num_changed, i2 = self.state, 0, -1
        while True:
            i2 = _next_violator(i2 + 1, only_free, state.beta, state.residual, *self.box, self.threshold, self.tol)
            if i2 < 0:
                return num_changed
            num_changed += self.examine_example(i2)

    def examine_example(self, i2: int) -> int:
        """Find a partner for i2 with which positive progress can be made (section 2.2)."""
        state = self.state
        beta, r = state.beta, state.residual
        i1 = _second_choice(i2, beta, r, *self.box, self.threshold)
        if i1 >= 0 and self.take_step(i1, i2, self.kernel(i1, i2)):
            return 1
        row = row_of(state, i2)
        for only_free in (True, False):
            start = int(self.random.integers(len(beta)))
            i1 = _first_partner(start, only_free, i2, beta, r, *self.box, state.gram.diagonal, row)
            if i1 >= 0:
                return self.take_step(i1, i2, float(row[i1 % state.gram.n]))
        return 0

    def kernel(self, i1: int, i2: int) -> float:
        """k(x₁, x₂): from a row, or alone where rows are not needed otherwise."""
        gram = self.state.gram
        if gram.through_weights and i1 % gram.n != i2 % gram.n:
            return float(gram.block(np.array([i1 % gram.n, i2 % gram.n]))[0, 1])
        return float(row_of(self.state, i2)[i1 % gram.n])

    def take_step(self, i1: int, i2: int, k12: float) -> int:
        """Optimise the pair; return whether there was positive progress."""
        state, n = self.state, self.state.gram.n
        beta, r, diagonal = state.beta, state.residual, state.gram.diagonal
        k11, k22 = float(diagonal[i1 % n]), float(diagonal[i2 % n])
        step = _joint_step(i1, i2, beta, r, *self.box, k11, k22, k12)
        if step == 0:
            return 0
        slope, curvature = float(r[i2] - r[i1]), k11 + k22 - 2 * k12
        self.update_errors(i1, i2, step)
        move(i2, step, beta, *self.box)
        move(i1, -step, beta, *self.box)
        self.set_threshold(i1, i2)
        self.look(2 * abs(step), step * (0.5 * curvature * step - slope))
        return 1

    def update_errors(self, i1: int, i2: int, step: float) -> None:
        """β₂ grows by ``step`` and β₁ falls by it."""
        gram, r = self.state.gram, self.state.residual
        if gram.through_weights:  # eq. 22
            for errors in r.reshape(-1, gram.n):
                gram.update(errors, np.array([i1, i2]) % gram.n, np.array([-step, step]))
        else:
            subtract_row(r, row_of(self.state, i2), step)
            subtract_row(r, row_of(self.state, i1), -step)

    def set_threshold(self, i1: int, i2: int) -> None:
        """Section 2.3: the threshold at which both samples are right; halfway where both are at a bound."""
        beta, r, (lo, hi) = self.state.beta, self.state.residual, self.box
        proposals = [float(r[i]) for i in (i1, i2) if lo[i] < beta[i] < hi[i]]
        self.threshold = proposals[0] if proposals else float(r[i1] + r[i2]) / 2

    def look(self, length: float, change: float) -> None:
        """Count the step; now and then look at the clock."""
        state, run = self.state, self.run
        state.note_steps(length)
        run.count(1, change)
        if run.iterations % _STEPS_PER_LOOK == 0 or run.steps_left <= 0:
            violation = state.violation()
            if state.is_lost(violation):
                raise Stop(Status.STALLED)
            run.check(violation, state.gram.n)


@compiled
def _is_free(t: int, beta: Any, lo: Any, hi: Any) -> bool:
    return lo[t] < beta[t] < hi[t]


@compiled
def _next_violator(
    start: int, only_free: bool, beta: Any, r: Any, lo: Any, hi: Any, threshold: float, tol: float
) -> int:
    """First sample from ``start`` on that violates its optimality condition by more than ``tol``; -1 if none."""
    for t in range(start, beta.shape[0]):
        if only_free and not _is_free(t, beta, lo, hi):
            continue
        if (r[t] > threshold + tol and beta[t] < hi[t]) or (r[t] < threshold - tol and beta[t] > lo[t]):
            return t
    return -1


@compiled
def _second_choice(i2: int, beta: Any, r: Any, lo: Any, hi: Any, threshold: float) -> int:
    """Free sample whose error is furthest from that of i2 on the other side; -1 where none is free."""
    sign = 1.0 if r[i2] > threshold else -1.0
    best, chosen = -np.inf, -1
    for t in range(beta.shape[0]):
        if t != i2 and _is_free(t, beta, lo, hi) and -sign * r[t] > best:
            best, chosen = -sign * r[t], t
    return chosen


@compiled
def _joint_step(
    i1: int, i2: int, beta: Any, r: Any, lo: Any, hi: Any, k11: float, k22: float, k12: float
) -> float:
    """How far β₂ goes up, and β₁ down (eq. 13 to 19); 0 where that is no positive progress."""
    low = max(lo[i2] - beta[i2], beta[i1] - hi[i1])
    high = min(hi[i2] - beta[i2], beta[i1] - lo[i1])
    if i1 == i2 or low >= high:
        return 0.0
    slope, eta = r[i2] - r[i1], k11 + k22 - 2 * k12
    if eta > 1e-12 * (abs(k11) + abs(k22)):
        step = min(max(slope / eta, low), high)
    else:  # the objective at both ends of the segment
        at_low, at_high = low * (0.5 * eta * low - slope), high * (0.5 * eta * high - slope)
        step = low if at_low < at_high else high
        if min(at_low, at_high) >= -_EPS * _EPS:
            step = 0.0
    return step if abs(step) >= _EPS * (abs(beta[i2]) + _EPS) else 0.0


@compiled
def _first_partner(
    start: int, only_free: bool, i2: int, beta: Any, r: Any, lo: Any, hi: Any, diagonal: Any, row: Any
) -> int:
    """First sample, from ``start`` on and round to it, with which i2 makes positive progress; -1 if none."""
    n = diagonal.shape[0]
    for offset in range(beta.shape[0]):
        i1 = (start + offset) % beta.shape[0]
        if only_free and not _is_free(i1, beta, lo, hi):
            continue
        if _joint_step(i1, i2, beta, r, lo, hi, diagonal[i1 % n], diagonal[i2 % n], row[i1 % n]) != 0:
            return i1
    return -1


def main_routine(examine_pass: Callable[[bool], int]) -> None:
    """Alternate between passes over all samples and over the free ones until nothing changes.

    ``examine_pass(only_free)`` makes a pass and returns the number of its steps.
    """
    num_changed, examine_all = 0, True
    while num_changed > 0 or examine_all:
        num_changed = examine_pass(not examine_all)
        if examine_all:
            examine_all = False
        elif num_changed == 0:
            examine_all = True


def platt(state: State, tol: float, run: Run) -> None:
    """Pairs; a sample may be off the threshold by half of ``tol``."""
    main_routine(_Machine(state, 0.5 * tol, run).examine_pass)


def fixed_threshold(state: State, tol: float, run: Run) -> None:
    """Eq. 23: each variable that violates goes to its own minimum, clipped to the box."""
    everyone = np.arange(state.problem.n_variables)
    main_routine(lambda only_free: sweep(state, tol, run, everyone, only_free))


ALGORITHMS = (
    laboratory("platt", "Platt's SMO", "Platt, sections 2.1 to 2.5", ONE_GROUP, platt),
    laboratory(
        "platt-fixed-threshold", "Platt's SMO without a threshold", "Platt, eq. 23", NO_GROUP, fixed_threshold
    ),
)
