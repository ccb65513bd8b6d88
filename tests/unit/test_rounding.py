"""Images Kβ: bounds on their rounding hold, and sharp ones are right to the last digit of a double."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
import scipy.sparse as sp

import exact
from hinge import Gram, Kernel
from strategies import NAMED, suited

KERNELS = {name: Kernel(name, gamma=0.1, coef0=0.5, degree=3) for name in NAMED}
N = 24


def samples(scale, d, rng):
    X = rng.normal(size=(N, d)) * (rng.random((N, d)) < 0.7)
    if scale == "far":
        X += 1e8
    elif scale == "column":
        X[:, 0] *= 1e7
    elif scale == "row":
        X[0] *= 1e7
    return X


@pytest.mark.parametrize("form", ["dense", "csr", "single", "bits", "precomputed", "stored"])
@pytest.mark.parametrize("scale", ["plain", "far", "column", "row"])
@pytest.mark.parametrize("name", KERNELS)
def test_bounds_hold_and_sharp_images_are_exact(name, scale, form):
    rng = np.random.default_rng(len(name) + len(scale))
    kernel = KERNELS[name]
    for d in (3, 17):  # differences of few features are summed up, products of many
        X = suited(name, samples(scale, d, rng))
        if form == "single":
            X = X.astype(np.float32)
        elif form == "bits":
            X = (X > 0).astype(float)
        K = exact.kernel_matrix(name, X, gamma=kernel.gamma, coef0=kernel.coef0, degree=kernel.degree)
        if form == "precomputed":
            gram = Gram(K.astype(float), Kernel("precomputed"))
            K = np.vectorize(Decimal, otypes=[object])(K.astype(float))
        else:
            wide = np.pad(X, ((0, 0), (0, 400)))  # rows of few features would be stored dense
            gram = Gram(sp.csr_array(wide) if form == "csr" else X, kernel)
            assert form != "csr" or gram.storage == "sparse"
        if form == "stored":
            gram = gram.stored()
        c = rng.normal(size=N) * 1e6 * (rng.random(N) < 0.8)
        high, low = gram.sharp_product(c, np.arange(N))
        checked = zip(gram.product(c), gram.rounding(c), high, low, gram.rounding(c, sharp=True), K, strict=True)
        with localcontext() as context:
            context.prec = 120
            for double, bound, head, tail, sharp_bound, row in checked:
                truth = sum((Decimal(float(a)) * k for a, k in zip(c, row, strict=True)), Decimal(0))
                assert abs(Decimal(double) - truth) <= Decimal(bound)
                assert abs(Decimal(head) + Decimal(tail) - truth) <= Decimal(sharp_bound)
                assert sharp_bound <= 1e-9 * bound


def test_a_part_of_a_matrix_in_memory_goes_back_to_its_samples():
    rng = np.random.default_rng(0)
    X, c = rng.normal(size=(30, 4)) + 1e6, rng.normal(size=30) * 1e9
    gram = Gram(X, Kernel("linear"))
    index = np.array([3, 7, 20, 11])
    part = gram.given(gram.block(index).astype(float), index)
    whole = np.zeros(30)
    whole[index] = c[:4]
    rows = np.array([2, 0])
    assert np.array_equal(part.sharp_product(c[:4], rows), gram.sharp_product(whole, index[rows]))
    assert np.array_equal(part.rounding(c[:4]), gram.rounding(whole)[index])
