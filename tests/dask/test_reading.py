"""Files in parts: what `read_svmlight` makes of them is what the local reader makes of the whole."""

import gzip

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from hinge.dask import DaskSVC, read_svmlight
from hinge.dask.reading import Part
from hinge.io import DataFileError, read_data, write_data

RNG = np.random.default_rng(2)


@pytest.fixture
def files(tmp_path):
    """Three files of unequal width, one of them empty, with comments and query ids."""
    X = sp.random(300, 25, 0.3, format="csr", random_state=1)
    y = RNG.integers(-1, 2, 300).astype(float)
    write_data(tmp_path / "part-0.svm", X[:180, :20], y[:180])
    (tmp_path / "part-1.svm").write_bytes(b"")
    write_data(tmp_path / "part-2.svm", X[180:], y[180:])
    with (tmp_path / "part-2.svm").open("ab") as file:
        file.write(b"# a comment\n\n1 qid:3 2:0.5 # another\n-1")
    return tmp_path


def whole(folder):
    text = b"".join(path.read_bytes() for path in sorted(folder.glob("part-*.svm")))
    (folder / "whole").write_bytes(text)
    return read_data(folder / "whole")


def rows_of(X):
    return sp.vstack([sp.csr_matrix(block.compute()) for block in X.partitions]).toarray()


@pytest.mark.parametrize("part_bytes", [1 << 20, 1000, 217])
@pytest.mark.parametrize("layout", ["auto", "sparse", "dense"])
def test_parts_make_the_whole(files, part_bytes, layout):
    X, y = read_svmlight(files / "part-*.svm", part_bytes=part_bytes, layout=layout)
    expected = whole(files)
    assert X.shape == expected.X.shape
    assert X.chunks[0] == y.chunks[0]
    assert 0 not in X.chunks[0]
    np.testing.assert_array_equal(rows_of(X), expected.X.toarray())
    np.testing.assert_array_equal(y.compute(), expected.y)
    assert sp.issparse(X.partitions[0].compute()) == (layout != "dense")


@given(
    lines=st.lists(st.sampled_from(["1 1:2", "-1", "# no", "", "1 1:3 2:4\r", "2 3:1 #"])), size=st.integers(1, 40)
)
def test_every_line_belongs_to_one_part(tmp_path_factory, lines, size):
    path = tmp_path_factory.mktemp("lines") / "file"
    text = "\n".join(lines).encode()
    path.write_bytes(text)
    read = b""
    for start in range(0, len(text), size):
        with Part(str(path), start, min(start + size, len(text))).open() as stream:
            read += stream.read()
    assert read == text


def test_compressed_files_are_read_whole(files):
    text = (files / "part-0.svm").read_bytes()
    (files / "part-0.svm").write_bytes(gzip.compress(text))
    X, _ = read_svmlight([files / "part-0.svm", files / "part-2.svm"], part_bytes=100)
    assert X.chunks[0][0] == 180
    assert X.shape == (302, 25)


def test_index_zero_in_one_file_counts_for_all(tmp_path):
    (tmp_path / "a").write_text("1 1:5\n")
    (tmp_path / "b").write_text("1 0:7 2:1\n")
    X, _ = read_svmlight([tmp_path / "a", tmp_path / "b"])
    np.testing.assert_array_equal(rows_of(X), [[0, 5, 0], [7, 0, 1]])
    with pytest.raises(DataFileError, match="b: index 0 occurs"):
        read_svmlight([tmp_path / "a", tmp_path / "b"], zero_based=False)


def test_n_features_and_type(files):
    X, _ = read_svmlight(files / "part-*.svm", n_features=40, dtype=np.float32, part_bytes=500)
    assert (X.shape[1], X.dtype) == (40, np.float32)
    assert X.partitions[0].compute().dtype == np.float32
    with pytest.raises(DataFileError, match=r"(?s)part-2.*n_features is 22"):
        read_svmlight(files / "part-*.svm", n_features=22)


def test_errors_name_file_and_line(files):
    path = files / "part-2.svm"
    text = path.read_text().splitlines()
    text[70], text[99] = "1 3:1 2:1", "x 1:1"
    path.write_text("\n".join(text))
    with pytest.raises(DataFileError) as raised:
        read_svmlight(files / "part-*.svm", part_bytes=400)
    with pytest.raises(DataFileError) as expected:
        read_data(path)
    assert str(raised.value) == str(expected.value)


def test_what_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing"):
        read_svmlight(tmp_path / "nothing-*.svm")
    with pytest.raises(ValueError, match="part_bytes"):
        read_svmlight(tmp_path, part_bytes=0)
    (tmp_path / "empty").write_bytes(b"")
    X, y = read_svmlight(tmp_path / "empty")
    assert (X.shape, y.shape) == ((0, 0), (0,))


def test_a_machine_is_trained_on_files(files, client):
    X, y = read_svmlight(files / "part-*.svm", part_bytes=4000)
    machine = DaskSVC(kernel="linear", client=client, tol=1e-6).fit(X, y)
    local = whole(files)
    from hinge import SVC

    expected = SVC(kernel="linear", tol=1e-6).fit(local.X, local.y)
    np.testing.assert_allclose(
        machine.to_local().decision_function(local.X), expected.decision_function(local.X), atol=1e-4
    )


def test_names_are_seen_from_here_by_workers_that_stand_elsewhere(tmp_path, client, monkeypatch):
    (tmp_path / "part-0.svm").write_text("1 1:0.5\n-1 2:1\n")
    monkeypatch.chdir(tmp_path)
    X, y = read_svmlight("part-*.svm")
    monkeypatch.chdir("/")
    assert X.shape == (2, 2)
    assert y.compute().tolist() == [1.0, -1.0]
