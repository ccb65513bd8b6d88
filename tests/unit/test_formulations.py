"""The table of formulations, on samples few enough to fill it by hand."""

import numpy as np
import pytest

from hinge.dual.formulations import c_svc, epsilon_svr, nu_svc, nu_svr, one_class
from reference import assert_feasible

Y = np.array([1.0, -1.0, -1.0])
W = np.array([1.0, 2.0, 0.0])


def check(problem, v, lo, hi, group, sums):
    np.testing.assert_allclose(problem.v, v)
    np.testing.assert_array_equal(problem.lo, lo)
    np.testing.assert_array_equal(problem.hi, hi)
    np.testing.assert_array_equal(problem.group, group)
    np.testing.assert_allclose(problem.sums, sums)
    np.testing.assert_array_equal(problem.sample, np.arange(len(v)) % problem.n_samples)
    assert (problem.n_variables, problem.n_groups) == (len(v), len(sums))
    assert {problem.v.dtype, problem.lo.dtype, problem.hi.dtype, problem.start.dtype} == {np.dtype(np.float64)}
    assert problem.group.dtype == np.int8
    assert_feasible(problem.start, problem)


def test_c_svc():
    check(c_svc(Y, C=4.0), Y, [0, -4, -4], [4, 0, 0], [0, 0, 0], [0])
    check(c_svc(Y, C=4.0, weights=W), Y, [0, -8, 0], [4, 0, 0], [0, 0, 0], [0])


def test_c_svc_without_threshold_keeps_no_sum():
    check(c_svc(Y, C=4.0, fit_intercept=False), Y, [0, -4, -4], [4, 0, 0], [0, 0, 0], [])


def test_hard_margin_has_no_outer_bounds():
    check(c_svc(Y, C=np.inf), Y, [0, -np.inf, -np.inf], [np.inf, 0, 0], [0, 0, 0], [0])
    check(c_svc(Y, C=np.inf, weights=W), Y, [0, -np.inf, 0], [np.inf, 0, 0], [0, 0, 0], [0])


def test_nu_svc_has_a_group_per_label():
    problem = nu_svc(Y, nu=0.5)
    check(problem, [0, 0, 0], [0, -1, -1], [1, 0, 0], [0, 1, 1], [0.75, -0.75])
    np.testing.assert_allclose(problem.start, [0.75, -0.75, 0])
    check(nu_svc(Y, nu=0.5, weights=W), [0, 0, 0], [0, -2, 0], [1, 0, 0], [0, 1, 1], [0.75, -0.75])


def test_nu_svc_starts_like_libsvm():
    problem = nu_svc(np.array([1.0, 1, 1, -1, -1, -1]), nu=0.5)
    np.testing.assert_allclose(problem.start, [1, 0.5, 0, -1, -0.5, 0])


def test_one_class():
    problem = one_class(5, nu=0.5)
    check(problem, np.zeros(5), np.zeros(5), np.ones(5), np.zeros(5), [2.5])
    np.testing.assert_allclose(problem.start, [1, 1, 0.5, 0, 0])
    check(one_class(3, nu=0.5, weights=W), np.zeros(3), np.zeros(3), W, np.zeros(3), [1.5])


def test_epsilon_svr_has_two_variables_a_sample():
    y = np.array([3.0, -1.0])
    problem = epsilon_svr(y, C=2.0, epsilon=0.25)
    check(problem, [2.75, -1.25, 3.25, -0.75], [0, 0, -2, -2], [2, 2, 0, 0], [0] * 4, [0])
    weighted = epsilon_svr(y, C=2.0, epsilon=0.25, weights=[1.0, 3.0])
    check(weighted, problem.v, [0, 0, -2, -6], [2, 6, 0, 0], [0] * 4, [0])
    assert epsilon_svr(y, fit_intercept=False).n_groups == 0


def test_nu_svr_has_a_group_per_half():
    y = np.array([3.0, -1.0])
    problem = nu_svr(y, C=2.0, nu=0.5)
    check(problem, [3, -1, 3, -1], [0, 0, -2, -2], [2, 2, 0, 0], [0, 0, 1, 1], [1, -1])
    np.testing.assert_allclose(problem.start, [1, 0, -1, 0])
    weighted = nu_svr(y, C=2.0, nu=0.5, weights=[1.0, 3.0])
    check(weighted, problem.v, [0, 0, -2, -6], [2, 6, 0, 0], [0, 0, 1, 1], [2, -2])


def test_integer_labels_and_lists_are_accepted():
    np.testing.assert_array_equal(c_svc([1, -1]).v, [1.0, -1.0])
    np.testing.assert_array_equal(nu_svr([1, 2]).v, [1.0, 2.0, 1.0, 2.0])


@pytest.mark.parametrize("make", [c_svc, nu_svc, epsilon_svr, nu_svr])
def test_given_arrays_are_left_alone(make):
    y, w = Y.copy(), np.array([1.0, 2.0, 0.5])
    make(y, weights=w).start[:] = 0.5
    np.testing.assert_array_equal(y, Y)
    np.testing.assert_array_equal(w, [1.0, 2.0, 0.5])
