"""Linear machines on features of any scale: they converge, and what they prove holds in exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from hinge import Gram, Kernel, LinearSVC, LinearSVR, Settings, solve
from hinge.dual.formulations import c_svc, epsilon_svr
from hinge.settings import Sizes
from hinge.solvers.weights.crammer_singer import project_classes
from hinge.solvers.weights.newton import solve_by_rows, solve_scaled

STORAGES = {"dense": np.asarray, "csr": sp.csr_matrix}


def unscaled(n=60, largest=1e7, seed=0, d=4):
    """Features of many sizes, one of them ``largest``; classes and numbers that all of them say something of."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.geomspace(1.0, largest, d) + np.geomspace(1.0, largest, d)
    X = np.hstack([X, np.ones((n, 1))])
    score = (X / X.std(axis=0).clip(1.0)).sum(axis=1) + rng.normal(size=n)
    return X, score - np.median(score)


def exactly(values):
    return [Fraction(float(value)) for value in np.ravel(values)]


def exact_gap(problem, X, beta, weights):
    """Primal minus dual objective of weights and variables without a threshold, without any rounding."""
    beta, weights, v = exactly(beta), exactly(weights), exactly(problem.v)
    rows = [exactly(row) for row in X]
    ridge = exactly(np.zeros(len(v)) if problem.ridge is None else problem.ridge)
    n = problem.n_samples
    image = [sum(w * x for w, x in zip(weights, row, strict=True)) for row in rows]
    made = [sum(beta[t] * rows[t % n][f] for t in range(len(beta))) for f in range(len(weights))]
    gap = sum((w - m) ** 2 for w, m in zip(weights, made, strict=True)) / 2
    for t, b in enumerate(beta):
        slope = v[t] - image[t % n]  # of the loss's conjugate: its best choice in the box against β
        if ridge[t]:
            best = slope / ridge[t]
            best = max(best, Fraction(problem.lo[t])) if np.isfinite(problem.lo[t]) else best
            best = min(best, Fraction(problem.hi[t])) if np.isfinite(problem.hi[t]) else best
        else:
            best = Fraction(problem.hi[t] if slope > 0 else problem.lo[t])
        gap += slope * (best - b) - ridge[t] * (best**2 - b**2) / 2
    return float(gap)


PROBLEMS = {
    "hinge": lambda score, C: c_svc(np.sign(score), C, fit_intercept=False),
    "squared hinge": lambda score, C: c_svc(np.sign(score), C, fit_intercept=False, squared=True),
    "tube": lambda score, C: epsilon_svr(score, C, 0.1, fit_intercept=False),
    "squared tube": lambda score, C: epsilon_svr(score, C, 0.1, fit_intercept=False, squared=True),
}


@pytest.mark.parametrize("C", [1.0, 1e4])
@pytest.mark.parametrize("largest", [1e7, 1e10])
@pytest.mark.parametrize("name", PROBLEMS)
def test_weights_and_variables_prove_what_the_report_says(name, largest, C):
    X, score = unscaled(largest=largest)
    problem = PROBLEMS[name](score, C)
    settings = Settings(tol=1e-4, weights_gap=1e-7, sizes=Sizes(one_set=1))
    solution = solve(problem, Gram(X, Kernel("linear")), settings)
    report = solution.report
    assert report.converged
    if solution.weights is None:  # variables were good enough: nothing new here
        return
    gap = exact_gap(problem, X, solution.beta, solution.weights)
    size = max(1.0, abs(report.objective))
    assert gap == pytest.approx(report.gap, rel=1e-3, abs=1e-9 * size)
    assert report.violation <= settings.tol or gap <= 1.001e-7 * size


def test_weights_of_their_own_are_needed():
    """Else the tests above would show nothing."""
    found = []
    for name in PROBLEMS:
        X, score = unscaled(largest=1e10)
        settings = Settings(tol=1e-4, sizes=Sizes(one_set=1))
        problem = PROBLEMS[name](score, 1e4)
        found.append(solve(problem, Gram(X, Kernel("linear")), settings).report.converged)
    assert not all(found)


@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize(
    "make",
    [
        lambda C: LinearSVC(loss="hinge", C=C),
        lambda C: LinearSVC(C=C),
        lambda C: LinearSVC(loss="hinge", C=C, intercept_scaling=np.inf),
        lambda C: LinearSVC(multi_class="crammer_singer", C=C),
        lambda C: LinearSVR(C=C),
        lambda C: LinearSVR(loss="squared_epsilon_insensitive", C=C),
    ],
    ids=["hinge", "squared", "free", "crammer_singer", "tube", "squared_tube"],
)
def test_any_scale_of_features_converges(make, C, storage):
    X, score = unscaled(n=100, d=6)
    machine = make(C)
    y = score if isinstance(machine, LinearSVR) else np.digitize(score, [-1.0, 1.0])
    if isinstance(machine, LinearSVC) and machine.multi_class == "ovr":
        y = y > 0
    for factors in (1e-8, 1.0, 10.0 ** np.array([-8, 3, 0, -2, 3, 1, 0])):
        report = machine.fit(STORAGES[storage](X * factors), y).report_
        assert report.converged, factors


@pytest.mark.parametrize("cost", [1.0, 1e4, 1e12])
def test_a_large_cost_hides_no_difference(cost):
    """Of a sample whose variables are far from their bounds: they are differences of the goal from its mean."""
    goal = np.array([[3e-9, -1e-9, 1e-9]])
    nearest = np.empty_like(goal)
    project_classes(goal, np.array([0]), np.array([cost]), nearest)
    np.testing.assert_allclose(nearest, [[2e-9, -2e-9, 0.0]], rtol=1e-12, atol=1e-24)


def test_variables_of_a_sample_sum_to_nothing_and_meet_their_bounds():
    rng = np.random.default_rng(0)
    goal = rng.normal(size=(200, 4)) * 10.0 ** rng.integers(-3, 4, (200, 1))
    codes, nearest = rng.integers(0, 4, 200), np.empty_like(goal)
    project_classes(goal, codes, np.full(200, 0.7), nearest)
    own = nearest[np.arange(200), codes]
    assert (own == 0.7).any()
    assert ((own <= 0.7) & (own >= 0)).all()
    assert not ((own > 0.7 * (1 - 1e-12)) & (own < 0.7)).any()
    assert np.abs(nearest.sum(axis=1)).max() <= 1e-15


@pytest.mark.parametrize("size", [1e9, 1e13])
def test_few_huge_rows_leave_the_other_directions_alone(size):
    """Two rows in four dimensions: what is at right angles to both is solved by the identity."""
    rows = size * np.array([[1.0, 2.0, 0.0, 1.0], [0.0, 1.0, 1.0, 1.0]])
    free = np.array([1.0, 0.0, 1.0, -1.0])  # at right angles to both
    assert not (rows @ free).any()
    solved = solve_by_rows([rows], np.ones(4), free)
    np.testing.assert_allclose(solved, free, rtol=1e-9, atol=1e-9)
    assert np.abs(rows @ solved).max() < 1e-2
    with pytest.raises(np.linalg.LinAlgError):
        solve_scaled(rows.T @ rows + np.eye(4), free.copy())


def test_a_limit_of_time_is_no_error_with_all_classes_in_one_problem():
    X, score = unscaled(n=200)
    machine = LinearSVC(multi_class="crammer_singer", C=1e4, time_limit=1e-4)
    with pytest.warns(match="time_limit"):
        machine.fit(1e6 * X, np.digitize(score, [-1.0, 1.0]))
    assert np.isfinite(machine.coef_).all()
