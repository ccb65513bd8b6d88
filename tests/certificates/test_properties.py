"""Every formulation, solver, rule, storage and precision: feasible, optimal by its own β, and no worse than
the reference."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from hinge import Gram, Kernel, Settings, Sizes, solve
from reference import (
    assert_feasible,
    assert_solved,
    is_convex,
    kernel_matrix,
    minimise,
    objective,
    rounding,
    violation,
)
from strategies import FORMULATIONS, SOLVERS, STORAGES, SURE_RULES, SURE_SOLVERS, cases, dual_problem, small_sizes

TIGHT = 1e-6


def tiny(case):
    """Room for a few rows of float64 values."""
    return 2 * 8 * case.problem.n_samples


def assert_as_good_as_reference(beta, case):
    best = objective(minimise(case.K, case.problem), case.K, case.problem)
    assert objective(beta, case.K, case.problem) == pytest.approx(best, rel=1e-6, abs=TIGHT)


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize(("solver", "rule"), SOLVERS)
@examples(max_examples=12)
@given(data=st.data())
def test_solution_is_feasible_optimal_and_as_good_as_the_reference(solver, rule, formulation, data):
    case = data.draw(cases(formulations=(formulation,)))
    gram = case.gram(
        cache_bytes=data.draw(st.sampled_from((None, tiny(case)))),
        precision=data.draw(st.sampled_from(("auto", "double"))),
    )
    sizes = data.draw(st.one_of(st.just(Sizes()), small_sizes(2, 8)))
    shrinking = data.draw(st.booleans())
    settings = Settings(solver=solver, rule=rule, tol=TIGHT, time_limit=600, shrinking=shrinking, sizes=sizes)
    solution = solve(case.problem, gram, settings)
    if rule not in SURE_RULES and solution.report.status == "stalled":  # Glasmachers and Igel, theorem 7: it may
        assert_feasible(solution.beta, case.problem)
        assert violation(solution.beta, case.K, case.problem) > TIGHT
        return
    assert_solved(solution, case.problem, case.K, TIGHT)
    assert_as_good_as_reference(solution.beta, case)


@pytest.mark.parametrize("formulation", FORMULATIONS)
@examples(max_examples=15)
@given(data=st.data())
def test_many_working_sets(formulation, data):
    """Up to 300 samples in sets of 20 to 50, a random quarter first or not: no set holds all variables."""
    case = data.draw(cases((formulation,), n_samples=(60, 300), n_features=(1, 8)))
    sizes = data.draw(small_sizes(20, 25))
    gram = case.gram(
        cache_bytes=data.draw(st.sampled_from((None, 30 * 8 * case.n))),
        precision=data.draw(st.sampled_from(("auto", "single"))),
    )
    solver, shrinking = data.draw(st.sampled_from(("auto", "block"))), data.draw(st.booleans())
    settings = Settings(solver=solver, tol=1e-4, time_limit=600, shrinking=shrinking, sizes=sizes)
    solution = solve(case.problem, gram, settings)
    assert_solved(solution, case.problem, case.K, 1e-4)
    report = solution.report
    assert report.largest_set <= sizes.largest_set < case.problem.n_variables
    assert (report.fewest_active, report.most_lagging) == (case.n, 0) or shrinking
    assert report.objective == pytest.approx(objective(solution.beta, case.K, case.problem), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("storage", STORAGES)
@examples(max_examples=20)
@given(data=st.data())
def test_single_precision_rows_still_reach_the_true_violation(storage, data):
    case = data.draw(cases(storages=(storage,)))
    solver, rule = data.draw(st.sampled_from(SURE_SOLVERS))
    gram = case.gram(cache_bytes=data.draw(st.sampled_from((None, tiny(case)))), precision="single")
    sizes, shrinking = data.draw(small_sizes(2, 8)), data.draw(st.booleans())
    settings = Settings(solver=solver, rule=rule, tol=1e-3, time_limit=600, shrinking=shrinking, sizes=sizes)
    assert_solved(solve(case.problem, gram, settings), case.problem, case.K, 1e-3)


@examples(max_examples=40)
@given(case=cases(), others=st.lists(st.sampled_from(SOLVERS), min_size=2, max_size=2, unique=True))
def test_report_describes_the_returned_point(case, others):
    for solver, rule in others:
        solution = solve(case.problem, case.gram(), Settings(solver=solver, rule=rule, tol=1e-4, time_limit=600))
        slack = rounding(solution.beta, case.K, case.problem)
        report, beta = solution.report, solution.beta
        assert report.objective == pytest.approx(objective(beta, case.K, case.problem), rel=1e-7, abs=1e-9)
        assert report.violation == pytest.approx(violation(beta, case.K, case.problem), abs=1e-5 + slack)
        coefficients = beta.reshape(-1, case.problem.n_samples).sum(axis=0)
        assert report.n_support == np.count_nonzero(coefficients)
        if len(beta) == len(coefficients):
            at_bound = (beta != 0) & ((beta == case.problem.lo) | (beta == case.problem.hi))
            assert report.n_bounded == np.count_nonzero(at_bound)


@pytest.mark.parametrize(("solver", "rule"), SURE_SOLVERS)
@examples(max_examples=15)
@given(
    formulation=st.sampled_from([f for f in FORMULATIONS if f != "hard_margin"]),
    seed=st.integers(0, 2**32 - 1),
    gamma=st.sampled_from((0.1, 1.0, 10.0)),
    coef0=st.sampled_from((-2.0, 0.0, 2.0)),
)
def test_indefinite_sigmoid_kernel_descends_to_a_stationary_point(solver, rule, formulation, seed, gamma, coef0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(25, 3))
    K = kernel_matrix("sigmoid", X, X, gamma=gamma, coef0=coef0)
    problem = dual_problem(formulation, X, rng, C=1.0, weights=None)
    gram = Gram(X, Kernel("sigmoid", gamma=gamma, coef0=coef0))
    solution = solve(problem, gram, Settings(solver=solver, rule=rule, tol=1e-5, time_limit=600))
    assert_solved(solution, problem, K, 1e-5)
    value = objective(solution.beta, K, problem)
    assert value <= objective(problem.start, K, problem) + 1e-9
    if is_convex(K, problem):
        optimum = minimise(K, problem)
        # The objective is convex: what moves gains at most the violation.
        distance = np.abs(solution.beta - optimum).sum()
        assert value == pytest.approx(objective(optimum, K, problem), rel=1e-6, abs=1e-8 + 1e-5 * distance)
