"""Start workers, listen to them, and end those that take too long."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
READY_SECONDS = 900  # to import, compile, read the data and warm up


def environment(**extra: str) -> dict[str, str]:
    """Return the environment of a worker: this one, with the repository on Python's path."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONWARNINGS": "ignore", **extra}


def work(
    job: dict[str, Any], timeout: float, show: bool = False, module: str = "benchmarks.worker"
) -> Iterator[dict[str, Any]]:
    """Run a job in a fresh process; yield what it says, and at last "end", "timeout" or "error".

    Parameters
    ----------
    job : dict
        What the module reads.
    timeout : float
        Seconds that each message after the first may take; a message's own ``patience`` goes before it.
    show : bool
        Whether the worker's own output goes to the terminal.
    module : str
        What the process runs.
    """
    path = Path(job["folder"]) / "job.json"
    path.write_text(json.dumps(job))
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", module, str(path)],
            stdout=subprocess.PIPE, stderr=None if show else errors, text=True, env=environment(), cwd=ROOT,
        )  # fmt: skip
        lines: queue.Queue[str | None] = queue.Queue()
        listener = threading.Thread(target=_pump, args=(process, lines), daemon=True)
        listener.start()
        try:
            yield from _messages(process, lines, timeout, errors)
        finally:
            process.kill()
            process.wait()
            listener.join()
            assert process.stdout is not None
            process.stdout.close()


def _pump(process: subprocess.Popen[str], lines: queue.Queue[str | None]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        lines.put(line)
    lines.put(None)


def _messages(
    process: subprocess.Popen[str], lines: queue.Queue[str | None], timeout: float, errors: Any
) -> Iterator[dict[str, Any]]:
    patience: float = READY_SECONDS
    while True:
        try:
            line = lines.get(timeout=patience)
        except queue.Empty:
            yield {"event": "timeout", "seconds": patience}
            return
        if line is None:
            process.wait()
            errors.seek(0)
            text = errors.read().strip().splitlines()
            yield {"event": "error", "message": text[-1] if text else f"exit code {process.returncode}"}
            return
        message = json.loads(line)
        yield message
        if message["event"] == "end":
            return
        patience = message.get("patience", timeout)
