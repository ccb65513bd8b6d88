"""Workers die, restart and join; clients are interrupted; and the answer is the same."""

import os
import signal
import threading
import time

import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster
from workers import Killer, in_background, kill, two_classes, until

import dask
from hinge import SVC
from hinge.dask import DaskSVC, checkpoints, presence

N = 2400
X, Y = two_classes(N)
PARAMETERS = {"C": 5.0, "tol": 1e-8}


@pytest.fixture(scope="module")
def answer():
    """The decisions of a machine that was trained on one computer."""
    return SVC(**PARAMETERS).fit(X, Y).decision_function(X)


def collections():
    return da.from_array(X, chunks=(480, 6)), da.from_array(Y, chunks=480)


def is_the_same(machine, answer):
    assert machine.report_.converged
    assert machine.report_.violation <= 1e-8
    return np.abs(machine.decision_function(X) - answer).max() < 1e-6


@pytest.fixture
def impatient(monkeypatch):
    """Two seconds of waiting for workers, and looks at who has joined at every question."""
    monkeypatch.setattr(presence.Patience, "__init__", lambda self: None)
    monkeypatch.setattr(presence.Patience, "for_workers", 3.0, raising=False)
    monkeypatch.setattr(presence.Patience, "between_looks", 0.0, raising=False)


@pytest.mark.parametrize("everybody", [False, True])
@pytest.mark.parametrize("local", [False, True])
def test_killed_workers_cost_their_shards_only(client, answer, local, everybody):
    killer = Killer(client, rounds=(1, 4), everybody=everybody)
    machine = DaskSVC(**PARAMETERS, client=client, callback=killer)
    machine.fit(X, Y) if local else machine.fit(*collections())
    assert killer.calls > 4
    assert machine.report_.cluster.rebuilt > 0
    assert is_the_same(machine, answer)
    until(lambda: len(client.nthreads()) == 2)


def test_a_worker_that_joins_takes_part(client, answer, impatient):
    def hosts():
        return {key for keys in client.has_what().values() for key in keys if "-host-" in key}

    def join(progress):
        if progress.outer_steps == 1 and len(client.nthreads()) == 2:
            client.cluster.scale(3)
            client.wait_for_workers(3, timeout=60)
        if progress.outer_steps == 3:  # it has been invited meanwhile; nobody but this test waits for it
            until(lambda: len(hosts()) == 3, 60)

    try:
        machine = DaskSVC(**PARAMETERS, client=client, callback=join).fit(X, Y)
    finally:
        client.cluster.scale(2)
        until(lambda: len(client.nthreads()) == 2)
    assert machine.report_.cluster.workers == 3
    assert machine.report_.cluster.rebuilt == 0
    assert is_the_same(machine, answer)


@pytest.fixture
def lonely():
    """A cluster of one worker, which is not started again when it was killed."""
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "0s"}),
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0", silence_logs=False) as cluster,
        Client(cluster) as client,
    ):
        yield client


def test_without_workers_it_waits_and_says_so_and_ends(lonely, impatient, caplog):
    def leave(progress):
        if lonely.nthreads():
            kill(lonely)
            until(lambda: not lonely.cluster.workers)

    fit = in_background(lambda: DaskSVC(client=lonely, callback=leave).fit(X, Y))
    with pytest.raises(ConnectionError, match=r"no worker for 3 s.*start workers"):
        fit()
    assert "there is no worker on the cluster; waiting up to 3 s" in caplog.text


def test_a_scheduler_that_goes_away_ends_the_fit(impatient):
    cluster = LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0", silence_logs=False)
    client = Client(cluster, timeout=3)
    fit = in_background(lambda: DaskSVC(client=client, callback=lambda progress: cluster.close()).fit(X, Y))
    with pytest.raises(OSError, match=r"scheduler|no worker"):
        fit()
    client.close()


class Freezer:
    """A callback that stops all workers where they are, for good."""

    def __init__(self, client):
        self.pids = list(client.run(os.getpid).values())
        self.is_frozen = False

    def __call__(self, progress):
        if progress.outer_steps >= 1 and not self.is_frozen:
            self.is_frozen = True
            for pid in self.pids:
                os.kill(pid, signal.SIGSTOP)

    def thaw(self):
        for pid in self.pids:
            os.kill(pid, signal.SIGCONT)


def test_a_time_limit_holds_whatever_workers_do(client):
    freezer = Freezer(client)
    machine = DaskSVC(**PARAMETERS, client=client, callback=freezer, time_limit=5.0)
    begun = time.monotonic()
    try:
        with pytest.warns(Warning, match="time_limit"):
            fit = machine.fit(X, Y)
    finally:
        freezer.thaw()
    assert fit.report_.status == "time_limit"
    assert time.monotonic() - begun < 60
    assert fit.predict(X[:3]).shape == (3,)


def test_ctrl_c_gives_the_best_point_whatever_workers_do(client):
    freezer = Freezer(client)
    machine = DaskSVC(**PARAMETERS, client=client, callback=freezer)

    def press():
        until(lambda: freezer.is_frozen)
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            machine.fit(X, Y)
    finally:
        freezer.thaw()
        thread.join()
    assert machine.report_.status == "interrupted"
    assert len(machine.support_) > 0


def test_ctrl_c_gives_the_best_point_of_rows_that_are_elsewhere(client):
    def press(progress):
        if progress.outer_steps >= 1:
            os.kill(os.getpid(), signal.SIGINT)

    machine = DaskSVC(**PARAMETERS, client=client, callback=press)
    with pytest.raises(KeyboardInterrupt):
        machine.fit(*collections())
    assert machine.report_.status == "interrupted"
    assert machine.to_local().predict(X).shape == (N,)
    assert DaskSVC(**PARAMETERS, client=client).fit(*collections()).report_.converged


def test_a_checkpoint_is_gone_on_from(client, answer, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints.Pace, "__init__", lambda self: None)
    monkeypatch.setattr(checkpoints.Pace, "seconds", 0.0, raising=False)
    monkeypatch.setattr(checkpoints.Pace, "share", 1e9, raising=False)
    path = tmp_path / "fit.checkpoint"
    whole = DaskSVC(**PARAMETERS, client=client).fit(X, Y)

    def die(progress):
        if progress.outer_steps >= whole.report_.outer_steps - 2:
            raise RuntimeError("the client dies")

    with pytest.raises(RuntimeError, match="dies"):
        DaskSVC(**PARAMETERS, client=client, checkpoint=path, callback=die).fit(X, Y)
    assert path.exists()
    later = DaskSVC(**PARAMETERS, client=client, checkpoint=path, warm_start=True).fit(X, Y)
    assert is_the_same(later, answer)
    assert later.report_.outer_steps < whole.report_.outer_steps
    assert later.report_.iterations < whole.report_.iterations
    again = DaskSVC(**PARAMETERS, client=client, checkpoint=path, warm_start=True).fit(X, Y)
    assert again.report_.outer_steps == 0  # the end is in the file, too
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match="cannot be read"):
        DaskSVC(client=client, checkpoint=path, warm_start=True).fit(X, Y)


def test_a_checkpoint_of_another_fit_is_left_alone(client, tmp_path, caplog):
    path = tmp_path / "fit.checkpoint"
    DaskSVC(client=client, checkpoint=path).fit(X[:50], Y[:50])
    machine = DaskSVC(client=client, checkpoint=path, warm_start=True).fit(X[:60], Y[:60])
    assert machine.report_.converged
    assert "of another fit" in caplog.text


def test_two_fits_at_once(client, answer):
    fits = [in_background(lambda: DaskSVC(**PARAMETERS, client=client).fit(*collections())) for _ in range(2)]
    assert all(is_the_same(fit(), answer) for fit in fits)


def test_a_fit_inside_of_a_task(client, answer):
    def task(rows, labels):
        return DaskSVC(**PARAMETERS).fit(rows, labels).to_local()

    machine = client.submit(task, X, Y).result(timeout=120)
    assert np.abs(machine.decision_function(X) - answer).max() < 1e-6


def test_nothing_is_left_on_the_cluster(client):
    from hinge.dask import hosts

    DaskSVC(client=client).fit(*collections())
    until(lambda: not any(client.run(lambda: len(hosts._shards)).values()))
    until(lambda: not any("hinge" in key for keys in client.has_what().values() for key in keys))


def test_nobody_waits_for_a_worker_that_takes_long_to_begin(client, answer, impatient, monkeypatch):
    """A worker that joins and stands still: the fit goes on with the others, and ends."""
    begun = []

    def join(progress):
        if progress.outer_steps >= 1 and not begun:
            known = set(client.run(os.getpid).values())
            client.cluster.scale(3)
            client.wait_for_workers(3, timeout=60)
            (pid,) = set(client.run(os.getpid).values()) - known
            begun.append(pid)
            os.kill(pid, signal.SIGSTOP)

    machine = DaskSVC(**PARAMETERS, client=client, callback=join)
    fit = in_background(lambda: machine.fit(X, Y))
    try:
        fit()
        assert is_the_same(machine, answer)
        assert machine.report_.cluster.workers == 2
    finally:
        for pid in begun:
            os.kill(pid, signal.SIGCONT)
        client.cluster.scale(2)
        until(lambda: len(client.nthreads()) == 2)
