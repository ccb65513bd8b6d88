"""What a run of the laboratory leaves behind: its solution and the course of its convergence."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hinge.kernel.gram import Gram
from hinge.report import Solution
from hinge.settings import Progress, Settings


@dataclass(frozen=True, eq=False)
class Trace:
    """How a run went on, one entry per point of observation; the last one is the solution.

    Attributes
    ----------
    iterations, kernel_evaluations : int64 arrays
        Work done so far.
    seconds : float64 array
        Time since the start.
    objective, violation : float64 arrays
        Where the run stood; the violation is that among the samples being worked on.
    """

    iterations: NDArray[np.int64]
    kernel_evaluations: NDArray[np.int64]
    seconds: NDArray[np.float64]
    objective: NDArray[np.float64]
    violation: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.seconds)


@dataclass(frozen=True, eq=False)
class Traced:
    """A solution and the trace of how it was found.

    Attributes
    ----------
    solution : Solution
        As from a production solver.
    trace : Trace
        Its history.
    """

    solution: Solution
    trace: Trace


@dataclass
class Recorder:
    """Listens to a run by its callback and writes down every `Progress` with the kernel evaluations so far.

    Parameters
    ----------
    gram : Gram
        Whose evaluations are counted.
    settings : Settings
        Of the run; a callback in them is still called.
    """

    gram: Gram
    settings: Settings
    _entries: list[tuple[int, int, float, float, float]] = field(default_factory=list)

    @property
    def listening(self) -> Settings:
        """The settings with this recorder as callback."""
        return replace(self.settings, callback=self)

    def __call__(self, progress: Progress) -> Any:
        """Note where the run stands and ask the caller's own callback whether to go on."""
        evaluations = self.gram.counts.evaluations
        figures = (progress.seconds, progress.objective, progress.violation)
        self._entries.append((progress.iterations, evaluations, *figures))
        return self.settings.callback(progress) if self.settings.callback is not None else False

    def trace(self, solution: Solution) -> Trace:
        """Return what was noted, with the solution as its last entry."""
        report = solution.report
        last = (
            report.iterations,
            report.kernel_evaluations,
            report.seconds,
            report.objective,
            report.violation,
        )
        iterations, evaluations, seconds, objective, violation = zip(*self._entries, last, strict=True)
        return Trace(
            np.array(iterations, np.int64),
            np.array(evaluations, np.int64),
            np.array(seconds, np.float64),
            np.array(objective, np.float64),
            np.array(violation, np.float64),
        )
