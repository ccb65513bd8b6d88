"""``hinge subset``: draw a random part of a data file (LIBSVM's ``subset.py``)."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Iterable, Sequence

from hinge.cli.data import explained, leave
from hinge.cli.options import EXIT_OK, EXIT_USAGE
from hinge.cli.outputs import check_output
from hinge.cli.tables import SUBSET
from hinge.io import atomic_write
from hinge.io.budget import Budget
from hinge.io.svmlight.source import blocks, open_source

_STRATIFIED, _RANDOM = 0, 1

# What Python takes for a line beside its bytes: the object, and a place in each of two lists.
_BYTES_A_LINE = 56

_NO_CLASSES = """\
Error: failed to have at least one instance per class
    1. You may have regression data.
    2. Your classification data is unbalanced or too small.
Please use -s 1."""


def run(arguments: Sequence[str]) -> int:
    """Run the command; return its exit code."""
    parsed = SUBSET.parse(arguments)
    path, wanted, *outputs = parsed.files
    if parsed["method"] not in (_STRATIFIED, _RANDOM):
        SUBSET.fail("Unknown selection method {}".format(parsed["method"]))
    if not (wanted.isascii() and wanted.isdigit() and len(wanted) < 19):
        SUBSET.fail(f"hinge subset: n_lines takes a whole number, got {wanted!r}", EXIT_USAGE, usage=False)
    for output in outputs:
        check_output(None if output == "-" else output)
    lines = _read_lines(path)
    n = int(wanted)
    if n > len(lines):
        leave(f"{path} has {len(lines)} lines, fewer than {n}")
    draw = random.Random(parsed["seed"])
    chosen = _stratified(lines, n, draw) if parsed["method"] == _STRATIFIED else draw.sample(range(len(lines)), n)
    taken = set(chosen)
    _write(outputs[0] if outputs else "-", (lines[i] for i in sorted(taken)))
    if len(outputs) > 1:
        _write(outputs[1], (line for i, line in enumerate(lines) if i not in taken))
    return EXIT_OK


def _read_lines(path: str) -> list[bytes]:
    """Read the lines that hold a sample, each with its line feed; whatever they say stays as it is."""
    lines: list[bytes] = []
    with explained(path, "can't open input file"), open_source(path) as (file, name):
        budget = Budget(name)
        for text, stop in blocks(file, budget):
            fresh = text[:stop].tobytes().splitlines(keepends=True)
            budget.keep(stop + _BYTES_A_LINE * len(fresh))
            lines += fresh
    return [line for line in lines if line.strip() and not line.lstrip().startswith(b"#")]


def _stratified(lines: Sequence[bytes], n: int, draw: random.Random) -> list[int]:
    """Draw of every class as many as its share, rounded up; rare classes first, so that each has one at least."""
    members: dict[bytes, list[int]] = {}
    for i, line in enumerate(lines):
        members.setdefault(line.split(None, 1)[0], []).append(i)
    chosen: list[int] = []
    for places in sorted(members.values(), key=len):
        share = min(n - len(chosen), max(1, math.ceil(len(places) * n / len(lines))))
        if share == 0:
            leave(_NO_CLASSES)
        chosen += draw.sample(places, share)
    return chosen


def _write(path: str, lines: Iterable[bytes]) -> None:
    if path == "-":
        for line in lines:
            sys.stdout.write(line.decode("ascii", "backslashreplace"))
        sys.stdout.flush()
        return
    try:
        with atomic_write(path, "wb") as file:
            file.writelines(lines)
    except OSError as error:
        leave(f"can't open output file {path}: {error.strerror or error}")
