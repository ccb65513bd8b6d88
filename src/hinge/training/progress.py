"""Progress of a fit: the watch over it, who listens, and how it is shown. Nothing here goes to standard output."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any, Protocol

from hinge.arrays import Index, Vector
from hinge.report import Report
from hinge.runtime import clock, interrupt
from hinge.settings import Progress
from hinge.training.pace import Pace, duration

logger = logging.getLogger("hinge")

# Seconds between two lines in the log, two updates of a line, two of a bar.
_LOG_PERIOD = 5.0
_UPDATE_PERIOD = 0.5
_BAR_PERIOD = 0.1


@dataclass(frozen=True)
class FitProgress(Progress):
    """Where a fit stands: the progress of one machine, and which of how many it is.

    Attributes
    ----------
    machine : int
        Number of the machine (pair of classes) that took this step.
    n_machines : int
        How many there are.
    n_done : int
        How many have been trained.
    part : float
        Which part of the whole work this machine is, by its number of samples.
    """

    machine: int = 0
    n_machines: int = 1
    n_done: int = 0
    part: float = 1.0


class Listener(Protocol):
    """Somebody who is told how a fit goes, and may ask to stop it by a true answer."""

    def begin(self, machine: int, n_machines: int) -> None:
        """A machine's training starts."""

    def step(self, progress: FitProgress) -> bool:
        """An outer step was made."""

    def end(self, machine: int, report: Report) -> bool:
        """A machine's training ended."""

    def close(self) -> None:
        """The fit is over."""


class Watch:
    """What all machines of one fit have in common: those who listen, and whether one of them wants it to stop.

    Parameters
    ----------
    listeners : sequence of Listener
        Told of every machine and every step of it; each may ask to stop.
    n_machines : int
        How many machines the fit trains in all.

    """

    def __init__(self, listeners: Sequence[Listener] = (), n_machines: int = 1) -> None:
        self.n_machines = n_machines
        self._listeners = tuple(listeners)
        self._lock = threading.Lock()
        self._parts: Vector | None = None
        self._n_done = 0
        self._is_declined = False

    def expect(self, sizes: Index) -> None:
        """Learn how many samples each machine of the fit has."""
        self.n_machines = len(sizes)
        if self._listeners and len(sizes):
            self._parts = sizes / sizes.sum()

    @property
    def is_stopped(self) -> bool:
        """Whether the fit must end: a listener or Ctrl-C asked for it."""
        return self._is_declined or interrupt.pressed()

    @property
    def has_listeners(self) -> bool:
        """Whether anybody listens."""
        return bool(self._listeners)

    def begin(self, machine: int) -> None:
        """Tell the listeners that a machine's training starts."""
        with self._lock:
            for listener in self._listeners:
                listener.begin(machine, self.n_machines)

    def step(self, machine: int, progress: Progress) -> bool:
        """Tell the listeners of an outer step; return whether to stop."""
        with self._lock:
            figures = {field.name: getattr(progress, field.name) for field in fields(progress)}
            part = 1 / self.n_machines if self._parts is None else float(self._parts[machine])
            told = FitProgress(
                **figures, machine=machine, n_machines=self.n_machines, n_done=self._n_done, part=part
            )
            answers = [listener.step(told) for listener in self._listeners]
            self._is_declined = self._is_declined or any(answers)
        return self.is_stopped

    def end(self, machine: int, report: Report) -> None:
        """Tell the listeners how a machine's training ended."""
        with self._lock:
            self._n_done = min(self._n_done + 1, self.n_machines)  # some are trained more than once
            answers = [listener.end(machine, report) for listener in self._listeners]
            self._is_declined = self._is_declined or any(answers)


class CallbackListener:
    """Calls a user's function after each outer step.

    Parameters
    ----------
    function : callable
        Given a `FitProgress`; a true answer stops the fit.
    """

    def __init__(self, function: Callable[[FitProgress], Any]) -> None:
        self._function = function

    def begin(self, machine: int, n_machines: int) -> None:
        """Nothing to do."""

    def step(self, progress: FitProgress) -> bool:
        """Ask the function."""
        return bool(self._function(progress))

    def end(self, machine: int, report: Report) -> bool:
        """Nothing to do."""
        return False

    def close(self) -> None:
        """Nothing to do."""


class LogListener:
    """Writes to the log: a line every few seconds, and one for each machine.

    Parameters
    ----------
    stream : text stream, optional
        Where to write a shorter line at the same times, for people who wait.
    is_updating : bool
        Whether that line replaces the one before, as in notebooks.
    """

    def __init__(self, stream: Any = None, is_updating: bool = False) -> None:
        self._started = self._last = time.monotonic()
        self._stream, self._is_updating = stream, is_updating
        self._pace = Pace()
        self._width = 0

    def begin(self, machine: int, n_machines: int) -> None:
        """Learn how many machines there are."""
        self._pace.n_machines = n_machines

    def step(self, progress: FitProgress) -> bool:
        """Log a line if the last one is old."""
        self._pace.note(progress.machine, progress, time.monotonic() - self._started, progress.part)
        if time.monotonic() - self._last > (_UPDATE_PERIOD if self._is_updating else _LOG_PERIOD):
            self._last = time.monotonic()
            self._tell(progress)
            logger.info(
                "machine %d of %d (%d done): %d steps, violation %.3g, objective %.8g, %d active samples",
                progress.machine + 1, progress.n_machines, progress.n_done, progress.iterations,
                progress.violation, progress.objective, progress.n_active,
            )  # fmt: skip
        return False

    def end(self, machine: int, report: Report) -> bool:
        """Log how it ended."""
        self._pace.end(machine)
        logger.info(
            "machine %d: %s after %d steps and %.2f s, violation %.3g, %d support vectors",
            machine + 1, report.status, report.iterations, report.seconds, report.violation, report.n_support,
        )  # fmt: skip
        return False

    def _tell(self, progress: FitProgress) -> None:
        if self._stream is None:
            return
        elapsed = f"{time.monotonic() - self._started:.0f} s"
        text = f"hinge: {self._pace.share:4.0%} after {elapsed}, {_figures(progress, self._pace)}"
        if self._is_updating:
            text, self._width = "\r" + text.ljust(self._width), len(text)
        with suppress(OSError, ValueError):  # nobody is there to read it
            self._stream.write(text if self._is_updating else text + "\n")
            self._stream.flush()

    def close(self) -> None:
        """End a line that was being updated."""
        if self._width:
            with suppress(OSError, ValueError):
                self._stream.write("\r" + " " * self._width + "\r")
                self._stream.flush()


def _figures(progress: FitProgress, pace: Pace) -> str:
    """Say where a fit stands: what is done, the violation on all samples and its goal, the time that is left."""
    known = f"violation {progress.known:.1e} → {progress.tol:.0e}"
    machines = "" if progress.n_machines == 1 else f"{progress.n_done} of {progress.n_machines} machines"
    parts = (machines, progress.phase, known, duration(pace.seconds_left()))
    return ", ".join(part for part in parts if part)


def _bar(console: Any, *columns: Any) -> Any:
    """Return a bar of these columns and figures, which is not on the terminal yet."""
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import TextColumn

    console = console or Console(stderr=True)
    return Bar(*columns, TextColumn("{task.fields[figures]}"), console=console, transient=True)


class BarListener:
    """Shows a progress bar on a terminal: how much of the way to the tolerance all machines have behind them.

    Parameters
    ----------
    console : rich.console.Console, optional
        Where to; by default standard error.
    """

    def __init__(self, console: Any = None) -> None:
        from rich.progress import BarColumn, TaskProgressColumn, TimeElapsedColumn

        self._bar = _bar(console, BarColumn(bar_width=24), TaskProgressColumn(), TimeElapsedColumn())
        self._task = self._bar.add_task(
            "", total=1.0, figures="compiling" if clock.stands_still() else "beginning"
        )
        self._started, self._shown, self._pace = time.monotonic(), 0.0, Pace()
        self._bar.start()

    def begin(self, machine: int, n_machines: int) -> None:
        """Learn how many machines there are."""
        self._pace.n_machines = n_machines

    def step(self, progress: FitProgress) -> bool:
        """Show the latest figures."""
        now = time.monotonic()
        self._pace.note(progress.machine, progress, now - self._started, progress.part)
        if now - self._shown > _BAR_PERIOD:
            self._shown = now
            self._bar.update(self._task, completed=self._pace.share, figures=_figures(progress, self._pace))
        return False

    def end(self, machine: int, report: Report) -> bool:
        """Move the bar on."""
        self._pace.end(machine)
        self._bar.update(self._task, completed=self._pace.share)
        return False

    def close(self) -> None:
        """Take the bar away."""
        self._bar.stop()


class TaskListener:
    """Passes progress on to scikit-learn's callbacks (1.9): a task a machine, and one a solver round in it.

    Parameters
    ----------
    estimator : estimator
        The estimator being fitted.
    context : sklearn.callback.CallbackContext
        The root of its tasks.
    """

    def __init__(self, estimator: Any, context: Any) -> None:
        self._estimator = estimator
        self._context = context
        self._machines: dict[int, Any] = {}

    def begin(self, machine: int, n_machines: int) -> None:
        """Begin a machine's task."""
        task = self._context.subcontext(task_name="machine", task_id=machine, max_subtasks=None)
        self._machines[machine] = task
        task.call_on_fit_task_begin(estimator=self._estimator)

    def step(self, progress: FitProgress) -> bool:
        """Report a round as a task that has just ended."""
        task = self._machines[progress.machine].subcontext(task_name="round")
        task.call_on_fit_task_begin(estimator=self._estimator)
        return bool(task.call_on_fit_task_end(estimator=self._estimator))

    def end(self, machine: int, report: Report) -> bool:
        """End a machine's task."""
        return bool(self._machines[machine].call_on_fit_task_end(estimator=self._estimator))

    def complete(self) -> None:
        """End the task of the whole fit."""
        self._context.call_on_fit_task_end(estimator=self._estimator)

    def close(self) -> None:
        """Nothing to do."""


def verbose_listener(verbose: bool | int, on_terminal: Callable[[], Listener] = BarListener) -> Listener | None:
    """Return what ``verbose`` asks for: nothing, a bar on a terminal, a line that is updated in notebooks, and
    elsewhere a line every few seconds; the latter two to the log as well."""
    if not verbose:
        return None
    if sys.stderr is not None and sys.stderr.isatty():
        return on_terminal()
    return LogListener(sys.stderr, is_updating="ipykernel" in sys.modules)


class Tally:
    """Shows how many of many are done: by a bar on a terminal, elsewhere by lines in the log.

    Parameters
    ----------
    total : int
        How many there are.
    unit : str
        What is counted.
    verbose : bool
        Whether to show anything.
    """

    def __init__(self, total: int, unit: str, verbose: bool) -> None:
        self._total, self._unit, self._is_shown = total, unit, verbose
        self._done, self._last = 0, time.monotonic()
        self._lock = threading.Lock()
        self._bar: Any = None

    def __enter__(self) -> Tally:
        if self._is_shown and sys.stderr.isatty():
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

            named = TextColumn("{task.description}")
            self._bar = _bar(None, named, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            self._bar.add_task(self._unit, total=self._total, figures="")
            self._bar.start()
        return self

    def advance(self, count: int) -> None:
        """Count this many more as done; from any thread."""
        with self._lock:
            self._done += count
            if self._bar is not None:
                self._bar.update(self._bar.task_ids[0], advance=count)
            elif self._is_shown and time.monotonic() - self._last > _LOG_PERIOD:
                self._last = time.monotonic()
                logger.info("%d of %d %s done", self._done, self._total, self._unit)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
