"""``hinge toy``: points drawn by mouse, and machines that are trained while they move."""

from __future__ import annotations

from collections.abc import Sequence

from hinge.cli.data import leave
from hinge.cli.options import EXIT_OK
from hinge.cli.tables import TOY
from hinge.toy.server import serve


def run(arguments: Sequence[str]) -> int:
    """Run the command; return its exit code."""
    parsed = TOY.parse(arguments)
    port = parsed["port"]
    try:
        serve(port, state="".join(parsed.files), open_browser=not parsed["no-browser"])
    except OSError as error:
        leave(f"hinge toy: port {port} cannot be used ({error.strerror}); --port 0 takes a free one")
    return EXIT_OK
