"""Data sets by name: from a folder, from the cache, from a server."""

import bz2
import io
import lzma
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from hinge.io import DataFileError, datasets, read_data
from hinge.io.datasets import DataSetNotFound, load

IRIS = b"".join(b"%d 1:0.%d 4:1\n" % (k % 3, k) for k in range(150))


class Server(ThreadingHTTPServer):
    """Answers from a dictionary of paths; a value may be (status, promised length, body)."""

    files: dict
    asked: list


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        status, length, body = self.server.files.get(self.path, (404, 0, b""))
        self.send_response(status)
        if isinstance(length, str):
            self.send_header("Location", length)
        elif length is not None:
            self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with Server(("127.0.0.1", 0), Handler) as server:
        server.files, server.asked = {}, []
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch, request):
    """Point everything at empty folders and, if there is one, at the local server."""
    monkeypatch.setenv("HINGE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("HINGE_CACHE", str(tmp_path / "cache"))
    url = "http://127.0.0.1:9"  # the discard port: nothing answers
    if "server" in request.fixturenames:
        url = f"http://127.0.0.1:{request.getfixturevalue('server').server_address[1]}/sets/"
    monkeypatch.setenv("HINGE_DATA_URL", url)
    (tmp_path / "data").mkdir()
    return tmp_path


@pytest.mark.parametrize(("ending", "pack"), [("", bytes), (".xz", lzma.compress), (".bz2", bz2.compress)])
def test_from_the_folder(ending, pack, folders):
    (folders / "data" / f"iris.scale{ending}").write_bytes(pack(IRIS))
    X, y = load("iris.scale")
    assert X.shape == (150, 4)
    assert y[:4].tolist() == [0, 1, 2, 0]
    assert load("iris.scale", dtype=np.float32).X.dtype == np.float32


def test_unknown_sets_are_read_as_they_are(folders):
    (folders / "data" / "mine").write_bytes(b"1 0:1 5:1\n")
    assert load("mine").X.shape == (1, 6)


@pytest.mark.parametrize("ending", ["", ".bz2", ".xz"])
def test_download(server, folders, ending):
    body = {"": bytes, ".bz2": bz2.compress, ".xz": lzma.compress}[ending](IRIS)
    server.files[f"/sets/multiclass/iris.scale{ending}"] = (200, len(body), body)
    assert load("iris.scale").X.shape == (150, 4)
    asked = len(server.asked)
    assert load("iris.scale").X.shape == (150, 4)
    assert len(server.asked) == asked, "the second time it is in the cache"
    names = sorted(path.name for path in (folders / "cache").iterdir())
    assert names == [f"iris.scale{ending}", f"iris.scale{ending}.sha256"]


@pytest.mark.parametrize(
    ("length", "body", "message"),
    [
        (len(IRIS) + 10, IRIS, f"expected {len(IRIS) + 10} bytes, found {len(IRIS)}"),
        (len(IRIS) - 14, IRIS[:-14], "expected 150 rows, found 149"),
        (5, b"<html", "expected a number as the label"),
    ],
)
def test_bad_downloads_are_not_kept(server, folders, length, body, message):
    server.files["/sets/multiclass/iris.scale"] = (200, length, body)
    with pytest.raises(DataFileError, match=message) as caught:
        load("iris.scale")
    assert "/sets/multiclass/iris.scale: " in str(caught.value)
    assert list((folders / "cache").iterdir()) == []


def test_a_download_without_end_is_cut_off(server, folders):
    most = 150 * (64 + 32 * 4)
    server.files["/sets/multiclass/iris.scale"] = (200, None, b"1 1:1 2:1 3:1 4:1\n" * 200_000)
    with pytest.raises(DataFileError, match=f"iris.scale: expected at most {most} bytes, found more"):
        load("iris.scale")
    assert list((folders / "cache").iterdir()) == []


def test_a_download_that_unfolds_beyond_the_set_is_refused(server, folders, monkeypatch):
    body = bz2.compress(b"1 1:1 2:1 3:1 4:1\n" * 500_000)
    server.files["/sets/multiclass/iris.scale.bz2"] = (200, len(body), body)
    monkeypatch.setenv("HINGE_FILE_MEMORY", "8")
    with pytest.raises(DataFileError, match=r"iris.scale.bz2: what it holds takes more than 8 MB"):
        load("iris.scale")
    assert list((folders / "cache").iterdir()) == []


def test_redirections_stay_on_their_host(server, folders):
    server.files["/sets/multiclass/iris.scale.bz2"] = (302, "/elsewhere/iris.bz2", b"")
    body = bz2.compress(IRIS)
    server.files["/elsewhere/iris.bz2"] = (200, len(body), body)
    assert load("iris.scale").X.shape == (150, 4)
    port = server.server_address[1]
    for target in (f"http://localhost:{port}/elsewhere/iris.bz2", "http://127.0.0.1:1/", "ftp://127.0.0.1/iris"):
        for path in (folders / "cache").iterdir():
            path.unlink()
        server.files["/sets/multiclass/iris.scale.bz2"] = (302, target, b"")
        asked = len(server.asked)
        with pytest.raises((DataFileError, DataSetNotFound), match=r"another place|not allowed"):
            load("iris.scale")
        assert len(server.asked) == asked + 1
        assert list((folders / "cache").iterdir()) == []


def test_other_numbers_under_a_known_name_are_refused(server, folders, monkeypatch):
    right = datasets.fingerprint(read_data(io.BytesIO(IRIS), n_features=4))
    monkeypatch.setitem(datasets._CONTENT, "iris.scale", right)
    wrong = IRIS.replace(b"1:0.7 ", b"1:0.6 ")
    server.files["/sets/multiclass/iris.scale"] = (200, len(wrong), wrong)
    with pytest.raises(DataFileError, match=r"iris.scale: its numbers are not those of iris.scale: the checksum"):
        load("iris.scale")
    assert list((folders / "cache").iterdir()) == []
    same = b"# the same in other words\n" + IRIS.replace(b" 4:1\n", b" 2:0 4:1.0\n")
    server.files["/sets/multiclass/iris.scale"] = (200, len(same), same)
    assert load("iris.scale").X.shape == (150, 4)


def test_a_file_that_changed_in_the_cache_is_refused(server, folders):
    server.files["/sets/multiclass/iris.scale"] = (200, len(IRIS), IRIS)
    load("iris.scale")
    path = folders / "cache" / "iris.scale"
    path.write_bytes(IRIS.replace(b"1:0.7 ", b"1:0.6 "))
    with pytest.raises(DataFileError, match="it changed since it was downloaded: remove it"):
        load("iris.scale")
    path.unlink()
    assert load("iris.scale").X.shape == (150, 4)


def test_not_found_says_where_it_looked(server, folders):
    with pytest.raises(DataSetNotFound) as caught:
        load("iris.scale")
    message = str(caught.value)
    for part in (folders / "data", folders / "cache", "multiclass/iris.scale.bz2 (404)", "iris.scale.xz (404)"):
        assert str(part) in message
    server.files["/sets/multiclass/iris.scale.bz2"] = (503, 0, b"")
    with pytest.raises(DataSetNotFound, match=r"\(503\)"):
        load("iris.scale")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("iris.scale", {}, "refused"),
        ("iris.scale", {"download": False}, "download=False"),
        ("spambase", {}, "LIBSVM's page does not have it"),
        ("a9b", {}, "did you mean 'a9a'"),
    ],
)
def test_not_found(name, options, message):
    with pytest.raises(DataSetNotFound, match=message):
        load(name, **options)


def test_bad_arguments(monkeypatch):
    for name in ("", "../a9a", "/etc/passwd", ".hidden"):
        with pytest.raises(ValueError, match="name"):
            load(name)
    with pytest.raises(ValueError, match="http"):
        load("a9a", base_url="file:///tmp")
    with pytest.raises(DataSetNotFound, match="did you mean"):
        datasets.about("a9z")
    monkeypatch.delenv("HINGE_DATA")
    with pytest.raises(DataSetNotFound, match=r"\$HINGE_DATA \(not set\)"):
        load("a9a", download=False)


def test_platform_cache(monkeypatch):
    monkeypatch.delenv("HINGE_CACHE")
    for platform, variable in [("linux", "XDG_CACHE_HOME"), ("win32", "LOCALAPPDATA"), ("darwin", None)]:
        monkeypatch.setattr("sys.platform", platform)
        if variable:
            monkeypatch.setenv(variable, "there")
            assert datasets._cache() == Path("there") / "hinge"
        else:
            assert datasets._cache() == Path("~/Library/Caches/hinge").expanduser()


def idx(array):
    return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()


@pytest.fixture
def small_mnist(monkeypatch):
    monkeypatch.setitem(datasets.KNOWN, "mnist.t", datasets.About(3, 784, "multiclass"))
    images = np.arange(3 * 784, dtype=np.int64).astype(np.uint8).reshape(3, 28, 28)
    return images, np.array([7, 0, 9], np.uint8)


def test_mnist(small_mnist, folders):
    images, labels = small_mnist
    (folders / "data" / "mnist-t10k-images-idx3-ubyte.xz").write_bytes(lzma.compress(idx(images)))
    with pytest.raises(DataSetNotFound, match="labels"):
        load("mnist.t")
    path = folders / "data" / "mnist-t10k-labels-idx1-ubyte"
    path.write_bytes(idx(labels))
    X, y = load("mnist.t")
    assert X.dtype == np.float32
    assert np.array_equal(X, images.reshape(3, 784))
    assert np.issubdtype(y.dtype, np.integer)
    assert y.tolist() == [7, 0, 9]
    for damage in (idx(labels)[:-1], idx(labels) + b"x", idx(labels[:2]), b""):
        path.write_bytes(damage)
        with pytest.raises(DataFileError, match="idx"):
            load("mnist.t")


def test_mnist_as_text(small_mnist, folders):
    (folders / "data" / "mnist.t").write_bytes(b"7 1:3 780:255\n0 2:1\n9\n")
    X, y = load("mnist.t")
    assert X.shape == (3, 784)
    assert X.dtype == np.float32
    assert X[0, [0, 779]].tolist() == [3, 255]
    assert np.issubdtype(y.dtype, np.integer)


REAL = os.environ.get("HINGE_DATA")


@pytest.mark.data
@pytest.mark.parametrize("name", ["a1a", "a9a.t", "heart_scale", "iris.scale", "mnist.t", "housing", "w1a"])
def test_real_sets(name, monkeypatch):
    monkeypatch.setenv("HINGE_DATA", REAL)
    data, known = load(name, download=False), datasets.about(name)
    assert data.X.shape == (known.n_samples, known.n_features)
    assert (len(np.unique(data.y)) == 2) == (known.task == "binary")


@pytest.mark.data
@pytest.mark.parametrize("name", ["a1a", "heart_scale", "svmguide1", "housing_scale"])
def test_real_sets_have_the_content_that_downloads_must_have(name, monkeypatch):
    monkeypatch.setenv("HINGE_DATA", REAL)
    assert datasets.fingerprint(load(name, download=False)) == datasets._CONTENT[name]
