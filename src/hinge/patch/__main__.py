"""Run a script, or a module, in which scikit-learn's support vector machines are Hinge's.

Usage: python -m hinge.patch script.py arguments…
       python -m hinge.patch -m module arguments…
"""

from __future__ import annotations

import logging
import runpy
import sys
from pathlib import Path

from hinge.patch.switch import patch


def main(arguments: list[str]) -> None:
    """Patch, say so on standard error, and run what the arguments name as if Python had been started with it."""
    is_module = arguments[:1] == ["-m"]
    command = arguments[1:] if is_module else arguments
    if not command or (command[0].startswith("-") and not is_module):
        sys.exit(__doc__)
    if not is_module and not Path(command[0]).exists():
        sys.exit(f"hinge.patch: there is no file {command[0]}")
    _patch_aloud()
    sys.argv[:] = command
    if is_module:
        runpy.run_module(command[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(command[0]).resolve().parent)
        runpy.run_path(command[0], run_name="__main__")


def _patch_aloud() -> None:
    logger, handler = logging.getLogger("hinge"), logging.StreamHandler()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        patch()
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)


if __name__ == "__main__":
    main(sys.argv[1:])
