"""`LinearSVC` and `LinearSVR`: scikit-learn's problems, solved to a proof."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning

import hinge
from hinge import LinearSVC, LinearSVR

STORAGES = {"dense": np.asarray, "csr": sp.csr_matrix, "float32": np.float32}
LOSSES = ("hinge", "squared_hinge")
REGRESSION_LOSSES = ("epsilon_insensitive", "squared_epsilon_insensitive")


def made(n=120, d=5, seed=0, n_classes=2):
    """Samples in eighths, which single precision holds, with classes and targets that overlap."""
    rng = np.random.default_rng(seed)
    X = np.round(8 * rng.normal(size=(n, d))) / 8
    noisy = X[:, 0] + 0.5 * X[:, 1] + 0.5 * rng.normal(size=n)
    return X, np.digitize(noisy, np.quantile(noisy, np.arange(1, n_classes) / n_classes)), noisy


def primal(machine, X, y, weights=1.0):
    """The objective that a machine of two classes or of numbers minimises, from its published weights."""
    coef, intercept = np.ravel(machine.coef_), float(np.ravel(machine.intercept_)[0])
    if isinstance(machine, LinearSVC):
        slack = np.maximum(0, 1 - np.where(y == machine.classes_[1], 1, -1) * (X @ coef + intercept))
    else:
        slack = np.maximum(0, np.abs(y - X @ coef - intercept) - machine.epsilon)
    losses = slack**2 if machine.loss.startswith("squared") else slack
    held = intercept / machine.intercept_scaling if machine.fit_intercept else 0.0
    return 0.5 * (coef @ coef + held**2) + machine.C * np.sum(weights * losses)


def assert_alike(machine, peer, share):
    scale = np.abs(peer.coef_).max()
    np.testing.assert_allclose(machine.coef_, peer.coef_, atol=share * scale, rtol=0)
    np.testing.assert_allclose(machine.intercept_, peer.intercept_, atol=share * scale, rtol=0)


@pytest.mark.parametrize("load", [load_iris, load_digits])
@pytest.mark.parametrize("options", [{}, {"multi_class": "crammer_singer"}, {"C": 0.1, "intercept_scaling": 5.0}])
def test_many_classes_agree_with_scikit_learn(load, options):
    X, y = load(return_X_y=True)
    X = X / X.max()
    machine = LinearSVC(tol=1e-6, **options).fit(X, y)
    peer = sklearn.svm.LinearSVC(tol=1e-9, max_iter=10**6, random_state=0, **options).fit(X, y)
    assert machine.report_.converged
    assert_alike(machine, peer, 1e-4)
    assert machine.coef_.shape == peer.coef_.shape
    np.testing.assert_allclose(machine.decision_function(X), peer.decision_function(X), atol=1e-3)
    assert np.mean(machine.predict(X) == peer.predict(X)) > 0.99  # of equal decisions either may be the largest


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_two_classes_agree_with_scikit_learn(loss, fit_intercept):
    X, y, _ = made()
    options = {"loss": loss, "fit_intercept": fit_intercept, "class_weight": {1: 2.0}}
    peer = sklearn.svm.LinearSVC(tol=1e-10, max_iter=10**6, dual=True, random_state=0, **options).fit(X, y)
    machine = LinearSVC(tol=1e-8, **options).fit(X, y)
    assert_alike(machine, peer, 1e-5)
    assert isinstance(machine.intercept_, type(peer.intercept_))


@pytest.mark.parametrize("loss", REGRESSION_LOSSES)
def test_regression_agrees_with_scikit_learn(loss):
    X, _, y = made()
    options = {"loss": loss, "epsilon": 0.1, "C": 0.5}
    peer = sklearn.svm.LinearSVR(tol=1e-10, max_iter=10**6, dual=True, random_state=0, **options).fit(X, y)
    machine = LinearSVR(tol=1e-8, **options).fit(X, y)
    assert_alike(machine, peer, 1e-5)
    assert machine.coef_.shape == peer.coef_.shape
    np.testing.assert_allclose(machine.predict(X), peer.predict(X), atol=1e-4)


def test_two_classes_in_one_problem_agree_with_scikit_learn():
    X, y, _ = made()
    peer = sklearn.svm.LinearSVC(multi_class="crammer_singer", tol=1e-9, max_iter=10**6, random_state=0).fit(X, y)
    machine = LinearSVC(multi_class="crammer_singer").fit(X, y)
    assert_alike(machine, peer, 1e-4)


@examples(max_examples=25)
@given(
    loss=st.sampled_from(LOSSES + REGRESSION_LOSSES),
    storage=st.sampled_from(sorted(STORAGES)),
    scaling=st.sampled_from((None, 1.0, 0.5, 8.0)),
    C=st.sampled_from((0.01, 1.0, 100.0)),
    d=st.integers(1, 8),
    seed=st.integers(0, 1000),
)
def test_the_gap_bounds_how_far_the_weights_are_from_optimal(loss, storage, scaling, C, d, seed):
    X, y, target = made(60, max(d, 2), seed)
    X = X[:, :d]
    kind, y = (LinearSVC, y) if loss in LOSSES else (LinearSVR, target)
    weights = np.random.default_rng(seed).integers(0, 3, len(y)).astype(float)
    options = {} if scaling is None else {"intercept_scaling": scaling}
    machine = kind(loss=loss, C=C, fit_intercept=scaling is not None, **options)
    machine.fit(STORAGES[storage](X), y, sample_weight=weights)
    assert machine.report_.converged
    assert machine.coef_.dtype == np.float64
    value = primal(machine, X, y, weights)
    assert value + machine.report_.objective == pytest.approx(machine.report_.gap, abs=1e-9 * (1 + value))
    repeated = np.repeat(np.arange(len(y)), weights.astype(int))
    again = kind(loss=loss, C=C, fit_intercept=scaling is not None, **options).fit(X[repeated], y[repeated])
    assert primal(again, X, y, weights) == pytest.approx(value, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("multi_class", ["ovr", "crammer_singer"])
@pytest.mark.parametrize("storage", STORAGES)
def test_weights_count_repetitions_and_weight_zero_is_absence(storage, multi_class):
    X, y, _ = made(n_classes=3)
    weights = np.random.default_rng(1).integers(0, 3, len(y))
    repeated = np.repeat(np.arange(len(y)), weights)
    weighted = LinearSVC(multi_class=multi_class).fit(STORAGES[storage](X), y, sample_weight=weights)
    whole = LinearSVC(multi_class=multi_class).fit(STORAGES[storage](X[repeated]), y[repeated])
    assert_alike(weighted, whole, 1e-6)


@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("options", "large"),
    [({"loss": "hinge"}, 1e6), ({"loss": "squared_hinge"}, 1e6), ({"multi_class": "crammer_singer"}, 1e6)],
)
def test_unscaled_features_are_no_reason_not_to_converge(options, large):
    X, y, _ = made(300, 6, n_classes=3)
    X = X * [1.0, large, 1.0, 30.0, 1e-3, 1.0] + [0.0, 0.0, large / 100, 0.0, 0.0, 1.0]
    machine = LinearSVC(**options).fit(X, y)
    assert machine.report_.converged
    report = machine.report_
    assert report.violation <= machine.tol or report.gap <= 1e-3 * machine.tol * -report.objective


@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("C", [100.0, 1e4])
@pytest.mark.parametrize("options", [{"loss": "hinge"}, {}, {"multi_class": "crammer_singer"}], ids=str)
def test_a_number_of_the_patient_beside_small_ones(load_real, options, C):
    X, y = load_real("breast-cancer")
    machine = LinearSVC(C=C, **options).fit(X, y)
    assert machine.report_.converged
    assert machine.score(X, y) > 0.9


@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("loss", REGRESSION_LOSSES)
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_targets_of_any_size_are_fitted_to_their_own_scale(loss, scale):
    X, _, y = made()
    C = 1.0 if loss == "squared_epsilon_insensitive" else scale
    machine = LinearSVR(loss=loss, C=C).fit(X, scale * y)
    expected = LinearSVR(loss=loss, C=1.0).fit(X, y)
    np.testing.assert_allclose(machine.coef_, scale * expected.coef_, rtol=1e-3)


@pytest.mark.parametrize("loss", LOSSES)
def test_an_infinite_scaling_leaves_the_intercept_free(loss):
    X, y, _ = made()
    free = LinearSVC(loss=loss, intercept_scaling=np.inf, tol=1e-8).fit(X + 30.0, y)
    nearly = LinearSVC(loss=loss, intercept_scaling=1e4, tol=1e-8).fit(X + 30.0, y)
    assert_alike(free, nearly, 1e-4)
    if loss == "hinge":
        kernel = hinge.SVC(kernel="linear", tol=1e-8).fit(X + 30.0, y)
        assert_alike(free, kernel, 1e-6)


def test_many_features_agree_with_few_threads_and_many():
    rng = np.random.default_rng(0)
    X = sp.random(300, 3000, density=0.02, format="csr", random_state=rng)
    y = rng.integers(0, 4, 300)
    one, two = (LinearSVC(n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    peer = sklearn.svm.LinearSVC(tol=1e-9, max_iter=10**5, random_state=0).fit(X, y)
    assert_alike(LinearSVC(tol=1e-7).fit(X, y), peer, 1e-4)


def test_a_stopped_fit_says_so_and_goes_on():
    X, y, _ = made(3000, 40)
    machine = LinearSVC(loss="hinge", warm_start=True, callback=lambda progress: progress.outer_steps >= 2)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        machine.fit(X, y)
    assert machine.fit_status_ == 1
    machine.set_params(callback=None).fit(X, y)
    assert machine.report_.converged
    assert_alike(machine, LinearSVC(loss="hinge").fit(X, y), 1e-2)


def test_a_limit_of_passes_is_reached_with_a_warning():
    X, y, _ = made(400, 2100)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        LinearSVC(loss="hinge", C=1e4, tol=1e-9, max_iter=1).fit(X, y)


def test_what_is_published():
    X, y, _ = made(n_classes=3)
    machine = LinearSVC().fit(X, y)
    assert (machine.n_features_in_, len(machine.reports_), machine.fit_status_) == (5, 3, 0)
    assert isinstance(machine.n_iter_, int)
    assert machine.n_iter_ >= 1
    sparse = pickle.loads(pickle.dumps(machine)).sparsify()
    np.testing.assert_array_equal(sparse.predict(X), machine.predict(X))
    assert set(sklearn.svm.LinearSVC().get_params()) <= set(machine.get_params())
    assert set(sklearn.svm.LinearSVR().get_params()) <= set(LinearSVR().get_params())
    for kind in ("LinearSVC", "LinearSVR"):
        theirs = getattr(sklearn.svm, kind)().get_params()
        assert getattr(hinge, kind)(**theirs).get_params().items() >= theirs.items()


def test_every_public_name_of_scikit_learn_is_here():
    assert set(sklearn.svm.__all__) <= set(hinge.__all__)
    assert hinge.l1_min_c is sklearn.svm.l1_min_c


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        (
            LinearSVC(penalty="l1", dual=False),
            r"penalty='l1' .*loss='squared_hinge', dual=False.*sklearn.svm.LinearSVC has it.*hinge.unpatch\(\)",
        ),
        (LinearSVC(loss="hinge", dual=False), "penalty='l2' and loss='hinge' is not supported when dual=False"),
        (LinearSVC(C=np.inf), "a squared loss needs a finite C"),
        (LinearSVC(multi_class="crammer_singer", intercept_scaling=np.inf), "finite intercept_scaling"),
        (LinearSVC(intercept_scaling=0.0), "intercept_scaling"),
    ],
)
def test_what_is_not_there_is_refused_with_a_reason(machine, message):
    X, y, _ = made()
    with pytest.raises(ValueError, match=message):
        machine.fit(X, y)
