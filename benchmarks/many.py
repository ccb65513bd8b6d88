"""Very many small fits: a made-up searchlight, against scikit-learn's SVC in joblib's processes.

A fresh process takes each case: both contenders warm up, then take turns on the same neighbourhoods and folds.
``python -m benchmarks.many CASE`` is the process; ``python -m benchmarks.many CASE 500`` takes fewer.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.processes import ROOT, environment
from benchmarks.run import Bench

CASES = ("searchlight, linear", "searchlight, rbf")

_SAMPLES, _VOXELS, _COLUMNS, _FOLDS = 100, 4000, 30, 5
_NEIGHBOURHOODS, _WARM_UP, _TURNS = 5000, 40, 3

# scikit-learn's answers depend on its tolerance: these many neighbourhoods are compared at a sharper one, too.
_COMPARED, _SHARP = 200, 1e-9

_LIMIT = 7200.0


def measure(bench: Bench, name: str) -> None:
    """Measure one case in a fresh process."""
    answer = subprocess.run(
        [sys.executable, "-m", "benchmarks.many", name], stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT,
        env=environment(), timeout=_LIMIT,
    )  # fmt: skip
    for line in answer.stdout.splitlines():
        if line.startswith("{"):
            bench.keep({"kind": "many", "case": name, **json.loads(line)})


def _problem(count: int) -> tuple[Any, Any, list[Any]]:
    """Return a volume in which a tenth of the voxels is informative, its conditions, and neighbourhoods."""
    rng = np.random.default_rng(0)
    y = np.arange(_SAMPLES) % 2
    X = rng.normal(size=(_SAMPLES, _VOXELS))
    X[:, : _VOXELS // 10] += 0.4 * y[:, None]
    width = 4 * _COLUMNS
    starts = np.linspace(0, _VOXELS - width, count).astype(int)
    return X, y, [start + np.sort(rng.choice(width, _COLUMNS, replace=False)) for start in starts]


def main(case: str, count: int = _NEIGHBOURHOODS) -> None:
    """Measure a case in this process; print a line of JSON for every turn of every contender."""
    from joblib import Parallel, delayed
    from sklearn.model_selection import cross_val_score
    from sklearn.svm import SVC as Theirs  # noqa: N811 - the contenders have the same name

    from hinge import SVC
    from hinge.many import cross_validate_many

    kernel = case.rpartition(" ")[2]
    X, y, spheres = _problem(count)

    def hinge(chosen: list[Any]) -> Any:
        return cross_validate_many(SVC(kernel=kernel), X, y, columns=chosen, cv=_FOLDS).scores

    def sklearn(chosen: list[Any], tol: float = 1e-3) -> Any:
        machine = Theirs(kernel=kernel, tol=tol)
        jobs = (delayed(cross_val_score)(machine, X[:, sphere], y, cv=_FOLDS) for sphere in chosen)
        return np.array(Parallel(n_jobs=-1)(jobs))

    contenders: dict[str, Callable[[list[Any]], Any]] = {"hinge": hinge, "sklearn": sklearn}
    for contender in contenders.values():
        contender(spheres[:_WARM_UP])
    some = spheres[:: max(count // _COMPARED, 1)]
    sharp = float(np.mean(hinge(some) == sklearn(some, _SHARP)))
    for _ in range(_TURNS):
        scores, seconds = {}, {}
        for name, contender in contenders.items():
            started = time.perf_counter()
            scores[name] = contender(spheres)
            seconds[name] = time.perf_counter() - started
        same = float(np.mean(scores["hinge"] == scores["sklearn"]))
        for name in contenders:
            record = {"contender": name, "seconds": seconds[name], "n": count, "same": same, "same_sharp": sharp}
            sys.stdout.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], *(int(word) for word in sys.argv[2:]))
