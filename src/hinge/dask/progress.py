"""Progress of a fit on a cluster: a table that is kept up to date on a terminal, and events for Dask's topics."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from hinge.report import ClusterWork, Report
from hinge.training.pace import Pace, duration
from hinge.training.progress import FitProgress

# Times a second that the table is drawn, and seconds between two events of rounds.
_DRAWN = 4
_EVENT_PERIOD = 0.5


class Rounds:
    """Where all machines of a fit stand together.

    Attributes
    ----------
    latest : FitProgress or None
        The last outer step that was made.
    pace : Pace
        How far the fit is.
    """

    def __init__(self) -> None:
        self.latest: FitProgress | None = None
        self.pace = Pace()
        self.n_machines = 1
        self.n_done = 0
        self._begun = time.monotonic()
        self._steps: dict[int, int] = {}

    @property
    def seconds(self) -> float:
        """Time since the beginning."""
        return time.monotonic() - self._begun

    @property
    def count(self) -> int:
        """Outer steps of all machines."""
        return sum(self._steps.values())

    def begin(self, n_machines: int) -> None:
        """Learn how many machines there are."""
        self.n_machines = self.pace.n_machines = n_machines

    def note(self, progress: FitProgress) -> None:
        """Take an outer step in."""
        self.latest = progress
        self._steps[progress.machine] = progress.outer_steps
        self.pace.note(progress.machine, progress, self.seconds, progress.part)

    def end(self, machine: int, report: Report) -> None:
        """Take the end of a machine in."""
        self._steps[machine] = report.outer_steps
        self.n_done = min(self.n_done + 1, self.n_machines)
        self.pace.end(machine)


class TableListener:
    """Shows where a fit stands on a terminal: rounds, violation, active samples, workers, what was sent.

    Parameters
    ----------
    work : callable
        Returns what was asked of the cluster so far.
    n_samples : int
        Number of all samples.
    console : rich.console.Console, optional
        Where to; by default standard error.
    """

    def __init__(self, work: Callable[[], ClusterWork], n_samples: int, console: Any = None) -> None:
        from rich.console import Console
        from rich.live import Live

        self._work, self._n_samples, self._rounds = work, n_samples, Rounds()
        self._lock = threading.Lock()
        self._live = Live(
            get_renderable=self._table, console=console or Console(stderr=True), refresh_per_second=_DRAWN,
            transient=True,
        )  # fmt: skip
        self._live.start()

    def rows(self) -> list[tuple[str, str]]:
        """Return the lines of the table: a name and figures."""
        work, rounds = self._work(), self._rounds
        with self._lock:
            latest = rounds.latest
            left = duration(rounds.pace.seconds_left())
            lines = [("cluster", f"{work.workers} workers, {work.shards} shards"), ("rounds", str(rounds.count))]
            if rounds.n_machines > 1:
                lines.append(("machines", f"{rounds.n_done} of {rounds.n_machines} done"))
            if latest is not None:
                lines += [
                    ("violation", f"{latest.known:.1e} → {latest.tol:.0e} ({rounds.pace.share:.0%})"),
                    ("active", f"{latest.n_active:,} of {self._n_samples:,} samples"),
                ]
        sent, received = work.bytes_sent / 1e6, work.bytes_received / 1e6
        lines.append(("bytes", f"{sent:.3g} MB sent, {received:.3g} MB received"))
        if work.rebuilt:
            lines.append(("rebuilt", f"{work.rebuilt} shards"))
        lines.append(("time", f"{rounds.seconds:.0f} s" + (f", {left}" if left else "")))
        return lines

    def _table(self) -> Any:
        from rich.table import Table

        table = Table.grid(padding=(0, 2))
        for name, figures in self.rows():
            table.add_row(name, figures)
        return table

    def begin(self, machine: int, n_machines: int) -> None:
        """Learn how many machines there are."""
        with self._lock:
            self._rounds.begin(n_machines)

    def step(self, progress: FitProgress) -> bool:
        """Take a round in; the table is drawn at its own times."""
        with self._lock:
            self._rounds.note(progress)
        return False

    def end(self, machine: int, report: Report) -> bool:
        """Take the end of a machine in."""
        with self._lock:
            self._rounds.end(machine, report)
        return False

    def close(self) -> None:
        """Take the table away."""
        self._live.stop()


class EventListener:
    """Tells the scheduler where a fit stands: events "begin", "round", "end" of machines, and "close".

    Parameters
    ----------
    tell : callable
        Takes the name of an event and its figures.
    work : callable
        Returns what was asked of the cluster so far.
    n_samples : int
        Number of all samples.
    """

    def __init__(self, tell: Callable[..., None], work: Callable[[], ClusterWork], n_samples: int) -> None:
        self._tell, self._work, self._n_samples = tell, work, n_samples
        self._rounds = Rounds()
        self._told = 0.0

    def begin(self, machine: int, n_machines: int) -> None:
        """Tell that a machine's training starts."""
        self._rounds.begin(n_machines)
        self._tell("begin", machine=machine, n_machines=n_machines, n_samples=self._n_samples)

    def step(self, progress: FitProgress) -> bool:
        """Tell of a round, if the last one was told a while ago."""
        self._rounds.note(progress)
        now = time.monotonic()
        if now - self._told >= _EVENT_PERIOD:
            self._told = now
            self._tell(
                "round", machine=progress.machine, n_machines=progress.n_machines, n_done=progress.n_done,
                iterations=progress.iterations, violation=float(progress.known), tol=float(progress.tol),
                objective=float(progress.objective), n_active=int(progress.n_active), **self._figures(),
            )  # fmt: skip
        return False

    def end(self, machine: int, report: Report) -> bool:
        """Tell how a machine's training ended."""
        self._rounds.end(machine, report)
        self._tell(
            "end", machine=machine, n_done=self._rounds.n_done, status=str(report.status),
            violation=float(report.violation), iterations=report.iterations, **self._figures(),
        )  # fmt: skip
        return False

    def _figures(self) -> dict[str, Any]:
        return {"rounds": self._rounds.count, "seconds": self._rounds.seconds, **vars(self._work())}

    def close(self) -> None:
        """Tell that the fit is over."""
        self._tell("close", **self._figures())
