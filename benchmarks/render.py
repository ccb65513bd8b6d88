"""How each section of the results is shown."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks import cluster, growth, sections, torchkm
from benchmarks.run import Record
from benchmarks.sections import Section

RENDER: dict[str, Callable[[str, list[Record]], Section]] = {
    **sections.RENDER, "growth": growth.section, "torchkm": torchkm.section, "cluster": cluster.section,
}  # fmt: skip
