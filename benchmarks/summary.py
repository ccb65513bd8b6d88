"""From single runs to figures: medians, who was correct, who was fastest."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.cases import SLACK, TOL
from benchmarks.run import Record


@dataclass(frozen=True)
class Figures:
    """What one contender did on one case, over all its turns."""

    case: str
    contender: str
    runs: list[Record]

    @property
    def finished(self) -> list[Record]:
        """The turns that gave an answer."""
        return [run for run in self.runs if run["status"] == "ok" and "seconds" in run]

    @property
    def status(self) -> str:
        """ "ok", "timeout", "error" or "absent"."""
        return "ok" if self.finished else str(self.runs[-1]["status"])

    @property
    def library(self) -> str:
        """The library."""
        return str(self.runs[0]["library"])

    @property
    def seconds(self) -> float | None:
        """Median time of a fit."""
        return self.middle("seconds")

    @property
    def spread(self) -> str:
        """Fastest and slowest turn."""
        times = [run["seconds"] for run in self.finished]
        if not times:
            return "–"
        return f"{min(times):.3g}–{max(times):.3g}" if len(times) > 1 else "one run"

    @property
    def violation(self) -> float | None:
        """Largest true violation of its answers."""
        known = [run["violation"] for run in self.finished if run.get("violation") is not None]
        return max(known) if known else None

    @property
    def is_correct(self) -> bool:
        """Whether it finished, within the slack of the tolerance."""
        return self.violation is not None and self.violation <= SLACK * TOL

    @property
    def limit_multiple(self) -> float | None:
        """How many times the time of the necessary kernel values at the measured product speed it took."""
        run = next((run for run in self.finished if "ns_per_value" in run), None)
        if run is None or not run["necessary"] or self.seconds is None:
            return None
        return self.seconds / (1e-9 * run["ns_per_value"] * run["necessary"])

    def middle(self, name: str) -> float | None:
        """Median of one field over the turns that have it."""
        values = [run[name] for run in self.finished if run.get(name) is not None]
        return median(values) if values else None


def figures(records: Iterable[Record]) -> dict[str, dict[str, Figures]]:
    """Group runs by case and contender, in the order in which they came."""
    groups: dict[str, dict[str, Figures]] = {}
    for record in records:
        if record["kind"] == "run" and "contender" in record:
            of_case = groups.setdefault(record["case"], {})
            entry = of_case.setdefault(record["contender"], Figures(record["case"], record["contender"], []))
            entry.runs.append(record)
    return groups


def best_peer(of_case: dict[str, Figures], libraries: Sequence[str] | None = None) -> Figures | None:
    """Return the fastest correct answer of another library; LIBLINEAR, with its easier problem, is none."""
    allowed = libraries or ("sklearnex", "libsvm", "sklearn")
    peers = [f for f in of_case.values() if f.library in allowed and f.is_correct]
    return min(peers, key=lambda f: f.seconds or math.inf, default=None)


def speedup(of_case: dict[str, Figures], libraries: Sequence[str] | None = None) -> float | None:
    """Return how many times faster Hinge was than the fastest correct peer."""
    hinge, peer = of_case.get("hinge"), best_peer(of_case, libraries)
    if hinge is None or peer is None or not hinge.seconds or not peer.seconds:
        return None
    return peer.seconds / hinge.seconds


def geometric_mean(values: Iterable[float | None]) -> float | None:
    """Return the geometric mean of what is there."""
    known = [math.log(value) for value in values if value]
    return math.exp(sum(known) / len(known)) if known else None


def any_value(of_case: dict[str, Figures], name: str) -> Any:
    """Return a field that all runs of a case share."""
    return next(iter(of_case.values())).runs[0][name]
