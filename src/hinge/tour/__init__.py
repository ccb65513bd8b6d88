"""Everything that is usually compiled, compiled ahead: `warm_up`, and the tour of small fits that it takes.

Compiling keeps one core busy and mostly holds Python's lock, so that the tour is taken by several processes, which
put what they compile into one cache on disk. Each is this module run as a program: it is told the stops of the
tour, one at a time, and answers with the folders of the cache.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from hinge.runtime import code_cache
from hinge.runtime.threads import available_threads


@dataclass(frozen=True)
class Warmth:
    """What `warm_up` did.

    Attributes
    ----------
    folders : tuple of str
        Where compiled code is kept; empty where nothing can be kept.
    compiled, found : int
        Compiled functions that are new in the folders, and that had been there before.
    bytes : int
        What the folders hold of compiled code.
    seconds : float
        How long it took.

    Examples
    --------
    >>> from hinge import warm_up
    >>> warm_up().folders      # doctest: +SKIP
    """

    folders: tuple[str, ...]
    compiled: int
    found: int
    bytes: int
    seconds: float


def warm_up(processes: int | None = None) -> Warmth:
    """Compile what fits, predictions and searches use, so that no later one on this computer has to.

    For container images and cluster workers, whose first fit would otherwise take seconds. The code is kept beside
    the library, in the user's cache folder, or where NUMBA_CACHE_DIR says. It serves every process with the same
    files of Hinge and the same versions of Numba and Python, on the same kind of processor.

    Parameters
    ----------
    processes : int, optional
        Processes that compile side by side; by default one for each core.

    Returns
    -------
    Warmth
        Where the code is, and how much of it is new.

    Examples
    --------
    >>> hinge.warm_up()  # doctest: +SKIP
    Warmth(folders=('/home/me/.cache/numba/...',), compiled=61, found=0, bytes=2412032, seconds=9.7)
    """
    begun, waiting = time.time(), iter(list(STOPS))
    count = max(1, min(available_threads() if processes is None else processes, len(STOPS)))
    with ThreadPoolExecutor(count) as pool:
        folders = sorted(set[str]().union(*pool.map(_taken, [waiting] * count)))
    files = [file.stat() for folder in folders for file in Path(folder).glob("*.nbc")]
    compiled = sum(file.st_mtime >= begun for file in files)
    size = sum(file.st_size for file in files)
    return Warmth(tuple(folders), compiled, len(files) - compiled, size, time.time() - begun)


def _taken(waiting: Iterator[str]) -> set[str]:
    """Take stops with one process, as long as there are any; return where it has kept or found code."""
    folders: set[str] = set()
    with _process() as process:
        for stop in waiting:  # a list's iterator: threads take turns at it
            process.stdin.write(f"{stop}\n")
            process.stdin.flush()
            line = process.stdout.readline()
            if not line:
                raise RuntimeError(f"a process ended while it compiled {stop!r}; what it wrote says why")
            folders.update(json.loads(line))
    return folders


@contextmanager
def _process() -> Iterator[Any]:
    command = [sys.executable, "-m", "hinge.tour"]
    here = str(Path(__file__).parents[1])
    path = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
    streams: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process: Any = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}, **streams)
    with process:  # closes its streams and waits
        try:
            yield process
        except BaseException:
            process.kill()
            raise


def main() -> None:
    """Take the stops that standard input names, and name after each the folders of the cache."""
    for line in sys.stdin:
        STOPS[line.strip()]()
        sys.stdout.write(json.dumps(sorted(code_cache.folders)) + "\n")
        sys.stdout.flush()


# ---- the stops: small fits of every kind, heavy ones first; two that share much code do not follow each other, or
# both of two processes would compile it


def _samples(n: int, d: int, n_classes: int = 2, dtype: Any = np.float64) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)).astype(dtype)
    y = rng.permutation(np.arange(n) % n_classes)
    X[:, 0] += 2 * y
    return X, y


def _small() -> None:
    from hinge.estimators import SVC

    for kernel in ("rbf", "linear", "poly"):
        X, y = _samples(60, 5)
        SVC(kernel=kernel).fit(X, y).predict(X)
    X, y = _samples(60, 40)
    SVC().fit(X, y).decision_function(X)
    SVC(kernel="precomputed").fit(X @ X.T, y).predict(X @ X.T)


def _large() -> None:
    from hinge.estimators import SVC

    for d in (5, 40):
        X, y = _samples(4500, d)
        SVC().fit(X, y).predict(X)


def _single() -> None:
    from hinge.estimators import SVC

    X, y = _samples(2500, 40, dtype=np.float32)
    SVC().fit(X, y).predict(X)


def _sparse() -> None:
    from hinge.estimators import SVC

    _, y = _samples(2500, 1)
    X = sp.random(2500, 400, 0.03, format="csr", random_state=0)
    for kernel in ("rbf", "linear"):
        SVC(kernel=kernel).fit(X, y).predict(X)
        SVC(kernel=kernel).fit(X[:60], y[:60]).predict(X)


def _bits() -> None:
    from hinge.estimators import SVC

    X, y = _samples(2500, 80)
    for n in (60, 2500):
        SVC().fit(X[:n] > 1, y[:n]).predict(X > 1)


def _linear() -> None:
    from hinge.estimators import SVC

    for d in (10, 1200):
        X, y = _samples(2100, d)
        SVC(kernel="linear", C=0.01).fit(X, y).predict(X)


def _classes() -> None:
    from hinge.estimators import SVC

    X, y = _samples(200, 6, 5)
    SVC().fit(X, y).predict(X)


def _others() -> None:
    from hinge.estimators import SVR, NuSVC, NuSVR, OneClassSVM

    for n in (60, 2500):
        X, y = _samples(n, 5)
        for machine in (SVR(), NuSVR(), NuSVC(), OneClassSVM()):
            machine.fit(X, X[:, 1] if isinstance(machine, SVR | NuSVR) else y).predict(X)


def _probabilities() -> None:
    from hinge.estimators import SVC

    X, y = _samples(90, 5, 3)
    SVC(probability=True).fit(X, y).predict_proba(X)


def _grid() -> None:
    from hinge.estimators import SVC
    from hinge.selection import GridSearch

    X, y = _samples(200, 5)
    GridSearch(SVC(), {"C": [1.0, 100.0], "gamma": [0.1, 1.0]}, cv=3).fit(X, y)


def _files() -> None:
    from hinge.io import read_data, write_data

    X, y = _samples(60, 5)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "data")
        write_data(path, X, y)
        read_data(path)


STOPS: dict[str, Callable[[], None]] = {
    "large": _large, "grid": _grid, "sparse": _sparse, "other machines": _others, "linear": _linear, "bits": _bits,
    "single precision": _single, "small": _small, "probabilities": _probabilities, "many classes": _classes,
    "files": _files,
}  # fmt: skip
