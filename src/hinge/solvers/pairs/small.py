"""Very small problems, of which a fit may have thousands: pair steps on the whole matrix, to the last digit.

What the general way does around its steps takes a hundred times as long as the steps of a problem of a few
variables. Here there is nothing around them: whatever does not come out right at once is left to the general way.
"""

from __future__ import annotations

import time

import numpy as np

from hinge.arrays import Floats, Index, Vector
from hinge.dual.optimality import violation_of
from hinge.dual.problem import DualProblem
from hinge.kernel.gram import Gram
from hinge.report import Solution, Status
from hinge.solvers.active_set.polish import AIM
from hinge.solvers.conclusion import solution_at
from hinge.solvers.exactness import is_within
from hinge.solvers.pairs.loop import optimise
from hinge.solvers.pairs.rules import SECOND_ORDER
from hinge.solvers.pairs.step import CONVERGED, Point, Rows

# Beyond so many variables pair steps need too long for the last digit.
_MOST_VARIABLES = 40
_STEPS_PER_VARIABLE = 20


def solve_small(problem: DualProblem, kernel: Floats, gram: Gram, index: Index, tol: float) -> Solution | None:
    """Solve a problem of a few bounded variables to rounding, or return None.

    Parameters
    ----------
    problem : DualProblem
        What to solve.
    kernel : array of shape (n_samples, n_samples)
        Its kernel values, in double precision.
    gram, index : Gram, int64 array
        Where they came from: all samples, and the places of these.
    tol : float
        What the violation, rounding errors included, must be within in any case.
    """
    n = problem.n_variables
    if n > _MOST_VARIABLES or kernel.dtype != np.float64 or not np.isfinite(problem.hi - problem.lo).all():
        return None
    started, rows = time.perf_counter(), Rows.of_matrix(kernel, kernel.diagonal().copy())
    beta = problem.start.copy()
    residual = _residual(problem, kernel, beta)
    aim = AIM * (1.0 + float(np.abs(residual).max()))
    point = Point.of(problem, beta, residual)
    code, steps, *_ = optimise(point, rows, SECOND_ORDER, None, aim, _STEPS_PER_VARIABLE * n)
    if code != CONVERGED:
        return None
    residual = _residual(problem, kernel, beta)
    if violation_of(problem, beta, residual) > aim:
        return None
    found = solution_at(
        problem, beta, residual, gram.rounding(problem.coefficients(beta), index=index),
        status=Status.CONVERGED, solver="pairs", rule="second_order", reason="a few variables",
        storage=gram.storage, iterations=steps, outer_steps=1, seconds=time.perf_counter() - started,
        largest_set=n, fewest_active=problem.n_samples,
    )  # fmt: skip
    return found if is_within(found.report.violation, found.report.rounding, tol) else None


def _residual(problem: DualProblem, kernel: Floats, beta: Vector) -> Vector:
    return problem.residual_of(beta, kernel @ problem.coefficients(beta))
