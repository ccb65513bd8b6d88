"""A scene: the points on the page and the machine that is asked for, with every number checked.

Whatever arrives from a page is data of a stranger. `Scene.of` takes plain JSON and answers with a sentence where
something is missing, of the wrong kind or too large.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from hinge.arrays import Vector
from hinge.kernel import kernels

MACHINES = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")

# The library's kernels of plain points. Points are never negative on the page, so that all of them apply.
KERNELS = tuple(name for name in kernels.KERNELS if name != "precomputed")

# What keeps a page responsive: a fit of 500 points takes some ten milliseconds.
MOST_POINTS = 500
MOST_CLASSES = 9

# Parameters of a machine: their smallest and largest values on the page.
RANGES = {
    "C": (1e-4, 1e6), "gamma": (1e-4, 1e4), "coef0": (-100.0, 100.0), "nu": (1e-3, 1.0), "epsilon": (0.0, 10.0),
    "tol": (1e-8, 0.1),
}  # fmt: skip
_DEGREES = (1, 10)

# Points live in the unit square; a little beyond it they may have been dragged.
_FURTHEST = 10.0


class SceneError(ValueError):
    """A request that cannot be answered; the message says why."""


@dataclass(frozen=True, eq=False)
class Scene:
    """Points and a machine.

    Attributes
    ----------
    machine : str
        Name of the estimator.
    kernel : str
        Its kernel.
    C, gamma, coef0, nu, epsilon, tol : float
        Its parameters; those that it does not have are ignored.
    degree : int
        Degree of a polynomial kernel.
    points : array of shape (n, 2)
        Where the points are. In regression the second coordinate is the target.
    labels : int array of shape (n,)
        Their classes, from 0.
    """

    machine: str
    kernel: str
    C: float
    gamma: float
    coef0: float
    nu: float
    epsilon: float
    tol: float
    degree: int
    points: Vector
    labels: np.ndarray

    @classmethod
    def of(cls, asked: Any) -> Scene:
        """Make a scene of what a page sent.

        Raises
        ------
        SceneError
            Something is missing, of the wrong kind or out of range.

        Examples
        --------
        >>> asked = {"machine": "SVC", "kernel": "rbf", "C": 1, "gamma": 2, "coef0": 0, "nu": 0.5, "epsilon": 0.1,
        ...          "tol": 1e-3, "degree": 3, "points": [[0.1, 0.2, 0], [0.7, 0.8, 1]]}
        >>> Scene.of(asked).labels
        array([0, 1])
        >>> Scene.of({**asked, "C": -1})
        Traceback (most recent call last):
            ...
        hinge.toy.scene.SceneError: C must be between 0.0001 and 1000000, got -1
        """
        if not isinstance(asked, Mapping):
            raise SceneError("a scene is an object with a machine, its parameters and points")
        unknown = sorted(set(asked) - {f.name for f in fields(cls)})
        if unknown:
            raise SceneError(f"a scene has no {unknown[0]!r}")
        numbers = {name: number(asked, name, *limits) for name, limits in RANGES.items()}
        degree = number(asked, "degree", *_DEGREES)
        if degree != int(degree):
            raise SceneError(f"degree must be a whole number, got {degree:g}")
        points, labels = _points(asked.get("points"))
        machine, kernel = choice(asked, "machine", MACHINES), choice(asked, "kernel", KERNELS)
        return cls(machine=machine, kernel=kernel, **numbers, degree=int(degree), points=points, labels=labels)

    @property
    def is_classifier(self) -> bool:
        """Whether the machine tells classes apart."""
        return self.machine in ("SVC", "NuSVC")

    @property
    def is_regression(self) -> bool:
        """Whether the second coordinate is the target."""
        return self.machine in ("SVR", "NuSVR")

    @property
    def X(self) -> Vector:  # noqa: N802 - the name that data has everywhere
        """The features: both coordinates, or in regression the first."""
        return self.points[:, :1] if self.is_regression else self.points

    @property
    def y(self) -> Any:
        """Labels or targets; None for a machine that needs none."""
        return self.labels if self.is_classifier else self.points[:, 1] if self.is_regression else None

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that the machine has, as its constructor takes them."""
        used = {"SVC": ("C",), "NuSVC": ("nu",), "SVR": ("C", "epsilon"), "NuSVR": ("C", "nu")}.get(
            self.machine, ("nu",)
        )
        used_by_kernel = kernels.kind_of(self.kernel).uses
        return {name: getattr(self, name) for name in ("kernel", *used, *used_by_kernel, "tol")}


def number(asked: Mapping[str, Any], name: str, least: float, most: float) -> float:
    """Return a number of a request, between two others."""
    value = asked.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise SceneError(f"{name} must be a number, got {_shown(value)}")
    if not least <= value <= most:
        raise SceneError(f"{name} must be between {least:.9g} and {most:.9g}, got {value:.9g}")
    return float(value)


def choice(asked: Mapping[str, Any], name: str, known: tuple[str, ...]) -> str:
    """Return one of several words of a request."""
    value = asked.get(name)
    if not isinstance(value, str) or value not in known:
        raise SceneError(f"{name} must be one of {', '.join(known)}, got {_shown(value)}")
    return value


def _points(asked: Any) -> tuple[Vector, np.ndarray]:
    if not isinstance(asked, list):
        raise SceneError("points must be a list of [x, y, class]")
    if len(asked) > MOST_POINTS:
        raise SceneError(f"at most {MOST_POINTS} points, got {len(asked)}")
    rows = np.empty((len(asked), 3))
    for place, point in enumerate(asked):
        if not (isinstance(point, list) and len(point) == 3):
            raise SceneError(f"point {place} must be [x, y, class], got {_shown(point)}")
        entry = dict(zip(("x", "y", "class"), point, strict=True))
        try:
            coordinates = [number(entry, name, -_FURTHEST, _FURTHEST) for name in ("x", "y")]
            rows[place] = *coordinates, number(entry, "class", 0, MOST_CLASSES - 1)
        except SceneError as error:
            raise SceneError(f"point {place}: {error}") from None
    labels = rows[:, 2].astype(np.int64)
    if (labels != rows[:, 2]).any():
        raise SceneError("classes are whole numbers")
    return rows[:, :2].copy(), labels


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
