"""``hinge check``: name every line of a data file that does not follow the format (LIBSVM's ``checkdata.py``)."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from hinge.cli.data import leave
from hinge.cli.options import EXIT_FAILURE, EXIT_OK
from hinge.cli.outputs import as_json
from hinge.cli.tables import CHECK
from hinge.io import DataFileError, read_data
from hinge.io.svmlight.source import open_source

_BLOCK = 2**20


def run(arguments: Sequence[str]) -> int:
    """Run the command; return its exit code."""
    parsed = CHECK.parse(arguments)
    path = parsed.files[0]
    n_wrong, told = 0, []
    try:
        try:
            read_data(path, zero_based=True, max_errors=parsed["max-errors"], threads=parsed["threads"])
        except DataFileError as error:
            n_wrong = max(error.n_errors, 1)
            told = [str(line) for line in error.errors] or [str(error)]
        if path != "-" and not n_wrong and not _ends_with_line_feed(path):
            told = ["the last line: expected a line feed at its end, which some tools insist on"]
            n_wrong = 1
    except OSError as error:
        print(f"can't open input file {path}", file=sys.stderr)
        leave(f"{path}: {error.strerror or error}")
    if parsed["json"]:
        print(as_json({"data_file": path, "n_errors": n_wrong, "errors": told}))
        return EXIT_FAILURE if n_wrong else EXIT_OK
    for line in told:
        print(line)
    if n_wrong > len(told):
        print(f"and {n_wrong - len(told)} more")
    print(f"Found {n_wrong} lines with error." if n_wrong else "No error.")
    return EXIT_FAILURE if n_wrong else EXIT_OK


def _ends_with_line_feed(path: str) -> bool:
    last = b"\n"
    with open_source(path) as (file, _):
        while block := file.read(_BLOCK):
            last = block[-1:]
    return last == b"\n"
