"""Pair steps whose choice looks at all variables: three ways to say which pair is the worst.

Idea. SMO moves the pair that "violates most" (lecture notes, step 5 of their algorithm); the methods differ in how
they measure it. b is the middle between the two ends of the violation, *room* how far a variable can still go.

- *complementarity* (lecture notes): the optimality conditions as products that should be zero, α(1 − y f(x)) for a
  sample that should be outside the margin, (C − α)(1 − y f(x)) for one inside: room times excess over b. The
  largest product on either side moves. The notes print the first of the two only; at α = 0, where they start, it
  is zero for every sample. They clip α_i and α_j one after the other, which breaks Σ yα = 0 where both leave the
  box; here a step ends where the first of the two meets its bound.
- *rate-certifying* (Hush & Scovel 2003; List & Simon 2005): the pair that makes (r_i − r_j) · min(room_i, room_j)
  largest. Such a pair falls by a share of what is missing that is known beforehand: the rule behind the proofs of
  polynomial time. Found by sorting the rooms.
- *greedy* (Bottou & Lin, eq. 1.23 and 1.26): of *all* pairs the one whose step gains most. n² gains are looked
  at for each step; what faster rules approximate.

Cost. O(n), O(n log n) and O(n²) for the choice, two kernel rows per step; greedy keeps the whole matrix.

When to use. To compare rules by what they need: steps for greedy, proofs for rate-certifying pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from hinge.arrays import Vector
from hinge.lab.algorithms.course import ONE_GROUP, laboratory, row_of
from hinge.lab.algorithms.pairs import curvature_of, move, subtract_row
from hinge.lab.algorithms.subproblem import extract
from hinge.lab.registry import Algorithm
from hinge.report import Status
from hinge.runtime.jit import compiled
from hinge.solvers.run import Run, Stop
from hinge.solvers.state import State

#: From a state to the pair that moves: i grows, j falls.
Choice = Callable[[State], tuple[int, int]]


def pair_steps(rule: Callable[[State], Choice], state: State, tol: float, run: Run) -> None:
    """Move the pair that a rule chooses until nothing violates.

    Parameters
    ----------
    rule : callable
        Makes the choice for this run; it may prepare something from the state.
    state, tol, run
        As every body.
    """
    if state.violation() <= tol:
        return
    choose = rule(state)
    while True:
        violation = state.violation()
        if violation <= tol:
            return
        run.check(state, violation)
        i, j = choose(state)
        change = _step(state, i, j)
        run.count(1, change)
        if change >= 0 or state.is_lost(violation):
            raise Stop(Status.STALLED)


def _step(state: State, i: int, j: int) -> float:
    """Move mass from j to i, up to the optimum or to a bound; return the objective's change."""
    n, diagonal = state.gram.n, state.gram.diagonal
    row_i = row_of(state, i).copy()
    row_j = row_of(state, j)
    slope = float(state.residual[i] - state.residual[j])
    curvature = curvature_of(diagonal[i % n], diagonal[j % n], row_i[j % n])
    problem, beta = state.problem, state.beta
    step = min(slope / curvature, problem.hi[i] - beta[i], beta[j] - problem.lo[j])
    move(i, step, beta, problem.lo, problem.hi)
    move(j, -step, beta, problem.lo, problem.hi)
    subtract_row(state.residual, row_i, step)
    subtract_row(state.residual, row_j, -step)
    state.note_steps(step * float(state.gram.lengths[i % n] + state.gram.lengths[j % n]))
    return -step * (slope - 0.5 * curvature * step)


def _rooms(state: State) -> tuple[Vector, Vector]:
    return state.problem.hi - state.beta, state.beta - state.problem.lo


def largest_products(state: State) -> Choice:
    """Room times excess, the largest on either side (lecture notes on the dual, step 5)."""

    def choose(state: State) -> tuple[int, int]:
        (top,), (bottom,) = state.extremes()
        excess = state.residual - 0.5 * (top + bottom)
        up, down = _rooms(state)
        return int(np.argmax(up * excess)), int(np.argmax(-down * excess))

    return choose


def rate_certifying(state: State) -> Choice:
    """The pair of largest (r_i − r_j) · min(room_i, room_j), by sorting the rooms."""

    def choose(state: State) -> tuple[int, int]:
        n, rooms = len(state.beta), np.concatenate(_rooms(state))
        order = np.argsort(-rooms, kind="stable")
        grows = order < n
        # With rooms of at least rooms[order[k]], the best on either side are among the first k + 1.
        value = np.concatenate([state.residual, -state.residual])[order]
        best_up, best_down = _leaders(np.where(grows, value, -np.inf)), _leaders(np.where(grows, -np.inf, value))
        both = np.flatnonzero((best_up >= 0) & (best_down >= 0))
        k = both[np.argmax((value[best_up[both]] + value[best_down[both]]) * rooms[order[both]])]
        return int(order[best_up[k]]), int(order[best_down[k]] - n)

    return choose


def _leaders(values: Vector) -> Any:
    """For each place, where the largest value so far stands; -1 before the first that counts."""
    largest = np.maximum.accumulate(values)
    is_new = values > np.concatenate([[-np.inf], largest[:-1]])
    return np.maximum.accumulate(np.where(is_new, np.arange(len(values)), -1))


def greedy(state: State) -> Choice:
    """The pair of largest gain of all (Bottou & Lin, eq. 1.26)."""
    kernel = extract(state, np.arange(state.problem.n_variables)).kernel

    def choose(state: State) -> tuple[int, int]:
        i, j = _largest_gain(kernel, state.beta, state.residual, state.problem.lo, state.problem.hi)
        return int(i), int(j)

    return choose


@compiled
def _largest_gain(kernel: Any, beta: Any, r: Any, lo: Any, hi: Any) -> tuple[int, int]:
    best, first, second = -1.0, 0, 0
    for i in range(r.shape[0]):
        if beta[i] >= hi[i]:
            continue
        for j in range(r.shape[0]):
            slope = r[i] - r[j]
            if slope <= 0 or beta[j] <= lo[j]:
                continue
            curvature = curvature_of(kernel[i, i], kernel[j, j], kernel[i, j])
            step = min(slope / curvature, hi[i] - beta[i], beta[j] - lo[j])
            gain = step * (slope - 0.5 * curvature * step)
            if gain > best:
                best, first, second = gain, i, j
    return first, second


def _named(name: str, title: str, reference: str, rule: Callable[[State], Choice]) -> Algorithm:
    return laboratory(name, title, reference, ONE_GROUP, partial(pair_steps, rule))


ALGORITHMS = (
    _named(
        "smo-complementarity",
        "SMO of the lecture notes, by complementarity",
        "Lecture notes on the dual of the SVM, the SMO algorithm",
        largest_products,
    ),
    _named("rate-certifying", "Rate-certifying pairs", "Hush & Scovel 2003; List & Simon 2005", rate_certifying),
    _named("greedy", "Pair of largest gain of all", "Bottou & Lin, eq. 1.23 and 1.26", greedy),
)
