"""Every algorithm of the laboratory: certified on what it covers, clear about what it does not."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from scipy.optimize import linprog

from hinge import Gram, Kernel, Settings, Tracing, lab
from hinge.dual.formulations import c_svc, epsilon_svr, nu_svc
from hinge.lab.algorithms import gain_rows, interior_point, mixed_rules
from hinge.lab.algorithms.cutting_planes import farthest
from hinge.lab.algorithms.single_pairs import rate_certifying
from hinge.lab.registry import PRODUCTION
from hinge.solvers.pairs.smo import solve_smo
from hinge.solvers.state import State
from reference import (
    assert_feasible,
    assert_solved,
    kernel_matrix,
    minimise,
    objective,
    residual,
    rounding,
    violation,
)
from strategies import FORMULATIONS, KERNELS, Case, cases, dual_problem

PRODUCTION_NAMES = [algorithm.name for algorithm in PRODUCTION]
HISTORIC_NAMES = [name for name in lab.ALGORITHMS if name not in PRODUCTION_NAMES]
BOUNDED = [f for f in FORMULATIONS if f != "hard_margin"]
ONE_GROUP = ["c_svc", "one_class", "svdd", "epsilon_svr"]
NO_GROUP = ["c_svc_without_threshold", "epsilon_svr_without_threshold"]
COVERED = {
    **dict.fromkeys(PRODUCTION_NAMES, FORMULATIONS),
    **dict.fromkeys(HISTORIC_NAMES, BOUNDED),
    **dict.fromkeys(["platt", "simple-svm", *(a.name for a in gain_rows.ALGORITHMS)], ONE_GROUP),
    **dict.fromkeys(["smo-complementarity", "rate-certifying", "greedy", "lasvm", "lasvm-one-pass"], ONE_GROUP),
    "platt-fixed-threshold": NO_GROUP,
}

# First-order methods and fixed orders crawl where variables are strongly coupled; they are not meant for more.
CRAWLERS = ("gradient-projection", "decomposition-gradient-projection", "projected-gradient", "coordinate-ascent")
CRAWLERS += ("platt-fixed-threshold", "platt", "svm-light", "admm", "dual-ascent", "cutting-planes", "lasvm")
CRAWLERS += ("smo-complementarity", "rate-certifying")

# What is not meant to end at the optimum, and whose objective may rise on the way.
UNFINISHED = ("lasvm-one-pass", "hmg-one-row-published", "hmg-two-rows-published")
FINISHED_NAMES = [name for name in HISTORIC_NAMES if name not in UNFINISHED]
RISING = ("projected-gradient", "admm", "dual-ascent")

# An interior point's accuracy is that of the objective; where the best is nothing, a violation is only its root.
TOLERANCES = {**dict.fromkeys(CRAWLERS, 1e-4), "interior-point": 1e-4, "decomposition-interior-point": 1e-4}


@pytest.mark.parametrize(
    ("name", "formulation"), [(name, formulation) for name in FINISHED_NAMES for formulation in COVERED[name]]
)
@examples(max_examples=8)
@given(data=st.data())
def test_solution_is_feasible_optimal_and_as_good_as_the_reference(name, formulation, data):
    kernels = tuple(sorted(set(KERNELS) - {"poly"})) if name in CRAWLERS else KERNELS
    case = data.draw(cases(formulations=(formulation,), kernels=kernels))
    few_rows = None if name in CRAWLERS else 3 * 8 * case.problem.n_samples
    gram = case.gram(cache_bytes=data.draw(st.sampled_from((None, few_rows))))
    tol = TOLERANCES.get(name, 1e-6)
    traced = lab.get(name).solve(case.problem, gram, Settings(tol=tol, time_limit=100))
    assert_solved(traced, case.problem, case.K, tol)
    best = objective(minimise(case.K, case.problem), case.K, case.problem)
    reached = objective(traced.beta, case.K, case.problem)
    assert reached == pytest.approx(best, rel=1e-6, abs=tol * max(1.0, np.abs(traced.beta).sum()))


@pytest.mark.parametrize("name", lab.ALGORITHMS)
@examples(max_examples=3)
@given(data=st.data())
def test_report_and_trace_describe_the_run(name, data):
    bounded = [formulation for formulation in COVERED[name] if formulation != "hard_margin"]
    case = data.draw(cases(formulations=bounded, kernels=("rbf", "laplacian")))
    traced = lab.get(name).solve(case.problem, case.gram(), Settings(tol=1e-3, time_limit=100, trace=Tracing()))
    report, beta, trace = traced.report, traced.beta, traced.report.trace
    slack = rounding(beta, case.K, case.problem)
    assert report.objective == pytest.approx(objective(beta, case.K, case.problem), rel=1e-7, abs=1e-9)
    assert report.violation == pytest.approx(violation(beta, case.K, case.problem), abs=1e-5 + slack)
    assert np.all(np.diff(trace.iterations) >= 0)
    assert np.all(np.diff(trace.kernel_evaluations) >= 0)
    assert np.all(np.diff(trace.seconds) >= 0)
    last = (report.iterations, report.kernel_evaluations, report.objective, report.violation)
    assert last == (trace.iterations[-1], trace.kernel_evaluations[-1], trace.objective[-1], trace.violation[-1])
    if name not in RISING:
        rounded = 1e-5 if report.precision == "single" else 1e-9  # the last point alone is computed anew
        assert np.all(np.diff(trace.objective) <= rounded * (1 + np.abs(trace.objective[1:])))


@pytest.mark.parametrize(
    ("name", "formulation"),
    [
        (name, formulation)
        for name in lab.ALGORITHMS
        for formulation in FORMULATIONS
        if formulation not in COVERED[name]
    ],
)
def test_what_is_not_covered_is_refused_clearly(name, formulation):
    X = np.arange(12.0).reshape(6, 2)
    problem = dual_problem(formulation, X, np.random.default_rng(0), C=1.0, weights=None)
    reason = "needs a finite C" if formulation == "hard_margin" and "platt-fixed" not in name else f"{name} covers"
    with pytest.raises(ValueError, match=f"{reason}.*block"):
        lab.get(name).solve(problem, Gram(X, Kernel("rbf", gamma=0.1)))


# ---------------------------------------------------------------------- an example small enough to solve by hand

FOUR_POINTS = np.array([[0.0], [1.0], [2.0], [3.0]])
FOUR_LABELS = np.array([-1, -1, 1, 1])


@pytest.mark.parametrize(
    "name", [name for name in lab.ALGORITHMS if name not in ("platt-fixed-threshold", *UNFINISHED)]
)
def test_four_points_on_a_line(name):
    """The margin lies between 1 and 2: w = 2, b = −3, and only the two points beside it carry weight."""
    gram = Gram(FOUR_POINTS, Kernel("linear"))
    solution = lab.get(name).solve(c_svc(FOUR_LABELS, C=10.0), gram, Settings(tol=1e-6))
    assert solution.beta == pytest.approx([0, -2, 2, 0], abs=1e-5)
    assert solution.multipliers == pytest.approx([-3], abs=1e-5)
    assert solution.report.objective == pytest.approx(-2)
    assert solution.report.solver in (name, "block", "smo")


@pytest.mark.parametrize("name", [name for name in lab.ALGORITHMS if set(NO_GROUP) <= set(COVERED[name])])
def test_four_points_without_threshold(name):
    """The points 0 and 1 would need w < 0: both are at their bound. The point 2 makes w = ½: 2 β₂ − 10 = ½."""
    gram = Gram(FOUR_POINTS, Kernel("linear"))
    problem = c_svc(FOUR_LABELS, C=10.0, fit_intercept=False)
    solution = lab.get(name).solve(problem, gram, Settings(tol=1e-6))
    assert solution.beta == pytest.approx([-10, -10, 5.25, 0], abs=1e-5)
    assert len(solution.multipliers) == 0


@pytest.mark.parametrize("name", FINISHED_NAMES)
def test_twins_of_both_classes_meet_their_bounds(name):
    """Two equal points of different classes: no curvature between them, so both go to C (Platt, eq. 19)."""
    X = np.array([[1.0], [1.0]])
    fit_intercept = name != "platt-fixed-threshold"
    problem = c_svc([1, -1], C=3.0, fit_intercept=fit_intercept)
    solution = lab.get(name).solve(problem, Gram(X, Kernel("rbf", gamma=1.0)))
    assert solution.beta == pytest.approx([3, -3], abs=1e-3)
    assert solution.report.converged


# ---------------------------------------------------------------------- limits, starts, mistakes


@pytest.fixture(scope="module")
def moons():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(200, 2))
    return X, np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=200) > 0, 1, -1)


def moons_problem(name, y):
    return c_svc(y, C=10.0, fit_intercept=name != "platt-fixed-threshold")


@pytest.mark.parametrize("name", HISTORIC_NAMES)
def test_limits_return_a_feasible_point(name, moons):
    X, y = moons
    problem = moons_problem(name, y)
    for limit, status in (({"max_iter": 1}, "iteration_limit"), ({"time_limit": 1e-9}, "time_limit")):
        solution = lab.get(name).solve(problem, Gram(X, Kernel("rbf", gamma=1.0)), Settings(**limit))
        assert_feasible(solution.beta, problem)
        one_step = name in ("interior-point", "chunking") and "max_iter" in limit  # the whole problem at once
        assert solution.report.status == ("converged" if one_step else status)


PAIR_BY_PAIR = ("smo-mvp", "smo-second-order", "smo-hmg", "hmg-one-row", "hmg-two-rows", "hmg-all-rows")


@pytest.mark.parametrize("name", PAIR_BY_PAIR)
def test_steps_are_counted_up_to_the_tolerance_and_not_beyond(name, moons):
    """A run that may take one step less ends above the tolerance: no step was taken for a sharper one."""
    X, y = moons
    problem, K = moons_problem(name, y), kernel_matrix("rbf", X, X, gamma=1.0)
    for tol in (1e-1, 1e-2, 1e-3, 1e-4):
        settings = Settings(tol=tol, shrinking=False)
        run = lab.get(name).solve(problem, Gram(X, Kernel("rbf", gamma=1.0)), settings)
        assert_solved(run, problem, K, tol)
        shorter = Settings(tol=tol, shrinking=False, max_iter=run.report.iterations - 1)
        before = lab.get(name).solve(problem, Gram(X, Kernel("rbf", gamma=1.0)), shorter)
        assert violation(before.beta, K, problem) > tol


@pytest.mark.parametrize("name", HISTORIC_NAMES)
def test_callback_stops_and_is_told_how_it_goes(name, moons):
    X, y = moons
    seen = []
    settings = Settings(callback=lambda progress: seen.append(progress) or True, trace=Tracing())
    traced = lab.get(name).solve(moons_problem(name, y), Gram(X, Kernel("rbf", gamma=1.0)), settings)
    assert traced.report.status == "interrupted"
    assert len(seen) == 1
    assert len(traced.report.trace) == 2


@pytest.mark.parametrize("name", HISTORIC_NAMES)
def test_the_solution_as_start_needs_no_steps(name, moons):
    X, y = moons
    problem, K = moons_problem(name, y), kernel_matrix("rbf", X, X, gamma=1.0)
    beta = minimise(K, problem)
    solution = lab.get(name).solve(problem, Gram(X, Kernel("rbf", gamma=1.0)), Settings(start=beta))
    assert solution.report.iterations == 0
    assert solution.residual == pytest.approx(residual(beta, K, problem), abs=1e-9)


@pytest.mark.parametrize(
    "name", ["platt", "simple-svm", "chunking", "svm-light", "projected-gradient", "admm", "dual-ascent", "lasvm"]
)
def test_any_start_is_as_good(name, moons):
    X, y = moons
    problem, K = moons_problem(name, y), kernel_matrix("rbf", X, X, gamma=1.0)
    start = np.random.default_rng(1).normal(size=len(y))
    settings = Settings(start=start, tol=1e-4)
    solution = lab.get(name).solve(problem, Gram(X, Kernel("rbf", gamma=1.0)), settings)
    assert_solved(solution, problem, K, 1e-4)


def test_one_pass_of_lasvm_is_nearly_as_good_as_the_optimum(moons):
    X, y = moons
    problem, K = moons_problem("lasvm-one-pass", y), kernel_matrix("rbf", X, X, gamma=1.0)
    solution = lab.get("lasvm-one-pass").solve(problem, Gram(X, Kernel("rbf", gamma=1.0)))
    assert solution.report.status == "iteration_limit"
    assert_feasible(solution.beta, problem)
    best = minimise(K, problem)
    decisions = [K @ beta - np.median(K @ beta - y) for beta in (solution.beta, best)]
    errors = [np.mean(np.sign(values) != y) for values in decisions]
    assert errors[0] <= errors[1] + 0.02
    assert objective(solution.beta, K, problem) < 0.9 * objective(best, K, problem)


@pytest.mark.parametrize(
    ("cache_bytes", "first", "last"), [(2**27, "second_order", "second_order"), (2**20, "hmg", "second_order")]
)
def test_the_rule_is_that_for_what_the_cache_holds(cache_bytes, first, last, monkeypatch):
    """A megabyte holds few rows of 1,500 samples, and all those of the samples that are worked on in the end."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 2))
    problem = c_svc(np.where(X[:, 0] + 0.3 * rng.normal(size=1500) > 0, 1, -1), C=30.0)
    rules = []

    def watched(state, tol, run, pair, most):
        rules.append((run.settings.rule, state.gram.n))
        return solve_smo(state, tol, run, pair, most)

    monkeypatch.setattr(mixed_rules, "solve_smo", watched)
    gram = Gram(X, Kernel("rbf", gamma=1.0), cache_bytes=cache_bytes, precision="double")
    assert lab.get("smo-by-cache").solve(problem, gram).report.converged
    fewest = min(n for _, n in rules)
    assert rules[0] == (first, 1500)
    assert {rule for rule, n in rules if n == fewest} == {last}


def test_the_farthest_vertex_is_found_by_filling_groups():
    """Of all feasible points the one of largest βᵀr, checked against a linear program."""
    rng = np.random.default_rng(0)
    for problem in (c_svc(np.where(rng.random(20) > 0.3, 1, -1), C=2.0), nu_svc([1, -1] * 8, nu=0.4)):
        r = rng.normal(size=problem.n_variables)
        groups = np.equal.outer(np.arange(problem.n_groups), problem.group)
        program = linprog(-r, A_eq=groups, b_eq=problem.sums, bounds=np.c_[problem.lo, problem.hi])
        vertex = farthest(problem, r)
        assert_feasible(vertex, problem)
        assert float(vertex @ r) == pytest.approx(-program.fun)


@pytest.mark.parametrize("seed", range(5))
def test_rate_certifying_pairs_are_the_best_of_all_pairs(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, 2))
    problem = c_svc(np.where(X[:, 0] > 0, 1, -1), C=1.0)
    beta = problem.near(rng.uniform(problem.lo, problem.hi))
    state = State(problem, Gram(X, Kernel("rbf", gamma=1.0)), beta, rng.normal(size=12))
    up, down = problem.hi - beta, beta - problem.lo
    merit = np.subtract.outer(state.residual, state.residual) * np.minimum.outer(up, down)
    i, j = rate_certifying(state)(state)
    assert merit[i, j] == pytest.approx(merit.max())


def test_linear_machines_need_no_rows_in_platts_method(moons):
    X, y = moons
    gram = Gram(X, Kernel("linear"))
    report = lab.get("platt").solve(c_svc(y, C=0.05), gram).report
    assert report.converged
    assert report.kernel_evaluations < 0.2 * report.iterations * len(y)  # a row is n values


def test_sparse_regression_through_weights():
    X = np.round(np.random.default_rng(3).normal(size=(30, 2)), 2)
    problem = epsilon_svr(X[:, 0] - X[:, 1], C=1.0, epsilon=0.1)
    solution = lab.get("platt").solve(problem, Gram(X, Kernel("linear")), Settings(tol=1e-4))
    assert_solved(solution, problem, X @ X.T, 1e-4)


def test_unknown_names_are_answered_by_the_known_ones():
    with pytest.raises(ValueError, match=r"no algorithm is called 'plat'; known are auto, block, .*platt"):
        lab.get("plat")


def test_a_problem_of_another_size_is_refused():
    with pytest.raises(ValueError, match="3 samples, the Gram matrix 4"):
        lab.get("osuna").solve(c_svc([1, -1, 1]), Gram(FOUR_POINTS, Kernel("linear")))


def test_two_groups_name_the_way_out():
    with pytest.raises(ValueError, match=r"one group and a finite C: .*this problem has two groups"):
        lab.get("platt").solve(nu_svc(FOUR_LABELS), Gram(FOUR_POINTS, Kernel("linear")))


def test_projected_gradients_do_not_go_round_in_a_circle():
    case = Case(
        formulation="nu_svr", storage="dense64", kernel="linear", spread="bits", weighting="none", n=13, d=1,
        C=1.0, gamma=2.0, coef0=0.0, degree=3, seed=698,
    )  # fmt: skip
    traced = lab.get("projected-gradient").solve(case.problem, case.gram(), Settings(tol=1e-4, max_iter=5000))
    assert_solved(traced, case.problem, case.K, 1e-4)


def test_an_interior_point_needs_no_width_of_every_box():
    case = Case(
        formulation="nu_svr", storage="dense64", kernel="rbf", spread="grid", weighting="some zero", n=40, d=3,
        C=10.0, gamma=0.5, coef0=0.0, degree=1, seed=25654,
    )  # fmt: skip
    assert (case.problem.lo == case.problem.hi).any()
    solution = lab.get("interior-point").solve(case.problem, case.gram(), Settings(tol=1e-5))
    assert_solved(solution, case.problem, case.K, 1e-5)


def test_without_clarabel_the_remedy_is_named(monkeypatch):
    def nothing(name):
        raise ImportError(name)

    monkeypatch.setattr(interior_point, "importlib", SimpleNamespace(import_module=nothing))
    with pytest.raises(ImportError, match=r"pip install 'hinge-svm\[lab\]"):
        lab.get("interior-point").solve(c_svc(FOUR_LABELS), Gram(FOUR_POINTS, Kernel("linear")))


def test_a_run_by_the_published_test_ends_at_a_short_step(moons):
    X, y = moons
    problem, gram = c_svc(y, C=5.0), Gram(X, Kernel("rbf", gamma=1.0), precision="double")
    settings = Settings(tol=1e-2, trace=Tracing(every_step=True, beta=True))
    report = lab.get("hmg-two-rows-published").solve(problem, gram, settings).report
    assert str(report.status) in ("iteration_limit", "converged")
    full = lab.get("hmg-two-rows").solve(problem, Gram(X, Kernel("rbf", gamma=1.0)), settings).report
    assert report.iterations < full.iterations
    assert report.violation > 1e-2 >= full.violation
    assert (
        np.abs(np.diff(report.trace.beta, axis=0)).max(axis=1)[:-1].min() >= 1e-2
    )  # every step but the end is long


def test_the_last_pair_is_followed_into_an_active_set():
    kept = np.array([1, 4, 6])
    assert gain_rows._followed(np.array([6, 1]), kept).tolist() == [2, 0]
    assert gain_rows._followed(np.array([6, 5]), kept).tolist() == [-1, -1]
    assert gain_rows._followed(np.array([-1, -1]), kept).tolist() == [-1, -1]
