"""`cross_validate` against scikit-learn's function of this name."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.model_selection import GroupKFold
from sklearn.model_selection import cross_validate as peer

from hinge import SVC, SVR
from hinge.selection import cross_validate

X, Y = make_classification(120, 6, n_informative=4, n_classes=3, n_clusters_per_class=1, random_state=0)


@pytest.mark.parametrize("scoring", [None, "f1_macro", ["accuracy", "f1_macro"]])
def test_scores_are_those_of_scikit_learn(scoring):
    machine = SVC(gamma=0.2, tol=1e-7)
    groups = np.arange(len(Y)) % 7
    options = {"cv": GroupKFold(4), "scoring": scoring, "groups": groups, "return_train_score": True}
    ours, theirs = cross_validate(machine, X, Y, **options), peer(machine, X, Y, **options)
    assert set(theirs) <= set(ours)
    for name, values in theirs.items():
        if not name.endswith("time"):
            np.testing.assert_allclose(ours[name], values, atol=1e-12, err_msg=name)
    assert ours["converged"].all()
    assert (ours["violation"] <= 1e-7).all()
    assert [report.status for report in ours["report"]] == ["converged"] * 4


def test_a_regressor_on_one_thread_and_on_two():
    y = X[:, 0] + 0.1 * Y
    one, two = (cross_validate(SVR(tol=1e-6), X, y, cv=5, n_jobs=n)["test_score"] for n in (1, 2))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_allclose(one, peer(SVR(tol=1e-6), X, y, cv=5)["test_score"], atol=1e-5)


def test_an_invalid_parameter_is_told():
    with pytest.raises(ValueError, match="C"):
        cross_validate(SVC(C=-1.0), X, Y, error_score="raise")


def test_folds_that_did_not_converge_say_so():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 3)), rng.integers(0, 2, 90)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = cross_validate(SVC(C=100.0, max_iter=1), X, y, cv=3)
    assert not results["converged"].any()
    assert (results["violation"] > 1e-3).all()
    assert cross_validate(SVC(), X, y, cv=3)["converged"].all()
