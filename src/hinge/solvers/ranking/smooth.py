"""Ranking with a rounded hinge: Newton's method on all pairs at once, none of which is ever listed.

The corner of the hinge is rounded over a width h on both sides. For scores s every pair has its β then (the slope
of its loss), and the problem is solved where the scores of these β are s again: g = Dᵀβ(s) − α = 0, where α are
the coefficients with s = Kα. Newton's step d solves

    (I + L K) d = g,        L = DᵀΛD  over the pairs in the band

by conjugate gradients in the inner product xᵀKy, in which I + LK is symmetric and positive (Chapelle & Keerthi
2010 for squared losses; Kuo, Lee & Lin 2014 for kernels). An iteration takes one product with K and one pass over
the sorted samples. Half of gᵀKg is the duality gap of the rounded problem.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hinge.arrays import Vector
from hinge.dual.ranking import RankingProblem

#: Applies K to coefficients of all samples.
Product = Callable[[Vector], Vector]

# Share of the lengths of its factors that the rounding of a product is smaller than.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Newton:
    """How Newton's method proceeds.

    Attributes
    ----------
    armijo : float
        Share of the decrease that the gradient promises which a step must achieve.
    shortest : float
        Shortest step that is tried.
    forcing : float
        Residual of the conjugate gradients beside that of their start, at most.
    most_products : int
        Products with K of one step.
    """

    armijo: float = 1e-4
    shortest: float = 1e-6
    forcing: float = 0.1
    most_products: int = 300


class Place(NamedTuple):
    """Coefficients of all samples, and the scores that they make."""

    alpha: Vector
    score: Vector


class Slope(NamedTuple):
    """What there is to gain at a place.

    Attributes
    ----------
    feasible : Place
        The coefficients that the scores imply, which are those of a feasible β.
    total : float
        Σβ of these.
    gradient, image : arrays of shape (n_samples,)
        g, the way there, and Kg.
    size : float
        gᵀKg: twice the duality gap of the rounded problem.
    """

    feasible: Place
    total: float
    gradient: Vector
    image: Vector
    size: float


def slope_at(problem: RankingProblem, product: Product, place: Place, width: float) -> Slope:
    """Find out what there is to gain, by one product."""
    wanted, total = problem.implied(place.score, width)
    gradient = wanted - place.alpha
    image = product(gradient)
    size = float(np.dot(gradient, image))
    if size < -_ROUNDING * float(np.linalg.norm(gradient) * np.linalg.norm(image)):
        raise NotPositiveError
    return Slope(Place(wanted, place.score + image), total, gradient, image, max(size, 0.0))


def newton_step(
    problem: RankingProblem, product: Product, place: Place, slope: Slope, width: float, policy: Newton
) -> tuple[Place, int]:
    """Take one step on the rounded problem; return where it leads, and the products that it took.

    The place is the same where no step leads further down.
    """
    _, laplacian = problem.curvature(place.score, width)
    start = slope.gradient, slope.image
    aim = min(policy.forcing, np.sqrt(slope.size))
    direction, moved, n_products = _conjugate(laplacian, product, start, aim, policy.most_products)
    # J(t) = ½ (α + td)ᵀK(α + td) + ℓ(s + tKd), whose slope at 0 is −gᵀKd.
    descent = float(np.dot(slope.gradient, moved))
    quadratic, linear = float(np.dot(direction, moved)), float(np.dot(place.alpha, moved))
    before, t = problem.smooth_loss(place.score, width), 1.0
    while t >= policy.shortest:
        score = place.score + t * moved
        change = t * linear + 0.5 * t**2 * quadratic + problem.smooth_loss(score, width) - before
        if change <= -policy.armijo * t * descent and change < 0:
            return Place(place.alpha + t * direction, score), n_products
        t *= 0.5
    return place, n_products


def _conjugate(
    laplacian: Any, product: Product, start: tuple[Vector, Vector], aim: float, most: int
) -> tuple[Vector, Vector, int]:
    """Solve (I + LK) d = g; return d, Kd and the number of products with K."""
    residual, image = start[0].copy(), start[1].copy()  # r and Kr
    search, its_image = residual.copy(), image.copy()
    solution, moved = np.zeros(len(residual)), np.zeros(len(residual))
    size = first = float(np.dot(residual, image))
    for n_products in range(1, most + 1):
        curved = laplacian(its_image)
        curvature = float(np.dot(search, its_image) + np.dot(its_image, curved))
        if not curvature > 0:
            if curvature < -_ROUNDING * abs(first):
                raise NotPositiveError
            return solution, moved, n_products - 1
        applied, applied_image = search + curved, its_image + product(curved)
        step = size / curvature
        solution += step * search
        moved += step * its_image
        residual -= step * applied
        image -= step * applied_image
        size, last = float(np.dot(residual, image)), size
        if not size > aim**2 * first:
            return solution, moved, n_products
        search = residual + size / last * search
        its_image = image + size / last * its_image
    return solution, moved, most


class NotPositiveError(ValueError):
    """The kernel is not positive semi-definite."""

    def __init__(self, label: str = "given") -> None:
        super().__init__(f"ranking needs a positive semi-definite kernel, and the {label} one is not")
