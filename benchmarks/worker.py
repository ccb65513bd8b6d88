"""A fresh process for one contender: import, warm up on a small problem, then fit what the job asks for.

``python -m benchmarks.worker job.json`` writes one line of JSON when it is ready and one for each fit; answers go
to ``.npz`` files beside the job. What libraries print goes to standard error.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.adapters import Adapter, adapter_for
from benchmarks.prepared import read

# Enough rows that the warm-up takes the paths of a large fit, few enough that it takes little time and memory.
WARM_ROWS = 3000
_LIMIT_SUPPORT = 1024


def memory() -> dict[str, int]:
    """Return the bytes resident now and at most so far."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        fields = dict(line.split(":", 1) for line in lines)
        return {"now": 1024 * int(fields["VmRSS"].split()[0]), "peak": 1024 * int(fields["VmHWM"].split()[0])}
    except (OSError, KeyError):
        unit = 1 if sys.platform == "darwin" else 1024
        peak = unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return {"now": peak, "peak": peak}


def forget_peak() -> None:
    """Start the peak anew, where the system allows it."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


@contextmanager
def compilations() -> Iterator[list[float]]:
    """Collect the seconds of every compilation by Numba; there should be none in a timed fit."""
    seconds: list[float] = []
    if "numba" not in sys.modules:
        yield seconds
        return
    from numba.core import event

    with event.install_recorder("numba:compile") as recorder:
        yield seconds
    starts: list[float] = []
    for moment, happening in recorder.buffer:
        if happening.is_start:
            starts.append(moment)
        elif starts:
            begun = starts.pop()
            if not starts:
                seconds.append(moment - begun)


def small_problem(X: Any, y: NDArray[Any], task: str) -> tuple[Any, NDArray[Any]]:
    """Return a few random rows, of every class some."""
    rng = np.random.default_rng(1)
    rows = [rng.choice(X.shape[0], min(WARM_ROWS, X.shape[0]), replace=False)]
    if task != "regression":
        rows += [np.flatnonzero(y == label)[:3] for label in np.unique(y)]
    chosen = np.unique(np.concatenate(rows))
    return X[chosen], y[chosen]


def warm_up(job: dict[str, Any], adapter: Adapter, X: Any, y: NDArray[Any]) -> None:
    """Import, compile and load everything that a large fit will need; in a sweep, an easy one and a hard one."""
    some_X, some_y = small_problem(X, y, job["task"])
    adapter.prepare(some_X, some_y)
    for place in sorted({0, len(job["points"]) - 1}):
        adapter.fit(job["points"][place])
    if job.get("test"):
        adapter.predict(some_X[:10])


def timed_fit(job: dict[str, Any], adapter: Adapter, point: dict[str, float], number: int) -> dict[str, Any]:
    """Fit once by the clock; write the answer."""
    forget_peak()
    before = memory()["now"]
    with compilations() as compiled:
        started = time.perf_counter()
        adapter.fit(point)
        seconds = time.perf_counter() - started
    peak = memory()["peak"]
    path = Path(job["folder"]) / f"answer-{number}.npz"
    adapter.answer().save(path)
    return {
        "event": "fit", "number": number, "point": point, "seconds": seconds, "answer": str(path),
        "peak_bytes": peak, "extra_bytes": peak - before, "compile_seconds": sum(compiled), **adapter.figures(),
    }  # fmt: skip


def timed_predictions(job: dict[str, Any], adapter: Adapter) -> dict[str, Any]:
    """Predict the test set several times."""
    X, y = read(job["test"])
    seconds = []
    for _ in range(job["predictions"]):
        started = time.perf_counter()
        labels = adapter.predict(X)
        seconds.append(time.perf_counter() - started)
    path = Path(job["folder"]) / "labels.npy"
    np.save(path, labels)
    return {
        "event": "predict",
        "predict_seconds": seconds,
        "labels": str(path),
        "accuracy": float(np.mean(labels == y)),
    }


def product_speed(job: dict[str, Any], X: Any, support: NDArray[np.int64]) -> float:
    """Measure nanoseconds a kernel value, products and kernel function together, at Hinge's own best."""
    from hinge import Gram, Kernel

    gram = Gram(X, Kernel(job["kernel"], gamma=job["points"][0]["gamma"]))
    coefficients = np.zeros(gram.n)
    coefficients[support[:: max(len(support) // _LIMIT_SUPPORT, 1)][:_LIMIT_SUPPORT]] = 1.0
    times = []
    for _ in range(3):
        started = time.perf_counter()
        gram.product(coefficients, dtype=gram.dtype)
        times.append(time.perf_counter() - started)
    return 1e9 * min(times) / (np.count_nonzero(coefficients) * gram.n)


def run(job: dict[str, Any], say: Any) -> None:
    """Do the job; ``say`` takes what to tell the parent."""
    started = time.perf_counter()
    adapter = adapter_for(job)
    imported = time.perf_counter()
    X, y = read(job["data"])
    loaded = time.perf_counter()
    warm_up(job, adapter, X, y)
    warm = time.perf_counter()
    adapter.prepare(X, y)
    say({"event": "ready", "import_seconds": imported - started, "warm_seconds": warm - loaded})
    for number, point in enumerate(job["points"]):
        say(timed_fit(job, adapter, point, number))
    if job.get("test"):
        say(timed_predictions(job, adapter))
    if job.get("limit"):
        support = np.load(Path(job["folder"]) / "answer-0.npz")["support"]
        say({"event": "limit", "ns_per_value": product_speed(job, X, support)})
    say({"event": "end"})


def main() -> None:
    """Read the job that the command line names, and keep standard output for ourselves."""
    lines = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def say(message: dict[str, Any]) -> None:
        lines.write(json.dumps(message) + "\n")
        lines.flush()

    run(json.loads(Path(sys.argv[1]).read_text()), say)


if __name__ == "__main__":
    main()
