"""Which candidates a search evaluates, on which samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import ParameterGrid
from sklearn.utils import _safe_indexing

from hinge.arrays import Index
from hinge.selection.job import Cell, Job, Split

Evaluate = Callable[[Job, Sequence[dict[str, Any]]], list[Cell]]
Found = tuple[list[Cell], dict[str, Any]]

# Successive halving keeps one candidate in this many, and gives it this many times the samples.
_FACTOR = 3

# The fewest samples of a class, and of all, in a training fold of the first round.
_FEWEST_OF_CLASS = 2
_FEWEST = 30

# The coarse grid of a refinement takes one value of a list in this many.
_STRIDE = 4


def exhaustive(evaluate: Evaluate, job: Job, param_grid: Any, metric: Any) -> Found:
    """Evaluate every candidate on all samples."""
    return evaluate(job, list(ParameterGrid(param_grid))), {}


def halving(evaluate: Evaluate, job: Job, param_grid: Any, metric: Any) -> Found:
    """Evaluate all candidates on few samples, the best third of them on three times as many, and so on.

    The last round uses all samples. Within a fold the samples of a round contain those of the round before.
    """
    candidates = list(ParameterGrid(param_grid))
    n_rounds = 1
    while _FACTOR**n_rounds <= len(candidates):
        n_rounds += 1
    shares = [_FACTOR ** -float(n_rounds - 1 - k) for k in range(n_rounds)]
    n_train = min(len(train) for train, _ in job.splits)
    shares = [share for share in shares if share * n_train >= _FEWEST] or [1.0]
    cells: list[Cell] = []
    columns: dict[str, list[int]] = {"iter": [], "n_resources": []}
    for number, share in enumerate(shares):
        part = job if share == 1.0 else _sampled(job, share)
        found = evaluate(part, candidates)
        cells.extend(found)
        columns["iter"].extend([number] * len(found))
        columns["n_resources"].extend([n_samples(part)] * len(found))
        if number < len(shares) - 1:
            n_kept = max(-(-len(candidates) // _FACTOR), 1)
            candidates = [candidates[k] for k in np.sort(_ranking(found, metric)[:n_kept])]
    return cells, columns


def refine(evaluate: Evaluate, job: Job, param_grid: Any, metric: Any) -> Found:
    """Evaluate a coarse grid, then ever finer ones around the best candidate, until its neighbours are known.

    Lists of numbers are axes along which neighbours have similar scores; every value of the other lists is part
    of the coarse grid. As in LIBSVM's ``grid.py`` steps are halved from round to round.
    """
    cells: list[Cell] = []
    rounds: list[int] = []
    for grid in [param_grid] if isinstance(param_grid, Mapping) else param_grid:
        _refine_one(lambda candidates: evaluate(job, candidates), grid, metric, cells, rounds)
    return cells, {"iter": rounds, "n_resources": [n_samples(job)] * len(cells)}


def _refine_one(
    evaluate: Callable[[list[dict[str, Any]]], list[Cell]],
    grid: Mapping[str, Sequence[Any]],
    metric: Any,
    cells: list[Cell],
    rounds: list[int],
) -> None:
    names = sorted(grid)
    axes = [_axis(list(grid[name])) for name in names]
    known: dict[tuple[int, ...], Cell] = {}
    stride, number = _STRIDE, 0
    points = set(product(*(_coarse(len(values), is_number, stride) for values, is_number in axes)))
    while True:
        wanted = sorted(points - known.keys())
        found = evaluate([{n: axis[0][k] for n, axis, k in zip(names, axes, p, strict=True)} for p in wanted])
        known.update(zip(wanted, found, strict=True))
        cells.extend(found)
        rounds.extend([number] * len(found))
        if stride == 1 and not wanted:
            return
        places = list(known)
        best = places[_ranking([known[p] for p in places], metric)[0]]
        stride, number = max(stride // 2, 1), number + 1
        points = set(product(*(_around(k, axis, stride) for k, axis in zip(best, axes, strict=True))))


def _axis(values: list[Any]) -> tuple[list[Any], bool]:
    is_number = all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in values)
    return (sorted(values) if is_number else values), is_number


def _coarse(n: int, is_number: bool, stride: int) -> list[int]:
    return list(range((n - 1) % stride // 2, n, stride)) if is_number else list(range(n))


def _around(k: int, axis: tuple[list[Any], bool], stride: int) -> list[int]:
    values, is_number = axis
    return [j for j in (k - stride, k, k + stride) if 0 <= j < len(values)] if is_number else [k]


def _ranking(cells: Sequence[Cell], metric: Any) -> Index:
    """Places of the cells, best first, by the metric that `refit` names; where it names none, by the first."""
    name = metric if metric in cells[0].test_scores else next(iter(cells[0].test_scores))
    means = np.array([np.mean(cell.test_scores[name]) for cell in cells])
    return np.argsort(-np.nan_to_num(means, nan=-np.inf), kind="stable")


def n_samples(job: Job) -> int:
    """Return how many samples the fits of a job are given, at most."""
    return max(len(train) for train, _ in job.splits)


def _sampled(job: Job, share: float) -> Job:
    """Return the job on a share of the samples of every fold, the same share of every class."""
    y = np.zeros(_length(job.X)) if job.y is None or not is_classifier(job.estimator) else np.asarray(job.y)
    order = np.random.default_rng(len(y)).permutation(len(y))
    rank = np.empty(len(y))
    rank[order] = np.arange(len(y))

    def some(samples: Any) -> Any:
        samples = np.asarray(samples)
        samples = np.flatnonzero(samples) if samples.dtype == bool else samples
        kept = []
        for label in np.unique(y[samples]):
            members = samples[y[samples] == label]
            n_kept = min(max(round(share * len(members)), _FEWEST_OF_CLASS), len(members))
            kept.append(members[np.argsort(rank[members], kind="stable")[:n_kept]])
        return np.sort(np.concatenate(kept)) if kept else samples

    splits = [(some(train), some(test)) for train, test in job.splits]
    chosen = np.unique(np.concatenate([index for split in splits for index in split]))
    moved: list[Split] = [
        (np.searchsorted(chosen, train), np.searchsorted(chosen, test)) for train, test in splits
    ]
    X = _safe_indexing(job.X, chosen)
    if job.estimator.kernel == "precomputed":
        X = X[:, chosen]
    weights = None if job.sample_weight is None else _safe_indexing(job.sample_weight, chosen)
    return replace(
        job, X=X, y=None if job.y is None else _safe_indexing(job.y, chosen), splits=moved, sample_weight=weights
    )


def _length(X: Any) -> int:
    return X.shape[0] if hasattr(X, "shape") else len(X)


STRATEGIES: dict[str, Callable[[Evaluate, Job, Any, Any], Found]] = {
    "exhaustive": exhaustive,
    "halving": halving,
    "refine": refine,
}
