"""Which storage data gets, and that storages agree on it however little memory their panels have."""

import numpy as np
import pytest
import scipy.sparse as sp

from hinge import SVC, Gram, Kernel
from hinge.data.samples import Samples
from hinge.data.sparse import SparseSamples
from hinge.data.storage import Reference, store
from reference import kernel_matrix

RNG = np.random.default_rng(3)


def with_zeros(share, n=60, d=200):
    """Data of which about this share is not zero."""
    return np.where(RNG.random((n, d)) < share, RNG.uniform(0.1, 2, size=(n, d)), 0.0)


@pytest.mark.parametrize("kind", [np.asarray, np.asfortranarray, np.float32, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize(("share", "storage"), [(0.02, "sparse"), (0.2, "sparse"), (0.5, "dense"), (1.0, "dense")])
def test_the_data_decides_not_their_form(kind, share, storage):
    X = with_zeros(share)
    assert store(kind(X), Kernel("rbf", gamma=0.01)).storage == storage
    assert Gram(kind(X), Kernel("rbf", gamma=0.01)).storage == storage


def test_few_features_stay_dense():
    assert store(with_zeros(0.2, d=100), Kernel("rbf", gamma=0.01)).storage == "dense"


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_linear_kernels_keep_the_form(kind):
    expected = "dense" if kind is np.asarray else "sparse"
    assert Gram(kind(with_zeros(0.2)), Kernel("linear")).storage == expected


@pytest.mark.parametrize("kind", [np.asarray, np.float32, sp.csr_array])
def test_data_far_from_zero_is_seen_from_its_centre(kind):
    """A year beside many counts: skipping zeros would lose the counts in the squares of the years."""
    X = with_zeros(0.2).astype(np.float32)
    X[:, 7] = 4096 + np.arange(60) % 5
    gram = Gram(kind(X), Kernel("rbf", gamma=0.05))
    assert (gram.storage, gram.precision) == ("dense", "single")
    expected = kernel_matrix("rbf", X.astype(float), X.astype(float), gamma=0.05)
    np.testing.assert_allclose(gram.block(np.arange(60)), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["rbf", "laplacian", "poly"])
@pytest.mark.parametrize("share", [0.02, 0.2, 0.9])
def test_panels_laid_out_one_after_the_other(name, share, monkeypatch):
    X = with_zeros(share, n=300)
    kernel, beta = Kernel(name, gamma=0.01, coef0=1.0), RNG.normal(size=300)
    whole = Gram(X, kernel, precision="double", threads=2)
    monkeypatch.setattr(Samples, "panel_bytes", 1)
    parts = Gram(X, kernel, precision="double", threads=2)
    np.testing.assert_allclose(parts.product(beta), whole.product(beta), rtol=1e-12)
    residual = np.zeros(300)
    parts.update(residual, np.arange(300), beta)
    np.testing.assert_allclose(-residual, whole.product(beta), rtol=1e-10)
    assert len(parts.rows(np.arange(10, 290))) == 280


@pytest.mark.parametrize("share", [0.03, 0.2])
@pytest.mark.parametrize("kind", [np.asarray, np.float32, sp.csr_array])
def test_predictions_without_zeros(kind, share):
    X = with_zeros(share)
    y = np.where(X[:, :20].sum(axis=1) > np.median(X[:, :20].sum(axis=1)), 1, -1)
    model = SVC(gamma=0.02, C=10.0).fit(kind(X), y)
    new = with_zeros(share)
    expected = (
        kernel_matrix("rbf", new, X[model.support_], gamma=0.02)
        @ np.ravel(model.dual_coef_.toarray() if sp.issparse(model.dual_coef_) else model.dual_coef_)
        + model.intercept_
    )
    allowed = 1e-4 if kind is np.float32 else 1e-9
    np.testing.assert_allclose(model.decision_function(kind(new)), expected, rtol=0, atol=allowed)


@pytest.mark.parametrize("share", [0.03, 0.2, 0.6])
def test_features_that_are_given_twice(share):
    """CSR matrices may list a feature of a row several times; it has their sum."""
    X = with_zeros(share)
    y = np.arange(60) % 2
    twice = sp.csr_array(X)
    twice = sp.csr_array(
        (np.repeat(twice.data / 4, 4), np.repeat(twice.indices, 4), 4 * twice.indptr), shape=X.shape
    )
    assert not twice.has_canonical_format
    once, model = SVC(gamma=0.02).fit(X, y), SVC(gamma=0.02).fit(twice, y)
    np.testing.assert_allclose(model.decision_function(twice), once.decision_function(X), atol=1e-9)
    np.testing.assert_allclose(once.decision_function(twice), once.decision_function(X), atol=1e-9)
    assert twice.nnz == 4 * np.count_nonzero(X)


def test_a_panel_of_many_features_has_few_samples():
    """Long rows that share no feature: their panel must not grow with the square of its height."""
    n, length = 40, 20_000
    X = sp.csr_array(
        (np.ones(n * length) * 0.5, np.arange(n * length), np.arange(n + 1) * length), shape=(n, n * length)
    )
    samples = SparseSamples.of(X)
    assert samples.tile_shape("dot")[0] == 16
    gram = Gram(X, Kernel("rbf", gamma=1e-4))
    np.testing.assert_allclose(gram.block(np.array([3, 4, 5]))[0, 1:], np.exp(-1.0), rtol=1e-6)
    assert SparseSamples.of(sp.csr_array(with_zeros(0.2))).tile_shape("dot")[0] == 192


def test_compressing_keeps_every_nonzero():
    X = with_zeros(0.3, n=37, d=131)
    X[0], X[5], X[-1] = 0.0, 0.0, 0.0
    X[3], X[-2, -1] = -1.5, 7.0
    samples = SparseSamples.of(X)
    rebuilt = sp.csr_array((next(iter(samples.values.values())), samples.indices, samples.indptr), shape=X.shape)
    np.testing.assert_array_equal(rebuilt.toarray(), X)
    assert rebuilt.nnz == np.count_nonzero(X)
    some = np.array([36, 3, 3, 0, 12])
    taken = samples.take(some, np.float32)
    assert taken.n == 5
    np.testing.assert_allclose(taken.squared_norms(np.float64), (X[some] ** 2).sum(axis=1), rtol=1e-6)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("far", [0.0, 1e3, 1e7])
@pytest.mark.parametrize("share", [0.02, 0.2, 0.5])
@pytest.mark.parametrize("name", ["rbf", "laplacian", "poly"])
def test_prediction_stores_as_training_does(name, share, far, kind):
    X, kernel = with_zeros(share), Kernel(name, gamma=0.01)
    X[:, 0] += far
    trained = store(kind(X), kernel)
    for stored in Reference(kind(X), kernel).beside(kind(X)):
        assert stored.storage == trained.storage
        assert getattr(stored, "center", None) is None or np.array_equal(stored.center, trained.center)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_largest_values_of_a_given_matrix_are_absolute(dtype):
    K = RNG.normal(size=(7, 7)).astype(dtype)
    K = K + K.T
    samples = store(K, Kernel("precomputed"))
    np.testing.assert_array_equal(samples.largest_values(), np.abs(K).max(axis=1))
    some = np.array([5, 2])
    np.testing.assert_array_equal(samples.take(some, dtype).largest_values(), np.abs(K).max(axis=1)[some])
