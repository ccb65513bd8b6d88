"""Reports: Markdown with tables and pictures, the paper's number beside ours, and what it was measured on."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import stats

from hinge.io import atomic_write
from hinge.lab.experiments.cells import Outcome

_CONFIDENCE = 0.95

NOTHING = "–"

VERDICTS = ("Confirmed", "Not confirmed", "Undecided")

_PAGES, _LONGEST = "report-", 60  # how the names of pages begin, and characters of the rest

_NOT_RUN = {"pending": "not run", "unbudgeted": "not run within the budget"}
_FEWEST_SIZES = 4  # an exponent of fewer says little, and nothing of its own error


@dataclass(frozen=True)
class Table:
    """A table of texts.

    Attributes
    ----------
    header : sequence of str
        Names of the columns.
    rows : list of sequences of str
        The cells.
    """

    header: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)

    def markdown(self) -> str:
        """Return the table in Markdown; all but the first column are set to the right."""
        lines = [self.header, ["---", *["---:"] * (len(self.header) - 1)], *self.rows]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)


@dataclass
class Section:
    """A part of a report.

    Attributes
    ----------
    title : str
        Its heading.
    parts : list of str
        Paragraphs, tables and pictures, as Markdown.
    """

    title: str
    parts: list[str] = field(default_factory=list)

    def say(self, text: str) -> None:
        """Add a paragraph."""
        self.parts.append(text)

    def show(self, table: Table) -> None:
        """Add a table."""
        self.parts.append(table.markdown())

    def picture(self, name: str, caption: str) -> None:
        """Add a picture that lies beside the report."""
        self.parts.append(f"![{caption}]({name})")

    @property
    def page(self) -> str:
        """Name of its file."""
        words = re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")
        return f"{_PAGES}{words[:_LONGEST].rstrip('-')}.md"

    def markdown(self) -> str:
        """Return the section in Markdown, a page of its own."""
        return "\n\n".join([f"# {self.title}", *self.parts]) + "\n"

    def verdicts(self) -> dict[str, int]:
        """Return how often each verdict stands on the page."""
        text = "\n".join(self.parts)
        return {word: len(re.findall(rf"\*\*{word}", text)) for word in VERDICTS}


def write(path: Path, title: str, opening: Iterable[str], sections: Sequence[Section]) -> None:
    """Write a report: a page with its circumstances and all verdicts counted, and a page for each section.

    Parameters
    ----------
    path : Path
        Where to; the pages lie beside it, and those of an earlier report are removed.
    title : str
        Its heading.
    opening : iterable of str
        Paragraphs before the list of pages.
    sections : sequence of Section
        The pages.
    """
    for old in path.parent.glob(f"{_PAGES}*.md"):
        old.unlink()
    table = Table(("page", *(word.lower() for word in VERDICTS)))
    for section in sections:
        found = section.verdicts().values()
        table.rows.append([f"[{section.title}]({section.page})", *(str(number or NOTHING) for number in found)])
        with atomic_write(path.parent / section.page) as file:
            file.write(section.markdown())
    with atomic_write(path) as file:
        file.write("\n\n".join([f"# {title}", *opening, table.markdown()]) + "\n")


def circumstances(outcomes: Iterable[Outcome]) -> list[str]:
    """Return dates, computers, versions and commits of what was run, as paragraphs: no host name, no path."""
    origins = [outcome.origin for outcome in outcomes if outcome.origin is not None]
    if not origins:
        return ["Nothing was run."]
    dates = sorted({origin.date for origin in origins})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    parts = {
        "Computer": {origin.computer for origin in origins},
        "Versions": {origin.versions for origin in origins},
        "Commit": {origin.commit or "no checkout" for origin in origins},
    }
    told = " ".join(f"{name}: {'; '.join(sorted(values))}." for name, values in parts.items())
    return [f"Date: {when}. {told}"]


# ---------------------------------------------------------------------- numbers as text


def count(value: float | None) -> str:
    """Return a number of things with thousands separated.

    Examples
    --------
    >>> count(12345), count(None)
    ('12,345', '–')
    """
    return NOTHING if value is None else f"{value:,.0f}"


def seconds(value: float | None) -> str:
    """Return seconds with three significant digits.

    Examples
    --------
    >>> seconds(0.01234), seconds(17164.7), seconds(None)
    ('0.0123', '17,165', '–')
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def time_of(outcome: Outcome | None) -> str:
    """Return the processor time of a run, or why there is none."""
    if outcome is None or outcome.status == "missing":
        return NOTHING
    if outcome.status in _NOT_RUN:
        return _NOT_RUN[outcome.status]
    if outcome.ran_out:
        return f"> {outcome.limit:g}"
    if outcome.status == "uncovered":
        return "not covered"
    return seconds(outcome.cpu_seconds) if outcome.converged else f"{outcome.status.replace('_', ' ')}"


def figure_of(outcome: Outcome | None, figure: Callable[[Outcome], float]) -> str:
    """Return a count of a run that came to its end."""
    return count(figure(outcome)) if outcome is not None and outcome.converged else NOTHING


def middle(runs: Sequence[Outcome], figure: Callable[[Outcome], float]) -> Outcome | None:
    """Return the trial in the middle by some figure, of those that came to their end."""
    done = sorted((run for run in runs if run.converged), key=figure)
    return done[(len(done) - 1) // 2] if done else None


def spread(
    runs: Sequence[Outcome], figure: Callable[[Outcome], float], text: Callable[[float], str] = count
) -> str:
    """Return the median of trials with the least and the most, and how many came to their end if not all.

    Examples
    --------
    >>> runs = [Outcome("converged", 9.0, iterations=k) for k in (1200, 1100, 1400)]
    >>> spread([*runs, Outcome("limit", 9.0)], lambda run: run.iterations)
    '1,200 (1,100–1,400), 3 of 4'
    """
    done = [figure(run) for run in runs if run.converged]
    if not done:
        return time_of(runs[0])
    shown = text(float(np.median(done)))
    if len(done) > 1:
        shown += f" ({text(min(done))}–{text(max(done))})"
    return shown if len(done) == len(runs) else f"{shown}, {len(done)} of {len(runs)}"


def objective_text(outcome: Outcome | None) -> str:
    """Return the dual objective in the papers' sign, which is maximised, of a run that came to its end."""
    return f"{-outcome.objective:,.3f}" if outcome is not None and outcome.converged else NOTHING


# ---------------------------------------------------------------------- what the numbers say


class Exponent(NamedTuple):
    """The exponent of a power law and how far it may be off."""

    value: float
    half_width: float
    n_points: int

    def __str__(self) -> str:
        return f"{self.value:.2f} ± {self.half_width:.2f} ({self.n_points})"


def fit_exponent(sizes: Sequence[float], times: Sequence[float]) -> Exponent | None:
    """Fit a line to log time over log size; None for fewer than four points.

    Parameters
    ----------
    sizes, times : sequences of float
        Positive numbers.

    Returns
    -------
    Exponent or None
        The slope and half the width of its 95 % confidence interval (Student's t).

    Examples
    --------
    >>> print(fit_exponent([10, 100, 1000, 10000], [1, 100, 10000, 1000000]))
    2.00 ± 0.00 (4)
    """
    if len(sizes) < _FEWEST_SIZES:
        return None
    fit = stats.linregress(np.log(sizes), np.log(times))
    quantile = stats.t.ppf((1 + _CONFIDENCE) / 2, len(sizes) - 2)
    return Exponent(float(fit.slope), float(quantile * fit.stderr), len(sizes))
