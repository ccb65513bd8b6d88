"""Repeat the papers' experiments and write the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from hinge.lab import report
from hinge.lab.experiments import bottou, glasmachers, glasmachers_report, platt
from hinge.lab.experiments.cells import TOLERANCE, Cell, Outcome, Outcomes, run_cells
from hinge.lab.experiments.scales import Scale

_PAPERS = {
    "platt": (platt.cells, platt.sections),
    "glasmachers": (glasmachers.cells, glasmachers_report.sections),
    "bottou": (bottou.cells, bottou.sections),
}

PAPERS = tuple(_PAPERS)


def planned(papers: Sequence[str], scale: Scale) -> list[Cell]:
    """Return every cell of these papers' experiments once, in the order in which they run.

    Examples
    --------
    >>> from hinge.lab.experiments.scales import TINY
    >>> len(planned(["platt"], TINY)) > 50
    True
    """
    return list(dict.fromkeys(cell for paper in papers for cell in _PAPERS[paper][0](scale)))


def reproduce(
    papers: Sequence[str],
    scale: Scale,
    out: Path,
    on_cell: Callable[[Cell, Outcome], None] = lambda cell, outcome: None,
) -> Path:
    """Run the experiments of papers and write ``report.md`` and its pictures.

    Every run leaves its figures in ``out/cells``. A second call with the same folder takes them from there, so
    that an interrupted reproduction goes on where it was.
    After Ctrl-C the report tells what is there, and KeyboardInterrupt is raised.

    Parameters
    ----------
    papers : sequence of str
        Of ``"platt"``, ``"glasmachers"`` and ``"bottou"``.
    scale : Scale
        How much to run.
    out : Path
        Where to write.
    on_cell : callable, optional
        Called after each run.

    Returns
    -------
    Path
        The report.
    """
    outcomes = run_cells(planned(papers, scale), out / "cells", on_cell)
    sections = [section for paper in papers for section in _PAPERS[paper][1](scale, outcomes, out)]
    path = out / "report.md"
    report.write(path, "The papers' experiments, repeated", _opening(scale, outcomes), sections)
    if any(outcome.status == "pending" for outcome in outcomes.values()):
        raise KeyboardInterrupt
    return path


def _opening(scale: Scale, outcomes: Outcomes) -> list[str]:
    runs = outcomes.values()
    limited = sum(run.status == "limit" for run in runs)
    skipped = sum(run.status == "skipped" for run in runs)
    missing = sorted({cell.data for cell, run in outcomes.items() if run.status == "missing"})
    checked = [
        run.checked / cell.tol for cell, run in outcomes.items() if run.converged and run.checked is not None
    ]
    parts = [
        report.circumstances(),
        f"Scale: {scale.name}. {len(outcomes)} runs, one thread each. Tolerance: a violation of "
        f"{TOLERANCE:g}, where a table does not name another; in Platt's experiments his own, 0.001 to either "
        f"side of the threshold, that is {platt.TOLERANCE:g}. Times are seconds of the "
        "processor, without compilation. A run that met its limit is shown as “> limit”, and so are larger ones "
        f"of the same series, which were then not started: {limited} met their limit, {skipped} were not started.",
    ]
    pending = sum(run.status == "pending" for run in runs)
    if pending:
        parts.append(f"This report is not complete: {pending} runs are still to be made, and shown as “not run”.")
    if checked:
        parts.append(
            f"Of the runs that came to their end {len(checked)} were checked: the violation computed again from "
            f"the solution alone, in double precision, is at most {max(checked):.2f} times the tolerance."
        )
    loads = [run.load for run in runs if run.load is not None]
    unknown = sum(run.load is None and run.n > 0 for run in runs)
    if loads:
        parts.append(
            f"The computer's load was {min(loads):.1f} to {max(loads):.1f}"
            + (f" (not noted for {unknown} runs)" if unknown else "")
            + ". A load above the number of cores makes processor times longer; iterations, kernel evaluations "
            "and objectives do not depend on it."
        )
    if missing:
        parts.append(
            f"Not found here, and therefore not run: {', '.join(missing)}. Set HINGE_DATA to their folder."
        )
    return parts
