"""Methods on the weight vector of a linear kernel: their answers are those of any other solver."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from hinge import Gram, Kernel, Settings, Sizes, certificate, solve
from hinge.dual.formulations import c_svc, epsilon_svr, nu_svc, nu_svr, one_class
from hinge.solvers.block.shrinking import ActiveSet
from hinge.solvers.policies import Policy, Proximal
from hinge.solvers.run import Run, Stop
from hinge.solvers.state import State
from hinge.solvers.weights import proximal
from hinge.solvers.weights.choose import weight_method
from hinge.solvers.weights.descent import descend
from hinge.solvers.weights.proximal import proximal_steps
from reference import assert_solved

N = 400
ALWAYS = Sizes(one_set=1)  # no problem is small enough to be solved by pair steps alone
METHODS = ("proximal", "descent")
STORAGES = {
    "dense": np.asarray,
    "dense32": np.float32,
    "csr": sp.csr_array,
    "csr32": lambda X: sp.csr_array(X, dtype=np.float32),
}


def problem_of(formulation, y, C=1.0):
    labels = np.where(y > 0, 1.0, -1.0)
    return {
        "c_svc": lambda: c_svc(labels, C=C),
        "c_svc_without_threshold": lambda: c_svc(labels, C=C, fit_intercept=False),
        "nu_svc": lambda: nu_svc(labels, nu=0.3),
        "one_class": lambda: one_class(len(y), nu=0.2),
        "epsilon_svr": lambda: epsilon_svr(y, C=C, epsilon=0.1),
        "nu_svr": lambda: nu_svr(y, C=C, nu=0.4),
    }[formulation]()


FORMULATIONS = ["c_svc", "c_svc_without_threshold", "nu_svc", "one_class", "epsilon_svr", "nu_svr"]


def data(n, d, seed):
    """Mostly zero features in eighths, so that single precision holds them exactly, and targets with noise."""
    rng = np.random.default_rng(seed)
    X = np.round(8 * rng.normal(size=(n, d))) / 8 * (rng.random((n, d)) < 0.3)
    return X, X @ rng.normal(size=d) / np.sqrt(d) + 0.5 * rng.normal(size=n)


@pytest.fixture(params=METHODS)
def method(request):
    """Ask for one of the two methods, whatever the problem's size."""
    return request.param


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_every_formulation_and_storage(method, formulation, storage):
    X, y = data(N, 20, 0)
    problem = problem_of(formulation, y)
    solution = solve(
        problem, Gram(STORAGES[storage](X), Kernel("linear")), Settings(solver=method, tol=1e-4, sizes=ALWAYS)
    )
    assert solution.report.solver == method
    assert_solved(solution, problem, X @ X.T, 1e-4)


@pytest.mark.parametrize("shrinking", [True, False])
def test_no_kernel_value_is_needed(method, shrinking):
    X, y = data(N, 20, 1)
    gram = Gram(sp.csr_array(X), Kernel("linear"))
    problem = problem_of("c_svc", y)
    solution = solve(problem, gram, Settings(solver=method, shrinking=shrinking, sizes=ALWAYS))
    assert_solved(solution, problem, X @ X.T, 1e-3)
    if method == "proximal":  # the descent may leave slow directions to block decomposition
        assert solution.report.kernel_evaluations == 0


@given(
    formulation=st.sampled_from(FORMULATIONS),
    name=st.sampled_from(METHODS),
    n=st.integers(6, 60),
    d=st.integers(1, 30),
    C=st.sampled_from([1e-3, 1.0, 1e3]),
    seed=st.integers(0, 2**32 - 1),
)
def test_agrees_with_the_certificate(formulation, name, n, d, C, seed):
    X, y = data(n, d, seed)
    y[:2] = 1.0, -1.0
    problem = problem_of(formulation, np.resize([1.0, -1.0], n) if formulation == "nu_svc" else y, C)
    gram = Gram(X, Kernel("linear"))
    report = (solution := solve(problem, gram, Settings(solver=name, tol=1e-3, sizes=ALWAYS))).report
    assert report.solver == name
    assert report.converged
    cert = certificate(problem, gram, solution.beta)
    scale = 1 + abs(cert.objective)
    assert cert.box_error == 0
    assert cert.sum_error <= 1e-9 * (1 + np.abs(solution.beta).sum())
    assert cert.violation <= 1.001e-3
    assert report.objective == pytest.approx(cert.objective, abs=1e-6 * scale)


def test_a_part_of_a_problem_keeps_its_sums():
    X, y = data(N, 10, 2)
    problem, gram = problem_of("c_svc", y), Gram(X, Kernel("linear"))
    start = solve(problem, gram, Settings(tol=0.5)).beta
    state = State(problem, gram, start.copy(), problem.v - X @ (X.T @ start))
    run = Run(Settings(), problem, gram.team)
    with ActiveSet(state, np.arange(0, N, 2)) as chosen:
        proximal_steps(chosen.part, 1e-3, run)
        assert chosen.part.violation() <= 1e-3
    assert np.array_equal(state.beta[1::2], start[1::2])
    assert state.beta.sum() == pytest.approx(0.0, abs=1e-10)
    np.testing.assert_allclose(state.residual, problem.v - X @ (X.T @ state.beta), atol=1e-9)


def test_a_good_start_is_kept(method):
    X, y = data(N, 20, 3)
    problem, gram = problem_of("c_svc", y), Gram(X, Kernel("linear"))
    beta = solve(problem, gram, Settings(solver=method, tol=1e-6, sizes=ALWAYS)).beta
    again = solve(problem, gram, Settings(solver=method, tol=1e-3, start=beta, sizes=ALWAYS))
    assert again.report.iterations == 0
    np.testing.assert_allclose(again.beta, beta, atol=1e-12)


@pytest.mark.parametrize("limit", [1, 50, 1000])
def test_the_iteration_limit_holds(method, limit):
    X, y = data(N, 20, 4)
    problem, gram = problem_of("c_svc", y, C=100.0), Gram(X, Kernel("linear"))
    solution = solve(problem, gram, Settings(solver=method, tol=1e-9, max_iter=limit, sizes=ALWAYS))
    assert solution.report.iterations <= limit
    cert = certificate(problem, gram, solution.beta)
    assert cert.box_error == 0
    assert cert.sum_error < 1e-9
    assert solution.report.violation == pytest.approx(cert.violation, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("calls", [1, 2, 5])
def test_a_callback_may_stop_it(method, calls):
    X, y = data(N, 20, 5)
    problem, gram = problem_of("c_svc", y, C=100.0), Gram(X, Kernel("linear"))
    seen = []
    settings = Settings(
        solver=method, tol=1e-9, callback=lambda p: seen.append(p) or len(seen) >= calls, sizes=ALWAYS
    )
    solution = solve(problem, gram, settings)
    assert str(solution.report.status) == "interrupted"
    assert len(seen) == calls
    cert = certificate(problem, gram, solution.beta)
    assert cert.box_error == 0
    assert cert.sum_error < 1e-9
    assert solution.report.violation == pytest.approx(cert.violation, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_a_relative_gap_ends_a_run_early(method, formulation):
    X, y = data(N, 20, 6)
    problem, gram = problem_of(formulation, y, C=30.0), Gram(X, Kernel("linear"))
    solution = solve(problem, gram, Settings(solver=method, tol=1e-9, gap_tol=0.1, sizes=ALWAYS))
    cert = certificate(problem, gram, solution.beta)
    assert solution.report.converged
    assert cert.gap <= 0.1 * max(1.0, abs(cert.dual)) * (1 + 1e-6)
    plain = solve(problem, gram, Settings(solver=method, tol=1e-9, sizes=ALWAYS))
    assert solution.report.iterations <= plain.report.iterations


def test_unbounded_variables_are_left_to_others():
    X, y = data(N, 20, 6)
    gram, problem = Gram(X, Kernel("linear")), problem_of("c_svc", y)
    assert weight_method(c_svc(np.where(y > 0, 1.0, -1.0), C=np.inf), gram) is None
    assert weight_method(problem, Gram(X, Kernel("rbf"))) is None
    assert weight_method(problem, gram) == "proximal"
    assert weight_method(problem, Gram(np.tile(X, 50), Kernel("linear"))) == "descent"


@pytest.mark.parametrize(("d", "chosen"), [(5, "proximal"), (600, "block"), (1200, "descent")])
def test_auto_chooses_by_the_number_of_features(d, chosen):
    rng = np.random.default_rng(d)
    X = sp.random_array((2100, d), density=min(20 / d, 0.9), rng=rng, format="csr")
    y = np.where(X @ rng.normal(size=d) + 0.1 * rng.normal(size=2100) > 0, 1.0, -1.0)
    problem = c_svc(y, C=1.0)
    solution = solve(problem, Gram(X, Kernel("linear")), Settings(time_limit=600))
    assert solution.report.solver == chosen
    assert str(d) in solution.report.reason or chosen == "block"
    assert_solved(solution, problem, (X @ X.T).toarray(), 1e-3)


@pytest.mark.parametrize("name", METHODS)
def test_a_problem_without_weights_is_refused(name):
    X, y = data(30, 5, 8)
    labels, settings = np.where(y > 0, 1.0, -1.0), Settings(solver=name)
    with pytest.raises(ValueError, match="needs a linear kernel"):
        solve(c_svc(labels, C=1.0), Gram(X, Kernel("rbf")), settings)
    with pytest.raises(ValueError, match="bounded variables"):
        solve(c_svc(labels, C=np.inf), Gram(X, Kernel("linear")), settings)


def test_a_run_carries_its_policy():
    X, y = data(N, 10, 2)
    problem, gram = problem_of("c_svc", y), Gram(X, Kernel("linear"))
    steps = []
    for growth in (2.0, 16.0):
        state = State(problem, gram, problem.start.copy(), problem.v.copy())
        state.note_reference(np.zeros(N))
        run = Run(Settings(), problem, gram.team, Policy(proximal=Proximal(growth=growth)))
        proximal_steps(state, 1e-3, run)
        assert state.violation() <= 1e-3
        steps.append(run.outer_steps)
    assert steps[0] > steps[1]


def begun(settings):
    """A problem at its start, and a run of it."""
    X, y = data(200, 10, seed=0)
    problem, gram = problem_of("c_svc", y), Gram(X, Kernel("linear"))
    state = State(problem, gram, np.zeros(200), problem.v.copy())
    state.note_reference(np.zeros(200))
    return state, Run(settings, problem, gram.team)


def test_a_descent_that_is_stopped_hands_its_point_over():
    looks = []
    state, run = begun(Settings(callback=lambda progress: looks.append(progress) or len(looks) == 4))
    with pytest.raises(Stop):
        descend(state, 1e-12, run)
    assert len(looks) == 4
    assert state.objective() < -1.0
    assert abs(state.beta.sum()) <= 1e-12
    np.testing.assert_allclose(state.residual, state.problem.v - state.gram.product(state.beta), atol=1e-9)


def test_a_proximal_step_that_leads_up_is_taken_back(monkeypatch):
    state, run = begun(Settings())
    monkeypatch.setattr(proximal.Step, "feasible", lambda step: -1e-3 * state.problem.v)
    proximal_steps(state, 1e-3, run)
    np.testing.assert_array_equal(state.beta, np.zeros(200))
    np.testing.assert_array_equal(state.residual, state.problem.v)
