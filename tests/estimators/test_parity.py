"""Agreement with scikit-learn, at a tight tolerance of its own, on real data of every kind."""

import warnings

import numpy as np
import pytest
from sklearn import svm

import hinge

# name, estimator, parameters, rows, dense, weighted
CASES = [
    ("heart_scale", "SVC", {"C": 1.0}, None, True, False),
    ("australian_scale", "SVC", {"C": 10.0, "gamma": 0.1}, None, False, True),
    ("breast-cancer_scale", "SVC", {"kernel": "linear"}, None, True, False),
    ("ionosphere_scale", "SVC", {"kernel": "poly", "coef0": 1.0, "degree": 2}, None, True, True),
    ("a1a", "SVC", {"gamma": 0.05, "class_weight": "balanced"}, None, False, False),
    ("svmguide1", "SVC", {"gamma": "auto", "C": 0.5}, 1000, True, False),
    ("diabetes_scale", "NuSVC", {"nu": 0.4}, None, True, False),
    ("iris.scale", "SVC", {"decision_function_shape": "ovo"}, None, True, True),
    ("vowel.scale", "SVC", {"C": 4.0}, None, True, False),
    ("segment.scale", "SVC", {"C": 16.0, "gamma": 1.0}, 1000, False, False),
    ("letter.scale", "SVC", {"C": 16.0, "gamma": 1.0}, 2600, True, False),
    ("dna.scale", "SVC", {"kernel": "linear", "C": 0.05}, 1000, False, False),
    ("usps", "NuSVC", {"nu": 0.05, "gamma": 0.008}, 1000, True, False),
    ("housing_scale", "SVR", {"C": 10.0, "epsilon": 1.0}, None, True, True),
    ("abalone_scale", "SVR", {"C": 1.0, "kernel": "sigmoid", "gamma": 0.02}, 800, False, False),
    ("mpg", "NuSVR", {"nu": 0.4, "gamma": 1e-4, "C": 10.0}, None, True, False),
    ("bodyfat", "NuSVR", {"nu": 0.3, "C": 1.0}, None, True, False),
    ("breast-cancer_scale", "OneClassSVM", {"nu": 0.1}, None, True, True),
    ("a1a", "OneClassSVM", {"nu": 0.3, "gamma": 0.02}, None, False, False),
]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def pair(request, load_real):
    """The same machine fitted by both libraries, and the data."""
    name, estimator, parameters, n_rows, is_dense, is_weighted = request.param
    X, y = load_real(name, n_rows)
    X = X.toarray() if is_dense else X
    weight = np.random.default_rng(1).uniform(0.2, 2.0, len(y)) if is_weighted else None
    if is_weighted and parameters.get("gamma", "scale") == "scale":
        # scikit-learn's "scale" does not know of weights.
        scale = 1 / (X.shape[1] * (X.toarray() if not is_dense else X).var())
        parameters = {**parameters, "gamma": scale}
    ours = getattr(hinge, estimator)(**parameters, tol=1e-6).fit(X, y, sample_weight=weight)
    theirs = getattr(svm, estimator)(**parameters, tol=1e-7, cache_size=500).fit(X, y, sample_weight=weight)
    return ours, theirs, X, y


def decisions(machine, X):
    return machine.decision_function(X) if hasattr(machine, "decision_function") else machine.predict(X)


def test_agrees_with_sklearn(pair):
    ours, theirs, X, y = pair
    expected = decisions(theirs, X)
    tolerance = 1e-4 * np.ptp(expected)
    assert ours.fit_status_ == 0
    np.testing.assert_allclose(decisions(ours, X), expected, rtol=0, atol=tolerance)
    if expected.ndim == 1:
        is_tie = np.abs(expected) < tolerance
    else:
        ordered = np.sort(expected, axis=1)
        is_tie = (ordered[:, -1] - ordered[:, -2] < 2 / 3) | (np.abs(expected) < tolerance).any(axis=1)
    if hasattr(ours, "classes_") or hasattr(ours, "offset_"):
        np.testing.assert_array_equal(ours.predict(X)[~is_tie], theirs.predict(X)[~is_tie])
    if hasattr(ours, "classes_"):
        assert (ours.predict(X) != theirs.predict(X)).mean() < 0.002
    check_support(ours, theirs, X, y, tolerance)
    np.testing.assert_allclose(
        ours.intercept_, theirs.intercept_, rtol=0, atol=1e-3 * (1 + np.abs(theirs.intercept_).max())
    )


def check_support(ours, theirs, X, y, tolerance):
    """Support vectors that only one of them has are degenerate: they lie on the margin."""
    only_one = np.setxor1d(ours.support_, theirs.support_)
    assert len(only_one) < 0.05 * len(y)
    if len(only_one):
        assert distance_from_margin(ours, X[only_one], y[only_one]).max() <= tolerance


def distance_from_margin(machine, X, y):
    values = machine._model.decide(X)
    if hasattr(machine, "classes_"):
        return np.abs(np.abs(values) - 1).min(axis=1)
    if hasattr(machine, "offset_"):
        return np.abs(values[:, 0])
    epsilon = getattr(machine, "epsilon_", None) or machine.epsilon
    return np.abs(np.abs(values[:, 0] - y) - epsilon)


def test_same_layout_of_attributes():
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    for parameters in ({"kernel": "linear"}, {"gamma": 0.1}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            theirs = svm.SVC(**parameters, tol=1e-9).fit(X, y)
        ours = hinge.SVC(**parameters).fit(X, y)
        np.testing.assert_array_equal(ours.support_, theirs.support_)
        np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
        np.testing.assert_allclose(ours.support_vectors_, theirs.support_vectors_)
        np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=3e-4)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=3e-4)
        if parameters == {"kernel": "linear"}:
            np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=3e-4)
        assert ours.n_iter_.shape == theirs.n_iter_.shape
        assert ours.shape_fit_ == theirs.shape_fit_


@pytest.mark.parametrize("name", ["SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"])
def test_same_parameters_and_defaults(name):
    theirs, ours = getattr(svm, name)().get_params(), getattr(hinge, name)().get_params()
    differing = {key for key in theirs if key not in ours or ours[key] != theirs[key]}
    assert differing <= {"cache_size", "probability"}
    new = set(ours) - set(theirs)
    assert new <= {
        "solver", "precision", "n_jobs", "time_limit", "warm_start", "callback", "fit_intercept", "multi_class",
        "probability", "random_state", "trace", "stop", "loss", "gap_tol", "rule",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"])
def test_same_methods_and_attributes(name):
    X = 2 + np.random.default_rng(0).normal(size=(40, 3))
    y = (X[:, 0] > 2).astype(int)
    theirs = getattr(svm, name)(kernel="linear").fit(X, y)
    ours = getattr(hinge, name)(kernel="linear").fit(X, y)
    methods = {key for key in vars(svm).get(name).__dict__ | vars(type(theirs).__mro__[1]) if key[0] != "_"}
    fitted = {key for key in vars(theirs) if key.endswith("_") and key[0] != "_"} | {"coef_", "n_support_"}
    wanted = (methods | fitted) - {"probA_", "probB_", "unused_param", "predict_proba", "predict_log_proba"}
    assert {key for key in wanted if not hasattr(ours, key)} == set()
