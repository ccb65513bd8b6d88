"""Coordinate descent on the weight vector, for linear kernels (Hsieh et al. 2008).

With a linear kernel the residual of sample t is v_t − x_tᵀw, where w = Xᵀβ is kept as a vector. One variable can
then be moved at the cost of the features of its sample, and no kernel value is ever computed. What stands in the
way is the sum of each group, which a variable cannot keep alone. An augmented Lagrangian takes its place: with s
the excess of the group's sum, variables descend on

    ½ ‖w‖² − vᵀβ + μ s + ½ ρ s²

and every few sweeps the multiplier μ grows by ρ s. At the end the point is made feasible and its residual is
computed anew, in double precision. Sweeps go through the variables in random order; those that rest at a bound by
a margin are set aside until the others are done.

Samples with many features of their own are nearly orthogonal, and some tens of sweeps suffice. Where samples have
few features they are all alike and the descent crawls; it notices, and leaves the rest to block decomposition.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import FeatureRows, Index, Vector
from hinge.data.products import add_row, row_dot
from hinge.dual.optimality import multipliers_of
from hinge.runtime.jit import compiled
from hinge.solvers.run import Run, Stop
from hinge.solvers.state import State

# Work between two looks at the clock, in the units of `Samples.cost`.
_WORK_AT_ONCE = 2e7

#: Where sequences of random numbers begin: the same one every time, so that answers are.
SEED = 0x2545F4914F6CDD1D


def descend(state: State, tol: float, run: Run) -> None:
    """Bring the violation of ``state`` down to ``tol``, or as far as single variables get without crawling.

    Raises
    ------
    Stop
        A limit was reached.
    """
    if state.violation() <= tol:
        return
    descent = _Descent(state, run)
    try:
        while descent.makes_headway and run.steps_left >= len(descent.order):
            run.check(state, descent.distance, descent.beta, len(descent.order))
            descent.sweep()
            if descent.has_settled(tol) and descent.hand_over() <= tol:
                return
    except Stop:
        descent.hand_over()  # in the run's grace; where that has passed the state stays where it was
        raise
    descent.hand_over()


class _Descent:
    """A point on its way: its weights, the excess of its sums, the variables that still move.

    Attributes
    ----------
    order : int64 array
        The variables that are not set aside, in the order of the last sweep.
    distance : float
        How far the last sweep was from its goal: the difference of the largest and the smallest slope that
        variables could follow, or what the excess of a sum is worth if that is more.
    """

    def __init__(self, state: State, run: Run) -> None:
        problem = state.problem
        self.state, self.run, self.policy = state, run, run.policy.descent
        self.beta = state.beta.copy()
        coefficients = problem.coefficients(self.beta)
        self.rows = state.gram.weights.rows()
        self.weights = state.gram.weights.of(coefficients)
        self.levels = np.zeros(max(problem.n_groups, 1))
        self.levels[: problem.n_groups] = multipliers_of(problem, self.beta, state.residual)
        self.excess = np.zeros(len(self.levels))
        self.penalty = self.policy.penalty * float(state.gram.diagonal.mean()) if problem.n_groups else 0.0
        curvature = np.tile(state.gram.diagonal, problem.n_variables // problem.n_samples) + self.penalty
        ridge = np.zeros(problem.n_variables) if problem.ridge is None else problem.ridge
        rate = 1 / np.maximum(curvature + ridge, np.finfo(np.float64).tiny)
        box = problem.lo, problem.hi, problem.group
        self.variables = Variables(problem.v, *box, ridge, rate, self.beta, self.weights, self.excess)
        self.movable = np.flatnonzero(problem.lo < problem.hi)
        self.random = np.full(1, SEED, dtype=np.uint64)
        self.distance = state.violation()
        self.work = 0.0
        self._milestone, self._work_then = self.distance, 0.0
        self._sweeps_since_change = 0
        self._aim = 1.0
        self.order: Index = self.movable.copy()
        self.margins = (-np.inf, np.inf)

    @property
    def makes_headway(self) -> bool:
        """Whether the distance was halved not too long ago, and feasible points do not keep missing the goal."""
        policy = self.policy
        patience = policy.patience if self.state.problem.n_groups else policy.patience_alone
        return self.work - self._work_then <= patience and len(self.order) > 0 and self._aim > policy.finest

    def sweep(self) -> None:
        """Move every variable that is not set aside once, and change the multipliers when it is time."""
        order = self.order
        shuffle(order, self.random)
        weights = self.state.gram.weights
        piece = min(int(max(_WORK_AT_ONCE / self.state.gram.cost, 1.0)), weights.most_visited)
        slopes = np.array([-np.inf, np.inf])
        n_kept = n_moves = 0
        for start in range(0, len(order), piece):
            part = order[start : start + piece]
            kept, moves = sweep(self.rows, self.variables, part, self.levels, self.penalty, self.margins, slopes)
            order[n_kept : n_kept + kept] = part[:kept]
            n_kept, n_moves = n_kept + kept, n_moves + moves
            weights.let_go()
            if self.run.must_stop():
                break
        self.run.count(n_moves, 0.0)
        self.work += len(order) / len(self.movable)
        self.order = order[:n_kept]
        self._note(*slopes)

    def _note(self, top: float, bottom: float) -> None:
        """Draw the consequences of a sweep: margins for setting aside, headway, multipliers."""
        span = max(top - bottom, top, -bottom)
        change = self.penalty * self.excess
        reach = float(np.abs(change).max())
        self.distance = max(span, reach)
        if self.distance < 0.5 * self._milestone:
            self._milestone, self._work_then = self.distance, self.work
        self._sweeps_since_change += 1
        if span <= self.policy.settled * reach or self._sweeps_since_change >= self.policy.sweeps:
            self.levels += change
            self._sweeps_since_change = 0
        else:
            reach = 0.0
        if self.run.settings.shrinking:
            self.margins = (
                bottom - reach if bottom < 0 else -np.inf,
                top + reach if top > 0 else np.inf,
            )

    def has_settled(self, tol: float) -> bool:
        """Whether the variables that move are within the tolerance, and the sums nearly right."""
        return self.distance <= self._aim * tol

    def hand_over(self) -> float:
        """Take the point, made feasible, over into the state; return the state's violation."""
        violation = self.state.adopt(self.beta)
        self.run.objective = self.state.objective()
        self._aim *= self.policy.finer
        self._milestone, self._work_then = violation, self.work  # from here on, with all variables
        self.order, self.margins = self.movable.copy(), (-np.inf, np.inf)
        return violation


@compiled
def shuffle(order: Index, random: NDArray[np.uint64]) -> None:
    """Bring ``order`` into random order; ``random`` holds the state of an xorshift generator."""
    x = random[0]
    for k in range(order.shape[0] - 1, 0, -1):
        x ^= x << np.uint64(13)
        x ^= x >> np.uint64(7)
        x ^= x << np.uint64(17)
        j = np.int64(((x >> np.uint64(32)) * np.uint64(k + 1)) >> np.uint64(32))
        order[k], order[j] = order[j], order[k]
    random[0] = x


class Variables(NamedTuple):
    """What `sweep` knows of every variable, and the point that it changes.

    Attributes
    ----------
    v, lo, hi, group, ridge : arrays
        The problem's, one entry per variable.
    rate : float64 array
        1 over the curvature along each variable, the penalty counted in.
    beta, weights, excess : float64 arrays
        The point, its weight vector, and the excess of each group's sum; changed in place.
    """

    v: Vector
    lo: Vector
    hi: Vector
    group: NDArray[np.int8]
    ridge: Vector
    rate: Vector
    beta: Vector
    weights: Vector
    excess: Vector


@compiled
def sweep(
    rows: FeatureRows,
    variables: Variables,
    order: Index,
    levels: Vector,
    penalty: float,
    margins: tuple[float, float],
    slopes: Vector,
) -> tuple[int, int]:
    """Move each variable of ``order`` to where its own slope vanishes, within its box.

    Variables at a bound whose slope is beyond the ``margins`` are set aside: the others are moved to the front of
    ``order``. ``slopes`` collects the largest and the smallest slope that could be followed.

    Returns
    -------
    int, int
        How many variables were not set aside, and how many moved.
    """
    indptr, indices, values = rows
    v, lo, hi, group, ridge, rate, beta, weights, excess = variables
    lower, upper = margins
    n_samples = values.shape[0] if values.ndim == 2 else indptr.shape[0] - 1
    n_kept = n_moves = 0
    top, bottom = slopes[0], slopes[1]
    for k in range(order.shape[0]):
        t = order[k]
        g = group[t]
        old = beta[t]
        slope = levels[g] + penalty * excess[g] + ridge[t] * old - v[t]
        slope += row_dot(indptr, indices, values, t % n_samples, weights)
        if old <= lo[t]:
            if slope > upper:
                continue
            slope = min(slope, 0.0)
        elif old >= hi[t]:
            if slope < lower:
                continue
            slope = max(slope, 0.0)
        order[n_kept] = t
        n_kept += 1
        top, bottom = max(top, slope), min(bottom, slope)
        step = min(max(old - slope * rate[t], lo[t]), hi[t]) - old
        if step != 0:
            n_moves += 1
            beta[t] = old + step
            excess[g] += step
            add_row(indptr, indices, values, t % n_samples, step, weights)
    slopes[0], slopes[1] = top, bottom
    return n_kept, n_moves
