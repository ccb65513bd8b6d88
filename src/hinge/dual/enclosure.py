"""How far the exact optimum can be from a point: a ball around its weight vector, an interval for each multiplier.

Let β be feasible with w = Σ β_t φ(x_t) and residual r, let β* be optimal, δ = β* − β, and G the duality gap of β
at any multipliers μ (`hinge.dual.optimality.gap_of`). Since b = β*_t is one of the choices in every term of G,

    G  ≥  Σ (r_t − μ) δ_t − ½ Σ ρ_t δ_t²  =  rᵀδ − ½ δᵀRδ,

because δ sums to zero in every group. That β* is optimal means r*ᵀδ ≥ 0, and r − r* = (K + R)δ. Together

    ‖w* − w‖² + ½ Σ ρ_t δ_t²  =  (r − r*)ᵀδ − ½ δᵀRδ  ≤  rᵀδ − ½ δᵀRδ  ≤  G.

So ‖w* − w‖ ≤ √G, for every formulation, every weight and both losses, where K is positive semi-definite. (Strong
convexity of the primal alone gives √2G.) It follows that ⟨w*, φ(x)⟩ is within √(G k(x, x)) of ⟨w, φ(x)⟩.

A multiplier μ* is optimal where the variables that it asks for add up: with f(x) = ⟨w*, φ(x)⟩ every β*_t is the
largest value of its box where v_t − f(x_t) > μ*, the smallest where it is below, and with a ridge
clip((v_t − f(x_t) − μ*) / ρ_t). Their sum falls as μ grows. Where it is beyond the group's sum even for the
smallest v_t − f(x_t) that the ball allows, μ* is larger; and so from above. The interval holds for *every* optimal
multiplier.

Where there is a multiplier all this can be seen from any point m of feature space: the last term of
f(x) = ⟨w*, φ(x) − m⟩ + ⟨w*, m⟩ only shifts μ*. So distances ‖φ(x) − m‖ take the place of lengths √k(x, x), of
training samples and of new ones alike; with m in the middle of the data they are much shorter.

Rounding enters by the bound on the residual's error; and where Σβ misses its sum by η, G grows by |μ* − μ| η. That
is at most (M + R‖w* − w‖) η, for the largest length R and the distance M to the ends of the interval that a
radius of 0 leads to.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum

import numpy as np

from hinge.arrays import Vector
from hinge.dual.problem import DualProblem, shift_for
from hinge.dual.residuals import exact_residual
from hinge.kernel.gram import Gram
from hinge.kernel.rounding import UNIT

# Sums and products of a few terms round by no more than this share.
_SLACK = 16 * UNIT

# Residuals are computed so that their rounding error is far below this, relative to the targets.
_WANTED = 1e-6


@dataclass(frozen=True, eq=False)
class Enclosure:
    """Where the exact optimum of a dual problem is, as seen from a point.

    Attributes
    ----------
    radius : float
        The weight vector of every optimum is no further away than this; ``inf`` where nothing is known.
    lower, upper : arrays of shape (n_groups,)
        Every optimal multiplier of a group is between these.

    Examples
    --------
    >>> from hinge import Gram, Kernel
    >>> from hinge.dual.formulations import c_svc
    >>> gram = Gram(np.array([[0.0], [1.0], [2.0], [3.0]]), Kernel("linear"))
    >>> found = enclose(c_svc([-1, -1, 1, 1], C=10.0), gram, np.array([0.0, -2.0, 2.0, 0.0]))
    >>> found.radius < 1e-6, found.lower.round(5), found.upper.round(5)
    (True, array([-3.]), array([-3.]))
    """

    radius: float
    lower: Vector
    upper: Vector

    @classmethod
    def unknown(cls, n_groups: int) -> Enclosure:
        """Return the enclosure that says nothing."""
        return cls(np.inf, np.full(n_groups, -np.inf), np.full(n_groups, np.inf))


def enclose(problem: DualProblem, gram: Gram, beta: Vector, lengths: Vector | None = None) -> Enclosure:
    """Enclose the exact optimum, whatever rounding did: from β alone.

    Parameters
    ----------
    problem : DualProblem
        The problem.
    gram : Gram
        Kernel values of its samples, of a positive semi-definite kernel.
    beta : array of shape (n_variables,)
        A point inside the box, with the groups' sums up to rounding.
    lengths : array of shape (n_samples,), optional
        ‖φ(x) − m‖ of every sample, of a problem with groups; by default √k(x, x).

    Returns
    -------
    Enclosure
        Ball and intervals.
    """
    beta = problem.check_point(beta)
    if (beta < problem.lo).any() or (beta > problem.hi).any():
        raise ValueError("beta is outside of its box: only a feasible point encloses the optimum")
    scale = max(float(np.abs(problem.v).max(initial=0.0)), 1.0)
    residual, error = exact_residual(problem, gram, beta, np.arange(gram.n), _WANTED * scale)
    lengths = gram.lengths if lengths is None else lengths
    return _enclosure_at(problem, beta, residual.ravel(), np.tile(error, len(residual)), lengths)


def _enclosure_at(
    problem: DualProblem, beta: Vector, residual: Vector, error: Vector, lengths: Vector
) -> Enclosure:
    """As `enclose`, where the residual of every variable is known to within ``error``."""
    lengths = np.tile(lengths, len(beta) // problem.n_samples) * (1 + _SLACK)
    # v − f(x), which is the residual without the ridge's part
    plain = residual if problem.ridge is None else residual + problem.ridge * beta
    error = error * (1 + _SLACK) + _SLACK * (np.abs(plain) + np.abs(residual))
    groups = range(problem.n_groups)
    now = [_interval(problem, g, plain - error, plain + error) for g in groups]
    levels = np.array([_between(*ends) for ends in now])
    gap = _most_gap(problem, beta, residual, error, levels)
    missed = [abs(fsum([*beta[problem.group == g], -problem.sums[g]])) for g in groups]
    apart = [miss * max(high - level, level - low) if miss else 0.0
             for miss, level, (low, high) in zip(missed, levels, now, strict=True)]  # fmt: skip
    # ‖w* − w‖² ≤ a + b‖w* − w‖
    a, b = gap + sum(apart), float(lengths.max(initial=0.0)) * sum(missed)
    if not np.isfinite(a):
        return Enclosure.unknown(problem.n_groups)
    radius = 0.5 * (b + np.sqrt(b * b + 4 * a)) * (1 + _SLACK)
    reach = (error + radius * lengths) * (1 + _SLACK) + _SLACK * np.abs(plain)
    ends = np.array([_interval(problem, g, plain - reach, plain + reach) for g in groups]).reshape(-1, 2)
    return Enclosure(float(radius), ends[:, 0], ends[:, 1])


def _between(low: float, high: float) -> float:
    """A number between two, of which one or both may be infinite."""
    if np.isfinite(low) and np.isfinite(high):
        return 0.5 * (low + high)
    return low if np.isfinite(low) else high if np.isfinite(high) else 0.0


def _most_gap(problem: DualProblem, beta: Vector, residual: Vector, error: Vector, levels: Vector) -> float:
    """Return what `gap_of` is at most, where residuals are known to within ``error``."""
    excess = residual - levels[problem.group] if problem.n_groups else residual
    error = error + _SLACK * np.abs(excess)
    terms = np.zeros(len(beta))
    for drive, room in ((excess + error, problem.hi - beta), (error - excess, beta - problem.lo)):
        room, drive = room * (1 + _SLACK), np.maximum(drive, 0.0)
        moves = (room > 0) & (drive > 0)
        if problem.ridge is None:
            gained = np.where(moves, drive, 0.0) * np.where(moves, room, 0.0)
        else:
            step = np.minimum(drive / problem.ridge, room)
            gained = np.where(
                moves, step * drive * (1 + _SLACK) - 0.5 * problem.ridge * step**2 * (1 - _SLACK), 0.0
            )
        terms = np.maximum(terms, gained)
    return float(terms.sum()) * (1 + _SLACK + len(terms) * UNIT)


def _interval(problem: DualProblem, g: int, below: Vector, above: Vector) -> tuple[float, float]:
    """Return where the multipliers of a group are, of which v − f(x) is between ``below`` and ``above``."""
    mine = np.flatnonzero(problem.group == g)
    lo, hi, target = problem.lo[mine], problem.hi[mine], float(problem.sums[g])
    if problem.ridge is not None:
        pace = 1.0 / problem.ridge[mine]
        low, high = (_ridged(values[mine], lo, hi, pace, target) for values in (below, above))
        slack = _SLACK * len(mine) * (np.abs(below[mine]).max(initial=0.0) + np.abs(above[mine]).max(initial=0.0))
        return low - slack, high + slack
    # Seen from the other side, where signs are the other way round, the upper end is a lower one.
    return _lower_end(below[mine], lo, hi, target), -_lower_end(-above[mine], -hi, -lo, -target)


def _ridged(values: Vector, lo: Vector, hi: Vector, pace: Vector, target: float) -> float:
    counts = hi > lo
    if not counts.any():
        return 0.0
    values, pace = values[counts], pace[counts]
    return shift_for(values * pace, lo[counts], hi[counts], pace, target)


def _lower_end(values: Vector, lo: Vector, hi: Vector, target: float) -> float:
    """Return a number that no optimal multiplier is below, where v − f(x) is at least ``values``.

    Below it even the variables that are sure to be at the top of their box bring the sum beyond the target.
    """
    unbounded = values[np.isposinf(hi)]
    end = float(unbounded.max()) if len(unbounded) else -np.inf  # no variable is infinite at an optimum
    if not np.isfinite(lo).all():
        return end
    order = np.argsort(-values, kind="stable")
    room = (hi - lo)[order]
    doubt = UNIT * (len(values) + 4) * float(np.abs(lo).sum() + room[np.isfinite(room)].sum() + abs(target))
    sums = float(lo.sum()) + np.cumsum(room)
    beyond = np.flatnonzero(sums > target + 2 * doubt)
    return max(end, float(values[order[beyond[0]]])) if len(beyond) else end
