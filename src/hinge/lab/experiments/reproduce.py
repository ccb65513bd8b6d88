"""Repeat the papers' experiments and write the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from hinge.lab import report
from hinge.lab.experiments import bottou, glasmachers, glasmachers_report, platt
from hinge.lab.experiments.cells import TOLERANCE, Cell, Outcome, Outcomes
from hinge.lab.experiments.ledger import NAME, Terms, run_cells
from hinge.lab.experiments.scales import Scale
from hinge.lab.experiments.verdicts import LEVEL

_PAPERS = {
    "platt": (platt.cells, platt.sections),
    "glasmachers": (glasmachers.cells, glasmachers_report.sections),
    "bottou": (bottou.cells, bottou.sections),
}

PAPERS = tuple(_PAPERS)


def planned(papers: Sequence[str], scale: Scale) -> list[Cell]:
    """Return every cell of these papers' experiments once, in the order in which they run: that of their stages.

    Examples
    --------
    >>> from hinge.lab.experiments.scales import TINY
    >>> len(planned(["platt"], TINY)) > 50
    True
    """
    staged = sorted((pair for paper in papers for pair in _PAPERS[paper][0](scale)), key=lambda pair: pair[0])
    return list(dict.fromkeys(cell for _, cell in staged))


def reproduce(
    papers: Sequence[str],
    scale: Scale,
    out: Path,
    on_cell: Callable[[Cell, Outcome], None] = lambda cell, outcome: None,
    terms: Terms | None = None,
) -> Path:
    """Run the experiments of papers and write ``report.md`` and its pictures.

    Every run leaves its figures in ``out/cells.jsonl``. A second call with the same folder takes them from there,
    so that an interrupted reproduction goes on where it was, and so does one whose budget was used up: what is
    left then is shown as not run within the budget. With a budget of 0 the report is made from what is there.
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
    terms : Terms, optional
        Budget, by default that of the scale; a cell to run again.

    Returns
    -------
    Path
        The report.
    """
    outcomes = run_cells(planned(papers, scale), out, on_cell, terms or Terms(scale.budget))
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
        *report.circumstances(runs),
        f"Scale: {scale.name}, with a budget of {scale.budget / 60:g} minutes of processor time for a call. "
        f"{len(outcomes)} runs, one thread each. Tolerance: a violation of {TOLERANCE:g}, "
        "where a table does not name another; in Platt's experiments his own, 0.001 to either side of the "
        f"threshold, that is {platt.TOLERANCE:g}. Times are seconds of the processor, and no compilation is in "
        "them. A run that met its limit is shown as “> limit”, and so are larger ones of the same series, "
        f"which were then not started: {limited} met their limit, {skipped} were not started.",
        "No run computes kernel rows ahead of the step that asks for them: the library does not do so any "
        "more, so that there is nothing to switch off, and no second series with it on.",
        "Every verdict follows from the test or the interval beside it, and is written by the program: "
        f"Wilcoxon's signed-rank test over the trials, two-sided, at p ≤ {LEVEL:g} and not corrected for the "
        "number of tests, or a 95 % interval. Glasmachers & Igel use the rank-sum test of the same name; "
        "trials are paired here, because each has the same order of samples for every method.",
        f"Every run is a line of {NAME} with its settings, seed (`trial`), outcome, date, computer, versions, "
        "commit, and the command that repeats it.",
    ]
    unbudgeted = sum(run.status == "unbudgeted" for run in runs)
    if unbudgeted:
        parts.append(
            f"The budget did not suffice for {unbudgeted} runs. They are shown as “not run within the budget”; "
            "the same command goes on with them."
        )
    pending = sum(run.status == "pending" for run in runs)
    if pending:
        parts.append(f"This report is not complete: {pending} runs are still to be made, and shown as “not run”.")
    if checked:
        parts.append(
            f"Of the runs that came to their end {len(checked)} were checked: the violation computed again "
            f"from the solution alone, in double precision, is {min(checked):.2f} to {max(checked):.2f} times "
            f"the tolerance, {np.median(checked):.2f} in the median."
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
