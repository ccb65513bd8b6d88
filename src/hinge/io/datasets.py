"""Public data sets by name: from a folder, from the cache, or from LIBSVM's data page.

`load` looks for a set, in this order,

1. in the folder that ``$HINGE_DATA`` names,
2. in the cache: ``$HINGE_CACHE``, or else ``hinge`` in the user's cache folder,
3. on LIBSVM's data page, https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/, or at the address
   ``$HINGE_DATA_URL``, and keeps what it finds there in the cache.

A download is kept only if it comes from that host itself, is no larger than the set can be, and has the right size
and, where that is known, the right content. Its checksum stays beside it; a file that changed since is refused.

Files are LIBSVM text, plain or compressed, under the names that LIBSVM gives them; MNIST may also be there as
its four original files, whose names then start with ``mnist-``.
"""

from __future__ import annotations

import difflib
import hashlib
import http.client
import os
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from hinge.io import Data, DataFileError, atomic_write, read_data
from hinge.io.svmlight.source import open_source

PAGE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"

_ENDINGS = ("", ".xz", ".bz2", ".gz")
_SECONDS = 60  # without an answer, before a download fails
_MOST_BYTES = 2**32  # of a download, whatever set it is
_FINGERPRINT_DIGITS = 32


class DataSetNotFound(LookupError):  # noqa: N818 - it says what happened
    """No data set of that name was found; the message says where `load` looked."""


class About(NamedTuple):
    """What is known of a data set beforehand.

    Attributes
    ----------
    n_samples, n_features : int
        Its size.
    task : str
        ``"binary"``, ``"multiclass"`` or ``"regression"``; also the folder of LIBSVM's page that holds it.
    published : bool
        Whether it is on LIBSVM's page in this form.
    """

    n_samples: int
    n_features: int
    task: str
    published: bool = True


def _table() -> dict[str, About]:
    # name:samples:features, with a star if LIBSVM's page does not have the set in this form
    sizes = {
        "binary": """
            a1a:1605:123 a2a:2265:123 a3a:3185:123 a4a:4781:123 a5a:6414:123 a6a:11220:123 a7a:16100:123
            a8a:22696:123 a9a:32561:123 a9a.t:16281:123 w1a:2477:300 w2a:3470:300 w3a:4912:300
            w4a:7366:300 w5a:9888:300 w6a:17188:300 w7a:24692:300 w8a:49749:300 w8a.t:14951:300
            heart_scale:270:13 ijcnn1:49990:22 ijcnn1.t:91701:22 cod-rna:59535:8 cod-rna.t:271617:8
            svmguide1:3089:4 svmguide1.t:4000:4 svmguide3:1243:22 svmguide3.t:41:22 mushrooms:8124:112
            german.numer:1000:24 diabetes:768:8 diabetes_scale:768:8 australian_scale:690:14
            breast-cancer:683:10 breast-cancer_scale:683:10 splice:1000:60 splice.t:2175:60
            phishing:11055:68 skin_nonskin:245057:3 fourclass:862:2 ionosphere_scale:351:34
            real-sim:72309:20958 rcv1_train.binary:20242:47236 news20.binary:19996:1355191
            gisette_scale:6000:5000 gisette_scale.t:1000:5000 covtype.libsvm.binary:581012:54
            spambase*:4601:57 reuters-money-fx*:7770:8315 reuters-money-fx.t*:3299:8315
        """,
        "multiclass": """
            connect-4:67557:126 covtype:581012:54 svmguide2:391:20 svmguide4:300:10 svmguide4.t:312:10
            letter.scale:15000:16 letter.scale.t:5000:16 usps:7291:256 usps.t:2007:256
            satimage.scale:4435:36 satimage.scale.t:2000:36 dna.scale:2000:180 dna.scale.t:1186:180
            vehicle.scale:846:18 segment.scale:2310:19 shuttle.scale:43500:9 shuttle.scale.t:14500:9
            vowel.scale:528:10 vowel.scale.t:462:10 iris.scale:150:4 wine.scale:178:13 glass.scale:214:9
            pendigits:7494:16 pendigits.t:3498:16 news20:15935:62061 mnist:60000:784 mnist.t:10000:784
            shuttle*:43500:9 shuttle.t*:14500:9
        """,
        "regression": """
            abalone_scale:4177:8 bodyfat:252:14 cpusmall:8192:12 cadata:20640:8 housing:506:13
            housing_scale:506:13 mpg:392:7 pyrim:74:27 space_ga:3107:6 triazines:186:60
        """,
    }
    table = {}
    for task, text in sizes.items():
        for entry in text.split():
            name, n_samples, n_features = entry.split(":")
            table[name.rstrip("*")] = About(int(n_samples), int(n_features), task, not name.endswith("*"))
    return table


KNOWN = _table()

# Fingerprints of sets whose copies agree in independent places. Others are known by their size alone.
_CONTENT = {
    "a1a": "380c249dbf85f59d88982d07184978f3",
    "a9a": "6e5185cecd7829df8cf37437adece2ed",
    "a9a.t": "666a35bdca57674e06e552c42dd27e18",
    "w8a": "498eac95ea22fd0a7372d7903c1609db",
    "heart_scale": "47551b5b59f4ff7b61a540a4d4c9ef1c",
    "connect-4": "9c99718e6ce52253929cd49d96ac3e04",
    "ijcnn1": "72f78363e894a0a6cb189eb636cc015a",
    "ijcnn1.t": "8c2317bed77e7111a29f8bc92e4b93ab",
    "svmguide1": "1152a62449d3bb6d52b7e6a740213b7d",
    "mushrooms": "89ca8acd811c3bf412320f4207ee2020",
    "segment.scale": "b60538dc3d258b7217c960e1155b77db",
    "housing_scale": "69a96387064dbf6b981d81bb8ddc5eca",
}

_MNIST = {"mnist": "mnist-train", "mnist.t": "mnist-t10k"}


def names() -> list[str]:
    """Return the names of the data sets whose size is known, in alphabetical order.

    Examples
    --------
    >>> names()[:3]
    ['a1a', 'a2a', 'a3a']
    """
    return sorted(KNOWN)


def about(name: str) -> About:
    """Return what is known of a data set without loading it.

    Examples
    --------
    >>> about("a9a.t")
    About(n_samples=16281, n_features=123, task='binary', published=True)
    """
    if name not in KNOWN:
        raise DataSetNotFound(f"no data set is known as {name!r}{_hint(name)}")
    return KNOWN[name]


def _hint(name: str) -> str:
    close = difflib.get_close_matches(name, KNOWN)
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""


def load(name: str, *, dtype: DTypeLike | None = None, download: bool = True, base_url: str | None = None) -> Data:
    """Load a data set by its name.

    Parameters
    ----------
    name : str
        The name LIBSVM's data page gives it, such as ``"a9a"`` or, for its test set, ``"a9a.t"``. Files of
        other names are found in the two folders as well; their size is then not checked.
    dtype : float64, float32 or None
        Type of the values; None takes float64, and float32 for MNIST.
    download : bool
        Whether to look on the network, if the set is in neither folder.
    base_url : str or None
        Where to download from; None takes ``$HINGE_DATA_URL`` or LIBSVM's data page.

    Returns
    -------
    Data
        Samples and labels. MNIST is dense, with labels 0 to 9 as integers; all else is sparse.

    Raises
    ------
    DataSetNotFound
        The set is nowhere; the message says where `load` looked.
    DataFileError
        A file was found but is damaged, or not of the size that the set must have.
    """
    if not name or name != os.path.basename(name) or name.startswith("."):
        raise ValueError(f"a data set's name is a file name without a folder, got {name!r}")
    looked = []
    for folder in _folders():
        if name in _MNIST and (images := _find(folder, f"{_MNIST[name]}-images-idx3-ubyte")):
            return _read_mnist(name, images, dtype)
        if path := _find(folder, name):
            _check_seal(path)
            return _read(name, path, dtype)
        looked.append(str(folder))
    if "HINGE_DATA" not in os.environ:
        looked.insert(0, "$HINGE_DATA (not set)")
    if download:
        looked += _download(name, base_url)
        if path := _find(_cache(), name):
            return _read(name, path, dtype)
    else:
        looked.append("not on the network, since download=False")
    raise DataSetNotFound(f"the data set {name!r} was not found. Looked in: {'; '.join(looked)}")


def _cache() -> Path:
    """Return the folder that keeps downloaded sets."""
    if folder := os.environ.get("HINGE_CACHE"):
        return Path(folder)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "hinge"


def _folders() -> Iterator[Path]:
    if folder := os.environ.get("HINGE_DATA"):
        yield Path(folder)
    yield _cache()


def _find(folder: Path, name: str) -> Path | None:
    paths = (folder / (name + ending) for ending in _ENDINGS)
    return next((path for path in paths if path.is_file()), None)


def _read(name: str, path: Path, dtype: DTypeLike | None) -> Data:
    known = KNOWN.get(name)
    if dtype is None:
        dtype = np.float32 if name in _MNIST else np.float64
    if known is None:
        return read_data(path, dtype=dtype)
    data = read_data(path, n_features=known.n_features, dtype=dtype, zero_based=False)
    if data.X.shape[0] != known.n_samples:
        raise DataFileError(f"expected {known.n_samples} rows, found {data.X.shape[0]}", str(path))
    if name in _MNIST:
        return Data(data.X.toarray(), data.y.astype(np.int64))
    return data


def _read_mnist(name: str, images: Path, dtype: DTypeLike | None) -> Data:
    labels = _find(images.parent, f"{_MNIST[name]}-labels-idx1-ubyte")
    if labels is None:
        raise DataSetNotFound(f"the labels of {name!r} are missing beside {images}")
    n_samples, n_features, *_ = KNOWN[name]
    X = _read_idx(images, (n_samples, 28, 28)).reshape(n_samples, n_features)
    y = _read_idx(labels, (n_samples,))
    return Data(X.astype(np.float32 if dtype is None else dtype), y.astype(np.int64))


def _read_idx(path: Path, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Read an idx file of bytes: two zeros, the type (8), the number of dimensions, the lengths, the bytes."""
    expected = bytes([0, 0, 8, len(shape)]) + np.array(shape, ">u4").tobytes()
    size = int(np.prod(shape))
    with open_source(path) as (file, name):
        head = _read_exactly(file, len(expected))
        body = _read_exactly(file, size + 1)
    if head != expected or len(body) != size:
        raise DataFileError(f"expected an idx file of unsigned bytes of shape {shape}", name)
    return np.frombuffer(body, np.uint8).reshape(shape)


def _read_exactly(file: Any, size: int) -> bytes:
    pieces = []
    while size > 0 and (piece := file.read(size)):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _download(name: str, base_url: str | None) -> list[str]:
    """Bring a set into the cache if the network has it; return where it was looked for."""
    base = (base_url or os.environ.get("HINGE_DATA_URL") or PAGE).rstrip("/")
    if not base.startswith(("http://", "https://")):
        raise ValueError(f"the address to download from must start with http:// or https://, got {base!r}")
    known = KNOWN.get(name)
    if known is None:
        return [f"not on the network, since no set of that name is known{_hint(name)}"]
    if not known.published:
        return ["not on the network, since LIBSVM's page does not have it in this form"]
    looked = []
    for ending in (".bz2", "", ".xz"):
        url = f"{base}/{known.task}/{name}{ending}"
        try:
            _fetch(url, name, _cache() / (name + ending))
            break
        except urllib.error.HTTPError as error:
            error.close()
            looked.append(f"{url} ({error.code})")
            if error.code != 404:
                break
        except (OSError, http.client.HTTPException) as error:
            looked.append(f"{url} ({getattr(error, 'reason', error)})")
            break
    return looked


class _SameHost(urllib.request.HTTPRedirectHandler):
    """Follows redirections within a host, and never from https to http."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        old, new = urllib.parse.urlsplit(req.full_url), urllib.parse.urlsplit(newurl)
        if (new.scheme, new.netloc) not in ((old.scheme, old.netloc), ("https", old.netloc)):
            raise DataFileError(
                f"the server sends us on to {new.scheme}://{new.netloc}, another place", req.full_url
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _most_bytes(known: About) -> int:
    """Return the size that no file of a set can exceed: all its values, with indices and seventeen digits."""
    return min(known.n_samples * (64 + 32 * known.n_features), _MOST_BYTES)


def _fetch(url: str, name: str, path: Path) -> None:
    """Download a file; keep it only if it is complete and holds the right number of rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    most = _most_bytes(KNOWN[name])
    opener = urllib.request.build_opener(_SameHost)
    with opener.open(url, timeout=_SECONDS) as answer, atomic_write(path, "wb") as file:
        promised = answer.headers.get("Content-Length")
        seal, size = hashlib.sha256(), 0
        while size <= most and (piece := answer.read(2**16)):
            file.write(piece)
            seal.update(piece)
            size += len(piece)
        if size > most:
            raise DataFileError(f"expected at most {most} bytes, found more", url)
        if promised is not None and size != int(promised):
            raise DataFileError(f"expected {promised} bytes, found {size}", url)
        file.flush()
        try:
            data = _read(name, Path(file.name), None)
        except DataFileError as error:
            raise DataFileError(error.message, url, error.errors, error.n_errors) from error
        if name in _CONTENT and fingerprint(data) != _CONTENT[name]:
            raise DataFileError(f"its numbers are not those of {name}: the checksum differs", url)
    with atomic_write(_seal_of(path)) as file:
        file.write(f"{seal.hexdigest()}  {path.name}\n")


def fingerprint(data: Data) -> str:
    """Return a checksum of the numbers of a data set, in whatever form its file holds them.

    Examples
    --------
    >>> import io
    >>> one, other = b"+1 1:0.50 2:0\\n-1 2:3 # last\\n", b"1 1:.5\\n-1 2:3e0"
    >>> fingerprint(read_data(io.BytesIO(one))) == fingerprint(read_data(io.BytesIO(other)))
    True
    """
    X = sp.csr_matrix(data.X, dtype=np.float64)
    X.eliminate_zeros()
    parts = (np.asarray(data.y, "<f8"), X.indptr.astype("<i8"), X.indices.astype("<i8"), X.data.astype("<f8"))
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()[:_FINGERPRINT_DIGITS]


def _seal_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _check_seal(path: Path) -> None:
    """Compare a file with the checksum beside it, if there is one."""
    try:
        expected = _seal_of(path).read_text("ascii", "replace").split()[:1]
    except FileNotFoundError:
        return
    with open(path, "rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if expected != [found]:
        raise DataFileError("it changed since it was downloaded: remove it, and it is downloaded again", str(path))
