"""Decomposition: a sequence of small problems in the place of the large one (Bottou & Lin, algorithm 1.2).

Idea. Hold all variables but those of a working set, solve for these with any solver, bring the residual of all
variables up to date by the kernel rows of those that moved, choose the next set. Osuna's theorem: as long as
each set has a violator in it, the objective falls.

Who chooses the set, and its size q, make the named methods:

- *SVM-light* (Joachims; LIBSVM document eq. 3.8): the q/2 variables of largest residual that may grow and the
  q/2 of smallest residual that may fall; q = 10.
- *Osuna*: a set of fixed size whose members make way for violators, here a quarter at a time. (One at a time,
  as Osuna wrote, would spend a whole quadratic program on each sample; Platt, section 1.2.)
- *general*: SVM-light's choice with q = 200, so that the inner solver matters: pair steps, modified gradient
  projection with or without conjugate directions (SVQP in Royal Holloway SVM) or a general QP solver (MINOS and
  LOQO there).

Cost. q rows per set, computed or cached; the inner problem costs q² or, for the general QP solver, q³.

When to use. SVM-light's where rows are expensive and memory is short; large sets where a product of many rows
is cheaper than the same rows one at a time. Production's `block` is this algorithm with sets of hundreds to
thousands.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from hinge.arrays import Index
from hinge.lab.algorithms.course import ANY_GROUPS, laboratory
from hinge.lab.algorithms.gradient_projection import ascend
from hinge.lab.algorithms.interior_point import solve_quadratic_program
from hinge.lab.algorithms.subproblem import InnerSolver, Subproblem, extract, worst_violators
from hinge.lab.registry import Algorithm
from hinge.report import Status
from hinge.solvers.pairs.loop import optimise
from hinge.solvers.pairs.rules import SECOND_ORDER
from hinge.solvers.pairs.step import Point, Rows
from hinge.solvers.run import Run, Stop
from hinge.solvers.state import State

Selection = Callable[[State], Index]

SVM_LIGHT_SIZE = 10
GENERAL_SIZE = 200
OSUNA_SIZE = 400
_OSUNA_EXCHANGED = OSUNA_SIZE // 4

# A coarse answer is enough while the whole problem is far from solved (Bottou & Lin, section 1.6.2).
_INNER_SHARE_OF_VIOLATION = 0.1
_INNER_SHARE_OF_TOL = 0.5

_MOST_PAIR_STEPS = 1_000_000


def decompose(select: Callable[[], Selection], inner: InnerSolver, state: State, tol: float, run: Run) -> None:
    """Algorithm 1.2.

    Parameters
    ----------
    select : callable
        Makes the selection of this run; a selection may remember its last set.
    inner : InnerSolver
        Solves the small problems.
    state, tol, run
        As every body.
    """
    choose = select()
    while True:
        violation = state.violation()  # lines 4 to 6
        if violation <= tol:
            return
        run.check(state, violation)
        sub = extract(state, choose(state))  # line 7
        aim = max(_INNER_SHARE_OF_TOL * tol, _INNER_SHARE_OF_VIOLATION * violation)
        steps = inner(sub, aim)  # line 8
        change = state.move(sub.variables, sub.beta)  # lines 9 and 10
        run.count(steps, change)
        if change == 0:
            raise Stop(Status.STALLED)


# ---------------------------------------------------------------------- which variables


def steepest(size: int) -> Selection:
    """SVM-light's choice of ``size`` variables."""
    return partial(worst_violators, count=size)


def osuna() -> Selection:
    """Osuna's choice: members make way for violators, those settled at a bound first, then the oldest."""
    members = np.empty(0, dtype=np.int64)

    def choose(state: State) -> Index:
        nonlocal members
        new = np.setdiff1d(worst_violators(state, _OSUNA_EXCHANGED), members)
        problem = state.problem
        at_bound = (state.beta <= problem.lo) | (state.beta >= problem.hi)
        kept = np.concatenate([members[at_bound[members]], members[~at_bound[members]]])  # first to go comes first
        n_leaving = max(len(kept) + len(new) - OSUNA_SIZE, 0)
        # The violators that are members already stay: without one of them the set might not move at all.
        violators = np.intersect1d(kept, worst_violators(state, 2))
        members = np.concatenate([np.setdiff1d(kept[n_leaving:], violators, assume_unique=True), violators, new])
        return members

    return choose


# ---------------------------------------------------------------------- who solves the small problem


def by_pair_steps(sub: Subproblem, tol: float) -> int:
    """Sequential minimal optimisation, second order, on the small matrix."""
    point = Point.of(sub.problem, sub.beta, sub.residual)
    rows = Rows.of_matrix(sub.kernel, np.ascontiguousarray(sub.kernel.diagonal()))
    return int(optimise(point, rows, SECOND_ORDER, None, tol, _MOST_PAIR_STEPS).steps)


def by_gradient_projection(sub: Subproblem, tol: float) -> int:
    """Modified gradient projection; what it evicts is left to the next set, as in SVQP."""
    return ascend(sub, tol, conjugate=False)[0]


def by_conjugate_directions(sub: Subproblem, tol: float) -> int:
    """Modified gradient projection with conjugate directions."""
    return ascend(sub, tol, conjugate=True)[0]


def _general(name: str, title: str, inner: InnerSolver) -> Algorithm:
    return laboratory(
        f"decomposition-{name}",
        f"Decomposition, {title}",
        "Bottou & Lin, algorithm 1.2 and section 1.6.2",
        ANY_GROUPS,
        partial(decompose, partial(steepest, GENERAL_SIZE), inner),
    )


def svm_light(size: int, name: str = "") -> Algorithm:
    """Return SVM-light's decomposition with working sets of this size.

    Parameters
    ----------
    size : int
        Variables of a working set, q.
    name : str, optional
        What to call it; by default ``svm-light:size``.

    Returns
    -------
    Algorithm
        An entrant for races.
    """
    return laboratory(
        name or f"svm-light:{size}",
        f"SVM-light's decomposition, q = {size}",
        "Joachims; LIBSVM document, eq. 3.8; Glasmachers & Igel, section 1.3",
        ANY_GROUPS,
        partial(decompose, partial(steepest, size), by_pair_steps),
    )


ALGORITHMS = (
    svm_light(SVM_LIGHT_SIZE, "svm-light"),
    laboratory(
        "osuna",
        "Osuna's decomposition",
        "Osuna, Freund & Girosi; Platt, section 1.2",
        ANY_GROUPS,
        partial(decompose, osuna, by_pair_steps),
    ),
    _general("pairs", "pair steps inside", by_pair_steps),
    _general("gradient-projection", "gradient projection inside (Royal Holloway SVM)", by_gradient_projection),
    _general("conjugate", "conjugate gradient projection inside (SVQP)", by_conjugate_directions),
    _general("interior-point", "a general QP solver inside (Clarabel)", solve_quadratic_program),
)
