"""The numbers of Platt's tables (Sequential Minimal Optimization, section 3), as he gives them.

Times are processor seconds on a Pentium II of 266 MHz.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hinge.io.datasets import about
from hinge.lab.experiments.scales import Scale

Row = tuple[float, float | None, int, int]
Dense = tuple[float, float | None]


@dataclass(frozen=True)
class Series:
    """One table of the paper.

    Attributes
    ----------
    key, title : str
        Its name here and in the report.
    kernel : str
        ``"linear"`` or ``"rbf"`` (variance 10, that is γ = 0.05).
    C : float
        The cost.
    paper : dict
        For each set: seconds of SMO, seconds of chunking, free and bounded support vectors.
    exponents : tuple of float
        The paper's exponents of N for SMO and for chunking.
    dense : dict
        For each set: seconds of both with dense dot products; empty where the paper has none.
    """

    key: str
    title: str
    kernel: str
    C: float
    paper: dict[str, Row]
    exponents: tuple[float, float]
    dense: dict[str, Dense]

    @property
    def sizes(self) -> list[int]:
        """Number of samples of each set of the paper's table."""
        parts = [key.partition(":") for key in self.paper]
        return [int(n) if n else about(name).n_samples for name, _, n in parts]

    def sets(self, scale: Scale) -> tuple[str, ...]:
        """Return the sets to run, growing."""
        kind = self.key.split("-")[0]
        if kind in ("separable", "noise"):
            return tuple(f"{kind}:{n}" for n in getattr(scale, kind))
        chosen: tuple[str, ...] = getattr(scale, kind)
        return chosen


GAMMA = 0.05


def _numbers(words: list[str]) -> tuple[Any, ...]:
    return tuple(None if word == "-" else float(word) if "." in word else int(word) for word in words)


def _series(key: str, title: str, kernel: str, C: float, exponents: tuple[float, float], table: str) -> Series:
    """Read a table: a line is a set, its numbers of `Series.paper` and perhaps of `Series.dense`; - is unknown."""
    lines = [line.split() for line in table.strip().splitlines()]
    paper = {line[0]: _numbers(line[1:5]) for line in lines}
    dense = {line[0]: _numbers(line[5:]) for line in lines if line[5:]}
    return Series(key, title, kernel, C, paper, exponents, dense)


SERIES = (
    _series(
        "adult-linear", "Adult, linear kernel, C = 0.05 (section 3.1)", "linear", 0.05, (1.9, 3.1), """
        a1a      0.4     37.1    42   633
        a2a      0.9    228.3    47   930
        a3a      1.8    596.2    57  1210
        a4a      3.6   1954.2    63  1791
        a5a      5.5   3684.6    61  2370
        a6a     17.0  20711.3    79  4079
        a7a     35.3        -    67  5854
        a8a     85.7        -    88  8209
        a9a    163.6        -   149 11558
        """,
    ),
    _series(
        "adult-rbf", "Adult, RBF kernel, C = 1 (section 3.1)", "rbf", 1.0, (2.1, 2.9), """
        a1a     15.8     34.8   106   585
        a2a     32.1    144.7   165   845
        a3a     66.2    380.5   181  1115
        a4a    146.6   1137.2   238  1650
        a5a    258.8   2530.6   298  2181
        a6a    781.4  11910.6   460  3746
        a7a   1784.4        -   567  5371
        a8a   4126.4        -   813  7526
        a9a   7749.6        -  1011 10663
        """,
    ),
    _series(
        "web-linear", "Web pages, linear kernel, C = 1 (section 3.2)", "linear", 1.0, (1.6, 2.5), """
        w1a      2.2     13.1   123    47
        w2a      4.9     16.1   147    72
        w3a      8.1     40.6   169   107
        w4a     12.7    140.7   194   166
        w5a     24.7    239.3   214   245
        w6a     65.4   1633.3   252   480
        w7a    104.9   3369.7   273   698
        w8a    268.3  17164.7   315  1408
        """,
    ),
    _series(
        "web-rbf", "Web pages, RBF kernel, C = 5 (section 3.2)", "rbf", 5.0, (1.7, 2.0), """
        w1a     26.3     64.9   439    43
        w2a     44.1    110.4   544    66
        w3a     83.6    372.5   616    90
        w4a    156.7    545.4   914   125
        w5a    248.1    907.6  1118   172
        w6a    581.0   3317.9  1780   316
        w7a   1214.0   6659.7  2300   419
        w8a   3863.5  23877.6  3720   764
        """,
    ),
    _series(
        "separable", "Separable data, linear kernel, C = 100 (section 3.3)", "linear", 100.0, (1.0, 1.2), """
        separable:1000      15.3     10.4   275     0    145.1     11.7
        separable:2000      33.4     33.0   286     0    345.4     36.8
        separable:5000     103.0    108.3   299     0   1118.1    117.9
        separable:10000    186.8    226.0   309     0   2163.7    241.6
        separable:20000    280.0    374.1   329     0   3293.9    397.0
        """,
    ),
    _series(
        "noise-linear", "Pure noise, linear kernel, C = 0.1 (section 3.3)", "linear", 0.1, (1.8, 3.2), """
        noise:500        1.0      6.4   162   263      6.0      6.8
        noise:1000       3.5     57.9   220   632     21.7     62.1
        noise:2000      15.7    593.8   264  1476     99.3    614.0
        noise:5000      67.6  10353.3   283  4201    400.0  10597.7
        noise:10000    187.1        -   293  9034   1007.6        -
        """,
    ),
    _series(
        "noise-rbf", "Pure noise, RBF kernel, C = 0.1 (section 3.3)", "rbf", 0.1, (2.2, 3.4), """
        noise:500        5.6      5.8    22   476     19.8      6.8
        noise:1000      21.1     41.9    82   888     87.8     53.0
        noise:2000     131.4    635.7    75  1905    554.6    729.3
        noise:5000     986.5  13532.2    30  4942   3957.2  14418.2
        noise:10000   4226.7        -    48  9897  15743.8        -
        """,
    ),
)  # fmt: skip
