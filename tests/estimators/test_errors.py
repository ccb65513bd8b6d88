"""Bad input: scikit-learn's error types, and messages that say what to do."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from hinge import SVC, SVR, NuSVC, NuSVR, OneClassSVM

X = np.random.default_rng(0).normal(size=(20, 3))
Y = np.arange(20) % 2
ALL = [SVC, NuSVC, SVR, NuSVR, OneClassSVM]


@pytest.mark.parametrize("estimator", ALL)
def test_unfitted(estimator):
    with pytest.raises(NotFittedError):
        estimator().predict(X)


@pytest.mark.parametrize("estimator", ALL)
def test_predicting_with_other_features_says_both_numbers(estimator):
    with pytest.raises(ValueError, match=r"X has 2 features.*expecting 3 features"):
        estimator().fit(X, Y).predict(X[:, :2])


@pytest.mark.parametrize("estimator", ALL)
def test_samples_of_negative_weight_are_left_out_with_a_warning(estimator):
    weight = np.ones(20)
    weight[4] = -1.0
    with pytest.warns(UserWarning, match=r"Negative values.*-1 at position 4"):
        machine = estimator().fit(X, Y, sample_weight=weight)
    absent = estimator().fit(X, Y, sample_weight=np.maximum(weight, 0.0))
    np.testing.assert_array_equal(machine.support_, absent.support_)
    np.testing.assert_array_equal(machine.predict(X), absent.predict(X))


@pytest.mark.parametrize("estimator", ALL)
def test_no_weight_above_zero(estimator):
    for weight in (0.0, -0.3):
        with pytest.raises(ValueError, match="Invalid input - all samples have zero or negative weights"):
            estimator().fit(X, Y, sample_weight=np.full(20, weight))


@pytest.mark.parametrize("labels", [Y, np.where(Y, "b", "a")], ids=["numbers", "text"])
def test_weights_that_leave_one_class_name_it_as_the_user_would(labels):
    left = labels.tolist()[0]
    with pytest.raises(ValueError, match=f"belong to the same class, {left!r}: there is nothing to tell apart"):
        SVC().fit(X, labels, sample_weight=(labels == left).astype(float))


@pytest.mark.parametrize("estimator", ALL)
def test_weights_of_the_wrong_length(estimator):
    with pytest.raises(ValueError, match=r"sample_weight.shape == \(3,\)"):
        estimator().fit(X, Y, sample_weight=np.ones(3))


@pytest.mark.parametrize("estimator", ALL)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_not_finite(estimator, value):
    bad = X.copy()
    bad[3, 1] = value
    with pytest.raises(ValueError, match=r"(NaN|infinity)"):
        estimator().fit(bad, Y)
    with pytest.raises(ValueError, match=r"(NaN|infinity)"):
        estimator().fit(X, Y).predict(bad)


@pytest.mark.parametrize("estimator", [SVR, NuSVR])
def test_targets_not_finite(estimator):
    with pytest.raises(ValueError, match="NaN"):
        estimator().fit(X, np.where(Y > 0, np.nan, 1.0))


@pytest.mark.parametrize("estimator", [SVC, NuSVC, SVR, NuSVR])
def test_mismatched_lengths(estimator):
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[20, 19\]"):
        estimator().fit(X, Y[:-1])


@pytest.mark.parametrize("estimator", [SVC, NuSVC])
def test_one_class_only(estimator):
    with pytest.raises(ValueError, match=r"number of classes has to be greater than one.*got 1 class"):
        estimator().fit(X, np.zeros(20))


def test_continuous_labels():
    with pytest.raises(ValueError, match="Unknown label type"):
        SVC().fit(X, X[:, 0])


@pytest.mark.parametrize("estimator", ALL)
def test_unknown_kernel_lists_the_known(estimator):
    with pytest.raises(
        ValueError, match=r"'kernel' parameter.*laplacian.*'rbf'|'kernel' parameter.*'rbf'.*laplacian"
    ):
        estimator(kernel="gauss").fit(X, Y)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("C", 0.0), ("C", -1.0), ("gamma", -1.0), ("degree", -1), ("tol", 0.0), ("max_iter", 0), ("cache_size", 0),
        ("time_limit", 0.0), ("solver", "newton"), ("precision", "half"), ("n_jobs", "all"), ("callback", 3),
        ("class_weight", "heavy"), ("multi_class", "crammer"),
    ],
)  # fmt: skip
def test_parameters_out_of_range(parameter, value):
    with pytest.raises(ValueError, match=f"'{parameter}' parameter"):
        SVC(**{parameter: value}).fit(X, Y)


def test_no_threads():
    with pytest.raises(ValueError, match="n_jobs = 0"):
        SVC(n_jobs=0).fit(X, Y)


def test_a_nu_that_leaves_no_margin_is_told():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 1)), rng.integers(0, 2, 60)
    with pytest.warns(UserWarning, match=r"nu = 0\.1 is smaller than these data allow.*Choose a larger nu"):
        NuSVC(nu=0.1, kernel="linear").fit(X, y)


def test_infeasible_nu_states_the_limit():
    y = np.r_[np.zeros(15), np.ones(5)]
    with pytest.raises(ValueError, match=r"specified nu is infeasible: nu = 0\.6.*largest feasible nu is 0\.5"):
        NuSVC(nu=0.6).fit(X, y)
    assert NuSVC(nu=0.5).fit(X, y).fit_status_ == 0
    with pytest.raises(ValueError, match="'nu' parameter"):
        NuSVC(nu=1.5).fit(X, y)


@pytest.mark.parametrize("estimator", ALL)
def test_precomputed_must_be_square(estimator):
    with pytest.raises(ValueError, match=r"must be a square matrix.*20x3"):
        estimator(kernel="precomputed").fit(X, Y)


@pytest.mark.parametrize("estimator", ALL)
def test_precomputed_rows_of_the_wrong_length(estimator):
    K = X @ X.T + 1
    with pytest.raises(ValueError, match=r"X.shape\[1\] = 3 should be equal to 20"):
        estimator(kernel="precomputed").fit(K, Y).predict(X)


def test_precomputed_should_be_symmetric():
    with pytest.warns(UserWarning, match=r"not symmetric.*symmetric part"):
        SVC(kernel="precomputed").fit(np.random.default_rng(0).normal(size=(20, 20)) + 9 * np.eye(20), Y)


def test_precomputed_cannot_be_sparse():
    with pytest.raises(TypeError, match="Sparse precomputed"):
        SVC(kernel="precomputed").fit(sp.csr_array(X @ X.T), Y)
    with pytest.raises(TypeError, match="Sparse precomputed"):
        SVC(kernel="precomputed").fit(X @ X.T, Y).predict(sp.csr_array(X @ X.T))


@pytest.mark.parametrize("estimator", ALL)
def test_strings_as_features(estimator):
    with pytest.raises(ValueError, match="could not convert"):
        estimator().fit(np.array([["a", "b"]] * 20), Y)


@pytest.mark.parametrize("estimator", ALL)
def test_one_dimensional_data(estimator):
    with pytest.raises(ValueError, match="Expected 2D array"):
        estimator().fit(X[:, 0], Y)


def test_chi2_needs_features_that_are_not_negative():
    with pytest.raises(ValueError, match="not negative"):
        SVC(kernel="chi2").fit(X, Y)


def test_callable_that_returns_the_wrong_shape():
    with pytest.raises(ValueError, match="shape"):
        SVC(kernel=lambda a, b: np.ones((2, 2))).fit(X, Y)


def test_callable_that_fails_in_a_thread():
    def broken(first, second):
        raise RuntimeError("no kernel today")

    with pytest.raises(RuntimeError, match="no kernel today"):
        SVC(kernel=broken).fit(X, np.arange(20) % 4)
