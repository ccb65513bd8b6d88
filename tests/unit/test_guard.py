"""The best point of a run is looked for on the line through where steps ended."""

import numpy as np
import pytest

from hinge import Gram, Kernel
from hinge.dual.formulations import c_svc, one_class
from hinge.dual.residuals import exact_residual
from hinge.solvers.guard import Guard, may_be_above
from hinge.solvers.state import State, restore_sums


@pytest.mark.parametrize(
    ("ended", "is_better"),
    [
        (1e-3, True),  # steps crawl: far beyond
        (10.0, False),  # above the start: back
        (0.5, True),
    ],
)
def test_lead_goes_to_the_lowest_point_on_the_line(ended, is_better):
    """Along β = (t, −t) the objective is 2t² − 2t."""
    problem, gram = c_svc([1, -1], C=10.0), Gram(np.array([[1.0], [-1.0]]), Kernel("linear"))
    guard, beta = Guard(1e-3), np.array([ended, -ended])
    state = State(problem, gram, beta, problem.v.copy(), is_stale=True)
    guard.note(state, np.zeros(2))
    assert guard.lead(state) == is_better
    np.testing.assert_allclose(state.beta, [0.5, -0.5])
    np.testing.assert_allclose(state.residual, [0.0, 0.0], atol=1e-11)
    assert guard.least == pytest.approx(-0.5)


def test_lead_keeps_the_sums():
    """A way as short as rounding does not sum to nought, and may be gone a million times."""
    problem = c_svc([1, -1, 1, -1], C=1e9)
    gram = Gram(np.array([[1.0], [-1.0], [0.5], [-0.25]]), Kernel("linear"))
    guard, origin = Guard(1e-3), np.array([1e-9, -1e-9, 1e8, -1e8]) * 1e-9
    state = State(problem, gram, origin.copy(), problem.v.copy(), is_stale=True)
    guard.note(state, state.beta)
    state.beta += np.array([3e-16, -3e-16, 1e-17, 0.0])
    guard.lead(state)
    assert guard.least < 0
    assert abs(state.beta.sum()) <= 1e-15 * np.abs(state.beta).sum()


def test_what_a_free_variable_has_no_room_for_goes_to_others():
    """The free variable of least curvature is 1e-3 from its bound."""
    problem, beta = c_svc([1, 1, -1], C=2.0), np.array([1.999, 1.0, -2.0])
    restore_sums(problem, beta, np.array([1.0, 2.0, 3.0]))
    assert beta.sum() == 0
    assert ((beta >= problem.lo) & (beta <= problem.hi)).all()


def test_steps_count_by_what_they_gain_whatever_rounding_does_to_the_sum():
    """Residuals are far more than a step gains, and its sum is rounded: near an optimum that would be all."""
    rows = np.array([[1.0, 0.0], [1.0, 1e-4], [1.0, 2e-4]]) * 1e3
    gram, problem = Gram(rows, Kernel("linear"), precision="double"), one_class(3, nu=0.7)
    state = State(problem, gram, problem.near(np.array([0.7, 0.7, 0.7])), problem.v.copy(), is_stale=True)
    state.adopt(state.beta)
    step = np.array([1e-9, 0.0, -1e-9 - 4e-16])  # along it the objective falls, by 1e-11 and less
    slope = state.residual[0] - state.residual[2]
    step *= np.sign(slope)
    assert abs(step.sum() * state.residual[0]) > abs(slope * 1e-9)
    assert state.move(np.arange(3), state.beta + step) == pytest.approx(-1e-9 * abs(slope), rel=1e-2)


def corner():
    """2t² − 2t + 2s² − 2s along β = (t, −t, s, −s), of which s ends at 0.3."""
    rows = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    problem, gram = c_svc([1, -1, 1, -1], C=1.0, weights=[10.0, 10.0, 10.0, 0.3]), Gram(rows, Kernel("linear"))
    return problem, gram, State(problem, gram, np.zeros(4), problem.v.copy(), is_stale=True)


def test_lead_ends_where_the_first_variable_meets_its_bound():
    problem, _, state = corner()
    guard = Guard(1e-3)
    guard.note(state, np.zeros(4))
    state.beta[:] = 1e-3 * problem.v
    assert guard.lead(state)
    np.testing.assert_allclose(state.beta, 0.3 * problem.v)


def test_the_best_point_stays_the_best_whatever_is_noted_after_it():
    problem, gram, state = corner()
    guard, best, worse = Guard(1e-3), 0.3 * problem.v, 0.1 * problem.v
    assert guard.note(state, best) == pytest.approx(-0.84)
    assert guard.note(state, worse) == pytest.approx(-0.36)
    assert guard.least == pytest.approx(-0.84)
    state.beta[:] = best
    guard.lead(state)
    np.testing.assert_array_equal(state.beta, best)
    # How far rounding may have taken the residual of that point is known, and is not nought.
    residual, error = exact_residual(problem, gram, best, np.arange(4), 1e-3)
    np.testing.assert_array_equal(state.residual, residual.ravel())
    np.testing.assert_array_equal(state.reference.error, error)
    assert (error > 0).all()


@pytest.mark.parametrize(("error", "is_hidden"), [(0.0, False), (1e-3, True)])
def test_a_residual_that_is_known_badly_may_hide_a_rise(error, is_hidden):
    problem, _, state = corner()
    state.adopt(0.3 * problem.v)  # to −0.84
    state.note_reference(np.full(4, error))
    assert may_be_above(state, -0.8399) == is_hidden
    assert may_be_above(state, -0.85)
