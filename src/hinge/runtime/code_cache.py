"""Machine code on disk, behind Numba: a full disk or a damaged file costs time, never an answer.

Numba's own cache raises what the system and `pickle` raise, in the middle of a fit; a flipped bit in machine code
it does not notice at all. Here every file ends with a checksum and says what it was made from. What cannot be read
is compiled again and written anew; what cannot be written stays in memory; the first time, a warning says so.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import threading
import warnings
from itertools import count
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.runtime.nrt import rtsys

_NumbasFiles: Any = IndexDataCacheFile  # without types
_NumbasCache: Any = FunctionCache

_LAYOUT = "hinge 2"
_SEAL_BYTES = hashlib.sha256().digest_size

_lock = threading.Lock()
_has_warned = False


#: Where this process has found compiled code, or kept some.
folders: set[str] = set()


class _DamagedError(Exception):
    pass


def _sealed(data: bytes) -> bytes:
    return data + hashlib.sha256(data).digest()


def _unsealed(data: bytes) -> bytes:
    body, seal = data[:-_SEAL_BYTES], data[-_SEAL_BYTES:]
    if hashlib.sha256(body).digest() != seal:
        raise _DamagedError("a file is damaged")
    return body


_READ = "read from {} ({}): it is compiled again. If this is said more than once"
_WRITTEN = "kept in {} ({}): it stays in memory, and every start takes seconds to compile it again. To change that"


def _warn_once(folder: str, trouble: str, error: Exception) -> None:
    global _has_warned
    with _lock:
        if _has_warned:
            return
        _has_warned = True
    reason = getattr(error, "strerror", None) or error or type(error).__name__
    warnings.warn(
        f"compiled code cannot be {trouble.format(folder, reason)}, make room there, or set NUMBA_CACHE_DIR to "
        "another folder.",
        RuntimeWarning,
        stacklevel=2,
    )


class _Files(_NumbasFiles):  # type: ignore[misc]
    """The index of a function's compiled forms and their files, each with a checksum at its end."""

    def __init__(self, cache_path: str, filename_base: str, source_stamp: Any) -> None:
        super().__init__(cache_path, filename_base, source_stamp)
        self._version: str = f"{numba.__version__} {_LAYOUT}"

    def save(self, key: Any, data: Any) -> None:
        """Write the code first, and then the index: a full disk must not leave it pointing to older code."""
        overloads = self._load_index()
        taken = set(overloads.values())
        name = overloads.get(key) or next(name for i in count(1) if (name := self._data_name(i)) not in taken)
        self._save_data(name, (self._source_stamp, key, data))
        if key not in overloads:
            self._save_index({**overloads, key: name})

    def load(self, key: Any) -> Any:
        """Return what was saved under ``key``, or None; raise for a file that is damaged."""
        found = super().load(key)
        if found is None:
            return None
        stamp, own_key, data = found
        return data if (stamp, own_key) == (self._source_stamp, key) else None

    def _dump(self, obj: Any) -> bytes:
        return _sealed(super()._dump(obj))

    def _load_index(self) -> dict[Any, str]:
        try:
            with open(self._index_path, "rb") as file:
                version = pickle.load(file)
                if version != self._version:
                    return {}
                stamp, overloads = pickle.loads(_unsealed(file.read()))
        except FileNotFoundError:
            return {}
        except Exception as error:  # a damaged pickle may raise anything; the next save writes it anew
            _warn_once(self._cache_path, _READ, error)
            return {}
        return dict(overloads) if stamp == self._source_stamp else {}

    def _load_data(self, name: str) -> Any:
        with open(os.path.join(self._cache_path, name), "rb") as file:
            return pickle.loads(_unsealed(file.read()))


class CodeCache(_NumbasCache):  # type: ignore[misc]
    """The compiled forms of one function.

    Parameters
    ----------
    function : callable
        The function in Python.

    Raises
    ------
    RuntimeError
        There is no folder to write to.
    """

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        locator = self._impl.locator
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, locator.get_source_stamp())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled form of a signature, or None where it has to be compiled."""
        # What loaded code calls must be there. Numba would prepare itself for compiling too, for half a second.
        rtsys.initialize(target_context)
        try:
            with self._guard_against_spurious_io_errors():
                found = self._load_overload(sig, target_context)
        except Exception as error:  # whatever a damaged file holds
            _warn_once(self._cache_path, _READ, error)
            return None
        if found is not None:
            folders.add(self._cache_path)
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write the compiled form of a signature, if that is possible."""
        try:
            super().save_overload(sig, data)
        except Exception as error:
            _warn_once(self._cache_path, _WRITTEN, error)
            return
        folders.add(self._cache_path)
