"""Squared losses: the same dual problem with a ridge on its diagonal and no upper bounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from hinge import Gram, Kernel, Settings, Sizes, certificate, solve
from hinge.dual.formulations import c_svc, epsilon_svr
from hinge.solvers.active_set.polish import polish
from reference import assert_feasible, assert_solved, minimise, objective
from strategies import SQUARED, cases, small_sizes

TIGHT = 1e-6


@pytest.mark.parametrize("formulation", SQUARED)
@pytest.mark.parametrize("solver", ["auto", "block"])
@examples(max_examples=20)
@given(data=st.data())
def test_solution_is_feasible_optimal_and_as_good_as_the_reference(solver, formulation, data):
    case = data.draw(cases(formulations=(formulation,)))
    gram = case.gram(precision=data.draw(st.sampled_from(("auto", "double"))))
    sizes = data.draw(st.one_of(st.just(Sizes()), small_sizes(2, 8)))
    settings = Settings(solver=solver, tol=TIGHT, time_limit=600, shrinking=data.draw(st.booleans()), sizes=sizes)
    solution = solve(case.problem, gram, settings)
    assert_solved(solution, case.problem, case.K, TIGHT)
    best = objective(minimise(case.K, case.problem), case.K, case.problem)
    assert objective(solution.beta, case.K, case.problem) == pytest.approx(best, rel=1e-6, abs=TIGHT)


@pytest.mark.parametrize("method", ["proximal", "descent"])
@pytest.mark.parametrize("formulation", SQUARED)
@examples(max_examples=15)
@given(data=st.data())
def test_methods_on_the_weights_find_the_same(method, formulation, data):
    storages = ("dense64", "dense32", "csr_matrix")
    case = data.draw(cases((formulation,), storages, ("linear",), n_samples=(4, 60), n_features=(1, 8)))
    solution = solve(case.problem, case.gram(), Settings(solver=method, tol=TIGHT, sizes=Sizes(one_set=1)))
    assert_solved(solution, case.problem, case.K, TIGHT)
    best = objective(minimise(case.K, case.problem), case.K, case.problem)
    assert objective(solution.beta, case.K, case.problem) == pytest.approx(best, rel=1e-6, abs=TIGHT)


def made(n=60, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sign(X[:, 0] + 0.5 * rng.normal(size=n)), rng.integers(0, 4, n).astype(float)


@pytest.mark.parametrize("tol", [1.0, 1e-2, 1e-8])
def test_the_gap_is_the_primal_objective_minus_the_dual(tol):
    X, y, weights = made()
    gram, C = Gram(X, Kernel("linear")), 3.0
    problem = c_svc(y, C, weights, fit_intercept=False, squared=True)
    beta = solve(problem, gram, Settings(tol=tol)).beta
    w = X.T @ beta
    primal = 0.5 * w @ w + C * weights @ np.maximum(0.0, 1 - y * (X @ w)) ** 2
    cert = certificate(problem, gram, beta)
    assert cert.primal == pytest.approx(primal, rel=1e-9)
    assert cert.gap >= 0
    assert cert.dual == pytest.approx(primal - cert.gap, rel=1e-9)


def test_the_gap_of_a_regression_is_the_primal_objective_minus_the_dual():
    X, _, weights = made()
    y, gram, C, epsilon = X @ np.array([1.0, -1.0, 0.5, 0.0]), Gram(X, Kernel("linear")), 2.0, 0.2
    problem = epsilon_svr(y, C, epsilon, weights, fit_intercept=False, squared=True)
    beta = solve(problem, gram, Settings(tol=0.1)).beta
    w = X.T @ problem.coefficients(beta)
    primal = 0.5 * w @ w + C * weights @ np.maximum(0.0, np.abs(y - X @ w) - epsilon) ** 2
    assert certificate(problem, gram, beta).primal == pytest.approx(primal, rel=1e-9)


def test_weights_count_repetitions_and_weight_zero_is_absence():
    X, y, weights = made()
    repeated = np.repeat(np.arange(len(y)), weights.astype(int))
    whole = solve(c_svc(y, 1.0, weights, squared=True), Gram(X, Kernel("rbf", gamma=0.5)), Settings(tol=1e-9))
    parts = solve(
        c_svc(y[repeated], 1.0, squared=True), Gram(X[repeated], Kernel("rbf", gamma=0.5)), Settings(tol=1e-9)
    )
    assert whole.report.objective == pytest.approx(parts.report.objective, rel=1e-9)
    assert not whole.beta[weights == 0].any()


def test_polished_to_the_last_digit():
    X, y, _ = made()
    gram, problem = Gram(X, Kernel("rbf", gamma=0.5)), c_svc(y, 1.0, squared=True)
    found = polish(problem, gram, solve(problem, gram, Settings(tol=1e-2)), 1e-2)
    assert_feasible(found.beta, problem)
    assert found.report.violation < 1e-10


def test_what_it_cannot_do_is_refused():
    X, y, _ = made()
    with pytest.raises(ValueError, match="finite C"):
        c_svc(y, np.inf, squared=True)
    with pytest.raises(ValueError, match="'smo' has no squared losses"):
        solve(c_svc(y, squared=True), Gram(X, Kernel("linear")), Settings(solver="smo"))
