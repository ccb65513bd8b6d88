"""Sparse matrices whose index arrays lie are refused by name, before compiled code follows them."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from hinge import SVC, SVR, Gram, Kernel, NuSVC, NuSVR, OneClassSVM
from hinge.data.structure import canonical, compact
from strategies import KERNELS

RNG = np.random.default_rng(0)
X = np.where(RNG.random((20, 6)) < 0.5, RNG.normal(size=(20, 6)), 0.0)
X[:, 0] = RNG.normal(size=20)
Y = (X[:, 0] > 0).astype(int)


def spoilt(kind, index):
    matrix = kind(X)
    matrix.indices[5] = index
    return matrix


BROKEN = {
    "index beyond the last column": (lambda: spoilt(sp.csr_array, 6), r"row 1 .* column 6\b.*0 to 5"),
    "index far beyond": (lambda: spoilt(sp.csr_matrix, 2_000_000_000), r"row 1 .* column 2000000000\b"),
    "negative index": (lambda: spoilt(sp.csr_array, -1), r"row 1 .* column -1\b"),
    "row beyond the last": (lambda: spoilt(sp.csc_array, 20), r"column 0 .* row 20\b"),
    "negative row": (lambda: spoilt(sp.csc_matrix, -7), r"column 0 .* row -7\b"),
    "rows that end before they begin": (lambda: with_ends(3, 1), r"indptr\[3\] = 1\b"),
    "rows that end beyond the data": (lambda: with_ends(20, 10_000), r"indptr\[20\] = 10000\b"),
    "rows that begin late": (lambda: with_ends(0, 2), r"begins with 2"),
    "coordinate out of range": (lambda: with_coordinate(99), r"COO.*0 to 5"),
}


def with_ends(row, end):
    matrix = sp.csr_array(X)
    matrix.indptr[row] = end
    return matrix


def with_coordinate(column):
    matrix = sp.coo_array(X)
    matrix.coords[1][3] = column
    return matrix


def products(first, second):
    return (first @ second.T).toarray()


@pytest.mark.parametrize("kernel", ["rbf", "linear", "laplacian", products])
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_matrix_is_refused_by_fit_and_predict(name, kernel):
    make, message = BROKEN[name]
    with pytest.raises(ValueError, match=message):
        SVC(kernel=kernel, gamma=0.5).fit(make(), Y)
    machine = SVC(kernel=kernel, gamma=0.5).fit(sp.csr_array(X), Y)
    with pytest.raises(ValueError, match=message):
        machine.predict(make())


@pytest.mark.parametrize("machine", [SVC(), NuSVC(nu=0.3), SVR(), NuSVR(), OneClassSVM()], ids=str)
def test_every_estimator_refuses(machine):
    make, message = BROKEN["negative index"]
    with pytest.raises(ValueError, match=message):
        machine.fit(make(), Y)


@pytest.mark.parametrize("name", BROKEN)
def test_a_gram_matrix_and_a_model_refuse_too(name):
    make, message = BROKEN[name]
    for kernel in ("rbf", "linear"):
        with pytest.raises(ValueError, match=message):
            Gram(make(), Kernel(kernel))
        model = SVC(kernel=kernel).fit(X, Y)._model
        with pytest.raises(ValueError, match=message):
            model.decide(make())


def test_gamma_of_a_matrix_with_duplicates():
    """Parts of an entry are not entries: γ = 1 / (n_features · variance) of their sums."""
    rows = sp.csr_array(X)
    parts = sp.csr_array(
        (np.repeat(rows.data, 2) * np.tile([3.0, -2.0], rows.nnz), np.repeat(rows.indices, 2), 2 * rows.indptr),
        shape=X.shape,
    )
    assert SVC().fit(parts, Y)._gamma == pytest.approx(1 / (6 * X.var()), rel=1e-12)
    assert SVC().fit(rows, Y)._gamma == pytest.approx(1 / (6 * X.var()), rel=1e-12)


def test_entries_beyond_the_last_row_do_not_count():
    rows = sp.csr_array(X)
    loose = sp.csr_array(
        (np.r_[rows.data, np.nan], np.r_[rows.indices, 10**6].astype(np.int32), rows.indptr), shape=X.shape
    )
    loose.data, loose.indices = np.r_[rows.data, np.nan], np.r_[rows.indices, 10**6].astype(np.int32)
    np.testing.assert_array_equal(canonical(loose).toarray(), X)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("last", [2_147_483_646, 3_000_000_000_000])
def test_columns_that_never_occur_cost_nothing(kernel, last):
    """One index of two thousand million in a small file: neither a fit nor a prediction has an array as wide."""
    few = sp.csr_array(np.abs(X))
    few.indices, few.indptr = few.indices.astype(np.int64), few.indptr.astype(np.int64)
    wide_indices = np.where(few.indices == 5, last, few.indices)
    wide = sp.csr_array((few.data, wide_indices, few.indptr), shape=(20, last + 1))
    narrow = SVC(kernel=kernel, gamma=0.3, C=5.0).fit(few, Y)
    expected = narrow.decision_function(few)  # compiled before memory is watched
    tracemalloc.start()
    try:
        machine = SVC(kernel=kernel, gamma=0.3, C=5.0).fit(wide, Y)
        found = machine.decision_function(wide)
        assert tracemalloc.get_traced_memory()[1] < 2**26
    finally:
        tracemalloc.stop()
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert machine.n_features_in_ == last + 1
    if kernel == "linear":
        coef, weights = machine.coef_, narrow.coef_.toarray()
        assert coef.shape == (1, last + 1)
        np.testing.assert_allclose(coef.data, weights[weights != 0], atol=1e-12)


def test_two_matrices_keep_their_columns_in_common():
    first = sp.csr_array(([1.0, 2.0], [5, 10**9], [0, 1, 2]), shape=(2, 10**9 + 1))
    second = sp.csr_array(([3.0, 4.0], [7, 10**9], [0, 2]), shape=(1, 10**9 + 1))
    columns, (a, b) = compact(first, second)
    np.testing.assert_array_equal(columns, [5, 7, 10**9])
    np.testing.assert_array_equal(a.toarray(), [[1, 0, 0], [0, 0, 2]])
    np.testing.assert_array_equal(b.toarray(), [[0, 3, 4]])
