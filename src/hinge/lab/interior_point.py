"""A general quadratic programming solver on the whole problem: what MINOS and LOQO once were, here Clarabel.

Idea. The dual is a convex quadratic program; an interior-point method solves it without knowing what it is for.
β stays inside its box all the way, so that the answer needs a last touch: a variable whose distance to a bound
is smaller than that bound's dual value belongs on it.

Cost. The whole kernel matrix in memory, and some twenty factorisations of it: n³. A thousand variables take a
second, five thousand a minute.

When to use. As an oracle for small problems, and inside a decomposition (Bottou & Lin, section 1.6.2), where
its setup time is paid again for every working set.

Clarabel is an optional dependency: ``pip install hinge[lab]``.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import scipy.sparse as sp

from hinge.lab.course import ANY_GROUPS, laboratory
from hinge.lab.subproblem import Subproblem, extract
from hinge.problem import DualProblem, Vector
from hinge.report import Status
from hinge.samples import Floats
from hinge.solvers.run import Run, Stop
from hinge.solvers.state import State

# Relative accuracies to try in turn until the violation is small enough; the last is about what doubles allow.
_ACCURACIES = (1e-8, 1e-10, 1e-12)


def solve_quadratic_program(sub: Subproblem, tol: float) -> int:
    """Solve a subproblem in place; return the number of interior-point iterations."""
    iterations = 0
    start = sub.beta.copy()
    for accuracy in _ACCURACIES:
        answer = _clarabel(sub.kernel, sub.problem, accuracy)
        iterations += answer.iterations
        beta = _at_its_bounds(sub.problem, answer)
        residual = sub.problem.v - sub.kernel @ beta
        if _objective(sub, beta, residual) <= _objective(sub, start, sub.problem.v - sub.kernel @ start):
            sub.beta[:], sub.residual[:] = beta, residual
            if sub.violation() <= tol:
                break
    return iterations


def _objective(sub: Subproblem, beta: Vector, residual: Vector) -> float:
    return float(-0.5 * np.dot(beta, sub.problem.v + residual))


def _clarabel(kernel: Floats, problem: DualProblem, accuracy: float) -> Any:
    """Minimise ½ βᵀKβ − vᵀβ subject to Mβ = sums, β ≤ hi, −β ≤ −lo."""
    clarabel = _load_clarabel()
    n = problem.n_variables
    members = np.equal.outer(np.arange(problem.n_groups), problem.group).astype(np.float64)
    constraints = sp.vstack([sp.csc_matrix(members), sp.identity(n), -sp.identity(n)], format="csc")
    limits = np.concatenate([problem.sums, problem.hi, -problem.lo])
    cones = [clarabel.NonnegativeConeT(2 * n)]
    if problem.n_groups:
        cones.insert(0, clarabel.ZeroConeT(problem.n_groups))
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.direct_solve_method = "faer"  # a dense matrix wants a blocked factorisation
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = accuracy
    quadratic = sp.csc_matrix(np.triu(kernel))
    return clarabel.DefaultSolver(quadratic, -problem.v, constraints, limits, cones, options).solve()


def _load_clarabel() -> Any:
    try:
        return importlib.import_module("clarabel")
    except ImportError as error:
        raise ImportError("the general QP solver needs Clarabel: pip install hinge[lab]") from error


def _at_its_bounds(problem: DualProblem, answer: Any) -> Vector:
    """Return the feasible point that the interior one stands for."""
    n, g = problem.n_variables, problem.n_groups
    beta, slack, dual = (np.asarray(values) for values in (answer.x, answer.s, answer.z))
    to_hi, to_lo = slack[g : g + n], slack[g + n :]
    pull_hi, pull_lo = dual[g : g + n], dual[g + n :]
    beta = np.where(to_hi < pull_hi, problem.hi, np.where(to_lo < pull_lo, problem.lo, beta))
    return problem.near(beta)


def interior_point(state: State, tol: float, run: Run) -> None:
    """Solve the whole problem at once."""
    if state.violation() <= tol:
        return
    run.check(state.violation(), state.gram.n)
    sub = extract(state, np.arange(state.problem.n_variables))
    run.count(solve_quadratic_program(sub, tol), state.move(sub.variables, sub.beta))
    if state.violation() > tol:
        raise Stop(Status.STALLED)


ALGORITHMS = (
    laboratory(
        "interior-point",
        "General QP solver (Clarabel)",
        "Bottou & Lin, section 1.6.2; Platt, section 1.2",
        ANY_GROUPS,
        interior_point,
    ),
)
