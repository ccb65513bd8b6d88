"""The precision that data allows, and what the Gram matrices made of one inherit of it.

Two clusters far from each other, and both far from zero: the distances within a cluster, which decide the kernel
values, are small beside the norms, whatever centre the data is seen from. Values are compared with those of long
double.
"""

import numpy as np
import pytest
import scipy.sparse as sp

from hinge import Gram, Kernel, Settings, Sizes, solve
from hinge.dual.formulations import c_svc
from reference import assert_solved, kernel_matrix

N = 150
SMALL = Sizes(one_set=30, smallest_set=15, largest_set=30, cheap_subset=30, dear_subset=30)
EXACT = {"single": 2e-5, "double": 2e-10}


def clusters(d, ratio, offset=3.0):
    """Rows in two clusters of width 1, ``ratio`` apart; their kernel, with values about ½ inside a cluster."""
    rng = np.random.default_rng(d)
    side = np.arange(N) % 2
    X = rng.normal(size=(N, d)) / np.sqrt(d) + (offset + side)[:, None] * ratio / np.sqrt(d)
    X[0] = X.mean(axis=0)  # one in the middle, which says nothing of the others
    K = kernel_matrix("rbf", X, X, gamma=0.5, dtype=np.longdouble).astype(np.float64)
    return X, Kernel("rbf", gamma=0.5), K


def descendants(gram, index):
    """Every kind of Gram matrix of some of the samples that is made of one of all."""
    rows = np.arange(len(index))
    yield "restrict", gram.restrict(index)
    yield "restrict twice", gram.restrict(np.arange(gram.n)).restrict(index)
    yield "part", gram.part(index, threads=1, cache_bytes=1 << 20)
    yield "part in double", gram.part(index, threads=1, cache_bytes=1 << 20).in_double()
    yield "part stored", gram.part(index, threads=1, cache_bytes=1 << 20).stored()
    yield "double", gram.in_double().restrict(index)
    yield "stored", gram.stored().restrict(index)
    yield "between", gram.given(gram.between(index, index), index).restrict(rows)


@pytest.mark.parametrize("store", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("ratio", [1.0, 10.0, 100.0, 1e3, 1e5])
@pytest.mark.parametrize("d", [3, 12, 13, 40, 150])
def test_values_are_as_exact_as_their_precision_says(d, ratio, store):
    X, kernel, K = clusters(d, ratio)
    gram, beta = Gram(store(X), kernel), np.random.default_rng(0).normal(size=N)
    everyone, half = np.arange(N), np.flatnonzero(np.arange(N) % 5 != 0)
    np.testing.assert_allclose(gram.block(half), K[np.ix_(half, half)], rtol=0, atol=EXACT[gram.precision])
    np.testing.assert_allclose(gram.product(beta), K @ beta, rtol=0, atol=1e-8)
    change = np.zeros(N)
    gram.update(change, everyone, beta)
    np.testing.assert_allclose(-change, K @ beta, rtol=0, atol=EXACT[gram.precision] * np.abs(beta).sum())


@pytest.mark.parametrize("ratio", [1.0, 100.0, 1e5])
@pytest.mark.parametrize("d", [12, 13, 90])
def test_parts_inherit_how_samples_are_compared(d, ratio):
    X, kernel, K = clusters(d, ratio)
    index = np.flatnonzero(np.arange(N) % 3 != 0)
    expected, beta = K[np.ix_(index, index)], np.random.default_rng(1).normal(size=len(index))
    for name, part in descendants(Gram(X, kernel), index):
        allowed = EXACT[part.precision]
        np.testing.assert_allclose(part.diagonal, 1.0, err_msg=name)
        np.testing.assert_allclose(
            part.block(np.arange(50)), expected[:50, :50], rtol=0, atol=allowed, err_msg=name
        )
        change = np.zeros(len(index))
        part.update(change, np.arange(len(index)), beta)
        most = allowed * np.abs(beta).sum()
        np.testing.assert_allclose(-change, expected @ beta, rtol=0, atol=most, err_msg=name)
        if not name.startswith("restrict"):  # whose samples may be single: nobody asks them for more
            np.testing.assert_allclose(part.product(beta), expected @ beta, rtol=0, atol=1e-8, err_msg=name)


def test_the_choice_of_precision():
    """Few features are compared by differences, which do not cancel; of many, single precision loses distances."""
    chosen = {(d, ratio): Gram(*clusters(d, ratio)[:2]) for d in (12, 13) for ratio in (1.0, 50.0, 1e5)}
    assert {key: gram.precision for key, gram in chosen.items()} == {
        (12, 1.0): "single", (12, 50.0): "single", (12, 1e5): "double",
        (13, 1.0): "single", (13, 50.0): "double", (13, 1e5): "double",
    }  # fmt: skip
    assert [chosen[13, ratio].source.statistic for ratio in (1.0, 50.0, 1e5)] == ["dot", "dot", "l2"]


@pytest.mark.parametrize("ratio", [1.0, 1e3, 1e5])
@pytest.mark.parametrize("d", [10, 40, 90])
def test_solutions_on_clusters_far_from_the_origin(d, ratio):
    """With small working sets the solver works on restrictions of restrictions, cheap and expensive."""
    X, kernel, K = clusters(d, ratio)
    y = np.where(X[:, 0] - np.where(np.arange(N) % 2, 4, 3) * ratio / np.sqrt(d) > 0, 1.0, -1.0)
    problem = c_svc(y, C=10.0)
    solution = solve(problem, Gram(X, kernel), Settings(solver="block", tol=1e-4, sizes=SMALL))
    assert_solved(solution, problem, K, 1e-4)
    assert solution.report.largest_set <= 30
    assert solution.report.fewest_active < N
