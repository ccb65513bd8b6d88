"""Updates: from a fit to that of a training set in which some samples, weights or prices are others.

The problem is that of all samples of both training sets, the *union*: those that are gone have an empty box. So
the residual of the old machine is that of the new one but for the rows of what has come and gone, and the solver
goes on from there (`hinge.solvers.resumption`). Machines in which nothing has changed stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import Index, Vector
from hinge.dual.optimality import count_support, gap_of, multipliers_of, violation_of
from hinge.dual.problem import DualProblem
from hinge.dual.residuals import Reference
from hinge.kernel.rounding import UNIT
from hinge.report import Solution
from hinge.runtime import clock
from hinge.solvers.one_pass import is_for_one_pass, suits_one_pass
from hinge.solvers.state import SUM_ERROR
from hinge.training.course import Course, Fit
from hinge.training.formulation import Classification, Formulation
from hinge.training.machine import Machine, assemble, combined_report, machine_of
from hinge.training.tasks import Task, sizes_of
from hinge.training.trainer import Trainer


@dataclass(frozen=True, eq=False)
class Update:
    """What becomes of a training set.

    Parameters
    ----------
    before : Fit
        The fit of the old one.
    union : Formulation
        The problem of all samples of both: first those of the old one, in their order. Weights are the new ones,
        0 for samples that are gone.
    after : Formulation
        The problem of the new training set.
    kept : int64 array
        Which samples of the union the new training set consists of, in its order, which is that of the union.
    is_same_problem : bool
        Whether prices are what they were, so that machines differ only where samples do.
    """

    before: Fit
    union: Formulation
    after: Formulation
    kept: Index
    is_same_problem: bool

    def steps(self, tasks: Sequence[Task]) -> list[Task | Machine]:
        """Return which of the union's tasks to train, from where they were, and which machines stay."""
        old, changed = _by_sides(self.before.formulation), self._changed()
        old_tasks = self.before.formulation.tasks()
        found: list[Task | Machine] = []
        for k, (positive, negative) in enumerate(self.union.sides):
            task = tasks[k]
            number, sign = old.get((positive, negative), (-1, 1.0))
            if number < 0 and len(self.union.sides) == 1:  # two classes are left of several, each against the rest
                number, sign = old.get((positive, None), (-1, 1.0))
            if number >= 0 and len(self.before.machines[number].samples):
                found.append(self._step(task, old_tasks, number, sign, changed))
            else:  # a new one, or that fit did not come to it
                found.append(task)
        return found

    def _step(
        self, task: Task, old_tasks: Sequence[Task], number: int, sign: float, changed: NDArray[np.bool_]
    ) -> Task | Machine:
        """Return a task with the point where its machine was, or the machine where that is its optimum already."""
        machine = self.before.machines[number]
        solution, is_touched = machine.solution, changed[task.samples]
        is_same = sign > 0 and np.array_equal(machine.samples, task.samples)
        may_stay = is_same and self.is_same_problem and solution.report.converged
        if may_stay and not is_touched.any():
            return machine
        old = old_tasks[number].problem
        if may_stay and _is_optimal(task.problem, old, solution.beta, is_touched):
            return _at_rest(task, solution)
        return replace(task, known=_known(task, solution, machine.samples, old, sign, len(changed)))

    def _changed(self) -> NDArray[np.bool_]:
        """Mark the samples of the union that are new, gone, or of another weight, that of their class included."""
        n_old = len(self.before.formulation.data.weights)
        changed = np.ones(len(self.union.data.weights), dtype=bool)
        changed[:n_old] = _weights(self.union)[:n_old] != _weights(self.before.formulation)
        return changed

    def machine_after(self, machine: Machine) -> Machine:
        """Return a machine of the union, or of the old training set, as one of the new training set."""
        places = np.full(len(self.union.data.weights), -1)
        places[self.kept] = np.arange(len(self.kept))
        places = places[machine.samples]
        here, n = np.flatnonzero(places >= 0), len(machine.samples)
        if len(here) == n:
            return replace(machine, samples=places)
        solution = machine.solution

        def of(values: Vector) -> Vector:
            return values.reshape(-1, n)[:, here].ravel()

        error = None if solution.error is None else solution.error[here]
        solution = replace(solution, beta=of(solution.beta), residual=of(solution.residual), error=error)
        coefficients, decisions = machine.coefficients[here], machine.decisions[here]
        return replace(
            machine, samples=places[here], coefficients=coefficients, solution=solution, decisions=decisions
        )


def update(change: Update, course: Course, trainer: Trainer) -> Fit:
    """Make the fit of the new training set.

    Parameters
    ----------
    change : Update
        The old training set and the new one.
    course : Course
        The fit of the union.
    trainer : Trainer
        Has the kernel values of the union.
    """
    begun = clock.now()
    steps = change.steps(course.tasks)
    work = [_quickest(step, course, trainer) for step in steps if isinstance(step, Task)]
    trainer.watch.expect(sizes_of(work))
    trained = iter(trainer.train(work) if work else [])
    machines = [change.machine_after(next(trained) if isinstance(step, Task) else step) for step in steps]
    after = change.after
    model = assemble(course.kernel, after.data.X, machines, after.data.places, after.order)
    report = combined_report(machines, trainer.gram, clock.now() - begun, len(model.support))
    notes = change.union.notes(machines, float(trainer.gram.diagonal.max()))
    return Fit(after, machines, model, report, notes)


def _quickest(task: Task, course: Course, trainer: Trainer) -> Task:
    """Let a small problem of cheap kernel values begin at its point like any fit: one pass is quicker."""
    if task.known is None or not trainer.gram.is_cheap or not suits_one_pass(task.problem):
        return task
    if not is_for_one_pass(task.problem.n_variables, course.settings):
        return task
    return replace(task, start=task.known.beta, known=None)


def _is_optimal(problem: DualProblem, former: DualProblem, beta: Vector, touched: NDArray[np.bool_]) -> bool:
    """Whether the optimum of a problem is that of another, too, which differs in the boxes of ``touched`` samples.

    They had no part in it: a variable at zero stays there whatever its box is, an empty one included.
    """
    if not np.array_equal(problem.sums, former.sums) or beta.reshape(-1, len(touched))[:, touched].any():
        return False
    others = np.tile(~touched, problem.n_variables // problem.n_samples)
    pairs = [(problem.lo, former.lo), (problem.hi, former.hi), (problem.v, former.v)]
    if problem.ridge is not None and former.ridge is not None:
        pairs.append((problem.ridge, former.ridge))
    return all(np.array_equal(new[others], old[others]) for new, old in pairs)


def _at_rest(task: Task, solution: Solution) -> Machine:
    """Return the machine of a task whose optimum is known; what the point proves follows from its residual."""
    problem, beta, residual = task.problem, solution.beta, solution.residual
    multipliers = multipliers_of(problem, beta, residual)
    n_support, n_bounded = count_support(problem, beta)
    report = replace(
        solution.report,
        reason="the point was the optimum already",
        violation=violation_of(problem, beta, residual),
        gap=gap_of(problem, beta, residual, multipliers),
        n_support=n_support,
        n_bounded=n_bounded,
        iterations=0,
        outer_steps=0,
        kernel_evaluations=0,
        seconds=0.0,
        compile_seconds=0.0,
        trace=None,
    )
    return machine_of(task, Solution(beta, residual, multipliers, report, solution.error))


def _by_sides(formulation: Formulation) -> dict[tuple[object, object], tuple[int, float]]:
    """Return which machine tells two labels apart, and whether as asked or the other way round."""
    found: dict[tuple[object, object], tuple[int, float]] = {}
    sides = formulation.sides
    for k, (positive, negative) in enumerate(sides):
        found[positive, negative] = k, 1.0
        if negative is not None:
            found.setdefault((negative, positive), (k, -1.0))
            if len(sides) == 1:  # of two classes each is the rest of the other
                found[positive, None], found[negative, None] = (k, 1.0), (k, -1.0)
    return found


def _weights(formulation: Formulation) -> Vector:
    """Return the weight of every sample, that of its class included."""
    weights = formulation.data.weights
    return (
        weights * formulation.class_weights[formulation.strata]
        if isinstance(formulation, Classification)
        else weights
    )


def _known(
    task: Task, solution: Solution, samples: Index, old: DualProblem, sign: float, n_union: int
) -> Reference:
    """Return the point where a machine was, as one of a task: samples that it did not have are unknown.

    Where most boxes have grown or shrunk alike, the point moves along the ray through it, and its image with it.
    """
    n_old, problem = len(samples), task.problem
    residual = solution.residual if old.ridge is None else solution.residual + old.ridge * solution.beta
    image = (old.v - residual)[:n_old]
    error = np.full(n_old, np.inf) if solution.error is None else solution.error + 4 * UNIT * np.abs(image)
    place = np.full(n_union, -1)
    place[samples] = np.arange(n_old)
    place = place[task.samples]
    here = np.flatnonzero(place >= 0)
    copies, n = problem.n_variables // problem.n_samples, problem.n_samples
    beta, everywhere, errors = np.zeros((copies, n)), np.zeros(n), np.full(n, np.inf)
    beta[:, here] = sign * solution.beta.reshape(copies, n_old)[:, place[here]]
    everywhere[here], errors[here] = sign * image[place[here]], error[place[here]]
    factor = _factor(problem, here, old, place[here], beta.ravel(), everywhere)
    beta, everywhere, errors = factor * beta, factor * everywhere, factor * errors * (1 + 2 * UNIT)
    point = beta.ravel()
    return Reference(point, problem.residual_of(point, everywhere), errors, np.isfinite(errors))


def _factor(
    problem: DualProblem, here: Index, old: DualProblem, there: Index, beta: Vector, image: Vector
) -> float:
    """Return how far along its ray a point goes to the best one, where most boxes have another size; else 1."""
    copies = problem.n_variables // problem.n_samples
    width = (problem.hi - problem.lo).reshape(copies, -1)[:, here].ravel()
    former = (old.hi - old.lo).reshape(copies, -1)[:, there].ravel()
    counts = (width > 0) & (former > 0) & np.isfinite(width) & np.isfinite(former)
    if not counts.any():
        return 1.0
    growth = width[counts] / former[counts]
    factor = float(np.median(growth))
    alike = np.isclose(growth, factor, rtol=SUM_ERROR, atol=0)
    if factor == 1 or 2 * np.count_nonzero(alike) <= len(growth):
        return 1.0
    if factor < 1 or problem.sums.any():
        return factor
    curvature = float(problem.coefficients(beta) @ image)
    best = float(beta @ problem.v) / curvature if curvature > 0 else factor
    return min(max(best, 1.0), factor)
