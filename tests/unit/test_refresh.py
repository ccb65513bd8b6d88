"""Before convergence is declared, what rounding may have left in a residual is looked for where it may matter."""

import numpy as np
import pytest

from hinge import Gram, Kernel
from hinge.dual.formulations import c_svc
from hinge.dual.residuals import Reference
from hinge.solvers.exactness import bound_of, refresh
from hinge.solvers.resumption import resume
from hinge.solvers.state import State

TOL = 1e-3


def wrong_state(drift, precision="double"):
    """Nobody is a support vector; the residual says that nobody should be, and may be wrong by ``drift``."""
    gram = Gram(np.array([[1.0], [2.0], [3.0]]), Kernel("rbf"), precision=precision)
    problem = c_svc([1, -1, 1], C=1.0, fit_intercept=False)
    state = State(problem, gram, np.zeros(3), problem.v.copy())
    state.note_reference(np.zeros(3))
    state.residual -= np.array([500.0, -500.0, 400.0])
    state.drift = drift
    return state


def test_what_steps_left_in_a_residual_is_found_without_support_vectors():
    state = wrong_state(drift=1000.0)
    refresh(state, TOL)
    np.testing.assert_array_equal(state.residual, state.problem.v)
    assert state.violation() == 1.0


@pytest.mark.parametrize(("drift", "is_found"), [(1e3, False), (1e6, True)])
def test_of_single_precision_what_is_probable_is_looked_for(drift, is_found):
    """Errors of many steps cancel: a hundredth of the bound on their sum is hardly ever left."""
    state = wrong_state(drift, "single")
    refresh(state, TOL)
    assert (state.violation() == 1.0) == is_found


def test_an_error_is_remembered_where_the_residual_was_out_of_reach():
    """Nothing is computed the first time; the error comes into reach when the samples do."""
    state = wrong_state(drift=150.0)
    refresh(state, TOL)
    assert state.violation() == 0.0
    state.residual += np.array([400.0, -400.0, 300.0])
    refresh(state, TOL)
    np.testing.assert_array_equal(state.residual, state.problem.v)


def test_what_was_left_out_of_reach_stays_in_the_bound():
    """Looking twice computes nothing either time: the error of the first is there still."""
    state = wrong_state(drift=150.0)
    refresh(state, TOL)
    refresh(state, TOL)
    assert state.drift == 0.0
    assert (bound_of(state) >= 150.0).all()


@pytest.mark.parametrize(
    ("distance", "error", "is_found"),
    [
        (1.5, 2.0, True),  # may be at the margin
        (500.0, 2.0, False),  # cannot be
        (1.5, 1e-9, False),  # known well enough
    ],
)
def test_a_run_that_resumes_looks_again_where_little_is_known(distance, error, is_found):
    state = wrong_state(0.0)
    signs = state.problem.v
    known = Reference(np.zeros(3), signs * (1.0 - distance), np.full(3, error), np.ones(3, dtype=bool))
    state.reference, state.vague = None, None
    resume(state, known, TOL)
    np.testing.assert_allclose(state.residual, signs if is_found else known.residual)
    assert (state.violation() == 1.0) == is_found
    np.testing.assert_array_equal(state.vague > 0, np.full(3, error > 1.0 and not is_found))
