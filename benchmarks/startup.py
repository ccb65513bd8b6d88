"""Import time and the first fits on a computer: nothing compiled yet, and everything on disk."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile

from benchmarks.processes import ROOT, environment
from benchmarks.run import Bench

_SCRIPT = """
import json, time
started = time.perf_counter()
import hinge
imported = time.perf_counter()
from hinge import SVC
estimators = time.perf_counter()
import numpy as np
rng = np.random.default_rng(0)
X = rng.normal(size=(200, 5))
y = np.where(X[:, 0] + 0.3 * rng.normal(size=200) > 0, 1, -1)
before = time.perf_counter()
SVC().fit(X, y)
fitted = time.perf_counter()
print(json.dumps([imported - started, estimators - imported, fitted - before]))
"""


def measure(bench: Bench) -> None:
    """Measure in fresh processes; the first of each pair starts with an empty folder for compiled code."""
    bench.forget(["startup"])
    for _ in range(bench.options.repeats):
        with tempfile.TemporaryDirectory() as folder:
            for what in ("first fit ever", "first fit, warm cache"):
                answer = subprocess.run(
                    [sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=True, cwd=ROOT,
                    env=environment(NUMBA_CACHE_DIR=folder), timeout=600,
                )  # fmt: skip
                imported, estimators, fitted = json.loads(answer.stdout.splitlines()[-1])
                if what != "first fit ever":
                    _keep(bench, "import hinge", imported)
                    _keep(bench, "from hinge import SVC, after it", estimators)
                _keep(bench, what, fitted)


def _keep(bench: Bench, what: str, seconds: float) -> None:
    bench.keep({"kind": "startup", "case": "startup", "contender": what, "what": what, "seconds": seconds})
