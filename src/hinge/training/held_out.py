"""Decisions that no sample had a part in, for calibrating probabilities.

Each machine has twins, trained without one fold each. They keep the whole Gram matrix: the variables of held-out
samples have an empty box. Kernel values are thus shared with the machine itself, the twins start from its
solution, and the decisions of held-out samples are part of the twin's residual.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hinge.arrays import Vector
from hinge.runtime.interrupt import Cancelled, check, requested
from hinge.training.formulation import Formulation
from hinge.training.machine import Machine, points_of
from hinge.training.probability import folds_by_content
from hinge.training.tasks import Task
from hinge.training.trainer import Trainer


def held_out_decisions(
    trainer: Trainer, formulation: Formulation, machines: Sequence[Machine], is_given: bool, seed: int
) -> list[Vector]:
    """Return each machine's decisions, made by its twin that was trained without the sample's fold.

    Parameters
    ----------
    trainer, formulation, machines : Trainer, Formulation, sequence of Machine
        What trained the machines on all samples, what of, and the machines.
    is_given : bool
        Whether only kernel values tell the samples apart: of a precomputed matrix, or a kernel function.
    seed : int
        Draws the folds.

    Returns
    -------
    list of arrays
        For each machine one value per sample of it.

    Raises
    ------
    Cancelled
        The fit had to stop before all twins were trained.
    """
    data = formulation.data
    rows = trainer.gram.given_matrix if is_given else data.X
    folds = folds_by_content(rows, formulation.strata, data.weights, seed, is_given)
    results = [np.empty(len(samples)) for samples, _ in points_of(machines)]
    tasks, targets = [], []
    for k, machine in enumerate(machines):
        check()
        own = folds[machine.samples]
        for fold in np.unique(own):
            held_out = own == fold
            task = formulation.without(k, held_out)
            if isinstance(task, Task):
                copies = machine.solution.beta.reshape(-1, len(own))
                tasks.append(replace(task, start=np.where(held_out, 0.0, copies).ravel()))
                targets.append((results[k], held_out))
            else:
                results[k][held_out] = task
    twins = trainer.train(tasks, first=len(machines))
    if trainer.watch.is_stopped or requested():
        raise Cancelled
    for twin, (result, held_out) in zip(twins, targets, strict=True):
        result[held_out] = twin.decisions[held_out]
    return results
