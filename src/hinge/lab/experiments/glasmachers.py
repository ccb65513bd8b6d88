"""The experiments of Glasmachers & Igel (Maximum-Gain Working Set Selection for SVMs, section 4): what is run.

Every method computes kernel values in double precision and has room for as many kernel rows as theirs had, who
kept them in single precision; a part of a data set gets the same share of its kernel matrix. Trials after the
first shuffle the samples, which gives another first working set; a trial has the same order for every method.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hinge.lab.experiments.cells import Cell, Stage, Staged
from hinge.lab.experiments.glasmachers_numbers import (
    ALL_ROWS,
    CACHE_MB,
    CACHES,
    CONNECT4,
    HMG,
    MNIST,
    ONE_ROW,
    RULES,
    SPAMBASE,
    SVM_LIGHT,
    TWO_ROWS,
    Problem,
)
from hinge.lab.experiments.scales import Scale

# Figure 6: both parameters over four powers of ten, around the values of table 1.
_MAP_POWERS = 2.0

# Their rows are of single precision, ours of double.
_BYTES_A_VALUE = 2.0

_FIRST_TRIALS = 1  # of the whole of connect-4, before other experiments have their turn

#: Variants that ask why figures differ from the paper's, and what with they are compared.
ASKED = ("hmg-two-rows-published", "hmg-two-rows-early", "hmg-one-row-published", "hmg-one-row-shrinking",
         "hmg-two-rows-shrinking")  # fmt: skip

#: All of MNIST at the optimum, and its objective from kernel values as LIBSVM keeps them.
ROUNDED = Cell("mnist:60000", "auto", "rbf", MNIST.C, MNIST.gamma, cache_mb=1000.0, tol=1e-4, limit=300.0,
               rounded=True)  # fmt: skip


def _cell(problem: Problem, rows: int, algorithm: str, limit: float, **changes: Any) -> Cell:
    cache = changes.pop("cache", CACHE_MB) * _BYTES_A_VALUE * (rows / problem.rows) ** 2
    return Cell(
        f"{problem.name}:{rows}", algorithm, "rbf", problem.C, problem.gamma, cache, "double", limit=limit,
        **changes,
    )  # fmt: skip


def rows_of(problem: Problem, scale: Scale) -> int:
    """Rows that all experiments but the one on all of connect-4 take."""
    return {SPAMBASE.name: scale.spambase, CONNECT4.name: scale.variants, MNIST.name: scale.mnist}[problem.name]


def trials(problem: Problem, algorithm: str, scale: Scale, **changes: Any) -> list[Cell]:
    """The runs behind a row of a table, one for each trial.

    Parameters
    ----------
    problem : Problem
        Which data.
    algorithm : str
        Which method.
    scale : Scale
        How many rows and trials.
    **changes
        Fields of the cells; ``cache`` in megabytes of the paper.
    """
    number = {
        SPAMBASE.name: scale.trials, CONNECT4.name: scale.variant_trials, MNIST.name: scale.mnist_trials,
    }[problem.name]  # fmt: skip
    if algorithm == SVM_LIGHT:
        number = min(number, scale.light_trials)
    rows, limit = rows_of(problem, scale), scale.mnist_limit if problem is MNIST else scale.gain_limit
    return [_cell(problem, rows, algorithm, limit, trial=trial, **changes) for trial in range(number)]


def large(algorithm: str, scale: Scale) -> list[Cell]:
    """The runs on all of connect-4."""
    return [
        _cell(CONNECT4, scale.connect4, algorithm, scale.gain_limit, trial=trial)
        for trial in range(scale.large_trials)
    ]


def searched(problem: Problem, algorithm: str, scale: Scale) -> list[Cell]:
    """The runs of table 7, on a part of the rows, because a step of the search over all cached rows costs n²."""
    rows = min(scale.whole, rows_of(problem, scale))
    return [_cell(problem, rows, algorithm, scale.gain_limit, trial=trial) for trial in range(scale.whole_trials)]


def map_cells(algorithm: str, scale: Scale) -> list[list[Cell]]:
    """The grid of figure 6: a list for each γ with a cell for each C."""
    costs, gammas = grid(scale)
    cache = CACHE_MB * _BYTES_A_VALUE * (scale.map_rows / CONNECT4.rows) ** 2
    data = f"{CONNECT4.name}:{scale.map_rows}"
    return [
        [Cell(data, algorithm, "rbf", C, gamma, cache, "double", limit=scale.map_limit) for C in costs]
        for gamma in gammas
    ]


def grid(scale: Scale) -> tuple[list[float], list[float]]:
    """Return the values of C and of γ of figure 6."""
    factors = 10 ** np.linspace(-_MAP_POWERS, _MAP_POWERS, scale.map_steps)
    return [float(f"{CONNECT4.C * f:.3g}") for f in factors], [float(f"{CONNECT4.gamma * f:.3g}") for f in factors]


def _alternating(runs: list[list[Cell]]) -> list[Cell]:
    """Trial by trial, so that methods alternate and a budget ends all of them alike."""
    return [cell for together in zip(*runs, strict=True) for cell in together]


def cells(scale: Scale) -> Iterator[Staged]:
    """Return everything that is to be run, with its stage."""
    for problem, stage in ((SPAMBASE, Stage.TABLES), (CONNECT4, Stage.TABLES), (MNIST, Stage.MNIST)):
        yield from _staged(stage, _alternating([trials(problem, rule, scale) for rule in RULES]))
        plain = [trials(problem, rule, scale, shrinking=False) for rule in RULES]
        frugal = [trials(problem, name, scale) for name in (TWO_ROWS, ONE_ROW)]
        yield from _staged(stage, _alternating(plain if problem is MNIST else plain + frugal))
        yield from _staged(stage if problem is MNIST else Stage.LIGHT, trials(problem, SVM_LIGHT, scale))
    for cache in CACHES:
        runs = [trials(CONNECT4, rule, scale, cache=cache) for rule in RULES]
        yield from _staged(Stage.TABLES, _alternating(runs))
    whole = _alternating([large(rule, scale) for rule in RULES])
    first = _FIRST_TRIALS * len(RULES)
    yield from _staged(Stage.LARGE, whole[:first])
    yield from _staged(Stage.REST, whole[first:])
    for problem in (SPAMBASE, CONNECT4):
        runs = [searched(problem, name, scale) for name in (TWO_ROWS, ALL_ROWS)]
        yield from _staged(Stage.LIGHT, _alternating(runs))
        yield from _staged(Stage.CAUSES, _alternating([trials(problem, name, scale) for name in ASKED]))
    for algorithm in (HMG, *(rule for rule in RULES if rule != HMG)):
        for row in map_cells(algorithm, scale):
            yield from _staged(Stage.MAP, row)
    if scale.has_all_of_mnist:
        yield Stage.CAUSES, ROUNDED


def _staged(stage: Stage, runs: list[Cell]) -> Iterator[Staged]:
    return ((stage, cell) for cell in runs)
