"""How the results of each section read: tables, then what was aimed at and what was reached."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from statistics import median

from benchmarks.cases import SLACK, TOL
from benchmarks.goals import FIT_GOALS, Goal
from benchmarks.run import Record
from benchmarks.small import CLASSES, TINY, TOOLS
from benchmarks.small import group as small_group
from benchmarks.summary import Figures, any_value, best_peer, figures, geometric_mean, speedup
from benchmarks.tables import Table, count, exact, megabytes, ratio, seconds


@dataclass
class Section:
    """A section ready to be shown."""

    tables: list[Table] = field(default_factory=list)
    goals: list[Goal] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


# ---------------------------------------------------------------------- fits


def fits(name: str, records: list[Record]) -> Section:
    """Times, correctness, memory and work of every contender."""
    groups = figures(records)
    overview = Table(
        "Overview",
        ["case", "n × d", "Hinge s", "fastest correct peer", "its s", "Hinge is faster by", "× limit"],
    )
    details = []
    for of_case in groups.values():
        _add_overview(overview, of_case)
        details.append(_detail(of_case))
    goals = FIT_GOALS[name](groups) if name in FIT_GOALS else []
    return Section([overview, *details], goals, _compiled_notes(groups.values()))


def _compiled_notes(groups: Iterable[dict[str, Figures]]) -> list[str]:
    """Own up to compilation inside a timed fit: the warm-up missed a path, and the disk did not have it yet."""
    return [
        f"{entry.contender} on {entry.case} compiled for {max(times):.1f} s inside a timed fit."
        for of_case in groups
        for entry in of_case.values()
        if max(times := [run.get("compile_seconds", 0.0) for run in entry.finished], default=0.0) > 0
    ]


def _add_overview(table: Table, of_case: dict[str, Figures]) -> None:
    hinge, peer, gain = of_case.get("hinge"), best_peer(of_case), speedup(of_case)
    verdict = "–" if gain is None else f"{gain:.2f}" + (" **(loss)**" if gain < 1 else "")
    table.add(
        any_value(of_case, "case"),
        f"{any_value(of_case, 'n'):,} × {any_value(of_case, 'd'):,}",
        _time(hinge),
        peer.contender if peer else "none finished",
        _time(peer),
        verdict,
        ratio(hinge.limit_multiple if hinge else None),
    )


def _time(entry: Figures | None) -> str:
    if entry is None:
        return "–"
    if entry.seconds is not None:
        return seconds(entry.seconds)
    stopped = [run["seconds"] for run in entry.runs if run["status"] == "timeout"]
    return f"> {stopped[-1]:.0f}" if stopped else entry.status


def _detail(of_case: dict[str, Figures]) -> Table:
    table = Table(
        any_value(of_case, "title"),
        ["contender", "median s", "spread", "× Hinge", "true violation", "objective", "SVs",
         "kernel values", "peak MB", "of it the fit", "import + warm-up s"],
    )  # fmt: skip
    hinge = of_case.get("hinge")
    base = hinge.seconds if hinge else None
    for entry in of_case.values():
        if entry.status == "absent":
            continue
        start = (entry.middle("import_seconds") or 0) + (entry.middle("warm_seconds") or 0)
        table.add(
            entry.contender, _time(entry), entry.spread,
            ratio(entry.seconds / base if entry.seconds and base else None), _violation(entry),
            exact(entry.middle("objective")), count(entry.middle("n_support")),
            count(entry.middle("kernel_evaluations")), megabytes(entry.middle("peak_bytes")),
            megabytes(entry.middle("extra_bytes")), seconds(start or None),
        )  # fmt: skip
    return table


def _violation(entry: Figures) -> str:
    if entry.violation is None:
        return "–"
    shown = f"{entry.violation:.1e}"
    return shown if entry.is_correct else f"**{shown} ✗**"


# ---------------------------------------------------------------------- the other sections


def inputs(_: str, records: list[Record]) -> Section:
    """The same data in four forms."""
    groups = figures(records)
    forms = [f"hinge-f{bits}-{storage}" for bits in (64, 32) for storage in ("dense", "csr")]
    table = Table("Seconds to fit the same data", ["case", *(form[6:] for form in forms), "slowest / fastest"])
    worst = []
    for name, of_case in groups.items():
        times = [entry.seconds for entry in of_case.values() if entry.seconds]
        worst.append(max(times) / min(times) if len(times) > 1 else math.nan)
        table.add(name, *(_time(of_case.get(form)) for form in forms), ratio(worst[-1]))
    return Section(
        [table], [Goal("Slowest form against the fastest", max(worst, default=None), 1.5, at_most=True)]
    )


def predict(_: str, records: list[Record]) -> Section:
    """Prediction of a test set by a fresh model."""
    section = Section()
    aims = {"a9a": 2.0, "mnist-ten": 1.3}
    for name, of_case in figures(records).items():
        table = Table(
            f"Prediction, {any_value(of_case, 'title')}",
            [
                "contender",
                "median s",
                "first s",
                "× Hinge",
                "accuracy",
                "same labels as Hinge",
                "model's violation",
            ],
        )
        times = {e.contender: median(e.finished[0]["predict_seconds"]) for e in of_case.values() if _predicted(e)}
        base = times.get("hinge")
        for entry in of_case.values():
            if _predicted(entry):
                run, time = entry.finished[0], times[entry.contender]
                table.add(
                    entry.contender, seconds(time), seconds(run["predict_seconds"][0]),
                    ratio(time / base if base else None), f"{run['accuracy']:.4f}", f"{run['agreement']:.4f}",
                    _violation(entry),
                )  # fmt: skip
        peers = [t for c, t in times.items() if of_case[c].library != "hinge"]
        section.tables.append(table)
        fastest = min(peers) / base if peers and base else None
        plain = times["sklearn"] / base if base and "sklearn" in times else None
        section.goals.append(Goal(f"{name}: speed-up over the fastest peer", fastest, aims.get(name, 1.0)))
        section.goals.append(Goal(f"{name}: speed-up over scikit-learn", plain, 20))
    return section


def _predicted(entry: Figures) -> bool:
    return bool(entry.finished) and "predict_seconds" in entry.finished[0]


def sweep(_: str, records: list[Record]) -> Section:
    """A grid of C and γ; a point where a contender ran out of time counts with that time."""
    times, wrong, stopped = _points(records)
    table = Table("All points of the grid", ["contender", "total s", "time-outs and failures", "wrong answers"])
    for name, of in times.items():
        table.add(
            name, ("> " if stopped[name] else "") + seconds(sum(of.values())), len(stopped[name]), len(wrong[name])
        )
    peers = [name for name in times if not name.startswith("hinge")]
    ours = times.get("hinge", {})
    best_total = min((sum(times[name].values()) for name in peers), default=None)
    ratios = {}
    for point, value in ours.items():
        correct = [times[p][point] for p in peers if point in times[p] and point not in wrong[p] | stopped[p]]
        if correct:
            ratios[point] = value / min(correct)
    share = sum(ours.values()) / best_total if best_total and ours else None
    worst = max(ratios.values(), default=None)
    failures = len(stopped["hinge"] | wrong["hinge"]) if ours else None
    goals = [
        Goal("Total time as a share of the best peer's", share, 0.5, at_most=True),
        Goal("Worst point: time against the fastest correct peer there", worst, 2, at_most=True),
        Goal("Hinge's time-outs, failures and wrong answers", failures, 0, at_most=True),
    ]
    return Section(
        [table, _grid(ratios)], goals, [f"A point is wrong if its violation exceeds {SLACK:g} × {TOL:g}."]
    )


Point = tuple[float, float]


def _points(
    records: list[Record],
) -> tuple[dict[str, dict[Point, float]], dict[str, set[Point]], dict[str, set[Point]]]:
    all_times: dict[str, dict[Point, list[float]]] = {}
    wrong: dict[str, set[Point]] = {}
    stopped: dict[str, set[Point]] = {}
    for run in records:
        if run["kind"] != "run" or "C" not in run:
            continue
        name, point = run["contender"], (run["C"], run["gamma"])
        wrong.setdefault(name, set())
        stopped.setdefault(name, set())
        all_times.setdefault(name, {}).setdefault(point, []).append(run.get("seconds", 0.0))
        if run["status"] != "ok":
            stopped[name].add(point)
        elif run["violation"] > SLACK * TOL:
            wrong[name].add(point)
    times = {name: {p: median(v) for p, v in of.items()} for name, of in all_times.items()}
    return times, wrong, stopped


def _grid(ratios: dict[Point, float]) -> Table:
    prices = sorted({C for C, _ in ratios})
    table = Table(
        "Hinge's time divided by the fastest correct peer's",
        ["γ \\ C", *(f"2^{math.log2(C):.0f}" for C in prices)],
    )
    for gamma in sorted({gamma for _, gamma in ratios}):
        table.add(f"2^{math.log2(gamma):.0f}", *(ratio(ratios.get((C, gamma))) for C in prices))
    return table


def grid(_: str, records: list[Record]) -> Section:
    """LIBSVM's grid by five folds: total times, and whether every cell's score is the same."""
    table = Table(
        "110 points by five folds",
        ["case", "n × d", "contender", "median s", "spread", "× Hinge", "cells that differ from Hinge's",
         "of these, beyond samples on the boundary"],
    )  # fmt: skip
    gains: dict[str, list[float]] = {"sklearn": [], "intelex": []}
    beyond = []
    runs = [run for run in records if run["kind"] == "grid" and run["status"] in ("ok", "timeout")]
    for case in dict.fromkeys(run["case"] for run in runs):
        of_case = [run for run in runs if run["case"] == case]
        by_name = {
            n: [r for r in of_case if r["contender"] == n] for n in dict.fromkeys(r["contender"] for r in of_case)
        }
        for name, group in by_name.items():
            times = [run["seconds"] for run in group]
            tight = name.endswith("-tight")
            ours = by_name.get("hinge-tight" if tight else "hinge")
            times_slower = median(times) / median(run["seconds"] for run in ours) if ours else None
            if times_slower is not None and name in gains:
                gains[name].append(times_slower)
            is_done = all(run["status"] == "ok" for run in group)
            differ, unexplained = _differing(group[0], ours[0]) if ours and is_done else (None, None)
            if name == "sklearn-tight" and unexplained is not None:
                beyond.append(unexplained)
            at_least = "" if is_done else "≥ "
            table.add(
                case, _shape(of_case), name, at_least + seconds(median(times)),
                f"{min(times):.3g}–{max(times):.3g}", at_least + ratio(times_slower), count(differ),
                count(unexplained) if tight else "–",
            )  # fmt: skip
    total = sum(beyond) if beyond else None
    goals = [
        Goal("Speed-up over GridSearchCV, geometric mean", geometric_mean(gains["sklearn"]), 20),
        Goal("Speed-up over GridSearchCV of intelex's SVC, geometric mean", geometric_mean(gains["intelex"]), 8),
        Goal("Cells whose score differs by more than the samples on the boundary", total, 0, at_most=True),
    ]
    notes = [
        "Runs named tight have a tolerance of 1e-6. A sample is on the boundary if a decision is within 1e-3 of 0 "
        "or within 2e-6 C: true violations of that size were seen in LIBSVM's solutions at any tolerance.",
        "A time marked ≥ is that of a run that was stopped before it ended; its ratio counts as it stands.",
    ]
    return Section([table], goals, notes)


def _shape(runs: list[Record]) -> str:
    done = next((run for run in runs if run["status"] == "ok"), None)
    return "–" if done is None else f"{done['n']:,} × {done['d']:,}"


def _differing(run: Record, ours: Record) -> tuple[int, int]:
    """Count the cells with another score, and those that samples on the boundary do not explain."""
    differ = unexplained = 0
    for cell in range(len(run["scores"][0])):
        gaps = [abs(theirs[cell] - mine[cell]) for theirs, mine in zip(run["scores"], ours["scores"], strict=True)]
        if max(gaps) > 1e-12:
            differ += 1
            # A fold holds a fifth of the samples.
            allowed = [near[cell] for near in ours["near"]] or [0] * len(gaps)
            unexplained += any(gap * run["n"] / len(gaps) > n + 0.5 for gap, n in zip(gaps, allowed, strict=True))
    return differ, unexplained


def memory(_: str, records: list[Record]) -> Section:
    """Peak memory of a fit against the cache budget."""
    table = Table(
        "Memory that a fit adds to the process",
        ["case", "budget MB", "data MB", "peak MB", "kernel rows MB", "beyond the budget", "beyond the rows", "s"],
    )
    multiples = []
    for run in records:
        if run["kind"] == "run" and run["status"] == "ok":
            budget, data, peak = 1e6 * run["cache_mb"], run["data_bytes"], run["extra_bytes"]
            rows = run.get("cache_bytes", 0)
            multiples.append(max(peak - budget, 0) / data)
            table.add(
                run["case"], f"{run['cache_mb']:g}", megabytes(data), megabytes(peak), megabytes(rows),
                ratio(multiples[-1]), ratio(max(peak - rows, 0) / data), seconds(run["seconds"]),
            )  # fmt: skip
    worst = max(multiples, default=None)
    note = (
        "Beyond the budget: what the peak exceeds the whole cache budget by, as a multiple of the data; "
        "beyond the rows: what it takes besides the kernel rows that it kept, likewise."
    )
    goal = Goal("Largest multiple of the data beyond the budget", worst, 4, at_most=True)
    return Section([table], [goal], [note])


def startup(_: str, records: list[Record]) -> Section:
    """Import and first fits."""
    table = Table("Seconds, median and spread", ["what", "median s", "spread"])
    runs = [run for run in records if run["kind"] == "startup"]
    for what in dict.fromkeys(run["what"] for run in runs):
        times = [run["seconds"] for run in runs if run["what"] == what]
        table.add(what, seconds(median(times)), f"{min(times):.3g}–{max(times):.3g}")
    bounds = {"import hinge": 1.5, "first fit ever": 12.0, "first fit, warm cache": 1.0}
    found = {what: [run["seconds"] for run in runs if run["what"] == what] for what in bounds}
    goals = [Goal(w, median(found[w]) if found[w] else None, bound, at_most=True) for w, bound in bounds.items()]
    return Section([table], goals, ["First fits are counted beyond the import."])


def reader(_: str, records: list[Record]) -> Section:
    """Reading LIBSVM text."""
    table = Table("Seconds to read LIBSVM text", ["file", "MB", "reader", "median s", "spread", "MB/s"])
    runs = [run for run in records if run["kind"] == "reader"]
    for key in dict.fromkeys((run["case"], run["reader"]) for run in runs):
        group = [run for run in runs if (run["case"], run["reader"]) == key]
        times = [run["seconds"] for run in group]
        middle, size = median(times), group[0]["bytes"]
        table.add(key[0], megabytes(size), key[1], seconds(middle), f"{min(times):.3g}–{max(times):.3g}",
                  f"{size / 1e6 / middle:.0f}")  # fmt: skip
    return Section([table])


def small(_: str, records: list[Record]) -> Section:
    """Small fits, many classes and predictions."""
    table = Table(
        "Milliseconds, medians of turns within one process",
        ["case", "problem", "operation", "Hinge ms", "fastest peer", "its ms", "Hinge is faster by"],
    )
    gains: dict[tuple[str, str], list[float]] = {}
    runs = [run for run in records if run["kind"] == "small"]
    for key in dict.fromkeys((run["case"], run["problem"], run["operation"]) for run in runs):
        group = [run for run in runs if (run["case"], run["problem"], run["operation"]) == key]
        times = {run["contender"]: run["seconds"] for run in group}
        own = times.pop("hinge")
        peer = min(times, key=lambda name: times[name])
        gain = times[peer] / own
        gains.setdefault((small_group(key[0]), key[2]), []).append(gain)
        shown = f"{gain:.2f}" + (" **(loss)**" if gain < 1 else "")
        table.add(*key, f"{1e3 * own:.3g}", peer, f"{1e3 * times[peer]:.3g}", shown)
    goals = []
    for of, operation, mean, least in (
        (TINY, "fit", 1.5, 1.0), (CLASSES, "fit", 2.5, 1.0), (TOOLS, "fit", 1.0, 1.0),
        (TINY, "predict one", 1.2, 0.9), (TINY, "predict all", 2.0, 1.0),
        (CLASSES, "predict one", 1.2, 0.9), (CLASSES, "predict all", 2.0, 1.0),
    ):  # fmt: skip
        found = gains.get((of, operation), [])
        goals.append(Goal(f"{of}, {operation}: speed-up, geometric mean", geometric_mean(found), mean))
        goals.append(Goal(f"{of}, {operation}: smallest speed-up", min(found, default=None), least))
    note = (
        "Peers: scikit-learn; of many classes scikit-learn-intelex too, and from 1,000 samples on LIBSVM itself."
    )
    return Section([table], goals, [note])


def many(_: str, records: list[Record]) -> Section:
    """Very many small fits."""
    table = Table(
        "Seconds for all neighbourhoods, medians of turns within one process",
        ["case", "neighbourhoods", "Hinge s", "scikit-learn s", "Hinge is faster by", "same scores", "at 1e-9"],
    )
    runs, gains = [run for run in records if run["kind"] == "many"], []
    for case in dict.fromkeys(run["case"] for run in runs):
        group = [run for run in runs if run["case"] == case]
        own, theirs = (
            median([run["seconds"] for run in group if run["contender"] == name]) for name in ("hinge", "sklearn")
        )
        gains.append(theirs / own)
        same = (f"{100 * group[0][key]:.2f} %" for key in ("same", "same_sharp"))
        table.add(case, str(group[0]["n"]), seconds(own), seconds(theirs), ratio(gains[-1]), *same)
    goal = Goal("Smallest speed-up of a searchlight", min(gains, default=None), 20)
    note = (
        "scikit-learn's SVC and cross_val_score in joblib's processes, as many as there are cores. Scores of its "
        "folds differ where its tolerance leaves a sample on the other side; the last column compares at 1e-9."
    )
    return Section([table], [goal], [note])


def everyday(_: str, records: list[Record]) -> Section:
    """All sets of moderate size."""
    table = Table(
        "Milliseconds, medians of turns within one process",
        ["case", "n × d", "problem", "Hinge ms", "true violation", "fastest correct peer", "its ms",
         "Hinge is faster by"],
    )  # fmt: skip
    runs, gains, violations = [run for run in records if run["kind"] == "everyday"], [], []
    for key in dict.fromkeys((run["case"], run["problem"]) for run in runs):
        group = {run["contender"]: run for run in runs if (run["case"], run["problem"]) == key}
        own = group.pop("hinge")
        right = [run for run in group.values() if run["violation"] is not None and run["violation"] <= SLACK * TOL]
        peer = min(right, key=lambda run: float(run["seconds"]), default=None)
        violations.append(own["violation"])
        names = ["none within a minute", "–", "–"]
        if peer is not None:
            gains.append(peer["seconds"] / own["seconds"])
            verdict = f"{gains[-1]:.2f}" + (" **(loss)**" if gains[-1] < 1 else "")
            names = [peer["contender"], f"{1e3 * peer['seconds']:.3g}", verdict]
        table.add(key[0], f"{own['n']:,} × {own['d']:,}", key[1], f"{1e3 * own['seconds']:.3g}",
                  f"{own['violation']:.2g}", *names)  # fmt: skip
    losses = [gain for gain in gains if gain < 1]
    goals = [
        Goal("Speed-up over the fastest correct peer, geometric mean", geometric_mean(gains), 3),
        Goal("Share of cases below 1, in percent", 100 * len(losses) / len(gains) if gains else None, 5, True),
        Goal("Hinge's largest true violation", max(violations, default=None), TOL, at_most=True),
    ]
    note = (
        "Peers: scikit-learn, scikit-learn-intelex and, from 1,000 samples on, LIBSVM, all on data as it comes. "
        "One that takes two seconds longer than another is stopped."
    )
    return Section([table], goals, [note])


RENDER: dict[str, Callable[[str, list[Record]], Section]] = {
    "table": fits, "scale": fits, "more": fits, "multiclass": fits, "linear": fits, "intel": fits,
    "sweep": sweep, "small": small, "everyday": everyday, "many": many, "grid": grid, "inputs": inputs,
    "predict": predict, "memory": memory, "startup": startup, "reader": reader,
}  # fmt: skip
