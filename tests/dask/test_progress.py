"""How a fit on a cluster stands: a table on a terminal, and events of Dask."""

import io
import sys
import threading

import msgpack
import numpy as np
import pytest
from rich.console import Console
from sklearn.datasets import make_blobs
from workers import Killer, two_classes, until

from hinge.dask import DaskSVC
from hinge.dask.adapter import TOPIC
from hinge.dask.progress import EventListener, TableListener
from hinge.report import ClusterWork, Report, Status
from hinge.training.progress import FitProgress

X, Y = two_classes(2400)
WORK = ClusterWork(workers=2, shards=8, questions=40, bytes_sent=3_000_000, bytes_received=500_000, rebuilt=1)


def step(machine=0, rounds=3, known=0.5, n_active=900, n_machines=2, n_done=0):
    return FitProgress(100, rounds, known, -1.0, 0.1, n_active, known, 1e-3, "", machine, n_machines, n_done, 0.5)


def test_the_table_sums_up_all_machines():
    screen = io.StringIO()
    table = TableListener(lambda: WORK, 2400, Console(file=screen, force_terminal=True, width=80))
    try:
        assert ("rounds", "0") in table.rows()
        table.begin(0, 2)
        table.step(step(machine=0, rounds=3, known=100.0))
        table.step(step(machine=1, rounds=5, known=0.25))
        table.end(0, Report(Status.CONVERGED, outer_steps=7))
        rows = dict(table.rows())
    finally:
        table.close()
    assert rows["rounds"] == "12"
    assert rows["machines"] == "1 of 2 done"
    assert rows["violation"].startswith("2.5e-01 → 1e-03")
    assert rows["active"] == "900 of 2,400 samples"
    assert rows["cluster"] == "2 workers, 8 shards"
    assert rows["bytes"] == "3 MB sent, 0.5 MB received"
    assert rows["rebuilt"] == "1 shards"
    assert "2.5e-01" in screen.getvalue(), "the last figures were drawn"


@pytest.mark.parametrize("verbose", [True, False])
def test_a_table_on_a_terminal_and_only_if_it_is_asked_for(client, monkeypatch, verbose):
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", screen)
    DaskSVC(C=5.0, client=client, verbose=verbose).fit(X, Y)
    assert ("of 2,400 samples" in screen.getvalue()) == verbose
    assert ("MB sent" in screen.getvalue()) == verbose


def test_lines_where_there_is_no_terminal(client, capsys, monkeypatch):
    monkeypatch.setattr("hinge.training.progress._LOG_PERIOD", 0.0)
    DaskSVC(C=5.0, client=client, verbose=True).fit(X, Y)
    told = capsys.readouterr().err
    assert "violation" in told
    assert "MB sent" not in told


class Ear:
    """Hears the events of our topic."""

    def __init__(self):
        self.heard, self._lock = [], threading.Lock()

    def __call__(self, event):
        with self._lock:
            self.heard.append(event[1])

    def of(self, name):
        return [event for event in self.heard if event["event"] == name]


@pytest.fixture
def ear(client):
    heard = Ear()
    client.subscribe_topic(TOPIC, heard)
    yield heard
    client.unsubscribe_topic(TOPIC)


def test_events_tell_how_a_fit_goes(client, ear, monkeypatch):
    monkeypatch.setattr("hinge.dask.progress._EVENT_PERIOD", 0.0)
    machine = DaskSVC(C=5.0, tol=1e-6, client=client).fit(X, Y)
    until(lambda: ear.of("close"))
    report = machine.report_
    assert [event["event"] for event in ear.heard] == ["begin", *["round"] * len(ear.of("round")), "end", "close"]
    assert len({event["fit"] for event in ear.heard}) == 1
    rounds = [event["rounds"] for event in ear.of("round")]
    assert rounds == sorted(rounds)
    assert rounds[-1] > 1
    (end,) = ear.of("end")
    assert (end["status"], end["rounds"]) == ("converged", report.outer_steps)
    assert end["violation"] <= 1e-6
    assert ear.of("begin")[0]["n_samples"] == 2400
    assert ear.of("round")[-1]["workers"] == 2
    assert ear.of("close")[0]["bytes_sent"] <= report.cluster.bytes_sent
    assert ear.of("close")[0]["bytes_received"] > 0
    assert client.get_events(TOPIC)[-1][1]["event"] == "close"


def test_events_of_many_machines(client, ear):
    rows, codes = make_blobs(600, centers=3, cluster_std=3.0, random_state=0)
    assert DaskSVC(client=client).fit(rows, codes).report_.converged
    until(lambda: ear.of("close"))
    assert sorted(event["machine"] for event in ear.of("end")) == [0, 1, 2]
    assert max(event["n_done"] for event in ear.of("end")) == 3


def test_events_of_workers_that_are_lost(client, ear):
    machine = DaskSVC(C=5.0, tol=1e-6, client=client, callback=Killer(client, rounds=(1,))).fit(X, Y)
    until(lambda: ear.of("close"))
    assert machine.report_.converged
    assert [event["worker"][:6] for event in ear.of("lost")] == ["tcp://"]
    assert ear.of("close")[0]["rebuilt"] > 0
    until(lambda: len(client.nthreads()) == 2)


def test_events_hold_nothing_but_plain_figures():
    told = []
    listener = EventListener(lambda event, **figures: told.append({"event": event, **figures}), lambda: WORK, 10)
    listener.begin(0, 1)
    listener.step(step(known=np.float64(0.5), n_active=np.int64(3)))
    listener.end(0, Report(Status.CONVERGED, violation=np.float64(1e-4)))
    listener.close()
    assert [one["event"] for one in told] == ["begin", "round", "end", "close"]
    assert msgpack.unpackb(msgpack.packb(told)) == told
