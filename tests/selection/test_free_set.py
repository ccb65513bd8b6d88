"""The free set and the chain that carries it along, against plain solves and independent formulas."""

import numpy as np
import pytest
from scipy.linalg import LinAlgError

import reference
from hinge import SVC, SVR, Gram, Kernel, OneClassSVM, Settings, solve
from hinge.dual.formulations import c_svc, epsilon_svr, nu_svr
from hinge.selection import regularisation_path
from hinge.selection.chain import Chain
from hinge.solvers.active_set.free_set import FreeSet


def data(n=80, repeated=0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = np.where(X[:, 0] + X[:, 1] ** 2 + rng.normal(size=n) > 1, 1.0, -1.0)
    X[:repeated] = X[repeated : 2 * repeated]
    return X, y


PROBLEMS = {
    "svc": lambda y, C: c_svc(y, C),
    "svc without threshold": lambda y, C: c_svc(y, C, fit_intercept=False),
    "svc with weights": lambda y, C: c_svc(y, C, weights=np.linspace(0.0, 2.0, len(y))),
    "svr": lambda y, C: epsilon_svr(y + np.linspace(0, 1, len(y)), C, 0.05),
}


def start(K, problem, solution):
    """A free set, or None where no variable is free."""
    try:
        return FreeSet(K, problem, solution.beta)
    except LinAlgError:
        return None


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("repeated", [0, 20])
@pytest.mark.parametrize("gamma", [0.3, 0.003])
def test_following_growing_costs_ends_at_the_optimum(name, repeated, gamma):
    X, y = data(repeated=repeated)
    K = reference.kernel_matrix("rbf", X, X, gamma=gamma)
    gram = Gram(K, Kernel("precomputed"))
    problem = PROBLEMS[name](y, 0.5)
    first = solve(problem, gram, Settings(tol=1e-6))
    free_set = start(K, problem, first)
    settled = 0
    for C in (2.0, 8.0, 100.0, 2000.0):
        problem = PROBLEMS[name](y, C)
        if free_set is None or not (free_set.follow(problem) and free_set.settle(1e-6)):
            free_set = start(K, problem, solve(problem, gram, Settings(tol=1e-6)))
            continue
        free_set.refresh()
        settled += 1
        assert (free_set.beta >= problem.lo).all()
        assert (free_set.beta <= problem.hi).all()
        for total, g in zip(problem.sums, range(len(problem.sums)), strict=True):
            assert abs(free_set.beta[problem.group == g].sum() - total) <= 1e-12 * np.abs(free_set.beta).sum()
        assert reference.violation(free_set.beta, K, problem) <= 2e-6
        np.testing.assert_allclose(free_set.residual, reference.residual(free_set.beta, K, problem), atol=1e-6)
        plain = solve(problem, gram, Settings(tol=1e-6))
        scale = abs(plain.report.objective)
        assert abs(reference.objective(free_set.beta, K, problem) - plain.report.objective) <= 1e-6 * scale
    assert settled >= 2


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("gamma", [0.3, 0.003])
def test_settling_from_a_rough_point_keeps_sums_and_box(name, dtype, gamma):
    X, y = data(150, repeated=10)
    K = reference.kernel_matrix("rbf", X, X, gamma=gamma).astype(dtype)
    problem = PROBLEMS[name](y, 1000.0)
    gram = Gram(K, Kernel("precomputed"))
    rough = solve(problem, gram, Settings(tol=0.5, solver="smo"))
    exact = K.astype(np.float64)
    free_set = FreeSet(K, problem, rough.beta, reference.residual(rough.beta, exact, problem))
    assert free_set.settle(1e-4)
    free_set.restore_sums()
    reference.assert_feasible(free_set.beta, problem)
    np.testing.assert_allclose(
        free_set.residual,
        reference.residual(free_set.beta, exact, problem),
        atol=1e-9 * np.abs(free_set.beta).sum(),
    )
    assert reference.violation(free_set.beta, exact, problem) <= 1.01e-4
    before = reference.objective(rough.beta, exact, problem)
    assert reference.objective(free_set.beta, exact, problem) <= before


def test_settling_stops_when_told():
    X, y = data(150)
    K = reference.kernel_matrix("rbf", X, X, gamma=0.01)
    problem = c_svc(y, 1e4)
    rough = solve(problem, Gram(K, Kernel("precomputed")), Settings(tol=0.5, solver="smo"))
    assert not FreeSet(K, problem, rough.beta).settle(1e-9, most_work=1.0)
    few = FreeSet(K, problem, rough.beta)
    assert not few.settle(1e-9, most_changes=0)
    assert few.n_changes <= 3 * problem.n_variables


def test_leaving_samples_out_ends_at_the_optimum():
    X, y = data()
    K = reference.kernel_matrix("rbf", X, X, gamma=0.3)
    problem = c_svc(y, 5.0)
    solution = solve(problem, Gram(K, Kernel("precomputed")), Settings(tol=1e-6))
    free_set = FreeSet(K, problem, solution.beta)
    original = free_set.beta.copy()
    for t in np.flatnonzero(solution.beta):
        lo, hi = problem.lo.copy(), problem.hi.copy()
        lo[t] = hi[t] = 0.0
        reduced = type(problem)(problem.v, lo, hi, problem.group, problem.sums, problem.n_samples, problem.start)
        point = free_set.copy()
        assert point.leave_out(reduced, np.array([t]))
        assert point.settle(1e-8)
        point.refresh()
        assert point.beta[t] == 0
        assert reference.violation(point.beta, K, reduced) <= 1e-7
    np.testing.assert_array_equal(free_set.beta, original)  # copies do not touch the original


def test_nothing_free_is_no_free_set():
    _, y = data(20)
    K = np.eye(20)
    problem = c_svc(y, 1e-3)
    beta = problem.project(np.where(y > 0, 1e-3, -1e-3))
    beta = np.where(np.abs(beta) < 1e-3, 0.0, beta)
    with pytest.raises(LinAlgError):
        FreeSet(K, problem, beta)


def test_a_negative_definite_kernel_is_refused_in_silence(capfd):
    _, y = data(20)
    with pytest.raises(LinAlgError, match="singular"):
        FreeSet(-np.eye(20), c_svc(y, 1.0), np.where(y > 0, 0.5, -0.5))
    assert capfd.readouterr() == ("", "")  # LAPACK has its own ways to complain


CHAINS = PROBLEMS | {"nu svr": lambda y, C: nu_svr(y, C, 0.4)}


@pytest.mark.parametrize("gamma", [0.02, 0.3])
@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_in_any_order_gives_certified_answers(name, gamma):
    X, y = data(120, repeated=10)
    K = reference.kernel_matrix("rbf", X, X, gamma=gamma)
    gram, chain = Gram(K, Kernel("precomputed"), precision="double"), Chain(True)
    for C in (0.1, 1.0, 64.0, 4096.0, 4096.0, 16.0, 1e5, 1.0, 30.0, 0.3):
        problem = CHAINS[name](y, C)
        solution = chain.solve(problem, gram, Settings())
        reference.assert_solved(solution, problem, K, 1e-3)
        assert solution.report.objective == pytest.approx(reference.objective(solution.beta, K, problem), rel=1e-7)
        assert chain.last == (problem, solution)


def test_a_solution_that_no_bound_holds_stays_when_bounds_move():
    X, y = data()
    K = reference.kernel_matrix("rbf", X, X, gamma=20.0)  # separable: no sample is at its bound for long
    gram, chain = Gram(K, Kernel("precomputed"), precision="double"), Chain(True)
    first = chain.solve(c_svc(y, 100.0), gram, Settings(tol=1e-6))
    again = chain.solve(c_svc(y, 1000.0), gram, Settings(tol=1e-6))
    assert first.report.n_bounded == 0
    assert again.report.iterations == 0
    np.testing.assert_array_equal(again.beta, first.beta)
    assert reference.violation(again.beta, K, c_svc(y, 1000.0)) <= 1e-6
    other = chain.solve(c_svc(-y, 1000.0), gram, Settings(tol=1e-6))  # not the same problem any more
    assert reference.violation(other.beta, K, c_svc(-y, 1000.0)) <= 1e-6
    np.testing.assert_allclose(other.beta, -first.beta, atol=1e-4)


def test_a_path_is_the_machines_of_separate_fits():
    X, y = data(150)
    Cs = [10.0, 0.1, 1000.0, 1.0]
    for estimator in (SVC(gamma=0.2, tol=1e-6), SVR(gamma=0.2, tol=1e-6)):
        machines = regularisation_path(estimator, X, y, Cs)
        for C, machine in zip(Cs, machines, strict=True):
            alone = type(estimator)(gamma=0.2, tol=1e-6, C=C).fit(X, y)
            assert machine.C == C
            np.testing.assert_allclose(machine.predict(X), alone.predict(X), atol=1e-3)
            assert machine.report_.converged
            assert machine.report_.objective == pytest.approx(alone.report_.objective, rel=1e-6)
    with pytest.raises(TypeError, match="has no C"):
        regularisation_path(OneClassSVM(), X, y, Cs)
    with pytest.raises(ValueError, match="probabilities"):
        regularisation_path(SVC(probability=True), X, y, Cs)
