"""Glasmachers and Igel, section 3.3: four samples on which maximum gain gets stuck, not the hybrid rule."""

import numpy as np
import pytest

from hinge import Gram, Kernel, Settings, solve
from hinge.dual.formulations import c_svc
from reference import assert_solved, violation
from strategies import SURE_RULES, Case

ROOT3 = np.sqrt(3.0)
Q = np.array([[2, ROOT3, 1, ROOT3], [ROOT3, 4, ROOT3, 3], [1, ROOT3, 2, ROOT3], [ROOT3, 3, ROOT3, 4]])
Y = np.array([-1.0, -1.0, 1.0, 1.0])
K = np.outer(Y, Y) * Q
C = 0.1
STUCK = Y * np.array([C, 0, C, 0])
OPTIMUM = Y * np.array([C, (1 - 2 * C * ROOT3) / 7, C, (1 - 2 * C * ROOT3) / 7])


def run(rule, **settings):
    problem = c_svc(Y, C=C)
    gram = Gram(K, Kernel("precomputed"), precision="double")
    return problem, solve(problem, gram, Settings(solver="smo", rule=rule, shrinking=False, **settings))


def test_pure_maximum_gain_gets_stuck():
    problem, solution = run("mg")
    assert solution.report.status == "stalled"
    np.testing.assert_array_equal(solution.beta, STUCK)
    assert violation(solution.beta, K, problem) == pytest.approx(2 * (1 - 2 * C * ROOT3))
    assert solution.report.message


@pytest.mark.parametrize("rule", SURE_RULES)
@pytest.mark.parametrize("start", [None, STUCK])
def test_other_rules_converge(rule, start):
    problem, solution = run(rule, tol=1e-9, start=start)
    assert_solved(solution, problem, K, 1e-9)
    np.testing.assert_allclose(solution.beta, OPTIMUM, rtol=1e-8)


def test_ties_and_a_cache_of_three_rows_do_not_ask_for_rows_without_end():
    """Between two requests for rows nothing may change that would ask for others."""
    case = Case(
        formulation="hard_margin", storage="csr_matrix", kernel="rbf", spread="normal", weighting="none", n=34,
        d=2, C=10.0, gamma=2.0, coef0=1.0, degree=3, seed=14728,
    )  # fmt: skip
    gram = case.gram(cache_bytes=1, precision="double")
    settings = Settings(solver="smo", rule="mg", tol=1e-6, shrinking=False, time_limit=20)
    solution = solve(case.problem, gram, settings)
    assert_solved(solution, case.problem, case.K, 1e-6)
    assert solution.report.outer_steps <= 2 * solution.report.iterations
