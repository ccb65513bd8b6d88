"""What earlier runs measured: one line of JSON for every run of a section, beside RESULTS.md.

A line says when, at which commit and on what computer a section ran. For each case it has the seconds of Hinge
(``seconds``) and, where peers took part, how many times as long the fastest correct one took (``ratios``). Seconds
of different computers cannot be compared; ratios mostly can.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.computer import describe
from benchmarks.run import Record, append_record, read_records
from benchmarks.summary import figures, speedup
from benchmarks.tables import Table, ratio, seconds

HERE = Path(__file__).resolve().parent
FILE = HERE / "history.jsonl"
COMPARED = ("table", "scale", "more", "multiclass", "linear")  # sections of single fits beside those of peers


def line(section: str, records: list[Record], computer: dict[str, Any], commit: str | None) -> Record:
    """Return what is kept of a section's records: medians of Hinge, and its speed-ups."""
    times: dict[str, list[float]] = {}
    for record in records:
        name, who = record.get("what") or record.get("case"), record.get("contender", "")
        if record.get("status", "ok") == "ok" and "seconds" in record and ("what" in record or who == "hinge"):
            times.setdefault(name, []).append(median(record.get("predict_seconds") or [record["seconds"]]))
    gains = {case: speedup(of_case) for case, of_case in figures(records).items()} if section in COMPARED else {}
    return {
        "date": computer["date"],
        "commit": commit,
        "computer": f"{computer['cpu']}, {computer['cores']} cores",
        "section": section,
        "seconds": {case: _rounded(median(of_case)) for case, of_case in times.items()},
        "ratios": {case: _rounded(gain) for case, gain in gains.items() if gain is not None},
    }


def append(section: str, records: list[Record], path: Path = FILE) -> None:
    """Add a section that has just run; without figures there is nothing to add."""
    new = line(section, records, describe(), commit())
    if new["seconds"] or new["ratios"]:
        append_record(path, new)


def commit() -> str | None:
    """Return the commit of the checkout, with ``+`` where files differ from it; None outside of a checkout."""
    try:
        head, changes = (
            subprocess.run(["git", *words], cwd=HERE, capture_output=True, text=True, check=True).stdout.strip()
            for words in (["rev-parse", "--short=10", "HEAD"], ["status", "--porcelain", "-uno"])
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return head + "+" * bool(changes)


def tables(lines: Iterable[Record]) -> list[Table]:
    """Return one table per section: one row per run, one column per case."""
    found = []
    for section, runs in _by_section(lines).items():
        cases = _cases(runs)
        table = Table(section, ["date", "commit", "computer", *cases])
        for run in runs:
            table.add(run["date"], run["commit"] or "–", run["computer"], *(_cell(run, case) for case in cases))
        found.append(table)
    return found


def plot(lines: Iterable[Record], path: Path) -> None:
    """Draw one panel per section: commits along the x axis, ratios where there are any, else seconds."""
    from matplotlib.figure import Figure

    sections = _by_section(lines)
    figure = Figure(figsize=(9, 2.8 * len(sections)), layout="constrained")
    for place, (section, runs) in enumerate(sections.items(), 1):
        axes = figure.add_subplot(len(sections), 1, place)
        what = "ratios" if any(run["ratios"] for run in runs) else "seconds"
        for case in _cases(runs):
            points = [(i, run[what][case]) for i, run in enumerate(runs) if case in run[what]]
            if points:
                axes.plot(*zip(*points, strict=True), marker="o", label=case)
        axes.set(title=section, yscale="log", ylabel="times faster than a peer" if what == "ratios" else "seconds")
        axes.set_xticks(range(len(runs)), [f"{run['commit'] or '–'}\n{run['date']}" for run in runs])
        axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
    figure.savefig(path, dpi=110)


def read(path: Path = FILE) -> list[Record]:
    """Return all lines, the oldest first."""
    return read_records(path)


def _by_section(lines: Iterable[Record]) -> dict[str, list[Record]]:
    sections: dict[str, list[Record]] = {}
    for run in lines:
        sections.setdefault(run["section"], []).append(run)
    return sections


def _cases(runs: Iterable[Record]) -> list[str]:
    return list(dict.fromkeys(case for run in runs for what in ("seconds", "ratios") for case in run[what]))


def _cell(run: Record, case: str) -> str:
    gain = f" ({ratio(run['ratios'][case])} ×)" if case in run["ratios"] else ""
    return f"{seconds(run['seconds'].get(case))}{gain}"


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
