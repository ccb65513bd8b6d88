"""Machines trained on a cluster are those that are trained on one computer."""

import pickle

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_blobs
from workers import two_classes

from hinge import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from hinge.dask import DaskNuSVC, DaskNuSVR, DaskOneClassSVM, DaskSVC, DaskSVR

TIGHT = {"tol": 1e-9}
N = 2400
X, Y = two_classes(N)
NUMBERS = X[:, 0] ** 2 + np.sin(X[:, 1])
KINDS = {
    "C": (DaskSVC, SVC, {"C": 5.0}, Y),
    "nu": (DaskNuSVC, NuSVC, {"nu": 0.3}, Y),
    "epsilon": (DaskSVR, SVR, {"epsilon": 0.05, "C": 2.0}, NUMBERS),
    "nu regression": (DaskNuSVR, NuSVR, {"nu": 0.4}, NUMBERS),
    "one class": (DaskOneClassSVM, OneClassSVM, {"nu": 0.2}, None),
}
FORMS = {
    "dense": X,
    "single": X.astype(np.float32),
    "sparse": sp.csr_array(np.where(np.random.default_rng(1).random((N, 40)) < 0.08, np.tile(X, 7)[:, :40], 0.0)),
    "bits": (np.random.default_rng(3).random((N, 24)) < 0.4).astype(float),
}


def decisions(machine, rows):
    answer = machine.decision_function if hasattr(machine, "decision_function") else machine.predict
    return answer(rows)


@pytest.mark.parametrize(
    ("kind", "form"),
    [*((kind, "dense") for kind in KINDS), ("C", "single"), ("epsilon", "sparse"), ("one class", "bits")],
)
def test_the_answer_is_that_of_one_computer(client, kind, form):
    theirs, ours, parameters, y = KINDS[kind]
    rows = FORMS[form]
    here = ours(**parameters, **TIGHT).fit(rows, y)
    there = theirs(**parameters, **TIGHT, client=client).fit(rows, y)
    assert there.report_.converged
    assert there.report_.violation <= 1e-9
    assert there._gamma == here._gamma
    assert np.abs(decisions(here, rows) - decisions(there, rows)).max() < 1e-6
    assert there.to_local().certificate(rows, y).violation < 1.1e-9
    assert (there.report_.cluster.workers, there.report_.cluster.shards) == (2, 8)


@pytest.mark.parametrize("chunks", [(N,), (1, 2, 2000, 397), (480,) * 5])
def test_partitions_do_not_matter(client, chunks):
    here = SVC(C=5.0, **TIGHT).fit(X, Y)
    rows, labels = da.from_array(X, chunks=(chunks, 6)), da.from_array(Y, chunks=(chunks,))
    there = DaskSVC(C=5.0, **TIGHT, client=client).fit(rows, labels)
    assert there._gamma == here._gamma
    assert np.array_equal(there.support_, here.support_)
    answers = there.decision_function(rows)
    assert answers.chunks == (chunks,)
    assert np.abs(answers.compute() - here.decision_function(X)).max() < 1e-6
    assert there.score(rows, labels) == here.score(X, Y)


def test_five_workers(five):
    here = SVC(C=5.0, **TIGHT).fit(X, Y)
    there = DaskSVC(C=5.0, **TIGHT, client=five).fit(X, Y)
    assert there.report_.cluster.workers == 5
    assert np.abs(decisions(here, X) - decisions(there, X)).max() < 1e-6


def test_unknown_and_empty_chunks(client):
    rows, labels = da.from_array(X, chunks=(480, 6)), da.from_array(Y, chunks=480)
    chosen = (rows[:, 0] > 0) & (da.arange(N, chunks=480) > 600)  # nothing is left of the first chunk
    there = DaskSVC(C=5.0, **TIGHT, client=client).fit(rows[chosen], labels[chosen])
    kept = (X[:, 0] > 0) & (np.arange(N) > 600)
    here = SVC(C=5.0, **TIGHT).fit(X[kept], Y[kept])
    assert np.abs(decisions(here, X) - decisions(there, X)).max() < 1e-6
    assert len(there.predict(rows[chosen]).compute()) == kept.sum()


def test_weights_and_classes_in_one_partition_only(client):
    rows, codes = make_blobs(1500, centers=4, cluster_std=3.0, random_state=0)
    order = np.argsort(codes, kind="stable")
    rows, names = rows[order], np.array(["d", "a", "c", "b"])[codes[order]]
    weights = np.random.default_rng(2).integers(0, 3, 1500).astype(float)
    common = {"class_weight": {"a": 2.0}, "probability": True, "random_state": 0, **TIGHT}
    here = SVC(**common).fit(rows, names, weights)
    collections = [da.from_array(one, chunks=(500, *one.shape[1:])) for one in (rows, names, weights)]
    there = DaskSVC(**common, client=client).fit(*collections)
    assert there.classes_.tolist() == ["a", "b", "c", "d"]
    assert np.array_equal(there.class_weight_, here.class_weight_)
    assert np.array_equal(there.support_, here.support_)
    assert np.abs(there.predict_proba(collections[0]).compute() - here.predict_proba(rows)).max() < 1e-5
    assert there.predict_proba(collections[0]).shape == (1500, 4)


def test_data_frames_keep_names_and_index(client):
    frame = pd.DataFrame(X, columns=list("abcdef"), index=np.arange(N) * 2)
    labels = pd.Series(np.where(Y > 0, "yes", "no"), index=frame.index, name="label")
    frames, series = dd.from_pandas(frame, npartitions=3), dd.from_pandas(labels, npartitions=3)
    there = DaskSVC(client=client).fit(frames, series)
    here = SVC().fit(frame, labels)
    assert there.feature_names_in_.tolist() == list("abcdef")
    answers = there.predict(frames)
    assert isinstance(answers, dd.Series)
    found = answers.compute()
    assert found.index.equals(frame.index)
    assert (found == here.predict(frame)).all()
    with pytest.raises(ValueError, match="feature names"):
        there.predict(frames.rename(columns={"a": "x"}))
    wide = DaskSVC(client=client, decision_function_shape="ovr").fit(frames, dd.from_pandas(
        pd.Series(np.digitize(X[:, 0], [-0.5, 0.5]), index=frame.index), npartitions=3
    ))  # fmt: skip
    scores = wide.decision_function(frames)
    assert list(scores.columns) == [0, 1, 2]
    assert np.abs(scores.compute().to_numpy() - wide.to_local().decision_function(frame)).max() < 1e-12


def test_local_machines_and_copies(client):
    machine = DaskSVC(C=2.0, client=client).fit(X, Y)
    local = machine.to_local()
    assert type(local) is SVC
    assert local.get_params() == SVC(C=2.0).get_params()
    assert np.array_equal(pickle.loads(pickle.dumps(local)).predict(X), machine.predict(X))
    again = pickle.loads(pickle.dumps(machine))
    assert again.client is None
    assert np.array_equal(again.predict(X), machine.predict(X))
    assert clone(machine).get_params()["client"] is client


def test_small_data_is_told_that_one_computer_is_faster(client):
    machine = DaskSVC(client=client).fit(X[:100], Y[:100])
    assert "one computer would be faster" in machine.report_.reason
    assert "2 workers" in str(machine.report_)


def test_data_of_a_collection_stays_on_the_workers(client):
    """Neither the samples nor their kernel values come here: support vectors do, and a number for each sample."""

    def made(block):
        rng = np.random.default_rng(int(block[0, 0]))
        rows = rng.standard_normal((len(block), 200)).astype(np.float32)
        rows[:, 0] = np.where(rows[:, 0] > 0, 40.0, -40.0) + rows[:, 1]
        return rows

    seeds = da.arange(8, chunks=1)[:, None].repeat(3000, axis=0).rechunk((3000, 1))
    rows = seeds.map_blocks(made, chunks=(seeds.chunks[0], (200,)), dtype=np.float32)
    machine = DaskSVC(client=client).fit(rows, (rows[:, 0] > 0).astype(int))
    work, size = machine.report_.cluster, rows.size * 4
    assert machine.report_.converged
    assert machine.support_vectors_.dtype == np.float32
    assert work.bytes_received < size / 4
    assert work.bytes_sent < size / 4
