"""Solvers: from a dual problem and its Gram matrix to a certified solution."""

from __future__ import annotations

from hinge.dual.problem import DualProblem
from hinge.kernel.gram import Gram
from hinge.report import Solution, Status
from hinge.runtime.interrupt import catching
from hinge.settings import Settings
from hinge.solvers.block.working_set import is_one_set
from hinge.solvers.conclusion import Method, conclude, conduct, start_of
from hinge.solvers.exactness import needs_double
from hinge.solvers.one_pass import fits_one_pass, solve_in_one_pass
from hinge.solvers.run import Run


def solve(problem: DualProblem, gram: Gram, settings: Settings | None = None) -> Solution:
    """Minimise ½ βᵀKβ − vᵀβ over the box and the group sums.

    Parameters
    ----------
    problem : DualProblem
        What to solve; the functions in `hinge.dual.formulations` build them.
    gram : Gram
        Kernel values of the problem's samples.
    settings : Settings, optional
        Method, tolerance and limits.

    Returns
    -------
    Solution
        β, its residual and multipliers, and a report. Look at ``report.status``: limits and interrupts return
        the best point so far instead of raising.

    Examples
    --------
    >>> import numpy as np
    >>> from hinge import Gram, Kernel, solve
    >>> from hinge.dual.formulations import c_svc
    >>> gram = Gram(np.array([[0.0], [1.0], [2.0], [3.0]]), Kernel("linear"))
    >>> solution = solve(c_svc([-1, -1, 1, 1], C=10.0), gram)
    >>> solution.beta.round(6), solution.multipliers.round(6), str(solution.report.status)
    (array([ 0., -2.,  2.,  0.]), array([-3.]), 'converged')
    """
    settings = settings or Settings()
    with catching() as scope:
        method, reason = _choose_method(problem, gram, settings)
        run = Run(settings, problem, gram.team)
        beta = start_of(problem, gram, settings)
        is_new = settings.known is None
        if is_new and fits_one_pass(problem.n_variables, gram, settings) and not run.must_stop():
            found = solve_in_one_pass(problem, gram, settings, beta, run, reason)
            if found is not None:
                return found
        if gram.precision == "single" and (not is_new or needs_double(problem, gram, settings.tol)):
            gram = gram.in_double()
        work = _work_of(method, is_new)
        state, status = conduct(problem, gram, run, work, beta)
        if status in (Status.STALLED, Status.UNCERTAIN) and settings.weights_gap is not None:
            from hinge.solvers.weights.choose import may_be_factorised

            if may_be_factorised(problem, gram):
                from hinge.solvers.weights.apart import with_own_weights

                solution = with_own_weights(state, status, method, reason, run)
                scope.is_answered = solution.report.status is Status.INTERRUPTED
                return solution
        scope.is_answered = status is Status.INTERRUPTED
        return conclude(state, status, method, reason, run)


def _work_of(method: str, is_new: bool) -> Method:
    """Return what a method does. It is imported here: a command that trains on small data starts without it."""
    from hinge.solvers.block.shrinking import shrinking_block, shrinking_smo
    from hinge.solvers.resumption import touch_up_then
    from hinge.solvers.weights.choose import descent_then_block, proximal_then_block

    work = {
        "block": shrinking_block,
        "smo": shrinking_smo,
        "descent": descent_then_block,
        "proximal": proximal_then_block,
    }[method]
    return work if is_new else touch_up_then(work)


def _choose_method(problem: DualProblem, gram: Gram, settings: Settings) -> tuple[str, str]:
    if settings.solver == "auto" and is_one_set(problem, gram, settings.sizes):
        return "block", f"{problem.n_variables} variables fit one working set"
    from hinge.solvers.weights.choose import has_weight_method, weight_method

    if settings.solver in ("proximal", "descent") and not has_weight_method(problem, gram):
        raise ValueError(f"solver {settings.solver!r} needs a linear kernel on features, and bounded variables")
    if settings.solver == "smo" and problem.ridge is not None:
        raise ValueError("solver 'smo' has no squared losses: choose 'block' or 'auto'")
    if settings.solver != "auto":
        return settings.solver, "as asked"
    size = f"{problem.n_variables} variables"
    if (method := weight_method(problem, gram)) is not None:
        return method, f"{size}, {gram.weights.n_features} features; a linear kernel has a weight vector"
    if gram.is_cheap:
        return "block", f"{size}; kernel values are cheap to compute again, so no rows are kept"
    return "block", f"{size}; kernel values are expensive, so rows are kept within {gram.cache_bytes >> 20} MiB"
