"""Samples that are there more than once: what they have together meets K as one coefficient."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from hinge import Gram, Kernel, Settings, certificate, solve
from hinge.dual.alike import best_shared
from hinge.dual.formulations import c_svc, epsilon_svr
from hinge.dual.residuals import exact_residual, objective_at_most
from hinge.solvers.guard import Guard
from hinge.solvers.state import State

ROWS = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
ALIKE = np.array([0, 1, 0, 3, 1])
HUGE = Kernel("poly", gamma=1e10, degree=3)  # k(x, x) of 1e30 and 8e30


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(lambda: Gram(ROWS, HUGE), id="bits"),
        pytest.param(lambda: Gram(0.5 * ROWS, HUGE), id="dense"),
        pytest.param(lambda: Gram(np.where(ROWS == 0, -0.0, 0.5), HUGE), id="zeros of either sign"),
        pytest.param(lambda: Gram((0.5 * ROWS).astype(np.float32), HUGE), id="single"),
        pytest.param(lambda: Gram(sp.csr_array(0.5 * np.pad(ROWS, ((0, 0), (0, 1000)))), HUGE), id="sparse"),
        pytest.param(lambda: Gram(ROWS @ ROWS.T, Kernel("precomputed")), id="precomputed"),
        pytest.param(lambda: Gram(ROWS, Kernel(lambda a, b: a @ b.T)), id="callable"),
        pytest.param(lambda: Gram(ROWS, HUGE).stored(), id="stored"),
        pytest.param(
            lambda: Gram(np.vstack([ROWS[::-1], ROWS]), HUGE).restrict(np.arange(5, 10)), id="restricted"
        ),
    ],
)
def test_equal_samples_are_found_in_every_form(form):
    np.testing.assert_array_equal(form().alike(), ALIKE)


def test_equal_kernel_values_make_no_equal_samples():
    """Far from zero the rows of K are the same to the last bit, and the samples are not."""
    rows = 1e8 + np.array([[0.0], [1e-7], [2e-7]])
    gram = Gram(rows, Kernel("rbf", gamma=1e-3))
    values = gram.in_double().block(np.array([1, 0, 2]))
    assert (values == 1.0).all()
    np.testing.assert_array_equal(gram.alike(), [0, 1, 2])


@given(
    st.lists(
        st.tuples(st.floats(-1e9, 1e9), st.floats(1e-20, 1e12), st.floats(0, 1), st.integers(-2, 2)),
        min_size=2,
        max_size=12,
    )
)
def test_sharing_keeps_the_sum_and_prefers_large_v(variables):
    lo, width, place, v = np.array(variables).T
    hi = lo + width
    beta = np.clip(lo + place * width, lo, hi)
    best = best_shared(beta, v, lo, hi, np.zeros(len(v), np.int64))
    assert ((best >= lo) & (best <= hi)).all()
    lack = abs(sum(map(Fraction, beta)) - sum(map(Fraction, best)))
    assert lack <= np.finfo(float).eps * np.abs(best).max()
    most, rest = Fraction(0), sum(map(Fraction, beta)) - sum(map(Fraction, lo))
    for t in np.argsort(-v, kind="stable"):
        share = min(rest, Fraction(hi[t]) - Fraction(lo[t]))
        most, rest = most + int(v[t]) * (Fraction(lo[t]) + share), rest - share
    least = most - sum(int(v[t]) * Fraction(best[t]) for t in range(len(v)))
    assert least <= 1e-14 * float(np.abs(v) @ np.maximum(np.abs(lo), np.abs(hi)))


def test_what_copies_leave_of_huge_terms_is_known_to_the_last_digit():
    """k(x, x) of 1e17 makes 1e-17 as much as a margin."""
    beta = np.array([1.9e14, -1.6e-18, 7.8e-7, -1.1e14, 3.3e-3, -0.8e14, 7.9e-18, -3.3e-3, -7.8e-7])
    beta[5] = -(beta[0] + beta[3])
    problem = replace(c_svc(np.sign(beta), C=1e15), alike=np.zeros(9, np.int64))
    change, left = problem.change(beta, np.zeros(9))
    truth = sum(map(Fraction, beta))
    assert abs(Fraction(change[0]) + Fraction(left[0]) - truth) <= 1e-15 * abs(truth)
    assert abs(left[0]) <= 1e-15 * abs(change[0])


def test_what_rounding_takes_from_a_large_share_goes_to_a_small_one():
    """Sums of 1e10 are rounded to 1e-6, beside which 1e-3 and 1e-12 have room."""
    lo, hi = np.array([0.0, 0.0, -2.6e11, -1e-3, -1e-12]), np.array([6.2e9 + 0.1, 1e-12, 0.0, 0.0, 0.0])
    beta = np.array([0.0, 1e-13, 0.0, 0.0, 0.0])
    best = best_shared(beta, np.sign(hi + lo), lo, hi, np.zeros(5, np.int64))
    assert best[2] < -6e9
    assert abs(sum(map(Fraction, best)) - Fraction(1e-13)) < Fraction(1e-27)


@pytest.mark.parametrize(
    ("widths", "n_full"),
    [
        ([1e16, 1e3, 1e14, 1.0, 1.0], 5),
        ([1e15, 1e-3, 1e14, 1e12, 1e3, 1e15, 1e-3, 1e14, 1e12, 1e8, 10.0], 6),
    ],
)
def test_the_best_share_stays_as_it_is_where_rounding_misses_its_end(widths, n_full):
    """Added up in turn, boxes of 1e16 swallow those of 1: a sum seems to end a place or two away."""
    width = np.array(widths) / (3.0 if n_full < len(widths) else 1.0)
    is_full = np.arange(len(width)) < n_full
    beta = np.where(is_full, width, 0.0)
    v = -np.arange(len(width), dtype=float)
    best = best_shared(beta, v, np.zeros(len(width)), width, np.zeros(len(width), np.int64))
    np.testing.assert_array_equal(best, beta)


def test_coefficients_of_equal_samples_cancel_to_twice_the_digits():
    """Kβ of 1e30 · (C + tiny − C): what is left of the sum is tiny, whatever the order."""
    problem = replace(c_svc([1, 1, -1, 1, -1], C=1e8), alike=ALIKE)
    beta = np.array([1e8, 0.0, -1e8, 0.0, 0.0]) + np.array([0.0, 3e-25, 0.0, 1e-30, 0.0])
    np.testing.assert_array_equal(problem.coefficients(beta), [0.0, 3e-25, 0.0, 1e-30, 0.0])
    change, left = problem.change(beta, np.array([0.0, 1e8, 0.0, 0.0, -1e8]))
    assert Fraction(change[1]) + Fraction(left[1]) == Fraction(3e-25)
    gram = Gram(ROWS, HUGE)
    residual, error = exact_residual(problem, gram, np.array([1e8, 0, -1e8, 0, 0]), np.arange(5), 1e-3)
    np.testing.assert_array_equal(residual.ravel(), problem.v)
    assert error.max() < 1e-14


def test_variables_of_regression_are_shared_out_between_copies():
    """Of two copies with targets 1 and −1 the first wants to rise, the second to fall, by all they may."""
    problem = replace(epsilon_svr([1.0, -1.0, 0.5], C=2.0, epsilon=0.1), alike=np.array([0, 0, 2]))
    np.testing.assert_array_equal(problem.best_shared(problem.start), [2.0, 0.0, 0.0, 0.0, -2.0, 0.0])


def test_the_guard_shares_out_what_it_is_shown():
    problem, gram = replace(c_svc([1, 1, -1, 1, -1], C=1e8), alike=ALIKE), Gram(ROWS, HUGE)
    guard = Guard(1e-3)
    state = State(problem, gram, np.zeros(5), problem.v.copy(), is_stale=True)
    assert guard.note(state, np.zeros(5)) == pytest.approx(-4e8)
    guard.lead(state)
    np.testing.assert_array_equal(state.beta, [1e8, 1e8, -1e8, 0.0, -1e8])
    # A point where sharing loses more to rounding than it gains is left as it is.
    lo, hi = np.array([0.0, 0.0, -3e7 / 7, 0.0, 0.0]), np.array([1e7 / 3, 0.0, 0.0, 0.0, 0.0])
    wide = replace(problem, lo=lo, hi=hi)
    point = np.array([1e-25, 0.0, 0.0, 0.0, 0.0])
    alone, _, _ = objective_at_most(wide, gram, point, 1e-3)
    assert Guard(1e-3).note(State(wide, gram, point, wide.v.copy(), is_stale=True), point) <= alone


def test_copies_labelled_differently_reach_their_bounds_beside_huge_kernel_values():
    """Each pattern labelled +1 and −1: all at their bounds, where Kβ is zero and the objective −2C a pair."""
    rows = np.array([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)], float)
    y, C = np.repeat([1, -1], 8), 1e5
    problem = c_svc(y, C=C)
    solution = solve(problem, Gram(np.vstack([rows, rows]), Kernel("poly", gamma=1e11, degree=3)), Settings())
    np.testing.assert_array_equal(solution.beta, C * y)
    assert solution.report.converged


def test_a_certificate_adds_up_copies_too():
    """Beside k(x, x) of 1e30 the bound on rounding is 1e22 where each copy counts on its own."""
    problem, gram = c_svc([1, 1, -1, 1, -1], C=1e8), Gram(ROWS, HUGE)
    found = certificate(problem, gram, np.array([1e8, 1e8, -1e8, 0.0, -1e8]))
    assert found.rounding < 1e-14
    assert found.violation == 0.0  # the one that is left could only rise, and all others only fall
    assert found.objective == -4e8
