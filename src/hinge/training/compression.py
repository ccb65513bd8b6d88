"""Compression: the same machines with fewer support vectors, and a bound on what that changes.

A machine without its intercept is a vector of the kernel's space, f = Σ c_s φ(x_s). Of all vectors that some
chosen support vectors span, its projection f' is the nearest, and by Cauchy-Schwarz

    |f(x) − f'(x)|  ≤  ‖f − f'‖ ‖φ(x)‖        for every x, seen in training or not.

Support vectors are chosen one by one: always the one whose direction, as far as it is new, takes most off the sum
of ‖f − f'‖² over all machines. That is orthogonal least squares in the kernel's space, with a Cholesky factor that
grows by a line a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from hinge.arrays import Index, Vector
from hinge.kernel.gram import Gram
from hinge.kernel.rounding import UNIT
from hinge.model import Model
from hinge.runtime.interrupt import check

# A support vector of which less than this share of k(x, x) is new depends on those chosen, but for rounding.
_DEPENDENT = 1e-10


@dataclass(frozen=True)
class Compression:
    """What a compressed machine is beside the one that it was made of.

    Attributes
    ----------
    n_before, n_support : int
        Support vectors of both.
    norms : tuple of float
        For each machine ‖f − f'‖ in the kernel's space at most, rounding of the computation included.
    bound : float
        Largest change of a decision value of any machine at any x whose ‖φ(x)‖ is at most ``reach``: proved.
    reach : float
        Largest ‖φ(x)‖ = √k(x, x) that the bound is about: 1 for rbf, laplacian, chi2, tanimoto and minmax, where
        it holds for every x; else that of samples with a length of at most ``radius``.
    radius : float
        Length of the samples that the bound is about; infinite where it is about all.
    measured : float
        Largest change of a decision value on the training samples, or on the support vectors where those are not
        there any more.
    """

    n_before: int
    n_support: int
    norms: tuple[float, ...]
    bound: float
    reach: float
    radius: float
    measured: float

    def __str__(self) -> str:
        where = "everywhere" if np.isinf(self.radius) else f"for samples of length {self.radius:.6g} and less"
        return (
            f"{self.n_support} of {self.n_before} support vectors; decisions change by {self.bound:.3g} at most "
            f"{where}, by {self.measured:.3g} on the samples looked at"
        )


class _Projection:
    """Some machines over the same support vectors, being projected onto those chosen.

    Parameters
    ----------
    members : int64 array
        Their support vectors.
    coefficients : array of shape (n_machines, n_members)
        Those of the machines.
    values : array of shape (n_machines, n_members)
        f(x) of every support vector.
    diagonal : array of shape (n_members,)
        k(x, x).
    room : int
        Most support vectors that will be chosen.
    """

    def __init__(self, members: Index, coefficients: Vector, values: Vector, diagonal: Vector, room: int) -> None:
        self.members = members
        self._coefficients = coefficients
        self._left = values  # (f − f')(x)
        self._new = diagonal.copy()  # the part of k(x, x) that those chosen do not span
        self._scale = diagonal
        self._factor = np.empty((min(room, len(members)), len(members)))
        self._weights: list[Vector] = []
        self._chosen: list[int] = []

    def gains(self) -> Vector:
        """Return what each support vector would take off Σ ‖f − f'‖²; 0 of those that bring nothing new."""
        is_new = self._new > _DEPENDENT * self._scale
        return np.where(is_new, (self._left**2).sum(axis=0) / np.where(is_new, self._new, 1.0), 0.0)

    def choose(self, place: int, row: Vector) -> None:
        """Add the support vector at ``place`` among the members, whose kernel values with them are ``row``."""
        k = len(self._chosen)
        root = np.sqrt(self._new[place])
        line = (row - self._factor[:k, place] @ self._factor[:k]) / root
        weights = self._left[:, place] / root
        self._factor[k] = line
        self._left -= np.outer(weights, line)
        self._new -= line**2
        self._new[place] = 0.0
        self._chosen.append(place)
        self._weights.append(weights)

    def squares(self) -> Vector:
        """Return ‖f − f'‖² of every machine: f − f' is orthogonal to f'."""
        return np.maximum((self._coefficients * self._left).sum(axis=1), 0.0)

    def projected(self) -> Vector:
        """Return the coefficients of all f'."""
        from scipy.linalg import solve_triangular  # takes long to import, and few need it

        result = np.zeros_like(self._coefficients)
        if self._chosen:
            triangle = self._factor[: len(self._chosen), self._chosen]  # upper: line p at the members chosen
            result[:, self._chosen] = solve_triangular(triangle, np.array(self._weights)).T
        return result


class _Selection:
    """Support vectors chosen for all machines together."""

    def __init__(self, gram: Gram, coefficients: Vector, members: Sequence[Index], room: int) -> None:
        self._gram = gram
        everybody = np.arange(len(coefficients))
        self._rows = [everybody] if len(members) == 1 else [everybody[k : k + 1] for k in range(len(members))]
        self._projections: list[_Projection] = []
        for rows, mine in zip(self._rows, members, strict=True):
            own = coefficients[rows]
            everywhere = np.zeros((len(own), gram.n))
            everywhere[:, mine] = own[:, mine]
            values = np.array([gram.product(row)[mine] for row in everywhere])
            self._projections.append(_Projection(mine, own[:, mine], values, gram.diagonal[mine], room))
        self._place = np.full((len(members), gram.n), -1)
        for place, mine in zip(self._place, members, strict=True):
            place[mine] = np.arange(len(mine))
        self._gains = [projection.gains() for projection in self._projections]
        self.count = 0

    def extend(self, most: int, norm: float) -> None:
        """Choose until that number is reached, or ‖f − f'‖ is small enough, or nothing is left to choose."""
        while self.count < most and self.norm() > norm:
            check()
            total = np.zeros(self._gram.n)
            for projection, gains in zip(self._projections, self._gains, strict=True):
                total[projection.members] += gains
            best = int(np.argmax(total))
            if not total[best] > 0:
                return
            row = self._gram.between(np.array([best]), np.arange(self._gram.n))[0]
            for k, projection in enumerate(self._projections):
                place = int(self._place[k, best])
                if place >= 0 and self._gains[k][place] > 0:
                    projection.choose(place, row[projection.members])
                    self._gains[k] = projection.gains()
            self.count += 1

    def norm(self) -> float:
        """Return the largest ‖f − f'‖ of all machines, but for rounding."""
        return float(np.sqrt(max(float(projection.squares().max()) for projection in self._projections)))

    def coefficients(self) -> Vector:
        """Return the coefficients of all f'."""
        n_machines = sum(len(rows) for rows in self._rows)
        result = np.zeros((n_machines, self._gram.n))
        for rows, projection in zip(self._rows, self._projections, strict=True):
            result[np.ix_(rows, projection.members)] = projection.projected()
        return result


def compress(
    model: Model, gram: Gram, members: Sequence[Index], n_support: int | None, norm: float
) -> tuple[Index, Vector, Vector]:
    """Choose support vectors, and find the coefficients that are best with them.

    Parameters
    ----------
    model : Model
        The model.
    gram : Gram
        Kernel values of its support vectors, in double precision.
    members : sequence of int64 arrays
        The support vectors that each machine may have; one array where all may have all.
    n_support : int, optional
        Most support vectors of the result.
    norm : float
        ‖f − f'‖ of every machine at most; 0 where only their number counts.

    Returns
    -------
    used : int64 array
        The support vectors chosen; all of them where nothing can be left out.
    coefficients : array of shape (n_machines, n_used)
        Theirs.
    norms : array of shape (n_machines,)
        ‖f − f'‖ of every machine at most: proved.
    """
    given = model.coefficients
    coefficients = np.asarray(given.toarray() if sp.issparse(given) else given)
    room = gram.n if n_support is None else min(n_support, gram.n)
    unchanged = np.arange(gram.n), coefficients, np.zeros(len(coefficients))
    if n_support is not None and n_support >= gram.n:
        return unchanged
    selection, aim, before = _Selection(gram, coefficients, members, room), norm, -1
    while True:
        selection.extend(room, aim)
        if selection.count == before:
            return unchanged  # rounding is all that is left, and more than was asked for
        found = selection.coefficients()
        norms = np.array([distance(gram, old - new) for old, new in zip(coefficients, found, strict=True)])
        if n_support is not None or norms.max() <= norm:
            break
        aim, before = 0.5 * aim, selection.count  # the estimate was too good: a smaller one is asked for
    used = np.flatnonzero((found != 0).any(axis=0))
    if n_support is None and len(used) >= gram.n:
        return unchanged
    return used, found[:, used], norms


def distance(gram: Gram, coefficients: Vector) -> float:
    """Return at most how long Σ c φ(x) is, rounding included."""
    products, errors = gram.product(coefficients), gram.rounding(coefficients)
    sizes = np.abs(coefficients)
    square = float(coefficients @ products) + float(sizes @ errors)
    square += 2 * UNIT * len(coefficients) * float(sizes @ np.abs(products))
    return float(np.sqrt(max(square, 0.0))) * (1 + 8 * UNIT)
