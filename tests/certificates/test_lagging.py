"""Samples that lag: their residual is an old one, and no further from the true one than the bound that lets them.

A sample's residual moves by at most ‖Δw‖ ‖φ(x)‖. With one feature and a linear kernel that is no bound but the
distance itself, so that a bound which is a little too small shows.
"""

import numpy as np
import pytest

from hinge import Gram, Kernel, Settings, Sizes, solve
from hinge.dual.formulations import c_svc, epsilon_svr, nu_svc, nu_svr, one_class
from hinge.dual.optimality import multipliers_of
from hinge.solvers.block.shrinking import shrinking_block
from hinge.solvers.run import Run
from hinge.solvers.state import State
from reference import assert_solved, kernel_matrix, residual, violation

N = 400
SIZES = Sizes(one_set=30, smallest_set=15, largest_set=30, cheap_subset=100, dear_subset=100)
RNG = np.random.default_rng(1)
PLANE = RNG.normal(size=(N, 2))
LINE = 3 * RNG.normal(size=(N, 1))
SHORT = 0.2 * LINE  # norms below 1, whose squares are smaller still
NOISE = 0.4 * RNG.normal(size=N)


def problems(x, C=3.0):
    y, target = np.where(x + NOISE > 0, 1.0, -1.0), np.tanh(x) + NOISE
    return {
        "c_svc": c_svc(y, C=C),
        "c_svc_without_threshold": c_svc(y, C=C, fit_intercept=False),
        "nu_svc": nu_svc(y, nu=0.3),
        "one_class": one_class(N, nu=0.2),
        "epsilon_svr": epsilon_svr(target, C=C, epsilon=0.5),
        "nu_svr": nu_svr(target, C=C, nu=0.3),
    }


DATA = {
    "line": (LINE, Kernel("linear"), LINE @ LINE.T, problems(LINE[:, 0])),
    "short": (SHORT, Kernel("linear"), SHORT @ SHORT.T, problems(SHORT[:, 0], C=30.0)),
    "plane": (PLANE, Kernel("rbf", gamma=1.0), kernel_matrix("rbf", PLANE, PLANE), problems(PLANE[:, 0])),
    "far": (PLANE, Kernel("poly", degree=2, coef0=1.0), kernel_matrix("poly", PLANE, PLANE, degree=2, coef0=1.0),
            problems(PLANE[:, 0])),
}  # fmt: skip
CASES = [(data, name) for data in DATA for name in problems(LINE[:, 0])]
for line in ("line", "short"):
    CASES.remove((line, "one_class"))  # points on both sides of zero: there is no margin to be away from


@pytest.mark.parametrize(("data", "name"), CASES)
@pytest.mark.parametrize(("precision", "n_looks"), [("single", 7), ("double", 7), ("double", 1)])
def test_nobody_is_further_behind_than_the_bound_says(data, name, precision, n_looks):
    """Looked at again and again on the way to a small violation; or once, after a quarter was solved first."""
    rows, kernel, K, known = DATA[data]
    problem, gram = known[name], Gram(rows, kernel, precision=precision)
    gram.through_weights = False  # as with any other kernel
    state = State(problem, gram, problem.start.copy(), residual(problem.start, K, problem))
    run = Run(Settings(tol=1e-6, sizes=SIZES), problem, gram.team)
    n_seen = 0
    for tol in np.geomspace(1e-2, 1.0, n_looks)[::-1] * np.abs(residual(problem.start, K, problem)).max():
        shrinking_block(state, tol, run)
        true = residual(state.beta, K, problem)
        scale = np.abs(K).max() * (1 + np.abs(state.beta).sum())
        rounding = state.drift + 1e-12 * scale
        assert violation(state.beta, K, problem) <= tol + 2 * rounding
        if state.lagging is None:
            continue
        late = np.flatnonzero(state.lagging.epoch >= 0)
        current = np.setdiff1d(np.arange(N), late)
        off = np.abs(state.residual - true).reshape(-1, N)
        assert off[:, current].max() <= rounding
        assert (state.beta.reshape(-1, N)[:, late] == 0).all()
        number = state.lagging.epoch[late]
        bound = np.array(state.lagging.travel)[number] * np.sqrt(K.diagonal()[late])
        assert (off[:, late] <= bound + rounding).all()
        level = multipliers_of(problem, state.beta, state.residual)
        excess = state.residual - (level[problem.group] if len(level) else 0.0)
        away = np.where(problem.lo == 0, -excess, excess).reshape(-1, N)  # on its side of the margin
        assert (away[:, late] >= bound).all()
        for t, epoch in zip(late, number, strict=True):  # the point that it says it lags behind
            then = problem.v.reshape(-1, N)[:, t] - K[t] @ state.lagging.points[epoch]
            np.testing.assert_allclose(state.residual.reshape(-1, N)[:, t], then, rtol=0, atol=rounding)
        n_seen += len(late)
    assert n_looks == 1 or n_seen > 0
    assert run.fewest_active < N


@pytest.mark.parametrize(("data", "name"), CASES)
def test_lagging_samples_do_not_change_the_answer(data, name):
    rows, kernel, K, known = DATA[data]
    for tol in (1e-1, 1e-3):
        solution = solve(known[name], Gram(rows, kernel), Settings(solver="block", tol=tol, sizes=SIZES))
        assert_solved(solution, known[name], K, tol)


def test_a_watched_sample_never_lags():
    """An empty box marks a sample whose residual somebody wants: in the folds of a search it is its decision."""
    rows, kernel, K, known = DATA["plane"]
    whole = known["c_svc"]
    watched = np.arange(N) % 3 == 0
    lo, hi = np.where(watched, 0.0, whole.lo), np.where(watched, 0.0, whole.hi)
    problem = type(whole)(whole.v, lo, hi, whole.group, whole.sums, N, whole.start)
    for tol in (1e-1, 1e-2, 1e-3):
        solution = solve(problem, Gram(rows, kernel), Settings(solver="block", tol=tol, sizes=SIZES))
        assert solution.report.most_lagging > 0
        true = residual(solution.beta, K, problem)
        np.testing.assert_allclose(solution.residual[watched], true[watched], rtol=0, atol=1e-4)
