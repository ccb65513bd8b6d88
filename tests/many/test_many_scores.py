"""Scores of many problems are those of scikit-learn's `cross_val_score` with the same estimator, fold by fold."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GroupKFold, ShuffleSplit, StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hinge import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from hinge.kernel.kernels import KERNELS, kind_of
from hinge.many import CrossValidated, cross_validate_many

OF_FEATURES = [name for name in KERNELS if kind_of(name).has_features]


def volume(n_problems=6, n=45, n_features=7, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % n_classes)
    X = rng.normal(size=(n_problems, n, n_features))
    X[::2, :, :3] += 0.8 * y[:, None]
    return X, y


def one_by_one(estimator, X, y, **options):
    return np.array([cross_val_score(estimator, rows, y, **options) for rows in X])


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("kernel", OF_FEATURES)
def test_scores_are_those_of_cross_val_score(kernel, n_classes):
    X, y = volume(n_classes=n_classes)
    X = np.abs(X) if kind_of(kernel).needs_nonnegative else X
    machine = SVC(kernel=kernel)
    found = cross_validate_many(machine, X, y, cv=4)
    assert np.array_equal(found.scores, one_by_one(machine, X, y, cv=4))
    assert found.converged.all()
    assert found.violations.max() <= machine.tol
    if kernel != "sigmoid":  # which is not convex
        assert found.n_left == 0  # all of it in the compiled loop


@pytest.mark.parametrize(
    "options",
    [
        {"class_weight": "balanced"},
        {"class_weight": {0: 1.0, 1: 5.0, 2: 0.5}},
        {"gamma": "auto"},
        {"gamma": 0.03, "C": 50.0},
        {"kernel": "poly", "degree": 2, "coef0": 1.0},
        {"kernel": "linear", "fit_intercept": False},
        {"multi_class": "ovr"},
        {"break_ties": True},
        {"kernel": "linear", "C": np.inf},
        {"precision": "single"},
        {"probability": True, "random_state": 0},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_parameters_mean_what_they_mean_to_the_estimator(options):
    X, y = volume(n_problems=3, n=30, n_classes=3)
    machine = SVC(**options)
    assert np.array_equal(cross_validate_many(machine, X, y, cv=3).scores, one_by_one(machine, X, y, cv=3))


@pytest.mark.parametrize("cv", [GroupKFold(3), ShuffleSplit(4, test_size=0.31, random_state=1), 7, None], ids=str)
def test_any_splitter_will_do(cv):
    X, y = volume(n=44)
    groups = np.arange(44) // 6 if isinstance(cv, GroupKFold) else None
    found = cross_validate_many(SVC(), X, y, cv=cv, groups=groups)
    assert np.array_equal(found.scores, one_by_one(SVC(), X, y, cv=cv, groups=groups))


def test_columns_of_one_array_make_a_searchlight():
    X, y = volume(1, n_features=12)
    X = X[0]
    spheres = [[0, 1, 2], [5], [3, 4, 5, 6, 7, 8], np.arange(12) < 4]
    for kernel in ("linear", "rbf"):
        expected = [cross_val_score(SVC(kernel=kernel), X[:, sphere], y) for sphere in spheres]
        found = cross_validate_many(SVC(kernel=kernel), X, y, columns=spheres)
        assert np.array_equal(found.scores, expected)
        assert found.n_left == 0
    neighbours = sp.csr_matrix(
        np.array([np.isin(np.arange(12), np.flatnonzero(s) if len(s) == 12 else s) for s in spheres])
    )
    assert np.array_equal(cross_validate_many(SVC(), X, y, columns=neighbours).scores, found.scores)


def test_pairs_may_have_any_sizes():
    pairs = [volume(1, n, d, k, seed=n) for n, d, k in ((30, 3, 2), (41, 5, 3), (36, 2, 4))]
    pairs = [(X[0], y) for X, y in pairs]
    names = np.array(["a", "b"])
    pairs += [(sp.csr_matrix(pairs[0][0]), pairs[0][1]), (pairs[0][0].tolist(), names[pairs[0][1]].tolist())]
    found = cross_validate_many(SVC(), iter(pairs), cv=3)
    for scores, (X, y) in zip(found.scores, pairs, strict=True):
        X = np.array(X) if isinstance(X, list) else X
        assert np.array_equal(scores, cross_val_score(SVC(), X, y, cv=3))


def test_single_precision_samples_are_taken_as_they_are():
    X, y = volume()
    X = (1000 + X).astype(np.float32)
    assert np.array_equal(cross_validate_many(SVC(), X, y).scores, one_by_one(SVC(), X, y))


@given(
    st.integers(0, 10**6), st.sampled_from(OF_FEATURES), st.integers(2, 3), st.sampled_from([1.0, 1e-6, 1e6]),
    st.sampled_from([0.01, 1.0, 100.0]), st.booleans(),
)  # fmt: skip
@settings(max_examples=25, deadline=None)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scores_agree_whatever_the_data(seed, kernel, n_classes, scale, C, is_coarse):
    rng = np.random.default_rng(seed)
    X, y = volume(3, 24, 4, n_classes, seed)
    X = np.abs(X) if kind_of(kernel).needs_nonnegative else X
    if is_coarse:  # duplicates, constant columns, ties
        X = np.round(X) * (rng.random(4) < 0.7)
    machine = SVC(kernel=kernel, C=C)
    X = scale * X
    assert np.array_equal(cross_validate_many(machine, X, y, cv=3).scores, one_by_one(machine, X, y, cv=3))


def test_constant_samples_and_duplicates_are_no_trouble():
    X, y = volume(4)
    X[0] = 3.0
    X[1, :, 2] = -1e6
    X[2] = np.repeat(X[2, :5], 9, axis=0)
    for kernel in ("linear", "rbf", "poly"):
        machine = SVC(kernel=kernel)
        found = cross_validate_many(machine, X, y)
        assert np.array_equal(found.scores, one_by_one(machine, X, y))


def test_a_problem_that_fails_is_nan_and_says_why():
    X, y = volume()
    X[2, 3, 4] = np.nan
    with pytest.warns(FitFailedWarning, match="1 of 6 problems failed, number 2"):
        found = cross_validate_many(SVC(), X, y, cv=3, return_predictions=True)
    good = np.delete(np.arange(6), 2)
    assert np.isnan(found.scores[2]).all()
    assert (found.statuses[2] == "failed").all()
    assert list(found.errors) == [2]
    assert "NaN" in found.errors[2]
    assert np.array_equal(found.scores[good], one_by_one(SVC(), X[good], y, cv=3))
    assert np.isnan(found.predictions[2]).sum() > 0
    assert not np.isnan(found.predictions[good]).any()
    with pytest.warns(FitFailedWarning):
        assert (cross_validate_many(SVC(), X, y, cv=3, error_score=0.5).scores[2] == 0.5).all()
    with pytest.raises(ValueError, match="NaN") as raised:
        cross_validate_many(SVC(), X, y, cv=3, error_score="raise")
    assert "in problem 2" in raised.value.__notes__[0]


def test_negative_features_fail_only_where_they_are():
    X, y = volume()
    X = np.abs(X)
    X[4, 0, 0] = -1.0
    with pytest.warns(FitFailedWarning):
        found = cross_validate_many(SVC(kernel="chi2"), X, y, cv=3)
    assert list(found.errors) == [4]
    assert "not negative" in found.errors[4]


def test_a_fold_of_one_class_fails_alone():
    X, y = volume(2)
    one = np.flatnonzero(y == 0)
    folds = [(np.arange(30), np.arange(30, 45)), (one[:10], np.arange(10))]
    with pytest.warns(FitFailedWarning, match="number of classes"):
        found = cross_validate_many(SVC(), X, y, cv=folds)
    assert np.isfinite(found.scores[:, 0]).all()
    assert np.isnan(found.scores[:, 1]).all()
    assert found.statuses.tolist() == [["converged", "failed"]] * 2


def test_values_of_the_price_are_an_axis_of_their_own():
    X, y = volume(n_classes=3)
    found = cross_validate_many(SVC(), X, y, cv=3, C=[0.1, 1.0, 30.0], return_decisions=True)
    assert found.scores.shape == found.statuses.shape == (6, 3, 3)
    assert found.decisions.shape == (6, 3, 45, 3)
    for k, C in enumerate((0.1, 1.0, 30.0)):
        assert np.array_equal(found.scores[:, k], one_by_one(SVC(C=C), X, y, cv=3))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_predictions_and_decisions_are_those_of_cross_val_predict(n_classes):
    X, y = volume(n_classes=n_classes)
    labels = np.array(["no", "yes", "perhaps"])[y]
    folds = list(StratifiedKFold(3).split(X[0], y))
    found = cross_validate_many(SVC(), X, labels, cv=folds, return_predictions=True, return_decisions=True)
    for k, rows in enumerate(X):
        assert np.array_equal(found.predictions[k], cross_val_predict(SVC(), rows, labels, cv=folds))
        expected = cross_val_predict(SVC(), rows, labels, cv=folds, method="decision_function")
        assert np.allclose(found.decisions[k], expected, atol=1e-9)
    assert found.predictions.dtype == labels.dtype


def test_predictions_need_folds_that_overlap_nowhere():
    X, y = volume(2)
    with pytest.raises(ValueError, match="predictions need folds that hold no sample out twice"):
        cross_validate_many(SVC(), X, y, cv=ShuffleSplit(3, random_state=0), return_predictions=True)


@pytest.mark.parametrize("scoring", ["roc_auc", "f1_macro", "balanced_accuracy"])
def test_other_scorers_see_the_same_decisions(scoring):
    X, y = volume()
    found = cross_validate_many(SVC(), X, y, scoring=scoring)
    assert np.allclose(found.scores, one_by_one(SVC(), X, y, scoring=scoring), atol=1e-12)
    assert found.n_left == 0


@pytest.mark.parametrize("machine", [NuSVC(nu=0.3), SVR(), NuSVR(), OneClassSVM()], ids=lambda m: type(m).__name__)
def test_other_machines_are_fitted_one_by_one(machine):
    X, y = volume(2)
    y = 2 * y - 1
    scoring = "accuracy" if isinstance(machine, OneClassSVM) else None
    found = cross_validate_many(machine, X, y, cv=3, scoring=scoring)
    assert np.array_equal(found.scores, one_by_one(machine, X, y, cv=3, scoring=scoring))
    assert found.n_left == 6


def test_precomputed_kernels_are_split_on_both_axes():
    X, y = volume(2)
    K = X @ X.swapaxes(1, 2)
    machine = SVC(kernel="precomputed")
    assert np.array_equal(cross_validate_many(machine, K, y).scores, one_by_one(machine, K, y))


def test_results_do_not_depend_on_threads():
    X, y = volume(300, n_classes=3)
    one, two = (cross_validate_many(SVC(), X, y, n_jobs=n, return_decisions=True) for n in (1, 2))
    for name in ("scores", "violations", "decisions"):
        assert np.array_equal(getattr(one, name), getattr(two, name)), name


def test_no_problems_have_no_scores():
    assert cross_validate_many(SVC(), []).scores.shape == (0, 0)


def test_what_is_wrong_with_the_arguments_is_said():
    X, y = volume(2)
    with pytest.raises(TypeError, match="standardise X, for instance"):
        cross_validate_many(make_pipeline(StandardScaler(), SVC()), X, y)
    with pytest.raises(ValueError, match="n_problems, n_samples, n_features"):
        cross_validate_many(SVC(), X[0], y)
    with pytest.raises(ValueError, match="45 samples each, but y has 44"):
        cross_validate_many(SVC(), X, y[1:])
    with pytest.raises(TypeError, match="problem 0 is not a pair"):
        cross_validate_many(SVC(), X)
    with pytest.raises(ValueError, match="columns of problem 1 are not all among the 7"):
        cross_validate_many(SVC(), X[0], y, columns=[[0], [7]])
    with pytest.raises(ValueError, match="columns of problem 0 must be a list"):
        cross_validate_many(SVC(), X[0], y, columns=[[]])
    with pytest.raises(ValueError, match="'C' parameter"):
        cross_validate_many(SVC(), X, y, C=[1.0, -1.0])
    with pytest.raises(ValueError, match="NuSVC has no parameter C"):
        cross_validate_many(NuSVC(), X, y, C=[1.0])
    with pytest.raises(ValueError, match="one name or one function"):
        cross_validate_many(SVC(), X, y, scoring=["accuracy"])


def test_the_estimator_for_searchlights_cross_validates_itself():
    X, y = volume(1)
    groups = np.arange(45) % 5
    sphere = CrossValidated(SVC(kernel="linear"), cv=GroupKFold(5))
    assert not sphere.nilearn_searchlight_uses_cv
    score = sphere.fit(X[0], y, groups=groups).score(X[0], y, groups=groups)
    assert score == cross_val_score(SVC(kernel="linear"), X[0], y, cv=GroupKFold(5), groups=groups).mean()
    assert (sphere.statuses_ == "converged").all()
