"""A fit of all classes in one problem, in the place of one machine for each class."""

from __future__ import annotations

import numpy as np

from hinge.report import Report, Solution, Status
from hinge.runtime import clock
from hinge.runtime.interrupt import pressed, requested
from hinge.runtime.threads import blas_on_one_thread
from hinge.settings import Progress, Settings
from hinge.solvers.exactness import is_within, sharper
from hinge.solvers.policies import USUAL
from hinge.solvers.weights.class_newton import fits_newton, is_quick, newton_steps
from hinge.solvers.weights.crammer_singer import ClassDescent, ClassProblem, Standing
from hinge.training.course import Course, Fit
from hinge.training.formulation import Classification
from hinge.training.linear import Threshold, weight_model
from hinge.training.machine import Machine
from hinge.training.progress import Watch
from hinge.training.trainer import Trainer

# What answers are polished to where that takes no time.
_LAST_DIGITS = 1e-12


def run_crammer_singer(course: Course, trainer: Trainer, threshold: Threshold, C: float) -> Fit:
    """Train the one machine of all classes, and keep its weights."""
    formulation, gram, began = course.formulation, trainer.gram, clock.now()
    assert isinstance(formulation, Classification)
    data, codes = formulation.data, formulation.strata.astype(np.int64)
    costs = C * data.weights * formulation.class_weights[codes]
    problem = ClassProblem(codes, costs, len(formulation.labels))
    descent = ClassDescent(problem, gram, course.settings.tol)
    gram.team.cancelled = lambda: False  # no product takes long, and a fit that must stop says where it stands
    try:
        with blas_on_one_thread():
            status, standing, sweeps, steps = _descend(descent, course.settings, trainer.watch)
    finally:
        gram.team.cancelled = requested
    support = np.any(descent.alpha != 0, axis=1)
    report = Report(
        status, solver="descent", reason="all classes in one problem, a sample at a time", precision="double",
        storage=gram.storage, iterations=steps, outer_steps=sweeps, violation=standing.violation,
        rounding=standing.rounding, objective=standing.objective, gap=standing.gap,
        n_support=int(np.count_nonzero(support)),
        n_bounded=int(np.count_nonzero(descent.alpha[np.arange(gram.n), codes] == costs)),
        seconds=clock.now() - began, fewest_active=gram.n,
    )  # fmt: skip
    trainer.watch.end(0, report)
    weights, intercepts = threshold.divide(descent.weights.T, data.X.dtype)
    if len(formulation.labels) == 2:  # one decision, positive for the second class
        weights, intercepts = weights[1:] - weights[:1], intercepts[1:] - intercepts[:1]
    nothing = np.empty(0)
    solution = Solution(descent.alpha.T.ravel(), nothing, nothing, report)
    machine = Machine(np.arange(gram.n), nothing, 0.0, solution, nothing)
    return Fit(formulation, [machine], weight_model(weights, intercepts), report, [])


def _descend(descent: ClassDescent, settings: Settings, watch: Watch) -> tuple[Status, Standing, int, int]:
    """Sweep until the violation, computed from the variables alone, is within the tolerance.

    Returns the status, what the point proves, and the numbers of sweeps and of steps.
    """
    tol, n, begun = settings.tol, len(descent.alpha), clock.now()
    most = np.inf if settings.max_iter is None else settings.max_iter
    sweeps = steps = looks = 0
    milestone, steps_then = np.inf, 0
    watch.n_machines = 1
    watch.begin(0)
    while True:
        steps += len(descent.order)
        descent.sweep()
        sweeps += 1
        if descent.distance < 0.5 * milestone:
            milestone, steps_then = descent.distance, steps
        figures = Progress(steps, sweeps, descent.distance, 0.0, clock.now() - begun, len(descent.order))
        is_declined = watch.has_listeners and watch.step(0, figures)
        if is_declined or requested():
            status = Status.INTERRUPTED if is_declined else _why_stopped()
            return status, descent.standing(), sweeps, steps
        is_settled, crawls = descent.distance <= sharper(tol), steps - steps_then > USUAL.descent.patience * n
        if crawls and not looks and fits_newton(descent):
            descent.begin_again()  # from where rounding has led it would take longer, or get nowhere
            steps += n * newton_steps(descent, lambda standing: _is_certain(standing, settings), USUAL.proximal)
            standing = descent.standing()
            if _is_certain(standing, settings):
                break
            return _why_stopped(), standing, sweeps, steps
        if is_settled:
            standing, looks = descent.standing(), looks + 1
            if _is_certain(standing, settings):
                break
            if looks >= USUAL.descent.looks:
                return Status.STALLED, standing, sweeps, steps
            descent.look_at_all()
        if steps >= most:
            return Status.ITERATION_LIMIT, descent.standing(), sweeps, steps
    if is_quick(descent):
        before = descent.alpha.copy(), descent.weights + descent.lack
        steps += n * newton_steps(descent, lambda standing: standing.violation <= _LAST_DIGITS, USUAL.proximal)
        if not _is_certain(descent.standing(), settings):
            descent.take(*before)
        standing = descent.standing()
    return Status.CONVERGED if _is_certain(standing, settings) else Status.UNCERTAIN, standing, sweeps, steps


def _why_stopped() -> Status:
    """Return how a descent has ended that got no further."""
    if not requested():
        return Status.STALLED
    return Status.INTERRUPTED if pressed() else Status.TIME_LIMIT


def _is_certain(standing: Standing, settings: Settings) -> bool:
    """Whether the conditions of an optimum hold, and weights and variables agree; or the gap alone says so."""
    assert settings.weights_gap is not None
    is_met = is_within(standing.violation, standing.rounding, settings.tol)
    agree = standing.disagreement <= settings.weights_gap * max(1.0, abs(standing.objective))
    return settings.gap_suffices(standing) or (is_met and agree)
