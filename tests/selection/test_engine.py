"""The same units on threads, joblib's workers and a Dask cluster: one table, whatever dies on the way."""

import os
import threading
import time

import numpy as np
import pytest
import scorers
from cluster import Cluster, Wire

from hinge import SVC
from hinge.cli import main
from hinge.selection import GridSearch, Job, plan, run_units

distributed = pytest.importorskip("distributed")


def make_job(scorer=scorers.n_right, n=120, n_features=5):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(n) < 0.5, 0, 1)
    X = rng.normal(size=(n, n_features))
    X[:, :5] += 0.7 * y[:, None]
    fold = np.arange(n) % 4
    splits = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(4)]
    return Job(SVC(tol=1e-6), X, y, splits, scorer, error_score="raise")


def make_units(n_gammas=4):
    return plan(SVC(), [{"C": 2.0**c, "gamma": 2.0**g} for g in range(-n_gammas, 0) for c in (-2, 0, 2)])


def table_of(cells):
    cells = list(cells)
    assert len({cell.index for cell in cells}) == len(cells)
    return {cell.index: (cell.params, cell.test_scores) for cell in cells}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A scheduler and two workers, which keep what they copied until it is no longer wanted."""
    keep_copies = {"DASK_DISTRIBUTED__SCHEDULER__ACTIVE_MEMORY_MANAGER__START": "False"}
    made = Cluster(tmp_path_factory.mktemp("cluster"), **keep_copies)
    made.add_worker()
    made.add_worker()
    yield made
    made.close()


@pytest.fixture(scope="module")
def expected():
    """The table of this process."""
    return table_of(run_units(make_job(), make_units()))


def test_threads(expected):
    told = []
    cells = run_units(make_job(), make_units(), n_jobs=3, on_cell=told.append)
    assert table_of(cells) == expected == table_of(told)


def test_stopped_search_stops_its_threads():
    told = []

    def stop(cell):
        told.append(cell)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(run_units(make_job(scorers.slowly), make_units(8), n_jobs=2, on_cell=stop))
    assert len(told) <= 2


def test_loky(expected):
    told = []
    assert table_of(run_units(make_job(), make_units(), "loky", 2, told.append)) == expected == table_of(told)


def test_loky_worker_that_dies(tmp_path, expected):
    job = make_job(scorers.DeadlyOnce(str(tmp_path / "dead")))
    assert table_of(run_units(job, make_units(), "loky", 2)) == expected
    assert (tmp_path / "dead").exists()


def test_dask_cluster_by_address_and_by_client(cluster, expected):
    told = []
    assert (
        table_of(run_units(make_job(), make_units(), cluster.address, 1, told.append))
        == expected
        == table_of(told)
    )
    with distributed.Client(cluster.address, set_as_default=True) as client:
        assert table_of(run_units(make_job(), make_units(), client)) == expected
        assert table_of(run_units(make_job(), make_units(), "dask")) == expected


def test_grid_search_on_a_cluster(cluster):
    job = make_job()
    grid = {"C": [0.5, 2.0], "gamma": [0.1, 0.4]}
    here, there = (
        GridSearch(SVC(tol=1e-6), grid, cv=job.splits, engine=engine).fit(job.X, job.y)
        for engine in (None, cluster.address)
    )
    assert there.best_params_ == here.best_params_
    assert there.cv_results_["mean_test_score"].tolist() == here.cv_results_["mean_test_score"].tolist()


def test_command_on_a_cluster(cluster, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    job = make_job()
    rows = [" ".join(f"{j + 1}:{v:.6g}" for j, v in enumerate(row)) for row in job.X]
    (tmp_path / "data").write_text("".join(f"{label} {row}\n" for label, row in zip(job.y, rows, strict=True)))
    words = ["grid", "-log2c", "-1,3,2", "-log2g", "-1,-5,-2", "-gnuplot", "null"]
    assert main([*words, "-out", "alone.out", "data"]) == 0
    assert main([*words, "-out", "cluster.out", "--cluster", cluster.address, "data"]) == 0
    assert "[cluster] 1.0 -3.0 " in capsys.readouterr().out
    tables = [sorted((tmp_path / name).read_text().splitlines()) for name in ("alone.out", "cluster.out")]
    assert tables[0] == tables[1]


def test_cells_come_back_while_their_unit_runs(cluster):
    arrivals = []
    units = make_units(1)
    list(
        run_units(
            make_job(scorers.slowly), units, cluster.address, 1, lambda cell: arrivals.append(time.monotonic())
        )
    )
    assert len(arrivals) == 3
    assert arrivals[-1] - arrivals[0] > 0.2  # three cells of four folds, each of which sleeps


def test_failures_on_a_worker_come_back(cluster):
    with pytest.raises(ZeroDivisionError, match="this scorer fails"):
        list(run_units(make_job(scorers.failing), make_units(), cluster.address))


@pytest.mark.slow
def test_data_is_sent_once_per_worker(cluster):
    # 16 MB, and units long enough that the scheduler finds copying them to an idle worker worth while.
    job = make_job(scorers.slowly, n=100, n_features=20_000)
    size = job.X.nbytes
    wire = Wire(cluster.address)
    cluster.add_worker(wire.address)  # what this worker exchanges with the scheduler passes the wire
    with distributed.Client(wire.address, set_as_default=False) as client:
        client.wait_for_workers(3, timeout=60)
        list(run_units(job, make_units(12), client))
        logs = client.run(_transfers)
    to, back = wire.to, wire.back
    wire.close()
    cluster.kill_worker(-1)
    # From the client once; to the worker once at most, though there were twelve units.
    assert size <= to < 1.2 * size
    assert back < 1.2 * size
    # From worker to worker once, too.
    assert any(logs.values())
    assert all(len(keys) == len(set(keys)) for keys in logs.values())


def _transfers(dask_worker):
    """What came from other workers."""
    return [key for entry in dask_worker.transfer_incoming_log for key in entry["keys"]]


@pytest.mark.slow
def test_workers_that_come_and_die(tmp_path):
    enough = tmp_path / "enough"
    job, units = make_job(scorers.SlowlyUntil(str(enough))), make_units(12)
    made = Cluster(tmp_path)
    told = []

    def kill_at_the_first_news(cell):
        """The oldest worker dies, in the middle of its next cell, and a new one comes; then the other dies."""
        told.append(cell)
        if len(told) in (1, 2):
            made.kill_worker()
            made.add_worker()
        if len(told) == 2:
            enough.touch()

    try:
        made.add_worker()
        made.add_worker()
        table = table_of(run_units(job, units, made.address, 1, kill_at_the_first_news))
    finally:
        made.close()
    assert len(told) == 36
    assert table == table_of(run_units(make_job(), units))


@pytest.mark.slow
def test_units_that_kill_their_workers_are_found_out(tmp_path, monkeypatch):
    monkeypatch.setattr("hinge.selection.engines.dask_cluster._MOST_TRIES", 1)
    made = Cluster(tmp_path, DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="0")
    stop = threading.Event()

    def keep_alive():
        while not stop.wait(0.2):
            made.workers = [worker for worker in made.workers if worker.poll() is None]
            while len(made.workers) < 2:
                made.add_worker()

    keeper = threading.Thread(target=keep_alive)
    keeper.start()
    try:
        with pytest.raises(RuntimeError, match=r"workers of tcp.* die, time after time"):
            list(run_units(make_job(scorers.deadly), make_units(1), made.address))
    finally:
        stop.set()
        keeper.join()
        made.close()


def test_no_scheduler_is_said_at_once(monkeypatch):
    monkeypatch.setattr("hinge.selection.engines.dask_cluster._CONNECT_SECONDS", 0.5)
    with pytest.raises(ConnectionError, match=r"no Dask scheduler answers at tcp://127.0.0.1:9; start one"):
        list(run_units(make_job(), make_units(), "tcp://127.0.0.1:9"))


def test_engines_that_do_not_exist():
    with pytest.raises(ValueError, match="neither a backend of joblib nor an address"):
        list(run_units(make_job(), make_units(), "cloud"))
    with pytest.raises(TypeError, match="engine must be"):
        list(run_units(make_job(), make_units(), 3))


def test_ray(expected):
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": _paths()})
    try:
        assert table_of(run_units(make_job(), make_units(), "ray", 2)) == expected
    finally:
        ray.shutdown()


def _paths():
    import sys

    return {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
