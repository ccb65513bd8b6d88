"""To scikit-learn's estimators and back, LIBSVM's private names, random streams of ensembles."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.ensemble import AdaBoostRegressor, BaggingRegressor
from sklearn.exceptions import NotFittedError

import hinge

RNG = np.random.default_rng(5)
X = 1.5 + RNG.normal(size=(60, 3))
CLASSES = {
    k: (X[:, 0] + RNG.normal(size=60) > np.quantile(X[:, 0], np.arange(1, k) / k)[:, None]).sum(0) for k in (2, 3)
}
NAMES = ["SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"]
COMMON = ["linear", "poly", "rbf", "sigmoid", "precomputed"]
PRIVATE = ["_dual_coef_", "_intercept_", "_n_support", "_probA", "_probB"]


def pair_of(name, **parameters):
    if name == "NuSVC":
        parameters["nu"] = 0.6
    return getattr(hinge, name)(**parameters), getattr(sklearn.svm, name)(**parameters)


def decisions(machine, X):
    return machine.decision_function(X) if hasattr(machine, "decision_function") else machine.predict(X)


def targets(name, k):
    return CLASSES[k] if name.endswith("SVC") else X[:, 0] + X[:, 1]


@pytest.mark.parametrize("name", NAMES)
def test_parameters_of_scikit_learn_are_accepted(name):
    theirs = getattr(sklearn.svm, name)()
    ours = getattr(hinge, name)(**theirs.get_params()).fit(X, targets(name, 2))
    assert not hasattr(ours, "predict_proba")


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix, sp.csr_array], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("kernel", COMMON)
@pytest.mark.parametrize("name", NAMES)
def test_decisions_are_equal_in_both_directions(name, kernel, container):
    if kernel == "precomputed":
        container = np.asarray
    data = container(X @ X.T if kernel == "precomputed" else X)
    for k in (2, 3) if name.endswith("SVC") else (2,):
        ours, theirs = pair_of(name, kernel=kernel, gamma=0.1)
        y = targets(name, k)
        ours.fit(data, y)
        theirs.fit(data, y)
        np.testing.assert_allclose(decisions(ours.as_sklearn(), data), decisions(ours, data), atol=1e-8)
        np.testing.assert_allclose(
            decisions(type(ours).from_sklearn(theirs), data), decisions(theirs, data), atol=1e-8
        )
        assert ours.as_sklearn()._sparse is theirs._sparse


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(("name", "k"), [("LinearSVC", 2), ("LinearSVC", 3), ("LinearSVR", 2)])
def test_linear_machines_travel_in_both_directions(name, k, fit_intercept):
    ours, theirs = pair_of(name, fit_intercept=fit_intercept, C=0.1)
    y = targets(name, k)
    assert ours.as_sklearn().get_params() == theirs.get_params()
    np.testing.assert_array_equal(decisions(ours.fit(X, y).as_sklearn(), X), decisions(ours, X))
    back = type(ours).from_sklearn(theirs.fit(X, y))
    np.testing.assert_array_equal(decisions(back, X), decisions(theirs, X))
    np.testing.assert_array_equal(back.predict(X), theirs.predict(X))
    np.testing.assert_array_equal(decisions(back.as_sklearn(), X), decisions(theirs, X))
    assert not hasattr(type(ours).from_sklearn(getattr(sklearn.svm, name)()), "coef_")


@pytest.mark.parametrize("name", NAMES)
def test_private_names_have_the_signs_and_shapes_of_libsvm(name):
    for k in (2, 3) if name.endswith("SVC") else (2,):
        ours, theirs = pair_of(name, tol=1e-8)
        ours.fit(X, targets(name, k))
        theirs.fit(X, targets(name, k))
        for attribute in PRIVATE:
            assert np.shape(getattr(ours, attribute)) == np.shape(getattr(theirs, attribute)), attribute
        assert ours._gamma == pytest.approx(theirs._gamma)
        np.testing.assert_allclose(ours._intercept_, theirs._intercept_, atol=1e-4)
        np.testing.assert_allclose(ours._dual_coef_, theirs._dual_coef_, rtol=1e-3, atol=1e-4)
        assert ours._sparse is theirs._sparse is False


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.filterwarnings("ignore:.*probability.*:FutureWarning")
def test_probabilities_travel(k):
    ours = hinge.SVC(probability=True, random_state=0).fit(X, CLASSES[k])
    theirs = ours.as_sklearn()
    np.testing.assert_allclose(theirs.predict_proba(X), ours.predict_proba(X), atol=0.005)
    back = hinge.SVC.from_sklearn(theirs)
    np.testing.assert_allclose(back.predict_proba(X), ours.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_unfitted_estimators_travel_too(name):
    ours = getattr(hinge, name)(kernel="poly", degree=2, cache_size="auto", max_iter=None)
    theirs = ours.as_sklearn()
    assert theirs.degree == 2
    with pytest.raises(NotFittedError):
        theirs.predict(X)
    assert getattr(hinge, name).from_sklearn(theirs).get_params()["degree"] == 2
    with pytest.raises(AttributeError):
        _ = ours._dual_coef_


def test_what_scikit_learn_has_not_is_refused_by_name():
    with pytest.raises(ValueError, match="laplacian"):
        hinge.SVC(kernel="laplacian").fit(X, CLASSES[2]).as_sklearn()
    with pytest.raises(ValueError, match="OneVsRestClassifier"):
        hinge.SVC(multi_class="ovr").fit(X, CLASSES[3]).as_sklearn()
    with pytest.raises(ValueError, match="kernel function of your own"):
        hinge.SVC(kernel=lambda a, b: a @ b.T).fit(X, CLASSES[2]).as_sklearn()
    with pytest.raises(TypeError, match=r"SVC\.from_sklearn takes scikit-learn's SVC, got a SVR"):
        hinge.SVC.from_sklearn(sklearn.svm.SVR())


def test_float32_machines_and_frames_travel():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X.astype(np.float32), columns=["a", "b", "c"])
    ours = hinge.SVC().fit(frame, CLASSES[3])
    theirs = ours.as_sklearn()
    assert list(theirs.feature_names_in_) == ["a", "b", "c"]
    np.testing.assert_allclose(theirs.decision_function(frame), ours.decision_function(frame), atol=1e-3)


@pytest.mark.parametrize("ensemble", [AdaBoostRegressor, BaggingRegressor])
def test_ensembles_draw_the_random_numbers_that_they_draw_with_scikit_learn(ensemble):
    y = X @ [1.0, 2.0, 3.0]
    ours, theirs = (
        ensemble(svr(C=100, gamma=0.2, tol=1e-6), n_estimators=5, random_state=0).fit(X, y).predict(X)
        for svr in (hinge.SVR, sklearn.svm.SVR)
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-4)


def test_offset_has_the_shape_of_scikit_learns():
    machine = hinge.OneClassSVM().fit(X)
    assert machine.offset_.shape == sklearn.svm.OneClassSVM().fit(X).offset_.shape
    np.testing.assert_array_equal(machine.offset_, -machine.intercept_)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_a_vanishing_weight_vector_is_told(scale):
    centred = scale * (X - X.mean(axis=0))
    with pytest.warns(UserWarning, match="the weight vector vanishes"):
        hinge.OneClassSVM(kernel="linear", tol=1e-9).fit(centred)
    hinge.OneClassSVM(kernel="rbf").fit(centred)
    hinge.OneClassSVM(kernel="linear", tol=1e-9).fit(centred + 5 * scale)
