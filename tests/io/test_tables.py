"""Tables: .npz, .npy, .csv and .parquet."""

import gzip
import io
import sys
import zipfile
from contextlib import suppress

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from hinge.io import DataFileError, load, read_table

X = np.array([[0.5, 0, 3], [0, -1, 0]])
Y = np.array([2.0, 1.0])
TABLE = np.column_stack([Y, X])


def check(data, dtype=np.float64):
    assert_array_equal(data.X.toarray() if sp.issparse(data.X) else data.X, X)
    assert_array_equal(data.y, Y)
    assert data.X.dtype == dtype
    assert data.y.dtype == np.float64


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "save",
    [
        lambda path: np.savez(path, X=X, y=Y),
        lambda path: np.savez_compressed(path, X=X.astype(np.float16), y=Y.astype(int)),
        lambda path: sp.save_npz(path, sp.csr_matrix(TABLE)),
        lambda path: sp.save_npz(path, sp.csr_array(TABLE), compressed=False),
    ],
)
def test_npz(save, dtype, tmp_path):
    path = tmp_path / "data.npz"
    save(path)
    check(load(path, dtype=dtype), dtype)


def test_npz_with_parts(tmp_path):
    path = tmp_path / "data.npz"
    matrix = sp.csr_matrix(X)
    parts = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr, "shape": matrix.shape}
    np.savez(path, format=b"csr", y=Y, qid=[3, 4], **parts)
    data = load(path)
    check(data)
    assert_array_equal(data.qid, [3, 4])
    sp.save_npz(path, sp.csr_matrix(TABLE[:, [1, 2, 3, 0]]))
    check(read_table(path, label=-1))


def test_npy(tmp_path):
    path = tmp_path / "data.npy"
    np.save(path, TABLE)
    check(load(path))
    np.save(path, TABLE[:, [1, 0, 2, 3]].astype(np.float32))
    check(read_table(path, label=1))
    with pytest.raises(DataFileError, match="expected 4 features, found 3"):
        load(path, n_features=4)


CSV = "2,0.5,0,3\n1,0,-1,0\n"


@pytest.mark.parametrize(
    "text",
    [
        CSV,
        "\ufeff" + CSV.replace("\n", "\r\n"),
        CSV.replace(",", ";"),
        CSV.replace(",", "\t").rstrip(),
        "\nid,a,b,c\n\n" + CSV,
        "a,b,Target,c\n0.5,0,2,3\n0,-1,1,0\n",
        '"a, b",label,y,c\n0.5,2,0,3\n 0 , 1 ,-1, 0\n',
    ],
)
def test_csv(text, tmp_path):
    path = tmp_path / "data.csv.gz"
    path.write_bytes(gzip.compress(text.encode()))
    check(load(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2\n3,x\n", "line 2, column 2: expected a finite number, found 'x'"),
        ("a,b\n\n1,2\n3,\nnan,1\n", "2 malformed lines\n  line 4, column 2: .*found ''\n  line 5, column 1: "),
        ("1,2\n1\n", "line 2, column 1: expected 2 columns, found 1"),
        ("1,2\n" + "1,inf\n" * 30, "30 malformed lines\n(.*\n)*  and 20 more"),
        ("1,2\n1,٣\n", "line 2, column 1: expected plain digits"),
        ("1,2\n1,1_0\n", "line 2, column 2: expected a finite number, found '1_0'"),
        ('1,"2\n3,"4\n', "line 1, column 1: expected plain digits and closed quotes"),
        ("", "expected a table, found no lines"),
        ("\n\n", "expected a table, found no lines"),
    ],
)
def test_malformed_csv(text, message, tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataFileError, match=message):
        load(path)


def test_label_column(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,b,c,d\n0.5,0,2,3\n0,-1,1,0\n")
    check(load(path, label="c"))
    check(load(path, label=2))
    check(load(path, label=-2))
    for label, message in [("e", "a column called 'e', found 'a', 'b'"), (4, "4 columns")]:
        with pytest.raises(DataFileError, match=message):
            load(path, label=label)
    with pytest.raises(ValueError, match="label"):
        load(io.BytesIO(b"1 1:1"), label=0)
    with pytest.raises(ValueError, match=r"endings \.npz"):
        read_table("data.txt")


def test_a_column_called_label_comes_before_one_called_y(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("Y,target,LABEL\n5,6,1\n7,8,-1\n")
    data = load(path)
    assert_array_equal(data.X, [[5, 6], [7, 8]])
    assert_array_equal(data.y, [1, -1])


def test_values_given_twice_are_added_up(tmp_path):
    parts = {"data": [1.0, 2.0, 4.0], "indices": [1, 1, 0], "indptr": [0, 2, 3], "shape": (2, 2)}
    np.savez(tmp_path / "data.npz", format=b"csr", y=[1, -1], **parts)
    data = load(tmp_path / "data.npz")
    assert data.X.data.tolist() == [3.0, 4.0]
    assert_array_equal(data.X.toarray(), [[0, 3], [4, 0]])


def test_not_finite(tmp_path):
    path = tmp_path / "data.npy"
    np.save(path, [[1, 2], [3, np.nan]])
    with pytest.raises(DataFileError, match="row 2: expected finite numbers"):
        load(path)
    np.save(path, [[1, 2], [3, 1e300]])
    with pytest.raises(DataFileError, match="row 2: expected finite numbers in the range of float32"):
        load(path, dtype=np.float32)
    sp.save_npz(tmp_path / "data.npz", sp.csr_matrix([[1, 2], [3, np.inf]]))
    with pytest.raises(DataFileError, match="row 2"):
        load(tmp_path / "data.npz")


def parts(**changes):
    matrix = sp.csr_matrix(X)
    arrays = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}
    return {"format": b"csr", "shape": (2, 3), "y": Y} | arrays | changes


@pytest.mark.parametrize(
    "arrays",
    [
        {"X": X, "y": Y[:1]},
        {"X": X, "y": np.array([b"a", b"b"])},
        {"X": X, "y": np.array([object(), None])},
        {"X": X, "y": Y, "qid": Y},
        {"X": X, "y": Y, "qid": np.array([1])},
        {"X": X},
        {},
        parts(format=b"csc"),
        parts(shape=(10**12, 3)),
        parts(shape=(2, 1)),
        parts(shape=3),
        parts(indices=np.array([0, 2, 10**6])),
        parts(indices=np.array([0, -2, 1])),
        parts(indptr=np.array([0, 5, 3])),
        parts(indptr=np.array([0, 2])),
    ],
)
def test_malformed_npz(arrays, tmp_path):
    path = tmp_path / "data.npz"
    np.savez(path, **arrays)
    with pytest.raises(DataFileError):
        load(path)


def test_sizes_claimed_are_checked(tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**13, 2)})
    (tmp_path / "data.npy").write_bytes(header.getvalue() + b"\0" * 64)
    with zipfile.ZipFile(tmp_path / "data.npz", "w") as archive:
        archive.writestr("X.npy", header.getvalue() + b"\0" * 64)
    for ending in ("npy", "npz"):
        with pytest.raises(DataFileError):
            load(tmp_path / f"data.{ending}")


def saved(save, *arguments, **arrays):
    file = io.BytesIO()
    save(file, *arguments, **arrays)
    return file.getvalue()


SEEDS = {
    "csv": CSV.encode(),
    "npy": saved(np.save, TABLE),
    "npz": saved(np.savez, X=X, y=Y),
    "sparse.npz": saved(sp.save_npz, sp.csr_matrix(TABLE)),
}


@settings(max_examples=300)
@given(
    st.sampled_from(sorted(SEEDS)),
    st.lists(st.tuples(st.integers(0, 2000), st.binary(max_size=3), st.integers(0, 3)), max_size=4),
    st.integers(0, 2000),
)
@example("csv", [(0, b"1\r2", 0)], 2000)
@example("csv", [(2, b'"', 0)], 2000)
@example("csv", [(1, b"\0", 1)], 2000)
def test_damaged_files_are_refused_or_read(tmp_path_factory, ending, edits, length):
    content = SEEDS[ending]
    for at, piece, skip in edits:
        at %= len(content) + 1
        content = content[:at] + piece + content[at + skip :]
    path = tmp_path_factory.getbasetemp() / f"damaged.{ending}"
    path.write_bytes(content[:length])
    try:
        data = load(path)
    except DataFileError:
        return
    assert data.X.shape[0] == len(data.y)


def test_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "data.parquet"
    columns = {
        "a": X[:, 0],
        "b": X[:, 1].astype(np.int8),
        "y": Y.astype(np.int64),
        "c": X[:, 2].astype(np.float32),
    }
    parquet.write_table(pa.table(columns), path)
    check(load(path))
    for bad, message in [
        (["u", "v"], "numbers in column 'b', found string"),
        ([1, None], "missing values in column"),
    ]:
        parquet.write_table(pa.table(columns | {"b": bad}), path)
        with pytest.raises(DataFileError, match=message):
            load(path)
    parquet.write_table(pa.table(columns), path)
    whole = path.read_bytes()
    for at in range(4, len(whole), 97):  # data pages, and the description of the columns behind them
        path.write_bytes(whole[:at] + bytes(8) + whole[at + 8 :])
        with suppress(DataFileError):
            load(path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nowhere.parquet")
    path.write_bytes(b"PAR1 not")
    with pytest.raises(DataFileError, match="Parquet"):
        load(path)


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match="pip install pyarrow"):
        load(tmp_path / "data.parquet")


@pytest.mark.parametrize(
    ("text", "label", "guess"),
    [
        ("1.5,2,rose\n0.5,3,tulip\n", None, "column 3, the only one of words"),
        ("rose;1.5;2\ntulip;0.5;3\n", None, "column 1, the only one of words"),
        ("a,b,species\n1.5,2,rose\n0.5,3,tulip\n", None, "column 3 ('species'), the only one of words"),
        ("a,b,species\n1.5,2,rose\n0.5,3,tulip\n", "species", ""),
        ("a,b,Target\n1.5,2,rose\n0.5,3,tulip\n", None, ""),
        ("1.5,2,rose\n0.5,3,tulip\n", 2, ""),
    ],
)
def test_labels_of_words(tmp_path, text, label, guess):
    path = tmp_path / "data.csv"
    path.write_text(text)
    data = read_table(path, label=label)
    assert data.y.tolist() == ["rose", "tulip"]
    assert data.X.tolist() == [[1.5, 2.0], [0.5, 3.0]]
    assert data.label_guess == guess


def test_words_elsewhere_are_errors(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("label,a\nrose,1\ntulip,x\nlily\n")
    with pytest.raises(DataFileError, match=r"line 3.*a finite number.*'x'") as caught:
        read_table(path)
    assert caught.value.n_errors == 2
    path.write_text("label,a\n1,1\ntulip,2\n")
    with pytest.raises(DataFileError, match="line 3"):
        read_table(path)
    path.write_text("species,1\n1,2\n2,3\n")  # a single word above numbers is a name
    assert read_table(path).y.tolist() == [1.0, 2.0]


def test_words_in_parquet_and_npz(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({"a": [1.0, 2.0], "kind": ["rose", "tulip"], "b": [3, 4]})
    parquet.write_table(table, tmp_path / "data.parquet")
    np.savez(tmp_path / "data.npz", X=np.array([[1.0, 3.0], [2.0, 4.0]]), y=np.array(["rose", "tulip"]))
    for name in ("data.parquet", "data.npz"):
        data = read_table(tmp_path / name)
        assert data.y.tolist() == ["rose", "tulip"]
        assert data.X.tolist() == [[1.0, 3.0], [2.0, 4.0]]
    with pytest.raises(DataFileError, match="expected numbers in column 'kind'"):
        read_table(tmp_path / "data.parquet", label="a")
