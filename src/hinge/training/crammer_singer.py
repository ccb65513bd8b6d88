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
    descent = ClassDescent(ClassProblem(codes, costs, len(formulation.labels)), gram)
    with blas_on_one_thread():
        status, standing, sweeps, steps = _descend(descent, course.settings, trainer.watch)
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
            status = Status.INTERRUPTED if is_declined or pressed() else Status.TIME_LIMIT
            return status, descent.standing(), sweeps, steps
        is_settled, crawls = descent.distance <= sharper(tol), steps - steps_then > USUAL.descent.patience * n
        if crawls and not looks and fits_newton(descent):
            steps += n * newton_steps(descent, sharper(tol), USUAL.proximal)
            is_settled = True
        if is_settled:
            standing, looks = descent.standing(), looks + 1
            if standing.violation <= tol or settings.gap_suffices(standing):
                break
            if looks >= USUAL.descent.looks:
                return Status.STALLED, standing, sweeps, steps
            descent.look_at_all()
        if steps >= most:
            return Status.ITERATION_LIMIT, descent.standing(), sweeps, steps
    if is_quick(descent):
        steps += n * newton_steps(descent, _LAST_DIGITS, USUAL.proximal)
        standing = descent.standing()
    is_certain = is_within(standing.violation, standing.rounding, tol) or settings.gap_suffices(standing)
    return Status.CONVERGED if is_certain else Status.UNCERTAIN, standing, sweeps, steps
