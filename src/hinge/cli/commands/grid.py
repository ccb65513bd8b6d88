"""``hinge grid``: search C and γ by cross-validation (LIBSVM's ``grid.py``)."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from hinge.cli.data import leave, read_samples
from hinge.cli.grid_cells import Program, SharedSearch, Sought, can_share, run_program, share
from hinge.cli.grid_file import Journal, ResumeError, about_path, check, read_rates
from hinge.cli.grid_points import Point, Rates, bisected, parse_range, steps, visiting_order
from hinge.cli.options import EXIT_OK, EXIT_USAGE, Parsed
from hinge.cli.outputs import as_json, check_output, write_json
from hinge.cli.parameters import Parameters
from hinge.cli.tables import GRID
from hinge.runtime import clock

_ONE_DASH = {f"-{name}": f"--{name}" for name in ("log2c", "log2g", "out", "svmtrain", "gnuplot")} | {
    "-png": "--plot"
}
_NULL = "null"
_LEAST_FOLDS = 2

# Exponents by default: whole numbers, which grid.py prints without a point.
_DEFAULTS = {"log2c": (-5, 15, 2), "log2g": (3, -15, -2)}

# What makes a rate another rate.
_DECISIVE = (
    "type", "kernel", "degree", "coef0", "nu", "epsilon", "loss", "tolerance", "gap-tol", "probability", "folds",
)  # fmt: skip


def run(arguments: Sequence[str]) -> int:
    """Run the command; return its exit code."""
    parsed = GRID.parse(translated(arguments))
    search = Search(parsed, printing=not parsed["json"])
    point, rate = search.run()
    if parsed["json"]:
        print(as_json(search.figures), flush=True)
        return EXIT_OK
    print(" ".join(str(2.0**exponent) for exponent in point if exponent is not None), rate, flush=True)
    return EXIT_OK


def translated(words: Sequence[str]) -> list[str]:
    """Return a command line of ``grid.py`` in our spelling; others stay as they are.

    ``-resume`` may stand without a file: then it means the default output file.

    Examples
    --------
    >>> translated(["-log2c", "-1,1,1", "-resume", "-png", "a.png", "heart"])
    ['--log2c', '-1,1,1', '--resume', 'heart.out', '--plot', 'a.png', 'heart']
    """
    rest, result = list(words), []
    while rest:
        word = rest.pop(0)
        if word in _ONE_DASH:
            result += [_ONE_DASH[word], *rest[:1]]
            del rest[:1]
        elif word in ("-resume", "--resume"):
            has_file = len(rest) > 1 and not rest[0].startswith("-")
            result += ["--resume", rest.pop(0) if has_file else default_name(words[-1], ".out")]
        elif word in ("-c", "-g"):
            _refuse("Use -log2c and -log2g.")
        else:
            result.append(word)
    return result


def default_name(dataset: str, ending: str) -> str:
    """Return the file that ``grid.py`` writes by default, in the current folder."""
    return os.path.basename(dataset if dataset != "-" else "stdin") + ending


class Search:
    """One search.

    Parameters
    ----------
    parsed : Parsed
        The command line.
    printing : bool
        Whether to print the rate of every point.

    Attributes
    ----------
    figures : dict
        All figures of the search, once it is over.
    """

    def __init__(self, parsed: Parsed, printing: bool = True) -> None:
        self.parsed, self.printing = parsed, printing
        self.dataset, self.resume = parsed.files[0], parsed["resume"]
        if parsed["folds"] < _LEAST_FOLDS:
            GRID.fail("n-fold cross validation: n must >= 2")
        ranges = {name: _exponents(parsed, name) for name in ("log2c", "log2g")}
        if all(values is None for values in ranges.values()):
            _refuse("-log2c and -log2g should not be null simultaneously")
        cs, gammas = ([None] if values is None else bisected(values) for values in ranges.values())
        self.is_plane = None not in (ranges["log2c"], ranges["log2g"])
        self.plot_path = self._plot_path()
        for path in (self.out_path, self.plot_path, parsed["report"]):
            check_output(path)
        parameters = Parameters.of(replace(parsed, values={**parsed.values, "cost": 1.0, "gamma": None}))
        self.problem = Sought(parameters, read_samples(self.dataset, parsed), parsed["folds"])
        self._check()
        self.table = Rates(visiting_order(cs, gammas), smaller_is_better=parameters.is_regression)
        self.cells: list[Any] = []
        self.figures: dict[str, Any] = {}

    def _check(self) -> None:
        samples = self.problem.samples
        complaint = self.problem.parameters.complaint(samples.labels())
        if complaint is None and samples.n == 0:
            complaint = f"{self.dataset} holds no samples"
        if complaint is None and self.problem.parameters.svm_type == "ranking":
            complaint = "folds do not keep queries whole, so there is no grid for rankings (-s 6)"
        if complaint is not None:
            leave(f"ERROR: {complaint}")
        if self.problem.n_folds > samples.n:
            print(
                f"WARNING: # folds ({self.problem.n_folds}) > # data ({samples.n}). Will use # folds = # data "
                "instead (i.e., leave-one-out cross validation)",
                file=sys.stderr,
            )
        program = self.parsed["svmtrain"]
        if program is not None and shutil.which(program) is None:
            _refuse("svm-train executable not found")

    def _plot_path(self) -> str | None:
        """Return where to draw: where we are told to, or beside the other files if matplotlib is there."""
        path = self.parsed["plot"]
        if self.parsed["gnuplot"] == _NULL or (path is None and not self.is_plane):
            return None
        if importlib.util.find_spec("matplotlib") is None:
            advice = "no plot without matplotlib: pip install 'hinge-svm[plot]'"
            if path is not None:
                _refuse(advice)
            self._note(advice)
            return None
        if path is not None:
            from hinge.plot.landscape import picture_format

            try:
                picture_format(path)
            except ValueError as error:
                _refuse(str(error))
        return path or default_name(self.dataset, ".png")

    def _note(self, text: str) -> None:
        if not self.parsed["quiet"]:
            print(f"hinge grid: {text}", file=sys.stderr)

    @property
    def out_path(self) -> str | None:
        """The file for rates, if one is wanted."""
        path = self.parsed["out"] or default_name(self.dataset, ".out")
        return None if path == _NULL else path

    def about(self) -> dict[str, Any]:
        """Return what the rates depend on."""
        chosen = {name: self.parsed[name] for name in _DECISIVE}
        weights = [list(pair) for pair in self.problem.parameters.weights]
        return {"data": self.problem.digest(), **chosen, "weights": weights, "svmtrain": self.parsed["svmtrain"]}

    def run(self) -> tuple[Point, float]:
        """Find all rates; return the best point and its rate."""
        started = clock.now()
        try:
            journal = self._open()
        except ResumeError as error:
            return leave(f"hinge grid: {error}")
        except OSError as error:
            return leave(f"can't open output file {self.out_path}: {error.strerror or error}")
        try:
            self._find_all(journal)
        except (ValueError, RuntimeError, ConnectionError, ModuleNotFoundError) as error:
            return leave(f"ERROR: {error}")
        except KeyboardInterrupt:
            if journal is not None:
                self._note(f"{len(self.table.rates)} rates are in {self.out_path}; -resume goes on from there")
            raise
        finally:
            if journal is not None:
                journal.close()
        self._warn_of_limits()
        best = self.table.best()
        self._draw(best)
        self._note_figures(best, clock.now() - started)
        return best, self.table.rates[best]

    def resume_if_same(self) -> None:
        """Go on with the rates of the output file, if it is known to belong to this search."""
        path = self.out_path
        if path is not None and os.path.exists(path) and os.path.exists(about_path(path)):
            with suppress(ResumeError):
                check(path, self.about())
                self.resume = path

    def _open(self) -> Journal | None:
        """Read the rates that are there and open the file for new ones."""
        resume, about = self.resume, self.about()
        known: dict[Point, float] = {}
        if resume is not None:
            if not os.path.exists(resume):
                _refuse("file for resumption not found")
            check(resume, about)
            known = read_rates(resume)
        if self.out_path is None:
            self._take(known)
            return None
        is_same = resume is not None and os.path.exists(self.out_path) and os.path.samefile(resume, self.out_path)
        journal = Journal(self.out_path, about, keep=is_same)
        if not is_same:
            for point, rate in known.items():
                journal.write(point, rate)
        self._take(known)
        return journal

    def _take(self, known: dict[Point, float]) -> None:
        for point, rate in known.items():
            self.table.add({point: rate})
            self._print("resumed", point, rate)

    def _find_all(self, journal: Journal | None) -> None:
        points = self.table.missing()
        if not points:
            return
        program = self._program()
        worker = "local" if self.parsed["cluster"] is None else "cluster"
        n_known = len(self.table.order) - len(points)
        total = len(self.table.order) if self.parsed["strategy"] == "grid" else None
        with _progress(total, n_known, self.parsed["quiet"]) as advance:

            def on_rate(point: Point, rate: float) -> None:
                self.table.add({point: rate})
                if journal is not None:
                    journal.write(point, rate)
                self._print(worker, point, rate)
                advance()

            if program is not None:
                run_program(program, points, self.problem.parameters.threads, on_rate)
            else:
                known = dict(self.table.rates)
                shared = SharedSearch(self.problem, self.table.order, known, self.parsed["cluster"], on_rate)
                self.cells = share(shared, self.parsed["strategy"])

    def _program(self) -> Program | None:
        """Return the program to run for every point, where points cannot share their work."""
        if self.parsed["svmtrain"] is not None:
            self._note(
                f"{self.parsed['svmtrain']} is run for every point; without -svmtrain points share their work"
            )
        elif can_share(self.problem):
            return None
        else:
            self._note(
                "every point is trained by itself: with -b 1, or with classes this rare, nothing can be shared"
            )
        if self.parsed["cluster"] is not None:
            _refuse("a cluster cannot search with -svmtrain, with -b 1 or with classes that folds lack")
        if self.parsed["strategy"] != "grid":
            _refuse("--strategy refine cannot search with -svmtrain, with -b 1 or with classes that folds lack")
        if self.dataset == "-":
            _refuse("a program for every point cannot read standard input: give a file")
        return Program.of(self.parsed)

    def _print(self, worker: str, point: Point, rate: float) -> None:
        if not self.printing:
            return
        best = self.table.best()
        places = " ".join(str(exponent) for exponent in point if exponent is not None)
        values = [f"{name}={2.0**e}, " for name, e in zip(("c", "g"), best, strict=True) if e is not None]
        print(f"[{worker}] {places} {rate} (best {''.join(values)}rate={self.table.rates[best]})", flush=True)

    def _warn_of_limits(self) -> None:
        late = [cell for cell in self.cells if any(r is not None and not r.converged for r in cell.reports)]
        if late:
            report = next(r for r in late[0].reports if r is not None and not r.converged)
            print(
                f"WARNING: {len(late)} of {len(self.cells)} points have folds that did not converge "
                f"({report.status}): {report.message}",
                file=sys.stderr,
            )

    def _draw(self, best: Point) -> None:
        if self.plot_path is None:
            return
        from hinge.plot.landscape import Landscape

        shown = [k for k in (0, 1) if any(point[k] is not None for point in self.table.rates)]
        points = list(self.table.rates)
        is_error = self.table.smaller_is_better
        try:
            Landscape(
                [[2.0 ** (point[k] or 0.0) for k in shown] for point in points], list(self.table.rates.values()),
                names=[("C", "γ")[k] for k in shown],
                title=os.path.basename(self.dataset),
                score_name="cross-validation mean squared error" if is_error else "cross-validation accuracy",
                unit="" if is_error else "%",
                best=points.index(best),
                smaller_is_better=is_error,
            ).write(self.plot_path)  # fmt: skip
        except OSError as error:
            leave(f"can't open output file {self.plot_path}: {error.strerror or error}")

    def _note_figures(self, best: Point, seconds: float) -> None:
        named = [{"log2c": point[0], "log2g": point[1], "rate": rate} for point, rate in self.table.rates.items()]
        self.figures = {
            **self.about(),
            "data_file": self.dataset,
            "n_samples": self.problem.samples.n,
            "seconds": seconds,
            "best": {"log2c": best[0], "log2g": best[1], "rate": self.table.rates[best]},
            "points": named,
            "cells": [cell.as_dict() for cell in self.cells],
        }
        if self.parsed["report"] is not None:
            write_json(self.figures, self.parsed["report"])


def _exponents(parsed: Parsed, name: str) -> list[float] | None:
    if name not in parsed.given:
        return steps(*_DEFAULTS[name])
    try:
        return parse_range(parsed[name])
    except ValueError as error:
        GRID.fail(f"hinge grid: -{name} takes {error}", EXIT_USAGE, usage=False)


def _refuse(message: str) -> None:
    print(message, file=sys.stderr)
    leave('Try "hinge grid --help" for more information.')


@contextmanager
def _progress(total: int | None, done: int, quiet: bool) -> Iterator[Any]:
    """Show a bar with the time that is left, if standard error is a terminal; yield what moves it on."""
    if quiet or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("searching"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
               TextColumn("left:"), TimeRemainingColumn())  # fmt: skip
    # Lines pass through the bar only if both go to the terminal: a file or a pipe gets them as they are.
    bar = Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=sys.stdout.isatty())
    with bar:
        task = bar.add_task("", total=total, completed=done)
        yield lambda: bar.advance(task)
