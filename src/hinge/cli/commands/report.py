"""``hinge report``: one HTML page about a model, to keep or to send."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence

from hinge.cli.data import leave, read_classes, read_samples
from hinge.cli.models import model_and_samples
from hinge.cli.options import EXIT_OK
from hinge.cli.outputs import check_output
from hinge.cli.tables import REPORT
from hinge.io import atomic_write


def run(arguments: Sequence[str]) -> int:
    """Run the command; return its exit code."""
    parsed = REPORT.parse(arguments)
    model_path, data_path = parsed.files
    out = parsed["out"] or os.path.basename(model_path) + ".html"
    if importlib.util.find_spec("matplotlib") is None:
        leave("hinge report: the page has pictures: pip install 'hinge-svm[plot]'")
    check_output(out, "hinge report: cannot write")
    from hinge.plot.page import page_of

    samples = read_samples(data_path, parsed, names=read_classes(model_path))
    machine, X, y = model_and_samples(model_path, samples)
    try:
        text = page_of(machine, X, y, data_name=os.path.basename(data_path))
    except ValueError as error:
        leave(f"hinge report: {error}")
    try:
        with atomic_write(out) as file:
            file.write(text)
    except OSError as error:
        leave(f"hinge report: cannot write {out}: {error.strerror or error}")
    print(f"report: {out}")
    return EXIT_OK
