"""Samples whose residual need not be known, because they are provably out of reach.

A step moves the weight vector by Δw, and the residual of sample t by at most ‖Δw‖ ‖φ(x_t)‖ (Cauchy-Schwarz). The
norm costs nothing: ‖Δw‖² = δᵀKδ follows from the residuals of the samples that moved. A sample that rests at zero,
on the right side of the margin by more than all the movement since its residual was computed, cannot violate: it
may lag behind. Towards the end of a run the steps are small and most samples lag.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hinge.optimality import excess_of, multipliers_of
from hinge.problem import Vector
from hinge.samples import Index
from hinge.solvers.state import State

_CURRENT = -1


class Lagging:
    """Which samples of a state lag, and behind which point.

    Attributes
    ----------
    epoch : int64 array of shape (n_samples,)
        For each sample, the number of the point that its residual belongs to; -1 where it is up to date.
    points : list of arrays
        Coefficients of the samples at those points.
    travel : list of float
        How far the weight vector has moved since each point, at most.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.epoch = np.full(state.gram.n, _CURRENT, dtype=np.int64)
        self.points: list[Vector] = []
        self.travel: list[float] = []
        self._reach = np.sqrt(np.maximum(state.gram.diagonal, 0.0))

    @property
    def count(self) -> int:
        """Number of samples that lag."""
        return int(np.count_nonzero(self.epoch != _CURRENT))

    def advance(self, before: Vector, moved: float, waiting: Index, width: float) -> Index:
        """Account for a step that has just been taken; return those of the ``waiting`` that must be updated.

        Parameters
        ----------
        before : array of shape (n_samples,)
            The samples' coefficients before the step.
        moved : float
            Distance that the weight vector moved.
        waiting : array of int
            Samples whose residual the step has not reached yet.
        width : float
            Distance from the margin beyond which a sample is left alone.
        """
        self.travel = [distance + moved for distance in self.travel]
        self.points.append(before)
        self.travel.append(moved)
        lagged = self.epoch.copy()
        lagged[waiting[self.epoch[waiting] == _CURRENT]] = len(self.points) - 1
        allowed = self._out_of_reach(lagged, width)
        fresh = waiting[(self.epoch[waiting] == _CURRENT) & ~allowed[waiting]]
        self.catch_up(np.flatnonzero(~allowed))
        self.epoch = np.where(allowed, lagged, _CURRENT)
        return fresh

    def catch_up(self, samples: Index) -> None:
        """Bring the residual of those of the ``samples`` that lag up to date."""
        state = self.state
        samples = samples[self.epoch[samples] != _CURRENT]
        now = state.problem.coefficients(state.beta)
        for number in np.unique(self.epoch[samples]):
            late = samples[self.epoch[samples] == number]
            product = state.gram.product(now - self.points[number], late, state.gram.dtype)
            state.residual.reshape(-1, state.gram.n)[:, late] -= product
            self.epoch[late] = _CURRENT

    def settle(self) -> None:
        """Bring every residual up to date."""
        self.catch_up(np.arange(self.state.gram.n))

    def _out_of_reach(self, lagged: Index, width: float) -> NDArray[np.bool_]:
        """Mark the samples of ``lagged`` that cannot have come within ``width`` of the margin."""
        state, problem, n = self.state, self.state.problem, self.state.gram.n
        reach = np.zeros(n)
        late = lagged != _CURRENT
        reach[late] = np.array(self.travel)[lagged[late]] * self._reach[late] + state.drift
        multipliers = multipliers_of(problem, state.beta, state.residual)
        excess = excess_of(problem, state.residual, multipliers)
        spread = np.tile(reach + width, problem.n_variables // n)
        # An empty box marks a sample that is only watched; its residual is what somebody wants to know.
        resting = (state.beta == 0) & (problem.lo < problem.hi)
        safe_below = (problem.lo == 0) & (excess < -spread)
        safe_above = (problem.hi == 0) & (excess > spread)
        safe = resting & (safe_below | safe_above)
        return late & safe.reshape(-1, n).all(axis=0)
