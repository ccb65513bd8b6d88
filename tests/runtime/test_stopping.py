"""Every way a run can end before or at the optimum, and what it says then."""

import time
from dataclasses import replace

import numpy as np
import pytest

from hinge import SVC, Gram, Kernel, Settings, certificate, solve
from hinge.dual.formulations import c_svc, epsilon_svr, nu_svc
from hinge.solvers import conclusion
from hinge.solvers.block.shrinking import ActiveSet
from hinge.solvers.state import State
from hinge.training import trainer
from reference import assert_feasible, kernel_matrix, objective, violation
from strategies import SURE_RULES

SOLVERS = [("block", "second_order"), *(("smo", rule) for rule in SURE_RULES)]
every_solver = pytest.mark.parametrize(("solver", "rule"), SOLVERS)


@pytest.fixture(scope="module")
def noise():
    """Labels that mean nothing: hard work at a large C."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 10))
    return X, np.sign(rng.normal(size=3000))


@every_solver
@pytest.mark.parametrize("limit", [1, 25])
def test_iteration_limit(solver, rule, limit, noise):
    X, y = noise[0][:300], noise[1][:300]
    problem = c_svc(y, C=100.0)
    settings = Settings(solver=solver, rule=rule, max_iter=limit)
    solution = solve(problem, Gram(X, Kernel("rbf", gamma=0.1)), settings)
    K = kernel_matrix("rbf", X, X, gamma=0.1)
    assert solution.report.status == "iteration_limit"
    assert solution.report.iterations <= limit
    assert_feasible(solution.beta, problem)
    assert solution.report.violation == pytest.approx(violation(solution.beta, K, problem), rel=1e-3)
    assert solution.report.objective == pytest.approx(objective(solution.beta, K, problem), rel=1e-5, abs=1e-12)
    assert solution.report.objective < 0


@every_solver
def test_time_limit(solver, rule, noise, one_second):
    X, y = noise
    problem, seen = c_svc(y, C=1e6), []

    def run(**limit):
        gram = Gram(X, Kernel("rbf", gamma=0.01))
        return solve(problem, gram, Settings(solver=solver, rule=rule, tol=1e-9, callback=seen.append, **limit))

    run(max_iter=1)  # whatever has to be compiled is compiled now, in the same types
    seen.clear()
    started = time.perf_counter()
    solution = run(time_limit=1.0)
    elapsed = time.perf_counter() - started
    assert solution.report.status == "time_limit"
    assert len([progress for progress in seen if progress.seconds > 1.0]) <= 1
    assert elapsed < 1.0 + 3 * one_second
    assert 1.0 <= solution.report.seconds <= elapsed
    assert_feasible(solution.beta, problem)
    assert solution.report.objective < 0


@every_solver
def test_callback_sees_progress_and_may_stop_the_run(solver, rule, noise):
    X, y = noise
    seen = []

    def watch(progress):
        seen.append(progress)
        return len(seen) == 2

    problem = c_svc(y, C=1e3)
    settings = Settings(solver=solver, rule=rule, tol=1e-8, callback=watch)
    solution = solve(problem, Gram(X, Kernel("rbf", gamma=0.01)), settings)
    assert len(seen) == 2
    assert solution.report.status == "interrupted"
    assert_feasible(solution.beta, problem)


@every_solver
def test_callback_that_never_stops_changes_nothing(solver, rule, noise):
    X, y = noise[0][:400], noise[1][:400]
    calls = []
    problem = c_svc(y, C=10.0)

    def run(callback):
        settings = Settings(solver=solver, rule=rule, callback=callback)
        return solve(problem, Gram(X, Kernel("rbf", gamma=0.1)), settings)

    watched, alone = run(lambda progress: calls.append(progress)), run(None)
    assert calls
    assert watched.report.status == "converged"
    np.testing.assert_array_equal(watched.beta, alone.beta)


def test_error_in_a_callback_reaches_the_caller(noise):
    X, y = noise[0][:200], noise[1][:200]

    def broken(progress):
        raise ZeroDivisionError("from the callback")

    with pytest.raises(ZeroDivisionError, match="from the callback"):
        solve(c_svc(y, C=10.0), Gram(X, Kernel("rbf", gamma=0.1)), Settings(callback=broken))


@every_solver
@pytest.mark.parametrize("make", [lambda y: c_svc(y, C=10.0), lambda y: epsilon_svr(y, C=10.0, epsilon=0.1)])
def test_relative_gap_stops_a_run_that_violation_would_not(solver, rule, make, noise):
    X, y = noise[0][:400], noise[1][:400]
    problem = make(y)

    def run(**stopping):
        gram = Gram(X, Kernel("rbf", gamma=0.1), precision="double")
        return solve(problem, gram, Settings(solver=solver, rule=rule, **stopping)), gram

    by_gap, gram = run(tol=1e-9, gap_tol=1e-2)
    by_violation, _ = run(tol=1e-9)
    cert = certificate(problem, gram, by_gap.beta)
    assert by_gap.report.status == "converged"
    assert cert.gap <= 1e-2 * abs(cert.dual) * (1 + 1e-6)
    assert by_gap.report.iterations < by_violation.report.iterations
    assert by_gap.report.violation > 1e-9


@every_solver
def test_a_solved_problem_has_a_small_reported_gap(solver, rule, noise):
    X, y = noise[0][:300], noise[1][:300]
    problem, gram = nu_svc(y, nu=0.4), Gram(X, Kernel("rbf", gamma=0.1))
    solution = solve(problem, gram, Settings(solver=solver, rule=rule, tol=1e-6))
    cert = certificate(problem, gram, solution.beta)
    assert 0 <= cert.gap < 1e-4 * abs(cert.primal)
    assert solution.report.gap == pytest.approx(cert.gap, rel=1e-3, abs=1e-6)


def test_a_stall_on_an_active_set_leaves_no_residual_behind(noise, monkeypatch):
    """Rounding stops the work on some samples: the others must hear of it before anything is called converged."""
    X, y = noise
    problem, gram = c_svc(y, C=5.0), Gram(X, Kernel("rbf", gamma=0.1))
    whole, stalls = problem.n_variables, []

    def stalls_once(state, violation):
        stalls.append(state.problem.n_variables < whole and not any(stalls))
        return stalls[-1]

    monkeypatch.setattr(State, "is_lost", stalls_once)
    monkeypatch.setattr(conclusion, "GRACE_SECONDS", 0.0)  # as on large data: too late to make up for it
    solution = solve(problem, gram, Settings(solver="block"))
    assert any(stalls)
    assert solution.report.status == "converged"
    assert solution.report.violation <= 1e-3
    assert certificate(problem, gram, solution.beta).violation == pytest.approx(
        solution.report.violation, abs=1e-6
    )


@pytest.mark.parametrize("d", [10, 100])  # cheap kernel values, and expensive ones
def test_progress_on_an_active_set_survives_a_stop_while_it_is_taken_over(d, monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(16_000, d)), np.sign(rng.normal(size=16_000))
    problem, gram = c_svc(y, C=1.0), Gram(X, Kernel("rbf", gamma=0.1 / d))
    absorb = ActiveSet.absorb

    def cancelled_half_way(active):
        if active.whole.problem is problem:
            gram.team.cancelled = lambda: True
        absorb(active)

    monkeypatch.setattr(ActiveSet, "absorb", cancelled_half_way)
    solution = solve(problem, gram, Settings(solver="block"))
    assert solution.report.status == "time_limit"
    assert solution.report.n_support > 100
    assert_feasible(solution.beta, problem)
    expected = certificate(problem, gram, solution.beta).violation
    assert np.isnan(solution.report.violation) or solution.report.violation == pytest.approx(expected, rel=1e-3)


def test_a_second_try_adds_to_the_report_of_the_first(noise, monkeypatch):
    reports = []

    def claims_too_much(problem, gram, settings):
        tol = settings.tol if reports else 0.5
        solution = solve(problem, gram, replace(settings, tol=tol))
        reports.append(solution.report)
        return solution

    monkeypatch.setattr(trainer, "solve", claims_too_much)
    report = SVC(gamma=0.1, C=5.0).fit(*noise).report_
    assert len(reports) == 2
    assert report.violation <= 1e-3
    for name in ("iterations", "outer_steps"):
        assert getattr(report, name) == sum(getattr(one, name) for one in reports)
    assert report.seconds >= sum(one.seconds for one in reports)


@every_solver
def test_report_counts_the_work(solver, rule, noise):
    X, y = noise[0][:400], noise[1][:400]
    gram = Gram(X, Kernel("rbf", gamma=0.1))
    report = solve(c_svc(y, C=10.0), gram, Settings(solver=solver, rule=rule)).report
    assert report.solver == solver
    assert report.iterations > 0
    assert report.kernel_evaluations >= 400
    assert report.kernel_evaluations == gram.counts.evaluations
    assert (report.cache_hits, report.cache_misses) == (gram.counts.hits, gram.counts.misses)
    assert report.cache_bytes == gram.counts.bytes
    assert report.seconds > 0
    if solver == "smo":
        assert report.rule == rule


def test_auto_says_what_it_chose_and_why(noise):
    X, y = noise[0][:400], noise[1][:400]
    report = solve(c_svc(y), Gram(X, Kernel("rbf", gamma=0.1)), Settings()).report
    assert report.solver in ("block", "smo")
    assert report.reason
