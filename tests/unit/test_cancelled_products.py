"""A Gram matrix whose work was cancelled half-way: nothing of it is taken over, and it is as good as new."""

from contextlib import suppress

import numpy as np
import pytest

from hinge import Gram, Kernel, Settings, solve
from hinge.dual.formulations import c_svc
from hinge.runtime.interrupt import Cancelled
from reference import assert_solved

N = 1300  # more than one block of columns: some are done when the others are cancelled
RNG = np.random.default_rng(0)
NARROW, WIDE = RNG.normal(size=(N, 4)), RNG.normal(size=(N, 70))
KERNELS = {"cheap": (NARROW, Kernel("rbf", gamma=0.2)), "expensive": (WIDE, Kernel("rbf", gamma=0.02))}


def matrix(rows, kernel):
    squares = (rows**2).sum(axis=1)
    return np.exp(-kernel.gamma * np.maximum(squares[:, None] + squares - 2 * rows @ rows.T, 0))


MATRICES = {name: matrix(*case) for name, case in KERNELS.items()}


def cancel_after(gram, n_checks):
    """Let the team ask ``n_checks`` times whether to stop before it is told to."""
    answers = iter([False] * n_checks)
    gram.team.cancelled = lambda: next(answers, True)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("n_checks", range(5))
@pytest.mark.parametrize("name", KERNELS)
def test_an_update_is_whole_or_nothing_and_can_be_made_again(name, n_checks, threads):
    K = MATRICES[name]
    gram = Gram(*KERNELS[name], cache_bytes=200 * N * 8, precision="double", threads=threads)
    known, index = np.arange(0, 60, 2), np.arange(120)
    step = np.random.default_rng(1).normal(size=len(index))
    residual = np.zeros(N)
    gram.update(residual, known, np.ones(len(known)))
    before = residual.copy()
    cancel_after(gram, n_checks)
    try:
        gram.update(residual, index, step)
    except Cancelled:
        np.testing.assert_array_equal(residual, before)
        gram.team.cancelled = lambda: False
        gram.update(residual, index, step)
    gram.team.cancelled = lambda: False
    np.testing.assert_allclose(residual - before, -K[:, index] @ step, atol=1e-10)
    np.testing.assert_allclose(gram.block(index), K[:120, :120], atol=1e-12)
    np.testing.assert_allclose(gram.cache.rows[gram.rows(index)], K[index], atol=1e-12)


@pytest.mark.parametrize("n_checks", range(3))
@pytest.mark.parametrize("name", KERNELS)
def test_rows_and_blocks_after_a_cancellation(name, n_checks):
    K, index = MATRICES[name], np.arange(100, 400)
    gram = Gram(*KERNELS[name], cache_bytes=400 * N * 8, precision="double")
    for ask in (gram.rows, gram.block, gram.rows):
        cancel_after(gram, n_checks)
        with suppress(Cancelled):
            ask(index)
        gram.team.cancelled = lambda: False
    np.testing.assert_allclose(gram.block(index), K[np.ix_(index, index)], atol=1e-12)
    np.testing.assert_allclose(gram.cache.rows[gram.rows(index)], K[index], atol=1e-12)


@pytest.mark.parametrize("solver", ["block", "smo"])
@pytest.mark.parametrize("name", KERNELS)
def test_a_run_goes_on_after_one_that_was_stopped(name, solver):
    """The same Gram matrix serves again, with the rows that the stopped run left in its cache."""
    rows, kernel = KERNELS[name]
    problem = c_svc(np.sign(rows[:, 0] + 0.5 * np.random.default_rng(2).normal(size=N)), C=3.0)
    gram = Gram(rows, kernel, cache_bytes=300 * N * 4)
    seen, beta = [], None
    for limit in (2, 5, 9, 10**9):
        settings = Settings(
            solver=solver, start=beta, callback=lambda p, most=limit: seen.append(p) or len(seen) > most
        )
        solution = solve(problem, gram, settings)
        seen.clear()
        beta = solution.beta
    assert_solved(solution, problem, MATRICES[name], 1e-3)
