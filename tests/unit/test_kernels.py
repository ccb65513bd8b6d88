"""Kernel values of every storage and precision against the textbook formulas."""

import numpy as np
import pytest
import scipy.sparse as sp

from hinge import Gram, Kernel
from hinge.kernel.kernels import kind_of
from reference import kernel_matrix
from strategies import NAMED

RNG = np.random.default_rng(0)
DATA = {
    "spread": np.round(RNG.uniform(0, 2, size=(30, 7)), 2),
    "half empty": np.where(RNG.random((30, 7)) < 0.5, 0, np.round(RNG.uniform(0, 2, size=(30, 7)), 2)),
    "bits": RNG.integers(0, 2, size=(30, 7)).astype(float),
    "wide bits": RNG.integers(0, 2, size=(30, 200)).astype(float),
    "mostly empty": np.where(RNG.random((30, 160)) < 0.8, 0, np.round(RNG.uniform(0, 2, size=(30, 160)), 2)),
    "nearly empty": np.where(RNG.random((30, 160)) < 0.97, 0, np.round(RNG.uniform(0, 2, size=(30, 160)), 2)),
}
KERNELS = [
    *((name, {"gamma": 0.3, "coef0": 0.5, "degree": 3}) for name in NAMED),
    ("poly", {"gamma": 0.1, "coef0": 0.0, "degree": 0}),
    ("rbf", {"gamma": 0.0}),
    ("sigmoid", {"gamma": 0.1, "coef0": -0.5}),
]


def int64_indices(X):
    rows = sp.csr_array(X)
    rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    return rows


STORES = {
    "float64": lambda X: X,
    "float32": np.float32,
    "fortran": np.asfortranarray,
    "integers": lambda X: (3 * X).round().astype(int),
    "csr_matrix": sp.csr_matrix,
    "csr_array": sp.csr_array,
    "csr int64": int64_indices,
    "csr float32": lambda X: sp.csr_array(X.astype(np.float32)),
    "csc": sp.csc_array,
}


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize(("name", "parameters"), KERNELS)
@pytest.mark.parametrize("data", DATA)
def test_kernel_values(data, name, parameters, precision, store):
    X = STORES[store](DATA[data])
    expected = kernel_matrix(name, X, X, **parameters)
    gram = Gram(X, Kernel(name, **parameters), precision=precision)
    scale = size_of_terms(X, expected, **parameters)
    allowed = 16 * scale * np.finfo(np.float32 if precision == "single" else np.float64).eps
    np.testing.assert_allclose(gram.block(np.arange(30)), expected, rtol=0, atol=allowed)
    np.testing.assert_allclose(gram.diagonal, expected.diagonal(), rtol=1e-13)
    beta = np.random.default_rng(1).normal(size=30)
    np.testing.assert_allclose(gram.product(beta), expected @ beta, rtol=0, atol=1e-13 * scale)


def size_of_terms(X, K, gamma=1.0, **_):
    """The largest kernel value, or the largest term of an exponent: rounding is relative to these."""
    norms = abs(X).power(2).sum(axis=1).max() if sp.issparse(X) else (X.astype(float) ** 2).sum(axis=1).max()
    return max(1.0, np.abs(K).max(), gamma * norms)


@pytest.mark.parametrize("store", [np.asarray, np.float32, sp.csr_array])
@pytest.mark.parametrize("name", NAMED)
def test_samples_of_zeros_and_of_every_size(name, store):
    """Rows of zeros, twins, and samples that are tiny beside others: float32 would lose their squares."""
    X = np.round(np.random.default_rng(4).uniform(0, 2, size=(20, 5)), 1)
    X[3:6] = 0
    X[10:14] = X[6:10]
    X[14:] *= 2.0**-75
    for rows in (X, (X > 0).astype(float)):
        gram = Gram(store(rows), Kernel(name, gamma=0.3, coef0=0.5))
        expected = kernel_matrix(name, store(rows), store(rows), gamma=0.3, coef0=0.5)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(gram.block(np.arange(20)), expected, rtol=0, atol=2e-6 * scale)
        np.testing.assert_allclose(gram.diagonal, expected.diagonal(), rtol=1e-13)


@pytest.mark.parametrize("name", ["rbf", "sigmoid", "laplacian"])
@pytest.mark.parametrize(("precision", "eps"), [("single", 2e-7), ("double", 4e-16)])
def test_exponential_over_its_whole_range(name, precision, eps):
    """From no difference to far beyond the smallest float: no overflow, no NaN, zero in the end."""
    X = np.linspace(0, 30, 200)[:, None]
    gram = Gram(X, Kernel(name, gamma=1.0), precision=precision)
    values = gram.block(np.arange(len(X)))
    np.testing.assert_allclose(values, kernel_matrix(name, X, X), rtol=0, atol=900 * eps)
    assert values.dtype == (np.float32 if precision == "single" else np.float64)


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
@pytest.mark.parametrize("outlier", [1e6, 1e9, 1e12])
def test_one_far_sample_does_not_blur_the_others(name, outlier):
    X = np.concatenate([np.linspace(0, 1, 50), [outlier]])[:, None]
    beta = np.random.default_rng(1).normal(size=51)
    gram = Gram(X, Kernel(name, gamma=1.0))
    np.testing.assert_allclose(gram.product(beta), kernel_matrix(name, X, X) @ beta, rtol=0, atol=1e-9)


def test_callable_is_asked_for_rows_only_where_the_matrix_exceeds_the_budget():
    X = np.random.default_rng(2).normal(size=(400, 3))
    asked = []

    def kernel(A, B):
        asked.append((len(A), len(B)))
        return A @ B.T

    gram = Gram(X, Kernel(kernel), precision="double", cache_bytes=8 * 400**2 - 1)
    np.testing.assert_allclose(gram.diagonal, (X**2).sum(axis=1))
    assert len(asked) == 7  # of 64 samples each, not 400
    asked.clear()
    residual = np.zeros(400)
    gram.update(residual, np.array([3, 5]), np.array([1.0, -2.0]))
    np.testing.assert_allclose(residual, -X @ X.T[:, [3, 5]] @ [1.0, -2.0])
    assert sum(rows * columns for rows, columns in asked) == 2 * 400


def test_precomputed_matrix_is_used_as_it_is():
    K = kernel_matrix("rbf", DATA["spread"], DATA["spread"])
    gram = Gram(K, Kernel("precomputed"), precision="double")
    np.testing.assert_array_equal(gram.block(np.array([4, 2])), K[np.ix_([4, 2], [4, 2])])
    np.testing.assert_array_equal(gram.diagonal, K.diagonal())


@pytest.mark.parametrize("store", STORES)
def test_given_data_is_left_alone(store):
    X = STORES[store](DATA["half empty"])
    before = X.copy()
    Gram(X, Kernel("rbf")).block(np.arange(30))
    difference = X - before
    assert (abs(difference).max() if sp.issparse(X) else np.abs(difference).max()) == 0


def test_unsorted_and_repeated_entries_are_summed_but_not_in_the_callers_matrix():
    """Row 0 holds feature 1 twice, row 1 is out of order."""
    parts = np.array([0.5, 0.25, 1.5, 3.0, 2.0]), np.array([1, 1, 2, 2, 0]), np.array([0, 3, 5])
    X = sp.csr_array(tuple(a.copy() for a in parts), shape=(2, 3))
    dense = np.array([[0.0, 0.75, 1.5], [2.0, 0.0, 3.0]])
    np.testing.assert_allclose(Gram(X, Kernel("linear")).block(np.arange(2)), dense @ dense.T)
    for mine, given in zip((X.data, X.indices, X.indptr), parts, strict=True):
        np.testing.assert_array_equal(mine, given)


def test_ones_stored_twice_are_not_bits():
    X = sp.csr_array((np.ones(3), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    np.testing.assert_allclose(Gram(X, Kernel("linear")).block(np.arange(2)), [[4, 0], [0, 1]])


@pytest.mark.parametrize("n_features", [1, 4, 7, 12])
def test_few_features_do_not_cancel(n_features):
    rng = np.random.default_rng(0)
    X = 3 * rng.normal(size=(40, n_features)) + 1e3
    X[20:] = X[:20] + 0.1 * rng.normal(size=(20, n_features))
    gram = Gram(X, Kernel("rbf", gamma=8.0))
    assert gram.precision == "single"
    expected = kernel_matrix("rbf", X, X, gamma=8.0)
    np.testing.assert_allclose(gram.block(np.arange(40)), expected, atol=1e-5)
    np.testing.assert_array_equal(np.diag(gram.block(np.arange(40))), 1.0)


@pytest.mark.parametrize("name", [name for name in NAMED if kind_of(name).is_ratio])
@pytest.mark.parametrize("size", [1e-300, 1e308])
def test_norms_that_doubles_do_not_hold_are_refused(name, size):
    X = np.array([[1.0, 0.5], [size, size / 2]])
    with pytest.raises(ValueError, match=f"{name} kernel loses its norm, row 1"):
        Gram(X, Kernel(name))
