"""Samples whose residual need not be known, because they are provably out of reach.

A step moves the weight vector by Δw, and the residual of sample t by at most ‖Δw‖ ‖φ(x_t)‖ (Cauchy-Schwarz). The
norm costs nothing: ‖Δw‖² = δᵀKδ follows from the residuals of the samples that moved. A sample that rests at zero,
on the right side of the margin by more than all the movement since its residual was computed, cannot violate: it
may lag behind. Towards the end of a run the steps are small and most samples lag.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import Index, Vector
from hinge.dual.optimality import excess_of, multipliers_of
from hinge.solvers.state import Lags, State


def let_lag(state: State) -> None:
    """Let samples of a state lag from now on, where the kernel is positive and distances mean something."""
    if state.lagging is None and state.gram.is_positive:
        state.lagging = Lags(np.full(state.gram.n, Lags.CURRENT, dtype=np.int64))


def advance(state: State, before: Vector, moved: float, waiting: Index, width: float) -> Index:
    """Account for a step that has just been taken; return those of the ``waiting`` that must be updated.

    Parameters
    ----------
    state : State
        The point after the step.
    before : array of shape (n_samples,)
        The samples' coefficients before the step.
    moved : float
        Distance that the weight vector moved.
    waiting : array of int
        Samples whose residual the step has not reached yet.
    width : float
        Distance from the margin beyond which a sample is left alone.
    """
    lags = state.lagging
    if lags is None or not np.isfinite(moved):
        return waiting
    lags.travel = [distance + moved for distance in lags.travel]
    lags.points.append(before)
    lags.travel.append(moved)
    lagged = lags.epoch.copy()
    lagged[waiting[lags.epoch[waiting] == Lags.CURRENT]] = len(lags.points) - 1
    allowed = _out_of_reach(state, lags, lagged, width)
    fresh = waiting[(lags.epoch[waiting] == Lags.CURRENT) & ~allowed[waiting]]
    catch_up(state, np.flatnonzero(~allowed))
    lags.epoch = np.where(allowed, lagged, Lags.CURRENT)
    return fresh


def catch_up(state: State, samples: Index) -> None:
    """Bring the residual of those of the ``samples`` that lag up to date."""
    lags = state.lagging
    if lags is None:
        return
    samples = samples[lags.epoch[samples] != Lags.CURRENT]
    now = state.problem.coefficients(state.beta)
    for number in np.unique(lags.epoch[samples]):
        late = samples[lags.epoch[samples] == number]
        product = state.gram.product(now - lags.points[number], late, state.gram.dtype)
        state.residual.reshape(-1, state.gram.n)[:, late] -= product
        lags.epoch[late] = Lags.CURRENT


def settle(state: State) -> None:
    """Bring every residual up to date."""
    catch_up(state, np.arange(state.gram.n))


def _out_of_reach(state: State, lags: Lags, lagged: Index, width: float) -> NDArray[np.bool_]:
    """Mark the samples of ``lagged`` that cannot have come within ``width`` of the margin."""
    problem, n = state.problem, state.gram.n
    reach = np.zeros(n)
    late = lagged != Lags.CURRENT
    lengths = np.sqrt(np.maximum(state.gram.diagonal[late], 0.0))
    reach[late] = np.array(lags.travel)[lagged[late]] * lengths + state.drift
    multipliers = multipliers_of(problem, state.beta, state.residual)
    excess = excess_of(problem, state.residual, multipliers)
    spread = np.tile(reach + width, problem.n_variables // n)
    # An empty box marks a sample that is only watched; its residual is what somebody wants to know.
    resting = (state.beta == 0) & (problem.lo < problem.hi)
    safe_below = (problem.lo == 0) & (excess < -spread)
    safe_above = (problem.hi == 0) & (excess > spread)
    safe = resting & (safe_below | safe_above)
    return late & safe.reshape(-1, n).all(axis=0)
