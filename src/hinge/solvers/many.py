"""Many small problems in one compiled loop: the pairs of classes of a fit, or those of many fits.

The kernel matrices of several sets of n samples lie one below the other. A sample is known by its row, and its
column is that number modulo n; where there is but one matrix both are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import Floats, Index, Vector
from hinge.dual.problem import DualProblem
from hinge.kernel.gram import Gram
from hinge.report import Ledger, Report, Solution
from hinge.runtime import clock
from hinge.runtime.prices import SECONDS_PER_SMALL_PAIR, SECONDS_PER_SMALL_PROBLEM
from hinge.runtime.threads import lazy
from hinge.solvers.one_pass import FIGURE_NAMES, Bars, Layout, is_trusted, shared_report, solve_parts


@dataclass(frozen=True, eq=False)
class Parts:
    """Problems on one kernel matrix or several, laid out one after the other, and what became of them.

    Attributes
    ----------
    problem : DualProblem
        All variables; its sums are those of every problem.
    layout : Layout
        The same for compiled code.
    is_certified : bool array of shape (n_problems,)
        Which problems are solved.
    seconds : array of shape (n_problems,)
        How long each took.
    shared_report : Report or None
        What the reports of all that are solved have in common.
    """

    problem: DualProblem
    layout: Layout
    is_certified: NDArray[np.bool_]
    seconds: Vector
    shared_report: Report | None

    #: What the reports of these problems differ in.
    columns: ClassVar[tuple[str, ...]] = (*FIGURE_NAMES, "seconds", "largest_set")

    @classmethod
    def of(cls, sizes: Index, samples: Index, problem: DualProblem, gram: Gram | None = None) -> Parts:
        """Lay out problems of this many variables each, each at its start; their reports are about ``gram``."""
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        layout = Layout.of(offsets, samples, problem, problem.start.copy())
        reason = f"{int(sizes.max(initial=0))} variables at the most fit one working set"
        count, shared = len(sizes), None if gram is None else shared_report(gram, reason)
        return cls(problem, layout, np.zeros(count, dtype=bool), np.zeros(count), shared)

    @property
    def beta(self) -> Vector:
        """The points of all problems, one after the other."""
        beta: Vector = self.layout.point.beta
        return beta

    @lazy
    def sizes(self) -> Index:
        """The number of variables of each problem."""
        return np.diff(self.layout.offsets)

    def guessed_seconds(self) -> Vector:
        """Guess how long each problem takes."""
        return SECONDS_PER_SMALL_PROBLEM + SECONDS_PER_SMALL_PAIR * self.sizes.astype(np.float64) ** 2

    def solve(self, chosen: Index, matrices: Floats, bars: Bars, tol: float) -> None:
        """Solve the problems ``chosen``, on this thread; ``matrices`` are in C order, one below the other."""
        begun = clock.now()
        largest = int(self.sizes[chosen].max())
        solve_parts(matrices, bars, chosen, largest, self.layout, tol, self.is_certified)
        self.seconds[chosen] = (clock.now() - begun) / len(chosen)

    def part(self, number: int) -> slice:
        """Return where the variables of a problem are."""
        offsets = self.layout.offsets
        return slice(int(offsets[number]), int(offsets[number + 1]))

    def is_begun(self, number: int, tol: float) -> bool:
        """Whether a problem has been worked on, and β is a better start than its own."""
        return is_trusted(self.layout.account.figures[number], tol)

    def problem_of(self, number: int) -> DualProblem:
        """Return one of the problems."""
        here, whole = self.part(number), self.problem
        box = whole.v[here], whole.lo[here], whole.hi[here], whole.group[here]
        return DualProblem(*box, whole.sums, len(box[0]), whole.start[here])

    def intercepts(self) -> Vector:
        """Return the intercept of every problem: the mean of its multipliers."""
        levels = self.layout.account.levels
        return np.asarray(levels.sum(axis=1) / levels.shape[1])

    def figures(self) -> Vector:
        """Return what the reports differ in, one line per problem: `columns`."""
        lines = np.empty((len(self.seconds), len(self.columns)))
        lines[:, :-2], lines[:, -2], lines[:, -1] = self.layout.account.figures, self.seconds, self.sizes
        return lines

    def solution(self, number: int) -> Solution:
        """Return the solution of a problem that is certified."""
        here, levels = self.part(number), self.layout.account.levels[number, : self.problem.n_groups]
        figures = [[*self.layout.account.figures[number], self.seconds[number], here.stop - here.start]]
        report = Ledger([None], self.shared_report, self.columns, np.array(figures))[0]
        return Solution(self.beta[here], self.layout.point.residual[here], levels, report)
