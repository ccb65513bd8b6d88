"""A cluster on this computer, and larger ones on paper: what rounds cost, and what fits would take.

A fresh process takes each case: ``python -m benchmarks.cluster CASE`` is the process, and prints lines of JSON.
Workers are processes of one thread. Local fits, and those with one and two workers, take turns.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks import rounds, susy
from benchmarks.processes import ROOT, environment
from benchmarks.run import Bench, Record
from benchmarks.sections import Section
from benchmarks.tables import Table, seconds

#: The first three by default: some four minutes. The last is all of covtype, some ten.
CASES = ("covtype, 10,000 and 50,000", "susy, 20,000 and 80,000", "susy, 5,000,000", "covtype, all")

_TURNS, _LIMIT = 2, 3600.0

# What the two sets are trained with.
_SETTINGS: dict[str, dict[str, float]] = {
    "covtype": {"C": 10.0, "gamma": 1 / 54},
    "susy": {"C": 1.0, "gamma": 1 / 18},
}

# Seconds that the largest fit may take, of some hundred that it would need.
_FIRST_ROUNDS = 90.0

# The network of the forecasts: a round trip, and a line of ten gigabits.
_ROUND_TRIP, _LINE = 0.0002, 1.25e9
_FORECAST_ROWS = (10**6, 10**7, 10**8)
_FORECAST_WORKERS = (4, 16, 64, 256, 1024)

# By how much a forecast may miss the time that is measured before others are believed.
_TRUSTED = 0.25


def measure(bench: Bench, name: str) -> None:
    """Measure one case in a fresh process."""
    words = [sys.executable, "-m", "benchmarks.cluster", name]
    answer = subprocess.run(
        words, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT, env=environment(), timeout=_LIMIT
    )
    for line in answer.stdout.splitlines():
        if line.startswith("{"):
            bench.keep({"kind": "cluster", "case": name, **json.loads(line)})


def main(case: str, *sizes: int) -> None:
    """Measure a case in this process; other sizes are for trying it out."""
    warnings.simplefilter("ignore")
    data = case.partition(",")[0]
    if case == "susy, 5,000,000":
        _first_rounds(sizes[0] if sizes else 5_000_000)
    elif case == "covtype, all":
        _whole(data, sizes[0] if sizes else 581_012)
    else:
        _pair(data, sizes or ((10_000, 50_000) if data == "covtype" else (20_000, 80_000)))


@contextmanager
def _clients() -> Iterator[dict[int, Any]]:
    """Yield clients of two clusters, of one and of two workers."""
    from distributed import Client, LocalCluster

    def cluster(n: int) -> Any:
        return LocalCluster(
            n_workers=n, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        )

    with cluster(1) as one, cluster(2) as two, Client(one) as first, Client(two) as second:
        yield {1: first, 2: second}


def _rows(data: str, n: int) -> tuple[Any, Any]:
    if data == "susy":
        return susy.made(0, n)
    from hinge.io.datasets import load

    X, y = load("covtype")
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, np.float32)
    X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    chosen = np.random.default_rng(0).permutation(len(y))[:n]
    return np.ascontiguousarray(X[chosen], np.float32), np.where(y[chosen] == 2, 1, -1)


def _fit(data: str, X: Any, y: Any, client: Any, **parameters: Any) -> tuple[float, Any, list[rounds.Question]]:
    from hinge import SVC
    from hinge.dask import DaskSVC

    machine = SVC(**_SETTINGS[data]) if client is None else DaskSVC(**_SETTINGS[data], client=client, **parameters)
    begun = time.perf_counter()
    with rounds.recorded() as questions:
        machine.fit(X, y)
    return time.perf_counter() - begun, machine, questions


def _pair(data: str, sizes: tuple[int, ...]) -> None:
    """Fit two sizes here, with one and with two workers; compare with what prices and recorded rounds foretell."""
    X, y = _rows(data, sizes[-1])
    courses: dict[int, rounds.Course] = {}
    with _clients() as clients:
        for client in (None, *clients.values()):
            _fit(data, X[:4000], y[:4000], client)  # compiles
        prices = rounds.measured(clients, X, _SETTINGS[data]["gamma"])
        _say(what="prices", data=data, **vars(prices))
        for n in sizes:
            times: dict[int, list[float]] = {0: [], 1: [], 2: []}
            for turn in range(_TURNS):
                for workers in times:
                    taken, machine, questions = _fit(data, X[:n], y[:n], clients.get(workers))
                    times[workers].append(taken)
                    if workers == 1 and turn == 0:
                        courses[n] = rounds.Course.of(n, X.shape[1], 1, taken, questions)
            work = machine.report_.cluster
            for workers, found in times.items():
                told = {} if not workers else {"foretold": rounds.replayed(courses[n], prices, workers).as_dict()}
                _say(
                    what="fit", data=data, n=n, workers=workers, seconds=min(found), turns=found, **told,
                    rounds=machine.report_.outer_steps, questions=len(courses[n].questions), sent=work.bytes_sent,
                    received=work.bytes_received, values=courses[n].values,
                )  # fmt: skip
    network = prices.on_network(_ROUND_TRIP, _LINE)
    small, large = (courses[n] for n in sizes)
    for n in _FORECAST_ROWS:
        course = rounds.grown(small, large, n)
        for workers in (1, *_FORECAST_WORKERS):
            forecast = rounds.replayed(course, network, workers)
            _say(
                what="forecast", data=data, n=n, workers=workers, **forecast.as_dict(),
                bytes=rounds.bytes_a_worker(course, workers), values=course.values,
            )  # fmt: skip


def _first_rounds(n: int) -> None:
    """Train on data that the workers make, for a while; tell of rounds and memory."""
    from distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50)
    with cluster, Client(cluster) as client:
        begun = time.perf_counter()
        X, y = client.persist(susy.collection(n))
        _, machine, questions = _fit("susy", X, y, client, time_limit=_FIRST_ROUNDS)
        peaks = list(client.run(_peak_bytes).values())
        report = machine.report_
        images = [one for one in questions if one.values]
        _say(
            what="first rounds", data="susy", n=n, workers=2, seconds=time.perf_counter() - begun,
            status=str(report.status), violation=report.violation, rounds=report.outer_steps,
            waited=sum(one.waited for one in images), values=sum(one.values for one in images),
            questions=len(questions), thought=sum(one.thought for one in questions), peak=max(peaks),
            sent=report.cluster.bytes_sent, received=report.cluster.bytes_received,
        )  # fmt: skip


def _whole(data: str, n: int) -> None:
    """Fit all rows once here, on two threads, and once with two workers."""
    from distributed import Client, LocalCluster

    X, y = _rows(data, n)
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50)
    with cluster, Client(cluster) as client:
        for where in (None, client):
            _fit(data, X[:4000], y[:4000], where)
        for workers, where in ((0, None), (2, client)):
            taken, machine, questions = _fit(data, X, y, where)
            work = machine.report_.cluster
            _say(
                what="fit", data=data, n=n, workers=workers, seconds=taken, turns=[taken],
                rounds=machine.report_.outer_steps, questions=len(questions),
                sent=work.bytes_sent if work else 0, received=work.bytes_received if work else 0,
                values=machine.report_.kernel_evaluations,
            )  # fmt: skip


def _peak_bytes() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _say(**record: Any) -> None:
    sys.stdout.write(json.dumps(record, default=float) + "\n")
    sys.stdout.flush()


# ---------------------------------------------------------------------- how it is shown


def section(_: str, records: list[Record]) -> Section:
    """Show prices, fits beside what was foretold of them, and forecasts."""
    found = [record for record in records if record["kind"] == "cluster"]
    tables = [_prices(found), _fits(found), _first(found), *_forecasts(found)]
    return Section([table for table in tables if table.rows], notes=_notes(found))


def _of(records: list[Record], what: str) -> list[Record]:
    return [record for record in records if record["what"] == what]


def _prices(records: list[Record]) -> Table:
    header = ["data", "question, ms", "each worker, ms", "MB/s", "million kernel values a second and worker"]
    table = Table("What a round costs", header)
    for one in _of(records, "prices"):
        table.add(
            one["data"], f"{1e3 * one['question']:.2f}", f"{1e3 * one['worker']:.2f}",
            f"{1e-6 / max(one['byte'], 1e-12):.0f}", f"{1e-6 / max(one['value'], 1e-15):.0f}",
        )  # fmt: skip
    return table


def _fits(records: list[Record]) -> Table:
    header = [
        "fit",
        "workers",
        "s",
        "× local",
        "foretold s",
        "off by",
        "rounds",
        "questions",
        "MB sent",
        "MB back",
    ]
    table = Table("Fits on this computer; local fits have two threads", header)
    fits = _of(records, "fit")
    for one in fits:
        local = next(
            other for other in fits if (other["data"], other["n"], other["workers"]) == (one["data"], one["n"], 0)
        )
        share, told = one["seconds"] / local["seconds"], one.get("foretold", {}).get("seconds")
        table.add(
            f"{one['data']}, {one['n']:,}", one["workers"] or "local", seconds(one["seconds"]), f"{share:.2f}",
            seconds(told), "–" if told is None else f"{told / one['seconds'] - 1:+.0%}", one["rounds"],
            *(_wire(one) if one["workers"] else "–––"),
        )  # fmt: skip
    return table


def _wire(one: Record) -> list[str]:
    return [str(one["questions"]), f"{one['sent'] / 1e6:.0f}", f"{one['received'] / 1e6:.0f}"]


def _first(records: list[Record]) -> Table:
    header = ["data", "workers", "s", "status", "rounds", "violation", "s a question", "million values a second",
              "peak of a worker, MB", "MB sent", "MB back"]  # fmt: skip
    table = Table("The first rounds of a large fit", header)
    for one in _of(records, "first rounds"):
        table.add(
            f"{one['data']}, {one['n']:,}", one["workers"], seconds(one["seconds"]), one["status"], one["rounds"],
            f"{one['violation']:.1e}", seconds(one["waited"] / max(one["questions"], 1)),
            f"{1e-6 * one['values'] / max(one['waited'], 1e-9):.0f}", f"{one['peak'] / 1e6:.0f}",
            f"{one['sent'] / 1e6:.0f}", f"{one['received'] / 1e6:.0f}",
        )  # fmt: skip
    return table


def _forecasts(records: list[Record]) -> Iterator[Table]:
    for data in dict.fromkeys(one["data"] for one in _of(records, "forecast")):
        header = [
            "rows",
            "workers",
            "hours",
            "efficiency",
            "computing",
            "sending",
            "client",
            "asking",
            "MB a worker",
        ]
        table = Table(f"On paper: {data}, workers of one thread, {_LINE * 8e-9:.0f} gigabits a second", header)
        of_data = [one for one in _of(records, "forecast") if one["data"] == data]
        for one in of_data:
            alone = next(other for other in of_data if (other["n"], other["workers"]) == (one["n"], 1))
            parts = (one[name] / one["seconds"] for name in ("computing", "sending", "thinking", "asking"))
            table.add(
                f"{one['n']:.0e}".replace("e+0", "e"), one["workers"], f"{one['seconds'] / 3600:.3g}",
                f"{alone['seconds'] / one['seconds'] / one['workers']:.0%}", *(f"{part:.0%}" for part in parts),
                f"{one['bytes'] / 1e6:,.0f}",
            )  # fmt: skip
        yield table


def _notes(records: list[Record]) -> list[str]:
    misses = {
        f"{one['data']}, {one['n']:,}, {one['workers']} workers": one["foretold"]["seconds"] / one["seconds"] - 1
        for one in _of(records, "fit")
        if "foretold" in one
    }
    if not misses:
        return []
    wrong = [f"{name} ({miss:+.0%})" for name, miss in misses.items() if abs(miss) > _TRUSTED]
    verdict = (
        f"The forecasts of all measured fits are within {_TRUSTED:.0%}."
        if not wrong
        else f"Forecasts that miss what was measured by more than {_TRUSTED:.0%}: {', '.join(wrong)}. "
        "Those for larger clusters deserve no more trust than that."
    )
    return [
        verdict,
        "On paper: questions of the larger of the two measured fits, each with more samples, and as many more of "
        f"them as two sizes tell; a round trip of {1e3 * _ROUND_TRIP:g} ms; no worker waits for another, and none "
        "is lost. Efficiency is against one worker.",
    ]


if __name__ == "__main__":
    main(sys.argv[1], *(int(word) for word in sys.argv[2:]))
