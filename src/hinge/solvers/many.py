"""Many small problems on one kernel matrix, in one compiled loop: the pairs of classes of a fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import Index, Vector
from hinge.dual.problem import DualProblem
from hinge.kernel.gram import Gram
from hinge.report import Solution
from hinge.solvers.one_pass import TURNS, Layout, report_of, solve_parts

# What a problem takes beside its steps, and its steps for each pair of variables: in seconds, roughly.
_SECONDS_EACH, _SECONDS_PER_PAIR = 1e-5, 1e-8


@dataclass(frozen=True, eq=False)
class Parts:
    """Problems that share a kernel matrix, laid out one after the other, and what became of them.

    Attributes
    ----------
    problem : DualProblem
        All variables; its sums are those of every problem.
    layout : Layout
        The same for compiled code.
    is_certified : bool array of shape (n_problems,)
        Which problems are solved.
    """

    problem: DualProblem
    layout: Layout
    is_certified: NDArray[np.bool_]

    @classmethod
    def of(cls, sizes: Index, samples: Index, problem: DualProblem) -> Parts:
        """Lay out problems of so many variables each, each at its start."""
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        layout = Layout.of(offsets, samples, problem, problem.start.copy())
        return cls(problem, layout, np.zeros(len(sizes), dtype=bool))

    @property
    def beta(self) -> Vector:
        """The points of all problems, one after the other."""
        beta: Vector = self.layout.point.beta
        return beta

    def seconds(self) -> Vector:
        """Guess how long each problem takes."""
        sizes = np.diff(self.layout.offsets)
        return _SECONDS_EACH + _SECONDS_PER_PAIR * sizes.astype(np.float64) ** 2

    def solve(self, chosen: Index, gram: Gram, tol: float) -> None:
        """Solve the problems ``chosen``, on this thread."""
        solve_parts(gram, chosen, self.layout, tol, self.is_certified)

    def part(self, number: int) -> slice:
        """Return where the variables of a problem are."""
        offsets = self.layout.offsets
        return slice(int(offsets[number]), int(offsets[number + 1]))

    def is_tried(self, number: int) -> bool:
        """Whether a problem has been worked on, so that β is a better start than its own."""
        return bool(self.layout.account.figures[number, TURNS] > 0)

    def problem_of(self, number: int) -> DualProblem:
        """Return one of the problems."""
        here, whole = self.part(number), self.problem
        box = whole.v[here], whole.lo[here], whole.hi[here], whole.group[here]
        return DualProblem(*box, whole.sums, len(box[0]), whole.start[here])

    def solution(self, number: int, gram: Gram, seconds: float) -> Solution:
        """Return the solution of a problem that is certified."""
        here, (levels, figures) = self.part(number), self.layout.account
        size = here.stop - here.start
        report = report_of(figures[number], size, gram, f"{size} variables fit one working set", seconds)
        residual, multipliers = self.layout.point.residual[here], levels[number, : self.problem.n_groups]
        return Solution(self.beta[here], residual, multipliers, report)
