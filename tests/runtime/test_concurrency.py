"""Threads, forks and joblib workers give the answers of a run alone."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_info

import hinge
from hinge import SVC, Gram, Kernel, Settings, solve
from hinge.formulations import c_svc
from reference import assert_solved, kernel_matrix

SOLVERS = [("block", "second_order"), ("smo", "second_order"), ("smo", "hmg")]
every_solver = pytest.mark.parametrize(("solver", "rule"), SOLVERS)


def data(seed, n=1500):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    return X, np.where(X[:, 0] + 0.7 * rng.normal(size=n) > 0, 1.0, -1.0)


def beta_of(seed, solver="block", rule="second_order", threads=None):
    X, y = data(seed)
    gram = Gram(X, Kernel("rbf", gamma=0.2), threads=threads)
    return solve(c_svc(y, C=5.0), gram, Settings(solver=solver, rule=rule)).beta


@every_solver
def test_fits_from_several_threads_at_once(solver, rule):
    alone = [beta_of(seed, solver, rule) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda seed: beta_of(seed, solver, rule), range(4)))
    for expected, got in zip(alone, together, strict=True):
        np.testing.assert_array_equal(got, expected)


def test_blas_threads_are_given_back_after_concurrent_fits():
    before = [(lib["filepath"], lib["num_threads"]) for lib in threadpool_info()]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(beta_of, range(3)))
    assert [(lib["filepath"], lib["num_threads"]) for lib in threadpool_info()] == before


@every_solver
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_thread_count_does_not_change_the_result(solver, rule, threads):
    X, y = data(0)
    gram = Gram(X, Kernel("rbf", gamma=0.2), threads=threads)
    solution = solve(c_svc(y, C=5.0), gram, Settings(solver=solver, rule=rule))
    assert_solved(solution, c_svc(y, C=5.0), kernel_matrix("rbf", X, X, gamma=0.2), 1e-3)
    np.testing.assert_array_equal(solution.beta, beta_of(0, solver, rule, threads=2))


def test_same_data_same_answer():
    np.testing.assert_array_equal(beta_of(3), beta_of(3))


def fit(seed):
    X, y = data(seed, n=400)
    return SVC(C=5.0, gamma=0.2).fit(X, y).decision_function(X[:20])


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_joblib_workers(backend):
    alone = [fit(seed) for seed in range(4)]
    workers = joblib.Parallel(n_jobs=2, backend=backend)
    together = workers(joblib.delayed(fit)(seed) for seed in range(4))
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-10)


AFTER_FORK = """
import multiprocessing, threading
import numpy as np
from hinge import SVC

def fit(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1500, 6))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=1500) > 0, 1, -1)
    return SVC(C=5.0, gamma=0.2).fit(X, y).decision_function(X[:20])

alone = [fit(seed) for seed in range(4)]  # the parent's threads exist by now
busy = threading.Thread(target=lambda: [fit(seed) for seed in range(6)])
busy.start()  # and some are at work while the children fork
with multiprocessing.get_context("fork").Pool(2) as pool:
    forked = pool.map(fit, range(4))
busy.join()
print(float(np.abs(np.array(alone) - np.array(forked)).max()))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
def test_fits_after_a_fork():
    source = Path(hinge.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", AFTER_FORK],
        env=os.environ | {"PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) <= 1e-10
