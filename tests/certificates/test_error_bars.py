"""A claim of convergence has an error bar: what says converged is, however much Kβ rounds in double precision."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import exact
from hinge import SVC, Gram, Kernel, Settings, certificate, solve
from hinge.dual import residuals
from hinge.dual.formulations import c_svc, epsilon_svr
from hinge.training.tasks import Task
from hinge.training.trainer import Trainer
from strategies import NAMED, suited


def true_violation(problem, X, beta, **kernel):
    """The violation in exact arithmetic."""
    if kernel["name"] == "linear":
        return exact.LinearTruth(problem, X).violation(beta)
    return exact.Truth(problem, lambda columns: exact.kernel_matrix(X=X, columns=columns, **kernel)).violation(
        beta
    )


def unscaled(n, d=6, seed=0):
    """Features whose sizes are many decades apart, as counters beside rates are."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(2.0, size=(n, d)) * 10.0 ** np.linspace(0, 6, d)
    return X, rng.normal(size=n) * 20 + 80


def test_linear_regression_on_unscaled_features_claims_what_exact_arithmetic_finds():
    X, y = unscaled(2300)
    problem = epsilon_svr(y, C=1.0, epsilon=0.1)
    solution = solve(problem, Gram(X, Kernel("linear")))
    found = true_violation(problem, X, solution.beta, name="linear")
    assert found == pytest.approx(solution.report.violation, abs=solution.report.rounding + 1e-9)
    assert solution.report.rounding < 1e-5
    assert not solution.report.converged or found <= 1.01e-3


@pytest.mark.parametrize("n", [150, 2100])
def test_one_column_of_ten_millions_is_never_called_converged_wrongly(n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 10))
    y = np.where(X[:, 1] + rng.normal(size=n) > 0, 1.0, -1.0)
    X[:, 0] *= 1e7
    problem = c_svc(y, C=1.0)
    gram = Gram(X, Kernel("linear"))
    (machine,) = Trainer(gram, Settings(max_iter=100_000)).train([Task(np.arange(n), problem)])
    report, beta = machine.solution.report, machine.solution.beta
    found = true_violation(problem, X, beta, name="linear")
    assert not report.converged or found <= 1.01e-3
    assert found <= report.violation + report.rounding + 1e-9


@pytest.mark.parametrize("name", [name for name in NAMED if name != "sigmoid"])
def test_a_certificate_bounds_its_own_rounding(name):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 3))
    X[:, 0] *= 1e6
    X = suited(name, X)
    kernel = Kernel(name, gamma=1e-6, coef0=1.0, degree=2)
    problem = c_svc(np.where(rng.random(40) < 0.5, 1.0, -1.0), C=1e9)
    gram = Gram(X, kernel)
    beta = solve(problem, gram, Settings(max_iter=20)).beta
    found = certificate(problem, gram, beta)
    truth = true_violation(problem, X, beta, name=name, gamma=kernel.gamma, coef0=1.0, degree=2)
    assert abs(found.violation - truth) <= found.rounding
    assert found.rounding <= 1e-6 * max(found.violation, 1.0)
    plain = gram.product(problem.coefficients(beta))
    assert np.abs(plain - gram.sharp_product(problem.coefficients(beta), np.arange(40)).sum(axis=0)).max() > 0


def test_where_rounding_cannot_be_lifted_the_status_is_uncertain_and_tells_the_interval(monkeypatch):
    # Samples of both classes at nearly the same place: coefficients of 1e8 that nearly cancel.
    X = np.repeat(np.arange(8.0), 2)[:, None] + np.tile([0.0, 1e-4], 8)[:, None]
    y = np.tile([-1, 1], 8)
    machine = SVC(C=1e12, gamma=1.0, tol=1e-4)
    assert machine.fit(X, y).report_.converged
    monkeypatch.setattr(residuals, "_MOST_SHARP_SECONDS", -1.0)
    with pytest.warns(ConvergenceWarning, match=r"uncertain .* between .* and .*, depending on rounding errors"):
        report = machine.fit(X, y).report_
    assert report.status == "uncertain"
    assert not report.converged
    assert report.violation <= 1e-4 < report.violation + report.rounding


def test_the_rounding_of_an_ordinary_fit_is_far_below_its_tolerance():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 5))
    y = X[:, 0] * X[:, 1] > 0
    for kernel in NAMED:
        report = SVC(kernel=kernel, C=10.0).fit(suited(kernel, X), y).report_
        assert report.converged
        assert 0 <= report.rounding < 1e-8


def test_what_partial_sums_lose_is_part_of_a_change():
    """Two large variables of a sample leave it, a tiny one stays: 1e-17 more or less is a lot to a huge sample."""
    problem = epsilon_svr([0.0, 0.0], C=1.0, epsilon=0.0)
    gram = Gram(np.diag([2.0**50, 1.0]), Kernel("precomputed"))
    size, tiny = 0.3667043322576801, 2.0**-51 + 2.0**-60
    before, after = np.array([size, 0.0, -size, 0.0]), np.array([0.0, 0.0, -tiny, 0.0])
    former = residuals.Reference(before, problem.v.copy(), np.zeros(2), np.ones(2, dtype=bool))
    found, bound = residuals.residual_since(former, problem, gram, after, np.arange(2), 1e-3)
    assert abs(found[0, 0] - (0.5 + 2.0**-10)) <= bound[0] < 1e-9
