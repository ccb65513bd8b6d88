"""``Gram``: blocks, updates and exact products over any cache, and what it counts."""

import numpy as np
import pytest
import scipy.sparse as sp

from hinge import Gram, Kernel
from reference import kernel_matrix

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 5))
K = kernel_matrix("rbf", X, X, gamma=0.2)
WIDE = RNG.normal(size=(300, 90))  # expensive enough for rows to be kept at their first use


def grams(rows, **options):
    """A cheap and an expensive kernel whose caches hold ``rows`` rows, with their matrices."""
    budget = {"cache_bytes": rows * 300 * 8, "precision": "double"} | options
    yield Gram(X, Kernel("rbf", gamma=0.2), **budget), K
    yield Gram(WIDE, Kernel("rbf", gamma=0.02), **budget), kernel_matrix("rbf", WIDE, WIDE, gamma=0.02)
    yield Gram(X, Kernel("linear"), **budget), X @ X.T


@pytest.mark.parametrize("rows", [2, 3, 50, 300])
@pytest.mark.parametrize("threads", [1, 2])
def test_updates_add_up_to_the_product(rows, threads):
    rng = np.random.default_rng(1)
    for gram, expected in grams(rows, threads=threads):
        residual, beta = np.zeros(300), np.zeros(300)
        for size in (1, 2, 5, 40, 2, 300, 2):
            index = rng.choice(300, size=size, replace=False)
            step = rng.normal(size=size)
            gram.update(residual, index, step)
            beta[index] += step
        np.testing.assert_allclose(residual, -expected @ beta, atol=1e-10)
        np.testing.assert_allclose(gram.product(beta), expected @ beta, atol=1e-10)
        rows_wanted = np.array([7, 299, 0])
        np.testing.assert_allclose(gram.product(beta, rows_wanted), (expected @ beta)[rows_wanted], atol=1e-10)


@pytest.mark.parametrize("rows", [2, 50, 300])
@pytest.mark.parametrize("size", [1, 2, 3, 130, 300])
def test_block_is_the_matrix_of_a_working_set_in_its_order(rows, size):
    index = np.random.default_rng(2).permutation(300)[:size]
    for gram, expected in grams(rows):
        for _ in range(2):  # computed, then perhaps from the cache
            np.testing.assert_allclose(gram.block(index), expected[np.ix_(index, index)], atol=1e-13)


@pytest.mark.parametrize("n_known", [0, 1, 60, 130])
@pytest.mark.parametrize("threads", [1, 2])
def test_block_takes_what_rows_tell_and_computes_the_rest(n_known, threads):
    index = np.random.default_rng(5).permutation(300)[:130]
    for gram, expected in grams(300, threads=threads):
        gram.rows(np.sort(index[:n_known]))
        before = gram.counts.evaluations
        np.testing.assert_allclose(gram.block(index), expected[np.ix_(index, index)], atol=1e-13)
        n_fresh = 130 - n_known
        expected_count = 130 * 130 if gram.is_cheap else n_fresh * (n_fresh + 1) // 2
        assert gram.counts.evaluations - before == expected_count


def test_block_has_both_variables_of_a_sample():
    index = np.array([3, 200, 3, 77, 200])
    for gram, expected in grams(300):
        gram.rows(np.array([77, 200]))
        np.testing.assert_allclose(gram.block(index), expected[np.ix_(index, index)], atol=1e-13)


def test_matrix_of_all_samples_is_kept_and_serves_updates():
    beta = np.random.default_rng(6).normal(size=300)
    for gram, expected in grams(300):
        matrix = gram.block(np.arange(300))
        np.testing.assert_allclose(matrix, expected, atol=1e-13)
        before, residual = gram.counts.evaluations, np.zeros(300)
        assert gram.block(np.arange(300)) is matrix
        gram.update(residual, np.arange(300), beta)
        np.testing.assert_allclose(residual, -expected @ beta, atol=1e-10)
        assert gram.counts.evaluations == before


@pytest.mark.parametrize("n_support", [1, 100, 250])
@pytest.mark.parametrize("threads", [1, 2])
def test_product_at_its_own_support_compares_pairs_once(n_support, threads):
    rng = np.random.default_rng(7)
    beta = np.zeros(300)
    beta[rng.permutation(300)[:n_support]] = rng.normal(size=n_support)
    rows = np.union1d(np.flatnonzero(beta), np.arange(20))
    for gram, expected in grams(50, threads=threads):
        before = gram.counts.evaluations
        np.testing.assert_allclose(gram.product(beta, rows), (expected @ beta)[rows], atol=1e-12)
        assert gram.counts.evaluations - before <= max(0.65 * len(rows) * n_support, len(rows))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("n_rows", [1, 3, 130])
@pytest.mark.parametrize("kind", ["few", "many", "bits", "sparse"])
def test_product_at_few_rows_of_many_support_vectors(kind, n_rows, threads):
    rng = np.random.default_rng(2)
    data = rng.normal(size=(2600, 90 if kind == "many" else 5))
    if kind in ("bits", "sparse"):
        data = (rng.random((2600, 70)) < 0.08) * (1.0 if kind == "bits" else rng.normal(size=(2600, 70)))
    rows, coefficients = rng.permutation(2600)[:n_rows], rng.normal(size=2600)
    expected = kernel_matrix("rbf", data[rows], data, gamma=0.05) @ coefficients
    gram = Gram(sp.csr_array(data) if kind == "sparse" else data, Kernel("rbf", gamma=0.05), threads=threads)
    assert gram.storage == {"few": "dense", "many": "dense"}.get(kind, kind)
    np.testing.assert_allclose(gram.product(coefficients, rows), expected, atol=1e-10)


@pytest.mark.parametrize("rows", [4, 50])
def test_a_restriction_takes_over_the_rows_that_are_known(rows):
    """In whatever order they were used, and as many of the latest as it has room for."""
    keep = np.flatnonzero(np.arange(300) % 3 != 1)
    used = [200, 5, 77, 12, 4, 299, 150]
    for gram, expected in grams(rows):
        for row in used:
            gram.rows(np.array([row]))
        before = gram.counts.evaluations
        part = gram.restrict(keep)
        matrix = expected[np.ix_(keep, keep)]
        latest = [row for row in used[-rows:] if row in keep]
        places = np.searchsorted(keep, latest)
        np.testing.assert_allclose(part.cache.rows[part.rows(places)], matrix[places], atol=1e-12)
        assert gram.counts.evaluations == before
        everyone = np.arange(len(keep))
        np.testing.assert_allclose(part.block(everyone[:150]), matrix[:150, :150], atol=1e-12)
        residual = np.zeros(len(keep))
        part.update(residual, everyone, np.ones(len(keep)))
        np.testing.assert_allclose(-residual, matrix.sum(axis=1), atol=1e-10)


def test_empty_requests():
    for gram, _ in grams(50):
        residual = np.ones(300)
        gram.update(residual, np.zeros(0, np.int64), np.zeros(0))
        np.testing.assert_array_equal(residual, 1.0)
        np.testing.assert_array_equal(gram.product(np.zeros(300)), 0.0)
        assert gram.block(np.zeros(0, np.int64)).shape == (0, 0)


def test_product_is_double_whatever_the_rows_are():
    beta = np.random.default_rng(3).normal(size=300)
    gram = Gram(X, Kernel("rbf", gamma=0.2), precision="single")
    assert gram.block(np.arange(3)).dtype == np.float32
    np.testing.assert_allclose(gram.product(beta), K @ beta, rtol=0, atol=1e-12)


def test_kept_rows_are_hits_and_cost_no_evaluation():
    gram = Gram(WIDE, Kernel("rbf", gamma=0.02), cache_bytes=10 * 300 * 8, precision="double")
    residual, pair = np.zeros(300), np.array([4, 8])
    gram.update(residual, pair, np.ones(2))
    assert (gram.counts.evaluations, gram.counts.hits, gram.counts.misses) == (600, 0, 2)
    gram.update(residual, pair, np.ones(2))
    assert (gram.counts.evaluations, gram.counts.hits, gram.counts.misses) == (600, 2, 2)
    assert gram.counts.bytes == 2 * 300 * 8


@pytest.mark.parametrize("rows", [3, 5])
def test_cache_stays_within_its_budget(rows):
    rng = np.random.default_rng(4)
    for gram, _ in grams(rows):
        for _ in range(20):
            gram.update(np.zeros(300), rng.choice(300, size=4, replace=False), np.ones(4))
        assert gram.counts.bytes <= rows * 300 * 8


def test_linear_kernel_goes_through_the_weight_vector():
    gram = Gram(X, Kernel("linear"))
    gram.update(np.zeros(300), np.arange(100), np.ones(100))
    assert (gram.counts.evaluations, gram.counts.bytes) == (0, 0)


def test_default_cache_is_a_share_of_free_memory_but_untouched():
    gram = Gram(X, Kernel("rbf"))
    assert gram.cache_bytes > 1 << 20
    assert gram.counts.bytes == 0


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_weight_vector_of_samples_far_from_zero_has_the_same_values(kernel):
    """What all samples share is left out where coefficients sum to zero, and only there."""
    rng = np.random.default_rng(0)
    gram = Gram(rng.normal(5.0, size=(30, 4)), Kernel(kernel, gamma=0.1), precision="double").stored()
    steps = rng.normal(size=30)
    straight, centred = gram.with_weights(centered=False), gram.with_weights(centered=True)
    np.testing.assert_allclose(straight.product(steps), gram.product(steps), rtol=1e-9)
    steps -= steps.mean()
    difference = centred.product(steps) - gram.product(steps)  # the same for all
    np.testing.assert_allclose(difference, difference[0], atol=1e-9)
