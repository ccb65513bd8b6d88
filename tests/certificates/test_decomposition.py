"""Problems of many working sets: choosing, shrinking, lagging and the row cache have work to do.

Sizes are made small, so that a few hundred samples go through what otherwise takes many thousands. Each test makes
sure by the report that it did happen.
"""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp

import peers
from hinge import Gram, Kernel, Settings, Sizes, solve
from hinge.dual.formulations import c_svc, epsilon_svr, nu_svc, nu_svr, one_class
from reference import assert_solved, kernel_matrix, objective, residual
from strategies import SURE_RULES

N, GAMMA = 400, 0.1
NEVER = 10**9
SETS = Sizes(one_set=50, smallest_set=20, largest_set=50, cheap_subset=NEVER, dear_subset=NEVER)
SUBSET_FIRST = Sizes(one_set=50, smallest_set=20, largest_set=50, cheap_subset=100, dear_subset=100)
RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(N, 8)), 3)
WIDE = np.hstack([X, 0.1 * RNG.normal(size=(N, 92))])  # so many features that kernel values are expensive
LABELS = np.where(X[:, 0] + np.sin(2 * X[:, 1]) + 0.5 * RNG.normal(size=N) > 0, 1.0, -1.0)
TARGETS = np.sin(X[:, 0]) + 0.3 * RNG.normal(size=N)
PROBLEMS = {
    "c_svc": (LABELS, {"C": 10.0}, c_svc(LABELS, C=10.0)),
    "nu_svc": (LABELS, {"nu": 0.3}, nu_svc(LABELS, nu=0.3)),
    "one_class": (LABELS, {"nu": 0.2}, one_class(N, nu=0.2)),
    "epsilon_svr": (TARGETS, {"C": 2.0, "epsilon": 0.3}, epsilon_svr(TARGETS, C=2.0, epsilon=0.3)),
    "nu_svr": (TARGETS, {"C": 2.0, "nu": 0.4}, nu_svr(TARGETS, C=2.0, nu=0.4)),
}
WITHOUT_THRESHOLD = {
    "c_svc": c_svc(LABELS, C=2.0, fit_intercept=False),
    "epsilon_svr": epsilon_svr(TARGETS, C=2.0, epsilon=0.3, fit_intercept=False),
}
EVERY_PROBLEM = [case[-1] for case in PROBLEMS.values()] + list(WITHOUT_THRESHOLD.values())
EVERY_NAME = [*PROBLEMS, *(f"{name}_without_threshold" for name in WITHOUT_THRESHOLD)]
every_problem = pytest.mark.parametrize("problem", EVERY_PROBLEM, ids=EVERY_NAME)


def rbf_of(rows):
    squares = (rows**2).sum(axis=1)
    return np.exp(-GAMMA * np.maximum(squares[:, None] + squares - 2 * rows @ rows.T, 0))


K, K_WIDE = rbf_of(X), rbf_of(WIDE)


def called(matrix):
    """The Gram matrix of a callable that looks its values up, whose budget does not hold all of them."""
    serial = np.arange(len(matrix))
    return Gram(serial, Kernel(lambda A, B: matrix[np.ix_(A, B)]), cache_bytes=8 * len(matrix) ** 2 - 1)


def assert_many_sets(report, problem):
    """Several working sets of the size allowed, each of them a part of the problem."""
    assert 20 <= report.largest_set <= 50 < problem.n_variables
    assert report.outer_steps > problem.n_variables / 50


@pytest.fixture(scope="module")
def peer_objective():
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


@pytest.mark.parametrize("formulation", PROBLEMS)
@pytest.mark.parametrize("shrinking", [True, False])
def test_cheap_kernels(formulation, shrinking, peer_objective):
    """No row is kept; samples are set aside, and those out of reach lag behind."""
    problem = PROBLEMS[formulation][2]
    settings = Settings(solver="block", shrinking=shrinking, tol=1e-4, time_limit=600, sizes=SETS)
    solution = solve(problem, Gram(X, Kernel("rbf", gamma=GAMMA)), settings)
    assert_solved(solution, problem, K, 1e-4)
    assert_many_sets(solution.report, problem)
    assert (solution.report.fewest_active < N) == shrinking
    assert (solution.report.most_lagging > 0) == shrinking
    assert solution.report.cache_bytes == 0
    assert objective(solution.beta, K, problem) == pytest.approx(peer_objective(formulation), rel=1e-6)


@every_problem
def test_a_random_quarter_first(problem):
    """A problem that begins at zero begins with a quarter of its samples, cheap or expensive."""
    for rows, matrix in ((X, K), (WIDE, K_WIDE)):
        settings = Settings(solver="block", tol=1e-4, time_limit=600, sizes=SUBSET_FIRST)
        solution = solve(problem, Gram(rows, Kernel("rbf", gamma=GAMMA)), settings)
        assert_solved(solution, problem, matrix, 1e-4)
        assert_many_sets(solution.report, problem)
        if not problem.start.any():
            assert solution.report.fewest_active <= N // 4


@every_problem
@pytest.mark.parametrize("cache_rows", [3, 40, N])
def test_dear_kernels_keep_rows_within_the_budget(problem, cache_rows):
    gram = Gram(WIDE, Kernel("rbf", gamma=GAMMA), cache_bytes=cache_rows * N * 8, precision="double")
    settings = Settings(solver="block", tol=1e-4, time_limit=600, sizes=SETS)
    solution = solve(problem, gram, settings)
    assert_solved(solution, problem, K_WIDE, 1e-4)
    assert_many_sets(solution.report, problem)
    assert solution.report.cache_hits > 0
    assert 0 < solution.report.cache_bytes <= cache_rows * N * 8
    if cache_rows < solution.report.n_support:  # what is pushed out is computed again
        assert solution.report.cache_misses > solution.report.n_support


@pytest.mark.parametrize("rows", [X, WIDE], ids=["cheap", "expensive"])
def test_memory_bounds_the_working_set(rows):
    """Its matrix, and the two that its free variables may need, take half of the budget at most."""
    problem, largest = c_svc(LABELS, C=100.0), []
    for budget in (2**16, 2**22):
        gram = Gram(rows, Kernel("rbf", gamma=GAMMA), cache_bytes=budget)
        sizes = Sizes(one_set=20, smallest_set=20, largest_set=200, cheap_subset=NEVER, dear_subset=NEVER)
        solution = solve(problem, gram, Settings(solver="block", time_limit=600, sizes=sizes))
        assert_solved(solution, problem, rbf_of(rows), 1e-3)
        assert 20 * solution.report.largest_set**2 <= budget / 2
        largest.append(solution.report.largest_set)
    assert largest[0] < largest[1]


@pytest.mark.parametrize("name", ["c_svc", "epsilon_svr"])
def test_a_small_problem_without_room_for_its_matrix_takes_as_many_sets_as_it_needs(name):
    problem = PROBLEMS[name][-1]
    gram = Gram(X, Kernel("rbf", gamma=GAMMA), cache_bytes=2**14)
    solution = solve(problem, gram, Settings(tol=1e-7, time_limit=600))
    assert problem.n_variables <= Sizes().one_set
    assert solution.report.largest_set < 50
    assert_solved(solution, problem, K, 1e-7)


@every_problem
def test_callable_and_precomputed(problem):
    for gram in (called(K), Gram(K, Kernel("precomputed"))):
        solution = solve(problem, gram, Settings(solver="block", tol=1e-4, time_limit=600, sizes=SUBSET_FIRST))
        assert_solved(solution, problem, K, 1e-4)
        assert_many_sets(solution.report, problem)


@pytest.mark.parametrize("cache_rows", [None, 3])
@pytest.mark.parametrize("rule", SURE_RULES)
@pytest.mark.parametrize("formulation", PROBLEMS)
def test_pair_steps_shrink_too(formulation, rule, cache_rows, peer_objective):
    problem = PROBLEMS[formulation][2]
    cache_bytes = None if cache_rows is None else cache_rows * N * 4
    gram = Gram(X, Kernel("rbf", gamma=GAMMA), cache_bytes=cache_bytes)
    solution = solve(problem, gram, Settings(solver="smo", rule=rule, tol=1e-4, time_limit=600))
    assert_solved(solution, problem, K, 1e-4)
    assert (
        solution.report.fewest_active < N or solution.report.iterations < N
    )  # the first look comes after N steps
    assert solution.report.largest_set == 0
    assert objective(solution.beta, K, problem) == pytest.approx(peer_objective(formulation), rel=1e-6)
    if cache_rows is not None:
        assert 0 < solution.report.cache_bytes <= cache_bytes


@pytest.mark.parametrize("name", WITHOUT_THRESHOLD)
def test_without_threshold(name):
    """No peer has this formulation: the two solvers check each other, and the violation both."""
    problem, values = WITHOUT_THRESHOLD[name], []
    for solver in ("block", "smo"):
        settings = Settings(solver=solver, tol=1e-4, sizes=SETS)
        solution = solve(problem, Gram(X, Kernel("rbf", gamma=GAMMA)), settings)
        assert_solved(solution, problem, K, 1e-4)
        assert solution.report.fewest_active < N
        values.append(objective(solution.beta, K, problem))
    assert values[0] == pytest.approx(values[1], rel=1e-6)


STORES = {"float32": np.float32, "csr_matrix": sp.csr_matrix, "csr_array": sp.csr_array}


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("kernel", ["linear", "rbf", "laplacian"])
@pytest.mark.parametrize("precision", ["single", "double"])
def test_every_storage(store, kernel, precision):
    rows = np.where(RNG.random(X.shape) < 0.5, 0, X).astype(np.float32).astype(np.float64)
    problem = c_svc(LABELS, C=1.0)
    gram = Gram(STORES[store](rows), Kernel(kernel, gamma=GAMMA), precision=precision)
    solution = solve(problem, gram, Settings(solver="block", time_limit=600, sizes=SETS))
    assert_solved(solution, problem, kernel_matrix(kernel, rows, rows, gamma=GAMMA), 1e-3)
    assert_many_sets(solution.report, problem)


@every_problem
def test_an_indefinite_kernel(problem):
    """No weight vector stands behind this kernel: what follows from one must not be relied on."""
    matrix = kernel_matrix("sigmoid", X, X, gamma=0.1, coef0=-1.0)
    for solver in ("block", "smo"):
        gram = Gram(X, Kernel("sigmoid", gamma=0.1, coef0=-1.0))
        solution = solve(problem, gram, Settings(solver=solver, time_limit=600, sizes=SETS))
        assert_solved(solution, problem, matrix, 1e-3)
        assert solution.report.most_lagging == 0
        if solver == "block":
            assert_many_sets(solution.report, problem)


@pytest.mark.parametrize("solver", ["block", "smo"])
def test_a_hard_margin(solver):
    """Separable with room to spare: points within ½ of the plane are left out."""
    keep = np.abs(X[:, 0] + X[:, 1]) > 0.5
    rows, y = X[keep], np.sign(X[keep, 0] + X[keep, 1])
    problem = c_svc(y, C=np.inf)
    settings = Settings(solver=solver, tol=1e-4, time_limit=600, sizes=SETS)
    solution = solve(problem, Gram(rows, Kernel("linear")), settings)
    assert_solved(solution, problem, rows @ rows.T, 1e-4)


@every_problem
@pytest.mark.parametrize("tol", [1e-1, 1e-2, 1e-3])
def test_only_samples_out_of_reach_keep_an_old_residual(problem, tol):
    """What a solution tells of a sample is v − Kβ, but for samples without a part in it that cannot have one."""
    for sizes, shrinking in product((SETS, SUBSET_FIRST), (True, False)):
        gram = Gram(X, Kernel("rbf", gamma=GAMMA), precision="double")
        settings = Settings(solver="block", tol=tol, sizes=sizes, shrinking=shrinking)
        solution = solve(problem, gram, settings)
        true = residual(solution.beta, K, problem)
        old = np.abs(solution.residual - true) > 1e-9
        level = solution.multipliers[problem.group] if problem.n_groups else np.zeros(problem.n_variables)
        for claimed in (true, solution.residual):
            excess = np.where(problem.lo == 0, claimed - level, level - claimed)
            assert (excess[old] < 0).all()
        assert (solution.beta[old] == 0).all()
        assert shrinking or not old.any()
