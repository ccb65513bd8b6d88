"""What is drawn: the machine of an estimator or a pipeline, its samples, and what it says of them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hinge import Kernel
from hinge.arrays import Vector

Feature = int | str


@dataclass(frozen=True, eq=False)
class Subject:
    """A fitted estimator and its machine.

    Attributes
    ----------
    estimator : estimator
        What predicts: a machine, or a pipeline that ends with one.
    machine : estimator
        The machine itself.
    """

    estimator: Any
    machine: Any

    @classmethod
    def of(cls, estimator: Any) -> Subject:
        """Find the machine; searches stand for their best estimator."""
        estimator = getattr(estimator, "best_estimator_", estimator)
        machine = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
        if not hasattr(machine, "support_"):
            name = type(machine).__name__
            raise TypeError(f"a picture of margins needs a fitted support vector machine, got {name}")
        return cls(estimator, machine)

    @property
    def is_classifier(self) -> bool:
        """Whether there are classes."""
        return hasattr(self.machine, "classes_")

    @property
    def is_one_class(self) -> bool:
        """Whether it tells inliers from outliers."""
        return hasattr(self.machine, "offset_") and not self.is_classifier

    @property
    def title(self) -> str:
        """Name and parameters, as a person writes them."""
        machine, kernel = self.machine, self.machine.kernel
        shown = [str(kernel) if isinstance(kernel, str) else getattr(kernel, "__name__", "own kernel")]
        for name, sign in (("C", "C"), ("nu", "ν"), ("epsilon", "ε")):
            if isinstance(value := getattr(machine, name, None), int | float) and value:
                shown.append(f"{sign} = {value:g}")
        if "gamma" in Kernel(kernel).uses and (gamma := machine._gamma):
            shown.append(f"γ = {gamma:.3g}")
        return f"{type(machine).__name__}: {', '.join(shown)}"

    def strengths(self, n_samples: int) -> Vector | None:
        """Return α of every training sample, 0 for those that support nothing; None if these are others."""
        trained = getattr(self.machine, "shape_fit_", (n_samples,))[0]
        if trained != n_samples or int(self.machine.support_.max(initial=0)) >= n_samples:
            return None
        coefficients = self.machine.dual_coef_
        sums = np.asarray(abs(coefficients).sum(axis=0)).ravel()
        strengths = np.zeros(n_samples)
        strengths[self.machine.support_] = sums
        return strengths

    def pairs(self, X: Any) -> Vector:
        """Return decisions with one column per machine; pairs of classes positive for the first one."""
        twin = copy.copy(self.machine)
        if getattr(twin, "multi_class", "ovo") == "ovo" and hasattr(twin, "decision_function_shape"):
            twin.decision_function_shape = "ovo"
        if self.machine is not self.estimator:
            X = self.estimator[:-1].transform(X)
        decisions = np.asarray(twin.decision_function(X), dtype=np.float64)
        return decisions.reshape(len(decisions), -1)

    def margins(self, X: Any, y: Any) -> Vector:
        """Return how far each sample is on the right side, in margins: 1 is the margin, below 0 it is wrong.

        Of many classes it is the narrowest of the sample's own pairs; with one machine per class, its own one.
        """
        decisions, classes = self.pairs(X), self.machine.classes_
        codes = codes_of(y, classes)
        if decisions.shape[1] == 1:
            return np.where(codes == 1, decisions[:, 0], -decisions[:, 0])
        rows = np.arange(len(codes))
        if decisions.shape[1] == len(classes) and getattr(self.machine, "multi_class", "ovo") == "ovr":
            return np.asarray(decisions[rows, codes])
        narrowest, column = np.full(len(codes), np.inf), 0
        for first in range(len(classes)):
            for second in range(first + 1, len(classes)):
                for code, sign in ((first, 1.0), (second, -1.0)):
                    mine = codes == code
                    narrowest[mine] = np.minimum(narrowest[mine], sign * decisions[mine, column])
                column += 1
        return narrowest


def codes_of(y: Any, classes: Any) -> NDArray[np.intp]:
    """Return the number of each label among the classes."""
    labels = np.asarray(y)
    codes = np.clip(np.searchsorted(classes, labels), 0, len(classes) - 1)
    if (classes[codes] != labels).any():
        known = ", ".join(map(str, classes[:20]))
        strange = labels[classes[codes] != labels][0]
        raise ValueError(f"y has the label {strange}, which the machine does not know; it knows {known}")
    return np.asarray(codes)


def dense(X: Any) -> Vector:
    """Return samples as an array of numbers."""
    values = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    if values.ndim != 2:
        raise ValueError(f"X must have rows and columns, got {values.ndim} dimension(s)")
    return values


def names_of(estimator: Any, X: Any) -> list[str]:
    """Return the names of the features, or numbers in their place."""
    names = getattr(X, "columns", getattr(estimator, "feature_names_in_", None))
    return [f"feature {k}" for k in range(X.shape[1])] if names is None else [str(name) for name in names]


def column_of(feature: Feature, names: Sequence[str]) -> int:
    """Return the column that a number or a name means."""
    if isinstance(feature, str):
        if feature not in names:
            raise ValueError(f"there is no feature {feature!r}; there are {', '.join(names[:20])}")
        return names.index(feature)
    if not -len(names) <= feature < len(names):
        raise ValueError(f"there is no feature {feature}; X has {len(names)} features")
    return int(feature) % len(names)


def rows_like(X: Any, values: Vector) -> Any:
    """Return new rows in the form of X: a frame with the same columns, or an array."""
    return type(X)(values, columns=X.columns) if hasattr(X, "columns") else values
