"""``hinge train --memory``: a file larger than memory is trained from the disk, to the same model."""

import errno
import os

import numpy as np
import pytest
import scipy.sparse as sp

from hinge.cli import main
from hinge.data.mapped import Shares
from hinge.data.pages import is_mapped
from hinge.io import DataFileError, read_data, read_libsvm_model, write_data
from hinge.io.svmlight import spool
from hinge.io.svmlight.spool import spool_data

RNG = np.random.default_rng(9)


def decisions(model, X):
    return np.concatenate([np.ravel(values) for _, values in model.decide(X)])


@pytest.fixture(params=[0.8, 0.02], ids=["dense", "sparse"])
def data(request, tmp_path):
    X = sp.random(500, 60, request.param, format="csr", random_state=3)
    X.data = np.round(X.data, 4)
    y = np.where(np.asarray(X @ RNG.normal(size=60)) > 0, 1.0, -1.0)
    write_data(tmp_path / "data", X, y)
    return tmp_path / "data"


def test_a_file_is_read_into_files(data, tmp_path):
    folder = tmp_path / "spool"
    folder.mkdir()
    found, expected = spool_data(str(data), folder), read_data(str(data), zero_based=True)
    rows = found.X.toarray() if sp.issparse(found.X) else found.X
    np.testing.assert_array_equal(rows, expected.X.toarray())
    np.testing.assert_array_equal(found.y, expected.y)
    assert is_mapped(found.X)
    assert sp.issparse(found.X) == (expected.X.nnz < 0.6 * expected.X.shape[0] * expected.X.shape[1])


@pytest.mark.parametrize("content", [b"", b"# nothing\n\n", b"1\n-1\n"])
def test_files_with_hardly_anything(content, tmp_path):
    (tmp_path / "data").write_bytes(content)
    found = spool_data(str(tmp_path / "data"), tmp_path)
    assert found.X.shape[0] == len(found.y) == len(read_data(str(tmp_path / "data")).y)


def test_errors_are_those_of_the_reader(tmp_path):
    (tmp_path / "data").write_bytes(b"1 1:2\n" * 3 + b"1 2:x\n1 3:1 2:1\n")
    for read in (read_data, lambda path: spool_data(path, tmp_path)):
        with pytest.raises(DataFileError) as raised:
            read(str(tmp_path / "data"))
        assert [error.line for error in raised.value.errors] == [4, 5]


@pytest.mark.parametrize("kernel", ["0", "2"])
def test_the_model_is_the_same(data, tmp_path, kernel, monkeypatch):
    monkeypatch.setattr("hinge.data.mapped.SHARES", Shares(in_memory=0.0))
    options = ["train", "-q", "-t", kernel, "-e", "1e-7", "--full-precision"]
    assert main([*options, "--memory", "4GB", str(data), str(tmp_path / "small")]) == 0
    assert main([*options, str(data), str(tmp_path / "large")]) == 0
    small, large = (read_libsvm_model(tmp_path / name) for name in ("small", "large"))
    X = read_data(str(data), zero_based=True).X
    np.testing.assert_allclose(decisions(small, X), decisions(large, X), atol=1e-5)
    assert sorted(os.listdir(tmp_path)) == ["data", "large", "small"], "nothing is left behind"


def test_a_full_disk_is_told_and_nothing_is_left(data, tmp_path, monkeypatch, capsys):
    class Full:
        name = str(tmp_path / "values")

        def write(self, _):
            raise OSError(errno.ENOSPC, "No space left on device")

    write = spool.write
    monkeypatch.setattr(spool, "write", lambda file, values, what: write(Full(), values, what))
    with pytest.raises(SystemExit):
        main(["train", "--memory", "4GB", str(data), str(tmp_path / "model")])
    assert "the disk is full while its samples are written there" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["data"]


def test_ctrl_c_while_reading_leaves_nothing(data, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(spool, "write", interrupted)
    assert main(["train", "--memory", "4GB", str(data), str(tmp_path / "model")]) == 1
    assert os.listdir(tmp_path) == ["data"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--memory", "10MB"], "at the least"),
        (["--memory", "2GB", "-v", "3"], "one model"),
        (["--memory", "2GB", "-b", "1"], "one model"),
        (["--memory", "much"], "a size such as 500MB"),
        (["--memory", "2GB", "--tmp", "/nowhere"], "cannot write a temporary file to /nowhere"),
    ],
)
def test_what_cannot_be_is_said(data, tmp_path, options, told, capsys):
    with pytest.raises(SystemExit):
        main(["train", *options, str(data), str(tmp_path / "model")])
    assert told in capsys.readouterr().err
