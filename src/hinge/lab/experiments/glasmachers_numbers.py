"""The numbers of Glasmachers & Igel's tables (Maximum-Gain Working Set Selection for SVMs, section 4).

Medians of ten trials on an Athlon XP of 1533 MHz with 40 MB for kernel rows, as they give them. The face set is
not public.
"""

from __future__ import annotations

from dataclasses import dataclass

MVP, SECOND, HMG = "smo-mvp", "smo-second-order", "smo-hmg"
SVM_LIGHT, ONE_ROW, TWO_ROWS, ALL_ROWS = "svm-light", "hmg-one-row", "hmg-two-rows", "hmg-all-rows"

#: The rules that every table compares, by the paper's name for them.
RULES = {MVP: "LIBSVM 2.71", SECOND: "LIBSVM 2.8", HMG: "HMG"}

NAMES = {
    **RULES, SVM_LIGHT: "SVM-light", ONE_ROW: "HMG, one row", TWO_ROWS: "HMG, two rows",
    ALL_ROWS: "HMG, all cached rows",
}  # fmt: skip

CACHE_MB = 40.0

#: Table 5: seconds of each rule on connect-4 by megabytes for kernel rows.
CACHES = {
    20.0: {MVP: 958.0, SECOND: 766.0, HMG: 656.0},
    40.0: {MVP: 916.0, SECOND: 734.0, HMG: 633.0},
    100.0: {MVP: 758.0, SECOND: 649.0, HMG: 583.0},
    200.0: {MVP: 603.0, SECOND: 547.0, HMG: 555.0},
}


@dataclass(frozen=True)
class Problem:
    """A data set of the paper with its parameters (table 1) and results (tables 2 to 4).

    Attributes
    ----------
    name : str
        The set.
    rows : int
        Samples in the paper.
    sigma, C : float
        Parameters; γ is 1 / (2σ²).
    support, bounded : float
        Share of the samples that are support vectors, and at their bound.
    shrinking : dict
        For each rule: iterations, seconds, objective (table 2).
    light : tuple
        The same of SVM-light (table 3).
    plain : dict
        For each rule: iterations and seconds without shrinking (table 4).
    """

    name: str
    rows: int
    sigma: float
    C: float
    support: float
    bounded: float
    shrinking: dict[str, tuple[int, float, float]]
    light: tuple[int, float, float]
    plain: dict[str, tuple[int, float]]

    @property
    def gamma(self) -> float:
        """γ of the kernel exp(−γ‖x − y‖²)."""
        return 1 / (2 * self.sigma**2)


SPAMBASE = Problem(
    "spambase", 4601, 10.0, 50.0, 18.5, 11.7,
    {MVP: (36610, 11.21, 27019.138), SECOND: (9228, 8.44, 27019.140), HMG: (10563, 9.17, 27019.140)},
    (9450, 23.97, 27019.125),
    {MVP: (33340, 12.77), SECOND: (9123, 8.98), HMG: (9342, 11.41)},
)  # fmt: skip

CONNECT4 = Problem(
    "connect-4", 30555, 1.5, 4.5, 27.0, 7.7,
    {MVP: (65167, 916, 13557.542), SECOND: (45504, 734, 13557.542), HMG: (50281, 633, 13557.536)},
    (17315, 5589, 13557.520),
    {MVP: (65735, 2223), SECOND: (45466, 1567), HMG: (49512, 1005)},
)  # fmt: skip

MNIST = Problem(
    "mnist", 60000, 3500.0, 50.0, 10.5, 4.6,
    {MVP: (185162, 13657, 143199.142), SECOND: (110441, 9957, 143199.146), HMG: (152873, 7485, 143199.160)},
    (42347, 282262, 143175.447),
    {MVP: (187653, 94981), SECOND: (110470, 58213), HMG: (155182, 41097)},
)  # fmt: skip

#: Tables 6 and 7: iterations, seconds (not given for all rows) and objective by one row and by all cached rows.
ROWS: dict[str, dict[str, tuple[int, float | None, float]]] = {
    "spambase": {ONE_ROW: (14023, 10.99, 27019.134), ALL_ROWS: (7280, None, 27019.143)},
    "connect-4": {ONE_ROW: (83305, 4967, 13557.529), ALL_ROWS: (51285, None, 13557.538)},
}
