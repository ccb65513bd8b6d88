"""Problems that are one of many, on some of their samples, which grow until all others agree.

Most samples of a pair of classes are no support vectors, and most of its kernel matrix serves nobody. A turn
solves the problem of the chosen samples in one compiled pass, with all others at zero; the residual of those
follows from the support vectors, and the ones that violate join. In the end nobody does. The objective falls from
turn to turn, so that no choice comes twice; the certificate is that of all samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hinge.arrays import Index, Vector
from hinge.dual.residuals import NEGLIGIBLE
from hinge.kernel.gram import Gram
from hinge.solvers.active_set.direct import AIM
from hinge.solvers.many import Parts
from hinge.solvers.one_pass import (
    ITERATIONS,
    OBJECTIVE,
    ROUNDING,
    TURNS,
    VIOLATION,
    Account,
    Bars,
    Layout,
    Space,
    describe,
    solve_parts,
)
from hinge.solvers.pairs.step import Point


@dataclass(frozen=True)
class Growth:
    """How the chosen samples grow.

    Attributes
    ----------
    share : int
        Samples for each one that is chosen at first.
    most_turns : int
        Turns after which a problem is left to the general way: most take three or four.
    near : float
        Samples whose residual is no further than this from violating stay chosen; margins are at ±1.
    """

    share: int = 4
    most_turns: int = 12
    near: float = 0.1


GROWTH = Growth()


def solve_growing(parts: Parts, place: int, gram: Gram, bars: Bars, most: int, tol: float) -> None:
    """Solve one of the problems ``parts``, with at most this many samples chosen, on this thread.

    Where that does not suffice the problem is not certified, and its β is where the last turn ended.
    """
    problem = _Problem.of(parts, place, bars, tol)
    point, figures = problem.point, problem.account.figures
    is_chosen = np.zeros(len(problem.v), dtype=bool)
    is_chosen[:: GROWTH.share] = True
    steps = 0.0
    for turn in range(GROWTH.most_turns):
        chosen = np.flatnonzero(is_chosen)
        if len(chosen) > most:
            return
        is_solved = problem.solve(chosen, gram)
        steps += figures[ITERATIONS]
        if not is_solved:
            return
        rest = np.flatnonzero(~is_chosen)
        problem.find_residual(rest, gram)
        excess = problem.excess()
        if not (excess[rest] > AIM * (1.0 + float(np.abs(point.residual).max()))).any():
            space = Space.kept(len(problem.v), point.n_groups, tol)
            describe(problem.v, point, problem.bars, space, problem.account)
            figures[ITERATIONS], figures[TURNS] = steps, turn + 1
            is_right = figures[VIOLATION] <= tol and figures[ROUNDING] <= NEGLIGIBLE * tol
            parts.is_certified[place] = is_right and np.isfinite(figures[OBJECTIVE])
            return
        is_chosen = (point.beta != 0) | (excess > -GROWTH.near)


class _Problem(NamedTuple):
    """One of the problems: rows of its samples, its parts of what is laid out, bars of its samples, tolerance."""

    samples: Index
    v: Vector
    sums: Vector
    point: Point
    account: Account
    bars: Bars
    tol: float

    @classmethod
    def of(cls, parts: Parts, place: int, bars: Bars, tol: float) -> _Problem:
        here, layout = parts.part(place), parts.layout
        beta, residual, lo, hi, group, n_groups = layout.point
        point = Point(beta[here], residual[here], lo[here], hi[here], group[here], n_groups)
        account = Account(layout.account.levels[place], layout.account.figures[place])
        samples = layout.samples[here]
        own_bars = bars._replace(sizes=bars.sizes[samples])
        return cls(samples, layout.v[here], layout.sums, point, account, own_bars, tol)

    def solve(self, chosen: Index, gram: Gram) -> bool:
        """Solve the problem of the chosen samples, all others being at zero; return whether that is certified."""
        beta, _, lo, hi, group, n_groups = self.point
        mine, size = self.samples[chosen], len(chosen)
        part = Point(beta[chosen], np.empty(size), lo[chosen], hi[chosen], group[chosen], n_groups)
        account = Account(self.account.levels.reshape(1, -1), self.account.figures.reshape(1, -1))
        layout = Layout(np.array([0, size]), mine[:0], self.v[chosen], self.sums, part, account)
        is_certified, bars = np.zeros(1, dtype=bool), self.bars._replace(sizes=self.bars.sizes[chosen])
        gram.counts.add(evaluations=size**2)
        matrix = gram.between(mine, mine)
        solve_parts(matrix, bars, np.zeros(1, np.int64), size, layout, self.tol, is_certified)
        beta[chosen], self.point.residual[chosen] = part.beta, part.residual
        return bool(is_certified[0])

    def find_residual(self, rest: Index, gram: Gram) -> None:
        """Set the residual of some samples to what follows from the support vectors."""
        beta = self.point.beta
        support = np.flatnonzero(beta)
        values = gram.between(self.samples[rest], self.samples[support])
        gram.counts.add(evaluations=values.size)
        self.point.residual[rest] = self.v[rest] - values @ beta[support]

    def excess(self) -> Vector:
        """Return by how much the residual of each variable that may move is beyond the multiplier of its group."""
        beta, residual, lo, hi, group, _ = self.point
        beyond = residual - self.account.levels[group]
        grows, falls = np.where(beta < hi, beyond, -np.inf), np.where(beta > lo, -beyond, -np.inf)
        return np.maximum(grows, falls)
