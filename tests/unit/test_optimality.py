"""Multipliers and gaps from residuals given by hand (LIBSVM document, section 3.7)."""

import numpy as np
import pytest

from hinge.dual.formulations import c_svc, epsilon_svr, nu_svc, one_class
from hinge.dual.optimality import doubt_of_objective, gap_of, multipliers_of, objective_of, violation_of

PROBLEM = c_svc([1, 1, -1, -1], C=2.0)


def test_intercept_is_the_mean_over_free_variables():
    beta, r = np.array([1.0, 2.0, -1.0, -2.0]), np.array([0.25, 5.0, 0.75, -5.0])
    np.testing.assert_array_equal(multipliers_of(PROBLEM, beta, r), [0.5])


def test_intercept_without_free_variables_is_the_middle_of_the_interval():
    """β = (C, 0, −C, 0): r of those that may grow is 1 and −3, of those that may fall 2 and 4."""
    beta, r = np.array([2.0, 0.0, -2.0, 0.0]), np.array([2.0, 1.0, -3.0, 4.0])
    np.testing.assert_array_equal(multipliers_of(PROBLEM, beta, r), [1.5])
    assert violation_of(PROBLEM, beta, r) == 0


def test_intercept_of_a_half_open_interval_is_its_end():
    problem = c_svc([1, 1], C=2.0)
    np.testing.assert_array_equal(multipliers_of(problem, np.zeros(2), np.array([3.0, 4.0])), [4.0])
    np.testing.assert_array_equal(multipliers_of(problem, np.full(2, 2.0), np.array([3.0, 4.0])), [3.0])


def test_each_group_has_its_own_multiplier_and_the_worst_violation_counts():
    problem = nu_svc([1, 1, -1, -1], nu=0.5)
    beta, r = np.array([0.5, 0.5, -0.5, -0.5]), np.array([1.0, 2.0, -3.0, -7.0])
    np.testing.assert_array_equal(multipliers_of(problem, beta, r), [1.5, -5.0])
    assert violation_of(problem, beta, r) == 4


def test_without_threshold_the_multiplier_is_zero():
    problem = c_svc([1, 1, -1, -1], C=2.0, fit_intercept=False)
    beta, r = np.array([0.0, 1.0, -1.0, 0.0]), np.array([0.5, -0.75, 0.25, -0.125])
    assert multipliers_of(problem, beta, r).shape == (0,)
    assert violation_of(problem, beta, r) == 0.75
    # 0.5 · 2 to rise, 0.75 · 1 to fall, 0.25 · 1 to rise, −0.125 to fall by 2
    assert gap_of(problem, beta, r, np.zeros(0)) == 2.25


def test_objective_and_gap_of_c_svc():
    """At zero every sample loses 1: the primal is C times four, the dual is 0."""
    beta, r = np.zeros(4), PROBLEM.v
    assert objective_of(PROBLEM, beta, r) == 0
    assert gap_of(PROBLEM, beta, r, np.zeros(1)) == 8


def test_two_variables_of_a_sample_may_cancel():
    """β = (2²⁷ + 2⁻²⁰, 2⁻²⁰ − 2²⁷) of a sample with k(x, x) = 10¹⁸: its coefficient is 2⁻¹⁹."""
    problem, size = epsilon_svr([0.5], C=1e9, epsilon=0.25), 2.0**27
    beta = np.array([size + 2.0**-20, 2.0**-20 - size])
    residual = problem.residual_of(beta, np.array([2.0**-19 * 1e18]))
    expected = 0.5 * 1e18 * 2.0**-38 - 0.5 * 2.0**-19 + 0.25 * 2 * size
    found, doubt = objective_of(problem, beta, residual), doubt_of_objective(problem, beta, residual, np.zeros(1))
    assert found == pytest.approx(expected, abs=1e-6)
    assert abs(found - expected) <= doubt < 1e-5


def test_what_the_residual_leaves_open_of_the_objective():
    """Each coefficient times half the error of its own image, and next to nothing besides."""
    problem, beta = one_class(2, nu=1.0), np.array([0.75, 1.25])
    doubt = doubt_of_objective(problem, beta, np.zeros(2), np.array([0.5, 2.0]))
    assert doubt == pytest.approx(0.5 * (0.75 * 0.5 + 1.25 * 2.0))
