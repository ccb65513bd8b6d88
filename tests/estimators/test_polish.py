"""Polishing: exact where it can be, harmless where it cannot."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hinge import Gram, Kernel, Settings, certificate, solve
from hinge.dual.formulations import c_svc, epsilon_svr, nu_svc, nu_svr, one_class
from hinge.solvers.active_set.polish import polish
from hinge.training.tasks import Task
from hinge.training.trainer import Trainer


def problems(X, y, weights):
    target = X[:, 0]
    return {
        "c_svc": c_svc(y, 2.0, weights),
        "no_threshold": c_svc(y, 2.0, weights, fit_intercept=False),
        "nu_svc": nu_svc(y, 0.2, weights),
        "one_class": one_class(len(y), 0.3, weights),
        "epsilon_svr": epsilon_svr(target, 1.0, 0.05, weights),
        "nu_svr": nu_svr(target, 1.0, 0.4, weights),
    }


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(["c_svc", "no_threshold", "nu_svc", "one_class", "epsilon_svr", "nu_svr"]),
    kernel=st.sampled_from([Kernel("rbf", gamma=0.5), Kernel("linear"), Kernel("sigmoid", gamma=0.5, coef0=-1.0)]),
    has_copies=st.booleans(),
)
def test_feasible_and_never_worse(seed, kind, kernel, has_copies):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 3))
    if has_copies:
        X[20:] = X[:20]
    y = np.where(np.arange(40) % 2, 1.0, -1.0)
    problem = problems(X, y, rng.uniform(0.5, 2.0, 40))[kind]
    gram = Gram(X, kernel)
    before = solve(problem, gram, Settings(max_iter=20_000))
    after = polish(problem, gram, before, 1e-3)
    proof = certificate(problem, gram, after.beta)
    assert proof.box_error == 0.0
    assert proof.sum_error <= 1e-10 * (1 + np.abs(problem.sums).max(initial=0.0))
    assert proof.violation <= max(certificate(problem, gram, before.beta).violation, 1e-9) * (1 + 1e-6)
    assert after.report.violation == pytest.approx(proof.violation, abs=1e-9)


@pytest.mark.parametrize("kind", ["c_svc", "no_threshold", "nu_svc", "one_class", "epsilon_svr", "nu_svr"])
def test_reaches_the_optimum(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=150) > 0, 1.0, -1.0)
    problem, gram = problems(X, y, None)[kind], Gram(X, Kernel("rbf", gamma=0.3))
    assert polish(problem, gram, solve(problem, gram), 1e-3).report.violation < 1e-10


@pytest.mark.parametrize("kind", ["c_svc", "no_threshold", "nu_svc", "one_class", "epsilon_svr", "nu_svr"])
@pytest.mark.parametrize(("scale", "C"), [(1e70, 1e90), (1e-70, 1e150), (1e100, 1e110), (1e75, 1e-150)])
def test_numbers_that_overflow_leak_no_warning(kind, scale, C, recwarn):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    y = np.where(np.arange(30) % 2, 1.0, -1.0)
    problem, gram = problems(X, y, None)[kind], Gram(scale * X, Kernel("linear"))
    problem = replace(
        problem, lo=C * problem.lo, hi=C * problem.hi, sums=C * problem.sums, start=C * problem.start
    )
    settings = Settings(max_iter=50, time_limit=1.0)
    if (
        kind in ("nu_svc", "one_class") and 1 < scale < C
    ):  # they do not start at zero, and their objective overflows
        with pytest.raises(ValueError, match="kernel values times costs overflow"):
            solve(problem, gram, settings)
        return
    before = solve(problem, gram, settings)
    recwarn.clear()  # what the solver says is its own affair
    after = polish(problem, gram, before, 1e-3)
    assert not recwarn.list
    proof = certificate(problem, gram, after.beta)
    assert proof.box_error == 0.0


def test_indefinite_kernel_gives_the_solution_back():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    problem, gram = c_svc(np.where(X[:, 0] > 0, 1, -1), 5.0), Gram(X, Kernel("sigmoid", gamma=2.0, coef0=-2.0))
    solution = solve(problem, gram)
    assert polish(problem, gram, solution, 1e-3).report.objective <= solution.report.objective + 1e-6


@pytest.mark.parametrize("seed", [66379, 10799])
def test_a_mistaken_solver_is_not_believed(seed):
    """Kernels that are not positive semi-definite: what training reports is what β proves."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 3))
    problem, gram = (
        one_class(40, 0.3, rng.uniform(0.5, 2.0, 40)),
        Gram(X, Kernel("sigmoid", gamma=0.5, coef0=-1.0)),
    )
    (machine,) = Trainer(gram, Settings(max_iter=20_000)).train([Task(np.arange(40), problem)])
    report = machine.solution.report
    assert report.violation == pytest.approx(certificate(problem, gram, machine.solution.beta).violation, abs=1e-6)
    assert report.converged == (report.violation <= 1e-3)
