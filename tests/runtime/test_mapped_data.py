"""Data in mapped files: fitted within a budget of resident memory, with the answers of data in memory."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from hinge import SVC, SVR, Gram, Kernel, OneClassSVM
from hinge.data.mapped import MappedSamples, Shares
from hinge.data.pages import Pages, gather, is_mapped, rows_of
from hinge.data.storage import store
from reference import kernel_matrix

RNG = np.random.default_rng(4)
needs_proc = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peaks are told by Linux")


@pytest.fixture
def stay(monkeypatch):
    """Let any data in a mapped file stay there, however much memory there is for kernel values."""
    monkeypatch.setattr("hinge.data.mapped.SHARES", Shares(in_memory=0.0))


def mapped(array, folder, name="rows"):
    path = folder / name
    array.tofile(path)
    return np.memmap(path, array.dtype, "r", shape=array.shape)


def mapped_csr(matrix, folder):
    values, columns = mapped(matrix.data, folder, "values"), mapped(matrix.indices, folder, "columns")
    return sp.csr_matrix((values, columns, matrix.indptr), shape=matrix.shape)


def samples(n=2000, d=80):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.normal(size=n)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "laplacian"])
def test_answers_are_those_of_data_in_memory(stay, tmp_path, kernel, dtype):
    X, f = samples()
    X = X.astype(dtype)
    y, file = f > 1, mapped(X, tmp_path)
    expected = SVC(kernel=kernel, tol=1e-7).fit(X, y)
    found = SVC(kernel=kernel, tol=1e-7, cache_size=8).fit(file, y)
    assert "file" in found.report_.storage
    assert "file" not in expected.report_.storage
    assert found._gamma == pytest.approx(expected._gamma, rel=1e-12)
    queries = X[:300].astype(np.float64)
    scale = np.abs(expected.decision_function(queries)).max()
    np.testing.assert_allclose(
        found.decision_function(queries), expected.decision_function(queries), atol=1e-6 * scale
    )
    assert found.certificate(X, y).proves(1e-6)


@pytest.mark.parametrize("machine", [SVR(), OneClassSVM(nu=0.2), SVC()], ids=["svr", "one class", "three classes"])
def test_other_machines(stay, tmp_path, machine):
    X, f = samples()
    y = np.digitize(f, [0.0, 1.5]) if isinstance(machine, SVC) else f
    expected = machine.set_params(tol=1e-7).fit(X, y)
    decide = expected.decision_function if hasattr(machine, "decision_function") else expected.predict
    before = decide(X[:300])
    machine.set_params(cache_size=8).fit(mapped(X, tmp_path), y)
    assert "file" in machine.report_.storage
    np.testing.assert_allclose(decide(X[:300]), before, atol=1e-4)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "chi2"])
def test_sparse_rows(stay, tmp_path, kernel):
    X = sp.random(1500, 1200, 0.06, format="csr", random_state=5)
    y = np.asarray(X @ np.random.default_rng(6).normal(size=1200)) > 0
    expected = SVC(kernel=kernel, tol=1e-7).fit(X, y)
    found = SVC(kernel=kernel, tol=1e-7, cache_size=64).fit(mapped_csr(X, tmp_path), y)
    assert found.report_.storage == "sparse, read from a file"
    np.testing.assert_allclose(found.decision_function(X), expected.decision_function(X), atol=1e-5)


def test_small_files_are_data_in_memory(tmp_path):
    X, f = samples()
    assert SVC().fit(mapped(X, tmp_path), f > 1).report_.storage == "dense"


def test_zeros_and_ones_become_bits(stay, tmp_path):
    X, f = samples()
    ones = mapped((X > 1).astype(np.float32), tmp_path)
    assert SVC(cache_size=0.1).fit(ones, f > 1).report_.storage == "bits"


def test_bad_values_are_named(stay, tmp_path):
    X, f = samples()
    X[1234, 7] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        SVC(cache_size=8).fit(mapped(X, tmp_path), f > 1)
    with pytest.raises(ValueError, match=r"\(1234, 7\)"):
        store(mapped(X, tmp_path), Kernel("rbf"), 2**23)


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("sparse_input", [True, False], ids=["csr", "array"])
def test_a_storage_in_a_file_answers_as_one_in_memory(tmp_path, form, sparse_input):
    X = np.where(RNG.random((300, 50)) < 0.2, RNG.normal(size=(300, 50)), 0.0)
    file = mapped_csr(sp.csr_matrix(X), tmp_path) if sparse_input else mapped(X, tmp_path)
    rows = MappedSamples(file, form, 2**18)
    kernel = Kernel("rbf", gamma=0.02)
    index = RNG.permutation(300)
    part = rows.take(index[:200], np.float64)
    assert isinstance(part, MappedSamples)
    few = part.take(np.arange(9)[::-1], np.float64)
    for stored, expected in ((rows, X), (part, X[index[:200]]), (few, X[index[8::-1]])):
        found = np.empty((7, stored.n))
        panel = stored.panel(np.arange(7), np.float64)
        stored.compare("dot", panel, 0, stored.n, found)
        np.testing.assert_allclose(found, expected[:7] @ expected.T, atol=1e-12)
        np.testing.assert_allclose(stored.squared_norms(np.float64), (expected**2).sum(axis=1))
        np.testing.assert_allclose(stored.absolute_sums(), np.abs(expected).sum(axis=1))
        factors = RNG.random(stored.n)
        everyone = np.arange(stored.n)
        np.testing.assert_allclose(stored.combine(everyone, factors), factors @ expected, atol=1e-12)
        image = stored.project(expected[0], 3, stored.n)
        np.testing.assert_allclose(image, expected[3:] @ expected[0], atol=1e-12)
        np.testing.assert_allclose(
            np.tril(stored.moments(everyone, factors)), np.tril((expected.T * factors) @ expected), atol=1e-12
        )
    gram = Gram(file, kernel, cache_bytes=2**17, precision="double")
    support = np.zeros(300)
    support[index[:40]] = RNG.normal(size=40)
    exact = kernel_matrix("rbf", X, X, gamma=0.02) @ support
    np.testing.assert_allclose(gram.product(support), exact, atol=1e-12)
    np.testing.assert_allclose(gram.sharp_product(support, index[:30]).sum(axis=0), exact[index[:30]], atol=1e-12)


def test_rows_are_gathered_in_any_order(tmp_path):
    X = RNG.normal(size=(500, 20))
    file, places = mapped(X, tmp_path), RNG.integers(0, 500, 200)
    np.testing.assert_array_equal(gather(file, places, Pages(file)), X[places])
    np.testing.assert_array_equal(rows_of(file, places, room=100), X[places])
    assert is_mapped(rows_of(file, places, room=100))
    assert not is_mapped(rows_of(file, places))
    S = sp.csr_matrix(np.where(X > 1, X, 0))
    (rows,) = (gather(mapped_csr(S, tmp_path), places, Pages(file)),)
    np.testing.assert_array_equal(rows.toarray(), S[places].toarray())


def test_what_a_process_changed_in_its_own_copy_stays(tmp_path):
    X, f = samples()
    path = tmp_path / "rows"
    X.tofile(path)
    own = np.memmap(path, np.float64, "c", shape=X.shape)
    own[0] = 7.0
    assert not is_mapped(own)
    SVC(cache_size=8).fit(own, f > 1)
    assert (own[0] == 7.0).all()


_FIT = """
import gc, json, sys
import numpy as np
from hinge import SVC
path, kernel, dtype, n, d = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
X, y = np.memmap(path, dtype, "r", shape=(n, d)), np.load(path + ".npy", mmap_mode="r")
machine = SVC(kernel=kernel, gamma=0.3 / d, cache_size=24, n_jobs=2)
few = 26 * 2**20 // (d * X.dtype.itemsize)
machine.fit(X[:few], y[:few])  # what is compiled does not count

def figure(name):
    return next(int(line.split()[1]) / 1024 for line in open("/proc/self/status") if line.startswith(name))

gc.collect()
open("/proc/self/clear_refs", "w").write("5")
before = figure("VmRSS")
machine.fit(X, y)
peak = figure("VmHWM") - before
print(json.dumps([peak, machine.report_.storage, machine.report_.converged, machine.report_.objective]))
"""


@needs_proc
@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "dtype"), [("linear", "float64"), ("rbf", "float32")])
def test_resident_memory_stays_within_the_budget(tmp_path, kernel, dtype):
    d = 400
    n = 40 * 2**20 // (d * np.dtype(dtype).itemsize)
    rows, labels, plane = tmp_path / "rows", [], RNG.normal(size=d) / d**0.5
    with rows.open("wb") as file:
        for _ in range(0, n, 1024):
            part = RNG.normal(size=(1024, d)).astype(dtype)
            part.tofile(file)
            labels.append(part @ plane + 0.02 * RNG.normal(size=1024) > 0)
    y = np.concatenate(labels)[:n]
    np.save(f"{rows}.npy", y)
    command = [sys.executable, "-c", textwrap.dedent(_FIT), str(rows), kernel, dtype, str(n), str(d)]
    peak, storage, converged, objective = json.loads(subprocess.check_output(command, text=True))
    assert storage == "dense, read from a file"
    assert converged
    assert peak < 24, "the file has 40 MB"
    X = np.fromfile(rows, dtype, n * d).reshape(n, d)
    assert objective == pytest.approx(SVC(kernel=kernel, gamma=0.3 / d).fit(X, y).report_.objective, rel=1e-4)
