"""Compiled comparisons write every value, whatever their output held before."""

import numpy as np
import pytest

from hinge import Kernel
from reference import kernel_matrix

X = np.round(np.random.default_rng(0).uniform(0, 2, size=(20, 5)), 2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["linear", "laplacian", "chi2"])
@pytest.mark.parametrize("rubbish", [np.nan, np.inf, 7.0])
def test_comparisons_ignore_what_the_tile_held(name, dtype, rubbish):
    kernel = Kernel(name)
    samples = kernel.store(X)
    tile = np.full((3, 20), rubbish, dtype)
    samples.compare(kernel.statistic, samples.panel(np.arange(3), dtype), 0, 20, tile)
    expected = kernel_matrix(name, X[:3], X)
    np.testing.assert_allclose(tile, expected if name == "linear" else -np.log(expected), rtol=1e-4, atol=1e-6)
