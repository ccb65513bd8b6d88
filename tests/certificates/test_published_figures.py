"""Objective values that others have published or measured, on their data, with a true violation below tol.

The kernel rows behind each check are recomputed here in float64, a block at a time.
"""

import numpy as np
import pytest

from hinge import Gram, Kernel, Settings, solve
from hinge.dual.formulations import c_svc
from strategies import SOLVERS


def rbf_check(X, gamma, problem, beta):
    """The minimised objective and the violation of a C-SVC solution, from β alone."""
    support = np.flatnonzero(beta)
    X = X.toarray() if hasattr(X, "toarray") else X
    X = X - X.mean(axis=0)
    squares = np.einsum("ij,ij->i", X, X)
    r = np.array(problem.v)
    left, right = 2 * gamma * X, X[support].T.copy()
    for rows in np.array_split(np.arange(len(X)), max(1, len(X) * len(support) // 1_000_000)):
        tile = left[rows] @ right
        tile -= gamma * squares[rows, None]
        tile -= gamma * squares[support]
        r[rows] -= np.exp(np.minimum(tile, 0, out=tile), out=tile) @ beta[support]
    violation = r[beta < problem.hi].max() - r[beta > problem.lo].min()
    return -0.5 * float(beta @ (r + problem.v)), float(violation)


@pytest.fixture(scope="module")
def spambase(real_data):
    X, y = real_data("spambase")
    X = X.toarray()
    return (X - X.mean(axis=0)) / X.std(axis=0), y


@pytest.mark.parametrize(
    ("solver", "rule", "shrinking"),
    [(*pair, True) for pair in SOLVERS] + [("block", "second_order", False), ("smo", "second_order", False)],
)
def test_spambase_reaches_the_dual_of_seed_004_table_2(solver, rule, shrinking, spambase):
    X, y = spambase
    problem = c_svc(y, C=50.0)
    settings = Settings(solver=solver, rule=rule, shrinking=shrinking)
    solution = solve(problem, Gram(X, Kernel("rbf", gamma=0.005)), settings)
    objective, violation = rbf_check(X, 0.005, problem, solution.beta)
    assert solution.report.status == "converged"
    assert violation <= 1e-3
    assert -objective == pytest.approx(27_019.14, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "C", "gamma", "expected"),
    [("a9a", 1.0, 0.05, -10_725.85), ("w8a", 5.0, 0.05, -5_513.93), ("ijcnn1", 32.0, 2.0, -33_139.94)],
)
def test_large_sets_reach_their_objective(name, C, gamma, expected, real_data):
    X, y = real_data(name)
    problem = c_svc(y, C=C)
    solution = solve(problem, Gram(X, Kernel("rbf", gamma=gamma)), Settings())
    objective, violation = rbf_check(X, gamma, problem, solution.beta)
    assert solution.report.status == "converged"
    assert violation <= 1e-3
    assert objective == pytest.approx(expected, abs=0.01)
    assert np.all((problem.lo <= solution.beta) & (solution.beta <= problem.hi))
