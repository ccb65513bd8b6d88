"""Solvers of one's own: a function becomes an algorithm like those of the papers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from hinge.dual.problem import DualProblem
from hinge.kernel.gram import Gram
from hinge.lab.algorithms.course import conducted
from hinge.lab.registry import Algorithm
from hinge.report import Solution, Status
from hinge.settings import Settings
from hinge.solvers.recording import Recorder
from hinge.solvers.run import Run, Stop
from hinge.solvers.state import State

#: From a problem, its kernel values and settings to a `Solution`, to β, or to one β after the other.
OwnSolver = Callable[[DualProblem, Gram, Settings], Any]


def algorithm_of(function: OwnSolver, name: str | None = None, reference: str = "") -> Algorithm:
    """Make an algorithm of a function, for races and for comparison with the others.

    Parameters
    ----------
    function : callable
        ``function(problem, gram, settings)`` returns β, or it is a generator that yields β after every step: then
        its course is recorded and limits hold between two steps. It should stop at ``settings.tol``. It may also
        return a `Solution`, as from `hinge.solve`. Its β is made feasible, and what the report says of it is
        computed from it.
    name : str, optional
        What to call it; by default the function's own name.
    reference : str
        Where it is described.

    Returns
    -------
    Algorithm
        An entrant for `hinge.lab.race.race`.

    Examples
    --------
    >>> import numpy as np
    >>> from hinge import Gram, Kernel, Settings
    >>> from hinge.dual.formulations import c_svc
    >>> def halves(problem, gram, settings):
    ...     target = np.array([0.0, -2.0, 2.0, 0.0])
    ...     for k in range(20):
    ...         yield target * (1 - 0.5**k)
    >>> gram = Gram(np.array([[0.0], [1.0], [2.0], [3.0]]), Kernel("linear"))
    >>> report = algorithm_of(halves).solve(c_svc([-1, -1, 1, 1], C=10.0), gram).report
    >>> report.solver, str(report.status), report.iterations
    ('halves', 'converged', 20)
    """
    if not callable(function):
        raise TypeError(f"a solver is a function of problem, gram and settings, got {function!r}")
    known_as = str(name or getattr(function, "__name__", "own"))

    def run(problem: DualProblem, gram: Gram, settings: Settings) -> Solution:
        body = _Body(function, settings)
        solution = conducted(known_as, body, problem, gram, settings)
        return solution if body.answer is None else _with_trace(body.answer, problem, settings)

    return Algorithm(known_as, known_as, reference, "what its author says", run)


def _with_trace(solution: Solution, problem: DualProblem, settings: Settings) -> Solution:
    """Give a solution that knows nothing of its course a trace of its end."""
    report = solution.report
    if settings.trace is None or report.trace is not None:
        return solution
    trace = Recorder(settings.trace).trace(report, solution.beta, problem.n_samples)
    return replace(solution, report=replace(report, trace=trace))


class _Body:
    """A function as the body of a laboratory run."""

    def __init__(self, function: OwnSolver, settings: Settings) -> None:
        self._function, self._settings = function, settings
        self._is_done = False
        self.answer: Solution | None = None

    def __call__(self, state: State, tol: float, run: Run) -> None:
        if self._is_done:
            raise Stop(Status.STALLED)
        self._is_done = True
        answer = self._function(state.problem, state.gram, self._settings)
        if isinstance(answer, Solution):
            self.answer = answer
            state.beta[:], state.residual[:] = answer.beta, answer.residual
            raise Stop(answer.report.status)
        for point in answer if isinstance(answer, Iterator) else [answer]:
            self._take(state, point, run)
        counts, evaluations = state.gram.counts, state.gram.counts.evaluations
        state.adopt(state.beta)
        counts.evaluations = evaluations  # this is our check, not the solver's work
        run.objective = state.objective()

    def _take(self, state: State, point: Any, run: Run) -> None:
        beta = np.asarray(point, dtype=np.float64)
        if beta.shape != state.beta.shape or not np.isfinite(beta).all():
            raise ValueError(f"{self._name} must give β as {len(state.beta)} finite numbers, got {point!r:.60}")
        state.beta[:], state.is_stale = state.problem.near(beta), True
        run.count(1, 0.0)
        run.check(state, float("nan"), state.beta)

    @property
    def _name(self) -> str:
        return getattr(self._function, "__name__", "the solver")
