"""A general quadratic programming solver on the whole problem: what MINOS and LOQO once were, here Clarabel.

Idea. The dual is a convex quadratic program; an interior-point method solves it without knowing what it is for.
β stays inside its box all the way, so that the answer needs a last touch: a variable whose distance to a bound
is smaller than that bound's dual value belongs on it.

Cost. The whole kernel matrix in memory, and some twenty factorisations of it: n³. A thousand variables take a
second, five thousand a minute.

When to use. As an oracle for small problems, and inside a decomposition (Bottou & Lin, section 1.6.2), where
its setup time is paid again for every working set.

Clarabel is an optional dependency: ``pip install 'hinge-svm[lab]'``.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import scipy.sparse as sp

from hinge.arrays import Floats, Vector
from hinge.dual.optimality import violation_of
from hinge.dual.problem import DualProblem
from hinge.lab.algorithms.course import ANY_GROUPS, laboratory
from hinge.lab.algorithms.subproblem import Subproblem, extract
from hinge.report import Status
from hinge.solvers.run import Run, Stop
from hinge.solvers.state import State

# Relative accuracies to try in turn until the violation is small enough, and how far to go to the nearest bound;
# 1e-12 is about what doubles allow, and shorter steps finish where Clarabel gives up for want of progress.
_ATTEMPTS = ((1e-8, 0.99), (1e-10, 0.99), (1e-12, 0.99), (1e-12, 0.9))


def solve_quadratic_program(sub: Subproblem, tol: float) -> int:
    """Solve a subproblem in place; return the number of interior-point iterations."""
    iterations, least = 0, np.inf
    before = _objective(sub, sub.beta, sub.problem.v - sub.kernel @ sub.beta)
    for accuracy, step_fraction in _ATTEMPTS:
        beta, taken = _minimise(sub.kernel, sub.problem, accuracy, step_fraction)
        iterations += taken
        residual = sub.problem.v - sub.kernel @ beta
        violation = violation_of(sub.problem, beta, residual)
        if violation < least and _objective(sub, beta, residual) <= before:
            sub.beta[:], sub.residual[:], least = beta, residual, violation
        if least <= tol:
            break
    return iterations


def _objective(sub: Subproblem, beta: Vector, residual: Vector) -> float:
    return float(-0.5 * np.dot(beta, sub.problem.v + residual))


def _minimise(kernel: Floats, problem: DualProblem, accuracy: float, step_fraction: float) -> tuple[Vector, int]:
    """Minimise ½ βᵀKβ − vᵀβ subject to Mβ = sums, β ≤ hi, −β ≤ −lo; return β and the number of iterations.

    Variables whose box has no width are left out: with them there would be no interior.
    """
    wide = problem.lo < problem.hi
    n, g = int(wide.sum()), problem.n_groups
    beta = np.where(wide, 0.0, problem.lo)
    if n == 0:
        return beta, 0
    members = np.equal.outer(np.arange(g), problem.group).astype(np.float64)
    constraints = sp.vstack([sp.csc_matrix(members[:, wide]), sp.identity(n), -sp.identity(n)], format="csc")
    limits = np.concatenate([problem.sums - members @ beta, problem.hi[wide], -problem.lo[wide]])
    linear = (kernel @ beta - problem.v)[wide]
    program = (kernel[np.ix_(wide, wide)], linear, constraints, limits)
    answer = _clarabel(*program, g, accuracy, step_fraction)
    value, slack, dual = (np.asarray(values) for values in (answer.x, answer.s, answer.z))
    is_at_hi, is_at_lo = slack[g : g + n] < dual[g : g + n], slack[g + n :] < dual[g + n :]
    beta[wide] = np.where(is_at_hi, problem.hi[wide], np.where(is_at_lo, problem.lo[wide], value))
    return problem.near(beta), int(answer.iterations)


def _clarabel(
    quadratic: Floats, linear: Vector, constraints: Any, limits: Vector, n_equations: int, accuracy: float,
    step_fraction: float,
) -> Any:  # fmt: skip
    """Minimise ½ xᵀQx + qᵀx subject to Ax ≤ b, where the first rows of A are equations."""
    clarabel = _load_clarabel()
    cones = [clarabel.NonnegativeConeT(len(limits) - n_equations)]
    if n_equations:
        cones.insert(0, clarabel.ZeroConeT(n_equations))
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.direct_solve_method = "faer"  # a dense matrix wants a blocked factorisation
    options.max_step_fraction = step_fraction
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = accuracy
    return clarabel.DefaultSolver(
        sp.csc_matrix(np.triu(quadratic)), linear, constraints, limits, cones, options
    ).solve()


def _load_clarabel() -> Any:
    try:
        return importlib.import_module("clarabel")
    except ImportError as error:
        raise ImportError("the general QP solver needs Clarabel: pip install 'hinge-svm[lab]'") from error


def interior_point(state: State, tol: float, run: Run) -> None:
    """Solve the whole problem at once."""
    if state.violation() <= tol:
        return
    run.check(state, state.violation())
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
