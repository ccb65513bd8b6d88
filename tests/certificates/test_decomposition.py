"""Problems larger than a working set, so that decomposition, shrinking and the row cache have work to do."""

import numpy as np
import pytest
import scipy.sparse as sp

import peers
from hinge import Gram, Kernel, Settings, solve
from hinge.formulations import c_svc, epsilon_svr, nu_svc, nu_svr, one_class
from reference import assert_solved, kernel_matrix, objective

N, GAMMA = 1000, 0.1
RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(N, 8)), 3)
LABELS = np.where(X[:, 0] + np.sin(2 * X[:, 1]) + 0.5 * RNG.normal(size=N) > 0, 1.0, -1.0)
TARGETS = np.sin(X[:, 0]) + 0.3 * RNG.normal(size=N)
PROBLEMS = {
    "c_svc": (LABELS, {"C": 10.0}, c_svc(LABELS, C=10.0)),
    "nu_svc": (LABELS, {"nu": 0.3}, nu_svc(LABELS, nu=0.3)),
    "one_class": (LABELS, {"nu": 0.2}, one_class(N, nu=0.2)),
    "epsilon_svr": (TARGETS, {"C": 2.0, "epsilon": 0.1}, epsilon_svr(TARGETS, C=2.0, epsilon=0.1)),
    "nu_svr": (TARGETS, {"C": 2.0, "nu": 0.4}, nu_svr(TARGETS, C=2.0, nu=0.4)),
}


@pytest.fixture(scope="module", name="K")
def kernel_values():
    squares = (X**2).sum(axis=1)
    return np.exp(-GAMMA * np.maximum(squares[:, None] + squares - 2 * X @ X.T, 0))


@pytest.fixture(scope="module")
def peer_objective(K):
    """LIBSVM's optimum of each formulation, computed once."""
    known = {}

    def objective_of(formulation):
        if formulation not in known:
            y, options, _ = PROBLEMS[formulation]
            known[formulation] = peers.train(
                formulation, X, y, "rbf", K, gamma=GAMMA, eps=1e-5, **options
            ).objective
        return known[formulation]

    return objective_of


@pytest.mark.parametrize(("cache_rows", "shrinking"), [(None, True), (None, False), (3, True)])
@pytest.mark.parametrize("solver", ["block", "smo"])
@pytest.mark.parametrize("formulation", PROBLEMS)
def test_every_formulation_beyond_one_working_set(formulation, solver, cache_rows, shrinking, K, peer_objective):
    problem = PROBLEMS[formulation][2]
    cache_bytes = None if cache_rows is None else cache_rows * N * 4
    gram = Gram(X, Kernel("rbf", gamma=GAMMA), cache_bytes=cache_bytes)
    solution = solve(problem, gram, Settings(solver=solver, shrinking=shrinking, tol=1e-4, time_limit=60))
    assert_solved(solution, problem, K, 1e-4)
    assert objective(solution.beta, K, problem) == pytest.approx(peer_objective(formulation), rel=1e-6)
    if cache_rows is not None:
        assert solution.report.cache_bytes <= cache_bytes


@pytest.mark.parametrize("rule", ["mvp", "hmg"])
@pytest.mark.parametrize("formulation", PROBLEMS)
def test_every_rule_beyond_one_working_set(formulation, rule, K, peer_objective):
    problem = PROBLEMS[formulation][2]
    settings = Settings(solver="smo", rule=rule, tol=1e-4, time_limit=60)
    solution = solve(problem, Gram(X, Kernel("rbf", gamma=GAMMA)), settings)
    assert_solved(solution, problem, K, 1e-4)
    assert objective(solution.beta, K, problem) == pytest.approx(peer_objective(formulation), rel=1e-6)


@pytest.mark.parametrize("solver", ["block", "smo"])
@pytest.mark.parametrize("make", [c_svc, epsilon_svr])
def test_without_threshold_beyond_one_working_set(solver, make, K):
    """No peer has this formulation: the two solvers check each other, and the violation both."""
    problem = make(LABELS, C=2.0, fit_intercept=False)

    def run(solver):
        solution = solve(problem, Gram(X, Kernel("rbf", gamma=GAMMA)), Settings(solver=solver, tol=1e-4))
        assert_solved(solution, problem, K, 1e-4)
        return objective(solution.beta, K, problem)

    assert run("block") == pytest.approx(run("smo"), rel=1e-6)


@pytest.mark.parametrize("store", [np.float32, sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "laplacian"])
@pytest.mark.parametrize("precision", ["single", "double"])
def test_every_storage_beyond_one_working_set(store, kernel, precision):
    rows = np.where(RNG.random(X.shape) < 0.5, 0, X)[:700].astype(np.float32).astype(np.float64)
    problem = c_svc(LABELS[:700], C=1.0)
    gram = Gram(store(rows), Kernel(kernel, gamma=GAMMA), precision=precision)
    solution = solve(problem, gram, Settings(time_limit=60))
    assert_solved(solution, problem, kernel_matrix(kernel, rows, rows, gamma=GAMMA), 1e-3)


@pytest.mark.parametrize("solver", ["block", "smo"])
def test_callable_and_precomputed_beyond_one_working_set(solver, K):
    problem = PROBLEMS["c_svc"][2]
    serial = np.arange(N)[:, None]
    called = Gram(serial, Kernel(lambda A, B: K[np.ix_(A[:, 0].astype(int), B[:, 0].astype(int))]))
    for gram in (called, Gram(K, Kernel("precomputed"))):
        assert_solved(solve(problem, gram, Settings(solver=solver, time_limit=60)), problem, K, 1e-3)


@pytest.mark.parametrize("solver", ["block", "smo"])
@pytest.mark.parametrize("formulation", PROBLEMS)
def test_indefinite_kernel_beyond_one_working_set(solver, formulation):
    """No weight vector stands behind this kernel: what follows from one must not be relied on."""
    problem = PROBLEMS[formulation][2]
    gram = Gram(X, Kernel("sigmoid", gamma=0.1, coef0=-1.0))
    solution = solve(problem, gram, Settings(solver=solver, time_limit=60))
    assert_solved(solution, problem, kernel_matrix("sigmoid", X, X, gamma=0.1, coef0=-1.0), 1e-3)


@pytest.mark.parametrize("solver", ["block", "smo"])
def test_hard_margin_beyond_one_working_set(solver):
    """Separable with room to spare: points within ½ of the plane are left out."""
    keep = np.abs(X[:, 0] + X[:, 1]) > 0.5
    rows, y = X[keep], np.sign(X[keep, 0] + X[keep, 1])
    problem = c_svc(y, C=np.inf)
    solution = solve(problem, Gram(rows, Kernel("linear")), Settings(solver=solver, tol=1e-5, time_limit=60))
    assert_solved(solution, problem, rows @ rows.T, 1e-5)
    np.testing.assert_array_less(1 - 1e-4, y * (rows @ (rows.T @ solution.beta) + solution.multipliers[0]))
