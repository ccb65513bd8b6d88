"""``hinge warm-up``: compile everything ahead of its first use on this computer."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from hinge.cli.options import EXIT_FAILURE, EXIT_OK
from hinge.cli.tables import WARM_UP
from hinge.tour import warm_up

_MEGABYTE = 1e6


def run(arguments: Sequence[str]) -> int:
    """Run the command; return its exit code."""
    parsed = WARM_UP.parse(arguments)
    warmth = warm_up(parsed["processes"])
    if not warmth.folders:
        print("hinge warm-up: compiled code can be kept nowhere; set NUMBA_CACHE_DIR to a folder", file=sys.stderr)
        return EXIT_FAILURE
    print(f"compiled {warmth.compiled} functions in {warmth.seconds:.1f} s, found {warmth.found} from before")
    print(f"{warmth.bytes / _MEGABYTE:.1f} MB in")
    for folder in warmth.folders:
        print(f"  {folder}")
    return EXIT_OK
