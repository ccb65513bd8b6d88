"""The ledger: one line of JSON for every cell that ran, so that nothing runs twice and figures have an origin.

A line has the cell, its outcome, and date, computer, versions, commit and command. Where a cell has several lines
the last one counts.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from math import inf
from pathlib import Path

from hinge._version import __version__
from hinge.lab.experiments.cells import Cell, Origin, Outcome, Outcomes, run_cell

NAME = "cells.jsonl"

_PACKAGES = ("numpy", "scipy", "numba")

#: What is not kept, because another call may find it otherwise.
_PASSING = ("pending", "unbudgeted", "skipped")


@dataclass(frozen=True)
class Terms:
    """What a call may do.

    Attributes
    ----------
    budget : float
        Seconds of processor time for all its cells together, their preparation and compilation included. No cell
        starts after that, and one under way ends.
    again : str
        Name of a cell that runs although the ledger has it.
    """

    budget: float = inf
    again: str = ""


def run_cells(
    cells: Iterable[Cell],
    folder: Path,
    on_cell: Callable[[Cell, Outcome], None] = lambda cell, outcome: None,
    terms: Terms | None = None,
) -> Outcomes:
    """Run cells in turn and keep each outcome in the ledger; those that are there already are not run again.

    After Ctrl-C no further cell is run; those that are missing then are pending.

    Parameters
    ----------
    cells : iterable of Cell
        What to run.
    folder : Path
        Where the ledger is.
    on_cell : callable, optional
        Called after each cell.
    terms : Terms, optional
        Budget, and what to run again.

    Returns
    -------
    dict
        Outcome of every cell.
    """
    terms, started = terms or Terms(), time.process_time()
    folder.mkdir(parents=True, exist_ok=True)
    known, outcomes = read(folder), Outcomes()
    exhausted: set[tuple[str, str]] = set()
    absent: set[str] = set()  # looked for once: a download that fails may take a minute
    interrupted = False
    for cell in cells:
        outcome = None if cell.name == terms.again else _usable(known.get(cell.name), cell)
        left = terms.budget - (time.process_time() - started)
        if outcome is None and (cell.family, cell.algorithm) in exhausted:
            outcome = Outcome("skipped", cell.limit)
        elif outcome is None and cell.data in absent:
            outcome = Outcome("missing", cell.limit)
        elif outcome is None and interrupted:
            outcome = Outcome("pending", cell.limit)
        elif outcome is None and left <= 0:
            outcome = known[cell.name] if cell.name in known else Outcome("unbudgeted", cell.limit)
        elif outcome is None:
            try:
                outcome = _within(cell, left)
            except KeyboardInterrupt:
                interrupted, outcome = True, Outcome("pending", cell.limit)
            if outcome.status not in _PASSING:
                outcome = replace(outcome, origin=_origin(cell))
                _keep(cell, outcome, folder)
        if outcome.status == "missing":
            absent.add(cell.data)
        if cell.family and outcome.ran_out:
            exhausted.add((cell.family, cell.algorithm))
        outcomes[cell] = outcome
        on_cell(cell, outcome)
    return outcomes


def read(folder: Path) -> dict[str, Outcome]:
    """Return the outcomes of a ledger by the names of their cells; a line that a crash cut short is passed over.

    Examples
    --------
    >>> import tempfile
    >>> read(Path(tempfile.mkdtemp()))
    {}
    """
    path, known = folder / NAME, {}
    for line in path.read_text().splitlines() if path.is_file() else ():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        known[entry["name"]] = Outcome(**entry["outcome"], origin=Origin(**entry["origin"]))
    return known


def _within(cell: Cell, left: float) -> Outcome:
    """Run a cell for no longer than there is budget left; what that cuts short is not run."""
    outcome = run_cell(replace(cell, limit=min(cell.limit, left)))
    return Outcome("unbudgeted", cell.limit) if outcome.ran_out and left < cell.limit else outcome


def _usable(outcome: Outcome | None, cell: Cell) -> Outcome | None:
    """An outcome that an earlier run left, unless the data may be there today, or the limit is higher."""
    if outcome is None or outcome.status == "missing" or (outcome.ran_out and outcome.limit < cell.limit):
        return None
    return outcome


def _keep(cell: Cell, outcome: Outcome, folder: Path) -> None:
    figures = asdict(outcome)
    entry = {"name": cell.name, "cell": asdict(cell), "outcome": figures, "origin": figures.pop("origin")}
    with open(folder / NAME, "a+b") as file:
        file.seek(max(file.seek(0, os.SEEK_END) - 1, 0))
        torn = file.read(1) not in (b"", b"\n")  # a crash cut the last line short
        file.write(("\n" * torn + json.dumps(entry) + "\n").encode())


# ---------------------------------------------------------------------- where figures come from


def _origin(cell: Cell) -> Origin:
    return Origin(
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        computer=_computer(),
        versions=_versions(),
        commit=_commit(),
        command=f"hinge lab reproduce all --again {cell.name}",
    )


@cache
def _computer() -> str:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{_processor()}, {cores} cores, {platform.system()} {platform.machine()}"


@cache
def _versions() -> str:
    libraries = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    return f"hinge {__version__}, {libraries}, Python {platform.python_version()}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


@cache
def _commit() -> str:
    """The commit of the checkout that this library runs from, and whether it was changed since; else nothing."""
    folder = Path(__file__).parent
    try:
        asked = [["git", "rev-parse", "--short=12", "HEAD"], ["git", "status", "--porcelain", "--", "src"]]
        top = _said(["git", "rev-parse", "--show-toplevel"], folder)
        if not Path(top, "src", "hinge").is_dir():
            return ""
        commit, changes = (_said(words, Path(top)) for words in asked)
    except (OSError, subprocess.SubprocessError):
        return ""
    return f"{commit}, changed" if changes else commit


def _said(words: list[str], folder: Path) -> str:
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
