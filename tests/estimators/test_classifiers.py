"""Classes, votes, shapes and kernels of the classifiers."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import chi2_kernel, laplacian_kernel

from hinge import SVC, NuSVC
from hinge.training.multiclass import by_opponent, count_votes, duels, votes_with_confidence


def test_votes_go_to_the_first_of_equals():
    decisions = np.array([[1.0, -1.0, 1.0], [1.0, 0.5, -1.0], [0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(count_votes(decisions, 3), [[1, 1, 1], [2, 0, 1], [0, 1, 2]])
    assert np.argmax(count_votes(decisions, 3), axis=1).tolist() == [0, 0, 2]


def test_confidence_never_outweighs_a_vote():
    decisions = np.random.default_rng(0).normal(size=(500, 6)) * 1e3
    votes, confident = count_votes(decisions, 4), votes_with_confidence(decisions, 4)
    assert np.abs(confident - votes).max() < 0.5


def test_break_ties_prefers_the_confident_class():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    y = np.arange(90) % 3
    X[np.arange(90), y % 2] += 1.0
    grid = rng.uniform(-4, 4, size=(4000, 2))
    plain, breaking = SVC(gamma=2.0).fit(X, y), SVC(gamma=2.0, break_ties=True).fit(X, y)
    np.testing.assert_array_equal(breaking.predict(grid), np.argmax(breaking.decision_function(grid), axis=1))
    votes = count_votes(SVC(gamma=2.0, decision_function_shape="ovo").fit(X, y).decision_function(grid), 3)
    is_tie = (votes == 1).all(axis=1)
    assert is_tie.any()
    assert (plain.predict(grid)[is_tie] == 0).all()
    assert (breaking.predict(grid)[is_tie] != 0).any()


def test_break_ties_needs_ovr(blobs):
    with pytest.raises(ValueError, match="break_ties must be False"):
        SVC(break_ties=True, decision_function_shape="ovo").fit(*blobs).predict(blobs[0])


def test_shapes_of_decision_function(blobs):
    X, y = blobs
    y = y + 3 * (np.arange(len(y)) % 2)
    assert SVC().fit(X, y).decision_function(X).shape == (len(y), 6)
    assert SVC(decision_function_shape="ovo").fit(X, y).decision_function(X).shape == (len(y), 15)
    assert SVC(multi_class="ovr").fit(X, y).decision_function(X).shape == (len(y), 6)
    assert SVC().fit(X, y > 2).decision_function(X).shape == (len(y),)


def test_one_against_rest_trains_one_machine_a_class(blobs):
    X, y = blobs
    machine = SVC(gamma=0.3, multi_class="ovr").fit(X, y)
    for c in range(3):
        alone = SVC(gamma=0.3).fit(X, y == c).decision_function(X)
        np.testing.assert_allclose(machine.decision_function(X)[:, c], alone, atol=1e-7)
    np.testing.assert_array_equal(machine.predict(X), np.argmax(machine.decision_function(X), axis=1))
    assert machine.dual_coef_.shape == (3, len(machine.support_))
    with pytest.raises(ValueError, match="multi_class='ovo'"):
        SVC(multi_class="ovr", decision_function_shape="ovo").fit(X, y)


@pytest.mark.parametrize("weights", [{0: 1.0, 1: 3.0, 2: 0.5}, "balanced"])
def test_class_weights_in_one_against_rest(weights, blobs):
    """Every machine counts a sample by the weight of its own class, also those of the rest."""
    X, y = blobs[0][30:], blobs[1][30:] % 2 + (blobs[1][30:] == 2) * (np.arange(150) % 3 > 0) * 2
    machine = SVC(gamma=0.3, multi_class="ovr", class_weight=weights).fit(X, y)
    of_class = machine.class_weight_
    for c in range(3):
        alone = SVC(gamma=0.3).fit(X, y == c, sample_weight=of_class[y]).decision_function(X)
        np.testing.assert_allclose(machine.decision_function(X)[:, c], alone, atol=1e-6)
    totals = np.bincount(y, of_class[y])
    assert (np.ptp(totals) < 1e-9) == (weights == "balanced")


def test_a_pair_is_trained_on_its_two_classes_alone(blobs):
    X, y = blobs
    machine = SVC(gamma=0.3, decision_function_shape="ovo").fit(X, y)
    for column, (i, j) in enumerate(duels(3)):
        chosen = (y == i) | (y == j)
        alone = SVC(gamma=0.3).fit(X[chosen], y[chosen] == i)
        np.testing.assert_allclose(machine.decision_function(X)[:, column], alone.decision_function(X), atol=1e-7)


def test_layout_by_opponent():
    coefficients = np.array([[1.0, 2.0, 0.0], [3.0, 0.0, 4.0], [0.0, 5.0, 6.0]])
    np.testing.assert_array_equal(by_opponent(coefficients, np.array([0, 1, 2]), 3), [[1, 2, 4], [3, 5, 6]])


def test_linear_weights_are_decisions(blobs):
    X, y = blobs
    dense = SVC(kernel="linear", decision_function_shape="ovo").fit(X, y)
    np.testing.assert_allclose(X @ dense.coef_.T + dense.intercept_, dense.decision_function(X), atol=1e-9)
    sparse = SVC(kernel="linear", decision_function_shape="ovo").fit(sp.csr_matrix(X), y)
    assert sp.issparse(sparse.coef_)
    assert sp.issparse(sparse.dual_coef_)
    np.testing.assert_allclose(sparse.coef_.toarray(), dense.coef_, atol=1e-7)
    with pytest.raises(ValueError, match="read-only"):
        dense.coef_[0, 0] = 1.0
    with pytest.raises(AttributeError, match="linear kernel"):
        _ = SVC().fit(X, y).coef_


def test_without_intercept(blobs):
    X, y = blobs
    machine = SVC(fit_intercept=False, kernel="linear").fit(X, y > 0)
    assert machine.intercept_ == [0.0]
    assert machine.decision_function(np.zeros((1, 4))) == [0.0]


def test_hard_margin():
    X, y = np.array([[-1.0], [-3.0], [1.0], [4.0]]), [0, 0, 1, 1]
    machine = SVC(C=np.inf, kernel="linear").fit(X, y)
    np.testing.assert_allclose(machine.decision_function(X), [-1, -3, 1, 4])


@pytest.mark.parametrize(("name", "function"), [("laplacian", laplacian_kernel), ("chi2", chi2_kernel)])
def test_kernels_by_name(name, function, blobs):
    X, y = np.abs(blobs[0]), blobs[1]
    named = SVC(kernel=name, gamma=0.3).fit(X, y)
    given = SVC(kernel="precomputed").fit(function(X, gamma=0.3), y)
    np.testing.assert_allclose(
        named.decision_function(X), given.decision_function(function(X, gamma=0.3)), atol=1e-7
    )


def test_labels_of_any_type(blobs):
    X, y = blobs
    names = np.array(["x", "y", "z"], dtype=object)[y]
    np.testing.assert_array_equal(
        SVC().fit(X, names).predict(X), np.array(["x", "y", "z"])[SVC().fit(X, y).predict(X)]
    )


def test_nu_bounds_the_share_of_support_vectors(blobs):
    X, y = blobs
    for nu in (0.1, 0.5, 0.9):
        machine = NuSVC(nu=nu).fit(X, y > 0) if nu <= 0.66 else NuSVC(nu=0.66).fit(X, y > 0)
        assert len(machine.support_) >= min(nu, 0.66) * len(y) - 1


def test_nu_that_some_pairs_cannot_have(blobs):
    X, y = blobs
    few = np.r_[np.flatnonzero(y != 2), np.flatnonzero(y == 2)[:10]]
    with pytest.warns(UserWarning, match="infeasible for 2 of 3 pairs"):
        machine = NuSVC(nu=0.5).fit(X[few], y[few])
    assert machine.fit_status_ == 0
