"""Tasks: the machines that a fit trains, each with its samples and its dual problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from hinge.arrays import Index, Vector
from hinge.dual.problem import DualProblem
from hinge.dual.residuals import Reference
from hinge.runtime.interrupt import requested


@dataclass(frozen=True, eq=False)
class Task:
    """One machine to train.

    Parameters
    ----------
    samples : int64 array
        Places of its samples in the Gram matrix.
    problem : DualProblem
        The dual problem of these samples.
    number : int
        Which machine of the fit it is.
    start : array, optional
        β to start from.
    known : Reference, optional
        A point near the optimum whose residual is known, to start from instead.
    divide : bool
        Whether coefficients are divided by half the difference of the two multipliers (ν-SVC).
    split : int
        Where the samples of a pair of classes change from the first class, all of it, to the second; 0 for others.
    is_sphere : bool
        Whether decisions are squared distances: R² minus that from the centre (SVDD).
    """

    samples: Index
    problem: DualProblem
    number: int = 0
    start: Vector | None = None
    known: Reference | None = None
    divide: bool = False
    split: int = 0
    is_sphere: bool = False


class Tasks(Sequence[Task]):
    """Tasks that are made when they are asked for: of a thousand classes there are half a million.

    Parameters
    ----------
    sizes : int64 array
        Number of samples of each task.
    make : callable
        Makes the task of a number.
    make_together : callable, optional
        Makes the samples of the tasks of some numbers, one after the other, and one problem of all their variables
        in that order, where the tasks have a variable for each sample and the same sums.
    """

    def __init__(
        self,
        sizes: Index,
        make: Callable[[int], Task],
        make_together: Callable[[Index], tuple[Index, DualProblem]] | None = None,
    ) -> None:
        self.sizes = sizes
        self.make_together = make_together
        self._make = make
        self._made: dict[int, Task] = {}

    def __len__(self) -> int:
        return len(self.sizes)

    @overload
    def __getitem__(self, number: int) -> Task: ...
    @overload
    def __getitem__(self, number: slice) -> list[Task]: ...
    def __getitem__(self, number: int | slice) -> Task | list[Task]:
        if isinstance(number, slice):
            return [self[k] for k in range(*number.indices(len(self)))]
        if not 0 <= number < len(self):
            raise IndexError(number)
        return self._made.get(number) or self._make(number)

    def prepare(self) -> None:
        """Make all tasks and keep them; those that the time does not suffice for are made when asked for."""
        for number in range(len(self)):
            if requested():
                return
            self._made[number] = self._make(number)


def sizes_of(tasks: Sequence[Task]) -> Index:
    """Return the number of samples of each task."""
    if isinstance(tasks, Tasks):
        return tasks.sizes
    return np.array([len(task.samples) for task in tasks], np.int64)
