"""What runs on workers: hosts of shards, and the tasks that bring partitions to them."""

from __future__ import annotations

import threading
import weakref
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from hinge.data.structure import canonical
from hinge.kernel.shard import Facts, Shard

#: The answer of a host in the place of a shard that it does not have.
ABSENT = "absent"

# The shards of this process: by fit, worker and number. Tasks put them there, actors find them.
_shards: dict[tuple[str, str], dict[int, Shard]] = {}
_lock = threading.Lock()


class Adopted(NamedTuple):
    """What a worker says of a partition that it has taken as a shard.

    Attributes
    ----------
    address : str
        Where it is.
    facts : Facts
        What its rows are like.
    dtype : str
        Type of its values.
    is_sparse : bool
        Whether they are rows of a CSR matrix.
    fault : str
        Why it cannot be a shard; "" where it can.
    """

    address: str
    facts: Facts | None
    dtype: str
    is_sparse: bool
    fault: str = ""


class Host:
    """The actor on a worker that passes questions on to shards.

    Its shards go when it does: when a fit ends, or its client is heard no more, Dask drops the actor.

    Parameters
    ----------
    token : str
        Of the fit.
    """

    def __init__(self, token: str) -> None:
        from distributed import get_worker

        self._key = token, get_worker().address
        with _lock:
            _shards.setdefault(self._key, {})
        weakref.finalize(self, _shards.pop, self._key, None)

    def answer(self, question: str, common: tuple[Any, ...], own: dict[int, Any]) -> dict[int, Any]:
        """Put a question to some shards; return their answers by number."""
        shards = _shards.get(self._key, {})
        return {
            number: shards[number].answer(question, *common, *arguments) if number in shards else ABSENT
            for number, arguments in own.items()
        }

    def drop(self, numbers: list[int]) -> None:
        """Give some shards up."""
        for number in numbers:
            _shards.get(self._key, {}).pop(number, None)

    def adopt(self, part: Any, number: int, dtype: str, is_sparse: bool) -> Adopted:
        """Take a block of rows as a shard."""
        return _adopted(part, self._key, number, dtype, is_sparse)


def adopt(part: Any, token: str, number: int, dtype: str, is_sparse: bool) -> Adopted:
    """Take a partition as a shard of the worker that this task runs on."""
    from distributed import get_worker

    return _adopted(part, (token, get_worker().address), number, dtype, is_sparse)


def _adopted(part: Any, key: tuple[str, str], number: int, dtype: str, is_sparse: bool) -> Adopted:
    from distributed import get_worker

    worker = get_worker()
    try:
        rows = _rows_of(part, dtype, is_sparse)
    except (TypeError, ValueError) as error:
        return Adopted(key[1], None, "", False, str(error))
    limit = worker.memory_manager.memory_limit
    here = _shards.get(key, {})
    needed = sum(_bytes_of(shard.rows) for shard in here.values()) + _bytes_of(rows)
    if limit and needed > limit:
        return Adopted(
            key[1], None, "", False,
            f"worker {key[1]} may use {limit / 2**20:.0f} MiB and would have to hold {needed / 2**20:.0f} MiB of "
            "samples: give workers more memory, or start more of them",
        )  # fmt: skip
    shard = Shard(rows, worker.state.nthreads)
    facts = shard.facts(np.arange(shard.n))
    with _lock:
        _shards.setdefault(key, {})[number] = shard
    return Adopted(key[1], facts, np.dtype(rows.dtype).str, sp.issparse(rows))


def _rows_of(part: Any, dtype: str, is_sparse: bool) -> Any:
    """Return the rows of a partition as a shard holds them: floats in C order, or a canonical CSR matrix."""
    if hasattr(part, "iloc"):  # a data frame
        part = part.to_numpy()
    if sp.issparse(part):
        rows: Any = canonical(part)
    else:
        rows = np.asarray(part)
        if rows.dtype.kind == "c":
            raise ValueError("complex data is not supported: pass the real part if it is meant")
        if rows.ndim != 2:
            raise ValueError(f"a matrix with one row per sample is needed, got {rows.ndim} dimension(s)")
        if rows.dtype not in (np.float32, np.float64):
            rows = rows.astype(np.float64)
        rows = np.ascontiguousarray(rows)
    if is_sparse and not sp.issparse(rows):
        rows = sp.csr_array(rows)
    return rows.astype(dtype, copy=False) if dtype else rows


def _bytes_of(rows: Any) -> int:
    if sp.issparse(rows):
        return int(rows.data.nbytes + rows.indices.nbytes + rows.indptr.nbytes)
    return int(rows.nbytes)
