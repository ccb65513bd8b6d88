"""Checks that are skipped where they cannot fail: whatever is unusual is answered as by scikit-learn's own."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from hinge import SVC, SVR, OneClassSVM
from hinge.estimators import base, inputs

RNG = np.random.default_rng(5)
X = RNG.normal(size=(40, 3))
Y = (X[:, 0] > 0).astype(int)


def slowly(monkeypatch, call):
    """What a call comes to when scikit-learn checks everything."""
    with monkeypatch.context() as patch:
        for name in ("is_plain", "is_plain_numbers"):
            patch.setattr(base, name, lambda value: False)
        patch.setattr(SVC, "_is_plain_target", lambda self, y: False)
        return outcome(call)


def outcome(call):
    try:
        return call()
    except Exception as error:
        return type(error), str(error)


def with_value(value):
    rows = X.copy()
    rows[3, 1] = value
    return rows


UNUSUAL = {
    "nan": with_value(np.nan),
    "inf": with_value(np.inf),
    "both infinities": np.where(np.arange(120).reshape(40, 3) == 7, -np.inf, with_value(np.inf)),
    "too few features": X[:, :2].copy(),
    "too many features": np.hstack([X, X]),
    "one dimension": X[0],
    "three dimensions": X[None],
    "no rows": X[:0],
    "no columns": X[:, :0],
    "complex": X + 0j,
    "objects": X.astype(object),
    "strings": np.full((40, 3), "a"),
    "a list": X.tolist(),
    "sparse": sp.csr_array(X),
    "sparse with nan": sp.csr_array(with_value(np.nan)),
    "sparse, infinite": sp.csr_array(with_value(-np.inf)),
    "sparse, too few features": sp.csr_array(X[:, :2]),
    "sparse without rows": sp.csr_array(X[:0]),
    "sparse without columns": sp.csr_array(X[:, :0]),
    "sparse whole numbers": sp.csr_array((4 * X).astype(np.int64)),
    "sparse columns": sp.csc_matrix(X),
}


@pytest.mark.parametrize("form", UNUSUAL)
def test_unusual_samples_meet_the_errors_of_scikit_learn(form, monkeypatch):
    machine = SVC().fit(X, Y)
    for call in (lambda: machine.predict(UNUSUAL[form]), lambda: clone(machine).fit(UNUSUAL[form], Y).support_):
        np.testing.assert_equal(outcome(call), slowly(monkeypatch, call))


UNUSUAL_TARGETS = {
    "nan": np.where(np.arange(40) == 3, np.nan, Y),
    "fractions": Y + 0.5,
    "huge": Y * 1e300,
    "too few": Y[:-1],
    "one class": np.zeros(40, int),
    "a column": Y[:, None] * np.ones((1, 2), int),
    "complex": Y + 0j,
    "none": None,
    "strings": np.where(Y, "a", "b"),
    "booleans": Y > 0,
    "floats": Y.astype(np.float32),
    "half floats": Y.astype(np.float16),
    "foreign integers": Y.astype(">i4"),
}


@pytest.mark.parametrize("machine", [SVC(), SVR()], ids=["SVC", "SVR"])
@pytest.mark.parametrize("kind", UNUSUAL_TARGETS)
def test_unusual_targets_meet_the_errors_of_scikit_learn(machine, kind, monkeypatch):
    y = UNUSUAL_TARGETS[kind]
    call = lambda: clone(machine).fit(X, y).predict(X)  # noqa: E731
    np.testing.assert_equal(outcome(call), slowly(monkeypatch, call))


SAME_VALUES = {
    "Fortran order": np.asfortranarray(X),
    "a strided view": np.repeat(X, 2, axis=0)[::2],
    "foreign byte order": X.astype(">f8"),
    "read-only": np.frombuffer(X.tobytes()).reshape(X.shape),
    "masked": np.ma.masked_array(X),
}


@pytest.mark.parametrize("form", SAME_VALUES)
def test_the_same_values_in_any_form_have_the_same_decisions(form):
    rows = SAME_VALUES[form]
    expected = SVC().fit(X, Y).decision_function(X)
    np.testing.assert_array_equal(SVC().fit(rows, Y).decision_function(rows), expected)


@pytest.mark.parametrize("dtype", [np.int64, np.float16, np.float32, np.bool_])
def test_other_types_are_converted_as_ever(dtype, monkeypatch):
    rows = (X * 4).astype(dtype)
    machine = SVC().fit(rows, Y)
    call = lambda: machine.decision_function(rows)  # noqa: E731
    np.testing.assert_array_equal(call(), slowly(monkeypatch, call))


def test_np_matrix_is_refused_as_by_scikit_learn():
    with pytest.warns(PendingDeprecationWarning):
        matrix = np.matrix(X)
    machine = SVC().fit(X, Y)
    with pytest.raises(TypeError, match=r"np\.matrix is not supported"):
        machine.predict(matrix)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows_are_what_the_checks_would_return(kind, dtype, monkeypatch):
    rows = kind(X.astype(dtype))
    machine = SVC().fit(rows, Y)
    assert type(machine.support_vectors_) is kind
    call = lambda: machine.decision_function(rows)  # noqa: E731
    np.testing.assert_array_equal(call(), slowly(monkeypatch, call))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        SVC().fit(rows, Y[:-1])


def test_only_ordinary_arrays_pass_unchecked():
    assert inputs.is_plain(X)
    assert inputs.is_plain(X.astype(np.float32))
    assert inputs.is_plain(UNUSUAL["sparse"])
    unusual = [rows for form, rows in UNUSUAL.items() if form != "sparse"]
    for rows in (*unusual, SAME_VALUES["Fortran order"], SAME_VALUES["foreign byte order"]):
        assert not inputs.is_plain(rows) or rows.shape[1] != 3
    assert inputs.is_plain_labels(Y)
    assert not inputs.is_plain_labels(np.arange(40))  # scikit-learn warns of so many classes


def test_as_many_labels_as_samples_still_bring_a_warning():
    with pytest.warns(UserWarning, match="number of unique classes is greater than 50%"):
        SVC().fit(X, np.arange(40) // 1.5 // 1)


def test_feature_names_are_noticed_after_fits_without_and_with_them():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    machine = SVC().fit(frame, Y)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        machine.predict(X)
    with pytest.raises(ValueError, match="feature names"):
        machine.predict(frame.rename(columns={"a": "z"}))
    machine.fit(X, Y)
    assert not hasattr(machine, "feature_names_in_")
    assert machine.n_features_in_ == 3
    machine.predict(X)


def test_parameters_that_passed_once_are_refused_when_they_change():
    machine = SVC().fit(X, Y).fit(X, Y)
    for name, value in {"C": -1.0, "kernel": "none", "shrinking": 1.5, "degree": 2.5, "tol": None}.items():
        with pytest.raises(ValueError, match=f"The '{name}' parameter of SVC"):
            clone(machine).set_params(**{name: value}).fit(X, Y)
    with pytest.raises(ValueError, match="The 'shrinking' parameter of SVC"):
        SVC(shrinking=1).fit(X, Y)  # equal to True, which passed
    with pytest.raises(ValueError, match="The 'class_weight' parameter"):
        SVC(class_weight=[1, 2]).fit(X, Y)


def test_what_a_model_keeps_for_predictions_is_in_no_copy_and_changes_no_answer():
    machine = OneClassSVM().fit(X)
    before = len(pickle.dumps(machine))
    values = machine.decision_function(X)
    assert len(pickle.dumps(machine)) == before
    for other in (pickle.loads(pickle.dumps(machine)), copy.deepcopy(machine)):
        np.testing.assert_array_equal(other.decision_function(X), values)
