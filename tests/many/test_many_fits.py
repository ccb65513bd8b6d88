"""Machines of many problems are those that the estimator fits to each, and progress is told."""

import io
import logging

import numpy as np
import pytest
from sklearn.exceptions import FitFailedWarning

from hinge import SVC, SVR
from hinge.kernel.kernels import Kernel
from hinge.many import cross_validate_many, fit_many
from hinge.training import progress


def problems(n_classes=2):
    rng = np.random.default_rng(1)
    y = np.arange(30) % n_classes
    X = rng.normal(size=(5, 30, 4))
    X[:, :, 0] += y
    return X, y


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_are_those_of_the_estimator(n_classes):
    X, y = problems(n_classes)
    fits = fit_many(SVC(kernel="linear"), X, y)
    for k, rows in enumerate(X):
        machine = SVC(kernel="linear").fit(rows, y)
        assert np.allclose(fits.weights[k], machine.coef_, atol=1e-8)
        assert np.allclose(fits.intercepts[k], machine.intercept_, atol=1e-8)
    assert fits.converged.all()
    assert fits.n_left == 0
    assert np.isnan(fits.gammas).all()


def test_coefficients_and_gamma_decide():
    X, y = problems()
    fits = fit_many(SVC(), X, y, C=[1.0, 10.0])
    assert fits.weights is None
    assert fits.coefficients.shape == (5, 2, 1, 30)
    for k, rows in enumerate(X):
        for c, C in enumerate((1.0, 10.0)):
            values = Kernel("rbf", gamma=fits.gammas[k, c]).matrix(rows)
            decisions = fits.coefficients[k, c, 0] @ values + fits.intercepts[k, c, 0]
            assert np.allclose(decisions, SVC(C=C).fit(rows, y).decision_function(rows), atol=1e-8)


def test_other_machines_fill_the_same_arrays():
    X, y = problems()
    fits = fit_many(SVR(kernel="linear"), X, y.astype(float))
    machine = SVR(kernel="linear").fit(X[3], y.astype(float))
    assert np.allclose(fits.weights[3], machine.coef_)
    assert fits.coefficients.shape == (5, 1, 30)
    assert fits.n_left == 5


def test_a_problem_that_fails_is_nan():
    X, y = problems()
    X[1, 0, 0] = np.inf
    with pytest.warns(FitFailedWarning, match="number 1"):
        fits = fit_many(SVC(), X, y)
    assert np.isnan(fits.coefficients[1]).all()
    assert np.isfinite(np.delete(fits.coefficients, 1, axis=0)).all()
    assert fits.statuses.tolist() == ["converged", "failed"] + ["converged"] * 3


def test_pairs_of_several_sizes_share_one_array():
    X, y = problems(3)
    fits = fit_many(SVC(kernel="linear"), [(X[0], y), (X[1, :20, :2], y[:20] > 0)])
    assert fits.weights.shape == (2, 3, 4)
    assert fits.coefficients.shape == (2, 3, 30)
    assert not fits.weights[1, 1:].any()
    assert not fits.weights[1, 0, 2:].any()


def test_the_log_tells_how_far_it_is(monkeypatch, caplog):
    monkeypatch.setattr(progress, "_LOG_PERIOD", -1.0)
    X, y = problems()
    with caplog.at_level(logging.INFO, "hinge"):
        cross_validate_many(SVC(), X, y, verbose=True)
    assert "5 of 5 problems done" in caplog.text


def test_a_terminal_shows_a_bar(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    X, y = problems()
    fit_many(SVC(), X, y, verbose=True)
    assert "problems" in terminal.getvalue()
