"""``hinge lab``: the algorithms of the papers, raced on a data set and on the papers' own experiments."""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.box import SIMPLE
from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from hinge import lab
from hinge.cli.data import leave
from hinge.cli.options import EXIT_FAILURE, EXIT_OK, EXIT_USAGE, Command, Parsed, suggestion
from hinge.cli.outputs import check_folder
from hinge.cli.tables import LAB, LAB_ANIMATE, LAB_LIST, LAB_RACE, LAB_REPRODUCE
from hinge.io import DataFileError, datasets, read_data
from hinge.kernel.kernels import KERNELS, Kernel, kind_of
from hinge.lab import animation, figures
from hinge.lab.experiments.cells import Cell, Outcome
from hinge.lab.experiments.ledger import Terms
from hinge.lab.experiments.reproduce import PAPERS, planned, reproduce
from hinge.lab.experiments.scales import FULL, QUICK
from hinge.lab.race import Race, Track, race
from hinge.report import Report
from hinge.settings import Progress as Standing
from hinge.settings import Settings

_KERNELS = tuple(name for name in KERNELS if kind_of(name).has_features)
_REFRESH_SECONDS = 0.1
_WIDTH = 110  # of the table of results, where no terminal tells its own


def run(arguments: Sequence[str]) -> int:
    """Run the command; return its exit code."""
    action, *rest = arguments or [""]
    if action not in _ACTIONS:
        LAB.parse([action] if action else [])
        said = f"expected {_NAMED}, got {action!r}{suggestion(action, _ACTIONS)}"
        LAB.fail(f"hinge lab: {said}", EXIT_USAGE)
    command, act = _ACTIONS[action]
    return act(command.parse(rest))


def _refuse(message: str) -> Any:
    LAB.fail(f"hinge lab: {message}", EXIT_USAGE, usage=False)


def _need_matplotlib() -> None:
    if importlib.util.find_spec("matplotlib") is None:
        leave("hinge lab: figures need matplotlib: pip install 'hinge-svm[lab]'")


def _list(parsed: Parsed) -> int:
    for algorithm in lab.ALGORITHMS.values():
        print(f"{algorithm.name}\n    {algorithm.title}\n    {algorithm.reference}; solves {algorithm.covers}")
    return EXIT_OK


# ---------------------------------------------------------------------- race


def _race(parsed: Parsed) -> int:
    (data,) = parsed.files
    names = [name for name in parsed["solvers"].split(",") if name]
    if parsed["out"] is not None:
        if not parsed["out"].endswith(".png"):
            _refuse(f"race draws a PNG file: --out must end in .png, got {parsed['out']!r}")
        _need_matplotlib()
        check_folder(os.path.dirname(parsed["out"]) or ".")
    X, y, kernel = _problem(data, parsed)
    cache = None if parsed["cache"] is None else int(parsed["cache"] * 2**20)
    track = Track(X, y, kernel, parsed["c"], cache, parsed["threads"])
    console = Console() if sys.stdout.isatty() else Console(width=_WIDTH)
    board = _Board(names)
    try:
        settings = Settings(tol=parsed["tolerance"], shrinking=not parsed["no-shrinking"],
                            time_limit=parsed["time-limit"])  # fmt: skip
        with Live(board.table(), console=console, refresh_per_second=4, transient=True) as live:
            board.show = live.update
            result = race(track, names, settings, on_progress=board.note)
    except ValueError as error:
        _refuse(str(error))
    console.print(_result_table(result))
    if parsed["out"] is not None:
        path = Path(parsed["out"])
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            figures.draw_race(result, path)
        except (ImportError, OSError, ValueError) as error:
            leave(f"hinge lab: {error}")
        console.print(f"objective gap against time, iterations and kernel evaluations: {path}", soft_wrap=True)
    converged = all(solution.report.converged for solution in result.runs.values())
    return EXIT_OK if converged else EXIT_FAILURE


def _problem(data: str, parsed: Parsed) -> tuple[Any, Any, Kernel]:
    """Read the data; the kernel's γ may depend on its features."""
    if parsed["kernel"] not in _KERNELS:
        _refuse(f"--kernel takes one of {', '.join(_KERNELS)}, got {parsed['kernel']!r}")
    X, y = _load(data)
    return X, y, Kernel(parsed["kernel"], gamma=parsed["gamma"] or 1 / X.shape[1])


def _load(data: str) -> tuple[Any, Any]:
    """Read a file, or a data set that is known by name; the smaller of two labels becomes -1."""
    try:
        X, y = read_data(data) if os.path.exists(data) else datasets.load(data)
    except (DataFileError, datasets.DataSetNotFound, OSError, ValueError) as error:
        leave(f"hinge lab: {error}")
    classes = np.unique(y)
    if len(classes) != 2:
        leave(
            f"hinge lab: a race needs two classes, {data} has {len(classes)}; draw two of them into a file first"
        )
    return X, np.where(y == classes[1], 1.0, -1.0)


class _Board:
    """The live table of a race."""

    def __init__(self, names: Sequence[str]) -> None:
        self.standing: dict[str, Standing | None] = dict.fromkeys(names)
        self.show: Callable[[RenderableType], None] = lambda table: None
        self._last = 0.0

    def note(self, name: str, progress: Standing) -> None:
        """Take in where a run stands; draw a few times a second."""
        self.standing[name] = progress
        if time.perf_counter() - self._last > _REFRESH_SECONDS:
            self._last = time.perf_counter()
            self.show(self.table())

    def table(self) -> Table:
        table = Table("algorithm", "seconds", "iterations", "objective", "violation", title="under way")
        for name, progress in self.standing.items():
            if progress is None:
                table.add_row(name, "…", "", "", "")
            else:
                work = (f"{progress.seconds:.2f}", f"{progress.iterations:,}")
                table.add_row(name, *work, f"{progress.objective:.6g}", f"{progress.violation:.2e}")
        return table


def _result_table(result: Race) -> Table:
    table = Table(title=str(result.track), box=SIMPLE)
    numbers = ("seconds", "iterations", "kernel values", "objective", "gap", "SV, bounded")
    for column in ("algorithm", "status", *numbers):
        table.add_column(column, justify="right" if column in numbers else "left", no_wrap=True)
    for name, solution in result.runs.items():
        table.add_row(*_result_row(name, solution.report, float(result.gap(name)[-1])))
    return table


def _result_row(name: str, report: Report, gap: float) -> list[str]:
    return [
        name, str(report.status), f"{report.seconds:.3f}", f"{report.iterations:,}",
        f"{report.kernel_evaluations:.3g}", f"{report.objective:.4f}", f"{gap:.1e}",
        f"{report.n_support}, {report.n_bounded}",
    ]  # fmt: skip


# ---------------------------------------------------------------------- animate


def _animate(parsed: Parsed) -> int:
    (data,) = parsed.files
    _need_matplotlib()
    path, stills = Path(parsed["out"]), parsed["stills"]
    for folder in (str(path.parent), *([stills] if stills else [])):
        check_folder(folder)
    X, y, kernel = _problem(data, parsed)
    try:
        settings = Settings(tol=parsed["tolerance"])
        film = animation.record(X, y, kernel, parsed["c"], parsed["solver"], settings)
        animation.draw(film, path, parsed["frames"], Path(stills) if stills else None)
    except ValueError as error:
        _refuse(str(error))
    except OSError as error:
        leave(f"hinge lab: {error}")
    print(f"{len(film.trace) - 1:,} steps: {path}")
    return EXIT_OK


# ---------------------------------------------------------------------- reproduce


def _reproduce(parsed: Parsed) -> int:
    (paper,) = parsed.files
    if paper not in (*PAPERS, "all"):
        _refuse(f"expected {', '.join(PAPERS)} or all, got {paper!r}")
    _need_matplotlib()
    papers = PAPERS if paper == "all" else (paper,)
    scale = QUICK if parsed["quick"] else FULL
    budget, again = parsed["budget"], parsed["again"] or ""
    if again and again not in {cell.name for cell in planned(papers, scale)}:
        _refuse(f"no run of these experiments is called {again!r}; the names stand in cells.jsonl")
    terms = Terms(scale.budget if budget is None else 60 * budget, again)
    out = Path(parsed["out"] or f"lab-{paper}-{scale.name}")
    check_folder(str(out))
    console = Console()
    bar = Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
                   console=console)  # fmt: skip
    try:
        with bar:
            task = bar.add_task("", total=len(planned(papers, scale)))

            def on_cell(cell: Cell, outcome: Outcome) -> None:
                bar.update(task, advance=1, description=f"{cell.data} {cell.kernel} {cell.algorithm}")

            path = reproduce(papers, scale, out, on_cell, terms)
    except (ImportError, OSError) as error:
        leave(f"hinge lab: {error}")
    except KeyboardInterrupt:
        print(f"hinge lab: what is done is in {out}; the same command goes on from there", file=sys.stderr)
        raise
    console.print(f"report: {path}", soft_wrap=True)
    return EXIT_OK


_ACTIONS: dict[str, tuple[Command, Callable[[Parsed], int]]] = {
    "list": (LAB_LIST, _list), "race": (LAB_RACE, _race), "animate": (LAB_ANIMATE, _animate),
    "reproduce": (LAB_REPRODUCE, _reproduce),
}  # fmt: skip
_NAMED = "list, race, animate or reproduce"
