"""How far a fit has come and how long it will take, by the logarithm of the violation on all samples."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from hinge.settings import Progress


@dataclass(frozen=True)
class Caution:
    """When the time left is told, and how it is found.

    Attributes
    ----------
    window : float
        Share of the time so far, the latest, that a line is laid through.
    steady : float
        Share of the time so far for which the finish must have been foretold alike.
    alike : float
        Finishes that count as alike differ by no more than this factor in the time that is left.
    most_left : float
        Share of the way that may be ahead at most.
    clear : float
        How many times what it leaves unexplained the line must explain.
    checks : float
        What comes after the tolerance is met, as a share of the time left: checks, and samples that object.
    few : int
        Up to this many machines are looked at one by one; of more, the rate of all tells how long the rest takes.
        A line needs as many looks.
    kept : int
        Looks that are kept.
    later : float
        How much later, as a factor, the next finish is foretold.
    """

    window: float = 0.5
    steady: float = 0.1
    alike: float = 1.5
    most_left: float = 0.5
    clear: float = 3.0
    checks: float = 0.35
    few: int = 8
    kept: int = 400
    later: float = 1.005


_USUAL = Caution()


@dataclass
class Way:
    """The way of one machine to its tolerance.

    Attributes
    ----------
    part : float
        Which part of the whole work it is.
    share : float
        How much of it is behind: the logarithm of the violation, from the largest on all samples to the tolerance.
        It never falls. What a part of the samples has gained counts half until all samples confirm it.
    left : float
        How much of it is ahead, by the violation of the samples at hand alone; it may rise again.
    """

    part: float = 1.0
    share: float = 0.0
    left: float = 1.0
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
        here = progress.violation if progress.violation > 0 else known
        self.left = math.log(max(here, tol) / tol) / whole
        gained = 0.5 * (math.log(self._peak / known) + math.log(self._peak / max(min(here, known), tol)))
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
    _part_done: float = 0.0
    _past: list[tuple[float, float]] = field(default_factory=list)
    _finishes: list[tuple[float, float | None]] = field(default_factory=list)

    def note(self, machine: int, progress: Progress, seconds: float, part: float | None = None) -> None:
        """Take in where a machine stands, this many seconds after the start.

        Parameters
        ----------
        machine : int
            Its number.
        progress : Progress
            Where it stands.
        seconds : float
            Time since the start.
        part : float, optional
            Which part of the whole work it is; by default all machines are alike.
        """
        if machine not in self._ways:
            self._ways[machine] = Way(1 / self.n_machines if part is None else part)
            if self.n_machines <= _USUAL.few:  # those before say little about this one
                self._past, self._finishes = [], []
        self._ways[machine].note(progress)
        self._past.append((seconds, self._left()))
        if not self._finishes or seconds >= _USUAL.later * self._finishes[-1][0]:
            self._forget(seconds)
            self._finishes.append((seconds, self._finish(seconds)))

    def end(self, machine: int) -> None:
        """A machine has been trained."""
        way = self._ways.pop(machine, None)
        self._part_done += 1 / self.n_machines if way is None else way.part
        self._n_done += 1

    @property
    def share(self) -> float:
        """How much of the whole way is behind; it never falls."""
        total = self._n_done + sum(way.share for way in self._ways.values())
        return min(total / max(self.n_machines, 1), 1.0)

    def seconds_left(self) -> float | None:
        """Return how long the rest takes; None where that cannot be told.

        It can where at least half of the way is behind, on a steady line, and where what was foretold lately
        agrees with what is foretold now. Runs whose violation jumps, or falls all at once in the end, get no
        estimate.
        """
        if not self._finishes:
            return None
        now, finish = self._finishes[-1]
        lately = [foretold for then, foretold in self._finishes if then >= (1 - _USUAL.steady) * now]
        if finish is None or any(foretold is None for foretold in lately):
            return None
        left = finish - now
        is_steady = all(
            left / _USUAL.alike <= foretold - now <= left * _USUAL.alike for foretold in lately if foretold
        )
        return left if is_steady else None

    def _left(self) -> float:
        """Return how much of the work is ahead."""
        begun = self._part_done + sum(way.part for way in self._ways.values())
        return max(1 - begun, 0.0) + sum(way.part * way.left for way in self._ways.values())

    def _forget(self, now: float) -> None:
        """Drop what is too old to matter, and of many looks every other."""
        self._past = [entry for entry in self._past if entry[0] >= (1 - _USUAL.window) * now]
        if len(self._past) > _USUAL.kept:
            self._past = self._past[::2]
        self._finishes = [entry for entry in self._finishes if entry[0] >= (1 - 2 * _USUAL.steady) * now]

    def _finish(self, now: float) -> float | None:
        """Return when the line through the latest looks meets the tolerance; None if unclear."""
        if len(self._past) < _USUAL.few:
            return None
        times = np.array([time for time, _ in self._past])
        left = np.array([left for _, left in self._past])
        # Looks count by the time since the one before, as far as fewer looks than a line needs would have it.
        weights = np.minimum(np.diff(times, prepend=times[0]), _USUAL.window * now / _USUAL.few)
        if weights.sum() <= 0:
            return None
        weights /= weights.sum()
        middle, mean = float(weights @ times), float(weights @ left)
        times, left = times - middle, left - mean
        slope = float(weights @ (times * left)) / max(float(weights @ times**2), np.finfo(float).tiny)
        if slope >= 0:
            return None
        noise = math.sqrt(float(weights @ (left - slope * times) ** 2))
        here = max(mean + slope * (now - middle), 0.0)
        if -slope * _USUAL.window * now < _USUAL.clear * noise or here > _USUAL.most_left:
            return None
        return now + (1 + _USUAL.checks) * here / -slope


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
