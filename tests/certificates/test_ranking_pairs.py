"""Ranking against explicit pairs: their dual by the library's own solver, by Clarabel, and counted one by one."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from hinge import Gram, Kernel, Settings, Sizes, solve
from hinge.dual.problem import DualProblem
from hinge.dual.ranking import PairPoint, RankingProblem, shares, shortfall
from hinge.solvers.ranking import rank
from reference import comparable_pairs

SMALL = Sizes(one_set=20, smallest_set=5, largest_set=20)  # both halves of the solver, on little data


class Case:
    """A random ranking: ties, queries of one sample, weights."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(4, 45)), int(rng.integers(1, 6))
        self.X = rng.normal(size=(n, d)) if seed % 5 else rng.integers(0, 3, (n, d)).astype(float)
        self.y = rng.normal(size=n) if seed % 3 == 0 else rng.integers(0, rng.integers(2, 6), n).astype(float)
        self.query = rng.integers(0, rng.integers(1, 6), n)
        self.query[0] = 99  # alone
        self.y[-2:], self.query[-2:] = [0, 1], 0  # at least one pair
        self.C = float(10 ** rng.uniform(-2, 1.5))
        self.weights = rng.uniform(0.2, 3, n) if seed % 2 else np.ones(n)
        self.kernel = Kernel("linear") if seed % 4 < 2 else Kernel("rbf", gamma=0.5)
        self.pairs = comparable_pairs(self.y, self.query)

    @property
    def problem(self):
        return RankingProblem(self.y, self.query, self.C, self.weights)

    def explicit(self):
        """The problem of all pairs, and the matrix of their differences."""
        n, m = len(self.y), len(self.pairs)
        K = Gram(self.X, self.kernel, precision="double").between(np.arange(n), np.arange(n))
        i, j = self.pairs.T
        matrix = K[np.ix_(i, i)] - K[np.ix_(i, j)] - K[np.ix_(j, i)] + K[np.ix_(j, j)]
        prices = self.C * self.weights[i] * self.weights[j]
        problem = DualProblem(np.ones(m), np.zeros(m), prices, np.zeros(m, np.int8), np.empty(0), m, np.zeros(m))
        return problem, 0.5 * (matrix + matrix.T)


@given(st.integers(0, 10_000), st.sampled_from([Sizes(), SMALL]))
@settings(max_examples=60)
def test_the_optimum_is_that_of_all_pairs(seed, sizes):
    case = Case(seed)
    problem, matrix = case.explicit()
    whole = solve(problem, Gram(matrix, Kernel("precomputed")), Settings(tol=1e-9))
    ranked = rank(case.problem, Gram(case.X, case.kernel), Settings(tol=1e-7, sizes=sizes))
    report = ranked.report
    assert report.converged
    assert report.violation <= 1e-7
    assert report.objective == pytest.approx(whole.report.objective, rel=1e-7)
    alpha = np.zeros(len(case.y))
    np.add.at(alpha, case.pairs[:, 0], whole.beta)
    np.subtract.at(alpha, case.pairs[:, 1], whole.beta)
    scores = Gram(case.X, case.kernel, precision="double").product(alpha)
    np.testing.assert_allclose(ranked.standing.score, scores, atol=1e-4 * max(1, np.abs(scores).max()))


@given(st.integers(0, 10_000), st.floats(0.01, 2))
@settings(max_examples=60)
def test_what_a_point_proves_is_what_counting_finds(seed, width):
    """Violation, objective and gap of any point, over all pairs one by one, in plain NumPy."""
    case, rng = Case(seed), np.random.default_rng(seed + 1)
    problem, (_, matrix) = case.problem, case.explicit()
    reference = rng.normal(size=len(case.y))
    if seed % 2:
        reference = np.round(reference * 2) / 2  # pairs that meet their margin exactly
    listed = case.pairs[rng.random(len(case.pairs)) < 0.2]
    own = problem.prices(listed) * rng.choice([0.0, 0.3, 1.0], len(listed))
    point = PairPoint(reference, width if seed % 3 else 0.0, listed, own)
    beta = problem.prices(case.pairs) * shares(reference, point.width, case.pairs)
    is_listed = np.array([tuple(pair) in set(map(tuple, listed.tolist())) for pair in case.pairs.tolist()])
    beta[is_listed] = own

    alpha, total = problem.coefficients(point)
    np.testing.assert_allclose(total, beta.sum(), rtol=1e-9)
    np.testing.assert_allclose(alpha, problem.spread(case.pairs, beta), atol=1e-9)
    score = Gram(case.X, case.kernel, precision="double").product(alpha)
    objective = 0.5 * beta @ matrix @ beta - beta.sum()
    u = shortfall(score, case.pairs)
    primal = 0.5 * beta @ matrix @ beta + problem.prices(case.pairs) @ np.maximum(u, 0)
    found = problem.evidence(point, alpha, total, score)
    assert found.objective == pytest.approx(objective, rel=1e-9, abs=1e-7)
    assert found.gap == pytest.approx(primal + objective, rel=1e-9, abs=1e-7)

    seen = problem.moved(point, score)  # the same β, as these scores see it
    np.testing.assert_allclose(problem.coefficients(seen)[0], alpha, atol=1e-9)
    assert problem.coefficients(seen)[1] == pytest.approx(total, abs=1e-9)
    below, above = beta < problem.prices(case.pairs) * (1 - 1e-12), beta > 0
    violation = max(np.where(below, u, 0).max(), np.where(above, -u, 0).max(), 0)
    assert problem.evidence(seen, alpha, total, score).violation == pytest.approx(violation, rel=1e-9, abs=1e-9)
    bare = PairPoint.implied(reference, point.width)  # nothing listed: all by sorting
    beta = problem.prices(case.pairs) * shares(reference, point.width, case.pairs)
    below, above = beta < problem.prices(case.pairs), beta > 0
    violation = max(np.where(below, u, 0).max(), np.where(above, -u, 0).max(), 0)
    assert problem.evidence(bare, alpha, total, score).violation == pytest.approx(violation, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", [0, 3, 7, 10])
def test_an_independent_solver_finds_the_same(seed):
    clarabel = pytest.importorskip("clarabel")
    case = Case(seed)
    problem, matrix = case.explicit()
    m = len(problem.v)
    options = clarabel.DefaultSettings()
    options.verbose, options.tol_gap_abs, options.tol_gap_rel = False, 1e-11, 1e-11
    constraints = sp.vstack([sp.eye(m), -sp.eye(m)], format="csc")
    solver = clarabel.DefaultSolver(
        sp.csc_matrix(np.triu(matrix)), -problem.v, constraints, np.concatenate([problem.hi, np.zeros(m)]),
        [clarabel.NonnegativeConeT(2 * m)], options,
    )  # fmt: skip
    ranked = rank(case.problem, Gram(case.X, case.kernel), Settings(tol=1e-8))
    assert ranked.report.objective == pytest.approx(solver.solve().obj_val, rel=1e-6)


def test_no_more_pairs_are_listed_than_matter():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 5))
    y = np.round(X @ rng.normal(size=5) + rng.normal(size=800))
    ranked = rank(RankingProblem(y, np.zeros(800), C=0.01), Gram(X, Kernel("linear")), Settings(tol=1e-6))
    assert ranked.report.converged
    assert ranked.standing.evidence.gap < 1e-4
    assert len(ranked.standing.point.pairs) <= 50 < RankingProblem(y, np.zeros(800)).n_pairs // 1000


def test_a_kernel_that_is_not_positive_is_refused():
    X, problem = np.random.default_rng(0).normal(size=(20, 2)), RankingProblem(np.arange(20), np.zeros(20))
    with pytest.raises(ValueError, match="positive semi-definite"):
        rank(problem, Gram(X, Kernel("sigmoid", gamma=1.0)))
    with pytest.raises(ValueError, match="positive semi-definite"):  # where that shows
        rank(problem, Gram(-np.eye(20), Kernel("precomputed")))
