"""What cannot be trained on a cluster is told in words that name the culprit and the remedy."""

import builtins
import sys

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from workers import two_classes

from hinge import SVC
from hinge.dask import DaskSVC, DaskSVR, presence

N = 400
X, Y = two_classes(N)


def chunked(rows, size=100):
    return da.from_array(rows, chunks=(size, *rows.shape[1:]))


def refused(client, rows, labels, message, error=ValueError, **parameters):
    with pytest.raises(error, match=message):
        DaskSVC(client=client, **parameters).fit(rows, labels)


def test_columns_in_several_blocks(client):
    rows = da.from_array(X, chunks=(100, 3))
    refused(client, rows, chunked(Y), r"2 blocks of columns.*rechunk\(\{1: -1\}\)")


def test_partitions_that_do_not_fit_each_other(client):
    refused(client, chunked(X), chunked(Y, 200), "X has 4 partitions and y has 2")
    uneven = da.from_array(Y, chunks=((99, 101, 100, 100),))
    refused(client, chunked(X), uneven, "partition 0 has 100 samples in X, but 99 in y")


def test_an_entry_that_is_no_number_is_found(client):
    spoilt = X.copy()
    spoilt[217, 2] = np.nan
    refused(client, chunked(spoilt), chunked(Y), r"partition 2, row 17 of it \(row 217 of all\), feature 2")
    frame = dd.from_pandas(pd.DataFrame(spoilt, columns=list("abcdef")), npartitions=4)
    refused(client, frame, dd.from_pandas(pd.Series(Y), npartitions=4), r"row 217 of all\), feature 2 \('c'\)")
    with pytest.raises(ValueError, match="Input y contains NaN or infinity, at position 3"):
        DaskSVR(client=client).fit(chunked(X), chunked(np.where(np.arange(N) == 3, np.nan, 1.0)))


def test_a_partition_of_another_type(client):
    single = X.astype(np.float32)
    mixed = da.concatenate([da.from_array(single[:200], chunks=(100, 6)), da.from_array(X[200:], chunks=(100, 6))])
    blocks = mixed.map_blocks(lambda part, block_info=None: part, dtype=np.float64)
    machine = DaskSVC(client=client, tol=1e-8).fit(blocks, chunked(Y))
    here = SVC(tol=1e-8).fit(np.concatenate([single[:200].astype(float), X[200:]]), Y)
    assert np.abs(machine.decision_function(X) - here.decision_function(X)).max() < 1e-6
    words = dd.from_pandas(pd.DataFrame({"a": X[:, 0], "b": ["word"] * N}), npartitions=2)
    refused(client, words, dd.from_pandas(pd.Series(Y), npartitions=2), "partition 0 of X: could not convert")


def test_a_worker_too_small_for_its_shard(client):
    def swell():
        from hinge.dask import hosts

        hosts.own_bytes_of, hosts._bytes_of = hosts._bytes_of, lambda rows: 10**13

    def shrink():
        from hinge.dask import hosts

        hosts._bytes_of = hosts.own_bytes_of

    client.run(swell)
    try:
        refused(client, chunked(X), chunked(Y), r"partition \d of X: worker tcp.* may use .* MiB", MemoryError)
    finally:
        client.run(shrink)


def test_imports_that_block_each_other_are_tried_again(monkeypatch):
    blocked = type("_DeadlockError", (RuntimeError,), {})  # as Python's import calls it
    usual, tries = builtins.__import__, []

    def importing(name, *arguments):
        if name == "hinge.kernel.shard":
            tries.append(name)
            if len(tries) < 3:
                raise blocked("deadlock detected")
        return usual(name, *arguments)

    class OneWorker:
        is_connected = True

        def workers(self):
            return ["here"]

        def on_all(self, function, cancelled):
            return {"here": function()}

    monkeypatch.setattr(builtins, "__import__", importing)
    presence.check_versions(OneWorker(), presence.Patience())
    assert len(tries) == 3


def test_a_worker_with_another_version(client, monkeypatch):
    monkeypatch.setattr(presence, "__version__", "0.0")
    refused(client, X, Y, r"worker tcp://.* has Hinge .*, this process 0\.0", RuntimeError)


def test_a_worker_without_hinge(client):
    def hide():
        sys.modules["kept hinge"], sys.modules["hinge"] = sys.modules.pop("hinge"), None

    def show():
        sys.modules["hinge"] = sys.modules.pop("kept hinge")

    DaskSVC(client=client).fit(X, Y)
    client.run(hide)
    try:
        refused(client, X, Y, r"worker tcp://.* has no Hinge: install hinge-svm", ModuleNotFoundError)
    finally:
        client.run(show)


def test_parameters_and_arguments(client):
    refused(client, X, Y, "kernel", kernel="precomputed")
    refused(client, X, Y, "solver", solver="smo")
    refused(client, chunked(X), None, "requires y")
    refused("cluster", X, Y, "distributed.Client", TypeError)
    refused(client, chunked(X), chunked(np.ones(N)), "number of classes")
    refused(client, chunked(X)[:0], chunked(Y)[:0], "no rows|at least one")
    machine = DaskSVC(client=client).fit(chunked(X), chunked(Y))
    with pytest.raises(ValueError, match="X has 3 features, but DaskSVC is expecting 6"):
        machine.predict(chunked(X)[:, :3])
