"""How far a fit has come and how long it will take, by the logarithm of the violation on all samples."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

from hinge.settings import Progress

# A rate is told between these shares of the way; before and after, nobody can know.
_FIRST_ESTIMATE, _LAST_ESTIMATE = 0.3, 0.97

# Looks at the clock that are kept.
_KEPT = 400


@dataclass
class Way:
    """The way of one machine to its tolerance.

    Attributes
    ----------
    share : float
        How much of it is behind: the logarithm of the violation, from the largest on all samples to the tolerance.
        It never falls. What a part of the samples has gained counts half until all samples confirm it.
    """

    share: float = 0.0
    _peak: float = 0.0

    def note(self, progress: Progress) -> None:
        """Take in where the machine stands."""
        known, tol = progress.known, progress.tol
        if not (known > 0 and tol > 0 and math.isfinite(known)):
            return
        self._peak = max(self._peak, known)
        whole = math.log(self._peak / tol)
        if whole <= 0:
            return
        here = min(progress.violation, known) if progress.violation > 0 else known
        gained = 0.5 * (math.log(self._peak / known) + math.log(self._peak / max(here, tol)))
        self.share = min(max(self.share, gained / whole), 1.0)


@dataclass
class Pace:
    """The way of all machines of a fit, and its rate.

    Parameters
    ----------
    n_machines : int
        How many there are.
    """

    n_machines: int = 1
    _ways: dict[int, Way] = field(default_factory=dict)
    _n_done: int = 0
    _past: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=_KEPT))

    def note(self, machine: int, progress: Progress, seconds: float) -> None:
        """Take in where a machine stands, so many seconds after the start."""
        self._ways.setdefault(machine, Way()).note(progress)
        if len(self._past) == _KEPT:  # every other look tells as much
            kept = list(self._past)[::2]
            self._past.clear()
            self._past.extend(kept)
        self._past.append((seconds, self.share))

    def end(self, machine: int) -> None:
        """A machine has been trained."""
        self._ways.pop(machine, None)
        self._n_done += 1

    @property
    def share(self) -> float:
        """How much of the whole way is behind; it never falls."""
        total = self._n_done + sum(way.share for way in self._ways.values())
        return min(total / max(self.n_machines, 1), 1.0)

    def seconds_left(self) -> float | None:
        """Return how long the rest takes; None where that cannot be told.

        It can where the rates of the last half and of the last quarter of the time agree within a factor of two.
        Near the end what is left is a check of the answer, which has no rate.
        """
        if not self._past or not _FIRST_ESTIMATE <= self._past[-1][1] <= _LAST_ESTIMATE:
            return None
        half, quarter = self._rate_since(0.5), self._rate_since(0.75)
        if half <= 0 or quarter <= 0 or max(half, quarter) > 2 * min(half, quarter):
            return None
        return 2 * (1 - self._past[-1][1]) / (half + quarter)

    def _rate_since(self, part: float) -> float:
        """Return the share a second since this part of the time."""
        now, share = self._past[-1]
        then, before = next((entry for entry in self._past if entry[0] >= part * now), self._past[-1])
        return (share - before) / (now - then) if now > then else 0.0


def duration(seconds: float | None) -> str:
    """Return seconds as a person says them.

    Examples
    --------
    >>> duration(0.4), duration(75), duration(None)
    ('under a second left', '1:15 left', '')
    """
    if seconds is None:
        return ""
    if seconds < 1:
        return "under a second left"
    whole = round(seconds)
    return f"{whole} s left" if whole < 60 else f"{whole // 60}:{whole % 60:02d} left"
