"""The verbs of Dask that are used, all of them in this file.

`submit` (tasks, and one actor a worker), `compute`, `gather`, `nthreads`, `cancel`, `log_event`, and the call of
an actor, which is made here by Dask's own connections: an `Actor` would wait for ever for a worker that died.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from hinge.runtime.interrupt import Cancelled

# Seconds between two looks at whether somebody asked to stop, while answers are awaited.
_LOOK = 0.02

# Seconds that a worker may take to be called, and a scheduler to answer a new client.
_CONNECT = 10.0

# Seconds that the last event of a fit may take to be heard.
_LAST_WORDS = 1.0


#: The topic of the events that are told to the scheduler, for `distributed.Client.subscribe_topic`.
TOPIC = "hinge"


class WorkerLostError(ConnectionError):
    """A worker did not answer, and will not."""


def client_of(address: str) -> Any:
    """Return a new client of the scheduler at an address.

    Raises
    ------
    ConnectionError
        None answers there.
    ModuleNotFoundError
        Dask is missing.
    """
    _distributed()
    from distributed import Client

    try:
        return Client(address, timeout=_CONNECT)
    except (OSError, TimeoutError, ValueError) as error:
        raise ConnectionError(f"no scheduler answers at {address}: {error}") from error


def _distributed() -> None:
    try:
        import distributed  # noqa: F401
    except ModuleNotFoundError as error:
        advice = "training on a cluster needs Dask: pip install 'hinge-svm[cluster]'"
        raise ModuleNotFoundError(advice, name="distributed") from error


@contextmanager
def client_for(client: Any) -> Iterator[Any]:
    """Yield the client to work with: the caller's, that of the task we are in, or the default one."""
    _distributed()
    from distributed import Client, default_client, get_worker, worker_client

    if client is not None:
        if not isinstance(client, Client):
            raise TypeError(f"client must be a distributed.Client or None, got {client!r}")
        yield client
        return
    is_task = True
    try:
        get_worker()
    except ValueError:
        is_task = False
    if is_task:
        with worker_client() as own:  # its thread stands aside meanwhile, so that shards find room on this worker
            yield own
        return
    try:
        found = default_client()
    except ValueError as error:
        raise ValueError("no Dask client: pass client=, or make a distributed.Client first") from error
    yield found


class Cluster:
    """What one fit asks of a Dask cluster.

    Parameters
    ----------
    client : distributed.Client
        The connection to its scheduler.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self.token = f"hinge-{secrets.token_hex(8)}"
        self._hosts: dict[str, Any] = {}
        self._coming: dict[str, Any] = {}
        self._direct: dict[str, bool] = {}
        self._in_turn = asyncio.Lock()
        self._told: concurrent.futures.Future[None] | None = None

    # ------------------------------------------------------------------ workers

    @property
    def is_connected(self) -> bool:
        """Whether the scheduler can be heard."""
        return bool(self.client.status == "running")

    def workers(self) -> list[str]:
        """Return the addresses of all workers that are there."""
        with suppress(OSError, asyncio.TimeoutError, TimeoutError, RuntimeError):
            return sorted(self.client.nthreads())
        return []

    def on_all(self, function: Callable[[], Any], cancelled: Callable[[], bool]) -> dict[str, Any]:
        """Call a function on every worker at once; return its answers, or exceptions, by address."""
        addresses = self.workers()
        futures = [self.place(function, worker=address, is_strict=True) for address in addresses]
        return dict(zip(addresses, self.wait_for(futures, cancelled, addresses), strict=True))

    def invite(self, kind: type[Any], addresses: Sequence[str]) -> None:
        """Have an actor of a class started on each of these workers, and do not wait for that."""
        for address in addresses:
            if address not in self._coming:
                self._coming[address] = self.client.submit(
                    kind, self.token, key=f"{self.token}-host-{secrets.token_hex(4)}", workers=[address],
                    allow_other_workers=False, actor=True, pure=False,
                )  # fmt: skip

    def start_hosts(self, kind: type[Any], addresses: Sequence[str], cancelled: Callable[[], bool]) -> list[str]:
        """Start an actor of a class on each of these workers; return those where that went well."""
        self.invite(kind, addresses)
        self.wait_for([self._coming[address] for address in addresses], cancelled, addresses)
        return self.arrived()

    def arrived(self) -> list[str]:
        """Return the workers whose actors have been started since this was asked last."""
        there, arrived = set(self.workers()) if self._coming else set(), []
        for address, future in list(self._coming.items()):
            if address not in there:
                self.client.cancel([future])
            elif not future.done():
                continue
            elif future.status == "error":
                raise RuntimeError(f"worker {address} cannot hold shards: {future.exception()}")
            elif future.status == "finished":
                self._hosts[address] = future
                arrived.append(address)
            self._coming.pop(address, None)
        return arrived

    @property
    def hosts(self) -> list[str]:
        """Addresses of the workers that hold shards."""
        return list(self._hosts)

    def forget(self, address: str) -> None:
        """Expect nothing of a worker any more."""
        self._hosts.pop(address, None)
        self._coming.pop(address, None)

    def tell(self, event: str, **figures: Any) -> None:
        """Tell everybody who has subscribed to our topic; whether the scheduler hears it is not waited for."""
        message = {"event": event, "fit": self.token, **figures}
        with suppress(RuntimeError):  # the client has been closed meanwhile
            self._told = asyncio.run_coroutine_threadsafe(self._tell(message), self._loop)

    async def _tell(self, message: dict[str, Any]) -> None:
        async with self._in_turn:
            with suppress(OSError, TimeoutError, RuntimeError):
                await self.client.log_event(TOPIC, message)

    # ------------------------------------------------------------------ calls

    def call(
        self, function: str, arguments: Mapping[str, tuple[Any, ...]], cancelled: Callable[[], bool]
    ) -> dict[str, Any]:
        """Call a method of the actors at some addresses, all at once.

        Returns
        -------
        dict
            What each returned; a `WorkerLostError` for a worker that is gone.

        Raises
        ------
        Cancelled
            Somebody asked to stop. What workers have begun they finish, and nobody listens.
        """
        calls = {
            asyncio.run_coroutine_threadsafe(self._call(address, function, given), self._loop): address
            for address, given in arguments.items()
        }
        results = {}
        waiting = set(calls)
        looked = time.monotonic()
        try:
            while waiting:
                done, waiting = concurrent.futures.wait(waiting, _LOOK)
                for call in done:
                    results[calls[call]] = call.result()
                if waiting and cancelled():
                    raise Cancelled
                if waiting and time.monotonic() > looked + 10 * _LOOK:  # Dask calls those who are gone for long
                    there, looked = self.workers(), time.monotonic()
                    for call in [call for call in waiting if calls[call] not in there]:
                        call.cancel()
                        waiting.discard(call)
                        results[calls[call]] = WorkerLostError(f"worker {calls[call]} is gone")
        finally:
            for call in waiting:
                call.cancel()
        return results

    @property
    def _loop(self) -> Any:
        return self.client.loop.asyncio_loop

    async def _call(self, address: str, function: str, arguments: tuple[Any, ...]) -> Any:
        from distributed.protocol import to_serialize

        host = self._hosts.get(address)
        if host is None:
            return WorkerLostError(f"worker {address} is gone")
        message = {
            "actor": host.key,
            "function": function,
            "args": [to_serialize(argument) for argument in arguments],
            "kwargs": {},
        }
        try:
            answer = await self._send(address, message)
        except (OSError, TimeoutError, KeyError, RuntimeError) as error:
            # KeyError: another worker has that address now; RuntimeError: the connections are closed.
            return WorkerLostError(f"worker {address} is gone: {error!r}")
        if answer["status"] == "OK":
            return answer["result"]
        raise answer["exception"]

    async def _send(self, address: str, message: dict[str, Any]) -> Any:
        """Send a message to a worker; through the scheduler, where only that can reach it."""
        if address not in self._direct:
            try:
                comm = await asyncio.wait_for(self.client.rpc.connect(address), _CONNECT)
                self.client.rpc.reuse(address, comm)
                self._direct[address] = True
            except (TimeoutError, OSError):
                self._direct[address] = False
        if self._direct[address]:
            return await self.client.rpc(address).actor_execute(**message)
        return await self.client.scheduler.proxy(worker=address, msg={**message, "op": "actor_execute"})

    # ------------------------------------------------------------------ tasks

    def compute(self, parts: Sequence[Any]) -> list[Any]:
        """Have parts of collections computed, together, and kept where they are; return their futures."""
        return list(self.client.compute(list(parts)))

    def place(
        self, function: Callable[..., Any], *arguments: Any, worker: str | None = None, is_strict: bool = False
    ) -> Any:
        """Call a function on the worker that holds its arguments, or on a certain one; return the future."""
        where = {} if worker is None else {"workers": [worker], "allow_other_workers": not is_strict}
        key = f"{self.token}-place-{secrets.token_hex(4)}"
        return self.client.submit(function, *arguments, key=key, pure=False, **where)

    def wait_for(
        self, futures: Sequence[Any], cancelled: Callable[[], bool], addresses: Sequence[str] | None = None
    ) -> list[Any]:
        """Return what tasks returned, or their exceptions; ``addresses``: the one worker that may run each.

        A result is lost with its worker, even while it is on its way: its task runs again then, if it may.
        """
        fetches = [asyncio.run_coroutine_threadsafe(self._outcome(future), self._loop) for future in futures]
        left = set(fetches)
        try:
            while True:
                _, left = concurrent.futures.wait(left, 10 * _LOOK)
                if not left:
                    return [fetch.result() for fetch in fetches]
                if addresses is not None:  # what only a worker may do that is gone, nobody will ever do
                    there = set(self.workers())
                    homes = zip(fetches, futures, addresses, strict=True)
                    self.client.cancel(
                        [task for fetch, task, home in homes if fetch in left and home not in there]
                    )
                if cancelled():
                    self.client.cancel(
                        [task for fetch, task in zip(fetches, futures, strict=True) if fetch in left]
                    )
                    raise Cancelled
                if not self.is_connected:
                    where = self.client.scheduler.address
                    raise ConnectionError(f"the connection to the scheduler {where} is lost")
        finally:
            for fetch in left:
                fetch.cancel()

    async def _outcome(self, future: Any) -> Any:
        try:
            return await self.client.gather(future, asynchronous=True)
        except asyncio.CancelledError as error:
            if future.cancelled():
                return WorkerLostError(f"the task {future.key} was cancelled: {error}")
            raise
        except Exception as error:
            return WorkerLostError(str(error)) if future.status != "error" else error

    def close(self) -> None:
        """Leave nothing behind."""
        if self._told is not None:
            concurrent.futures.wait([self._told], _LAST_WORDS)
        with suppress(Exception):
            self.client.cancel([*self._hosts.values(), *self._coming.values()])
        self._hosts.clear()
        self._coming.clear()
