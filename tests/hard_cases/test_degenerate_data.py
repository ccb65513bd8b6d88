"""Data without the variety that solvers like: duplicates, single points, flat features, flat kernels."""

import numpy as np
import pytest

from hinge import SVC, Gram, Kernel, Settings, solve
from hinge.dual.formulations import c_svc, epsilon_svr, nu_svc, nu_svr, one_class
from reference import assert_feasible, assert_solved, kernel_matrix, minimise, objective, violation
from strategies import SURE_RULES

SOLVERS = [("block", "second_order"), *(("smo", rule) for rule in SURE_RULES)]
every_solver = pytest.mark.parametrize(("solver", "rule"), SOLVERS)
TOL = 1e-6


def run(problem, X, kernel, solver, rule, **parameters):
    """Solve, and check the answer against the formulas and the reference."""
    K = kernel_matrix(kernel, X, X, **parameters)
    settings = Settings(solver=solver, rule=rule, tol=TOL, time_limit=20)
    solution = solve(problem, Gram(X, Kernel(kernel, **parameters)), settings)
    assert_solved(solution, problem, K, TOL)
    best = objective(minimise(K, problem), K, problem)
    assert objective(solution.beta, K, problem) == pytest.approx(best, rel=1e-6, abs=1e-8)
    return solution


@every_solver
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("labels", ["equal", "opposite"])
def test_duplicate_rows(solver, rule, kernel, labels):
    rng = np.random.default_rng(0)
    rows, y = rng.normal(size=(15, 3)), np.where(np.arange(15) % 2, 1.0, -1.0)
    twin = y if labels == "equal" else -y
    run(c_svc(np.r_[y, twin], C=10.0), np.r_[rows, rows], kernel, solver, rule)


@every_solver
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize(
    "problem",
    [
        c_svc(np.repeat([1.0, -1.0], [5, 3]), C=2.0),
        c_svc(np.repeat([1.0, -1.0], [5, 3]), C=2.0, fit_intercept=False),
        nu_svc(np.repeat([1.0, -1.0], [5, 3]), nu=0.4),
        one_class(8, nu=0.4),
        epsilon_svr(np.arange(8.0), C=2.0, epsilon=0.1),
        nu_svr(np.arange(8.0), C=2.0, nu=0.5),
    ],
    ids=["c_svc", "c_svc_without_threshold", "nu_svc", "one_class", "epsilon_svr", "nu_svr"],
)
def test_identical_points_only(solver, rule, kernel, problem):
    run(problem, np.full((8, 2), 0.75), kernel, solver, rule)


@every_solver
def test_identical_points_have_the_majority_as_intercept(solver, rule):
    """K is constant, so that every label pulls equally: β fills the smaller class."""
    problem = c_svc(np.repeat([1.0, -1.0], [5, 3]), C=2.0)
    solution = run(problem, np.full((8, 2), 0.75), "rbf", solver, rule)
    assert solution.beta[:5].sum() == pytest.approx(6.0)
    np.testing.assert_array_equal(solution.beta[5:], -2.0)
    assert solution.multipliers[0] == pytest.approx(1.0)


@every_solver
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_one_sample_per_class(solver, rule, C):
    """Two points at distance 2 under the linear kernel: β = min(C, 2 / distance²)."""
    X, y = np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([1.0, -1.0])
    solution = run(c_svc(y, C=C), X, "linear", solver, rule)
    np.testing.assert_allclose(solution.beta, min(C, 0.5) * y)
    assert solution.multipliers[0] == pytest.approx(0.0, abs=1e-12)


@every_solver
@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("formulation", ["c_svc", "without_threshold", "one_class", "epsilon_svr", "nu_svr"])
def test_very_few_samples(solver, rule, n, formulation):
    y = np.array([1.0, -1.0, 1.0])[:n]
    problem = {
        "c_svc": lambda: c_svc(y, C=3.0),
        "without_threshold": lambda: c_svc(y, C=3.0, fit_intercept=False),
        "one_class": lambda: one_class(n, nu=0.7),
        "epsilon_svr": lambda: epsilon_svr(y, C=3.0, epsilon=0.2),
        "nu_svr": lambda: nu_svr(y, C=3.0, nu=0.6),
    }[formulation]()
    run(problem, np.array([[0.3, 1.0], [-0.2, 0.5], [1.5, -0.7]])[:n], "rbf", solver, rule, gamma=0.5)


@pytest.mark.parametrize("n", [2, 3])
def test_classifier_on_very_few_samples(n):
    X, y = np.array([[0.0], [1.0], [3.0]])[:n], np.array(["no", "yes", "yes"])[:n]
    np.testing.assert_array_equal(SVC(C=100.0).fit(X, y).predict(X), y)


@every_solver
@pytest.mark.parametrize("kernel", ["linear", "rbf", "laplacian", "chi2"])
def test_constant_features(solver, rule, kernel):
    rng = np.random.default_rng(1)
    X = np.column_stack([np.full(30, 7.0), rng.uniform(size=30), np.zeros(30), np.full(30, 0.1)])
    run(c_svc(np.where(X[:, 1] + 0.2 * rng.normal(size=30) > 0.5, 1.0, -1.0), C=5.0), X, kernel, solver, rule)


def test_gamma_scale_on_data_without_variance():
    """Scale is 1 / (features · variance), which has no value here: the model must still be finite."""
    X, y = np.full((4, 2), 3.0), np.array([0, 0, 0, 1])
    model = SVC(gamma="scale").fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()
    np.testing.assert_array_equal(model.predict(X), 0)


@every_solver
@pytest.mark.parametrize("storage", ["features", "precomputed"])
def test_zero_kernel(solver, rule, storage):
    y = np.array([1.0, 1, 1, 1, -1, -1])
    problem = c_svc(y, C=1.5)
    gram = Gram(np.zeros((6, 3)), Kernel("linear"))
    if storage == "precomputed":
        gram = Gram(np.zeros((6, 6)), Kernel("precomputed"))
    solution = solve(problem, gram, Settings(solver=solver, rule=rule, tol=TOL))
    assert_solved(solution, problem, np.zeros((6, 6)), TOL)
    assert solution.report.objective == -6.0  # both negatives, and as much mass of positives, at C
    assert solution.multipliers[0] == 1.0


@every_solver
@pytest.mark.parametrize("formulation", ["c_svc", "hard_margin", "without_threshold"])
def test_hard_margin_on_inseparable_data_is_infeasible_not_endless(solver, rule, formulation):
    """The same two points carry both labels: no C is large enough."""
    X, y = np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([1.0, -1.0, 1.0, -1.0])
    problem = c_svc(
        y, C=1e3 if formulation == "c_svc" else np.inf, fit_intercept=formulation != "without_threshold"
    )
    settings = Settings(solver=solver, rule=rule, time_limit=20)
    solution = solve(problem, Gram(X, Kernel("rbf", gamma=1.0)), settings)
    if formulation == "c_svc":
        assert_solved(solution, problem, kernel_matrix("rbf", X, X), 1e-3)
    else:
        assert solution.report.status == "infeasible"
        assert "separable" in solution.report.message
        assert np.isfinite(solution.beta).all()


@every_solver
def test_hard_margin_on_a_zero_kernel_is_infeasible(solver, rule):
    problem = c_svc(np.array([1.0, -1.0, 1.0]), C=np.inf)
    gram = Gram(np.zeros((3, 3)), Kernel("precomputed"))
    assert solve(problem, gram, Settings(solver=solver, rule=rule)).report.status == "infeasible"


@every_solver
def test_hard_margin_on_overlapping_clouds_is_infeasible(solver, rule):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(60, 2)), np.where(np.arange(60) % 2, 1.0, -1.0)
    settings = Settings(solver=solver, rule=rule, time_limit=20)
    assert solve(c_svc(y, C=np.inf), Gram(X, Kernel("linear")), settings).report.status == "infeasible"


@every_solver
@pytest.mark.parametrize("unit", [1e-7, 1.0, 1e6])
def test_hard_margin_on_separable_data_in_any_unit(solver, rule, unit):
    """Points (±1, t): the margin is the distance 1 to the axis, so that ‖w‖² = Σ|β| = 1 / unit²."""
    rng = np.random.default_rng(3)
    y = np.where(np.arange(20) % 2, 1.0, -1.0)
    X = unit * np.column_stack([y, rng.uniform(-1, 1, 20)])
    problem = c_svc(y, C=np.inf)
    settings = Settings(solver=solver, rule=rule, tol=TOL, time_limit=20)
    solution = solve(problem, Gram(X, Kernel("linear")), settings)
    assert_solved(solution, problem, X @ X.T, TOL)
    assert np.abs(solution.beta).sum() * unit**2 == pytest.approx(1.0, rel=1e-5)


@every_solver
@pytest.mark.parametrize(("gamma", "coef0"), [(1.0, 0.0), (1.0, 1.0), (0.5, -3.0), (0.0, 1.0), (20.0, 0.0)])
@pytest.mark.parametrize("C", [1.0, 1e3])
def test_sigmoid_kernel_that_is_not_positive_semidefinite(solver, rule, gamma, coef0, C):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(50, 4))
    problem = c_svc(np.sign(X[:, 0] + 0.5 * rng.normal(size=50)), C=C)
    K = kernel_matrix("sigmoid", X, X, gamma=gamma, coef0=coef0)
    gram = Gram(X, Kernel("sigmoid", gamma=gamma, coef0=coef0))
    solution = solve(problem, gram, Settings(solver=solver, rule=rule, time_limit=20))
    assert_solved(solution, problem, K, 1e-3)
    assert objective(solution.beta, K, problem) < 0


@every_solver
def test_hard_margin_with_an_indefinite_kernel_ends(solver, rule):
    """½ βᵀKβ falls without end along a direction that no bound stops."""
    K = np.array([[-1.0, 0.0], [0.0, -1.0]])
    problem = c_svc(np.array([1.0, -1.0]), C=np.inf)
    solution = solve(problem, Gram(K, Kernel("precomputed")), Settings(solver=solver, rule=rule, time_limit=20))
    assert solution.report.status == "infeasible"
    assert_feasible(solution.beta, problem)
    assert violation(solution.beta, K, problem) > 0
