"""Write ``RESULTS.md`` from the files of results."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.cases import CACHE_MB, SLACK, TOL
from benchmarks.computer import PACKAGES
from benchmarks.render import RENDER
from benchmarks.run import Record, append_record, read_records
from benchmarks.sections import Section
from benchmarks.summary import figures, speedup

HEADINGS = {
    "table": "Seven cases",
    "scale": "Larger data",
    "more": "Further shapes",
    "multiclass": "Many classes",
    "small": "Small data",
    "everyday": "Everyday data",
    "many": "Very many small fits",
    "linear": "Linear kernel",
    "intel": "Intel's list, and two papers' settings",
    "growth": "How cost grows",
    "sweep": "A sweep over C and γ",
    "grid": "A grid search",
    "torchkm": "TorchKM's table 2",
    "inputs": "Type and storage of the input",
    "predict": "Prediction",
    "memory": "Memory",
    "cluster": "On a cluster",
    "startup": "Start-up",
    "reader": "Reading LIBSVM text",
}

_MEASURED = "Measured on "

_INTRODUCTION = f"""# Benchmark results

Seconds of the first large fit in a fresh process; imports and compilation happen before, on a small problem, and
are shown beside. Contenders take turns; figures are medians, the spread is fastest and slowest. All at a tolerance
of {TOL:g} with a cache of {CACHE_MB:,} MB, Hinge always with its defaults otherwise.

The violation and the objective of every answer are recomputed in double precision from its dual coefficients, by
code of no contender (`benchmarks/verify.py`). An answer whose true violation exceeds {SLACK:g} × {TOL:g} is marked
✗ and does not win.

Hinge and scikit-learn get dense data where more than half of it is not zero, else CSR; LIBSVM and LIBLINEAR get
their own format, converted before the clock runs. scikit-learn-intelex runs on float32 and float64, dense and
sparse: its best correct time counts, and an input that takes more than 3 times as long is stopped. "× limit" is
the time divided by what n × support vectors kernel values would take at this computer's measured product speed.
LIBLINEAR solves an easier problem, with the threshold inside the regularised weights; its objective is its own.
`HINGE_DATA` names the folder of the data sets; `python -m benchmarks all` repeats everything.
"""


def write(out: Path, path: Path) -> list[str]:
    """Render all sections that have results; return their names.

    Other sections of ``path`` stay as they are, and say on which computer and day they were measured.
    """
    found = {name: read_records(out / f"{name}.jsonl") for name in HEADINGS}
    found = {name: records for name, records in found.items() if len(records) > 1}
    former = _sections(path.read_text(encoding="utf-8")) if path.exists() else {}
    computers = {name: _computer(records) for name, records in found.items()}
    is_one = len(set(computers.values())) == 1 and set(former) <= set(found)
    parts = [_INTRODUCTION, *([next(iter(computers.values())) + "\n"] if is_one else []), _verdicts(found)]
    for name in HEADINGS:
        if name in found:
            parts.append(_section(name, found[name], "" if is_one else computers[name] + "\n"))
        elif name in former:
            parts.append(former[name])
    path.write_text(_without_paths("\n".join(parts)), encoding="utf-8")
    return list(found)


def _sections(text: str) -> dict[str, str]:
    """Take a report apart; a section that does not name its computer gets the line of the whole report."""
    introduction, *parts = text.split("\n## ")
    computer = next((line for line in introduction.splitlines() if line.startswith(_MEASURED)), "")
    sections = {}
    for part in parts:
        heading, _, body = part.partition("\n")
        if not body.lstrip().startswith(_MEASURED):
            body = f"\n{computer}\n{body}"
        name = next(name for name, title in HEADINGS.items() if title == heading)
        sections[name] = f"## {heading}\n{body}".rstrip() + "\n"
    return sections


def remark(out: Path, section: str, case: str, text: str) -> None:
    """Add a sentence to the results of a case; it goes when they go."""
    path = out / f"{section}.jsonl"
    if all(record.get("case") != case for record in read_records(path)):
        raise SystemExit(f"{path.name} holds no results of {case!r} to remark on")
    append_record(path, {"section": section, "kind": "remark", "case": case, "text": text})


def _verdicts(found: dict[str, list[Record]]) -> str:
    """Say in which cases Hinge was fastest among the correct, and in which it was not."""
    gains = {
        case: speedup(of_case)
        for name in ("table", "scale", "more", "multiclass", "linear", "intel")
        for case, of_case in figures(found.get(name, [])).items()
    }
    wins = ", ".join(f"{case} ({gain:.1f} ×)" for case, gain in gains.items() if gain is not None and gain >= 1)
    losses = ", ".join(f"{case} ({gain:.2f} ×)" for case, gain in gains.items() if gain is not None and gain < 1)
    open_ones = ", ".join(case for case, gain in gains.items() if gain is None)
    lines = [f"**Wins** against the fastest correct peer: {wins or 'none'}.", ""]
    lines += [f"**Losses**: {losses or 'none'}.", ""]
    lines += [f"No correct peer to compare with: {open_ones}.", ""] if open_ones else []
    return "\n".join(lines)


def _section(name: str, records: list[Record], computer: str) -> str:
    section: Section = RENDER[name](name, records)
    lines = [f"## {HEADINGS[name]}", "", *([computer] if computer else [])]
    lines += [goal.line for goal in section.goals] + [""] * bool(section.goals)
    lines += [table.markdown() for table in section.tables]
    lines += [note + "\n" for note in section.notes]
    lines += [record["text"] + "\n" for record in records if record["kind"] == "remark"]
    failed = {f"{r['contender']} on {r['case']} ({r['message']})" for r in records if r.get("status") == "error"}
    if failed:
        lines += [f"Failed: {'; '.join(sorted(failed))}.", ""]
    lines += [f"Repeat with `python -m benchmarks {name}`.", ""]
    return "\n".join(lines)


def _computer(records: list[Record]) -> str:
    computer = next(record for record in records if record["kind"] == "computer")
    versions = ", ".join(f"{name} {computer['versions'].get(name, 'absent')}" for name in PACKAGES)
    return (
        f"{_MEASURED}{computer['date']}: {computer['cpu']}, {computer['cores']} cores, "
        f"{computer['memory_gb']} GB, {computer['system']}; {versions}."
    )


def _without_paths(text: str) -> str:
    """Leave out what an error message may say of folders of this computer."""
    return re.sub(r"(?<![\w/.])/(?:[\w.+-]+/)+[\w.+-]*", "…", text)
