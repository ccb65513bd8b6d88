"""The grid of LIBSVM's ``grid.py``, 11 × 10 points by five folds, with Hinge and with scikit-learn's GridSearchCV.

Contenders take turns in fresh processes, each with all cores: Hinge's `GridSearch`, ``GridSearchCV`` over
scikit-learn's SVC, and ``GridSearchCV`` over that of scikit-learn-intelex, on the same folds. Two more runs, at a
tight tolerance, compare the scores of every cell; Hinge counts the samples whose decision is within 1e-3 of zero,
which may fall on either side, or within 2e-6 C: LIBSVM keeps kernel values in single precision, and probably for
that reason the true violation of its solutions grows with C (0.01 to 0.04 were seen at C = 2^15, whatever the
tolerance).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import minmax_scale

from benchmarks.processes import ROOT, environment
from benchmarks.run import Bench, Record

GRIDS = ("a1a", "svmguide1", "german.numer", "mnist", "satimage.scale")
CONTENDERS = ("hinge", "sklearn", "intelex")
TIGHT = ("hinge-tight", "sklearn-tight")

_TOL, _TIGHT_TOL = 1e-3, 1e-6
_MNIST_ROWS = 5000
_LIMIT = 6 * 3600.0

_SCRIPT = """
import json, sys, time, warnings
import numpy as np, scipy.sparse as sp
from sklearn.model_selection import GridSearchCV, StratifiedKFold
path, contender, tol = sys.argv[1], sys.argv[2], float(sys.argv[3])
warnings.simplefilter("ignore")
with np.load(path) as file:
    y = file["y"]
    parts = [file[name] for name in ("data", "indices", "indptr") if name in file]
    X = sp.csr_matrix(tuple(parts), shape=file["shape"]) if parts else file["X"]
def near_zero(machine, X, y):
    decisions = machine._decide(X)
    right = int((machine.predict(X) == y).sum())
    width = max(1e-3, 2e-6 * machine.C)
    return {"score": right / len(y), "near": int((np.abs(decisions) < width).any(axis=1).sum())}
def search(X, y, grid):
    cv = list(StratifiedKFold(5).split(X, y))
    if contender.startswith("hinge"):
        from hinge import SVC
        from hinge.selection import GridSearch
        scoring = near_zero if contender.endswith("tight") else None
        return GridSearch(SVC(tol=tol), grid, cv=cv, refit=False, scoring=scoring).fit(X, y).cv_results_
    if contender == "intelex":
        from sklearnex.svm import SVC
    else:
        from sklearn.svm import SVC
    return GridSearchCV(SVC(tol=tol, cache_size=500), grid, cv=cv, refit=False, n_jobs=-1).fit(X, y).cv_results_
few = np.concatenate([np.flatnonzero(y == label)[:30] for label in np.unique(y)])
search(X[few], y[few], {"C": [1.0, 64.0, 4096.0, 32768.0], "gamma": [0.5, 0.001]})
grid = {"C": (2.0 ** np.arange(-5, 16, 2)).tolist(), "gamma": (2.0 ** np.arange(3, -16, -2)).tolist()}
started = time.perf_counter()
results = search(X, y, grid)
seconds = time.perf_counter() - started
folds = [key for key in results if key.startswith("split") and key.endswith("_test_score")]
near = [key for key in results if key.startswith("split") and key.endswith("_test_near")]
violations = [key for key in results if key.endswith("_violation")]
print(json.dumps({
    "seconds": seconds, "n": int(X.shape[0]), "d": int(X.shape[1]),
    "scores": [results[key].tolist() for key in folds], "near": [results[key].tolist() for key in near],
    "violation": max((float(results[key].max()) for key in violations), default=None),
}))
"""


def measure(bench: Bench, name: str) -> None:
    """Search one data set with all contenders."""
    path = bench.folder / f"{name}.npz"
    _save(path, *_load(name))
    active = list(CONTENDERS)
    for turn in range(bench.options.repeats):
        for contender in list(active):
            record = _search(path, contender, _TOL)
            bench.keep({"kind": "grid", "case": name, "contender": contender, "turn": turn, **record})
            if record["status"] != "ok" or record["seconds"] > bench.options.once_above:
                active.remove(contender)
    for contender in TIGHT:
        bench.keep({"kind": "grid", "case": name, "contender": contender, **_search(path, contender, _TIGHT_TOL)})


def _load(name: str) -> tuple[Any, Any]:
    """The data: 0/1 features as they are, images divided by 255, all else scaled to −1…1."""
    from hinge.io.datasets import load

    X, y = load(name)
    if name == "mnist":
        chosen = np.sort(np.random.default_rng(0).choice(X.shape[0], _MNIST_ROWS, replace=False))
        X = X[chosen].toarray() if sp.issparse(X) else np.asarray(X)[chosen]
        return X.astype(np.float64) / 255.0, np.where(np.asarray(y)[chosen] % 2 == 0, 1, -1)
    return (X if name == "a1a" else minmax_scale(X.toarray() if sp.issparse(X) else X, (-1, 1))), np.asarray(y)


def _save(path: Path, X: Any, y: Any) -> None:
    if sp.issparse(X):
        X = X.tocsr()
        np.savez(path, y=y, data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape)
    else:
        np.savez(path, y=y, X=X)


def _search(path: Path, contender: str, tol: float) -> Record:
    arguments = [sys.executable, "-c", _SCRIPT, str(path), contender, str(tol)]
    try:
        answer = subprocess.run(
            arguments, capture_output=True, text=True, check=True, cwd=ROOT, env=environment(), timeout=_LIMIT
        )
    except subprocess.TimeoutExpired:
        return {"status": "timeout", "seconds": _LIMIT}
    except subprocess.CalledProcessError as error:
        last = error.stderr.strip().splitlines()[-1:] or [f"exit code {error.returncode}"]
        return {"status": "error", "message": last[0], "seconds": 0.0}
    return {"status": "ok", **json.loads(answer.stdout.splitlines()[-1])}
