"""Every set of at most 20,000 rows at three settings: turns within one process, answers verified.

A process takes the settings of one set in turn. Hinge fits first, then its peers, each with a limit: one that is
slower than a peer before it is of no interest, so that it is ended there, with its process, and a new process goes
on. Hinge's answer is verified, and those of its peers from the fastest on until one is right.
``python -m benchmarks.everyday job.json`` is the process.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.adapters import Adapter, adapter_for
from benchmarks.cases import CACHE_MB, DENSE_SHARE, SLACK, TOL, usual_gamma
from benchmarks.contenders import HINGE, LIBSVM, SKLEARN, Contender
from benchmarks.processes import work
from benchmarks.run import Bench
from benchmarks.small import LEAST_FOR_LIBSVM
from benchmarks.verify import check_answer
from hinge.io import datasets

MOST_ROWS = 20_000
CASES = tuple(name for name in datasets.names() if datasets.about(name).n_samples <= MOST_ROWS)

# C, and γ (None: one over the number of features and the variance). The last is the middle of LIBSVM's grid.
SETTINGS: dict[str, tuple[float, float | None]] = {
    "defaults": (1.0, None), "C = 100": (100.0, None), "C = 2⁵, γ = 2⁻⁶": (2.0**5, 2.0**-6),
}  # fmt: skip

_CONTENDERS = (HINGE, Contender("sklearnex", "sklearnex"), LIBSVM, SKLEARN)
_EPSILON = 0.1

# Seconds that a fit may take at first, and how much longer than the fastest peer before it.
_LIMIT, _GRACE = 60.0, 2.0

# Seconds that the turns of a contender may take together, and how many there are at the most.
_SECONDS, _MOST_TURNS = 0.5, 50


def measure(bench: Bench, name: str) -> None:
    """Measure one set, in as many processes as it takes."""
    datasets.load(name, download=False)  # says so where it is not there
    tried: list[list[str]] = []
    while True:
        under_way, last = None, {"event": "end"}
        job = {"folder": str(bench.folder), "name": name, "tried": tried}
        for last in work(job, _LIMIT, module="benchmarks.everyday"):
            if last["event"] == "begin":
                under_way = [last["problem"], last["contender"]]
            elif last["event"] == "problem":
                for record in last["records"]:
                    bench.keep({"kind": "everyday", "case": name, "problem": last["problem"], **record})
                tried.append([last["problem"], ""])
        if last["event"] == "end":
            return
        if under_way is None or under_way[1] == HINGE.name:
            bench.console.print(f"{name} ended early: {last}", markup=False)
            return
        tried.append(under_way)


def main(path: str) -> None:
    """Measure what a job asks for in this process; write a line of JSON for every message."""
    warnings.simplefilter("ignore")
    job = json.loads(Path(path).read_text())
    X, y = _data(job["name"])
    tried = {tuple(words) for words in job["tried"]}
    _say(event="ready")
    for problem, (C, gamma) in SETTINGS.items():
        if (problem, "") not in tried:
            point = {"C": C, "gamma": gamma or usual_gamma(X), "epsilon": _EPSILON}
            skipped = {contender for of, contender in tried if of == problem}
            records = _measured(job["name"], X, y, point, skipped, problem)
            _say(event="problem", problem=problem, records=records)
    _say(event="end")


def _say(**message: Any) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def _data(name: str) -> tuple[Any, Any]:
    """Return samples, dense where more than half of their values are not zero, and targets."""
    X, y = datasets.load(name)
    X = sp.csr_matrix(X, dtype=np.float64)  # MNIST comes dense, and in bytes
    is_dense = X.nnz > DENSE_SHARE * X.shape[0] * X.shape[1]
    return np.ascontiguousarray(X.toarray()) if is_dense else X, np.asarray(y, dtype=np.float64)


def _measured(
    name: str, X: Any, y: Any, point: dict[str, float], skipped: set[str], problem: str
) -> list[dict[str, Any]]:
    """Let the contenders take turns; return median seconds, and the true violations of the answers that count."""
    task, adapters, times = datasets.about(name).task, {}, {}
    for contender in _entrants(X, skipped, len(y)):
        peers = [of[0] for rival, of in times.items() if rival != HINGE.name]
        patience = _LIMIT if not peers else min(peers) + _GRACE
        _say(event="begin", problem=problem, contender=contender.name, patience=patience)
        job = {"library": contender.library, "task": task, "kernel": "rbf", "tol": TOL, "cache_mb": CACHE_MB}
        adapters[contender.name] = adapter_for(job)
        adapters[contender.name].prepare(X, y)
        times[contender.name] = [_timed(adapters[contender.name], point)]
        if contender is HINGE:  # which may have compiled
            times[contender.name] = [_timed(adapters[contender.name], point)]
    _say(event="turns", patience=10 * _LIMIT)
    for _ in range(_MOST_TURNS):
        for rival, of in times.items():
            if sum(of) < _SECONDS:
                of.append(_timed(adapters[rival], point))
    middle = {rival: median(of) for rival, of in times.items()}
    case = {"task": task, "kernel": "rbf", **point}
    violations = dict(_verified(X, y, middle, adapters, case))
    size = {"n": X.shape[0], "d": X.shape[1]}
    return [
        {"contender": rival, "seconds": seconds, "violation": violations.get(rival), **size}
        for rival, seconds in middle.items()
    ]


def _entrants(X: Any, skipped: set[str], n: int) -> Iterator[Contender]:
    for contender in _CONTENDERS:
        is_too_small = contender is LIBSVM and n < LEAST_FOR_LIBSVM
        if contender.name not in skipped and not is_too_small and contender.why_not(X, "rbf", "") is None:
            yield contender


def _timed(adapter: Adapter, point: dict[str, float]) -> float:
    started = time.perf_counter()
    adapter.fit(point)
    return time.perf_counter() - started


def _verified(
    X: Any, y: Any, middle: dict[str, float], adapters: dict[str, Adapter], case: dict[str, Any]
) -> Iterator[tuple[str, float]]:
    """Yield the true violation of Hinge's answer, and of the fastest peers' until one is right."""
    peers = sorted((name for name in middle if name != HINGE.name), key=lambda name: middle[name])
    for name in (HINGE.name, *peers):
        violation = check_answer(X, y, adapters[name].answer(), case).violation
        assert violation is not None
        yield name, violation
        if name != HINGE.name and violation <= SLACK * TOL:
            return


if __name__ == "__main__":
    main(sys.argv[1])
