"""Reading LIBSVM text: the grammar, the errors, the sources."""

import bz2
import gzip
import io
import lzma
import os
import pickle
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.datasets import load_svmlight_file
from slow_reader import MalformedError, slow_read

from hinge.io import DataFileError, load, read_data
from hinge.io.svmlight import read as svmlight
from hinge.io.svmlight.source import blocks


def read(text, **options):
    return read_data(io.BytesIO(text), **options)


@pytest.mark.parametrize(
    ("text", "X", "y"),
    [
        (b"1 1:2 3:4\n-1 2:0.5\n", [[2, 0, 4], [0, 0.5, 0]], [1, -1]),
        (b"+1 1:2", [[2]], [1]),  # no final line feed
        (b"1 1:2\r\n2 1:3\r\n", [[2], [3]], [1, 2]),
        (b"1 1:2\r", [[2]], [1]),
        (b"\n  \n# comment: 1:2\n1 1:2 # 3:4\n\t2\t1:3\t \n3#x\n", [[2], [3], [0]], [1, 2, 3]),
        (b"\xef\xbb\xbf1 1:2\n", [[2]], [1]),  # byte order mark
        (b"1e1 1:+.5 2:5. 3:-1E-2\n", [[0.5, 5, -0.01]], [10]),
        (b"-0.25 0000000001:007\n", [[7]], [-0.25]),
        (b"1\n2\n", np.zeros((2, 0)), [1, 2]),
        (b"", np.zeros((0, 0)), []),
        (b"1 0:3 1:0.5 2:0.25\n", [[3, 0.5, 0.25]], [1]),  # precomputed kernel
        (b"1 1:2\n2 0:3 2:4\n", [[0, 2, 0], [3, 0, 4]], [1, 2]),  # a later line tells that indices begin with 0
    ],
)
def test_accepted(text, X, y):
    data = read(text)
    assert_array_equal(data.X.toarray(), X)
    assert_array_equal(data.y, y)
    assert data.qid is None
    assert data.X.dtype == np.float64
    assert data.X.indices.dtype == data.X.indptr.dtype == np.int32


@pytest.mark.parametrize(
    ("line", "column", "expected", "found"),
    [
        (b"x 1:1", 1, "a number as the label", "'x'"),
        (b"  nan 1:1", 3, "a finite number as the label", "'nan'"),
        (b"1,3 1:1", 1, "one label (multi-label data is not supported)", "'1,3'"),
        (b"1:1 2:1", 1, "a label in front of the features", "'1:1'"),
        (b"1e999 1:1", 1, "a label in the range of float64", "'1e999'"),
        (b"1 qid:x 1:1", 3, "up to 18 digits behind qid:", "'qid:x'"),
        (b"1 1:1 qid:2", 7, "qid: right behind the label", "'qid:2'"),
        (b"1 a:1", 3, "index:value", "'a:1'"),
        (b"1 -1:1", 3, "an index of 0 or more", "'-1:1'"),
        (b"1 1:1 7", 7, "index:value", "'7'"),
        (b"1 2147483647:1", 3, "an index up to 2147483646 (the limit max_index)", "'2147483647:1'"),
        (b"1 123456789012345678901234567890:1", 3, "an index up to 2147483646 (the limit max_index)", None),
        (b"1 1:1 5:1 5:1", 11, "an index above 5, since indices ascend along a line", "'5:1'"),
        (b"1 1:", 5, "a number behind the colon", "nothing"),
        (b"1 1: 2", 5, "a number behind the colon", "nothing"),
        (b"1 1:2x", 5, "a number behind the colon", "'2x'"),
        (b"1 1:0x10", 5, "a number behind the colon", "'0x10'"),
        (b"1 1:1_0", 5, "a number behind the colon", "'1_0'"),
        (b"1 1:1e", 5, "a number behind the colon", "'1e'"),
        (b"1 1:-", 5, "a number behind the colon", "'-'"),
        (b"1 1:-INF", 5, "a finite number behind the colon", "'-INF'"),
        (b"1 1:1e400", 5, "a number in the range of float64", "'1e400'"),
        (b"1 1:2\r 2:3", 6, "a line feed behind the carriage return", "a carriage return inside the line"),
        (b"\x00\xff", 1, "a number as the label", r"'\x00\\xff'"),
    ],
)
def test_refused(line, column, expected, found):
    with pytest.raises(DataFileError) as caught:
        read(b"1 1:1\n\n" + line + b"\n1 2:2\n")
    (error,) = caught.value.errors
    assert (error.line, error.column, error.expected) == (3, column, expected)
    assert found in (None, error.found)
    assert str(caught.value).startswith(f"<file>: line 3, column {column}: expected ")


def test_every_malformed_line_is_counted():
    text = b"".join(b"1 1:x\n" if k % 3 else b"1 1:1\n" for k in range(3000))
    with pytest.raises(DataFileError, match="and 1990 more") as caught:
        read(text)
    assert [error.line for error in caught.value.errors] == [k + 1 for k in range(15) if k % 3]
    assert caught.value.n_errors == 2000
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    assert copy.errors == caught.value.errors


def test_query_ids():
    data = read(b"1 qid:7 1:1\n2 1:1\n3 qid:123456789012345678\n")
    assert_array_equal(data.qid, [7, -1, 123456789012345678])


@pytest.mark.parametrize(
    ("zero_based", "text", "shape"),
    [
        (False, b"1 2:1", (1, 2)),
        (True, b"1 2:1", (1, 3)),
        ("auto", b"1 2:1", (1, 2)),
        ("auto", b"1 0:1 2:1", (1, 3)),
    ],
)
def test_first_index(zero_based, text, shape):
    data = read(text, zero_based=zero_based)
    assert data.X.shape == shape
    assert data.zero_based == (shape == (1, 3))


def test_number_of_features():
    assert read(b"1 2:1", n_features=5).X.shape == (1, 5)
    with pytest.raises(DataFileError, match=r"an index up to 3 \(n_features is 3\), found '4:1'"):
        read(b"1 4:1", n_features=3)
    with pytest.raises(DataFileError, match="indices 0 to 3 occur, but n_features is 3"):
        read(b"1 0:1 3:1", n_features=3)
    with pytest.raises(DataFileError, match="index 0 occurs"):
        read(b"1 0:1", zero_based=False)


def test_large_indices():
    data = read(b"1 99999999999:1", max_index=10**12)
    assert data.X.indices.dtype == np.int64
    assert data.X.shape == (1, 99999999999)
    assert read(b"1 5:1", max_index=10**12).X.indices.dtype == np.int32


def test_float32():
    data = read(b"1e39 1:0.1 2:3.4028235e38 3:1e-60", dtype=np.float32)
    assert data.X.dtype == np.float32
    assert_array_equal(data.X.data, np.array([0.1, 3.4028235e38, 0], np.float32))
    assert data.y[0] == 1e39
    for text in (b"1 1:3.4028236e38", b"1 1:-1e300", b"1 1:1e400"):
        with pytest.raises(DataFileError, match="a number in the range of float32"):
            read(text, dtype=np.float32)


@pytest.mark.parametrize(
    "options",
    [{"dtype": int}, {"max_errors": 0}, {"threads": 0}, {"zero_based": 2}, {"n_features": -1}, {"max_index": -1}],
)
def test_bad_options(options):
    with pytest.raises(ValueError, match="must"):
        read(b"1 1:1", **options)


TEXT = b"".join(b"%d 1:%d 7:0.%d # c\r\n" % (k % 3, k, k) for k in range(1, 500))


@pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_compressed(compress, tmp_path):
    path = tmp_path / "any-name"
    path.write_bytes(compress(TEXT))
    expected = read(TEXT)
    for source in (path, str(path), io.BytesIO(path.read_bytes())):
        data = load(source)
        assert (data.X != expected.X).nnz == 0
        assert_array_equal(data.y, expected.y)


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_damaged_compression(compress):
    packed = bytearray(compress(TEXT))
    with pytest.raises(DataFileError, match="damaged"):
        read(bytes(packed[: len(packed) // 2]))
    packed[len(packed) // 2] ^= 255
    with pytest.raises(DataFileError):
        read(bytes(packed))


def test_standard_input():
    code = "import hinge.io; print(hinge.io.read_data('-').X.shape)"
    done = subprocess.run(
        [sys.executable, "-c", code], input=gzip.compress(TEXT), stdout=subprocess.PIPE, check=True
    )
    assert done.stdout.split() == b"(499, 7)".split()


def test_sources():
    with pytest.raises(TypeError, match="binary"):
        read_data(io.StringIO("1 1:1"))
    with pytest.raises(FileNotFoundError):
        read_data("no such file")

    class OnlyRead:
        def __init__(self, text):
            self.read = io.BytesIO(text).read

    assert read_data(OnlyRead(TEXT)).X.shape == (499, 7)


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_endless_line(compress, monkeypatch):
    monkeypatch.setattr("hinge.io.svmlight.source.LONGEST_LINE", 2**20)
    monkeypatch.setattr("hinge.io.svmlight.read.blocks", partial(blocks, size=2**12))
    with pytest.raises(DataFileError, match="line 3, column 1: expected a line of at most"):
        read(compress(b"1\n2\n" + b"1" * 2**22 + b"\n1\n"))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("size", [1, 2, 7, 64, 1000])
def test_blocks_do_not_matter(size, threads, monkeypatch):
    expected = read(TEXT)
    monkeypatch.setattr(svmlight, "blocks", partial(blocks, size=size))
    data = read(TEXT, threads=threads)
    assert (data.X != expected.X).nnz == 0
    assert_array_equal(data.y, expected.y)
    with pytest.raises(DataFileError, match="line 500, column 3"):
        read(TEXT + b"1 x", threads=threads)


NAMES = ["heart_scale", "a9a", "w8a", "ijcnn1", "news20", "cadata", "connect-4", "reuters-money-fx.t", "svmguide3"]


@pytest.mark.data
@pytest.mark.parametrize("name", NAMES)
def test_same_as_scikit_learn(name):
    path = os.path.join(os.environ["HINGE_DATA"], f"{name}.xz")
    with lzma.open(path) as file:
        X, y = load_svmlight_file(file, zero_based=False)
    data = read_data(path)
    assert data.X.shape == X.shape
    assert_array_equal(data.X.indptr, X.indptr)
    assert_array_equal(data.X.indices, X.indices)
    assert_array_equal(data.X.data.view(np.int64), X.data.view(np.int64))
    assert_array_equal(data.y, y)
    data.X.check_format(full_check=True)


def outcome(read_text):
    """Return what was read, and the malformed lines as (line, column), or None if the compression was damaged."""
    try:
        return read_text(), []
    except MalformedError as error:
        return None, error.args[0]
    except DataFileError as error:
        return None, [(e.line, e.column) for e in error.errors] or None


def compare(text):
    """Check that the two readers agree, in small blocks and large, and that nothing else ever happens."""
    rows, wrong = outcome(lambda: slow_read(text))
    for size in (2**21, 5):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(svmlight, "blocks", partial(blocks, size=size))
            data, errors = outcome(lambda: read(text, zero_based=True, max_errors=1000, threads=2))
        if errors is None:
            assert text.startswith((b"BZh", b"\x1f\x8b", b"\xfd7zXZ\x00"))
            continue
        assert errors == wrong
        if rows is None:
            continue
        assert_array_equal(data.y.view(np.int64), np.array([row[0] for row in rows], float).view(np.int64))
        qid = [-1] * len(rows) if data.qid is None else data.qid.tolist()
        assert qid == [row[1] for row in rows]
        assert_array_equal(data.X.indptr, np.cumsum([0] + [len(row[2]) for row in rows]))
        assert data.X.indices.tolist() == [index for row in rows for index in row[2]]
        values = np.array([value for row in rows for value in row[2].values()], float)
        assert_array_equal(data.X.data.view(np.int64), values.view(np.int64))


PIECES = (
    "1|-1|+1|0|9|.|e|E|-|+|:|#| |  |\t|\n|\n\n|\r\n|\r|,|qid:|nan|inf|1:|2:|3:|0:|10:|1:1 |2:0.5 |3:-1e-3 "
    "|17:12345678|4:12345678901234567|5:0.1234567890123456789|2147483646:|2147483647:|99999999999999999999:"
    "|1e308|1e309|1e-400|5e-324|2.2250738585072011e-308|9007199254740993|x|\x00|\xff"
    "|1 1:2\n|-1 2:3 5:7 # c\n"
)
FRAGMENTS = st.lists(st.sampled_from([piece.encode("latin-1") for piece in PIECES.split("|")])).map(b"".join)


@settings(max_examples=500)
@given(st.one_of(FRAGMENTS, st.binary()))
@example(b"\xef\xbb\xbf")
@example(b"\xef\xbb")
@example(b"1 1:1e400 2:x\n")
@example(b"1 1:1e400 2:1e400\n1 1:x")
@example(b"1e309\r5:1")
@example(b"1qid:3")
@example(b"q")
@example(b"1 q\n")
@example(b"1 qid:\n")
@example(b"1 1:" + b"0" * 40 + b"." + b"0" * 40 + b"1e41")
@example(b"1 1:0." + b"0" * 400 + b"1e400")
def test_agrees_with_the_slow_reader(text):
    compare(text)
