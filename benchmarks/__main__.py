"""The command line: ``python -m benchmarks``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from benchmarks import (
    cases,
    cluster,
    contenders,
    everyday,
    grid,
    history,
    many,
    prices,
    reader,
    report,
    small,
    startup,
    torchkm,
)
from benchmarks.cases import CASES
from benchmarks.contenders import HINGE, HINGE_INPUTS, LINEAR_PEERS, PEERS, Contender
from benchmarks.render import RENDER
from benchmarks.run import Bench, Options, read_records

HERE = Path(__file__).resolve().parent

SECTIONS = {
    "table": ("the seven cases of the main table", cases.TABLE, PEERS),
    "scale": ("MNIST with 60,000 rows; covtype with 50,000, and all 581,012 with Hinge alone", cases.SCALE, PEERS),
    "more": ("skin, cadata (regression), reuters with an RBF kernel", cases.MORE, PEERS),
    "multiclass": ("letter, usps, shuttle, news20: every pair's machine is verified", cases.MULTICLASS, PEERS),
    "small": (
        "fits of 20 to 500 samples, many classes, single predictions: turns within one process",
        small.CASES,
        [],
    ),
    "everyday": (
        "every set of at most 20,000 rows at three settings: turns within one process",
        everyday.CASES,
        [],
    ),
    "many": ("a searchlight of 5,000 neighbourhoods, against joblib and scikit-learn", many.CASES, []),
    "linear": ("linear kernels, LIBLINEAR among the contenders", cases.LINEAR, LINEAR_PEERS),
    "sweep": ("C from 2^-5 to 2^15 and gamma from 2^-15 to 2^3 on a small set", cases.SWEEP, PEERS),
    "intel": ("Intel's list of SVM cases, DC-SVM's covtype, DPSVM's MNIST", cases.INTEL, PEERS),
    "growth": (
        "covtype, a9a and MNIST on more and more rows: exponents",
        tuple(name for of in cases.GROWTH.values() for name in of),
        [HINGE],
    ),
    "torchkm": ("TorchKM's table 2: 50 values of C by ten folds on Gaussian clusters", torchkm.CASES, []),
    "cluster": (
        "one and two workers against local fits, what rounds cost, and larger clusters on paper",
        cluster.CASES[:3],
        [],
    ),
    "grid": ("LIBSVM's 110-point grid by five folds, against GridSearchCV", grid.GRIDS, []),
    "inputs": ("the same data as float64, float32, dense and CSR", cases.INPUTS, HINGE_INPUTS),
    "predict": ("prediction: a9a.t, and the test images of ten-class MNIST", cases.PREDICT, PEERS),
    "memory": ("peak memory of a fit at several cache budgets", cases.MEMORY, [HINGE]),
    "startup": ("import and first fits, with nothing compiled and with everything on disk", (), []),
    "reader": ("reading covtype and MNIST as LIBSVM text", reader.FILES, []),
}  # type: dict[str, tuple[str, tuple[str, ...], list[Contender]]]

_TIMEOUTS = {"sweep": 20.0, "scale": 900.0, "predict": 1800.0, "intel": 900.0, "growth": 1800.0}
_LONG_RUN = 6 * 3600.0
_BUDGETS_MB = (100.0, 500.0, 2000.0)

_DESCRIPTION = """\
Fit public data sets with Hinge and its peers, each in fresh processes that take turns, and verify every answer
in double precision. Data sets are found by hinge.io.datasets (in $HINGE_DATA, for one); a set that is not there is
skipped. Results are kept as lines of JSON; `report` writes RESULTS.md from them, with the remarks made on them.
"""


def parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    top = argparse.ArgumentParser(
        prog="python -m benchmarks", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="command")
    for name, (help_text, _, _) in SECTIONS.items():
        _add_options(commands.add_parser(name, help=help_text, description=help_text))
    _add_options(commands.add_parser("all", help="all of these, then the report"))
    remark = commands.add_parser("remark", help="add a sentence on a case's results, until that case is run again")
    remark.add_argument("section", choices=list(SECTIONS))
    remark.add_argument("case")
    remark.add_argument("text")
    remark.add_argument("--out", type=Path, default=HERE / "results", help="folder of the results")
    past = commands.add_parser("history", help="show and plot what earlier runs measured (history.jsonl)")
    past.add_argument("--file", type=Path, default=history.FILE, help="lines of JSON")
    past.add_argument("--plot", type=Path, default=HERE / "results" / "history.png", help="picture to draw")
    commands.add_parser("prices", help="measure what operations cost, beside the library's list of prices")
    rendering = commands.add_parser("report", help="write RESULTS.md from the results")
    rendering.add_argument("--out", type=Path, default=HERE / "results", help="folder of the results")
    rendering.add_argument("--to", type=Path, default=HERE / "RESULTS.md", help="file to write")
    return top


def _add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--out", type=Path, default=HERE / "results", help="folder for the results")
    command.add_argument("--history", type=Path, default=history.FILE, help="file that gets one line per section")
    command.add_argument("--cases", nargs="+", metavar="CASE", help=f"some of: {', '.join(CASES)}")
    command.add_argument(
        "--contenders", nargs="+", metavar="NAME", help=f"some of: {', '.join(contenders.CONTENDERS)}"
    )
    command.add_argument("--repeats", type=int, default=3, help="turns of every contender (default 3)")
    command.add_argument(
        "--timeout", type=float, help="seconds that a fit may take (default 300; sweep 20 a point)"
    )
    command.add_argument("--once-above", type=float, default=60.0, metavar="SECONDS",
                         help="a contender that took longer is not repeated (default 60)")  # fmt: skip


def run_section(name: str, arguments: argparse.Namespace, console: Console) -> None:
    """Run one section and show its tables."""
    timeout = arguments.timeout or _TIMEOUTS.get(name, 300.0)
    options = Options(arguments.out, arguments.repeats, timeout, arguments.once_above)
    _, default_cases, default_contenders = SECTIONS[name]
    entrants = contenders.chosen(arguments.contenders, default_contenders)
    names = tuple(arguments.cases or default_cases)
    if arguments.command == "all" and arguments.cases:
        names = tuple(case for case in names if case in default_cases)
        if not names:
            return
    console.rule(name)
    with Bench(name, options, console) as bench:
        if name == "startup":
            startup.measure(bench)
        else:
            _run_cases(bench, name, names, entrants)
    history.append(name, bench.records, arguments.history)
    section = RENDER[name](name, read_records(bench.path))
    for table in section.tables:
        table.show(console)
    for line in [goal.line for goal in section.goals] + section.notes:
        console.print(line.replace("**", ""), markup=False, highlight=False)


def _run_cases(bench: Bench, section: str, names: Sequence[str], entrants: list[Contender]) -> None:
    from hinge.io.datasets import DataSetNotFound

    bench.forget(names)
    for name in names:
        try:
            if section == "reader":
                reader.measure(bench, name)
            elif section == "small":
                small.measure(bench, name)
            elif section == "many":
                many.measure(bench, name)
            elif section == "cluster":
                cluster.measure(bench, name)
            elif section == "torchkm":
                torchkm.measure(bench, name)
            elif section == "everyday":
                everyday.measure(bench, name)
            elif section == "grid":
                grid.measure(bench, name)
            elif section == "sweep":
                bench.sweep(CASES[name], entrants, cases.grid())
            elif section == "memory":
                _run_budgets(bench, name, entrants)
            else:
                _run_one(bench, name, entrants, predict=section == "predict")
        except DataSetNotFound as error:
            bench.console.print(f"skipped {name}: {error}", markup=False)


def _run_one(bench: Bench, name: str, entrants: list[Contender], predict: bool) -> None:
    case, options = CASES[name], bench.options
    if not case.peers:  # a long run: once, and as long as it takes
        bench.options = replace(options, repeats=1, timeout=_LONG_RUN)
    bench.run(case, entrants, predict)
    bench.options = options


def _run_budgets(bench: Bench, name: str, entrants: list[Contender]) -> None:
    options = bench.options
    for budget in _BUDGETS_MB:
        bench.options = replace(options, repeats=1, cache_mb=budget)
        bench.run(CASES[name], entrants)
    bench.options = options


def main(argv: Sequence[str] | None = None) -> None:
    """Run what the command line asks for."""
    arguments = parser().parse_args(argv)
    console = Console()
    console.width = max(console.width, 160)  # the tables are wide
    if arguments.command == "report":
        found = report.write(arguments.out, arguments.to)
        console.print(f"wrote {arguments.to.name}: {', '.join(found)}")
        return
    if arguments.command == "history":
        lines = history.read(arguments.file)
        for table in history.tables(lines):
            table.show(console)
        arguments.plot.parent.mkdir(parents=True, exist_ok=True)
        history.plot(lines, arguments.plot)
        return
    if arguments.command == "prices":
        prices.table(prices.measured()).show(console)
        return
    if arguments.command == "remark":
        report.remark(arguments.out, arguments.section, arguments.case, arguments.text)
        return
    known = {
        *CASES,
        *reader.FILES,
        *grid.GRIDS,
        *small.CASES,
        *many.CASES,
        *everyday.CASES,
        *torchkm.CASES,
        *cluster.CASES,
    }
    unknown = set(arguments.cases or ()) - known
    if unknown:
        raise SystemExit(f"unknown cases: {', '.join(sorted(unknown))}; known are {', '.join(CASES)}")
    names = list(SECTIONS) if arguments.command == "all" else [arguments.command]
    for name in names:
        run_section(name, arguments, console)
    if arguments.command == "all":
        report.write(arguments.out, HERE / "RESULTS.md")


if __name__ == "__main__":
    main()
