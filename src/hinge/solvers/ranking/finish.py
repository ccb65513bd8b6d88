"""The end of a ranking: pairs near their margin are listed, and solved exactly, some thousand at a time.

A `PairPoint` knows β of all pairs: what scores imply, and few values of its own. Those violate, or lie between
their bounds; whatever else there is, is as it should be. The worst of them make a working set, whose dual is a
`DualProblem` on the matrix D K Dᵀ of differences, all other pairs held where they are. Then scores are computed
anew, pairs that have come to violate are found by sorting, and so on: block decomposition, with its variables
generated when they are needed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from hinge.arrays import Index, Vector
from hinge.dual.problem import DualProblem
from hinge.dual.ranking import Evidence, PairPoint, RankingProblem, shortfall
from hinge.kernel.gram import Gram
from hinge.kernel.kernels import Kernel
from hinge.report import Report
from hinge.settings import Settings
from hinge.solvers import solve
from hinge.solvers.exactness import sharper


@dataclass(eq=False)
class Standing:
    """A point with everything that follows from it.

    Attributes
    ----------
    point : PairPoint
        β of all pairs.
    alpha, score : arrays of shape (n_samples,)
        Its coefficients, and Kα.
    evidence : Evidence
        What it proves.
    """

    point: PairPoint
    alpha: Vector
    score: Vector
    evidence: Evidence


def standing_at(problem: RankingProblem, gram: Gram, point: PairPoint) -> Standing:
    """Compute everything that follows from a point, from β alone."""
    alpha, total = problem.coefficients(point)
    score = gram.product(alpha)
    return Standing(point, alpha, score, problem.evidence(point, alpha, total, score))


def listed(problem: RankingProblem, gram: Gram, standing: Standing) -> Standing:
    """Return the same β as seen from its own scores: whatever they do not imply is listed."""
    return standing_at(problem, gram, problem.moved(standing.point, standing.score))


def working_set(problem: RankingProblem, standing: Standing, size: int) -> Index:
    """Choose the pairs to be moved: those of the largest violation among those that have values of their own."""
    violations = problem.violations(standing.point, standing.score)
    if len(violations) <= size:
        return np.arange(len(violations))
    return np.sort(np.argsort(-violations, kind="stable")[:size]).astype(np.int64)


def solve_pairs(
    problem: RankingProblem, gram: Gram, standing: Standing, chosen: Index, settings: Settings
) -> tuple[PairPoint, Report]:
    """Solve the problem of some pairs, all others held where they are."""
    point = standing.point
    pairs, start = point.pairs[chosen], point.values[chosen]
    matrix = differences(gram, pairs)
    v = shortfall(standing.score, pairs) + matrix @ start
    m = len(pairs)
    part = DualProblem(v, np.zeros(m), problem.prices(pairs), np.zeros(m, np.int8), np.empty(0), m, np.zeros(m))
    inner = replace(settings, tol=sharper(settings.tol), start=start, callback=None, trace=None)
    values_gram = Gram(matrix, Kernel("precomputed"), threads=gram.team.size)
    solution = solve(part, values_gram, inner)
    values = point.values.copy()
    values[chosen] = solution.beta
    return replace(point, values=values), solution.report


def differences(gram: Gram, pairs: Index) -> Vector:
    """Return D K Dᵀ: kernel values between differences of two samples."""
    samples, places = np.unique(pairs, return_inverse=True)
    places = places.reshape(pairs.shape)
    m, one = len(pairs), np.ones(len(pairs))
    rows, ends = np.tile(np.arange(m), 2), np.concatenate([places[:, 0], places[:, 1]])
    D = sp.csr_array((np.concatenate([one, -one]), (rows, ends)), shape=(m, len(samples)))
    half = D @ gram.between(samples.astype(np.int64), samples.astype(np.int64)).astype(np.float64, copy=False)
    values = D @ np.ascontiguousarray(half.T)
    return 0.5 * (values + values.T)
