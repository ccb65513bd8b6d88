"""The same optimum as LIBSVM: five formulations, its four kernels and a precomputed matrix."""

import numpy as np
import pytest

import peers
from hinge import SVC, Gram, Kernel, Settings, solve
from hinge.dual.formulations import c_svc, epsilon_svr, nu_svc, nu_svr, one_class
from reference import assert_solved, is_convex, kernel_matrix, objective

KERNELS = {
    "linear": {},
    "poly": {"gamma": 0.3, "coef0": 1.0, "degree": 3},
    "rbf": {"gamma": 0.3},
    "sigmoid": {"gamma": 0.03, "coef0": -2.0},  # convex on these samples
    "precomputed": {},
}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(60, 4)) + 1.0  # off the origin: a linear one-class problem is not trivial
    labels = np.sign(X[:, 0] + X[:, 1] - 2 + 0.4 * rng.normal(size=60))
    targets = np.sin(X[:, 0]) + 0.2 * rng.normal(size=60)
    return X, labels, targets


def make(formulation, labels, targets, C):
    """The labels or targets LIBSVM is given, its options, and the same problem here."""
    if formulation == "c_svc":
        return labels, {"C": C}, c_svc(labels, C=C)
    if formulation == "nu_svc":
        return labels, {"nu": 0.3}, nu_svc(labels, nu=0.3)
    if formulation == "one_class":
        return labels, {"nu": 0.3}, one_class(len(labels), nu=0.3)
    if formulation == "epsilon_svr":
        return targets, {"C": C, "epsilon": 0.1}, epsilon_svr(targets, C=C, epsilon=0.1)
    return targets, {"C": C, "nu": 0.4}, nu_svr(targets, C=C, nu=0.4)


@pytest.mark.parametrize("solver", ["block", "smo"])
@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("formulation", peers.TYPES)
def test_objective_and_decisions_agree(formulation, kernel, C, solver, data):
    X, labels, targets = data
    y, options, problem = make(formulation, labels, targets, C)
    parameters = KERNELS[kernel]
    K = kernel_matrix("rbf", X, X, gamma=0.7) if kernel == "precomputed" else None
    gram = Gram(X if K is None else K, Kernel(kernel, **parameters))
    K = kernel_matrix(kernel, X, X, **parameters) if K is None else K
    assert is_convex(K, problem)

    peer = peers.train(formulation, X, y, kernel, K, **options, **parameters)
    solution = solve(problem, gram, Settings(solver=solver, tol=1e-7))

    assert_solved(solution, problem, K, 1e-7)
    assert objective(solution.beta, K, problem) == pytest.approx(peer.objective, rel=1e-6)
    decisions = K @ coefficients(formulation, solution, len(y)) + intercept(formulation, solution)
    expected = K @ peer.coef + peer.intercept
    if not has_free_variable_in_each_group(solution.beta, problem):  # then only differences are determined
        decisions, expected = decisions - decisions.mean(), expected - expected.mean()
    np.testing.assert_allclose(decisions, expected, rtol=0, atol=3e-4 * np.abs(expected).max())


def has_free_variable_in_each_group(beta, problem):
    inside = 1e-9 * (problem.hi - problem.lo)
    free = (problem.lo + inside < beta) & (beta < problem.hi - inside)
    return len(np.unique(problem.group[free])) == len(problem.sums)


def coefficients(formulation, solution, n):
    beta = solution.beta
    if formulation == "nu_svc":
        return beta / margin(solution)
    return beta[:n] + beta[n:] if formulation.endswith("svr") else beta


def intercept(formulation, solution):
    """The multiplier, or the middle of a pair of them, in the scale of the coefficients."""
    middle = float(np.mean(solution.multipliers))
    return middle / margin(solution) if formulation == "nu_svc" else middle


def margin(solution):
    positive, negative = solution.multipliers
    return abs(positive - negative) / 2


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid"])
def test_classifier_decides_like_libsvm(kernel, data):
    X, labels, _ = data
    parameters = {"gamma": 0.3} | KERNELS[kernel]
    peer = peers.train("c_svc", X, labels, kernel, kernel_matrix(kernel, X, X, **parameters), **parameters)
    model = SVC(kernel=kernel, tol=1e-7, **parameters).fit(X, labels)
    unseen = np.random.default_rng(8).normal(size=(30, 4)) + 1.0
    expected = kernel_matrix(kernel, unseen, X, **parameters) @ peer.coef + peer.intercept
    np.testing.assert_allclose(
        model.decision_function(unseen), expected, rtol=0, atol=1e-5 * np.abs(expected).max()
    )
    np.testing.assert_array_equal(model.predict(unseen), np.where(expected > 0, 1, -1))
    np.testing.assert_array_equal(np.sort(model.support_), np.flatnonzero(peer.coef))
    assert model.intercept_[0] == pytest.approx(peer.intercept, abs=1e-5)
