"""The ``.out`` file of a grid search: every rate, a line each, written as soon as it is known.

The lines are ``grid.py``'s: ``log2c=5 log2g=-7 rate=83.3333``. Beside the file lies another, ``NAME.out.json``,
that says what was searched, so that nobody goes on with other data or other parameters.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import IO, Any

from hinge.cli.grid_points import Point
from hinge.io import atomic_write

_NUMBER = r"(-?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)"
_LINE = re.compile(rf"(?:log2c={_NUMBER} )?(?:log2g={_NUMBER} )?rate={_NUMBER}")


class ResumeError(ValueError):
    """A search cannot go on from a file."""


class Journal:
    """The file that a search writes.

    Parameters
    ----------
    path : str
        The file.
    about : dict
        What is searched, ready for JSON.
    keep : bool
        Whether rates that are there stay; a line that was cut off is removed.

    Raises
    ------
    ResumeError
        If rates are to stay that belong to another search, or cannot be read.
    OSError
        If the file cannot be written.
    """

    def __init__(self, path: str, about: Mapping[str, Any], keep: bool) -> None:
        whole = check(path, about) if keep and os.path.exists(path) else 0
        # First the rates go, then what they were about: a kill in between leaves no rates under a wrong name.
        with open(path, "ab") as file:
            file.truncate(whole)
        with atomic_write(about_path(path)) as description:
            json.dump(dict(about), description, indent=2)
            description.write("\n")
        self._file: IO[str] = open(path, "a", encoding="ascii")  # noqa: SIM115 - open as long as the search

    def write(self, point: Point, rate: float) -> None:
        """Add a rate; it is in the file when this returns."""
        self._file.write(line_of(point, rate))
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def line_of(point: Point, rate: float) -> str:
    """Return the line of a point.

    Examples
    --------
    >>> line_of((5, -7), 83.3333), line_of((None, -7.0), 83.0)
    ('log2c=5 log2g=-7 rate=83.3333\\n', 'log2g=-7.0 rate=83.0\\n')
    """
    places = [
        f"{name}={place} " for name, place in zip(("log2c", "log2g"), point, strict=True) if place is not None
    ]
    return f"{''.join(places)}rate={rate}\n"


def read_rates(path: str) -> dict[Point, float]:
    """Return the rates of a file; a last line without its end is taken for cut off and left out.

    Raises
    ------
    ResumeError
        If a line is not one of a grid search.
    """
    rates: dict[Point, float] = {}
    with open(path, encoding="ascii", errors="replace") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith("\n"):
                break
            if not line.strip():
                continue
            found = _LINE.fullmatch(line.strip())
            if found is None:
                raise ResumeError(f"{path}, line {number}: not a line of a grid search: {line.strip()[:60]!r}")
            c, gamma, rate = found.groups()
            rates[_exponent(c), _exponent(gamma)] = float(rate)
    return rates


def _exponent(word: str | None) -> float | None:
    return None if word is None else float(word)


def check(path: str, about: Mapping[str, Any]) -> int:
    """Return how many bytes of a file are whole lines, or raise ResumeError if they belong to another search.

    A file without a description, such as one that ``grid.py`` wrote, is taken on trust.
    """
    with open(path, "rb") as file:
        text = file.read()
    whole = text.rfind(b"\n") + 1
    if whole == 0:
        return 0
    try:
        with open(about_path(path), encoding="utf-8") as description:
            earlier = json.load(description)
    except (OSError, ValueError):
        return whole
    wanted = json.loads(json.dumps(dict(about)))
    changed = [name for name in wanted if isinstance(earlier, dict) and earlier.get(name) != wanted[name]]
    if changed:
        raise ResumeError(f"{path} belongs to another search: {_differences(changed, earlier, wanted)}")
    return whole


def _differences(changed: list[str], earlier: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    texts = [
        "the data are not the same"
        if name == "data"
        else f"{name} was {earlier.get(name)}, now it is {wanted[name]}"
        for name in changed
    ]
    return "; ".join(texts) + ". Search afresh without -resume, or write to another file with -out."


def about_path(path: str) -> str:
    """Return the file that says what the rates of another file are about."""
    return f"{path}.json"
