"""Costs, widths, weights and units many orders of magnitude away from one."""

import numpy as np
import pytest

from hinge import Gram, Kernel, Settings, solve
from hinge.dual.formulations import c_svc, epsilon_svr, nu_svc, nu_svr, one_class
from reference import assert_solved, kernel_matrix, minimise, objective
from strategies import SURE_SOLVERS

every_solver = pytest.mark.parametrize(("solver", "rule"), SURE_SOLVERS)
TOL = 1e-3


def clouds(n=40, d=5, seed=0, shift=1.0):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    X = rng.normal(size=(n, d))
    X[:, 0] += shift * y
    return X, y


def run(problem, X, kernel, solver, rule, precision="auto", **parameters):
    """Solve to TOL; the check runs in extended precision, where the platform has it."""
    gram = Gram(X, Kernel(kernel, **parameters), precision=precision)
    solution = solve(problem, gram, Settings(solver=solver, rule=rule, tol=TOL, time_limit=20))
    K = kernel_matrix(kernel, X, X, dtype=np.longdouble, **parameters)
    assert_solved(solution, problem, K, TOL)
    return solution, K


@every_solver
@pytest.mark.parametrize("C", [1e-8, 1e-4, 1.0, 1e4, 1e8])
@pytest.mark.parametrize("threshold", [True, False])
def test_cost_from_tiny_to_huge(solver, rule, C, threshold):
    X, y = clouds()
    solution, K = run(c_svc(y, C=C, fit_intercept=threshold), X, "rbf", solver, rule, gamma=0.5)
    best = minimise(K, c_svc(y, C=C, fit_intercept=threshold))
    problem = c_svc(y, C=C, fit_intercept=threshold)
    assert objective(solution.beta, K, problem) == pytest.approx(objective(best, K, problem), rel=1e-4)


@pytest.mark.parametrize("C", [1e-8, 1e-4, 1.0, 1e4, 1e8])
def test_cost_from_tiny_to_huge_where_the_classes_overlap(C):
    X, y = clouds(d=2, shift=0.3)
    run(c_svc(y, C=C), X, "linear", "auto", "second_order")


@every_solver
@pytest.mark.parametrize("C", [1e-8, 1e8])
def test_cost_of_regression(solver, rule, C):
    X, _ = clouds()
    run(epsilon_svr(np.sin(X[:, 0]), C=C, epsilon=0.01), X, "rbf", solver, rule, gamma=0.5)
    run(nu_svr(np.sin(X[:, 0]), C=C, nu=0.5), X, "rbf", solver, rule, gamma=0.5)


@every_solver
@pytest.mark.parametrize("gamma", [1e-8, 1e-4, 1.0, 1e2, 1e4])
@pytest.mark.parametrize("C", [1.0, 1e4])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_width_from_tiny_to_huge(solver, rule, gamma, C, kernel):
    X, y = clouds()
    run(c_svc(y, C=C), X, kernel, solver, rule, gamma=gamma)


@every_solver
@pytest.mark.parametrize("precision", ["auto", "double"])
def test_distances_between_far_points_near_each_other(solver, rule, precision):
    """Norms of 1e6, distances of 1: float32 squares of the raw values would keep nothing of the distances."""
    X, y = clouds()
    run(c_svc(y, C=10.0), X + 1e6, "rbf", solver, rule, precision, gamma=0.2)


@every_solver
@pytest.mark.parametrize(
    ("kernel", "parameters"),
    [
        ("linear", {}),
        ("rbf", {"gamma": 1e-12}),
        ("laplacian", {"gamma": 1e-6}),
        ("poly", {"gamma": 1.0, "degree": 3}),
        ("poly", {"gamma": 1e-12, "coef0": 1.0, "degree": 3}),
    ],
)
def test_unscaled_data_with_norms_of_a_million(solver, rule, kernel, parameters):
    """Separable, so that a solution exists at every scale; the cubic kernel comes near float32's end."""
    X, y = clouds(shift=6.0)
    run(c_svc(y, C=1.0), 1e6 * X, kernel, solver, rule, **parameters)


@every_solver
def test_linear_kernel_on_a_far_offset(solver, rule):
    """K is 1e12 everywhere, give or take 1e6; only the weight vector still sees the classes."""
    X, y = clouds(n=20, d=2)
    run(c_svc(y, C=1.0), X + 1e6, "linear", solver, rule)


def test_kernel_values_beyond_float32_are_not_computed_in_it():
    X, y = clouds(shift=6.0)
    solution, _ = run(c_svc(y, C=1.0), 1e8 * X, "poly", "auto", "second_order", gamma=1.0, degree=5)
    assert solution.report.precision == "double"


def test_kernel_values_beyond_float64_are_refused():
    X, y = clouds()
    with pytest.raises(ValueError, match=r"(?i)scale"):
        solve(c_svc(y), Gram(1e80 * X, Kernel("poly", gamma=1.0, degree=5)), Settings())


@every_solver
def test_unreachable_tolerance_is_never_called_success(solver, rule):
    """Overlapping clouds at 1e6: residuals are near 1e13, where float64 itself is coarser than tol."""
    X, y = clouds(n=20, d=2, shift=0.1)
    settings = Settings(solver=solver, rule=rule, tol=1e-9, time_limit=2)
    solution = solve(c_svc(y, C=10.0), Gram(1e6 * X, Kernel("linear")), settings)
    assert solution.report.status in ("stalled", "time_limit")
    assert "loosen tol" in solution.report.message
    if solver != "smo":  # pair steps may still be on their way
        assert solution.report.status == "stalled"
        assert "scale the features" in solution.report.message


@every_solver
def test_nu_at_its_feasible_limit(solver, rule):
    """Three of ten positive: ν can be at most 2·3/10, where every positive is at its bound."""
    X, _ = clouds(n=10)
    y = np.where(np.arange(10) < 3, 1.0, -1.0)
    solution, _ = run(nu_svc(y, nu=0.6), X, "rbf", solver, rule, gamma=0.5)
    np.testing.assert_array_equal(solution.beta[:3], 1.0)
    assert solution.beta[3:].sum() == pytest.approx(-3.0, abs=1e-11)


@every_solver
def test_nu_of_one(solver, rule):
    X, y = clouds(n=20)
    assert np.all(run(one_class(20, nu=1.0), X, "rbf", solver, rule)[0].beta == 1.0)
    np.testing.assert_array_equal(run(nu_svc(y, nu=1.0), X, "rbf", solver, rule)[0].beta, y)
    run(nu_svr(X[:, 0], C=2.0, nu=1.0), X, "rbf", solver, rule)


@pytest.mark.parametrize("above", [0.6000001, 0.7, 1.0])
def test_infeasible_nu_names_the_largest_feasible_one(above):
    y = np.where(np.arange(10) < 3, 1.0, -1.0)
    with pytest.raises(ValueError, match=r"(?s)nu.*0\.6\b"):
        nu_svc(y, nu=above)


def test_infeasible_nu_counts_weights():
    """Weights 3·2 against 7·1: at most 2·6/13."""
    y = np.where(np.arange(10) < 3, 1.0, -1.0)
    with pytest.raises(ValueError, match=r"0\.923"):
        nu_svc(y, nu=0.95, weights=np.where(y > 0, 2.0, 1.0))


@every_solver
def test_zero_weight_removes_a_sample(solver, rule):
    X, y = clouds()
    weights = np.where(np.arange(40) < 20, 0.0, 1.0)
    solution, K = run(c_svc(y, C=5.0, weights=weights), X, "rbf", solver, rule, gamma=0.5)
    half = c_svc(y[20:], C=5.0)
    np.testing.assert_array_equal(solution.beta[:20], 0.0)
    best = objective(minimise(K[20:, 20:], half), K[20:, 20:], half)
    assert solution.report.objective == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize("formulation", [c_svc, nu_svc, epsilon_svr, nu_svr])
def test_all_weights_zero_leaves_nothing_to_learn_from(formulation):
    with pytest.raises(ValueError, match=r"weights.*zero"):
        formulation(np.array([1.0, -1.0]), weights=np.zeros(2))


@every_solver
@pytest.mark.parametrize("formulation", ["c_svc", "epsilon_svr", "nu_svr", "one_class"])
def test_weights_twelve_orders_apart(solver, rule, formulation):
    X, y = clouds()
    weights = np.where(np.arange(40) % 3 == 0, 1e6, 1e-6)
    problem = {
        "c_svc": lambda: c_svc(y, C=1.0, weights=weights),
        "epsilon_svr": lambda: epsilon_svr(X[:, 1], C=1.0, weights=weights),
        "nu_svr": lambda: nu_svr(X[:, 1], C=1.0, nu=0.3, weights=weights),
        "one_class": lambda: one_class(40, nu=0.3, weights=weights),
    }[formulation]()
    run(problem, X, "rbf", solver, rule, gamma=0.5)
