"""Verdicts: each follows from the test or the interval beside it, and is taken back where that does not decide."""

import numpy as np
import pytest
from scipy import stats

from hinge.lab.experiments.cells import Outcome
from hinge.lab.experiments.verdicts import (
    contest,
    cpu_seconds,
    evaluations,
    interval_of_share,
    iterations,
    order,
    prediction_interval,
)
from hinge.lab.report import fit_exponent, spread


def runs(values, limit=100.0):
    return [Outcome("converged", limit, n=1, iterations=int(1000 * v), cpu_seconds=v) for v in values]


def test_a_contest_is_the_signed_rank_test_of_the_logarithms():
    random = np.random.default_rng(0)
    first, second = random.lognormal(size=10), random.lognormal(size=10)
    found = contest(runs(first), runs(second), cpu_seconds)
    assert found.p == pytest.approx(stats.wilcoxon(np.log(first), np.log(second)).pvalue)
    assert found.ratio == pytest.approx(np.exp(np.median(np.log(first / second))))
    assert contest(runs(second), runs(first), cpu_seconds).p == found.p


def test_few_trials_decide_nothing_and_ten_alike_do():
    fast, slow = [1.0, 1.1, 1.2, 1.3, 1.4], [2.0, 2.2, 2.4, 2.6, 2.8]
    assert contest(runs(fast), runs(slow), cpu_seconds).first_is_less is None
    assert contest(runs(2 * fast), runs(2 * slow), cpu_seconds).first_is_less is True
    assert contest(runs(2 * slow), runs(2 * fast), cpu_seconds).first_is_less is False
    assert contest(runs(2 * fast), runs(2 * fast), cpu_seconds).first_is_less is None


def test_a_limit_counts_as_a_time_and_as_nothing_else():
    fast = runs([1.0, 1.1, 1.2, 1.3, 1.4, 1.5])
    stopped = [Outcome("limit", 9.0, n=1, iterations=7, cpu_seconds=9.1)] * 6
    assert contest(fast, stopped, cpu_seconds).first_is_less is True
    assert contest(fast, stopped, cpu_seconds).ratio == pytest.approx(1.25 / 9, rel=0.01)
    assert contest(fast, stopped, iterations).n_pairs == 0
    assert contest(stopped, stopped, cpu_seconds).n_pairs == 0
    assert contest(fast, [Outcome("unbudgeted", 9.0)] * 6, cpu_seconds).n_pairs == 0


def test_the_order_of_a_paper_is_confirmed_refuted_or_left_open():
    ours = {"A": runs([5.0, 5.1, 5.2, 5.3, 5.4, 5.5]), "B": runs([1.0, 1.1, 1.2, 1.3, 1.4, 1.5])}
    names = {"A": "first", "B": "second"}
    (told,) = order({"A": 2.0, "B": 4.0}, ours, cpu_seconds, names)
    assert told.startswith("**Not confirmed:** first before second (ratio")
    assert "p = 0.031, 6 trials; the paper's medians have 0.50" in told
    (told,) = order({"A": 4.0, "B": 2.0}, ours, cpu_seconds, names)
    assert told.startswith("**Confirmed:** second before first")
    (told,) = order({"A": 4.0, "B": 2.0}, ours, evaluations, names)  # all of them nought
    assert told.startswith("**Undecided:**")


def test_intervals_cover_as_often_as_they_say():
    random = np.random.default_rng(1)
    covered = 0
    for _ in range(400):
        values = random.normal(10, 3, size=6)
        low, high = prediction_interval(values[:5])
        covered += low <= values[5] <= high
    assert 0.91 < covered / 400 < 0.99
    low, high = interval_of_share(8, 10)
    assert stats.binom.sf(7, 10, low) == pytest.approx(0.025)
    assert stats.binom.cdf(8, 10, high) == pytest.approx(0.025)


def test_an_exponent_needs_four_sizes():
    assert fit_exponent([1, 2, 4], [1, 2, 4]) is None
    assert fit_exponent([1, 2, 4, 8], [1, 2, 4, 8]).value == pytest.approx(1.0)


def test_a_spread_tells_median_ends_and_what_is_missing():
    some = [*runs([1.0, 3.0, 2.0]), Outcome("unbudgeted", 1.0)]
    assert spread(some, iterations) == "2,000 (1,000–3,000), 3 of 4"
    assert spread(runs([1.0]), iterations) == "1,000"
    assert spread([Outcome("limit", 5.0, n=1)], iterations) == "> 5"
