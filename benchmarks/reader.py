"""Read the same LIBSVM text with Hinge and with scikit-learn, in fresh processes that take turns."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.processes import ROOT, environment
from benchmarks.run import Bench

FILES = ("covtype", "mnist")

_SCRIPT = """
import json, sys, time
reader, small, path = sys.argv[1:]
if reader == "hinge":
    from hinge.io import read_data as read
else:
    from sklearn.datasets import load_svmlight_file as read
read(small)
started = time.perf_counter()
X, y = read(path)
seconds = time.perf_counter() - started
print(json.dumps([seconds, X.shape[0], int(X.nnz), float(X.sum() + y.sum())]))
"""


def measure(bench: Bench, name: str) -> None:
    """Write a set as text, then read it."""
    from hinge.io import write_data
    from hinge.io.datasets import load

    X, y = load(name)
    path, small = bench.folder / name, bench.folder / f"{name}.small"
    write_data(path, X, y)
    write_data(small, X[:1000], y[:1000])
    seen = set()
    for _ in range(bench.options.repeats):
        for reader in ("hinge", "scikit-learn"):
            seconds, *content = _read(reader, small, path)
            seen.add((content[0], content[1], f"{content[2]:.9g}"))
            bench.keep({
                "kind": "reader", "case": name, "contender": reader, "reader": reader, "seconds": seconds,
                "bytes": path.stat().st_size,
            })  # fmt: skip
    if len(seen) > 1:
        raise ValueError(f"the readers disagree about {name}: {sorted(seen)}")
    path.unlink()


def _read(reader: str, small: Path, path: Path) -> list[float]:
    answer = subprocess.run(
        [sys.executable, "-c", _SCRIPT, reader, str(small), str(path)],
        capture_output=True, text=True, check=True, cwd=ROOT, env=environment(), timeout=1800,
    )  # fmt: skip
    return list(json.loads(answer.stdout.splitlines()[-1]))
