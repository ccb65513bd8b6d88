"""The reference is checked where the answer is known, or by a general-purpose solver."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

from reference import duality_gap, is_convex, kernel_matrix, minimise, objective, violation


def problem(v, lo, hi, group, sums, start):
    v, lo, hi, sums, start = (np.array(a, dtype=float) for a in (v, lo, hi, sums, start))
    return SimpleNamespace(
        v=v, lo=lo, hi=hi, group=np.array(group), sums=sums, start=start, n_samples=len(v)
    )  # fmt: skip


def test_two_points():
    """½(β₁−β₂)² − β₁ + β₂ with β₂ = −β₁ is 2β₁² − 2β₁: least at ½."""
    K = np.array([[1.0, -1.0], [-1.0, 1.0]])
    machine = problem([1, -1], [0, -9], [9, 0], [0, 0], [0], [0, 0])
    np.testing.assert_allclose(minimise(K, machine), [0.5, -0.5])


def test_bounds_and_violation_by_hand():
    """K = I, bound 1: the pull of 3 is cut at 1, the pull of ¼ is not; nothing is left to gain."""
    machine = problem([3.0, 0.25, -2.0], [-1] * 3, [1] * 3, [0] * 3, [], [0] * 3)
    beta = minimise(np.eye(3), machine)
    np.testing.assert_allclose(beta, [1.0, 0.25, -1.0])
    assert violation(beta, np.eye(3), machine) == 0
    assert violation(np.zeros(3), np.eye(3), machine) == 3
    assert violation(np.array([1.0, 0.25, 0.0]), np.eye(3), machine) == 2
    # at zero: primal Σ|v| (every unit of slack costs 1), dual 0
    assert duality_gap(np.zeros(3), np.eye(3), machine, []) == 5.25


def test_violation_is_that_of_the_worst_group():
    machine = problem([0, 0, 0, 4], [0] * 4, [1] * 4, [0, 0, 1, 1], [1, 1], [1, 0, 1, 0])
    K = np.diag([3.0, 0, 0, 0])
    assert violation(machine.start, K, machine) == 4
    assert violation(np.array([1.0, 0, 0, 1]), K, machine) == 3


@pytest.mark.parametrize("groups", [0, 1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_a_general_solver(groups, seed):
    rng = np.random.default_rng(seed)
    n = 12
    X, lo, hi = rng.normal(size=(n, 4)), -rng.uniform(size=n), rng.uniform(size=n)
    K = kernel_matrix("rbf", X, X, gamma=0.4)
    group = np.arange(n) % max(groups, 1)
    machine = problem(rng.normal(size=n), lo, hi, group, np.zeros(groups), np.zeros(n))
    general = minimize(
        lambda b: objective(b, K, machine),
        np.zeros(n),
        jac=lambda b: K @ b - machine.v,
        bounds=list(zip(lo, hi, strict=True)),
        constraints=[LinearConstraint((group == g).astype(float), 0, 0) for g in range(groups)],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    beta = minimise(K, machine)
    assert violation(beta, K, machine) <= 1e-9
    assert objective(beta, K, machine) == pytest.approx(general.fun, rel=1e-7)
    for g in range(groups):
        assert beta[group == g].sum() == pytest.approx(0, abs=1e-12)


def test_infinite_bounds():
    machine = problem([1, -1, 1], [0, -np.inf, 0], [np.inf, 0, np.inf], [0, 0, 0], [0], [0, 0, 0])
    X = np.array([[2.0], [0.0], [5.0]])
    beta = minimise(X @ X.T, machine)
    np.testing.assert_allclose(beta, [0.5, -0.5, 0.0])
    assert duality_gap(beta, X @ X.T, machine, [-1.0]) == pytest.approx(0)
    assert duality_gap(np.zeros(3), X @ X.T, machine, [0.0]) == np.inf


def test_unbounded_problem_is_an_error():
    machine = problem([1, -1], [0, -np.inf], [np.inf, 0], [0, 0], [0], [0, 0])
    with pytest.raises(RuntimeError, match="unbounded"):
        minimise(np.ones((2, 2)), machine)


def test_convexity_counts_only_directions_that_keep_the_sums():
    K = -np.ones((3, 3)) + np.eye(3)
    assert is_convex(K, problem([0] * 3, [0] * 3, [1] * 3, [0] * 3, [0], [0] * 3))
    assert not is_convex(K, problem([0] * 3, [0] * 3, [1] * 3, [0] * 3, [], [0] * 3))
