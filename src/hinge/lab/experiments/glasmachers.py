"""The experiments of Glasmachers & Igel (Maximum-Gain Working Set Selection for SVMs, section 4): what is run.

A part of a data set gets the same share of its kernel matrix as cache. Trials after the first shuffle the samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hinge.lab.experiments.cells import Cell
from hinge.lab.experiments.glasmachers_numbers import (
    ALL_ROWS,
    CACHE_MB,
    CACHES,
    CONNECT4,
    MNIST,
    ONE_ROW,
    RULES,
    SECOND,
    SPAMBASE,
    SVM_LIGHT,
    TWO_ROWS,
    Problem,
)
from hinge.lab.experiments.scales import Scale

# Figure 6: both parameters over four powers of ten, around the values of table 1.
_MAP_POWERS = 2.0


def _cell(problem: Problem, rows: int, algorithm: str, limit: float, **changes: Any) -> Cell:
    share = (rows / problem.rows) ** 2
    values = {"cache_mb": CACHE_MB * share, **changes}
    return Cell(f"{problem.name}:{rows}", algorithm, "rbf", problem.C, problem.gamma, limit=limit, **values)


def trials(problem: Problem, algorithm: str, scale: Scale, **changes: Any) -> list[Cell]:
    """The runs behind one row of tables 2, 3, 4, 6 and 7, on the set at its own size."""
    if problem is MNIST:
        limit = scale.mnist_limit if algorithm in RULES else scale.slow_limit
        return [_cell(problem, scale.mnist, algorithm, limit, cache_mb=scale.mnist_cache, **changes)]
    if problem is CONNECT4:
        limit = scale.slow_limit if algorithm == SVM_LIGHT else scale.gain_limit
        return [_cell(problem, scale.connect4, algorithm, limit, **changes)]
    return [
        _cell(problem, scale.spambase, algorithm, scale.gain_limit, trial=trial, **changes)
        for trial in range(scale.trials)
    ]


def variant(algorithm: str, scale: Scale, cache: float = CACHE_MB, **changes: Any) -> list[Cell]:
    """A run of tables 4 to 7 on connect-4, which may be a part of it."""
    share = (scale.variants / CONNECT4.rows) ** 2
    return [_cell(CONNECT4, scale.variants, algorithm, scale.gain_limit, cache_mb=cache * share, **changes)]


def whole(algorithm: str, scale: Scale) -> list[Cell]:
    """A run of table 7 on a part of Spambase."""
    return [_cell(SPAMBASE, scale.whole, algorithm, scale.gain_limit)]


def map_cells(algorithm: str, scale: Scale) -> list[list[Cell]]:
    """The grid of figure 6: a list for each γ with a cell for each C."""
    costs, gammas = grid(scale)
    share = (scale.map_rows / CONNECT4.rows) ** 2
    data = f"{CONNECT4.name}:{scale.map_rows}"
    return [
        [Cell(data, algorithm, "rbf", C, gamma, CACHE_MB * share, limit=scale.map_limit) for C in costs]
        for gamma in gammas
    ]


def grid(scale: Scale) -> tuple[list[float], list[float]]:
    factors = 10 ** np.linspace(-_MAP_POWERS, _MAP_POWERS, scale.map_steps)
    return [float(f"{CONNECT4.C * f:.3g}") for f in factors], [float(f"{CONNECT4.gamma * f:.3g}") for f in factors]


def cells(scale: Scale) -> Iterator[Cell]:
    """Return everything that is to be run."""
    for algorithm in RULES:
        yield from trials(SPAMBASE, algorithm, scale, shrinking=False)
        yield from variant(algorithm, scale, shrinking=False)
    for algorithm in (*RULES, TWO_ROWS):
        for cache in CACHES:
            yield from variant(algorithm, scale, cache)
    for algorithm in (ONE_ROW, TWO_ROWS):
        yield from trials(SPAMBASE, algorithm, scale)
    for algorithm in (ONE_ROW, TWO_ROWS, ALL_ROWS):
        yield from variant(algorithm, scale)
    for algorithm in (TWO_ROWS, ALL_ROWS):
        yield from whole(algorithm, scale)
    for algorithm in RULES:
        for row in map_cells(algorithm, scale):
            yield from row
    for problem in (SPAMBASE, CONNECT4):
        for algorithm in (*RULES, SVM_LIGHT):
            yield from trials(problem, algorithm, scale)
    for algorithm in dict.fromkeys((TWO_ROWS, SECOND, *RULES, SVM_LIGHT)):
        yield from trials(MNIST, algorithm, scale)
