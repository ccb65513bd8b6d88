"""A certificate: everything that can be said of β, recomputed from β alone, with a bound on its own rounding."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum

import numpy as np

from hinge.arrays import Vector
from hinge.dual.optimality import gap_of, most_violation_of, multipliers_of, objective_of, violation_of
from hinge.dual.problem import DualProblem
from hinge.dual.residuals import exact_residual
from hinge.kernel.gram import Gram

# Residuals are computed so that their rounding error is far below this, relative to the targets.
_WANTED = 1e-6


@dataclass(frozen=True, eq=False)
class Certificate:
    """What β proves.

    Attributes
    ----------
    box_error : float
        Largest distance outside the box; 0 for an exact solver.
    sum_error : float
        Largest deviation of a group's sum.
    violation : float
        Largest violation of the optimality conditions.
    rounding : float
        Bound on how much larger the true violation may be: kernel values and their sums are rounded.
    objective : float
        ½ βᵀKβ − vᵀβ, the value that is minimised (LIBSVM's ``obj``).
    dual, primal : float
        −objective, and the primal objective at the multipliers: dual ≤ optimum ≤ primal.
    gap : float
        primal − dual.
    multipliers : array
        Intercept of each group.

    Examples
    --------
    >>> import numpy as np
    >>> from hinge import Gram, Kernel, certificate
    >>> from hinge.dual.formulations import c_svc
    >>> gram = Gram(np.array([[0.0], [1.0], [2.0], [3.0]]), Kernel("linear"))
    >>> proof = certificate(c_svc([-1, -1, 1, 1], C=10.0), gram, np.array([0.0, -1.0, 1.0, 0.0]))
    >>> proof.box_error, proof.violation, proof.gap > 0      # feasible, yet far from the optimum
    (0.0, 1.0, True)
    """

    box_error: float
    sum_error: float
    violation: float
    rounding: float
    objective: float
    dual: float
    primal: float
    gap: float
    multipliers: Vector


def certificate(problem: DualProblem, gram: Gram, beta: Vector) -> Certificate:
    """Recompute feasibility, violation, objectives and gap from β alone.

    This evaluates every kernel value between a sample and a support vector in double precision, about the work of
    a good training run; and in double-double arithmetic, fifty times slower, for samples of which double
    precision cannot tell the residual to a millionth.

    Parameters
    ----------
    problem : DualProblem
        The problem.
    gram : Gram
        Its kernel values.
    beta : array of shape (n_variables,)
        The point to certify.

    Returns
    -------
    Certificate
        The figures.

    Examples
    --------
    >>> from hinge import Gram, Kernel, certificate, solve
    >>> from hinge.dual.formulations import c_svc
    >>> gram = Gram(np.array([[0.0], [1.0], [2.0], [3.0]]), Kernel("linear"))
    >>> problem = c_svc([-1, -1, 1, 1], C=10.0)
    >>> cert = certificate(problem, gram, solve(problem, gram).beta)
    >>> round(cert.dual, 6), round(cert.primal, 6), cert.violation <= 1e-3
    (2.0, 2.0, True)
    """
    beta = problem.check_point(beta)
    scale = max(float(np.abs(problem.v).max(initial=0.0)), 1.0)
    everyone = np.arange(problem.n_samples)
    residual, error = exact_residual(problem, gram, beta, everyone, _WANTED * scale)
    residual, error = residual.ravel(), np.tile(error, len(residual))
    violation = violation_of(problem, beta, residual)
    outside = np.maximum(problem.lo - beta, beta - problem.hi)
    sums = np.array([fsum(beta[problem.group == g]) for g in range(problem.n_groups)])
    multipliers = multipliers_of(problem, beta, residual)
    objective = objective_of(problem, beta, residual)
    gap = gap_of(problem, beta, residual, multipliers)
    return Certificate(
        box_error=float(max(outside.max(), 0.0)),
        sum_error=float(np.abs(sums - problem.sums).max(initial=0.0)),
        violation=violation,
        rounding=max(most_violation_of(problem, beta, residual, error) - violation, 0.0),
        objective=objective,
        dual=-objective,
        primal=gap - objective,
        gap=gap,
        multipliers=multipliers,
    )
