"""Reports: Markdown with tables and pictures, the paper's number beside ours, and what it was measured on."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import stats

from hinge._version import __version__
from hinge.io import atomic_write
from hinge.lab.experiments.cells import Outcome

_PACKAGES = ("numpy", "scipy", "numba")
_CONFIDENCE = 0.95

NOTHING = "–"


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

    def markdown(self, level: int = 2) -> str:
        """Return the section in Markdown."""
        return "\n\n".join([f"{'#' * level} {self.title}", *self.parts])


def write(path: Path, title: str, opening: Iterable[str], sections: Iterable[Section]) -> None:
    """Write a report as one Markdown file.

    Parameters
    ----------
    path : Path
        Where to.
    title : str
        Its heading.
    opening : iterable of str
        Paragraphs before the first section.
    sections : iterable of Section
        The rest.
    """
    parts = [f"# {title}", *opening, *(section.markdown() for section in sections)]
    with atomic_write(path) as file:
        file.write("\n\n".join(parts) + "\n")


def circumstances() -> str:
    """Return date, computer and versions as one paragraph: no host name, no path."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    versions = ", ".join([f"hinge {__version__}", *(f"{name} {version(name)}" for name in _PACKAGES)])
    system = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return f"Date: {datetime.now(UTC):%Y-%m-%d}. Computer: {_processor()}, {cores} cores, {system}; {versions}."


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


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
    if outcome.status == "pending":
        return "not run"
    if outcome.ran_out:
        return f"> {outcome.limit:g}"
    if outcome.status == "uncovered":
        return "not covered"
    return seconds(outcome.cpu_seconds) if outcome.converged else f"{outcome.status.replace('_', ' ')}"


def figure_of(outcome: Outcome | None, figure: Callable[[Outcome], float]) -> str:
    """Return a count of a run that came to its end."""
    return count(figure(outcome)) if outcome is not None and outcome.converged else NOTHING


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
    """Fit a line to log time over log size; None for fewer than three points.

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
    >>> print(fit_exponent([10, 100, 1000], [1, 100, 10000]))
    2.00 ± 0.00 (3)
    """
    if len(sizes) < 3:
        return None
    fit = stats.linregress(np.log(sizes), np.log(times))
    quantile = stats.t.ppf((1 + _CONFIDENCE) / 2, len(sizes) - 2)
    return Exponent(float(fit.slope), float(quantile * fit.stderr), len(sizes))


Range = tuple[float, float]


def compare_orders(paper: Mapping[str, float], ours: Mapping[str, Range]) -> tuple[list[str], list[str]]:
    """Compare the order of methods in the paper and here, pair by pair.

    Parameters
    ----------
    paper : mapping of float
        The smaller, the better.
    ours : mapping of pairs of float
        The least and the most that our number can be: the same number twice, or from the limit to infinity for a
        run that met it.

    Returns
    -------
    lists of str
        Pairs whose order is another here; pairs whose order here is not known.

    Examples
    --------
    >>> ours = {"HMG": (5.0, 5.0), "MVP": (3.0, 3.0), "MG": (4.0, float("inf"))}
    >>> compare_orders({"HMG": 1.0, "MVP": 2.0, "MG": 3.0}, ours)
    (['HMG before MVP in the paper, MVP before HMG here'], ['HMG and MG'])
    """
    found, unknown = [], []
    ranked = sorted(paper, key=lambda name: paper[name])
    for k, better in enumerate(ranked):
        for worse in ranked[k + 1 :]:
            if paper[better] == paper[worse]:
                continue
            if ours[better][0] > ours[worse][1]:
                found.append(f"{better} before {worse} in the paper, {worse} before {better} here")
            elif ours[better][1] > ours[worse][0]:
                unknown.append(f"{better} and {worse}")
    return found, unknown
