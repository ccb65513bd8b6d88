"""A Dask cluster on loopback, every part a process of its own; and a wire that counts what passes."""

import json
import os
import selectors
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent


class Cluster:
    """A scheduler and workers of one thread each.

    Parameters
    ----------
    folder : path
        For their files.
    **environment : str
        Variables of the environment of all processes.
    """

    def __init__(self, folder, **environment):
        self.folder = Path(folder)
        self.workers = []
        # Workers import the scorers of the tests, and the same sources as this process.
        paths = [str(HERE), *sys.path]
        self.environment = {
            **os.environ,
            **environment,
            "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        }
        where = self.folder / "scheduler.json"
        words = ["scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", where]
        self.scheduler = self._start(words)
        while not where.exists():
            assert self.scheduler.poll() is None, "the scheduler did not start"
            time.sleep(0.05)
        self.address = json.loads(where.read_text())["address"]

    def _start(self, words):
        command = [sys.executable, "-m", "dask", *map(str, words)]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(command, env=self.environment, cwd=self.folder, **quiet)

    def add_worker(self, address=None):
        """Start a worker; it joins when it has imported what units need."""
        options = [
            "--nthreads",
            "1",
            "--no-nanny",
            "--no-dashboard",
            "--memory-limit",
            "0",
            "--preload",
            "hinge.selection",
        ]
        self.workers.append(self._start(["worker", address or self.address, *options]))

    def kill_worker(self, which=0):
        """Kill a worker, the oldest by default, without a word of warning."""
        worker = self.workers.pop(which)
        worker.kill()
        worker.wait()

    def close(self):
        """End all of it."""
        for process in [*self.workers, self.scheduler]:
            process.kill()
            process.wait()


class Wire:
    """Passes bytes between a port of its own and another address, and counts them.

    Parameters
    ----------
    address : str
        Where to, ``tcp://host:port``.

    Attributes
    ----------
    address : str
        Where to connect instead.
    to, back : int
        Bytes so far, towards the address and from it.
    """

    def __init__(self, address):
        host, _, port = address.removeprefix("tcp://").rpartition(":")
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        self.to = self.back = 0
        self._sockets = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection(self._target)
            self._sockets += [near, far]
            threading.Thread(target=self._pass, args=(near, far), daemon=True).start()

    def _pass(self, near, far):
        with selectors.DefaultSelector() as ready, near, far:
            ready.register(near, selectors.EVENT_READ, (far, "to"))
            ready.register(far, selectors.EVENT_READ, (near, "back"))
            while True:
                for key, _ in ready.select():
                    other, name = key.data
                    try:
                        chunk = key.fileobj.recv(1 << 16)
                        if chunk:
                            other.sendall(chunk)
                    except OSError:
                        chunk = b""
                    if not chunk:
                        return
                    setattr(self, name, getattr(self, name) + len(chunk))

    def close(self):
        """Take it down."""
        self._listener.close()
