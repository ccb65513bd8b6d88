"""Large costs, where pair steps crawl and working sets are solved by linear algebra on the free variables."""

import numpy as np
import pytest

import reference
from hinge import Gram, Kernel, Settings, solve
from hinge.dual.formulations import c_svc, epsilon_svr, nu_svc, one_class
from hinge.solvers.block import block

N = 2300  # more than one working set


def data(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 3))
    margin = X[:, 0] * X[:, 1] + 0.3 * X[:, 2]
    return X, margin, np.where(margin + 0.2 * rng.normal(size=N) > 0, 1.0, -1.0)


def problems(y, margin):
    return {
        "c_svc": c_svc(y, 3e4),
        "c_svc without threshold": c_svc(y, 3e4, fit_intercept=False),
        "epsilon_svr": epsilon_svr(margin, 3e3, 0.01),
        "nu_svc": nu_svc(y, 0.2),
        "one_class": one_class(N, 0.1),
    }


@pytest.mark.parametrize("name", ["c_svc", "c_svc without threshold", "epsilon_svr", "nu_svc", "one_class"])
@pytest.mark.parametrize("gamma", [0.1, 4.0])
def test_answers_are_certified(name, gamma, monkeypatch):
    X, margin, y = data()
    problem = problems(y, margin)[name]
    settled = []
    move_together = block._move_together

    def spy(*arguments):
        settled.append(move_together(*arguments))
        return settled[-1]

    monkeypatch.setattr(block, "_move_together", spy)
    solution = solve(problem, Gram(X, Kernel("rbf", gamma=gamma)), Settings(solver="block"))
    assert solution.report.converged
    K = reference.kernel_matrix("rbf", X, X, gamma=gamma)
    reference.assert_feasible(solution.beta, problem)
    assert reference.violation(solution.beta, K, problem) <= 1.01e-3
    if name.startswith("c_svc") and gamma == 0.1:
        assert any(is_settled for is_settled, _ in settled)


def test_the_step_limit_holds():
    X, _, y = data()
    problem, gram = c_svc(y, 3e4), Gram(X, Kernel("rbf", gamma=0.1))
    for limit in (3000, 10_000, 20_000):
        solution = solve(problem, gram, Settings(solver="block", max_iter=limit))
        assert solution.report.iterations <= limit
        reference.assert_feasible(solution.beta, problem)
