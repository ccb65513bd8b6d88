"""What the laboratory knows of an algorithm, and the production solvers among them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from hinge.dual.problem import DualProblem
from hinge.kernel.gram import Gram
from hinge.lab.trace import Recorder, Traced
from hinge.report import Solution
from hinge.settings import RULES, Settings
from hinge.solvers import solve

#: From a problem, its kernel values and settings to a solution.
Method = Callable[[DualProblem, Gram, Settings], Solution]


@dataclass(frozen=True)
class Algorithm:
    """One algorithm of the laboratory.

    Attributes
    ----------
    name : str
        Key in `hinge.lab.ALGORITHMS`.
    title : str
        What people call it.
    reference : str
        Paper and section that describe it.
    covers : str
        Which problems it can solve; others raise ValueError.
    run : callable
        ``run(problem, gram, settings) -> Solution``.

    Examples
    --------
    >>> from hinge import lab
    >>> lab.get("chunking").reference
    '...'
    """

    name: str
    title: str
    reference: str
    covers: str
    run: Method

    def solve(self, problem: DualProblem, gram: Gram, settings: Settings | None = None) -> Traced:
        """Run the algorithm and keep a trace of it.

        Parameters
        ----------
        problem : DualProblem
            What to solve.
        gram : Gram
            Kernel values of its samples; a fresh one, so that its counts are those of this run.
        settings : Settings, optional
            Tolerance and limits. ``solver`` and ``rule`` are the algorithm's own affair.

        Returns
        -------
        Traced
            The solution and the trace.

        Raises
        ------
        ValueError
            The problem is not one that the algorithm covers.

        Examples
        --------
        >>> import numpy as np
        >>> from hinge import Gram, Kernel, lab
        >>> from hinge.dual.formulations import c_svc
        >>> gram = Gram(np.array([[0.0], [1.0], [2.0], [3.0]]), Kernel("linear"))
        >>> traced = lab.get("smo-mvp").solve(c_svc([-1, -1, 1, 1], C=10.0), gram)
        >>> traced.solution.beta.round(3), bool(traced.trace.violation[-1] <= 1e-3)
        (array([ 0., -2.,  2.,  0.]), True)
        """
        recorder = Recorder(gram, settings or Settings())
        solution = self.run(problem, gram, recorder.listening)
        return Traced(solution, recorder.trace(solution))


def _production(**choice: Any) -> Method:
    def run(problem: DualProblem, gram: Gram, settings: Settings) -> Solution:
        return solve(problem, gram, replace(settings, **choice))

    return run


_EVERYTHING = "every formulation"

PRODUCTION = (
    Algorithm(
        "auto",
        "Hinge's own choice",
        "Hinge; ARCHITECTURE.md, the solvers",
        _EVERYTHING,
        _production(solver="auto"),
    ),
    Algorithm(
        "block",
        "Block decomposition",
        "Bottou & Lin, algorithm 1.2 with working sets of hundreds",
        _EVERYTHING,
        _production(solver="block"),
    ),
    *(
        Algorithm(
            f"smo-{rule.name.replace('_', '-')}",
            f"SMO, {rule.title}",
            rule.reference,
            _EVERYTHING,
            _production(solver="smo", rule=rule.name),
        )
        for rule in RULES.values()
    ),
)
