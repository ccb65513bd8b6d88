"""Compiled comparisons write every value, whatever their output held before."""

import numpy as np
import pytest
import scipy.sparse as sp

from hinge import Gram, Kernel
from hinge.data.products import add_row, row_dot
from hinge.data.storage import store
from reference import kernel_matrix

X = np.round(np.random.default_rng(0).uniform(0, 2, size=(20, 5)), 2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["linear", "laplacian", "chi2"])  # one for each statistic
@pytest.mark.parametrize("rubbish", [np.nan, np.inf, 7.0])
def test_comparisons_ignore_what_the_tile_held(name, dtype, rubbish):
    kernel = Kernel(name)
    samples = store(X, kernel)
    tile = np.full((3, 20), rubbish, dtype)
    samples.compare(kernel.statistic, samples.panel(np.arange(3), dtype), 0, 20, tile)
    expected = kernel_matrix(name, X[:3], X)
    np.testing.assert_allclose(tile, expected if name == "linear" else -np.log(expected), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("d", [1, 3, 4, 9])
def test_rows_meet_weights(kind, dtype, d):
    rng = np.random.default_rng(d)
    rows = (rng.integers(-4, 5, size=(12, d)) * (rng.random((12, d)) < 0.6)).astype(dtype)
    gram, weights = Gram(kind(rows), Kernel("linear")), rng.normal(size=d)
    layout = gram.weights.rows()
    np.testing.assert_allclose([row_dot(*layout, t, weights) for t in range(12)], rows @ weights, atol=1e-12)
    np.testing.assert_allclose(gram.weights.project(weights), rows @ weights, atol=1e-12)
    total = weights.copy()
    add_row(*layout, 5, 2.0, total)
    np.testing.assert_allclose(total, weights + 2 * rows[5], atol=1e-12)
    some = np.array([0, 3, 3, 7])
    factors = rng.uniform(0.5, 2.0, size=4)
    expected = np.einsum("k,ki,kj->ij", factors, rows[some], rows[some])
    np.testing.assert_allclose(np.tril(gram.weights.moments(some, factors)), np.tril(expected), atol=1e-5)
    coefficients = rng.normal(size=12)
    np.testing.assert_allclose(gram.weights.of(coefficients), coefficients @ rows, atol=1e-12)
