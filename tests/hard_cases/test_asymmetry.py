"""Kernels that are not symmetric, or not real: what a user is told, and what is solved instead."""

import warnings

import numpy as np
import pytest

from hinge import SVC, SVR, Gram, Kernel, NuSVC, NuSVR, OneClassSVM
from hinge.selection import cross_validate

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = (X[:, 0] + 0.5 * RNG.normal(size=40) > 0).astype(int)
K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
TILT = 0.2 * (X[:, :1] - X[:, :1].T)
NOT_SYMMETRIC = r"not symmetric.*differ by up to.*symmetric part"


def tilted(A, B):
    plain = np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2))
    return plain + 0.2 * (A[:, :1] - B[:, :1].T)


@pytest.mark.parametrize("machine", [SVC(), NuSVC(nu=0.3), SVR(), NuSVR(), OneClassSVM(nu=0.3)], ids=str)
def test_the_symmetric_part_takes_the_place_of_a_matrix(machine):
    expected = machine.set_params(kernel="precomputed").fit(K, Y).predict(K)
    with pytest.warns(UserWarning, match=NOT_SYMMETRIC):
        machine.fit(K + TILT, Y)
    np.testing.assert_allclose(machine.predict(K), expected, atol=1e-9)


@pytest.mark.parametrize("machine", [SVC(), NuSVC(nu=0.3), SVR(), NuSVR(), OneClassSVM(nu=0.3)], ids=str)
def test_the_symmetric_part_takes_the_place_of_a_function(machine):
    """In predictions, too: decisions of training samples are those of training."""
    expected = machine.set_params(kernel="precomputed").fit(K, Y).predict(K)
    with pytest.warns(UserWarning, match=NOT_SYMMETRIC):
        machine.set_params(kernel=tilted).fit(X, Y)
    np.testing.assert_allclose(machine.predict(X), expected, atol=1e-9)


def test_both_are_told_alike():
    texts = []
    for kernel, data in (("precomputed", K + TILT), (tilted, X)):
        with pytest.warns(UserWarning, match=NOT_SYMMETRIC) as caught:
            SVC(kernel=kernel).fit(data, Y)
        (warning,) = caught
        texts.append(str(warning.message).split("is not symmetric")[1])
    assert texts[0] == texts[1]


def test_one_large_entry_does_not_hide_the_others():
    large = K + TILT
    large[0, 0] = 1e12
    with pytest.warns(UserWarning, match=NOT_SYMMETRIC):
        SVC(kernel="precomputed", max_iter=1000).fit(large, Y)


def test_the_size_that_is_told():
    bent = K.copy()
    bent[4, 9] += 0.25
    with pytest.warns(UserWarning, match=r"up to 0\.25 of .* by 0\.25\. "):
        Gram(bent, Kernel("precomputed"))
    bent[4, 9], bent[9, 4], bent[9, 9] = 0.5, -0.5, 16.0
    with pytest.warns(UserWarning, match=r"up to 0\.25 of .* by 1\. "):
        Gram(bent, Kernel("precomputed"))


@pytest.mark.parametrize("scales", [np.ones(40), np.logspace(-6, 6, 40)], ids=["even", "uneven"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_is_no_asymmetry(dtype, scales):
    rounded = (K * scales[:, None] * scales).astype(dtype)
    rounded = np.triu(rounded) + np.tril(rounded * dtype(1 + 4 * np.finfo(dtype).eps), -1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gram = Gram(rounded, Kernel("precomputed"))
    assert gram.given_matrix is rounded


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_of_single_precision_is_told_and_removed(dtype):
    rounded = np.triu(K) + np.tril(K * (1 + 5e-6), -1)
    with pytest.warns(UserWarning, match=r"symmetric only up to rounding.*up to [45]\.\d*e-06 of.*symmetric part"):
        gram = Gram(rounded.astype(dtype), Kernel("precomputed"))
    np.testing.assert_array_equal(gram.given_matrix, gram.given_matrix.T)


def test_a_zero_diagonal_allows_rounding_too():
    """Of an indefinite kernel k(x, x) may vanish: values are compared with themselves then."""
    flat = np.tanh(X @ X.T)
    np.fill_diagonal(flat, 0.0)
    flat = np.triu(flat) + np.tril(flat * (1 + 1e-15), -1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Gram(flat, Kernel("precomputed"))
    flat[0, 1] += 1e-3
    with pytest.warns(UserWarning, match=NOT_SYMMETRIC):
        Gram(flat, Kernel("precomputed"))


@pytest.mark.parametrize("cache_size", ["auto", 0.5], ids=["whole", "blocks"])
def test_asymmetry_that_shows_only_later(cache_size):
    """A function that is symmetric among the first samples: what was computed before is computed again."""
    rng = np.random.default_rng(1)
    many = np.c_[rng.normal(size=(300, 2)), np.arange(300)]

    def late(A, B):
        plain = np.exp(-((A[:, None, :2] - B[None, :, :2]) ** 2).sum(axis=2))
        return plain + 0.1 * np.where(np.maximum(A[:, None, 2], B[None, :, 2]) > 200, A[:, :1] - B[:, :1].T, 0.0)

    y = (many[:, 0] > 0).astype(int)
    with pytest.warns(UserWarning, match=NOT_SYMMETRIC):
        machine = SVC(kernel=late, cache_size=cache_size, tol=1e-8).fit(many, y)
    whole = late(many, many)
    half = (whole + whole.T) / 2
    expected = SVC(kernel="precomputed", tol=1e-8).fit(half, y).decision_function(half)
    np.testing.assert_allclose(machine.decision_function(many), expected, atol=1e-6)


def test_symmetric_functions_are_not_called_twice():
    calls = []

    def counting(A, B):
        calls.append(len(A) * len(B))
        return A @ B.T

    SVC(kernel=counting).fit(X, Y)
    assert calls == [40 * 40]


def test_searches_see_the_symmetric_part():
    whole = cross_validate(SVC(kernel="precomputed"), K, Y, cv=3)["test_score"]
    with pytest.warns(UserWarning, match=NOT_SYMMETRIC):
        tilted_scores = cross_validate(SVC(kernel=tilted), X, Y, cv=3)["test_score"]
    np.testing.assert_allclose(tilted_scores, whole)


@pytest.mark.parametrize("imaginary", [0.0, 1e-3])
def test_complex_kernel_values_are_refused(imaginary):
    def phased(A, B):
        return A @ B.T + 1j * imaginary

    with pytest.raises(ValueError, match=r"complex values.*real"):
        SVC(kernel=phased).fit(X, Y)
    with pytest.raises(ValueError, match=r"[Cc]omplex"):
        SVC(kernel="precomputed").fit(K + 1j * imaginary, Y)
    with pytest.raises(ValueError, match=r"[Cc]omplex"):
        Gram(K + 1j * imaginary, Kernel("precomputed"))
    for kernel in ("rbf", "linear"):
        with pytest.raises(ValueError, match=r"[Cc]omplex"):
            Gram(X + 1j * imaginary, Kernel(kernel))
        with pytest.raises(ValueError, match=r"[Cc]omplex"):
            SVC(kernel=kernel).fit(X + 1j * imaginary, Y)
