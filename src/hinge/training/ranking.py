"""Ranking as a fit: one machine, whose dual has a variable for each pair of samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from hinge.arrays import Index, Vector
from hinge.dual.ranking import PairPoint, RankingProblem
from hinge.report import Solution
from hinge.runtime import clock
from hinge.settings import Progress
from hinge.solvers.ranking import rank
from hinge.training.course import Course, Fit
from hinge.training.data import TrainingData
from hinge.training.formulation import Formulation
from hinge.training.machine import Machine, assemble
from hinge.training.tasks import Task
from hinge.training.trainer import Trainer


class Judgements(NamedTuple):
    """What the samples that count are to be ranked by.

    Attributes
    ----------
    grades : array of shape (n_samples,)
        The higher, the further up.
    queries : int64 array of shape (n_samples,)
        Number of the query of each sample.
    """

    grades: Vector
    queries: Index


class Ranking(Formulation):
    """One machine that ranks samples of the same query.

    Parameters
    ----------
    data : TrainingData
        The samples that count; their targets are `Judgements`.
    C : float
        Price of a violated pair.
    query_weights : array
        Weight of each query, by its number.

    Attributes
    ----------
    problem : RankingProblem
        The problem of all pairs.
    """

    def __init__(self, data: TrainingData, C: float, query_weights: Vector) -> None:
        super().__init__(data)
        grades, queries = data.y
        # The price of a pair has the weights of both of its samples as factors.
        weights = data.weights * np.sqrt(query_weights[queries])
        self.problem = RankingProblem(grades, queries, C, weights)
        if not self.problem.n_pairs:
            raise ValueError(
                "there is nothing to rank: no query has two samples of different grades "
                f"(n_samples = {self.problem.n_samples}, in {self.problem.n_queries} queries)"
            )

    def tasks(self) -> Sequence[Task]:
        """Return nothing: pairs are no samples, and have a solver of their own."""
        return []


class RankedMachine(NamedTuple):
    """A trained machine, and the pairs behind it."""

    fit: Fit
    point: PairPoint


def ranking_fit(course: Course, formulation: Ranking, trainer: Trainer) -> RankedMachine:
    """Make the fit of a ranking."""
    data, watch, n = formulation.data, trainer.watch, formulation.problem.n_samples
    begun, past = clock.now(), course.past
    start = past.start_of(0, data.places) if past is not None and past.is_of(formulation, 1) else None
    watch.expect(np.array([n]))
    watch.begin(0)
    listen: Callable[[Progress], Any] | None = None
    if watch.has_listeners:
        listen = lambda progress: watch.step(0, progress)  # noqa: E731
    ranked = rank(formulation.problem, trainer.gram, replace(course.settings, callback=listen, start=start))
    standing, report = ranked.standing, replace(ranked.report, seconds=clock.now() - begun)
    watch.end(0, report)
    solution = Solution(standing.alpha, -standing.score, np.empty(0), report)
    machine = Machine(np.arange(n), standing.alpha, 0.0, solution, standing.score)
    model = assemble(course.kernel, data.X, [machine], data.places)
    return RankedMachine(Fit(formulation, [machine], model, report, []), standing.point)
