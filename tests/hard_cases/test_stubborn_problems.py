"""Samples and features of very different sizes: what pair steps alone do not solve, or make worse."""

import warnings
from functools import partial

import numpy as np
import pytest
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning

import exact
import hinge
from hinge import SVC, Gram, Kernel, NuSVR, Settings, certificate, solve
from hinge.dual.formulations import c_svc, epsilon_svr, nu_svc, nu_svr, one_class
from hinge.kernel.factor import features_of
from hinge.solvers.pairs.loop import optimise
from hinge.solvers.pairs.rules import SECOND_ORDER
from hinge.solvers.pairs.step import Point, Rows
from hinge.training.tasks import Task
from hinge.training.trainer import Trainer
from reference import violation


def two_classes(n, d, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)


def exact_objective(problem, kernel_matrix, beta):
    """½ βᵀKβ − vᵀβ in long double."""
    beta = beta.astype(np.longdouble)
    coefficients = beta.reshape(-1, problem.n_samples).sum(axis=0)
    return float(0.5 * coefficients @ kernel_matrix @ coefficients - problem.v @ beta)


def polynomial(X, degree):
    X = X.astype(np.longdouble)
    return (X @ X.T + 1) ** degree


def trained(X, kernel, problem):
    (machine,) = Trainer(Gram(X, kernel)).train([Task(np.arange(len(X)), problem)])
    return machine.solution


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("case", ["linear, a row times 1e7", "poly, one cell -9999"])
def test_one_huge_sample_does_not_spoil_the_others(case, seed):
    X, y = two_classes(200, 3, seed)
    if case.startswith("linear"):
        X[0] *= 1e7
        kernel, K, theirs = Kernel("linear"), polynomial(X, 1) - 1, svm.SVC(kernel="linear", max_iter=100_000)
    else:
        X[5, 1] = -9999
        kernel, K = Kernel("poly", degree=3, gamma=1.0, coef0=1.0), polynomial(X, 3)
        theirs = svm.SVC(kernel="poly", gamma=1.0, coef0=1.0, max_iter=100_000)
    problem = c_svc(y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it has its steps, and no more
        theirs.fit(X, y)
    peer = np.zeros(len(y))
    peer[theirs.support_] = theirs.dual_coef_[0]
    least = exact_objective(problem, K, peer)
    for solver in ("auto", "smo") if kernel.label == "linear" else ("auto",):
        solution = solve(problem, Gram(X, kernel, precision="double"), Settings(solver=solver, max_iter=100_000))
        assert exact_objective(problem, K, solution.beta) <= least + 1e-4 * abs(least)
    ours = SVC(kernel=kernel.label, gamma=1.0, coef0=kernel.coef0)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", ConvergenceWarning
        )  # with values of 1e24 the tolerance is a matter of luck
        ours.fit(X, y)
    assert ours.score(X, y) >= theirs.score(X, y) - 0.02


@pytest.mark.parametrize(("factor", "C"), [(1e5, 1.0), (1e4, 1e2), (1e6, 1e-2)])
def test_a_huge_feature_does_not_make_a_small_fit_crawl(factor, C):
    X, y = two_classes(300, 10, 0)
    X[:, 3] *= factor
    model = SVC(kernel="linear", C=C).fit(X, y)
    assert model.report_.status == "converged"
    assert model.report_.iterations < 1_000_000
    beta = np.zeros(300)
    beta[model.support_] = model.dual_coef_[0]
    assert violation(beta, polynomial(X, 1) - 1, c_svc(y, C=C)) <= 2e-3


@pytest.mark.parametrize("formulation", ["epsilon_svr", "nu_svr", "nu_svc", "one_class"])
def test_other_formulations_do_not_crawl_either(formulation):
    X, y = two_classes(200, 6, 1)
    X[:, 1] *= 1e4
    target = X[:, 0] + 0.1 * y
    problem = {
        "epsilon_svr": epsilon_svr(target, C=10.0),
        "nu_svr": nu_svr(target, C=1.0),
        "nu_svc": nu_svc(y, nu=0.3),
        "one_class": one_class(200, nu=0.3),
    }[formulation]
    report = trained(X, Kernel("linear"), problem).report
    assert report.status == "converged"
    assert report.iterations < 1_000_000


def test_weights_over_many_decades_do_not_make_a_small_fit_crawl():
    X, _ = two_classes(60, 4, 2)
    weights = 10.0 ** np.random.default_rng(0).uniform(-12, 11.7, 60)
    for kernel in ("linear", "rbf", "poly"):
        model = NuSVR(kernel=kernel).fit(X, X[:, 0], sample_weight=weights)
        assert model.report_.iterations < 2_000_000


@pytest.mark.parametrize("degree", [2, 3])
@pytest.mark.parametrize("spoil", ["rows", "offset", "cell and row"])
def test_no_answer_is_worse_than_the_start(spoil, degree):
    X, y = two_classes(100, 5, 3)
    if spoil == "rows":
        X[::20] *= 1e4
    elif spoil == "offset":
        X += 1e6
    else:
        X[3, 2], X[4] = -9999, 1e4 * X[4]
    values = partial(exact.kernel_matrix, "poly", X, gamma=1.0, coef0=1.0, degree=degree)
    for problem in (c_svc(y, C=100.0), epsilon_svr(10 * X[:, 0], C=1e6, epsilon=0.1)):
        solution = trained(X, Kernel("poly", degree=degree, gamma=1.0, coef0=1.0), problem)
        scale = np.finfo(float).eps * float(np.abs(problem.v) @ np.abs(solution.beta))
        # Long double has too few digits for it: of samples near 1e6 it called an objective positive that is not.
        truth = exact.Truth(problem, lambda columns: values(columns=columns))
        assert truth.objective(solution.beta) <= scale
        assert (problem.lo <= solution.beta).all()
        assert (solution.beta <= problem.hi).all()


def test_a_pair_is_flat_by_its_own_size():
    """A third sample of 1e14 does not make a pair of curvature 2 flat."""
    K = np.diag([1.0, 1.0, 1e14])
    beta, r = np.zeros(3), np.array([1.0, -1.0, 0.0])
    point = Point(beta, r, np.full(3, -10.0), np.full(3, 10.0), np.zeros(3, np.int8), 1)
    outcome = optimise(point, Rows.of_matrix(K, K.diagonal().copy()), SECOND_ORDER, None, 1e-9, 1)
    np.testing.assert_array_equal(beta, [1.0, -1.0, 0.0])
    assert outcome.change == -1.0


def test_a_step_along_a_pair_whose_curvature_is_rounding_does_not_raise_the_objective():
    """Two samples of size 1e14 that differ by less than rounding tells: the true curvature may be one unit."""
    size, unit = 1e14, np.spacing(1e14)
    K = np.array([[size, size], [size, size + unit]])
    beta, r = np.zeros(2), np.array([1e-3, -1e-3])
    point = Point(beta, r, np.full(2, -1e6), np.full(2, 1e6), np.zeros(2, np.int8), 1)
    optimise(point, Rows.of_matrix(K, np.full(2, size)), SECOND_ORDER, None, 1e-9, 1)
    assert 0.5 * unit * beta[1] ** 2 - 1e-3 * (beta[0] - beta[1]) < 0


def test_features_of_a_matrix():
    X, _ = two_classes(40, 3, 4)
    X[0] *= 1e8
    K = np.asarray(polynomial(X, 2), dtype=float)
    A = features_of(K)
    assert A.shape == (40, 10)  # monomials of degree at most two
    size = np.sqrt(K.diagonal())
    np.testing.assert_allclose(A @ A.T / size / size[:, None], K / size / size[:, None], atol=1e-13)
    assert features_of(-np.eye(3)) is None
    assert features_of(np.array([[1.0, 2.0], [2.0, 1.0]])) is None


def test_the_answer_of_a_small_ill_conditioned_problem_has_its_certificate():
    X, y = two_classes(150, 4, 5)
    X[:, 0] *= 1e3
    X[7] *= 1e3
    problem = c_svc(y, C=10.0)
    solution = trained(X, Kernel("linear"), problem)
    cert = certificate(problem, Gram(X, Kernel("linear")), solution.beta)
    assert cert.box_error == 0
    assert cert.sum_error <= 1e-12 * np.abs(solution.beta).sum()
    if solution.report.status == hinge.Status.CONVERGED:
        assert cert.violation <= 2e-3


@pytest.mark.parametrize("seed", [21, 33, 45, 56])
def test_huge_samples_do_not_starve_the_small_ones(seed):
    """Two samples of zeros with opposite labels gain C each, whatever the features of the others are worth."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 80))
    X = rng.normal(size=(n, 3)) * (rng.random((n, 3)) < 0.5) * np.array([1e-5, 1.0, 1e5])
    y = np.sign(rng.normal(size=n))
    X[:2], y[:2] = 0.0, (1.0, -1.0)
    solution = solve(c_svc(y, C=100.0), Gram(X, Kernel("poly", gamma=1e9, degree=2)).stored())
    assert solution.report.objective < -199.9


@pytest.mark.parametrize("problem", [c_svc([1, -1, 1, -1], C=1e-8), c_svc([1, -1, 1, -1], C=1e3)])
@pytest.mark.parametrize("size", [1e150, 1e153])
def test_sizes_whose_inverse_is_no_number_warn_of_nothing(problem, size):
    X = np.array([[1.0], [0.5], [-1.0], [0.3]]) * size
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution = solve(problem, Gram(X, Kernel("linear")).stored())
    assert solution.report.status == "stalled"


def test_kernel_values_that_leave_no_room_for_a_pair_are_refused():
    """k(x, x) is a number; k(x, x) + k(y, y) − 2k(x, y) would not be."""
    X = np.array([[1.0], [0.5], [-1.0], [0.3]]) * 1e154
    with pytest.raises(ValueError, match="overflow"):
        Gram(X, Kernel("linear"))
