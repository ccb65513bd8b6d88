"""Many small problems on one kernel matrix, in one compiled loop: the pairs of classes of a fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import Index, Vector
from hinge.dual.problem import DualProblem
from hinge.kernel.gram import Gram
from hinge.report import Solution
from hinge.runtime.jit import compiled
from hinge.solvers.one_pass import N_FIGURES, Account, Bars, is_trusted, one_pass, report_of, writable
from hinge.solvers.pairs.step import Point

# What a problem takes beside its steps, and its steps for each pair of variables: in seconds, roughly.
_SECONDS_EACH, _SECONDS_PER_PAIR = 1e-5, 1e-8


class Layout(NamedTuple):
    """Problems one after the other, for compiled code.

    Attributes
    ----------
    offsets : int64 array of shape (n_problems + 1,)
        Where each problem begins.
    samples : int64 array
        The sample of every variable.
    v, sums : arrays
        Linear part of all variables, and the sums, which are those of every problem.
    point : Point
        All variables.
    account : Account
        What is told of each problem, a line each.
    """

    offsets: Any
    samples: Any
    v: Any
    sums: Any
    point: Point
    account: Account


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
        count = len(sizes)
        account = Account(np.zeros((count, max(problem.n_groups, 1))), np.zeros((count, N_FIGURES)))
        point = Point.of(problem, problem.start.copy(), np.empty(len(samples)))
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        layout = Layout(offsets, samples, problem.v, problem.sums, point, account)
        return cls(problem, layout, np.zeros(count, dtype=bool))

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
        bars = Bars(*gram.error_terms())
        _solve_parts(writable(gram), chosen, self.layout, bars, tol, self.is_certified)

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

    def solution(self, number: int, gram: Gram, seconds: float) -> Solution:
        """Return the solution of a problem that is certified."""
        here, (levels, figures) = self.part(number), self.layout.account
        size = here.stop - here.start
        report = report_of(figures[number], size, gram, f"{size} variables fit one working set", seconds)
        residual, multipliers = self.layout.point.residual[here], levels[number, : self.problem.n_groups]
        return Solution(self.beta[here], residual, multipliers, report)


@compiled
def _solve_parts(whole: Any, chosen: Any, layout: Layout, bars: Bars, tol: float, is_certified: Any) -> None:
    """Solve the problems ``chosen`` by `one_pass`, each on its part of the kernel matrix."""
    offsets, samples, v, sums, point, account = layout
    beta, residual, lo, hi, group, n_groups = point
    largest = 0
    for p in chosen:
        largest = max(largest, offsets[p + 1] - offsets[p])
    memory, sizes = np.empty(largest * largest), np.empty(largest)
    for p in chosen:
        first, last = offsets[p], offsets[p + 1]
        n, places = last - first, samples[first:last]
        kernel = memory[: n * n].reshape(n, n)
        for i in range(n):
            row, target = whole[places[i]], kernel[i]
            sizes[i] = bars.sizes[places[i]]
            for j in range(n):
                target[j] = row[places[j]]
        part = Point(
            beta[first:last], residual[first:last], lo[first:last], hi[first:last], group[first:last], n_groups
        )
        own_bars = Bars(sizes[:n], bars.operations, bars.decays)
        own_account = Account(account.levels[p], account.figures[p])
        is_certified[p] = one_pass(kernel, v[first:last], sums, part, own_bars, tol, own_account)
