"""``hinge cluster``: workers that are there until Ctrl-C, and clear words where they cannot be."""

import os
import signal
import socket
import subprocess
import sys

import pytest

pytest.importorskip("distributed")


def test_a_cluster_until_ctrl_c():
    from distributed import Client

    words = [sys.executable, "-m", "hinge.cli", "cluster", "--workers", "2", "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        address = process.stdout.readline().split()[1]
        assert "2 processes" in process.stdout.readline()
        with Client(address, timeout=30) as client:
            workers = client.run(os.getpid)
            assert len(set(workers.values()) | {os.getpid(), process.pid}) == 4
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "the cluster has ended" in told
    assert "Traceback" not in told
    for pid in workers.values():
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_port_that_is_taken(hinge):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        result = hinge("cluster", "--port", taken.getsockname()[1])
    assert result.code == 1
    assert "--port 0 takes a free one" in result.err


def test_dask_is_missing(hinge, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    result = hinge("cluster")
    assert result.code == 1
    assert "pip install 'hinge-svm[cluster]'" in result.err
