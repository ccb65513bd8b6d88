"""Small fits, many classes and single predictions: contenders alternate within one process, code warm.

A fresh process takes each case. It fits every problem of the case once with every contender, to compile and to
compare answers; then contenders take turns, and medians count. ``python -m benchmarks.small CASE`` is the process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from benchmarks.processes import ROOT, environment
from benchmarks.run import Bench

ESTIMATORS = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")
SETS = (
    "iris.scale", "wine.scale", "glass.scale", "vehicle.scale", "vowel.scale", "segment.scale", "dna.scale",
    "satimage.scale", "pendigits", "letter.scale", "usps", "shuttle",
)  # fmt: skip
MADE = {"300/10": (300, 10), "1000/26": (1000, 26), "1500/50": (1500, 50)}
TOOLS = "tools of scikit-learn"
CASES = (*ESTIMATORS, TOOLS, *SETS, *MADE)

#: What cases are summed up by, beside `TOOLS`.
TINY, CLASSES = "n = 20 to 500", "many classes"

_SIZES = (20, 50, 100, 200, 500)
_KERNELS = ("rbf", "linear", "precomputed")

# LIBSVM's own call checks nothing of its input; from this many samples on that no longer matters.
LEAST_FOR_LIBSVM = 1000

# Seconds that the turns of a contender with one problem may take, and how many turns there are at least and most.
_SECONDS, _LEAST_TURNS, _MOST_TURNS = 2.0, 3, 200

_LIMIT = 3600.0


class Problem(NamedTuple):
    """What is fitted: its label, estimator, parameters and data."""

    label: str
    estimator: str
    parameters: dict[str, Any]
    X: Any
    y: Any


def measure(bench: Bench, name: str) -> None:
    """Measure one case in a fresh process."""
    answer = subprocess.run(
        [sys.executable, "-m", "benchmarks.small", name], stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT,
        env=environment(), timeout=_LIMIT,
    )  # fmt: skip
    for line in answer.stdout.splitlines():
        if line.startswith("{"):
            bench.keep({"kind": "small", "case": name, **json.loads(line)})


def group(case: str) -> str:
    """Return what a case is summed up under."""
    return TOOLS if case == TOOLS else TINY if case in ESTIMATORS else CLASSES


def problems(case: str) -> Iterator[Problem]:
    """Yield the problems of a case."""
    if case in ESTIMATORS:
        for n in _SIZES:
            for kernel in _KERNELS:
                yield _made_problem(case, n, kernel)
        return
    if case in MADE:
        from sklearn.datasets import make_classification

        n, k = MADE[case]
        X, y = make_classification(n, 20, n_informative=10, n_classes=k, n_clusters_per_class=1, random_state=0)
    else:
        from hinge.io.datasets import load

        X, y = load(case)
        X = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    for C in (1.0, 10.0):
        yield Problem(f"C = {C:g}", "SVC", {"C": C}, X, np.asarray(y))


def _made_problem(estimator: str, n: int, kernel: str) -> Problem:
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 5))
    slope = X[:, 0] + 0.5 * rng.normal(size=n)
    y = slope if estimator.endswith("SVR") else np.where(slope > 0, 1, -1)
    parameters: dict[str, Any] = {"kernel": kernel}
    if estimator in ("NuSVC", "OneClassSVM"):
        parameters["nu"] = 0.2
    return Problem(f"n = {n}, {kernel}", estimator, parameters, X @ X.T if kernel == "precomputed" else X, y)


def _contenders(problem: Problem, is_many: bool) -> dict[str, Callable[[], Any]]:
    """Return what fits the problem, by name of the contender; those that are not installed are left out."""
    modules = {"hinge": "hinge", "sklearn": "sklearn.svm"} | ({"intelex": "sklearnex.svm"} if is_many else {})
    fits: dict[str, Callable[[], Any]] = {}
    for name, module in modules.items():
        try:
            estimator = getattr(import_module(module), problem.estimator)
        except ImportError:
            continue
        fits[name] = lambda estimator=estimator: estimator(**problem.parameters).fit(problem.X, problem.y)
    if is_many and len(problem.y) >= LEAST_FOR_LIBSVM:
        with suppress(ImportError):
            fits["libsvm"] = _libsvm_fit(problem)
    return fits


def _libsvm_fit(problem: Problem) -> Callable[[], Any]:
    from libsvm import svm, svmutil

    gamma = 1.0 / (problem.X.shape[1] * problem.X.var())
    data = svm.svm_problem(problem.y.astype(np.float64), problem.X)
    options = svm.svm_parameter(f"-q -t 2 -m 500 -c {problem.parameters['C']} -g {gamma}")
    return lambda: svmutil.svm_train(data, options)


def _tools(X: Any, y: Any) -> dict[str, Callable[[Any], Any]]:
    """Return what scikit-learn does with an estimator, by its name; ``y`` has four classes."""
    from sklearn.ensemble import BaggingClassifier
    from sklearn.model_selection import GridSearchCV, cross_val_score
    from sklearn.multiclass import OneVsRestClassifier

    points = {"C": [0.1, 1.0, 10.0], "gamma": [0.01, 0.1, 1.0]}
    return {
        "GridSearchCV": lambda machine: GridSearchCV(machine, points, cv=3).fit(X, y),
        "cross_val_score": lambda machine: cross_val_score(machine, X, y, cv=5),
        "BaggingClassifier": lambda machine: BaggingClassifier(machine, 10, n_jobs=2, random_state=0).fit(X, y),
        "OneVsRestClassifier": lambda machine: OneVsRestClassifier(machine).fit(X, y),
    }


def _measured_tools() -> Iterator[dict[str, Any]]:
    from sklearn.svm import SVC as Theirs  # noqa: N811 - the contenders have the same name

    from hinge import SVC

    n = 200
    X = np.random.default_rng(0).normal(size=(n, 5))
    y = 2 * (X[:, 0] > 0) + (X[:, 1] > 0)
    for label, tool in _tools(X, y).items():
        calls = {"hinge": lambda tool=tool: tool(SVC()), "sklearn": lambda tool=tool: tool(Theirs())}
        for call in calls.values():
            call()
        for name, seconds in _alternate(calls).items():
            record = {"contender": name, "problem": label, "operation": "fit", "seconds": seconds, "n": n}
            yield record


def _alternate(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Let the callables take turns; return the median seconds of each."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(_MOST_TURNS):
        if turn >= _LEAST_TURNS and max(sum(of) for of in times.values()) > _SECONDS:
            break
        for name, call in calls.items():
            started = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - started)
    return {name: median(of) for name, of in times.items()}


def _measured_fits(case: str) -> Iterator[dict[str, Any]]:
    for problem in problems(case):
        yield from _measured(problem, group(case) == CLASSES)


def _measured(problem: Problem, is_many: bool) -> Iterator[dict[str, Any]]:
    fits = _contenders(problem, is_many)
    machines = {name: fit() for name, fit in fits.items()}
    machines.pop("libsvm", None)
    expected = machines["sklearn"].predict(problem.X)
    same = float(np.mean(np.isclose(machines["hinge"].predict(problem.X), expected, rtol=0.01, atol=0.01)))
    operations = {"fit": fits}
    for label, rows in (("predict one", problem.X[:1]), ("predict all", problem.X)):
        operations[label] = {
            name: lambda machine=machine, rows=rows: machine.predict(rows) for name, machine in machines.items()
        }
    for operation, calls in operations.items():
        for name, seconds in _alternate(calls).items():
            yield {
                "contender": name, "problem": problem.label, "operation": operation, "seconds": seconds,
                "n": len(problem.y), "same": same,
            }  # fmt: skip


def main(case: str) -> None:
    """Measure a case in this process; print a line of JSON for every figure."""
    warnings.simplefilter("ignore")
    for record in _measured_tools() if case == TOOLS else _measured_fits(case):
        sys.stdout.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
