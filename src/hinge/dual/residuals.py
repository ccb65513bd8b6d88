"""The residual v − Kβ (less the ridge's part) from β alone, with a bound on its rounding error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import Index, Vector
from hinge.dual.optimality import doubt_of_objective, objective_of
from hinge.dual.problem import DualProblem
from hinge.kernel.gram import Gram
from hinge.kernel.rounding import UNIT

# Rounding may leave a violation in doubt by this share of the tolerance. It is the difference of two residuals,
# whose errors are sums of a few: where one may be more than a fifth of it, twice the digits are computed.
NEGLIGIBLE = 0.01
ERROR_ALLOWED = NEGLIGIBLE / 5

# What double-double arithmetic may take at one time; beyond that the doubt remains, and the report says so.
_MOST_SHARP_SECONDS = 20.0


@dataclass(frozen=True, eq=False)
class Reference:
    """A point whose residual is known.

    Attributes
    ----------
    beta : array of shape (n_variables,)
        The point.
    residual : array of shape (n_variables,)
        v − Kβ.
    error : array of shape (n_samples,)
        Bound on its rounding error.
    exact : bool array of shape (n_samples,)
        Samples of which all this is known.
    """

    beta: Vector
    residual: Vector
    error: Vector
    exact: NDArray[np.bool_]


def exact_residual(
    problem: DualProblem,
    gram: Gram,
    beta: Vector,
    samples: Index,
    tol: float | Vector,
    former: Reference | None = None,
) -> tuple[Vector, Vector]:
    """Return v − Kβ of ``samples``, one line for each run of variables, and bounds on its rounding error.

    Parameters
    ----------
    problem : DualProblem
        The problem.
    gram : Gram
        Its kernel values.
    beta : array of shape (n_variables,)
        The point.
    samples : int64 array
        Where the residual is wanted.
    tol : float or array
        The tolerance, of each sample: errors that are not small beside it are avoided by double-double
        arithmetic, unless that would take too long.
    former : Reference, optional
        A point whose residual is known: what has changed since is often less than all of it.
    """
    residual, error = np.empty((len(beta) // gram.n, len(samples))), np.empty(len(samples))
    tol = np.broadcast_to(tol, len(samples))
    known = np.zeros(len(samples), dtype=bool) if former is None else former.exact[samples]
    if former is not None and known.any():
        residual[:, known], error[known] = residual_since(former, problem, gram, beta, samples[known], tol[known])
        known &= error <= ERROR_ALLOWED * tol
    if not known.all():
        origin = Reference(np.zeros(len(beta)), problem.v, np.zeros(gram.n), np.ones(gram.n, dtype=bool))
        residual[:, ~known], error[~known] = residual_since(
            origin, problem, gram, beta, samples[~known], tol[~known]
        )
    return residual, error


def objective_at_most(problem: DualProblem, gram: Gram, beta: Vector, tol: float) -> tuple[float, Vector, Vector]:
    """Return what the objective is at most, whatever rounding did; the residual, and a bound on its error."""
    runs, error = exact_residual(problem, gram, beta, np.arange(gram.n), tol)
    residual = runs.ravel()
    objective = objective_of(problem, beta, residual) + doubt_of_objective(problem, beta, residual, error)
    return objective if np.isfinite(objective) else np.inf, residual, error


def residual_since(
    former: Reference, problem: DualProblem, gram: Gram, beta: Vector, samples: Index, tol: float | Vector
) -> tuple[Vector, Vector]:
    """As `exact_residual`, from what has changed since another point alone."""
    change, remainder = problem.change(beta, former.beta)
    rounding, wanted = gram.rounding(change)[samples], ERROR_ALLOWED * np.broadcast_to(tol, len(samples))
    rough = rounding > wanted
    if rough.any():
        rounding[rough] = gram.closer_rounding(change, samples[rough])
        rough = rounding > wanted
    if gram.sharp_seconds(int(rough.sum()) * int(np.count_nonzero(change))) > _MOST_SHARP_SECONDS:
        rough[:] = False
    runs = former.residual.reshape(-1, gram.n)
    result = np.empty((len(runs), len(samples)))
    if rough.any():
        high, low = gram.sharp_product(change, samples[rough])
        low += gram.product(remainder, samples[rough])
        result[:, rough] = (runs[:, samples[rough]] - high) - low
        rounding[rough] = gram.rounding(change, sharp=True)[samples[rough]]
    if not rough.all():
        result[:, ~rough] = runs[:, samples[~rough]] - gram.product(change, samples[~rough])
    if problem.ridge is not None:
        own = (problem.ridge * (beta - former.beta)).reshape(-1, gram.n)[:, samples]
        result -= own
        rounding += 4 * UNIT * np.abs(own).max(axis=0)
    return result, former.error[samples] + rounding + 4 * UNIT * np.abs(result).max(axis=0)
