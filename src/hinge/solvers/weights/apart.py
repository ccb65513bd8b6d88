"""Weights of their own, for machines of which nothing else is kept.

A machine that is nothing but its weight vector w need not have w = Xᵀβ to the last digit. With features of 1e7 no
variables in double precision make a w that meets the tolerance: a unit in the last place of one β moves decisions
by more. But w has the digits, and β is only what proves it. For any pair of them, with the residual r = v − Xw,

    primal(w) − dual(β)  =  Σ max over b in the box of t of (r_t − μ)(b − β_t)  +  ½ ‖w − Xᵀβ‖²,

less ½ ρ_t (b − β_t)² in each term of a squared loss: the gap as it is elsewhere, and what w and β do not agree in.
Rounding of β counts by its square, so it is felt only where ‖x‖² ulp(β)² is. Proximal steps begin anew with such a
pair, and each makes up for the disagreement that it finds.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np
from numpy.linalg import LinAlgError

from hinge.arrays import Vector
from hinge.dual.optimality import doubt_of, gap_of, multipliers_of
from hinge.dual.residuals import Reference
from hinge.kernel.rounding import UNIT
from hinge.report import Solution, Status
from hinge.runtime.interrupt import Cancelled
from hinge.runtime.threads import blas_on_one_thread
from hinge.solvers.conclusion import conclude
from hinge.solvers.exactness import is_within
from hinge.solvers.run import Run, Stop
from hinge.solvers.state import State
from hinge.solvers.weights.proximal import Step, first_rate, shorter, with_sums_of


def with_own_weights(state: State, status: Status, method: str, reason: str, run: Run) -> Solution:
    """Go on from where no β is better, and return a solution with weights of its own.

    Parameters
    ----------
    state : State
        Where a run has ended.
    status : Status
        How it has ended; that stays where nothing better is found.
    method, reason : str
        How it was run, and why.
    run : Run
        Its clock and limits; ``run.settings.weights_gap`` is the gap that suffices.
    """
    pair = _Pair(state)
    with run, blas_on_one_thread():
        try:
            pair.improve(run)
            status = Status.CONVERGED if pair.has_converged(run) else status
        except Stop as stop:
            status = stop.status
        except Cancelled:
            status = run.why_stopped()
    pair.return_to_best()
    reason = f"{reason}; its weights have digits that no variables could give them"
    solution = conclude(pair.state, status, method, reason, run)
    bound = pair.error + state.gram.lengths * float(np.linalg.norm(pair.lack))
    report = replace(solution.report, objective=pair.objective, gap=pair.gap)
    return replace(solution, report=report, error=bound, weights=pair.weights)


class _Pair:
    """Weights and variables, and what they prove together.

    Attributes
    ----------
    state : State
        The variables, and the residual of the weights.
    weights : array of shape (n_features,)
        The weights.
    lack : array of shape (n_features,)
        Xᵀβ − w.
    error : array of shape (n_samples,)
        Bound on the rounding error of the residual.
    objective, gap : float
        The dual objective of the variables, and by how much the primal one of the weights is above its negative.
    """

    def __init__(self, state: State) -> None:
        problem = state.problem
        self.state = State(problem, state.gram, state.beta.copy(), state.residual.copy())
        self._best: tuple[float, Vector, Vector] | None = None
        # From where rounding has led it takes more steps than from the start, and some lead nowhere.
        self._set(problem.start, state.gram.weights.sharp(problem.coefficients(problem.start)).sum(axis=0))

    def _set(self, beta: Vector, weights: Vector) -> None:
        state, problem, gram = self.state, self.state.problem, self.state.gram
        self.weights = weights
        high, low = gram.weights.sharp(problem.coefficients(beta))
        self.lack = (high - weights) + low
        image = gram.weights.project_sharply(weights)
        state.beta[:], state.residual[:] = beta, problem.residual_of(beta, image)
        sizes = np.abs(problem.v) + np.abs(np.tile(image, problem.n_variables // gram.n))
        if problem.ridge is not None:
            sizes += problem.ridge * np.abs(beta)
        rounding = 4 * UNIT * sizes.reshape(-1, gram.n).max(axis=0)
        products = gram.lengths * float(np.linalg.norm(weights))
        self.error = rounding + 8 * len(weights) * UNIT**2 * products
        state.reference = Reference(
            state.beta.copy(), state.residual.copy(), self.error, np.ones(gram.n, dtype=bool)
        )
        made = weights + self.lack
        self.objective = 0.5 * float(np.dot(made, made)) - float(np.dot(problem.v, beta))
        if problem.ridge is not None:
            self.objective += 0.5 * float(np.dot(problem.ridge * beta, beta))
        multipliers = multipliers_of(problem, beta, state.residual)
        self.gap = gap_of(problem, beta, state.residual, multipliers) + self._disagreement
        if self._best is None or self.gap < self._best[0]:
            self._best = self.gap, state.beta.copy(), weights

    @property
    def _disagreement(self) -> float:
        return 0.5 * float(np.dot(self.lack, self.lack))

    def return_to_best(self) -> None:
        """Go back to where the gap was smallest."""
        assert self._best is not None
        if self._best[0] < self.gap:
            self._set(*self._best[1:])

    def has_converged(self, run: Run) -> bool:
        """Whether the conditions of an optimum hold, and weights and variables agree; or the gap alone says so."""
        problem, state, share = self.state.problem, self.state, run.settings.weights_gap
        assert share is not None
        negligible = share * max(1.0, abs(self.objective))
        rounding = doubt_of(problem, state.beta, state.residual, self.error)
        is_met = is_within(state.violation(), rounding, run.settings.tol)
        return self.gap <= negligible or (is_met and self._disagreement <= negligible)

    def improve(self, run: Run) -> None:
        """Take proximal steps until the pair has converged, or as far as they lead."""
        policy, state, n_retreats = run.policy.proximal, self.state, 0
        rate, problem = first_rate(state, policy), with_sums_of(state)
        for _ in range(2 * policy.steps):
            if self.has_converged(run) or n_retreats > policy.retreats:
                return
            run.check(state, state.violation())
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                step = Step(state, problem, rate, policy, self.lack)
                with suppress(LinAlgError):
                    step.solve(policy.share * run.settings.tol, state, run)
            before, objective, gap = (state.beta.copy(), self.weights), self.objective, self.gap
            if np.isfinite(step.beta).all() and np.isfinite(step.weights).all():
                self._set(step.feasible(), self.weights + step.weights)
            run.count(step.n_newton, min(self.objective - objective, 0.0))
            if self.gap < gap or self.objective < objective:
                rate = rate * policy.growth ** (2 if step.n_newton <= policy.few else 1)
                continue
            self._set(*before)
            if not step.n_newton:  # so short a step that rounding hides it
                rate = rate * policy.huge
            else:
                rate, n_retreats = shorter(rate, problem, policy), n_retreats + 1
