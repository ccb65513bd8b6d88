"""Races: several algorithms on one problem, each from the same start with a fresh Gram matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hinge.dual.formulations import c_svc
from hinge.kernel.gram import Gram
from hinge.kernel.kernels import Kernel
from hinge.lab import Algorithm, get
from hinge.lab.own import OwnSolver, algorithm_of
from hinge.report import Solution
from hinge.settings import Progress, Settings
from hinge.trace import Trace, Tracing

# The optimum is taken from a run with this share of the tolerance, so that no contestant is its own judge.
_JUDGE_TOLERANCE = 1e-3
_JUDGE = "block"

_WARM_SAMPLES = 200
_WARM_SECONDS = 20.0

#: What has been compiled in this process: algorithm, kernel, storage, precision.
_warm: set[tuple[str, str, str, str]] = set()


@dataclass(frozen=True, eq=False)
class Track:
    """What is raced on: a two-class problem, and what each run may take for it.

    Parameters
    ----------
    X : array or CSR matrix
        Samples.
    y : array of +1 and -1
        Labels.
    kernel : Kernel
        The kernel.
    C : float
        The cost.
    cache_bytes, threads : int, optional
        As of `Gram`; each run has its own.
    """

    X: Any
    y: Any
    kernel: Kernel
    C: float
    cache_bytes: int | None = None
    threads: int | None = None

    def __str__(self) -> str:
        gamma = f", γ = {self.kernel.gamma:g}" if "gamma" in self.kernel.uses else ""
        n, d = self.X.shape
        return f"{n:,} samples, {d:,} features; {self.kernel.label}, C = {self.C:g}{gamma}"

    def gram(self) -> Gram:
        """Return a Gram matrix that has computed nothing yet."""
        return Gram(self.X, self.kernel, cache_bytes=self.cache_bytes, threads=self.threads)


@dataclass(frozen=True, eq=False)
class Race:
    """How a race went.

    Attributes
    ----------
    track : Track
        What was raced on.
    runs : dict
        Solution of every contestant; its trace is in the report.
    optimum : float
        The lowest objective that any run reached, the judge's included.
    """

    track: Track
    runs: dict[str, Solution]
    optimum: float

    def trace(self, name: str) -> Trace:
        """Return the course of a run."""
        trace = self.runs[name].report.trace
        assert trace is not None
        return trace

    def gap(self, name: str) -> Any:
        """Return by how much the objective of a run was above the optimum, relative to it, along its trace."""
        objective = self.trace(name).objective
        return np.maximum(objective - self.optimum, 0.0) / max(abs(self.optimum), 1e-300)


def warm_up(algorithm: Algorithm, X: Any, y: Any, kernel: Kernel, C: float) -> None:
    """Have an algorithm compiled before it is timed: run it once on a few of the samples.

    Parameters
    ----------
    algorithm : Algorithm
        Which one.
    X, y : arrays
        Samples, and labels of +1 and -1.
    kernel : Kernel
        The kernel.
    C : float
        The cost.
    """
    few = np.unique(np.linspace(0, len(y) - 1, _WARM_SAMPLES).astype(np.int64))
    gram = Gram(X[few], kernel, cache_bytes=2**24, threads=1)
    key = (algorithm.name, kernel.label, gram.storage, gram.precision)
    if key not in _warm and len(np.unique(y[few])) == 2:
        algorithm.solve(c_svc(y[few], C=C), gram, Settings(time_limit=_WARM_SECONDS))
        _warm.add(key)


def race(
    track: Track,
    entrants: Sequence[str | Algorithm | OwnSolver],
    settings: Settings | None = None,
    *,
    on_progress: Callable[[str, Progress], Any] | None = None,
) -> Race:
    """Run several algorithms on one two-class problem.

    Parameters
    ----------
    track : Track
        The problem.
    entrants : sequence of str, Algorithm or callable
        Algorithms, by their names in the laboratory; solvers of your own, as `hinge.lab.own.algorithm_of` takes
        them.
    settings : Settings, optional
        Tolerance and limits, the same for all. Courses are recorded in any case.
    on_progress : callable, optional
        Called with an algorithm's name and where it stands; a true answer ends its run.

    Returns
    -------
    Race
        Solutions, traces and the optimum.

    Raises
    ------
    ValueError
        A name is unknown or given twice.

    Examples
    --------
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([-1.0, -1.0, 1.0, 1.0])
    >>> result = race(Track(X, y, Kernel("linear"), 10.0), ["smo-mvp", "block"])
    >>> {name: bool(result.gap(name)[-1] < 1e-3) for name in result.runs}
    {'smo-mvp': True, 'block': True}
    """
    settings = settings or Settings()
    if settings.trace is None:
        settings = replace(settings, trace=Tracing())
    algorithms = [_algorithm(entrant) for entrant in entrants]
    names = [algorithm.name for algorithm in algorithms]
    if len(set(names)) < len(names):
        raise ValueError(f"each algorithm runs once, got {', '.join(names)}")
    problem = c_svc(track.y, C=track.C)
    runs = {}
    for algorithm in algorithms:
        warm_up(algorithm, track.X, problem.v, track.kernel, track.C)
        listening = settings
        if on_progress is not None:
            listening = replace(settings, callback=_teller(algorithm.name, on_progress))
        runs[algorithm.name] = algorithm.solve(problem, track.gram(), listening)
    strict = replace(settings, tol=_JUDGE_TOLERANCE * settings.tol, callback=None, trace=None)
    judged = get(_JUDGE).solve(problem, track.gram(), strict).report.objective
    optimum = min([judged, *(run.report.objective for run in runs.values())])
    return Race(track, runs, optimum)


def _algorithm(entrant: str | Algorithm | OwnSolver) -> Algorithm:
    if isinstance(entrant, str):
        return get(entrant)
    return entrant if isinstance(entrant, Algorithm) else algorithm_of(entrant)


def _teller(name: str, on_progress: Callable[[str, Progress], Any]) -> Callable[[Progress], Any]:
    return lambda progress: on_progress(name, progress)
