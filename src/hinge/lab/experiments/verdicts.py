"""Verdicts: what the trials say of a claim, by a test or an interval that is printed beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import stats

from hinge.lab.experiments.cells import Outcome
from hinge.lab.report import VERDICTS

#: A test whose p is above this decides nothing.
LEVEL = 0.05

# With fewer pairs no two-sided signed-rank test can reach the level: its least p is 2 / 2^pairs.
FEWEST_PAIRS = 6

Figure = Callable[[Outcome], float]

CONFIRMED, REFUTED, UNDECIDED = VERDICTS


def iterations(run: Outcome) -> float:
    """Steps of a run."""
    return run.iterations


def working_sets(run: Outcome) -> float:
    """Working sets of a run, which SVM-light counts."""
    return run.outer_steps


def cpu_seconds(run: Outcome) -> float:
    """Processor time of a run."""
    return run.cpu_seconds


def evaluations(run: Outcome) -> float:
    """Kernel values that a run computed."""
    return run.kernel_evaluations


@dataclass(frozen=True)
class Contest:
    """Two methods in the same trials, by one figure, the smaller the better.

    Attributes
    ----------
    n_pairs : int
        Trials that both came to their end in, or one of them in less time than the other's limit.
    ratio : float
        Median of first over second.
    p : float
        Of the two-sided Wilcoxon signed-rank test on the logarithms of the ratios; 1 with too few pairs.
    """

    n_pairs: int
    ratio: float
    p: float

    @property
    def first_is_less(self) -> bool | None:
        """Whether the first has the smaller figures; None where the test does not decide."""
        return None if self.p > LEVEL else self.ratio < 1

    def __str__(self) -> str:
        if not self.n_pairs:
            return "no pair of runs to compare"
        told = "too few for a test" if self.n_pairs < FEWEST_PAIRS else f"Wilcoxon p = {self.p:.2g}"
        trials = "trial" if self.n_pairs == 1 else "trials"
        return f"ratio {self.ratio:.2f}, {told}, {self.n_pairs} {trials}"


def contest(first: Sequence[Outcome], second: Sequence[Outcome], figure: Figure) -> Contest:
    """Compare two methods trial by trial.

    A run that met its limit counts as that limit when its time is compared with a run that came to its end: it
    took longer, so that this can only understate the difference.

    Examples
    --------
    >>> fast = [Outcome("converged", 9.0, cpu_seconds=k) for k in (1.0, 1.1, 1.3, 1.2, 1.4, 1.5)]
    >>> slow = [Outcome("converged", 9.0, cpu_seconds=k) for k in (2.0, 2.1, 2.2, 2.1, 2.3, 2.4)]
    >>> print(contest(fast, slow, cpu_seconds))
    ratio 0.58, Wilcoxon p = 0.031, 6 trials
    """
    pairs = []
    for a, b in zip(first, second, strict=True):
        if a.converged and b.converged:
            pairs.append((figure(a), figure(b)))
        elif figure is cpu_seconds and (a.converged or b.converged):
            pairs += [(x, y) for x, y in [(_at_least(a), _at_least(b))] if x and y]
    ratios = np.array([np.log(max(x, 1e-9) / max(y, 1e-9)) for x, y in pairs])
    if not len(ratios):
        return Contest(0, float("nan"), 1.0)
    enough = len(ratios) >= FEWEST_PAIRS and ratios.any()
    p = float(stats.wilcoxon(ratios).pvalue) if enough else 1.0
    return Contest(len(ratios), float(np.exp(np.median(ratios))), p)


def _at_least(run: Outcome) -> float:
    """Time that a run took, or the limit that it met; 0 for one that says nothing."""
    return run.cpu_seconds if run.converged else run.limit if run.status == "limit" else 0.0


def order(
    paper: dict[str, float], ours: dict[str, Sequence[Outcome]], figure: Figure, names: dict[str, str]
) -> list[str]:
    """Say of every two methods, in the paper's order, whether theirs here is the same.

    Returns
    -------
    list of str
        One sentence of verdict for each pair of methods.
    """
    told = []
    for better, worse in combinations(sorted(paper, key=lambda name: paper[name]), 2):
        found = contest(ours[better], ours[worse], figure)
        word = word_of(found.first_is_less)
        then = paper[better] / paper[worse]
        told.append(
            f"**{word}:** {names[better]} before {names[worse]} ({found}; the paper's medians have {then:.2f})"
        )
    return told


def interval_of_share(successes: int, trials: int) -> tuple[float, float]:
    """Return the 95 % confidence interval of a share (Clopper & Pearson).

    Examples
    --------
    >>> [round(end, 3) for end in interval_of_share(9, 10)]
    [0.555, 0.997]
    """
    found = stats.binomtest(successes, trials).proportion_ci(1 - LEVEL)
    return float(found.low), float(found.high)


def prediction_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return between which values one more run would be found, in 95 % of the cases, if runs spread normally.

    Examples
    --------
    >>> [round(end, 1) for end in prediction_interval([10, 11, 12, 13, 14])]
    [7.2, 16.8]
    """
    n = len(values)
    width = stats.t.ppf(1 - LEVEL / 2, n - 1) * np.std(values, ddof=1) * np.sqrt(1 + 1 / n)
    return float(np.mean(values) - width), float(np.mean(values) + width)


def word_of(holds: bool | None) -> str:
    """Return a verdict as a word.

    Examples
    --------
    >>> word_of(True), word_of(None)
    ('Confirmed', 'Undecided')
    """
    return UNDECIDED if holds is None else CONFIRMED if holds else REFUTED
