"""Runs that start from a point: solutions, neighbours, and points that no constraint allows."""

import numpy as np
import pytest

from hinge import Gram, Kernel, Settings, solve
from hinge.dual.formulations import c_svc, epsilon_svr, nu_svc, nu_svr, one_class
from reference import assert_solved, kernel_matrix, objective
from strategies import SURE_RULES

SOLVERS = [("block", "second_order"), *(("smo", rule) for rule in SURE_RULES)]
every_solver = pytest.mark.parametrize(("solver", "rule"), SOLVERS)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
LABELS = np.where(X[:, 0] + 0.7 * RNG.normal(size=200) > 0, 1.0, -1.0)
K = kernel_matrix("rbf", X, X, gamma=0.3)
PROBLEMS = {
    "c_svc": c_svc(LABELS, C=5.0),
    "without_threshold": c_svc(LABELS, C=5.0, fit_intercept=False),
    "hard_margin": c_svc(LABELS, C=np.inf),
    "nu_svc": nu_svc(LABELS, nu=0.4),
    "one_class": one_class(200, nu=0.3),
    "epsilon_svr": epsilon_svr(X[:, 1], C=5.0),
    "nu_svr": nu_svr(X[:, 1], C=5.0, nu=0.3),
}
every_problem = pytest.mark.parametrize("name", PROBLEMS)


def run(problem, solver, rule, **settings):
    gram = Gram(X, Kernel("rbf", gamma=0.3), precision="double")
    solution = solve(problem, gram, Settings(solver=solver, rule=rule, **{"tol": 1e-4} | settings))
    assert_solved(solution, problem, K, settings.get("tol", 1e-4))
    return solution


@every_solver
@every_problem
def test_a_solution_is_recognised_at_once(solver, rule, name):
    first = run(PROBLEMS[name], solver, rule, tol=1e-5)
    again = run(PROBLEMS[name], solver, rule, start=first.beta)
    assert again.report.iterations == 0
    np.testing.assert_allclose(again.beta, first.beta, rtol=1e-12, atol=1e-12)


@every_solver
@every_problem
@pytest.mark.parametrize("scale", [0.3, 1e3])
def test_an_infeasible_start_leads_to_the_same_optimum(solver, rule, name, scale):
    problem = PROBLEMS[name]
    start = np.random.default_rng(1).normal(scale=scale, size=problem.n_variables)
    given = start.copy()
    warm, cold = run(problem, solver, rule, start=start), run(problem, solver, rule)
    assert objective(warm.beta, K, problem) == pytest.approx(objective(cold.beta, K, problem), rel=1e-5)
    np.testing.assert_array_equal(start, given)


@every_solver
def test_neighbouring_cost_is_a_shorter_way(solver, rule):
    near = run(c_svc(LABELS, C=5.0), solver, rule).beta
    warm = run(c_svc(LABELS, C=5.5), solver, rule, start=near)
    cold = run(c_svc(LABELS, C=5.5), solver, rule)
    assert warm.report.iterations < cold.report.iterations
