"""``hinge easy``: scale, search, train and predict (LIBSVM's ``easy.py``)."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout

from hinge.cli.commands import grid, predict, scale, train
from hinge.cli.data import leave
from hinge.cli.options import EXIT_OK
from hinge.cli.outputs import check_output
from hinge.cli.tables import EASY, GRID
from hinge.io import atomic_write


def run(arguments: Sequence[str]) -> int:
    """Run the command; return its exit code."""
    parsed = EASY.parse(arguments)
    training_file, *testing_files = parsed.files
    for path, kind in zip(parsed.files, ("training", "testing"), strict=False):
        if not os.path.exists(path):
            leave(f"{kind} file not found: {path}")
    threads = [] if parsed["threads"] is None else ["--threads", str(parsed["threads"])]
    name = os.path.basename(training_file)
    range_file, scaled, model = f"{name}.range", f"{name}.scale", f"{name}.model"

    for path in (range_file, scaled, model):
        check_output(path)
    _say("Scaling training data...")
    _write_scaled(["-s", range_file, *threads, training_file], scaled)
    _say("Cross validation...")
    place = [] if parsed["cluster"] is None else ["--cluster", parsed["cluster"]]
    (c, gamma), rate = _search([*threads, *place, scaled])
    _say(f"Best c={c}, g={gamma} CV rate={rate}")
    _say("Training...")
    _run(train.run, ["-q", "-c", repr(c), "-g", repr(gamma), *threads, scaled, model])
    _say(f"Output model: {model}")
    for testing_file in testing_files:
        test = os.path.basename(testing_file)
        _say("Scaling testing data...")
        _write_scaled(["-r", range_file, *threads, testing_file], f"{test}.scale")
        _say("Testing...")
        _run(predict.run, [*threads, f"{test}.scale", model, f"{test}.predict"])
        _say(f"Output prediction: {test}.predict")
    return EXIT_OK


def _say(text: str) -> None:
    print(text, flush=True)


def _run(command: Callable[[Sequence[str]], int], words: Sequence[str]) -> None:
    code = command(words)
    if code != EXIT_OK:
        raise SystemExit(code)


def _write_scaled(words: Sequence[str], path: str) -> None:
    """Scale a file into another, which appears when it is complete."""
    try:
        with atomic_write(path) as file, redirect_stdout(file):
            _run(scale.run, words)
    except OSError as error:
        leave(f"can't open output file {path}: {error.strerror or error}")


def _search(words: Sequence[str]) -> tuple[tuple[float, float], float]:
    """Search; go on with the rates of an earlier run on the same data."""
    search = grid.Search(GRID.parse(words), printing=False)
    search.resume_if_same()
    (c, gamma), rate = search.run()
    assert c is not None
    assert gamma is not None
    return (2.0**c, 2.0**gamma), rate
