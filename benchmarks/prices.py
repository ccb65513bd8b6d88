"""What operations cost on this computer, beside what `hinge.runtime.prices` says: ``python -m benchmarks prices``.

Every price is measured where it is paid: by the library's own loops, on one thread, the least of some repeats, in
processor seconds. Prices that differ from the list by more than a factor of two are marked. Two of the list are no
measurements: a value of a function in Python may cost anything, and from when on a value is kept is a decision.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.tables import Table
from hinge import Gram, Kernel
from hinge.arrays import FeatureRows
from hinge.data.products import bit_dots, sparse_dots
from hinge.data.sparse import SparseSamples
from hinge.dual.formulations import c_svc
from hinge.dual.problem import DualProblem
from hinge.kernel.sharp import sharp_image
from hinge.runtime import prices
from hinge.runtime.threads import Team, blas_on_one_thread
from hinge.solvers.active_set.free_set import FreeSet
from hinge.solvers.active_set.steps import drag, subtract_image
from hinge.solvers.many import Parts
from hinge.solvers.one_pass import Bars
from hinge.solvers.pairs.loop import optimise
from hinge.solvers.pairs.rules import SECOND_ORDER
from hinge.solvers.pairs.step import Point, Rows

_FACTOR = 2.0  # a price that is off by more changes what is chosen
_REPEATS = 7
_LEAST_SECONDS = 0.02  # of one repeat


def measured() -> dict[str, float]:
    """Measure all prices; the keys are their names in `hinge.runtime.prices`."""
    with blas_on_one_thread():
        multiply_add = _multiply_add()
        function = _kernel_function()
        found = {
            "SECONDS_PER_KERNEL_FUNCTION": function,
            "MULTIPLY_ADDS_PER_KERNEL_FUNCTION": function / multiply_add,
            "MULTIPLY_ADDS_PER_SPARSE_ONE": _sparse_one() / multiply_add,
            "MULTIPLY_ADDS_PER_WORD": _word() / multiply_add,
        }
        found["NS_PER_PAIR_STEP_IN_SINGLE"], found["NS_PER_PAIR_STEP"] = (
            _pair_step(np.float32),
            _pair_step(np.float64),
        )
        found["NS_PER_DRAGGED"], found["NS_PER_LAYOUT"] = _dragged(), _layout()
        found["NS_PER_CHANGE"] = change = _change()
        found["CHANGES_PER_MOVE"] = _move() / change
        found["SECONDS_PER_SHARP_TERM"], found["SECONDS_PER_SHARP_VALUE"] = _sharp()
        found["SECONDS_PER_SMALL_PROBLEM"], found["SECONDS_PER_SMALL_PAIR"] = _small()
    return found


def table(found: dict[str, float]) -> Table:
    """Lay the prices out beside those of the list."""
    result = Table(
        "What operations cost here, and in runtime/prices.py", ["price", "in the list", "here", "ratio", ""]
    )
    for name, here in found.items():
        listed = getattr(prices, name)
        ratio = here / listed
        mark = "" if 1 / _FACTOR <= ratio <= _FACTOR else "off by more than a factor of two"
        result.rows.append([name, f"{listed:.3g}", f"{here:.3g}", f"{ratio:.2f}", mark])
    return result


def _seconds(work: Callable[[], Any]) -> float:
    """Seconds that some work takes at least; it is repeated until the clock can tell."""
    work()  # compiles
    count, least = 1, np.inf
    while True:
        started = time.process_time()
        for _ in range(count):
            work()
        if (taken := time.process_time() - started) >= _LEAST_SECONDS:
            break
        count *= 2
    for _ in range(_REPEATS):
        started = time.process_time()
        for _ in range(count):
            work()
        least = min(least, time.process_time() - started)
    return min(least, taken) / count


def _random() -> np.random.Generator:
    return np.random.default_rng(0)


def _multiply_add() -> float:
    a, b = _random().normal(size=(2, 512, 512)).astype(np.float32)
    out = np.empty((512, 512), np.float32)
    return _seconds(lambda: np.dot(a, b, out=out)) / 512**3


def _kernel_function() -> float:
    kernel, tile, norms = Kernel("rbf", gamma=0.1), np.empty((64, 512), np.float32), np.ones(512, np.float32)
    distances = _random().uniform(0.0, 1.0, tile.shape).astype(np.float32)

    def work() -> None:
        tile[:] = distances
        kernel.apply(tile, norms[:64], norms, "dot")

    return _seconds(work) / tile.size


def _sparse_one() -> float:
    rows = sp.random(4000, 5000, 0.01, "csr", np.float32, _random())
    samples = SparseSamples.of(rows)
    panel = samples.panel(np.arange(64), np.float32)
    csr = FeatureRows(samples.indptr, samples.indices, rows.data)
    out = np.empty((64, 4000), np.float32)
    return _seconds(lambda: sparse_dots(csr, panel, 0, out)) / (rows.nnz * 64)


def _word() -> float:
    words = _random().integers(0, 2**63, (8, 4096)).astype(np.uint64)
    panel, out = words[:, :64].T.copy(), np.empty((64, 4096), np.float32)
    return _seconds(lambda: bit_dots(panel, words, out)) / (8 * out.size)


def _problem(n: int, C: float = 10.0) -> tuple[DualProblem, Gram]:
    random = _random()
    X = random.normal(size=(n, 8))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * random.normal(size=n) > 0, 1.0, -1.0)
    return c_svc(y, C=C), Gram(X, Kernel("rbf", gamma=0.1), precision="double", threads=1)


def _pair_step(dtype: Any) -> float:
    n, most = 2000, 1000
    problem, gram = _problem(n)
    rows = Rows.of_matrix(gram.block(np.arange(n)).astype(dtype), gram.diagonal)

    def work() -> int:
        point = Point.of(problem, problem.start.copy(), problem.v.astype(dtype))
        return optimise(point, rows, SECOND_ORDER, None, 1e-6, most).steps

    return 1e9 * _seconds(work) / (work() * n)


def _free_set(n_free: int) -> tuple[FreeSet, int]:
    n = 2000
    problem, gram = _problem(n)
    beta = problem.start.copy()
    half = n_free // 2
    for sign in (1.0, -1.0):
        mine = np.flatnonzero(problem.v == sign)[:half]
        beta[mine] = 0.5 * sign
    return FreeSet(gram.block(np.arange(n)).astype(np.float64), problem, beta), n


def _layout() -> float:
    free_set, _ = _free_set(600)
    free = free_set._free.copy()
    return 1e9 * _seconds(lambda: free_set._lay_out(free)) / len(free) ** 3


def _change() -> float:
    """Nanoseconds for each unit of work that a free set reckons when it settles."""
    n = 1200
    problem, gram = _problem(n, C=1e3)
    kernel = gram.block(np.arange(n)).astype(np.float64)
    beta, residual = problem.start.copy(), problem.v.copy()
    optimise(
        Point.of(problem, beta, residual), Rows.of_matrix(kernel, gram.diagonal), SECOND_ORDER, None, 1e-12, n
    )
    begun = FreeSet(kernel, problem, beta, residual)
    work = []

    def settle() -> None:
        free_set = begun.copy()
        free_set.settle(1e-3)
        work.append(free_set.work)

    return 1e9 * (_seconds(settle) - _seconds(begun.copy)) / work[0]


def _move() -> float:
    """Nanoseconds that a moved variable costs for each residual."""
    n, n_moved = 2000, 100
    kernel, residual = _random().normal(size=(n, n)), np.zeros(n)
    moved, step = np.arange(n_moved), np.full(n_moved, 1e-9)
    return 1e9 * _seconds(lambda: subtract_image(kernel, residual, moved, step)) / (n * n_moved)


def _dragged() -> float:
    free_set, n = _free_set(40)
    dragged = np.setdiff1d(np.arange(n), free_set._free)[:400]
    there, back = free_set.beta[dragged] + 1e-9, free_set.beta[dragged].copy()

    def work() -> None:
        drag(free_set._system, dragged, there)
        drag(free_set._system, dragged, back)

    return 1e9 * _seconds(work) / (2 * len(dragged) * n)


def _sharp() -> tuple[float, float]:
    kernel, support, rows, team = Kernel("rbf", gamma=0.1), np.arange(100), np.arange(100, 150), Team(1)

    def seconds(d: int) -> float:
        samples = Gram(_random().normal(size=(400, d)), kernel, threads=1).source.samples
        work = _seconds(lambda: sharp_image(samples, kernel, support, np.ones(len(support)), rows, team))
        return work / (len(rows) * len(support))

    few, many = seconds(20), seconds(220)
    term = (many - few) / 200
    return term, few - 20 * term


def _small() -> tuple[float, float]:
    """Seconds of small problems in one compiled loop: beside their steps, and for each pair of their variables."""
    count = 20

    def seconds(n: int) -> float:
        problem, gram = _problem(n)
        matrix, bars = gram.block(np.arange(n)), Bars(*gram.error_terms())
        many, samples = c_svc(np.tile(problem.v, count), C=10.0), np.tile(np.arange(n), count)

        def work() -> None:
            parts = Parts.of(np.full(count, n), samples, many, gram)
            parts.solve(np.arange(count), matrix, bars, 1e-3)

        return _seconds(work) / count

    tiny, small = seconds(10), seconds(200)
    pair = (small - tiny) / (200**2 - 10**2)
    return tiny - pair * 10**2, pair
