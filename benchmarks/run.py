"""Run cases: contenders take turns, each fit in a fresh process, and every answer is verified here."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from rich.console import Console

from benchmarks.cases import CACHE_MB, SLACK, TOL, Case
from benchmarks.computer import describe
from benchmarks.contenders import Contender
from benchmarks.prepared import Prepared
from benchmarks.processes import work
from benchmarks.verify import Answer, Check, check_answer

Record = dict[str, Any]

# A point of the sweep that took this long is not repeated.
_LONG_POINT = 2.0

# Of a peer's several inputs only the fastest counts: one that takes this many times as long is stopped.
_HOPELESS = 3.0
_LEAST_PATIENCE = 30.0


@dataclass
class Options:
    """How to run.

    Attributes
    ----------
    out : path
        Folder of the results.
    repeats : int
        Turns of every contender.
    timeout : float
        Seconds that a fit may take.
    once_above : float
        A contender that took longer than this is not repeated.
    cache_mb : float
        Cache of every contender.
    """

    out: Path
    repeats: int = 3
    timeout: float = 300.0
    once_above: float = 60.0
    cache_mb: float = CACHE_MB


@dataclass
class Bench:
    """One section of the results: runs cases, and keeps what they gave in ``<out>/<section>.jsonl``."""

    section: str
    options: Options
    console: Console
    records: list[Record] = field(default_factory=list)
    labels: dict[str, Any] = field(default_factory=dict)

    def __enter__(self) -> Self:
        self.folder = Path(tempfile.mkdtemp(prefix="hinge-bench-"))
        self.path = self.options.out / f"{self.section}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    # ------------------------------------------------------------------ results

    def forget(self, cases: Iterable[str]) -> None:
        """Drop earlier results of these cases."""
        names = set(cases)
        kept = [r for r in read_records(self.path) if r.get("case") not in names and r["kind"] != "computer"]
        lines = [{"kind": "computer", **describe()}, *kept]
        self.path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    def keep(self, record: Record) -> None:
        """Add a result."""
        record = {"section": self.section, "kind": "run", **record}
        self.records.append(record)
        append_record(self.path, record)
        self.console.print(f"  {_one_line(record)}", markup=False, highlight=False)

    # ------------------------------------------------------------------ cases

    def run(self, case: Case, contenders: Sequence[Contender], predict: bool = False) -> None:
        """Run one case with all contenders, taking turns."""
        data = self.prepare(case)
        case = case.resolved(data.X)
        self.console.print(f"{case.title} ({case.n:,} × {case.d:,})", markup=False, highlight=False)
        test = Prepared(*case.load_test(), self.folder / f"{case.name}.t") if predict else None
        known: dict[str, Check] = {}
        active = self.entrants(case, contenders, data)
        for turn in range(1 if predict else self.options.repeats):
            first = turn % max(len(active), 1)  # nobody is always the first to touch the memory
            for contender in active[first:] + active[:first]:
                record = self.turn(case, contender, data, known, turn, test)
                self.keep(record)
                if record["status"] != "ok" or record["seconds"] > self.options.once_above:
                    active.remove(contender)
        shutil.rmtree(data.folder)

    def prepare(self, case: Case) -> Prepared:
        """Load a case."""
        return Prepared(*case.load(), self.folder / case.name)

    def entrants(self, case: Case, contenders: Sequence[Contender], data: Prepared) -> list[Contender]:
        """Return who takes part; note why the others do not."""
        active = []
        for contender in contenders:
            reason = contender.why_not(data.X, case.kernel, case.task)
            if not case.peers and contender.library != "hinge":
                reason = "a long run, for Hinge alone"
            if reason is None:
                active.append(contender)
            else:
                self.keep({**_identity(case, contender), "status": "absent", "message": reason})
        return active

    def turn(
        self, case: Case, contender: Contender, data: Prepared, known: dict[str, Check], turn: int,
        test: Prepared | None = None,
    ) -> Record:  # fmt: skip
        """Let one contender fit once, and verify its answer."""
        job = self.job(case, contender, data, [case.point])
        job["limit"] = contender.is_reference and case.kernel != "linear"
        if test is not None:
            job |= {"test": str(test.path(contender)), "predictions": self.options.repeats}
        record: Record = {**_identity(case, contender), "turn": turn, "status": "ok"}
        record |= {"data_bytes": _size(data.X), "cache_mb": self.options.cache_mb}
        # Answers are verified when all is said: while a worker is at work, it has the machine to itself.
        for message in list(work(job, self.patience(case, contender), show=bool(job["verbose"]))):
            record |= outcome(message, data, case, known, has_answer="violation" in record)
        if "labels" in record:
            labels = np.load(record.pop("labels"))
            record["agreement"] = float(np.mean(labels == self.labels.setdefault(case.name, labels)))
        shutil.rmtree(job["folder"], ignore_errors=True)
        return record

    def patience(self, case: Case, contender: Contender) -> float:
        """Return the seconds that a fit may take: less, once another input of the same peer did well."""
        times = [
            run["seconds"]
            for run in self.records
            if run["case"] == case.name and run["library"] == contender.library != "hinge"
            if run["contender"] != contender.name and (run.get("violation") or np.inf) <= SLACK * TOL
        ]
        limit = _HOPELESS * min(times, default=np.inf)
        return float(min(self.options.timeout, max(limit, _LEAST_PATIENCE)))

    def job(self, case: Case, contender: Contender, data: Prepared, points: list[dict[str, float]]) -> Record:
        """Describe to a worker what to do."""
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        return {
            "library": contender.library, "by_weights": contender.by_weights,
            "data": str(data.path(contender)), "folder": str(folder),
            "task": case.task, "kernel": case.kernel, "points": points, "tol": TOL,
            "cache_mb": self.options.cache_mb, "verbose": not case.peers,
        }  # fmt: skip

    # ------------------------------------------------------------------ the sweep

    def sweep(self, case: Case, contenders: Sequence[Contender], rows: list[list[tuple[float, float]]]) -> None:
        """Run a grid of C and γ; a process takes all C of one γ, and contenders take turns at each γ."""
        data = self.prepare(case)
        active = self.entrants(case, contenders, data)
        slow: set[tuple[str, float, float]] = set()
        for turn in range(self.options.repeats):
            for row in rows:
                for contender in active:
                    points = [p for p in row if (contender.name, *p) not in slow]
                    for record in self.sweep_row(case, contender, data, points):
                        if record["status"] != "ok" or record["seconds"] > _LONG_POINT:
                            slow.add((contender.name, record["C"], record["gamma"]))
                        self.keep({**record, "turn": turn})

    def sweep_row(
        self, case: Case, contender: Contender, data: Prepared, row: list[tuple[float, float]]
    ) -> Iterator[Record]:
        """Run some points in one process; after a point that fails, go on behind it in a new process."""
        points = [{"C": C, "gamma": gamma, "epsilon": case.epsilon} for C, gamma in row]
        while points:
            job = self.job(case, contender, data, points)
            done = 0
            for message in list(work(job, self.options.timeout)):  # as in `turn`: first the work, then the checks
                if message["event"] in ("fit", "timeout", "error"):
                    record = {**_identity(case, contender), **points[done], "status": "ok"}
                    # A failure costs what a time-out costs.
                    yield {"seconds": self.options.timeout} | record | outcome(message, data, case, {})
                    done += 1
                    if done == len(points):
                        break
            points = points[done:]
            shutil.rmtree(job["folder"], ignore_errors=True)


def outcome(
    message: Record, data: Prepared, case: Case, known: dict[str, Check], has_answer: bool = False
) -> Record:
    """Turn what a worker said into part of a record; an answer is verified."""
    message = dict(message)
    event = message.pop("event")
    if event in ("timeout", "error"):
        # What comes after an answer, such as a measurement of speed, may fail without touching it.
        return {"note": f"{event}: {message.get('message', '')}"} if has_answer else {"status": event, **message}
    if event != "fit":
        return message
    path, point = message.pop("answer"), message.pop("point")
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    if digest not in known:
        settings = {"task": case.task, "kernel": case.kernel, **point}
        known[digest] = check_answer(data.X, data.y, Answer.read(path), settings)
    del message["number"]
    return {**message, **asdict(known[digest])}


def read_records(path: Path) -> list[Record]:
    """Read a file of results; none if there is no file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line]


def append_record(path: Path, record: Record) -> None:
    """Add a result to a file of results."""
    with path.open("a") as file:
        file.write(json.dumps(record) + "\n")


def _identity(case: Case, contender: Contender) -> Record:
    return {
        "case": case.name, "title": case.title, "n": case.n, "d": case.d, "contender": contender.name,
        "library": contender.library,
    }  # fmt: skip


def _size(X: Any) -> int:
    return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) if sp.issparse(X) else int(X.nbytes)


def _one_line(record: Record) -> str:
    name, status = record.get("contender", ""), record.get("status", "ok")
    if status != "ok" or "seconds" not in record:
        return f"{name:22} {status} {record.get('message', '')}"
    violation = record.get("violation")
    shown = "–" if violation is None else f"{violation:.1e}"
    place = f"C={record['C']:g} γ={record['gamma']:g} " if "C" in record else ""
    time = f"{name:22} {place}{record['seconds']:.3f} s"
    return f"{time}, violation {shown}, objective {record['objective']:.6g}" if "objective" in record else time
