"""The points of a grid search, in ``grid.py``'s terms: ranges, the order of points, and which one is the best."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

# The exponents log₂C and log₂γ; None where a parameter is not searched.
Point = tuple[float | None, float | None]

_MOST_VALUES = 10_000

# Beyond this a power of two is zero or infinite.
_MOST_EXPONENT = 1000


def parse_range(text: str) -> list[float] | None:
    """Return the exponents of ``begin,end,step``; None for ``null``; ValueError says what is wrong.

    Examples
    --------
    >>> parse_range("-1,3,2")
    [-1.0, 1.0, 3.0]
    >>> parse_range("null") is None
    True
    """
    if text == "null":
        return None
    words = text.split(",")
    try:
        begin, end, step = map(float, words)
    except ValueError:
        raise ValueError(f"begin,end,step or null, got {text!r}") from None
    if not (math.isfinite(begin) and math.isfinite(end) and math.isfinite(step)) or step == 0:
        raise ValueError(f"three finite numbers and a step that is not 0, got {text!r}")
    if max(abs(begin), abs(end)) > _MOST_EXPONENT:
        raise ValueError(f"exponents between -{_MOST_EXPONENT} and {_MOST_EXPONENT}, got {text!r}")
    return steps(begin, end, step)


def steps(begin: float, end: float, step: float) -> list[float]:
    """Return begin, begin + step, … up to end, added up as ``grid.py`` does; ValueError if there is none.

    Examples
    --------
    >>> steps(3, -15, -2)
    [3, 1, -1, -3, -5, -7, -9, -11, -13, -15]
    """
    values: list[float] = []
    while (begin <= end if step > 0 else begin >= end) and len(values) <= _MOST_VALUES:
        values.append(begin)
        begin += step
    if not values:
        raise ValueError(f"a step that leads from {begin:g} to {end:g}, got {step:g}")
    if len(values) > _MOST_VALUES:
        raise ValueError(f"at most {_MOST_VALUES} values")
    return values


def bisected(values: Sequence[float]) -> list[float]:
    """Return the values middle first, then the middles of the halves in turn: from coarse to fine.

    Examples
    --------
    >>> bisected([1, 2, 3, 4, 5, 6, 7])
    [4, 2, 6, 1, 5, 3, 7]
    """
    if len(values) <= 1:
        return list(values)
    middle = len(values) // 2
    left, right = bisected(values[:middle]), bisected(values[middle + 1 :])
    mixed = [value for pair in zip(left, right, strict=False) for value in pair]
    shorter = min(len(left), len(right))
    return [values[middle], *mixed, *left[shorter:], *right[shorter:]]


def visiting_order(cs: Sequence[float | None], gammas: Sequence[float | None]) -> list[Point]:
    """Return all points in ``grid.py``'s order: the parameter that has had less of its values is next.

    Parameters
    ----------
    cs, gammas : sequences
        The exponents of both parameters, as `bisected` orders them.

    Examples
    --------
    >>> visiting_order([5, 3, 7], [-1, -3])
    [(5, -1), (3, -1), (5, -3), (3, -3), (7, -1), (7, -3)]
    """
    order: list[Point] = []
    i = j = 0
    while i < len(cs) or j < len(gammas):
        if i * len(gammas) < j * len(cs):
            order += [(cs[i], gamma) for gamma in gammas[:j]]
            i += 1
        else:
            order += [(c, gammas[j]) for c in cs[:i]]
            j += 1
    return order


@dataclass
class Rates:
    """The rates found so far.

    ``grid.py`` takes the first point of the best rate in its order, then a smaller C at the same γ. So do we, in
    the order that its points have, whatever the order in which they were computed.

    Parameters
    ----------
    order : sequence of Point
        ``grid.py``'s order.
    smaller_is_better : bool
        Whether rates are errors.

    Examples
    --------
    >>> table = Rates([(1, -1), (1, -3), (3, -1), (3, -3)])
    >>> table.add({(3, -3): 84.0, (1, -3): 84.0, (3, -1): 84.0, (1, -1): 80.0})
    >>> table.best()
    (1, -3)
    """

    order: Sequence[Point]
    smaller_is_better: bool = False
    rates: dict[Point, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._rank = {point: place for place, point in enumerate(self.order)}

    def add(self, rates: Mapping[Point, float]) -> None:
        """Add some rates."""
        self.rates.update(rates)

    def missing(self) -> list[Point]:
        """Points without a rate, in order."""
        return [point for point in self.order if point not in self.rates]

    def best(self) -> Point:
        """Return the best point so far."""
        sign = 1.0 if self.smaller_is_better else -1.0
        top = min(sign * rate for rate in self.rates.values())
        tied: Iterable[Point] = [point for point, rate in self.rates.items() if sign * rate == top]
        first = min(tied, key=lambda point: self._rank.get(point, len(self._rank)))
        return min((point for point in tied if point[1] == first[1]), key=lambda point: point[0] or 0.0)
