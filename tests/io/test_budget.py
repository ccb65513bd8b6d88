"""What files unfold to: it is counted while it is read, and the limit has a name."""

import bz2
import gzip
import io
import lzma
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest
import scipy.sparse as sp

from hinge.cli import main
from hinge.estimators import load_model
from hinge.io import DataFileError, ModelFileError, load, read_data, read_libsvm_model

MB = 2**20

OVER = r"more than 16 MB of memory \(HINGE_FILE_MEMORY\)"

HEADER = b"svm_type c_svc\nkernel_type linear\nnr_class 2\ntotal_sv %d\nrho 0\nlabel 1 -1\nnr_sv 1 1\nSV\n"


@pytest.fixture(autouse=True)
def limit(monkeypatch):
    monkeypatch.setenv("HINGE_FILE_MEMORY", "16")
    read_data(io.BytesIO(b"1 1:1\n"))  # compiled before memory is measured


def refused(read, *arguments, error=DataFileError, match=OVER, most=150):
    """Check that reading is refused, and that it took no more than ``most`` megabytes."""
    tracemalloc.start()
    try:
        with pytest.raises(error, match=match) as caught:
            read(*arguments)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < most * MB
    return str(caught.value)


def bomb(path, piece, times, opener=gzip.open):
    with opener(path, "wb") as file:
        for _ in range(times // 1000):
            file.write(piece * 1000)
    return path


@pytest.mark.parametrize(
    ("opener", "line", "n"),
    [
        (gzip.open, b"1\n", 4_000_000), (gzip.open, b"1 1:1 2:1 3:1 4:1 5:1\n", 1_000_000),
        (bz2.open, b"1\n", 1_000_000), (lzma.open, b"1\n", 1_000_000),
    ],
)  # fmt: skip
def test_a_small_compressed_file_does_not_fill_the_memory(tmp_path, opener, line, n):
    path = bomb(tmp_path / "bomb", line, n, opener)
    assert path.stat().st_size < 0.2 * MB
    message = refused(load, path)
    assert message.startswith(str(path))
    assert message.endswith("set HINGE_FILE_MEMORY to more megabytes")


def test_a_higher_limit_lets_it_pass(tmp_path, monkeypatch):
    path = bomb(tmp_path / "large", b"1 1:1 2:1 3:1 4:1 5:1\n", 300_000)
    refused(load, path)
    monkeypatch.setenv("HINGE_FILE_MEMORY", "40")
    X, y = load(path)
    assert X.shape == (300_000, 5)
    assert X.sum() == 5 * y.sum() == 1_500_000


def test_the_default_limit_is_half_of_what_is_free(tmp_path, monkeypatch):
    monkeypatch.delenv("HINGE_FILE_MEMORY")
    monkeypatch.setattr("hinge.io.budget.free_bytes", lambda: 8 * MB)
    path = bomb(tmp_path / "bomb", b"1\n", 1_000_000)
    refused(load, path, match=r"more than 4 MB of memory \(half of the memory that is free\)")


@pytest.mark.parametrize("value", ["many", "0", "-1", "nan", "inf", "1e30"])
def test_a_limit_that_is_none_is_named(monkeypatch, value):
    monkeypatch.setenv("HINGE_FILE_MEMORY", value)
    with pytest.raises(DataFileError, match=f"HINGE_FILE_MEMORY must be a positive .* megabytes, got '{value}'"):
        read_data(io.BytesIO(b"1 1:1\n"))


def test_what_is_not_kept_does_not_count(tmp_path):
    path = bomb(tmp_path / "comments", b"# nothing here\n", 1_500_000)
    with gzip.open(path, "ab") as file:
        file.write(b"1 1:1\n")
    assert load(path).X.shape == (1, 1)


def test_an_index_costs_nothing_but_itself():
    tracemalloc.start()
    X, _ = read_data(io.BytesIO(b"1 2147483646:1\n-1 1:2\n"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert X.shape == (2, 2147483646)
    assert peak < 20 * MB


@pytest.mark.parametrize("name", ["line", "line.csv"])
def test_a_line_without_an_end(tmp_path, name):
    piece = b"1," if name.endswith("csv") else b"1          "
    refused(load, bomb(tmp_path / f"{name}.gz", piece, 40_000_000 // len(piece)), most=60)


def test_an_error_in_a_long_line_costs_little(monkeypatch):
    monkeypatch.setenv("HINGE_FILE_MEMORY", "1000")
    line = b"1 " + b" ".join(b"%d:1" % k for k in range(1, 800_000)) + b" 3:1\n"
    refused(read_data, io.BytesIO(line), match="an index above 799999", most=120)


def test_an_xz_file_cannot_ask_for_a_huge_dictionary(tmp_path):
    packed = bytearray(lzma.compress(b"1 1:1\n" * 1000))
    header = slice(12, 12 + 4 * (packed[12] + 1))
    assert packed[14] == 0x21, "LZMA2"
    packed[16] = 39  # a dictionary of 3 GB
    checksum = zlib.crc32(packed[header.start : header.stop - 4])
    packed[header.stop - 4 : header.stop] = checksum.to_bytes(4, "little")
    refused(read_data, io.BytesIO(packed))


def test_xz_streams_one_after_the_other():
    packed = lzma.compress(b"1 1:1\n") + bytes(8) + lzma.compress(b"2 1:3\n") + bytes(4)
    assert read_data(io.BytesIO(packed)).y.tolist() == [1, 2]
    for damage, message in [(packed[:-20], "damaged or cut short"), (packed + b"x", "damaged or cut short")]:
        with pytest.raises(DataFileError, match=message):
            read_data(io.BytesIO(damage))


# ---------------------------------------------------------------------- tables


def archive(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, value in members.items():
            buffer = io.BytesIO()
            np.save(buffer, value, allow_pickle=True)
            file.writestr(f"{name}.npy", value if isinstance(value, bytes) else buffer.getvalue())
    return path


@pytest.mark.parametrize(
    "X",
    [
        np.zeros((4_000_000, 1)),
        np.zeros((3_000_000, 1), np.int8),  # eight times as much as float64
        np.zeros((100, 30_000), bool),
    ],
)
def test_an_archive_is_refused_before_its_arrays_are_made(tmp_path, X):
    path = archive(tmp_path / "data.npz", X=X, y=np.zeros(len(X), np.int8))
    assert path.stat().st_size < 0.1 * MB
    refused(load, path, most=20)


def test_a_sparse_archive(tmp_path):
    path = tmp_path / "data.npz"
    sp.save_npz(path, sp.csr_matrix(np.ones((1000, 3000), np.int8)))
    refused(load, path, most=60)
    n = 4_000_000
    members = {"format": np.full(n, "csr"), "shape": np.zeros(n, np.int8)}
    members |= {"data": np.ones(1), "indices": np.zeros(1, np.int32), "indptr": np.array([0, 1])}
    refused(load, archive(path, **members), most=20)


def test_arrays_that_nobody_asked_for_are_not_read(tmp_path):
    notes = np.zeros(30_000_000, np.int8)
    path = archive(tmp_path / "data.npz", X=np.ones((2, 2)), y=np.array([1, 2]), notes=notes)
    assert load(path).y.tolist() == [1, 2]


def test_a_header_of_any_length_is_not_believed(tmp_path):
    head = b"\x93NUMPY\x02\x00" + (40 * MB).to_bytes(4, "little") + b" " * (40 * MB)
    path = archive(tmp_path / "data.npz", X=head, y=np.ones(1))
    refused(load, path, match="not an archive of arrays of numbers", most=20)
    path = tmp_path / "data.npy"
    path.write_bytes(head)
    refused(load, path, match="not an array of numbers", most=20)


def test_objects_are_not_unpickled(tmp_path):
    class Trap:
        def __reduce__(self):
            return (print, ("executed",))

    path = archive(tmp_path / "data.npz", X=np.array([[Trap()]], object), y=np.ones(1))
    with pytest.raises(DataFileError, match="not an archive of arrays of numbers"):
        load(path)


def test_a_sparse_file_of_zeros(tmp_path):
    path = tmp_path / "data.npy"
    buffer = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": (50_000_000, 2)}
    np.lib.format.write_array_header_1_0(buffer, header)
    with open(path, "wb") as file:
        file.write(buffer.getvalue())
        file.truncate(len(buffer.getvalue()) + 800_000_000)
    refused(load, path, most=20)


def test_parquet_counts_rows_as_numbers(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "data.parquet"
    parquet.write_table(pa.table({"y": np.zeros(2_000_000, bool), "a": np.zeros(2_000_000, np.int8)}), path)
    assert path.stat().st_size < 0.1 * MB
    refused(load, path, most=40)


# ---------------------------------------------------------------------- models


def test_a_model_file_does_not_unfold(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(HEADER % 2 + gzip.compress(b"1 1:1\n" * 5_000_000))
    refused(read_libsvm_model, path, error=ModelFileError, match="line 9, column 1: .* number as a coefficient")


@pytest.mark.parametrize("n_classes", [2, 3])
def test_support_vectors_beyond_the_promise_are_not_read(tmp_path, monkeypatch, n_classes):
    monkeypatch.setenv("HINGE_FILE_MEMORY", "1000")
    path = tmp_path / "model"
    header = HEADER % 2
    if n_classes == 3:
        header = header.replace(b"nr_class 2", b"nr_class 3").replace(b"rho 0", b"rho 0 0 0")
        header = header.replace(b"label 1 -1", b"label 1 2 3").replace(b"nr_sv 1 1", b"nr_sv 1 1 0")
    path.write_bytes(header + b"1 2 1:1\n"[-4 - 2 * n_classes + 2 :] * 4_000_000)
    message = refused(read_libsvm_model, path, error=ModelFileError, match="total_sv is 2, but more", most=260)
    assert message.startswith(str(path))


def test_the_header_and_the_rows_of_a_model_count(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(HEADER.replace(b"rho 0", b"rho" + b" 0" * 4_000_000) % 2)
    refused(read_libsvm_model, path, error=ModelFileError, most=20)
    n = 800_000
    path.write_bytes(HEADER.replace(b"nr_sv 1 1", b"nr_sv %d 0" % n) % n + b"1 1:1\n" * n)
    refused(read_libsvm_model, path, error=ModelFileError)


def test_many_classes_make_a_large_estimator(tmp_path):
    k = 130
    pairs = k * (k - 1) // 2
    head = b"svm_type c_svc\nkernel_type linear\nnr_class %d\ntotal_sv %d\nrho" % (k, k) + b" 0" * pairs
    head += b"\nlabel " + b" ".join(b"%d" % c for c in range(k)) + b"\nnr_sv" + b" 1" * k + b"\nSV\n"
    path = tmp_path / "model"
    path.write_bytes(head + (b"1 " * (k - 1) + b"1:1\n") * k)
    assert read_libsvm_model(path).n_classes == k
    message = refused(load_model, path, error=ModelFileError)
    assert message.startswith(str(path))


# ---------------------------------------------------------------------- commands


@pytest.mark.parametrize("command", ["train", "scale", "grid", "subset", "check"])
def test_commands_name_the_file_and_the_limit(tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    bomb(tmp_path / "data", b"1\n", 1_000_000)
    try:
        code = main([command, "data", *(["1"] if command == "subset" else [])])
    except SystemExit as end:
        code = end.code
    captured = capsys.readouterr()
    assert code == 1
    assert "data: what it holds takes more than 16 MB of memory (HINGE_FILE_MEMORY)" in captured.err + captured.out
