"""How cost grows with the number of rows: exponents of time, kernel values and memory, by least squares."""

from __future__ import annotations

import numpy as np

from benchmarks.cases import GROWTH
from benchmarks.goals import FIT_GOALS
from benchmarks.run import Record
from benchmarks.sections import Section
from benchmarks.summary import Figures, any_value, figures
from benchmarks.tables import Table, count, megabytes, ratio, seconds

_FIELDS = ("seconds", "kernel_evaluations", "extra_bytes", "necessary")


def section(_: str, records: list[Record]) -> Section:
    """Show each family of cases, and the powers of n that its costs grow with."""
    groups = figures(records)
    table = Table(
        "More and more rows",
        [
            "case",
            "s",
            "× limit",
            "kernel values",
            "n × support vectors",
            "memory of the fit, MB",
            "true violation",
        ],
    )
    powers = Table(
        "Exponents: cost grows like n to the power of",
        ["data", "time", "kernel values", "memory", "n × support vectors"],
    )
    for family, names in GROWTH.items():
        runs = {n: groups[n]["hinge"] for n in names if n in groups and groups[n]["hinge"].finished}
        for name, run in runs.items():
            values, memory, least = (run.middle(field) for field in _FIELDS[1:])
            table.add(name, seconds(run.seconds), ratio(run.limit_multiple), count(values), count(least),
                      megabytes(memory), f"{run.violation:.1e}")  # fmt: skip
        if len(runs) > 1:
            powers.add(family, *(f"{_exponent(list(runs.values()), field):.2f}" for field in _FIELDS))
    return Section([table, powers], FIT_GOALS["more"](groups))


def _exponent(runs: list[Figures], field: str) -> float:
    rows = [float(any_value({"": run}, "n")) for run in runs]
    costs = [max(run.middle(field) or 0.0, 1e-9) for run in runs]
    return float(np.polyfit(np.log(rows), np.log(costs), 1)[0])
