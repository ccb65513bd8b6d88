"""Leave-one-out against brute force, and the ξα bound against leave-one-out."""

import lzma
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn import svm
from sklearn.base import clone
from sklearn.datasets import load_svmlight_file, make_classification, make_regression
from sklearn.model_selection import LeaveOneOut, cross_val_predict

from hinge import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from hinge.selection import bounds, leave_one_out, xi_alpha

TIGHT = 1e-7


def classes(n_classes=2, n=60, seed=0):
    X, y = make_classification(
        n, 5, n_informative=3, n_redundant=0, n_classes=n_classes, n_clusters_per_class=1, flip_y=0.15,
        random_state=seed,
    )  # fmt: skip
    return X, y


def load(name):
    with lzma.open(Path(os.environ["HINGE_DATA"]) / f"{name}.xz") as file:
        X, y = load_svmlight_file(file)
    return X.toarray(), y


def brute_force(estimator, X, y, **params):
    return cross_val_predict(clone(estimator), X, y, cv=LeaveOneOut(), **params)


CLASSIFIERS = {
    "svc": SVC(tol=TIGHT, gamma=0.3, C=2.0),
    "svc-expensive": SVC(tol=TIGHT, gamma=0.1, C=1e4),
    "svc-linear": SVC(tol=TIGHT, kernel="linear", C=0.5),
    "svc-no-threshold": SVC(tol=TIGHT, gamma=0.3, fit_intercept=False),
    "svc-weights": SVC(tol=TIGHT, gamma=0.3, class_weight={0: 3.0}),
    "svc-balanced": SVC(tol=TIGHT, gamma=0.3, class_weight="balanced"),
    "svc-scale": SVC(tol=TIGHT),
    "svc-ovr": SVC(tol=TIGHT, gamma=0.3, multi_class="ovr"),
    "svc-ties": SVC(tol=TIGHT, gamma=0.3, break_ties=True),
    "svc-squared": SVC(tol=TIGHT, gamma=0.3, loss="squared_hinge", class_weight={0: 3.0}),
    "nu-svc": NuSVC(tol=TIGHT, gamma=0.3, nu=0.3),
}


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_classifiers_answers_are_those_of_brute_force(name, n_classes):
    X, y = classes(n_classes, n=40 if name in ("svc-balanced", "svc-scale", "nu-svc") else 60)
    labels = np.array(["a", "b", "c"])[y] if name == "svc" else y
    result = leave_one_out(CLASSIFIERS[name], X, labels)
    expected = brute_force(CLASSIFIERS[name], X, labels)
    np.testing.assert_array_equal(result.predictions, expected)
    np.testing.assert_array_equal(result.errors, expected != labels)
    assert result.error == np.mean(expected != labels)
    assert result.violation <= 1e-6


@pytest.mark.parametrize(
    "estimator",
    [
        SVR(tol=TIGHT, gamma=0.1, C=5.0, epsilon=0.1),
        SVR(tol=TIGHT, gamma=0.1, C=5.0, loss="squared_epsilon_insensitive"),
        SVR(tol=TIGHT, gamma=0.1, C=1e4),
        NuSVR(tol=TIGHT, gamma=0.1),
    ],
)
def test_a_regressors_answers_are_those_of_brute_force(estimator):
    X, y = make_regression(50, 4, noise=5.0, random_state=0)
    y = y / np.abs(y).max()
    result = leave_one_out(estimator, X, y)
    expected = brute_force(estimator, X, y)
    np.testing.assert_allclose(result.predictions, expected, atol=1e-5)
    np.testing.assert_allclose(result.error, np.mean((y - expected) ** 2), atol=1e-5)


def test_a_one_class_machine():
    X, _ = classes()
    machine = OneClassSVM(tol=TIGHT, gamma=0.2, nu=0.25)
    result = leave_one_out(machine, X)
    assert result.errors is None
    expected = [clone(machine).fit(np.delete(X, t, axis=0)).predict(X[[t]])[0] for t in range(len(X))]
    np.testing.assert_array_equal(result.predictions, expected)


def test_weights_repeated_rows_and_a_class_of_one():
    X, y = classes(3)
    weights = np.random.default_rng(0).uniform(0.3, 2.0, len(y))
    weights[::9] = 0.0
    X[5], X[7] = X[3], X[3]  # of whatever class
    machine = SVC(tol=TIGHT, gamma=0.3, C=100.0)
    result = leave_one_out(machine, X, y, sample_weight=weights)
    expected = brute_force(machine, X, y, params={"sample_weight": weights})
    np.testing.assert_array_equal(result.predictions, expected)
    y = np.where(np.arange(len(y)) == 4, 7, y)
    np.testing.assert_array_equal(leave_one_out(machine, X, y).predictions, brute_force(machine, X, y))


def test_without_room_for_the_matrix():
    X, y = classes()
    small = SVC(tol=TIGHT, gamma=0.3, cache_size=0.01)
    np.testing.assert_array_equal(leave_one_out(small, X, y).predictions, brute_force(small, X, y))


@pytest.mark.data
@pytest.mark.parametrize(("name", "C", "gamma"), [("heart_scale", 1.0, 1 / 13), ("heart_scale", 64.0, 0.05),
                                                  ("diabetes_scale", 1.0, 1 / 8)])  # fmt: skip
def test_error_counts_of_real_data_are_those_of_brute_force(name, C, gamma):
    X, y = load(name)
    machine = SVC(C=C, gamma=gamma)
    result = leave_one_out(machine, X, y)
    K = np.exp(-gamma * ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2))
    n_errors = 0
    for t in range(len(y)):
        rest = np.delete(np.arange(len(y)), t)
        peer = svm.SVC(C=C, kernel="precomputed", tol=1e-5).fit(K[np.ix_(rest, rest)], y[rest])
        n_errors += int(peer.predict(K[[t]][:, rest])[0] != y[t])
    assert result.errors.sum() == n_errors
    assert result.n_refits < len(y)
    assert xi_alpha(machine, X, y).error >= result.error


@pytest.mark.parametrize("C", [0.01, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_xi_alpha_is_a_bound(C, kernel):
    X, y = classes(n=150)
    machine = SVC(C=C, kernel=kernel, gamma=0.3, tol=1e-6).fit(X, y)
    bound, exact = xi_alpha(machine, X, y), leave_one_out(machine, X, y)
    assert (bound.doubtful >= exact.errors).all()
    assert bound.error >= exact.error
    positive = exact.predictions == machine.classes_[1]
    truly = y == machine.classes_[1]
    assert bound.recall <= (positive & truly).sum() / truly.sum()
    if bound.precision == bound.precision and positive.any():
        assert bound.precision <= (positive & truly).sum() / positive.sum() + 1e-12


def test_xi_alpha_fits_what_is_not_fitted_and_refuses_what_it_is_not_about():
    X, y = classes()
    machine = SVC(gamma=0.3)
    fresh = xi_alpha(machine, X, y)
    assert not hasattr(machine, "classes_")
    assert fresh.error == xi_alpha(clone(machine).fit(X, y), X, y).error
    K = SVC(gamma=0.3).fit(X, y)._model.kernel.matrix(X)
    assert fresh.error == xi_alpha(SVC(kernel="precomputed"), K, y).error
    with pytest.raises(TypeError, match="SVC"):
        xi_alpha(SVR(), X, y)
    with pytest.raises(ValueError, match="two classes"):
        xi_alpha(SVC(), *classes(3))
    with pytest.raises(ValueError, match="training samples"):
        xi_alpha(clone(machine).fit(X, y), X[:9], y[:9])
    with pytest.raises(ValueError, match="probabilities"):
        leave_one_out(SVC(probability=True), X, y)


def test_the_spread_of_kernel_values_is_that_of_all_pairs(monkeypatch):
    """Samples at either end are furthest apart, and never among the few that are compared at one time."""
    X, y = np.linspace(0.0, 3.0, 40)[:, None], np.arange(40) % 2
    machine = SVC(gamma=0.5).fit(X, y)
    monkeypatch.setattr(bounds, "LAYOUT", replace(bounds.LAYOUT, flat_tile=(4, 8)))
    assert bounds._spread(machine, X) == pytest.approx(1.0 - np.exp(-0.5 * 9.0))
