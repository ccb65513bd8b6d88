"""ADMM: one copy of the variables for the quadratic, one for the constraints (lecture notes on the dual).

Idea. Write the problem twice: β makes the objective small and knows no constraint, z is the nearest feasible
point, and a running sum u of their differences draws both together (Boyd, Parikh, Chu, Peleato & Eckstein,
*Distributed Optimization and Statistical Learning via the Alternating Direction Method of Multipliers*, 2011):

    β ← argmin ½ βᵀKβ − vᵀβ + ½ρ ‖β − z + u‖²      a linear system with K + ρI
    z ← nearest feasible point to β + u
    u ← u + β − z

It is block coordinate ascent on the augmented Lagrangian, with the two copies as blocks. K is decomposed into
eigenvectors once, so that ρ may follow the two residuals: where z is far from β, ρ grows, where z itself still
moves, it falls (section 3.4.1 there). β is over-relaxed, as usual.

Cost. The whole matrix in memory, n³ once, then n² a step.

When to use. For small problems and moderate accuracy, and to see why methods that know the constraints better
have won: a bound is met within a few steps, the free variables then creep.
"""

from __future__ import annotations

import numpy as np

from hinge.lab.algorithms.course import ANY_GROUPS, laboratory
from hinge.lab.algorithms.subproblem import extract
from hinge.solvers.run import Run
from hinge.solvers.state import State

_RELAXATION = 1.6  # between 1.5 and 1.8 (section 3.4.3)

# ρ changes where one residual is this many times the other; seldom, because each change starts u's sum anew.
_IMBALANCE = 5.0
_STEPS_PER_CHANGE = 20


def admm(state: State, tol: float, run: Run) -> None:
    """Alternate between quadratic and constraints until the feasible copy is optimal."""
    problem = state.problem
    if state.violation() <= tol:
        return
    run.check(state, state.violation())
    kernel = extract(state, np.arange(problem.n_variables)).kernel
    curvatures, directions = np.linalg.eigh(kernel)
    curvatures = np.maximum(curvatures, 0.0)  # rounding makes some of them negative
    rho = max(float(curvatures.mean()), 1e-200)
    z = state.beta.copy()
    u = -state.residual / rho  # at an optimum β = z, and ρu is minus the residual
    while True:
        image = directions.T @ (problem.v + rho * (z - u))
        beta = directions @ (image / (curvatures + rho))
        relaxed = _RELAXATION * beta + (1 - _RELAXATION) * z
        before, z = z, problem.project(relaxed + u)
        u += relaxed - z
        state.beta = z
        state.residual = problem.v - kernel @ z
        objective = state.objective()
        run.count(1, objective - run.objective)
        violation = state.violation()
        if violation <= tol:
            return
        run.check(state, violation)
        if run.iterations % _STEPS_PER_CHANGE == 0:
            apart, moved = float(np.linalg.norm(beta - z)), rho * float(np.linalg.norm(z - before))
            factor = 2.0 if apart * rho > _IMBALANCE * moved else 0.5 if moved > _IMBALANCE * apart * rho else 1.0
            rho, u = rho * factor, u / factor


ALGORITHMS = (
    laboratory(
        "admm",
        "ADMM, quadratic and constraints in turn",
        "Lecture notes on the dual of the SVM, block coordinate ascent; Boyd et al. 2011, section 5",
        ANY_GROUPS,
        admm,
    ),
)
