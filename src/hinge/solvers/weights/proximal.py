"""Proximal point steps by Newton's method in the space of the weights, for linear kernels of few features.

Near a point β⁰ the problem is solved with Σ (β_t − β⁰_t)² / 2σ_t added. For given weights w and multipliers μ its
variables are then known, β_t = clip(β⁰_t + σ_t (v_t − x_tᵀw − μ), lo, hi). What is left is to find those that fit:

    w = Xᵀβ,   Σ β as it should be in every group.

These are the stationarity conditions of a convex function of as many unknowns as there are features and groups,
smooth but for kinks, so that Newton's method with a line search finds them in a few steps (Yan & Li 2020). Its
matrix is I + Σ σ_t x_t x_tᵀ over the variables strictly inside their box. The violation left is at most the
largest change of β_t divided by σ_t: σ grows from step to step, and about ten of them reach the tolerance.

σ_t is the same for all but samples that are huge beside the others: theirs is smaller, as k(x_t, x_t) is larger.
A ridge ρ_t makes a step shorter, σ_t / (1 + ρ_t σ_t), and nothing else changes: β⁰ is followed along the residual,
which has the ridge's part in it. It smooths the problem by itself, so that σ can be infinite from the start.

The multipliers are set anew after every step of Newton's, from the variables they belong to, because the residual
of a huge sample would spoil them for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

import numpy as np
from numpy.linalg import LinAlgError

from hinge.arrays import Floats, Index, Vector
from hinge.data.layout import LAYOUT
from hinge.dual.optimality import excess_of, multipliers_of
from hinge.dual.problem import DualProblem, shift_for
from hinge.kernel.kernels import SMALLEST_NORM
from hinge.kernel.rounding import UNIT
from hinge.runtime.jit import compiled
from hinge.solvers.policies import Proximal
from hinge.solvers.run import Run
from hinge.solvers.state import FELT, SUM_ERROR, State, keeps_sums
from hinge.solvers.weights.newton import solve_by_rows, solve_scaled

# Passes over all variables in which the shift that their sum needs must be found.
_MOST_PASSES = 8

# Weights and variables fit where what is left is the effect of some units in the last place of all variables.
_ULPS = 8.0

# Keeps the matrix positive where a group's variables span a direction that the features have too.
_RIDGE = 1e-12


def proximal_steps(state: State, tol: float, run: Run) -> None:
    """Bring the violation of ``state`` down to ``tol``, or as far as Newton's method gets.

    Raises
    ------
    Stop
        A limit was reached; the state is at the last proximal point.
    """
    policy, everyone = run.policy.proximal, np.arange(state.problem.n_variables)
    rate, problem, n_retreats = first_rate(state, policy), with_sums_of(state), 0
    for _ in range(policy.steps):
        if state.violation() <= tol or (problem.ridge is None and run.gap_is_reached(state)):
            return  # with a ridge there is hardly a way on which to look at the gap: that is done where it ends
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            step = Step(state, problem, rate, policy)
            with suppress(LinAlgError):
                step.solve(policy.share * tol, state, run)
        if not np.isfinite(step.beta).all():
            return
        before = state.beta.copy(), state.residual.copy()
        change = state.move(everyone, step.feasible())
        if change > 0:  # weights that do not fit
            state.beta[:], state.residual[:] = before
        run.count(step.n_newton, min(change, 0.0))
        state.sharpen(tol)
        if change < 0:
            rate = rate * policy.growth ** (2 if step.n_newton <= policy.few else 1)
        elif n_retreats < policy.retreats:
            n_retreats += 1
            rate = shorter(rate, problem, policy)
        else:
            return


def first_rate(state: State, policy: Proximal) -> Vector:
    """Return σ of every variable in the first step: the same for all but those of huge samples."""
    problem, violation = state.problem, state.violation()
    if problem.ridge is not None:
        return np.full(problem.n_variables, np.inf)
    usual = max(float(np.quantile(state.gram.diagonal, policy.usual, method="lower")), SMALLEST_NORM)
    with np.errstate(over="ignore"):  # an infinite size has no rate, and does not move
        sizes = np.maximum(state.gram.diagonal / (policy.huge * usual), 1.0)
    width = float(np.max(problem.hi - problem.lo))
    sigma = min(policy.first * width / violation, policy.most_first / usual) if violation > 0 else 1.0
    return sigma / np.tile(sizes, problem.n_variables // problem.n_samples)


def shorter(rate: Vector, problem: DualProblem, policy: Proximal) -> Vector:
    """Return σ of a step in the place of one that was too long by far."""
    return (rate if problem.ridge is None else np.minimum(rate, 1 / problem.ridge)) / policy.huge


def with_sums_of(state: State) -> DualProblem:
    """Return the problem with the sums that the state has: a part of a larger one keeps its own.

    What these miss by rounding is not kept: it would be much of the sums of smaller variables.
    """
    problem = state.problem
    if keeps_sums(problem, state.beta):
        return problem
    sums = [state.beta[problem.group == g].sum() for g in range(problem.n_groups)]
    return replace(problem, sums=np.array(sums))


class Step:
    """One proximal point step: the change of the weights and the multipliers on their way to fit.

    All of it is relative to the point β⁰ of the state, whose residual is known: w stands for Xᵀ(β − β⁰). Where
    that is the residual of weights of their own, the step makes up for what they lack as well.

    Parameters
    ----------
    lack : array of shape (n_features,), optional
        Xᵀβ⁰ less the weights that the residual belongs to.

    Attributes
    ----------
    beta : array of shape (n_variables,)
        The variables that belong to the weights and multipliers.
    goal : array of shape (n_variables,)
        Where they would be without the box.
    n_newton : int
        Newton steps taken.
    """

    def __init__(
        self, state: State, problem: DualProblem, rate: Vector, policy: Proximal, lack: Vector | float = 0.0
    ) -> None:
        self.problem, self.gram, self.policy, self.lack = problem, state.gram, policy, lack
        # A rate whose inverse is none, or that is nought, is that of a variable that does not move.
        moves = rate >= np.finfo(np.float64).tiny
        self._nearness = np.where(moves, 1 / rate, 0.0)
        self.rate = rate if problem.ridge is None else 1 / (self._nearness + problem.ridge)
        self.rate = np.where(moves, self.rate, 0.0)
        self.origin = state.beta.copy()
        self.weights = np.zeros(self.gram.weights.n_features)
        self.n_newton = 0
        self._members = [np.flatnonzero(problem.group == g) for g in range(problem.n_groups)]
        self._lengths = np.tile(self.gram.lengths, problem.n_variables // problem.n_samples)
        multipliers = multipliers_of(problem, state.beta, state.residual)
        self._set_goal(self.origin + self.rate * excess_of(problem, state.residual, multipliers))

    def _set_goal(self, goal: Vector) -> None:
        """Set the variables that belong to ``goal``, with multipliers for which their sums are right."""
        problem = self.problem
        for members, target in zip(self._members, problem.sums, strict=True):
            box = problem.lo[members], problem.hi[members]
            shift = near_shift(goal[members], *box, self.rate[members], float(target))
            if np.isnan(shift):
                shift = shift_for(goal[members], *box, self.rate[members], float(target))
            goal[members] -= self.rate[members] * shift
        self.goal = goal
        self.beta = np.clip(goal, problem.lo, problem.hi)

    def feasible(self) -> Vector:
        """Return the variables with what rounding left of their sums put where it does least harm."""
        problem, beta = self.problem, self.beta.copy()
        for members, target in zip(self._members, problem.sums, strict=True):
            inside = members[(beta[members] > problem.lo[members]) & (beta[members] < problem.hi[members])]
            if len(inside):
                t = inside[np.argmax(self.rate[inside])]
                lack = float(target - beta[members].sum())
                beta[t] = min(max(beta[t] + lack, problem.lo[t]), problem.hi[t])
        return beta if keeps_sums(problem, beta) else problem.near(beta)

    def solve(self, accuracy: float, state: State, run: Run) -> None:
        """Take Newton steps until weights and variables fit, or as far as they lead."""
        d, longest = len(self.weights), float(self._lengths.max())
        for _ in range(min(self.policy.steps, run.steps_left)):
            left = float(np.max(np.abs(self.beta - self.origin) * self._nearness))  # of the violation, in any case
            wanted = max(self.policy.share * left, accuracy)
            gradient = self._gradient(wanted)
            misfit = longest * float(np.linalg.norm(gradient[:d]))
            if misfit <= max(wanted, _ULPS * UNIT * longest * float(np.linalg.norm(self.beta * self._lengths))):
                return
            run.check(state, state.violation())
            step = self._newton_step(gradient)
            if not self._move(step, float(np.dot(gradient, step))):
                return
            self.n_newton += 1

    def _gradient(self, accuracy: float) -> Vector:
        moved = self.beta - self.origin
        coefficients = self.problem.coefficients(moved)
        if float(self.gram.rounding(coefficients).max()) <= FELT * accuracy:
            misfit = self.weights - self.lack - self.gram.weights.of(coefficients)
        else:  # features of very different sizes: what the weights lack would drown in the rounding of a sum
            high, low = self.gram.weights.sharp(coefficients)
            misfit = (self.weights - self.lack - high) - low
        return np.concatenate([misfit, [-moved[members].sum() for members in self._members]])

    def _newton_step(self, gradient: Vector) -> Vector:
        problem, d, n = self.problem, len(self.weights), self.problem.n_samples
        inside = np.flatnonzero((self.goal > problem.lo) & (self.goal < problem.hi))
        matrix = np.zeros((len(gradient), len(gradient)))
        matrix[:d, :d] = self.gram.weights.moments(inside % n, self.rate[inside])
        matrix[np.arange(d), np.arange(d)] += 1.0
        totals = np.ones(len(gradient))
        for g, members in enumerate(self._members):
            mine = inside[problem.group[inside] == g]
            matrix[d + g, :d] = self.gram.weights.of(np.bincount(mine % n, self.rate[mine], n).astype(np.float64))
            totals[d + g] = float(self.rate[mine].sum()) if len(mine) else float(self.rate[members].max())
            matrix[d + g, d + g] = (1 + _RIDGE) * totals[d + g]
            totals[d + g] *= _RIDGE if len(mine) else 1.0
        try:
            return -solve_scaled(matrix, gradient)
        except LinAlgError:
            return -solve_by_rows(self._rows_of(inside), np.sqrt(totals), gradient)

    def _rows_of(self, inside: Index) -> Iterator[Floats]:
        """Give the rows whose products make the matrix, some at a time."""
        d, n, problem = len(self.weights), self.problem.n_samples, self.problem
        for start in range(0, len(inside), LAYOUT.read_rows):
            some = inside[start : start + LAYOUT.read_rows]
            rows = np.zeros((len(some), d + len(self._members)))
            rows[:, :d] = self.gram.weights.dense_rows(some % n)
            if self._members:
                rows[np.arange(len(some)), d + problem.group[some].astype(np.int64)] = 1.0
            yield rows * np.sqrt(self.rate[some, None])

    def _move(self, step: Vector, slope: float) -> bool:
        """Go along ``step`` to where its slope has nearly vanished; return False if that is nowhere."""
        problem, d = self.problem, len(self.weights)
        direction, shift = step[:d], step[d:]
        falling = np.tile(self.gram.weights.project(direction), problem.n_variables // problem.n_samples)
        if problem.n_groups:
            falling += shift[problem.group]
        own = float(np.dot(direction, self.weights - self.lack) + np.dot(self.origin, falling))
        growth = float(np.dot(direction, direction))

        def slope_at(length: float) -> float:
            fitting = clipped_dot(self.goal, falling, self.rate, -length, problem.lo, problem.hi)
            return own + length * growth - fitting

        length = root(slope_at, slope, self.policy)
        if length <= 0:
            return False
        self.weights = self.weights + length * direction
        self._set_goal(self.goal - self.rate * (length * falling))
        return True


def root(slope_at: Callable[[float], float], slope: float, policy: Proximal) -> float:
    """Return a length at which a slope, negative at 0 and rising, has nearly vanished; at most 1.

    By false position, with a bisection every third time.
    """
    low, high, edge = 0.0, 1.0, 0.05  # a trial cuts off a twentieth at least
    low_slope, high_slope = slope, slope_at(1.0)
    if not slope < 0:
        return 0.0
    if high_slope <= policy.share * -slope:
        return 1.0
    for trial in range(policy.steps):
        share = low_slope / (low_slope - high_slope) if trial % 3 else 0.5
        length = low + min(max(share, edge), 1 - edge) * (high - low)
        here = slope_at(length)
        if abs(here) <= policy.share * -slope:
            return length
        if here > 0:
            high, high_slope = length, here
        else:
            low, low_slope = length, here
    return low


@compiled
def near_shift(goal: Vector, lo: Vector, hi: Vector, rate: Vector, target: float) -> float:
    """As `shift_for`, by Newton's method from a shift of nought; NaN where that is not near enough."""
    shift, low, high = 0.0, -np.inf, np.inf
    for _ in range(_MOST_PASSES):
        total, size, slope = 0.0, 0.0, 0.0
        for t in range(goal.shape[0]):
            value = goal[t] - shift * rate[t]
            clipped = min(max(value, lo[t]), hi[t])
            total += clipped
            size += abs(clipped)
            slope += rate[t] if clipped == value else 0.0
        excess = total - target
        if abs(excess) <= SUM_ERROR * size:
            return shift
        if excess > 0:
            low = shift
        else:
            high = shift
        if slope <= 0:
            return np.nan
        shift += excess / slope
        if not low < shift < high:
            return np.nan
    return np.nan


@compiled
def clipped_dot(goal: Vector, falling: Vector, rate: Vector, factor: float, lo: Vector, hi: Vector) -> float:
    """Dot product of ``falling`` with clip(goal + factor · rate · falling, lo, hi)."""
    total = 0.0
    for t in range(goal.shape[0]):
        total += falling[t] * min(max(goal[t] + factor * rate[t] * falling[t], lo[t]), hi[t])
    return total
