"""Small problems in one compiled pass: the same guarantees as the general way, and the same answers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from hinge import Gram, Kernel, Settings, Sizes, certificate, solve
from hinge.dual.formulations import c_svc, epsilon_svr, nu_svc, nu_svr, one_class
from hinge.dual.optimality import doubt_of
from hinge.solvers.active_set.polish import polish
from hinge.solvers.many import Parts
from hinge.solvers.one_pass import Bars, Space, _restore_sums, fits_one_pass
from hinge.solvers.pairs.step import Point
from hinge.training.data import TrainingData
from hinge.training.formulation import Classification, NuClassification
from hinge.training.trainer import Trainer
from reference import assert_solved, duality_gap, minimise, objective, rounding, violation
from strategies import FORMULATIONS, cases

BOUNDED = tuple(f for f in FORMULATIONS if f != "hard_margin")
GENERAL = Sizes(one_pass=1)


@pytest.mark.parametrize("formulation", FORMULATIONS)
@examples(max_examples=15)
@given(data=st.data())
def test_answers_are_feasible_optimal_and_described_as_they_are(formulation, data):
    case = data.draw(cases(formulations=(formulation,)))
    problem, K, settings = case.problem, case.K, Settings(tol=1e-6)
    gram = case.gram(precision="double").stored()
    assert fits_one_pass(problem.n_variables, gram, settings)
    solution = solve(problem, gram, settings)
    assert_solved(solution, problem, K, 1e-6)
    beta, report, slack = solution.beta, solution.report, rounding(solution.beta, K, problem)
    best = objective(minimise(K, problem), K, problem)
    assert objective(beta, K, problem) == pytest.approx(best, rel=1e-6, abs=1e-6)
    assert report.objective == pytest.approx(objective(beta, K, problem), rel=1e-9, abs=1e-9)
    assert report.violation == pytest.approx(violation(beta, K, problem), abs=1e-9 + slack)
    if formulation in BOUNDED:
        assert report.gap == pytest.approx(duality_gap(beta, K, problem, solution.multipliers), rel=1e-6, abs=1e-8)
    coefficients = beta.reshape(-1, problem.n_samples).sum(axis=0)
    assert report.n_support == np.count_nonzero(coefficients)


def problems(n, C):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 4))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    weights = rng.integers(1, 3, n).astype(float)
    return X, {
        "c_svc": c_svc(y, C, weights),
        "no_threshold": c_svc(y, C, weights, fit_intercept=False),
        "nu_svc": nu_svc(y, 0.2, weights),
        "one_class": one_class(n, 0.3, weights),
        "epsilon_svr": epsilon_svr(X[:, 0], C, 0.05, weights),
        "nu_svr": nu_svr(X[:, 0], C, 0.4, weights),
    }


@pytest.mark.parametrize("kind", ["c_svc", "no_threshold", "nu_svc", "one_class", "epsilon_svr", "nu_svr"])
@pytest.mark.parametrize(("n", "C"), [(30, 1.0), (120, 5.0)])
def test_the_general_way_comes_to_the_same_answer(kind, n, C):
    X, of_kinds = problems(n, C)
    problem, gram = of_kinds[kind], Gram(X, Kernel("rbf", gamma=0.3), precision="double").stored()
    ours = solve(problem, gram, Settings())
    general = polish(problem, gram, solve(problem, gram, Settings(sizes=GENERAL)), 1e-3)
    assert ours.report.outer_steps <= 3  # the pass has settled it
    assert ours.report.violation <= 1e-10
    np.testing.assert_allclose(ours.residual, general.residual, atol=1e-9)
    np.testing.assert_allclose(ours.multipliers, general.multipliers, atol=1e-9)
    proof = certificate(problem, gram, ours.beta)
    assert (proof.box_error, proof.sum_error <= 1e-12 * (1 + np.abs(ours.beta).sum())) == (0.0, True)
    assert ours.report.violation + ours.report.rounding >= proof.violation


def test_room_is_kept_for_problems_that_are_not_much_smaller():
    room = Space.kept(100, 1, 1e-3)
    assert Space.kept(60, 1, 1e-3) is room
    assert Space.kept(60, 1, 1e-5).tol == 1e-5
    assert len(Space.kept(60, 2, 1e-3).search.top) == 2
    assert Space.kept(200, 2, 1e-3).slots.shape[1] == 200
    assert Space.kept(5, 2, 1e-3).slots.shape[1] == 5


def test_a_start_is_gone_on_from():
    X, of_kinds = problems(100, 5.0)
    gram = Gram(X, Kernel("rbf", gamma=0.3), precision="double").stored()
    there = solve(of_kinds["c_svc"], gram)
    again = solve(of_kinds["c_svc"], gram, Settings(start=there.beta))
    assert again.report.iterations <= 2 < there.report.iterations
    np.testing.assert_allclose(again.beta, there.beta, atol=1e-12)


def many_classes(formulation, **more):
    rng = np.random.default_rng(5)
    codes = np.repeat(np.arange(6), (4, 9, 15, 20, 30, 40))
    X = rng.normal(size=(len(codes), 3)) + 0.7 * rng.normal(size=(6, 3))[codes]
    order = rng.permutation(len(codes))
    X, codes = X[order], codes[order]
    weights = rng.integers(1, 3, len(codes)).astype(float)
    data = TrainingData(X, codes, weights, np.arange(len(codes)), X.shape)
    tasks = formulation(data, "ovo", np.linspace(0.5, 2.0, 6), **more).tasks()
    return tasks, lambda settings: _trained(X, tasks, settings)


def _trained(X, tasks, settings):
    trainer = Trainer(Gram(X, Kernel("rbf", gamma=0.5)), settings)
    trainer.prepare(tasks)
    return trainer.train(tasks)


@pytest.mark.parametrize(
    ("formulation", "more"),
    [
        (Classification, {"problem": lambda y, weights: c_svc(y, 3.0, weights)}),
        (Classification, {"problem": lambda y, weights: c_svc(y, 3.0, weights, fit_intercept=False)}),
        (NuClassification, {"nu": 0.15}),
    ],
)
def test_pairs_of_classes_together_are_the_machines_that_each_would_be_alone(formulation, more):
    tasks, train = many_classes(formulation, **more)
    together, alone = train(Settings()), train(Settings(sizes=GENERAL))
    assert len(together) == len(alone) == 15
    for number, (ours, theirs) in enumerate(zip(together, alone, strict=True)):
        np.testing.assert_array_equal(ours.samples, tasks[number].samples)
        np.testing.assert_allclose(ours.coefficients, theirs.coefficients, atol=1e-9)
        np.testing.assert_allclose(ours.decisions, theirs.decisions, atol=1e-9)
        assert ours.intercept == pytest.approx(theirs.intercept, abs=1e-9)
        assert ours.solution.report.status == "converged"
        assert ours.solution.report.violation <= 1e-10


def test_pairs_that_the_loop_does_not_settle_are_solved_by_the_general_way():
    tasks, train = many_classes(Classification, problem=lambda y, weights: c_svc(y, np.inf, weights))
    assert {machine.solution.report.status for machine in train(Settings(tol=1e-4))} <= {"converged", "infeasible"}
    assert len(tasks) == 15


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "laplacian"])
def test_the_bound_on_rounding_is_that_of_the_general_way(kernel):
    rng = np.random.default_rng(0)
    X = rng.normal(3.0, size=(60, 3))
    problem = c_svc(np.where(X[:, 0] + rng.normal(size=60) > 3, 1.0, -1.0), C=2.0)
    gram = Gram(X, Kernel(kernel, gamma=0.5, degree=2), precision="double").stored()
    assert fits_one_pass(60, gram, Settings())
    solution = solve(problem, gram, Settings())
    error = gram.rounding(problem.coefficients(solution.beta))
    expected = doubt_of(problem, solution.beta, solution.residual, error)
    assert solution.report.rounding == pytest.approx(expected, rel=0.05, abs=0.0)


def test_what_rounding_takes_from_a_sum_goes_to_the_free_variable_of_least_curvature():
    problem, beta = c_svc([1, -1, 1, 1], C=1.0), np.array([0.25, -0.5, 0.3, 0.0])
    _restore_sums(problem.sums, np.array([4.0, 2.0, 1.0, 0.5]), Point.of(problem, beta, np.zeros(4)))
    np.testing.assert_allclose(beta, [0.25, -0.5, 0.25, 0.0])


def test_a_problem_that_the_loop_did_not_come_to_is_not_begun():
    X, kinds = problems(30, 1.0)
    problem = kinds["c_svc"]
    parts = Parts.of(np.array([30]), np.arange(30), problem)
    assert not parts.is_begun(0, 1e-3)
    gram = Gram(X, Kernel("rbf"), precision="double").stored()
    parts.solve(np.array([0]), gram.matrix, Bars(*gram.error_terms()), 1e-3)
    assert parts.is_begun(0, 1e-3)
