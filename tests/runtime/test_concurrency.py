"""Threads, forks and joblib workers give the answers of a run alone."""

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_info

import hinge
from hinge import SVC, Gram, Kernel, Settings, Sizes, certificate, solve
from hinge.dual.formulations import c_svc
from hinge.runtime.threads import blas_on_one_thread, lazy
from reference import assert_solved, objective

N = 2500  # more than two blocks of columns: threads have something to share
SIZES = Sizes(one_set=400, smallest_set=300, largest_set=600, cheap_subset=500, dear_subset=500)
SOLVERS = [("block", "second_order"), ("smo", "second_order"), ("smo", "hmg")]
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
every_solver = pytest.mark.parametrize(("solver", "rule"), SOLVERS)


def data(seed, n=N):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    return X, np.where(X[:, 0] + 0.7 * rng.normal(size=n) > 0, 1.0, -1.0)


def solution_of(seed, solver="block", rule="second_order", threads=None):
    """A solution that took many working sets, or shrinking."""
    X, y = data(seed)
    gram = Gram(X, Kernel("rbf", gamma=0.2), threads=threads)
    solution = solve(c_svc(y, C=5.0), gram, Settings(solver=solver, rule=rule, sizes=SIZES))
    report = solution.report
    assert report.largest_set <= 600
    assert report.fewest_active < N
    assert (report.most_lagging > 0) == (solver == "block")
    return solution


def beta_of(*arguments, **options):
    return solution_of(*arguments, **options).beta


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


def blas_threads():
    return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]


def test_blas_is_limited_in_every_thread_and_set_free_by_the_last_one():
    before = blas_threads()
    with blas_on_one_thread():
        assert set(blas_threads()) <= {1}
    during = []
    second_is_in, first_is_out, second_is_out = (threading.Event() for _ in range(3))

    def first():
        with blas_on_one_thread():
            during.append(blas_threads())
            pool.submit(second)
            second_is_in.wait(60)
        first_is_out.set()
        second_is_out.wait(60)  # a thread that lives on must not keep the right to set limits

    def second():
        with blas_on_one_thread():
            second_is_in.set()
            first_is_out.wait(60)
            during.append(blas_threads())
        during.append(blas_threads())
        second_is_out.set()

    with ThreadPoolExecutor(2) as pool:
        pool.submit(first).result(60)
    assert during == [[1] * len(before), [1] * len(before), before]


@every_solver
def test_every_thread_count_finds_the_solution(solver, rule):
    """Sums in another order round in another way: what is found is the same within the tolerance, and its gap."""
    X, y = data(0)
    squares = (X**2).sum(axis=1)
    problem, K = c_svc(y, C=5.0), np.exp(-0.2 * (squares[:, None] + squares - 2 * X @ X.T))
    solutions = [solution_of(0, solver, rule, threads) for threads in (1, 2, 3)]
    gap = certificate(problem, Gram(X, Kernel("rbf", gamma=0.2)), solutions[0].beta).gap
    for solution in solutions:
        assert_solved(solution, problem, K, 1e-3)
        value = objective(solution.beta, K, problem)
        assert value == pytest.approx(objective(solutions[0].beta, K, problem), abs=2 * gap)


@every_solver
@pytest.mark.parametrize("threads", [1, 3])
def test_same_data_and_threads_same_answer(solver, rule, threads):
    first, second = (solution_of(3, solver, rule, threads) for _ in range(2))
    np.testing.assert_array_equal(first.beta, second.beta)
    np.testing.assert_array_equal(first.residual, second.residual)


def fit(seed):
    X, y = data(seed, n=400)
    return SVC(C=5.0, gamma=0.2).fit(X, y).decision_function(X[:20])


@pytest.mark.slow
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
    X = rng.normal(size=(2500, 6))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=2500) > 0, 1, -1)
    return SVC(C=5.0, gamma=0.2).fit(X, y).decision_function(X[:20])

alone = [fit(seed) for seed in range(4)]  # the parent's threads exist by now
busy = threading.Thread(target=lambda: [fit(seed) for seed in range(6)])
busy.start()  # and some are at work while the children fork
with multiprocessing.get_context("fork").Pool(2) as pool:
    forked = pool.map(fit, range(4))
busy.join()
print(float(np.abs(np.array(alone) - np.array(forked)).max()))
"""


FORK_WHILE_BLAS_IS_SET = """
import os, threading, time, warnings
from hinge.runtime import threads

warnings.simplefilter("ignore")
inside, is_over = threading.Event(), []

def set_threads(count):
    inside.set()
    time.sleep(0.5)
    is_over.append(True)

threads.blas_on_one_thread._switches = [(lambda: 2, set_threads)]
threading.Thread(target=threads.blas_on_one_thread.__enter__).start()
inside.wait()
child = os.fork()
if child == 0:
    os._exit(0 if is_over else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def output_of(program):
    source = Path(hinge.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@forks
def test_fits_after_a_fork():
    assert json.loads(output_of(AFTER_FORK)) <= 1e-10


FORK_WHILE_COMPILING = """
import os, threading, time
import numba
from numba.core.compiler_lock import global_compiler_lock
from hinge import SVC

compiling = threading.Event()

def compile_for_long():
    with global_compiler_lock:
        compiling.set()
        time.sleep(0.5)

threading.Thread(target=compile_for_long).start()
compiling.wait()
child = os.fork()
if child == 0:
    os._exit(numba.njit(lambda x: x + 1)(6))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(numba.njit(lambda x: x + 2)(6))
"""


@forks
def test_compiles_after_a_fork_from_a_process_that_was_compiling():
    assert output_of(FORK_WHILE_COMPILING).split() == ["7", "8"]


@forks
def test_a_fork_waits_for_a_thread_that_is_setting_the_threads_of_blas():
    assert output_of(FORK_WHILE_BLAS_IS_SET).split() == ["0"]


def test_lazy_properties_do_not_wait_for_those_of_other_objects():
    class Slow:
        @lazy
        def both_here(self):
            return meeting.wait(timeout=60) >= 0

    meeting = threading.Barrier(2)
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda slow: slow.both_here, [Slow(), Slow()])) == [True, True]


@pytest.mark.parametrize("probability", [False, True])
def test_the_same_estimator_is_fitted_by_eight_threads_at_once(probability):
    """The last one wins, and all attributes are of the same fit."""
    sets = [data(seed, n=60 + 10 * seed) for seed in range(8)]
    machine = SVC(C=5.0, gamma=0.2, probability=probability)

    def fit(number):
        X, y = sets[number]
        for _ in range(5):
            machine.fit(X, y + 10 * number)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(fit, range(8)))
    (winner,) = [number for number in range(8) if machine.shape_fit_ == sets[number][0].shape]
    X, y = sets[winner]
    alone = SVC(C=5.0, gamma=0.2, probability=probability).fit(X, y + 10 * winner)
    np.testing.assert_array_equal(machine.classes_, alone.classes_)
    np.testing.assert_array_equal(machine.support_, alone.support_)
    np.testing.assert_allclose(machine.decision_function(X), alone.decision_function(X), atol=1e-9)
