"""Platt's sequential minimal optimisation, 1998 (Platt, section 2), with and without a threshold.

Idea. The smallest problem that keeps Σβ is that of two variables, and it has a closed form. The first one is
any sample that violates the optimality conditions: passes over all samples alternate with passes over those
that are not at a bound, until these are consistent (section 2.2). The second one is chosen to make a long step:
the free sample whose error differs most; if that fails, any free sample and then any sample at all, from a
random place on. The threshold is set after each step so that both samples satisfy their conditions (section
2.3). Without a threshold each variable moves alone (eq. 23), and only the first choice is left to make.

Cost. The error cache holds the errors of the free samples (section 2.2). With the linear kernel a step changes
the weight vector where the two samples have features, and each free sample's error is one sparse product with it,
as is the error of a bounded sample when a pass comes to it (section 2.4). Other kernels have no weight vector:
there a step takes the kernel values of two samples with the free ones and with those of the stretch that the pass
is in. The errors of all others wait for the end of the stretch and follow in one product, where Platt evaluates
the machine sample by sample. Partners come from the stretch and the free samples; only a pass in which none of
them serves is repeated with everyone at hand. The steps themselves are in `hinge.lab.algorithms.platt_steps`.

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

from hinge.arrays import Index
from hinge.lab.algorithms.coordinate_ascent import sweep
from hinge.lab.algorithms.course import NO_GROUP, ONE_GROUP, laboratory
from hinge.lab.algorithms.platt_steps import (
    CHANGE,
    DONE,
    LENGTH,
    NEEDS_ROWS,
    NOTED,
    STEP_LIMIT,
    STEPS,
    THRESHOLD,
    TURN,
    VALUES,
    Trainee,
    assemble,
    evaluate_all,
    examine_pass,
)
from hinge.report import Status
from hinge.solvers.block.shrinking import ActiveSet
from hinge.solvers.run import Run, Stop
from hinge.solvers.state import State

# Samples that a pass over all of them visits before the errors of the others are brought up to date.
_STRETCH = 1000

# Kernel rows computed at once: those of the next samples that violate.
_ROWS_AT_ONCE = 64

# Steps between two looks at clock, limits and callback; a look computes the violation.
_STEPS_PER_LOOK = 1000


class _Trainer:
    """Passes over a state: over the whole of it where the machine is linear, else over stretches of it."""

    def __init__(self, state: State, tol: float, run: Run) -> None:
        self.state, self.tol, self.run = state, tol, run
        self.is_linear = state.gram.through_weights
        self.threshold = float(np.mean(state.extremes()))
        self.next_look, self.is_lost = run.iterations, False
        self.machine = assemble(state) if self.is_linear else None

    def examine_pass(self, only_free: bool) -> int:
        """Make a pass and return the number of its steps."""
        if self.is_linear:
            steps = self.examine(self.state, np.arange(self.state.problem.n_variables), only_free)
        elif only_free:
            steps = self.examine_free()
        else:
            steps = self.examine_in_stretches(_STRETCH) or self.examine_in_stretches(self.state.gram.n)
        if self.is_lost:
            raise Stop(Status.STALLED)
        return steps

    def examine_free(self) -> int:
        """Passes over the free samples until one changes nothing."""
        free = self.free_samples()
        if len(free):
            with ActiveSet(self.state, free, self.run) as active:
                order = np.arange(active.part.problem.n_variables)
                while self.examine(active.part, order, only_free=True) and not self.is_lost:
                    pass
        return 0

    def examine_in_stretches(self, length: int) -> int:
        """A pass over all samples; the partners come from the stretch and from the free samples."""
        state, steps = self.state, 0
        n = state.gram.n
        for first in range(0, n, length):
            stretch = np.arange(first, min(first + length, n))
            if self.is_lost or not self.violators(state)[state.variables_of(stretch)].any():
                continue
            with ActiveSet(state, np.union1d(stretch, self.free_samples()), self.run) as active:
                order = active.part.variables_of(np.searchsorted(active.samples, stretch))
                steps += self.examine(active.part, order, only_free=False)
        return steps

    def examine(self, part: State, order: Index, only_free: bool) -> int:
        """Run the compiled pass over ``order`` to its end, giving it the kernel rows that it asks for."""
        m = self.machine or assemble(part)
        m.now[THRESHOLD] = self.threshold
        m.counts[TURN] = 0
        before = self.run.iterations
        while True:
            limit = min(self.next_look - self.run.iterations, self.run.steps_left)
            code, needed, beside = examine_pass(m, order, only_free, self.tol, max(limit, 0))
            self.note(part, m)
            if code == NEEDS_ROWS:
                self.fetch(part, order[m.counts[TURN] :], needed, beside)
            if code == STEP_LIMIT or self.run.must_stop():
                self.look(part, m)
            if code == DONE or self.is_lost:
                return self.run.iterations - before

    def fetch(self, part: State, order: Index, needed: int, beside: int) -> None:
        """Compute the rows that are needed, and those of the next violators while we are at it."""
        gram = part.gram
        coming = order[self.violators(part)[order]] % gram.n
        coming = coming[gram.cache.slot_of[coming] < 0][: min(_ROWS_AT_ONCE, gram.cache.capacity - 2)]
        gram.rows(np.unique(np.concatenate([coming, [s for s in (needed, beside) if s >= 0]]).astype(np.int64)))

    def note(self, part: State, m: Trainee) -> None:
        """Enter the work of the compiled pass into the books."""
        self.threshold = float(m.now[THRESHOLD])
        part.note_steps(float(m.now[LENGTH] * part.gram.lengths.max()))
        part.gram.counts.evaluations += int(m.counts[VALUES])
        self.run.count(int(m.counts[STEPS] - m.counts[NOTED]), float(m.now[CHANGE]))
        m.now[CHANGE] = m.now[LENGTH] = 0.0
        m.counts[NOTED], m.counts[VALUES] = m.counts[STEPS], 0

    def look(self, part: State, m: Trainee) -> None:
        """Look at the clock."""
        evaluate_all(m)
        violation = part.violation()
        self.is_lost = part.is_lost(violation)
        self.run.check(part, violation)
        self.next_look = self.run.iterations + _STEPS_PER_LOOK

    def violators(self, state: State) -> Any:
        beta, r, problem = state.beta, state.residual, state.problem
        may_grow = (r > self.threshold + self.tol) & (beta < problem.hi)
        return may_grow | ((r < self.threshold - self.tol) & (beta > problem.lo))

    def free_samples(self) -> Index:
        problem, beta = self.state.problem, self.state.beta
        is_free = (problem.lo < beta) & (beta < problem.hi)
        return np.flatnonzero(is_free.reshape(-1, problem.n_samples).any(axis=0))


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
    trainer = _Trainer(state, 0.5 * tol, run)
    try:
        main_routine(trainer.examine_pass)
    finally:
        if trainer.machine is not None:
            evaluate_all(trainer.machine)


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
