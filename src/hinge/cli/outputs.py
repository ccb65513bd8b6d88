"""Where a command writes: looked at before its work begins, and results as JSON."""

from __future__ import annotations

import json
import math
import os
from typing import Any

from hinge.cli.data import leave
from hinge.io import atomic_write


def check_output(path: str | None, complaint: str = "can't open output file") -> None:
    """Leave with a complaint if a file could not be written, so that nobody waits for a result that is lost.

    Parameters
    ----------
    path : str or None
        The file; None for none.
    complaint : str
        What LIBSVM's tool says in front of the name.
    """
    if path is None:
        return
    folder = os.path.dirname(os.path.realpath(path))
    if os.path.isdir(path):
        leave(f"{complaint} {path}\n{path}: it is a folder")
    if os.path.exists(path) and not os.path.isfile(path):  # a device or a pipe, which is written directly
        is_fine = os.access(path, os.W_OK)
    else:
        is_fine = os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)
    if not is_fine:
        why = "is read-only" if os.path.isdir(folder) else "does not exist"
        leave(f"{complaint} {path}\n{path}: the folder {folder} {why}")


def check_folder(path: str) -> None:
    """Leave with a complaint if a folder could not be made, or written to."""
    nearest = os.path.realpath(path)
    while not os.path.exists(nearest):
        nearest = os.path.dirname(nearest)
    if not os.path.isdir(nearest):
        leave(f"can't write into {path}: {nearest} is no folder")
    if not os.access(nearest, os.W_OK | os.X_OK):
        leave(f"can't write into {path}: {nearest} is read-only")


def as_json(figures: Any) -> str:
    """Return figures as JSON, which has no NaN and no infinity: they become null."""
    return json.dumps(_plain(figures), indent=2)


def write_json(figures: Any, path: str) -> None:
    """Write figures to a file, or say why not and leave."""
    try:
        with atomic_write(path) as file:
            file.write(as_json(figures) + "\n")
    except OSError as error:
        leave(f"cannot write the report to {path}: {error.strerror or error}")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
