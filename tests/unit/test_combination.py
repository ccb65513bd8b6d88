"""Sums over support vectors for all machines, votes and confidences: against the formulas, row by row."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp

from hinge import SVC
from hinge.kernel.combination import Combination
from hinge.training.multiclass import count_votes, votes_with_confidence


def pair_coefficients(n_classes, per_class, seed=0):
    """Coefficients of all pairs: those of a pair's two classes, zero elsewhere."""
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(n_classes), per_class)
    rows = [np.where((owner == i) | (owner == j), rng.normal(size=len(owner)), 0.0) for i, j in pairs(n_classes)]
    return np.array(rows)


def pairs(n_classes):
    return list(combinations(range(n_classes), 2))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("n_classes", [2, 3, 12])
@pytest.mark.parametrize("n_rows", [1, 2, 8, 9, 23])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_are_those_of_the_formula_for_any_number_of_rows_and_classes(form, n_classes, n_rows, dtype):
    coefficients = pair_coefficients(n_classes, 7)
    values = np.random.default_rng(1).uniform(size=(n_rows, coefficients.shape[1])).astype(dtype)
    combination, sums = Combination(form(coefficients)), np.ones((n_rows, len(coefficients)))
    cut = coefficients.shape[1] // 3
    for start, stop in ((0, cut), (cut, coefficients.shape[1])):
        combination.add(values[:, start:stop], start, sums)
    np.testing.assert_allclose(sums, 1 + values @ coefficients.T, atol=20 * np.finfo(dtype).eps)


def test_a_row_predicted_alone_has_the_decisions_that_it_has_among_others():
    rng = np.random.default_rng(2)
    y = np.arange(120) % 12
    X = rng.normal(size=(12, 5))[y] * 2 + rng.normal(size=(120, 5))
    machine = SVC(decision_function_shape="ovo").fit(X, y)
    together = machine.decision_function(X)
    for k in (0, 7, 119):
        np.testing.assert_array_equal(machine.decision_function(X[[k]])[0], together[k])


@pytest.mark.parametrize("n_classes", [3, 4, 11])
def test_votes_and_confidences_are_those_of_each_pair(n_classes):
    decisions = np.random.default_rng(3).normal(size=(6, len(pairs(n_classes))))
    decisions[0, 0] = 0.0  # no vote for the first
    votes, confidence = np.zeros((6, n_classes), int), np.zeros((6, n_classes))
    for column, (i, j) in enumerate(pairs(n_classes)):
        for row, value in enumerate(decisions[:, column]):
            votes[row, i if value > 0 else j] += 1
            confidence[row, i] += value
            confidence[row, j] -= value
    np.testing.assert_array_equal(count_votes(decisions, n_classes), votes)
    expected = votes + confidence / (3 * (np.abs(confidence) + 1))
    np.testing.assert_allclose(votes_with_confidence(decisions, n_classes), expected, atol=1e-14)
