"""Life among other tools: pickles, clones, pipelines, searches, frames, sparse formats, threads."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pandas
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hinge import SVC, SVR, Gram, NuSVC, NuSVR, OneClassSVM, certificate
from hinge.dual.formulations import c_svc

X, Y = load_iris(return_X_y=True)
ALL = [SVC(), NuSVC(nu=0.3), SVR(), NuSVR(), OneClassSVM()]


def outputs(machine, X):
    return machine.predict(X) if not hasattr(machine, "decision_function") else machine.decision_function(X)


@pytest.mark.parametrize("machine", ALL, ids=str)
def test_pickle_joblib_and_clone(machine, tmp_path):
    machine.fit(X, Y)
    expected = outputs(machine, X)
    np.testing.assert_array_equal(outputs(pickle.loads(pickle.dumps(machine)), X), expected)
    joblib.dump(machine, tmp_path / "machine")
    np.testing.assert_array_equal(outputs(joblib.load(tmp_path / "machine"), X), expected)
    np.testing.assert_array_equal(outputs(clone(machine).fit(X, Y), X), expected)


@pytest.mark.parametrize("machine", ALL, ids=str)
def test_dense_and_sparse_models_take_both(machine):
    dense = outputs(clone(machine).fit(X, Y), X)
    for container in (sp.csr_matrix, sp.csr_array, sp.csc_array, sp.coo_matrix):
        fitted = clone(machine).fit(container(X), Y)
        np.testing.assert_allclose(outputs(fitted, X), dense, atol=1e-6)
        np.testing.assert_allclose(outputs(clone(machine).fit(X, Y), container(X)), dense, atol=1e-6)


@pytest.mark.parametrize("machine", ALL, ids=str)
def test_int64_indices(machine):
    matrix = sp.csr_array(X)
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    fitted = clone(machine).fit(matrix, Y)
    np.testing.assert_allclose(outputs(fitted, matrix), outputs(clone(machine).fit(X, Y), X), atol=1e-6)


@pytest.mark.parametrize("machine", ALL, ids=str)
def test_float32_stays_float32(machine):
    fitted = clone(machine).fit(X.astype(np.float32), Y)
    assert fitted.support_vectors_.dtype == np.float32
    exact = outputs(clone(machine).fit(X, Y), X)
    np.testing.assert_allclose(outputs(fitted, X.astype(np.float32)), exact, atol=1e-3 * np.ptp(exact))


def test_feature_names_and_frames():
    frame = pandas.DataFrame(X, columns=["a", "b", "c", "d"])
    machine = SVC().fit(frame, pandas.Series(Y))
    assert list(machine.feature_names_in_) == ["a", "b", "c", "d"]
    np.testing.assert_array_equal(machine.predict(frame), SVC().fit(X, Y).predict(X))
    with pytest.raises(ValueError, match="feature names"):
        machine.predict(frame[["b", "a", "c", "d"]])


def test_pipeline_with_set_output():
    pipeline = make_pipeline(StandardScaler(), SVC()).set_output(transform="pandas").fit(X, Y)
    assert pipeline.score(X, Y) > 0.95


def test_text_pipeline():
    texts = ["good movie", "great fun", "really good", "bad movie", "so boring", "really bad"]
    pipeline = make_pipeline(TfidfVectorizer(), SVC(kernel="linear")).fit(texts, [1, 1, 1, 0, 0, 0])
    assert list(pipeline.predict(["good fun", "boring and bad"])) == [1, 0]


def test_grid_search_slices_a_precomputed_kernel():
    search = GridSearchCV(SVC(kernel="precomputed"), {"C": [0.1, 1.0]}, cv=3).fit(X @ X.T, Y)
    assert search.best_score_ > 0.9


def test_searches_and_meta_estimators():
    with joblib.parallel_config("threading"):
        assert cross_val_score(SVC(), X, Y, cv=3, n_jobs=2).mean() > 0.9
    assert OneVsRestClassifier(SVC()).fit(X, Y).score(X, Y) > 0.9
    both = MultiOutputRegressor(SVR()).fit(X[:, :2], X[:, 2:])
    assert both.predict(X[:, :2]).shape == (150, 2)
    calibrated = CalibratedClassifierCV(SVC(), ensemble=False).fit(X, Y)
    assert calibrated.predict_proba(X).shape == (150, 3)
    assert cross_val_predict(SVC(probability=True, random_state=0), X, Y, method="predict_proba").shape == (150, 3)


def test_metadata_routing():
    weight = np.ones(150)
    with sklearn.config_context(enable_metadata_routing=True):
        machine = SVC().set_fit_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), machine)
        pipeline.fit(X, Y, sample_weight=weight)
    assert pipeline.score(X, Y) > 0.95


def test_html_repr():
    assert "SVC" in SVC().fit(X, Y)._repr_html_()


def test_fits_from_several_threads_at_once():
    expected = SVC().fit(X, Y).decision_function(X)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: SVC().fit(X, Y).decision_function(X), range(8)))
    for values in found:
        np.testing.assert_allclose(values, expected, atol=1e-9)


@pytest.mark.parametrize("machine", [SVC(), SVC(multi_class="ovr"), SVR()], ids=str)
def test_number_of_threads_and_cache_do_not_matter(machine):
    expected = outputs(clone(machine).fit(X, Y), X)
    for parameters in (
        {"n_jobs": 1}, {"n_jobs": 3}, {"n_jobs": -1}, {"cache_size": 0.01}, {"cache_size": 4000},
        {"shrinking": False}, {"solver": "smo"}, {"solver": "block"}, {"precision": "double"},
    ):  # fmt: skip
        found = outputs(clone(machine).set_params(**parameters).fit(X, Y), X)
        np.testing.assert_allclose(found, expected, atol=1e-7, err_msg=str(parameters))


def test_order_of_samples_does_not_matter():
    order = np.random.default_rng(0).permutation(150)
    np.testing.assert_allclose(
        NuSVC(nu=0.3).fit(X[order], Y[order]).decision_function(X),
        NuSVC(nu=0.3).fit(X, Y).decision_function(X),
        atol=1e-7,
    )


def test_report_explains_itself():
    machine = SVC().fit(X, Y)
    report = machine.report_
    assert report.converged
    assert report.kernel_evaluations > 0
    assert len(machine.reports_) == 3
    assert report.iterations == machine.n_iter_.sum()
    assert report.as_dict()["status"] == "converged"
    assert report.n_support == len(machine.support_)


def test_unscaled_data_and_a_large_price_are_solved_right():
    rng = np.random.default_rng(0)
    raw = rng.normal(size=(200, 3)) * [1.0, 1e2, 1e-2] + 1e4
    y = (raw[:, 1] + 20 * rng.normal(size=200) > 1e4).astype(int)
    machine = SVC(C=1e4).fit(raw, y)
    assert machine.fit_status_ == 0
    assert machine.score(raw, y) > 0.85
    problem, gram = c_svc(np.where(y, 1, -1), 1e4), Gram(raw, machine._model.kernel, precision="double")
    beta = np.zeros(200)
    beta[machine.support_] = machine.dual_coef_[0]
    assert certificate(problem, gram, beta).violation <= 1e-3


def test_kernel_values_that_overflow_are_refused():
    with pytest.raises(ValueError, match=r"(overflow|finite)"):
        SVC(kernel="poly", degree=9, gamma=1.0).fit(X * 1e40, Y)


def test_one_class_with_small_nu():
    machine = OneClassSVM(nu=0.001).fit(X)
    assert machine.fit_status_ == 0
    assert (machine.predict(X) == -1).mean() < 0.02
    np.testing.assert_allclose(machine.score_samples(X) - machine.offset_, machine.decision_function(X))


def test_regression_without_intercept_and_the_tube_of_nu():
    assert SVR(fit_intercept=False, kernel="linear").fit(X, Y).intercept_ == [0.0]
    machine = NuSVR(nu=0.4, C=1.0, gamma=0.2).fit(X, Y)
    same = SVR(epsilon=machine.epsilon_, C=1.0, gamma=0.2).fit(X, Y)
    np.testing.assert_allclose(machine.predict(X), same.predict(X), atol=1e-5)
