"""Dual ascent: the sums get a price, and the price rises until they hold (lecture notes on the dual).

Idea. Without its sums the problem has a box only, and single variables can move. So relax each sum: add
μ(Σβ − s) to the objective, minimise over the box, and move μ along what the sum lacks. With a linear price alone
that is dual ascent; where K is singular it needs not converge, so that a square is added too,
½ρ(Σβ − s)², and μ moves by ρ times the lack: the method of multipliers (Hestenes 1969, Powell 1969). The
square adds ρ to every kernel value of a group; the price at the end is the intercept.

Cost. The whole matrix in memory; a box-constrained problem, solved variable by variable, for each price. The
prices of the later ones differ little, and their solutions start from one another.

When to use. It shows where the intercept comes from, and what LIBLINEAR avoids when it regularises it.
Production's ``descent`` relaxes the sums of linear machines in the same way.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hinge.lab.algorithms.course import ANY_GROUPS, laboratory
from hinge.lab.algorithms.decomposition import by_pair_steps
from hinge.lab.algorithms.subproblem import Subproblem, extract
from hinge.report import Status
from hinge.solvers.run import Run, Stop
from hinge.solvers.state import State

# Each box-constrained problem is solved to this share of the violation, and of what the sums lack.
_INNER_SHARE = 0.1

# Prices tried before a run that makes no headway counts as stalled.
_MOST_VAIN = 50


def dual_ascent(state: State, tol: float, run: Run) -> None:
    """Raise and lower the prices of the sums until they hold and nothing violates."""
    problem = state.problem
    if state.violation() <= tol:
        return
    run.check(state, state.violation())
    kernel = extract(state, np.arange(problem.n_variables)).kernel
    members = np.equal.outer(np.arange(problem.n_groups), problem.group).astype(np.float64)
    weight = max(float(np.abs(kernel.diagonal()).mean()), 1e-200)  # ρ; of the size of K, so that neither rules
    augmented = kernel + weight * members.T @ members
    box = replace(
        problem, group=np.zeros_like(problem.group), sums=np.empty(0), n_samples=problem.n_variables,
        v=problem.v + weight * problem.sums @ members,
    )  # fmt: skip
    price = np.zeros(problem.n_groups)
    beta, aim, least, vain = state.beta.copy(), state.violation(), np.inf, 0
    while True:
        residual = box.v - price @ members - augmented @ beta
        sub = Subproblem(np.arange(len(beta)), augmented, box, beta, residual)
        steps = by_pair_steps(sub, aim)
        lack = members @ beta - problem.sums
        price += weight * lack
        state.beta = problem.near(beta)
        state.residual = problem.v - kernel @ state.beta
        run.count(max(steps, 1), state.objective() - run.objective)
        violation = state.violation()
        if violation <= tol:
            return
        run.check(state, violation)
        vain = 0 if violation < least else vain + 1
        if vain > _MOST_VAIN:
            raise Stop(Status.STALLED)
        least = min(least, violation)
        lacking = max(weight * float(np.abs(lack).max(initial=0.0)), tol)
        aim = min(aim, _INNER_SHARE * min(violation, lacking))


ALGORITHMS = (
    laboratory(
        "dual-ascent",
        "Dual ascent on the sums (method of multipliers)",
        "Lecture notes on the dual of the SVM, block coordinate ascent",
        ANY_GROUPS,
        dual_ascent,
    ),
)
