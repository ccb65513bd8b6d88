"""The course of a laboratory run: what every algorithm here shares, so that each file holds its idea only.

An algorithm is a *body*: a function that moves a `State` until the violation is at most a tolerance. Around it
stand the start, the clock, the limits, Ctrl-C and the trace of a production run (`hinge.solvers.run.Run`), and
the check of the answer in double precision.

Kernel values are always double here: the algorithms of history know no refinement, and their figures should not
depend on ours. Steps are counted as the papers count them; `run.count` and `run.check` are the whole ceremony.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hinge.arrays import Floats
from hinge.dual.problem import DualProblem
from hinge.kernel.gram import Gram
from hinge.lab.registry import Algorithm
from hinge.report import Solution
from hinge.settings import Settings
from hinge.solvers.conclusion import Method, conclude, conduct
from hinge.solvers.run import Run
from hinge.solvers.state import State

# Fixed orders take many more steps than a greedy choice, and cheap ones: their default limit is a multiple of
# production's.
_MORE_STEPS = 10


@dataclass(frozen=True)
class Coverage:
    """Which problems an algorithm solves.

    Attributes
    ----------
    phrase : str
        In words.
    groups : tuple of int
        Numbers of groups that it can keep the sums of.
    """

    phrase: str
    groups: tuple[int, ...]

    def check(self, name: str, problem: DualProblem) -> None:
        """Raise ValueError where the problem is not covered."""
        if problem.n_groups not in self.groups:
            found = {0: "no group (no threshold)", 1: "one group", 2: "two groups"}[problem.n_groups]
            raise ValueError(f"{name} covers {self.phrase}; this problem has {found}. `block` solves them all")
        if not np.isfinite(problem.hi - problem.lo).all():
            raise ValueError(f"{name} needs a finite C; `block` solves the hard margin")


ONE_GROUP = Coverage("problems with one group and a finite C: C-SVC, one-class, SVDD, ε-SVR", (1,))
NO_GROUP = Coverage("problems without a threshold and with a finite C: C-SVC and ε-SVR without intercept", (0,))
ANY_GROUPS = Coverage("every formulation with a finite C", (0, 1, 2))


def laboratory(name: str, title: str, reference: str, coverage: Coverage, body: Method) -> Algorithm:
    """Make a registered algorithm of a body."""

    def run(problem: DualProblem, gram: Gram, settings: Settings) -> Solution:
        coverage.check(name, problem)
        return conducted(name, body, problem, gram, settings)

    return Algorithm(name, title, reference, coverage.phrase, run)


def row_of(state: State, variable: int) -> Floats:
    """Return the kernel row of a variable's sample; good until the next row is asked for."""
    sample = np.array([variable % state.gram.n])
    slot = state.gram.rows(sample)[0]
    return state.gram.cache.rows[slot]


def conducted(name: str, body: Method, problem: DualProblem, gram: Gram, settings: Settings) -> Solution:
    """Run a body from start to report."""
    run = Run(settings, problem, gram.team)
    if settings.max_iter is None:
        run.max_iter *= _MORE_STEPS
    gram = gram.in_double() if gram.precision == "single" else gram

    def to_feasible_point(state: State, tol: float, run: Run) -> None:
        try:
            body(state, tol, run)
        finally:
            state.beta = problem.near(state.beta)

    state, status = conduct(problem, gram, run, to_feasible_point)
    solution = conclude(state, status, name, "as asked", run)
    return replace(solution, report=replace(solution.report, rule=""))
