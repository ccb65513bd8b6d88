"""``hinge train --scheduler`` and ``hinge predict --scheduler``: the models and predictions of one computer."""

import json
import os
import signal
import socket
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from workers import kill, two_classes, until

from hinge.cli import main
from hinge.dask import presence, sessions
from hinge.io import read_libsvm_model, write_data

X, Y = two_classes(1500)
X = np.round(X, 4)
FORMS = {
    "dense": X,
    "sparse": np.where(np.random.default_rng(1).random((1500, 40)) < 0.1, np.tile(X, 7)[:, :40], 0.0),
    "bits": (np.random.default_rng(3).random((1500, 24)) < 0.4).astype(float),
}
TARGETS = np.round(X[:, 0] ** 2 + np.sin(X[:, 1]), 4)
CLASSES = np.digitize(X[:, 0] + X[:, 1] ** 2, [0.0, 1.0, 2.0]) * 3 - 2


def in_parts(folder, rows, labels, n_parts=3):
    """Write the samples as several files and as one; return the names."""
    rows = sp.csr_array(rows)
    cuts = np.linspace(0, len(labels), n_parts + 1).astype(int)
    parts = [folder / f"part-{k}.svm" for k in range(n_parts)]
    for path, start, stop in zip(parts, cuts[:-1], cuts[1:], strict=True):
        write_data(path, rows[start:stop], labels[start:stop])
    (folder / "whole").write_bytes(b"".join(path.read_bytes() for path in parts))
    return [str(path) for path in parts], str(folder / "whole")


@pytest.fixture
def hinge(client, capsys, tmp_path, monkeypatch):
    """A function that runs a command with the scheduler of the tests; returns exit code, output and errors."""
    monkeypatch.chdir(tmp_path)

    def run(command, *words, address=client.scheduler.address):
        capsys.readouterr()
        where = ["--scheduler", address] if address else []
        try:
            code = main([command, *where, *[str(word) for word in words]])
        except SystemExit as leaving:
            code = leaving.code
        return code, *capsys.readouterr()

    return run


@pytest.mark.parametrize(
    ("form", "labels", "options"),
    [
        ("dense", Y, ["-c", "5"]),
        ("sparse", Y, ["-t", "0", "-c", "0.3"]),
        ("bits", CLASSES, ["-g", "0.1", "-w1", "3"]),
        ("dense", TARGETS, ["-s", "3", "-p", "0.05"]),
        ("dense", Y, ["-s", "2", "-n", "0.2"]),
        ("dense", Y, ["-s", "1", "-n", "0.3"]),
    ],
)
def test_model_and_predictions_are_those_of_one_computer(hinge, tmp_path, form, labels, options):
    parts, whole = in_parts(tmp_path, FORMS[form], labels)
    common = [*options, "-e", "1e-7", "--full-precision"]
    code, out, err = hinge("train", *common, *parts, "there")
    assert (code, err) == (0, "")
    assert "cluster: 2 workers with 3 shards" in out
    assert hinge("train", *common, whole, "here", address=None)[0] == 0
    here, there = read_libsvm_model("here"), read_libsvm_model("there")
    assert there.kernel == here.kernel
    rows = sp.csr_matrix(FORMS[form])
    rows = sp.csr_matrix((rows.data, rows.indices + 1, rows.indptr), shape=(rows.shape[0], rows.shape[1] + 1))
    values = [np.concatenate([found for _, found in model.decide(rows)]) for model in (here, there)]
    assert np.abs(values[0] - values[1]).max() < 1e-6 * max(1.0, np.abs(values[0]).max())
    code, told, _ = hinge("predict", "--decision-values", "values", *parts, "here", "predicted")
    assert code == 0
    assert told == hinge("predict", whole, "here", "expected", address=None)[1]
    assert (tmp_path / "predicted").read_text() == (tmp_path / "expected").read_text()
    np.testing.assert_allclose(np.loadtxt("values", ndmin=2), values[0], atol=1e-9 * np.abs(values[0]).max())


def test_patterns_and_figures(hinge, tmp_path):
    in_parts(tmp_path, X, Y)
    code, out, _ = hinge("train", "--json", "--report", "figures", "part-*.svm", "model")
    assert code == 0
    figures = json.loads(out)
    assert figures["data_file"] == ["part-*.svm"]
    assert figures["n_samples"] == 1500
    assert figures["cluster"]["workers"] == 2
    assert json.loads((tmp_path / "figures").read_text())["machines"][0]["status"] == "converged"
    code, out, _ = hinge("predict", "--json", "part-*.svm", "model", "out")
    assert json.loads(out)["n_samples"] == 1500


def test_probabilities_of_a_model_that_has_some(hinge, tmp_path):
    parts, whole = in_parts(tmp_path, X, CLASSES)
    hinge("train", "-q", "-b", "1", whole, "model", address=None)
    assert hinge("predict", "-b", "1", *parts, "model", "there")[0] == 0
    hinge("predict", "-b", "1", whole, "model", "here", address=None)
    assert (tmp_path / "there").read_text() == (tmp_path / "here").read_text()


def test_a_worker_that_dies_while_it_predicts(hinge, client, tmp_path, monkeypatch):
    parts, whole = in_parts(tmp_path, X, Y, 12)
    hinge("train", "-q", whole, "model", address=None)
    wait_for, killed = sessions.Cluster.wait_for, []

    def and_kill(cluster, futures, *rest):
        if not killed and "decide_part" in str(futures[0].key):
            killed.append(True)
            kill(client)
        return wait_for(cluster, futures, *rest)

    monkeypatch.setattr(sessions.Cluster, "wait_for", and_kill)
    assert hinge("predict", *parts, "model", "there")[0] == 0
    assert killed
    hinge("predict", whole, "model", "here", address=None)
    assert (tmp_path / "there").read_text() == (tmp_path / "here").read_text()
    until(lambda: len(client.nthreads()) == 2)


def test_the_limit_of_time_writes_the_best_model(hinge, tmp_path):
    rows, labels = two_classes(6000)
    parts, _ = in_parts(tmp_path, rows, labels)
    code, _, err = hinge("train", "-c", "1e5", "-e", "1e-9", "--time-limit", "1", *parts, "model")
    assert code == 0 or "was not replaced" in err
    assert "did not converge (time_limit)" in err


def test_ctrl_c_writes_nothing(hinge, tmp_path, monkeypatch):
    parts, _ = in_parts(tmp_path, X, Y)
    ready = sessions.Session.ready

    def press(session, gram):
        found = ready(session, gram)
        os.kill(os.getpid(), signal.SIGINT)
        return found

    monkeypatch.setattr(sessions.Session, "ready", press)
    code, _, err = hinge("train", *parts, "model")
    assert code == 1
    assert "interrupted" in err
    assert not (tmp_path / "model").exists()


# ---------------------------------------------------------------------- what cannot be


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["-v", "3", "part-0.svm", "model"], "one model on features"),
        (["-b", "1", "part-0.svm", "model"], "one model on features"),
        (["-s", "5", "part-0.svm", "model"], "one model on features"),
        (["-t", "4", "part-0.svm", "model"], "one model on features"),
        (["--solver", "smo", "part-0.svm", "model"], "neither --memory nor --solver smo"),
        (["--memory", "1GB", "part-0.svm", "model"], "neither --memory nor --solver smo"),
        (["part-0.svm"], "model_file is missing"),
        (["part-0.svm", "part-1.svm"], "part-1.svm is there and is no model"),
        (["-", "model"], "workers find by name, and not -"),
        (["table.csv", "model"], "workers find by name, and not table.csv"),
        (["--label", "1", "part-0.svm", "model"], "--label is for tables"),
        (["nowhere-*.svm", "model"], "no file is called nowhere-*.svm"),
        (["broken.svm", "model"], "Wrong input format at line 2"),
        (["empty.svm", "model"], "empty.svm holds no samples"),
    ],
)
def test_what_cannot_be_trained_is_said(hinge, tmp_path, words, told):
    in_parts(tmp_path, X[:30], Y[:30])
    (tmp_path / "broken.svm").write_text("1 1:2\n1 2:x\n")
    (tmp_path / "empty.svm").write_text("")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    code, out, err = hinge("train", *words)
    assert (code, out) == (1, "")
    assert told in err
    assert "Traceback" not in err
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_rankings_and_kernel_matrices_are_not_predicted(hinge, tmp_path):
    (tmp_path / "ranked").write_text("".join(f"{k % 3} qid:{k // 6} 1:{k % 7} 2:{k % 5}\n" for k in range(60)))
    assert hinge("train", "-q", "-s", "6", "ranked", "model", address=None)[0] == 0
    code, _, err = hinge("predict", "ranked", "model", "out")
    assert code == 1
    assert "no rankings" in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["train", "predict"])
def test_no_scheduler_there(hinge, tmp_path, command, monkeypatch):
    monkeypatch.setattr("hinge.dask.adapter._CONNECT", 1.0)
    (parts, whole), more = in_parts(tmp_path, X, Y), ["out"] if command == "predict" else []
    hinge("train", "-q", whole, "model", address=None)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    code, out, err = hinge(command, *parts, "model", *more, address=address)
    assert (code, out) == (1, "")
    assert f"hinge {command}: no scheduler answers at {address}" in err
    assert hinge(command, *parts, "model", *more, address="nonsense://x")[0] == 1


def test_another_version_on_the_workers(hinge, tmp_path, monkeypatch):
    parts, _ = in_parts(tmp_path, X, Y)
    monkeypatch.setattr(presence, "__version__", "0.0")
    code, _, err = hinge("train", *parts, "model")
    assert code == 1
    assert "hinge train: worker tcp://" in err
    assert "this process 0.0: install the same everywhere" in err


def test_no_workers(hinge, tmp_path, monkeypatch):
    from distributed import LocalCluster

    parts, _ = in_parts(tmp_path, X, Y)
    monkeypatch.setattr(presence.Patience, "__init__", lambda self: None)
    monkeypatch.setattr(presence.Patience, "for_workers", 1.0, raising=False)
    with LocalCluster(n_workers=0, processes=True, dashboard_address=":0", silence_logs=False) as empty:
        code, _, err = hinge("train", *parts, "model", address=empty.scheduler_address)
    assert code == 1
    assert "hinge train: the cluster has had no worker for 1 s" in err


def test_dask_is_missing(hinge, monkeypatch, tmp_path):
    in_parts(tmp_path, X[:30], Y[:30])
    monkeypatch.setitem(sys.modules, "distributed", None)
    code, _, err = hinge("train", "part-0.svm", "model")
    assert code == 1
    assert "pip install 'hinge-svm[cluster]'" in err
