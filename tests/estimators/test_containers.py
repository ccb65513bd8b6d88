"""The same values in every container are the same data: γ, folds, decisions and probabilities."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from hinge import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from hinge.training.probability import folds_by_content

N, D = 60, 7

MACHINES = [
    SVC(probability=True, random_state=0),
    SVC(kernel="poly", degree=2, coef0=1.0, probability=True, random_state=0),
    SVC(kernel="linear", probability=True, random_state=0),
    NuSVC(nu=0.1, kernel="laplacian", probability=True, random_state=0),
    SVR(probability=True),
    NuSVR(kernel="sigmoid", gamma=0.05, probability=True),
    OneClassSVM(nu=0.3, probability=True),
]


def unsorted(X):
    rows = sp.csr_array(X)
    for a, b in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
        rows.indices[a:b], rows.data[a:b] = rows.indices[a:b][::-1].copy(), rows.data[a:b][::-1].copy()
    rows.has_sorted_indices = False
    return rows


def with_duplicates(X):
    """Every entry in three parts, which do not stand together, and whose sum is exact."""
    rows = sp.csr_array(X)
    parts, indptr = [rows.data / 2, rows.data / 4, rows.data / 4], 3 * rows.indptr
    data, indices = np.empty(3 * rows.nnz), np.empty(3 * rows.nnz, np.int32)
    for a, b in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
        data[3 * a : 3 * b] = np.concatenate([part[a:b] for part in parts])
        indices[3 * a : 3 * b] = np.tile(rows.indices[a:b], 3)
    return sp.csr_array((data, indices, indptr), shape=X.shape)


def with_stored_zeros(X):
    indices = np.tile(np.arange(X.shape[1], dtype=np.int32), len(X))
    data = np.where(X == 0, -0.0, X)
    return sp.csr_matrix((data.ravel(), indices, X.shape[1] * np.arange(len(X) + 1)), shape=X.shape)


def read_only(X):
    copy = X.copy()
    copy.flags.writeable = False
    return copy


def strided(X):
    wide = np.full((2 * len(X), 3 * X.shape[1]), np.nan)
    wide[::2, 1::3] = X
    return wide[::2, 1::3]


def memory_mapped(X, folder):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


CONTAINERS = {
    "fortran": lambda X, _: np.asfortranarray(X),
    "float32": lambda X, _: X.astype(np.float32),
    "negative zeros": lambda X, _: np.where(X == 0, -0.0, X),
    "strided": lambda X, _: strided(X),
    "reversed twice": lambda X, _: X[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": lambda X, _: read_only(X),
    "memmap": memory_mapped,
    "list": lambda X, _: X.tolist(),
    "frame": lambda X, _: pd.DataFrame(X),
    "frame of float32": lambda X, _: pd.DataFrame(X.astype(np.float32)),
    "csr": lambda X, _: sp.csr_array(X),
    "csr of float32": lambda X, _: sp.csr_matrix(X.astype(np.float32)),
    "csr with 64-bit indices": lambda X, _: sp.csr_array(
        (sp.csr_array(X).data, sp.csr_array(X).indices.astype(np.int64), sp.csr_array(X).indptr.astype(np.int64)),
        shape=X.shape,
    ),
    "unsorted": lambda X, _: unsorted(X),
    "duplicates": lambda X, _: with_duplicates(X),
    "stored zeros": lambda X, _: with_stored_zeros(X),
    "csc": lambda X, _: sp.csc_array(X),
    "coo": lambda X, _: sp.coo_matrix(X),
    "bsr": lambda X, _: sp.bsr_array(X, blocksize=(2, D)),
}


@pytest.fixture(scope="module")
def data():
    """Values that float32 holds, many of them zero, far from zero in one column; labels of a curved border."""
    rng = np.random.default_rng(8)
    X = np.where(rng.random((N, D)) < 0.5, rng.normal(size=(N, D)), 0.0).astype(np.float32).astype(float)
    X[:, 3] = 40 + np.round(X[:, 3], 1).astype(np.float32)
    return X, (X[:, 0] + X[:, 1] ** 2 > 0.3).astype(int) + (X[:, 2] > 0.5)


@pytest.fixture(scope="module")
def plain(data):
    """What each machine answers for an ordinary array."""
    X, y = data
    return {str(machine): answers(clone(machine).fit(X, y), X) for machine in MACHINES}


def answers(machine, X):
    found = {"gamma": machine._gamma, "support": machine.support_, "predictions": machine.predict(X)}
    for name in ("decision_function", "predict_proba"):
        if hasattr(machine, name):
            found[name] = getattr(machine, name)(X)
    for name in ("noise_scale_", "density_marks_", "probA_", "probB_"):
        if hasattr(machine, name):
            found[name] = getattr(machine, name)
    return found


@pytest.mark.parametrize("machine", MACHINES, ids=str)
@pytest.mark.parametrize("form", CONTAINERS)
def test_same_values_same_answers(form, machine, data, plain, tmp_path):
    X, y = data
    container = CONTAINERS[form](X, tmp_path)
    found, expected = answers(clone(machine).fit(container, y), container), plain[str(machine)]
    assert found["gamma"] == pytest.approx(expected["gamma"], rel=1e-13)
    np.testing.assert_array_equal(found["support"], expected["support"])
    if hasattr(machine, "predict_proba"):  # labels
        np.testing.assert_array_equal(found["predictions"], expected["predictions"])
    for name in expected.keys() - {"gamma", "support"}:
        # Decisions of float32 data are made in single precision; the steepest probabilities magnify their error.
        allowed = 1e-8 if "float32" not in form else 3e-4 if name == "predict_proba" else 1e-5
        np.testing.assert_allclose(found[name], expected[name], rtol=0, atol=allowed, err_msg=name)


@pytest.mark.parametrize("form", CONTAINERS)
def test_queries_in_any_form(form, data, tmp_path):
    """A machine trained on an ordinary array meets the same samples in other forms."""
    X, y = data
    for machine in (SVC(), SVC(kernel="linear"), SVC(kernel="laplacian")):
        machine.fit(pd.DataFrame(X) if "frame" in form else X, y)
        expected = machine.decision_function(pd.DataFrame(X) if "frame" in form else X)
        found = machine.decision_function(CONTAINERS[form](X, tmp_path))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 if "float32" in form else 1e-9)


@pytest.mark.parametrize("form", CONTAINERS)
def test_the_callers_data_stays_as_it_was(form, data, tmp_path):
    X, y = data
    container = CONTAINERS[form](X, tmp_path)
    parts = [getattr(container, name) for name in ("data", "indices", "indptr") if sp.issparse(container)
             and hasattr(container, name)]  # fmt: skip
    before = [part.copy() for part in parts]
    SVC(probability=True, random_state=0).fit(container, y).predict_proba(container)
    for part, old in zip(parts, before, strict=True):
        np.testing.assert_array_equal(part, old)
    if not sp.issparse(container):
        np.testing.assert_array_equal(np.asarray(container), X)


def test_folds_follow_from_values():
    rng = np.random.default_rng(1)
    X = np.where(rng.random((200, 5)) < 0.6, rng.normal(size=(200, 5)), 0.0).astype(np.float32)
    strata, weights = rng.integers(0, 2, 200), np.ones(200)
    expected = folds_by_content(X, strata, weights, seed=3)
    for other in (X.astype(float), sp.csr_array(X), sp.csr_array(X.astype(float)), np.where(X == 0, -0.0, X)):
        np.testing.assert_array_equal(folds_by_content(other, strata, weights, seed=3), expected)
    assert (folds_by_content(X, strata, weights, seed=4) != expected).mean() > 0.5
    assert np.bincount(expected[strata == 0]).min() >= 0.15 * (strata == 0).sum()
