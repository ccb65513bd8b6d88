"""Linear machines by their weights: the intercept as a feature, and the model that is nothing but weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from hinge.arrays import Vector
from hinge.kernel.kernels import Kernel
from hinge.model import Model
from hinge.runtime import clock
from hinge.training.course import Course, Fit
from hinge.training.data import TrainingData
from hinge.training.machine import Machine, coefficient_rows, combined_report
from hinge.training.trainer import Trainer


@dataclass(frozen=True)
class Threshold:
    """How a linear machine has its intercept.

    Parameters
    ----------
    scaling : float
        Value of the constant feature whose weight is the intercept: the larger, the less the intercept is held
        near zero. 0 for none at all; ``inf`` for an intercept that is free, as those of kernel machines are.

    Examples
    --------
    >>> Threshold(2.0).extend(np.array([[1.0], [3.0]]))
    array([[1., 2.],
           [3., 2.]])
    """

    scaling: float

    @property
    def is_free(self) -> bool:
        """Whether the dual problem keeps a sum for it."""
        return bool(np.isinf(self.scaling))

    @property
    def is_feature(self) -> bool:
        """Whether it is the weight of a feature."""
        return 0 < self.scaling < np.inf

    def extend(self, X: Any) -> Any:
        """Return the samples with the constant feature, where there is one, in their own type."""
        if not self.is_feature:
            return X
        if not sp.issparse(X):
            extended = np.empty((X.shape[0], X.shape[1] + 1), X.dtype)
            extended[:, :-1], extended[:, -1] = X, self.scaling
            return extended
        column = sp.csr_array(np.full((X.shape[0], 1), self.scaling, X.dtype))
        return type(X)(sp.hstack([X, column], format="csr"))

    def divide(self, weights: Vector, dtype: Any) -> tuple[Vector, Vector]:
        """Return the weights of the features, and the intercepts that the last ones make."""
        if not self.is_feature:
            return weights, np.zeros(len(weights))
        return np.ascontiguousarray(weights[:, :-1]), float(np.asarray(self.scaling, dtype)) * weights[:, -1]


def with_feature(data: TrainingData, threshold: Threshold) -> TrainingData:
    """Return the samples as a machine with this intercept sees them."""
    return replace(data, X=threshold.extend(data.X))


def run_linear(course: Course, trainer: Trainer, threshold: Threshold) -> Fit:
    """Train all machines of a linear kernel and keep nothing of them but their weights."""
    begun, compiled_before = clock.now(), clock.compiled_seconds()
    machines = course.machines(trainer)
    weights = np.array([_weights(machine, trainer) for machine in machines])
    n_support = np.count_nonzero(coefficient_rows(machines, trainer.gram.n).any(axis=0))
    report = combined_report(machines, trainer.gram, clock.now() - begun, int(n_support))
    report = replace(report, compile_seconds=clock.compiled_seconds() - compiled_before)
    coefficients, intercepts = threshold.divide(weights, course.formulation.data.X.dtype)
    intercepts = intercepts + [machine.intercept for machine in machines]
    notes = course.formulation.notes(machines, float(trainer.gram.diagonal.max()))
    return Fit(course.formulation, machines, weight_model(coefficients, intercepts), report, notes)


def _weights(machine: Machine, trainer: Trainer) -> Vector:
    if machine.solution.weights is not None:
        return machine.solution.weights
    coefficients = np.zeros(trainer.gram.n)
    coefficients[machine.samples] = machine.coefficients
    return trainer.gram.weights.rounded_once(coefficients)


def weight_model(weights: Vector, intercepts: Vector | Sequence[float]) -> Model:
    """Return the model whose only support vectors are weights, one a machine.

    Examples
    --------
    >>> weight_model(np.array([[2.0, 1.0]]), [0.5]).decide(np.array([[1.0, 1.0]]))
    array([[3.5]])
    """
    n_machines = len(weights)
    return Model(
        Kernel("linear"), weights, np.arange(n_machines), np.eye(n_machines), np.asarray(intercepts, np.float64)
    )
