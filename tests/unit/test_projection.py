"""``DualProblem.project``: the nearest point that keeps the box and the sums."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from hinge.dual.formulations import c_svc, epsilon_svr, nu_svc, nu_svr, one_class
from reference import assert_feasible, members

Y = np.array([1.0, 1.0, -1.0, -1.0])


@pytest.mark.parametrize(
    ("beta", "expected"),
    [
        ([0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]),
        ([1.0, 0.5, -0.5, -1.0], [1.0, 0.5, -0.5, -1.0]),  # feasible already
        ([9.0, 9.0, -9.0, -9.0], [2.0, 2.0, -2.0, -2.0]),  # only the box
        ([1.0, 1.0, -0.5, -0.5], [0.75, 0.75, -0.75, -0.75]),  # a shift of ¼
        ([1.0, 0.0, 0.0, 0.0], [2 / 3, 0.0, -1 / 3, -1 / 3]),  # λ with (1 − λ)₊ + (−λ)₊ = 2λ
        ([-1.0, -1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0]),
    ],
)
def test_one_group_by_hand(beta, expected):
    projected = c_svc(Y, C=2.0).project(np.array(beta))
    np.testing.assert_allclose(projected, expected, atol=1e-15)


def test_groups_are_projected_apart():
    problem = nu_svc(Y, nu=0.5)  # each label sums to one
    np.testing.assert_allclose(problem.project(np.array([0.5, 0.0, 0, -9])), [0.75, 0.25, 0, -1])


def test_without_groups_it_is_clipping():
    problem = c_svc(Y, C=2.0, fit_intercept=False)
    np.testing.assert_array_equal(problem.project(np.array([3.0, -1.0, -1.0, -5.0])), [2, 0, -1, -2])


def test_infinite_bounds():
    problem = c_svc(Y, C=np.inf)
    np.testing.assert_allclose(problem.project(np.array([5.0, 0, 0, -1.0])), [11 / 3, 0, -4 / 3, -7 / 3])
    np.testing.assert_allclose(problem.project(np.array([0.0, 0, -6.0, 0])), [2.0, 2.0, -4.0, 0])


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"\(4,\).*\(3,\)"):
        c_svc(Y).project(np.zeros(3))
    with pytest.raises(ValueError, match=r"(?i)nan"):
        c_svc(Y).project(np.array([0.0, np.nan, 0, 0]))


def test_bounded_variables_rest_exactly_on_their_bounds():
    """λ = 0.151: whatever is not above it goes to its bound, without a trace of rounding."""
    costs, beta = np.array([1, 0.5, 2, 1e-3, 1]), np.array([0.3, 0.3, 0.0, 0.3, 0.0])
    nearest = c_svc(np.array([-1.0, 1, -1, 1, 1]), C=2.0, weights=costs).project(beta)
    np.testing.assert_allclose(nearest, [0.0, 0.149, -0.151, 0.002, 0.0], atol=1e-15)
    np.testing.assert_array_equal(nearest[[0, 3, 4]], [0.0, 0.002, 0.0])


def problems():
    y = np.where(np.arange(9) % 3, 1.0, -1.0)
    w = np.array([1, 0.5, 0, 2, 1e-3, 1, 3, 0.1, 1.0])
    return [
        c_svc(y, C=2.0, weights=w),
        c_svc(y, C=np.inf),
        nu_svc(y, nu=0.6, weights=w),
        nu_svc(np.where(np.arange(9) % 3, 1.0, -1.0), nu=2 / 3),
        one_class(9, nu=0.4, weights=w),
        one_class(9, nu=1.0),
        epsilon_svr(y, C=0.1),
        nu_svr(y, C=1e4, nu=0.3, weights=w),
    ]


@pytest.mark.parametrize("which", range(8))
@examples(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from((1e-9, 0.3, 5.0, 1e6)),
    grid=st.booleans(),
)
def test_projection_is_feasible_nearest_and_repeatable(which, seed, scale, grid):
    problem = problems()[which]
    beta = np.random.default_rng(seed).normal(scale=scale, size=problem.n_variables)
    beta = np.round(beta / scale) * scale if grid else beta
    nearest = problem.project(beta)
    assert_feasible(nearest, problem)
    # optimality of ½‖p − β‖²: what is pushed to a bound wants to go beyond it, by one shift per group
    push, slack = beta - nearest, 1e-12 * max(1.0, scale) * len(beta)
    for t in members(problem):
        can_rise, can_fall = nearest[t] < problem.hi[t] - slack, nearest[t] > problem.lo[t] + slack
        most, least = push[t][can_rise].max(initial=-np.inf), push[t][can_fall].min(initial=np.inf)
        assert most <= least + slack
    np.testing.assert_allclose(problem.project(nearest), nearest, rtol=0, atol=slack)


def test_a_start_keeps_variables_at_their_bounds():
    problem = c_svc(Y, C=2.0)
    np.testing.assert_allclose(problem.near(np.array([1.5, 0.0, -0.5, 0.0])), [1.0, 0.0, -1.0, 0.0])
    np.testing.assert_allclose(problem.near(np.array([2.0, 0.0, -0.5, -0.5])), [2.0, 0.0, -1.0, -1.0])


@pytest.mark.parametrize("beta", [[2.0, 2.0, -2.0, 0.0], [2.0, 2.0, 0.0, -0.1]])
def test_a_start_is_projected_where_the_bounds_leave_no_other_way(beta):
    problem = c_svc(Y, C=2.0)
    np.testing.assert_array_equal(problem.near(np.array(beta)), problem.project(np.array(beta)))


@examples(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 12))
def test_every_start_becomes_feasible(seed, n):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    for problem in (c_svc(y, C=1.5), nu_svc(y, nu=0.3), one_class(n, nu=0.4), nu_svr(y, C=1.0, nu=0.5)):
        beta = np.where(rng.random(problem.n_variables) < 0.4, 0.0, rng.normal(size=problem.n_variables))
        assert_feasible(problem.near(beta), problem)
