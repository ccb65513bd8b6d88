"""``certificate`` recomputes everything from β alone, and says what is wrong with a wrong β."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from hinge import Gram, Kernel, certificate
from hinge.dual.formulations import c_svc
from reference import duality_gap, minimise, objective, rounding, violation
from strategies import FORMULATIONS, STORAGES, cases

BOUNDED = tuple(f for f in FORMULATIONS if f != "hard_margin")


@pytest.mark.parametrize("storage", STORAGES)
@examples(max_examples=25)
@given(data=st.data())
def test_certificate_agrees_with_the_formulas_at_any_feasible_point(storage, data):
    case = data.draw(cases(formulations=BOUNDED, storages=(storage,)))
    best = minimise(case.K, case.problem)
    share = data.draw(st.sampled_from((0.0, 0.5, 1.0)))
    beta = share * best + (1 - share) * case.problem.start
    cert = certificate(case.problem, case.gram(precision="single"), beta)
    slack = 1e-10 + rounding(beta, case.K, case.problem)
    assert cert.box_error <= 1e-15
    assert cert.sum_error <= 1e-12 * max(1.0, np.abs(beta).sum())
    assert cert.violation == pytest.approx(violation(beta, case.K, case.problem), abs=slack)
    assert cert.objective == pytest.approx(objective(beta, case.K, case.problem), rel=1e-10, abs=slack)
    assert cert.dual == -cert.objective
    expected = duality_gap(beta, case.K, case.problem, cert.multipliers)
    assert cert.gap == pytest.approx(expected, rel=1e-6, abs=1e-8)
    assert cert.primal - cert.dual == pytest.approx(cert.gap, rel=1e-6, abs=1e-8)
    # weak duality: no feasible point is better than the primal value allows
    assert -objective(best, case.K, case.problem) <= cert.primal + 1e-8


@examples(max_examples=60)
@given(case=cases(formulations=BOUNDED))
def test_gap_vanishes_at_the_optimum(case):
    cert = certificate(case.problem, case.gram(), minimise(case.K, case.problem))
    assert cert.gap + 1e-12 >= 0
    assert cert.gap <= 1e-7 * max(1.0, abs(cert.dual))
    assert cert.violation <= 1e-7


def test_two_points_by_hand():
    """x = ±1, y = ±1, C = 1: β = (½, −½), margin 1, no error; dual = primal = ½."""
    problem, gram = c_svc(np.array([1.0, -1.0]), C=1.0), Gram(np.array([[1.0], [-1.0]]), Kernel("linear"))
    cert = certificate(problem, gram, np.array([0.5, -0.5]))
    assert (cert.objective, cert.dual, cert.primal, cert.gap, cert.violation) == (-0.5, 0.5, 0.5, 0.0, 0.0)
    np.testing.assert_array_equal(cert.multipliers, [0.0])


def test_hard_margin_gap_is_zero_at_the_optimum_and_infinite_elsewhere():
    problem, gram = c_svc(np.array([1.0, -1.0]), C=np.inf), Gram(np.array([[1.0], [-1.0]]), Kernel("linear"))
    assert certificate(problem, gram, np.array([0.5, -0.5])).gap == 0
    assert certificate(problem, gram, np.array([0.25, -0.25])).gap == np.inf


def test_wrong_points_are_measured_not_repaired():
    problem, gram = c_svc(np.array([1.0, -1.0]), C=1.0), Gram(np.array([[1.0], [-1.0]]), Kernel("linear"))
    assert certificate(problem, gram, np.array([1.25, -0.5])).box_error == 0.25
    assert certificate(problem, gram, np.array([1.25, -0.5])).sum_error == 0.75
    assert certificate(problem, gram, np.array([0.5, 0.125])).box_error == 0.125
    at_start = certificate(problem, gram, np.zeros(2))
    assert (at_start.violation, at_start.objective) == (2.0, 0.0)
    assert at_start.gap == pytest.approx(2.0)  # primal: both samples lose 1 at w = 0


@pytest.mark.parametrize("beta", [np.zeros(3), np.zeros((2, 1)), np.array([np.nan, 0.0])])
def test_beta_that_does_not_fit_is_refused(beta):
    problem, gram = c_svc(np.array([1.0, -1.0]), C=1.0), Gram(np.eye(2), Kernel("linear"))
    with pytest.raises(ValueError, match="beta"):
        certificate(problem, gram, beta)
