"""Writing LIBSVM text: what is written reads back as exactly the same numbers."""

import io

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal

from hinge.io import read_data, write_data
from hinge.io.svmlight import write


def written(X, y, **options):
    file = io.BytesIO()
    write_data(file, X, y, **options)
    return file.getvalue()


@pytest.mark.parametrize(
    ("X", "y", "options", "text"),
    [
        ([[0.5, 0, 3], [0, -1e-7, 0]], [1, -1], {}, b"1 1:0.5 3:3\n-1 2:-1e-07\n"),
        ([[1, 0], [0, 0]], [0.1, 2.0], {"zero_based": True}, b"0.1 0:1\n2\n"),
        ([[1 / 3]], [2 / 3], {"digits": 4}, b"0.6667 1:0.3333\n"),
        ([[1], [2]], [1, 2], {"qid": [5, -1]}, b"1 qid:5 1:1\n2 1:2\n"),
        (np.array([[0.1, 1e20]], np.float32), [True], {}, b"1 1:0.1 2:1e+20\n"),
        (np.array([[7, 0, 255]], np.uint8), np.array([3], np.int8), {}, b"3 1:7 3:255\n"),
        (np.zeros((2, 0)), [1, 2], {}, b"1\n2\n"),
        (np.zeros((0, 3)), [], {}, b""),
        (sp.csr_matrix(([0.0, -0.0], [0, 1], [0, 2])), [1], {}, b"1 1:0 2:-0\n"),
        (sp.csr_array(([2.0, 1.0, 1.0], [1, 0, 0], [0, 3])), [1], {}, b"1 1:2 2:2\n"),
        (sp.coo_matrix([[0, 4]]), [1], {}, b"1 2:4\n"),
    ],
)
def test_text(X, y, options, text):
    assert written(X, y, **options) == text


FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=200)
@given(st.data(), st.sampled_from([np.float64, np.float32]), st.integers(0, 5), st.integers(1, 9))
def test_round_trip(data, dtype, n_rows, batch):
    n_columns = 4
    width = np.dtype(dtype).itemsize * 8
    values = data.draw(hnp.arrays(dtype, (n_rows, n_columns), elements=st.floats(width=width, allow_nan=False)))
    X = np.where(np.isfinite(values), values, 0).astype(dtype)
    y = data.draw(hnp.arrays(np.float64, n_rows, elements=FLOATS))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write, "_BATCH", batch)
        text = written(sp.csr_matrix(X), y)
    back = read_data(io.BytesIO(text), n_features=n_columns, dtype=dtype)
    assert_array_equal(back.X.toarray(), X)
    assert_array_equal(back.y.view(np.int64), y.view(np.int64))
    assert written(back.X, back.y) == text


def test_float32_at_the_edge():
    # Around the smallest normal number, where shortest texts come close to the borders of their float32.
    bits = np.arange(2**23 - 2**15, 2**23 + 2**15, dtype=np.int32)
    X = bits.view(np.float32)[:, None]
    text = written(X, np.zeros(len(X)))
    assert_array_equal(read_data(io.BytesIO(text), dtype=np.float32).X.toarray(), X)


def test_float32_whose_shortest_text_is_rounded_twice():
    """7.038531e-26 is nearest to this number, but its float64 is half-way to the next and goes there."""
    X = np.array([[0x15AE43FD]], dtype=np.int32).view(np.float32)
    text = written(X, np.zeros(1))
    assert_array_equal(read_data(io.BytesIO(text), dtype=np.float32).X.toarray(), X)


@pytest.mark.parametrize("ending", ["", ".gz", ".bz2", ".xz"])
def test_files(ending, tmp_path):
    path = tmp_path / f"data{ending}"
    path.write_text("old")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 20)), rng.integers(0, 3, 50)
    write_data(path, X, y)
    data = read_data(path)
    assert_array_equal(data.X.toarray(), X)
    assert_array_equal(data.y, y)
    packed = path.read_bytes()
    assert packed.startswith({"": b"", ".gz": b"\x1f\x8b", ".bz2": b"BZh", ".xz": b"\xfd7zXZ"}[ending])
    with pytest.raises(ValueError, match="NaN"):
        write_data(path, [[np.nan]], [1])
    assert path.read_bytes() == packed
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("X", "y", "options"),
    [
        ([[1.0]], [1, 2], {}),
        ([[1.0]], [np.inf], {}),
        ([[1.0]], ["a"], {}),
        ([[1j]], [1], {}),
        ([[1.0]], [1], {"qid": [0.5]}),
        ([[1.0]], [1], {"digits": 0}),
    ],
)
def test_refused(X, y, options):
    with pytest.raises(ValueError, match=r"must|NaN"):
        written(X, y, **options)
