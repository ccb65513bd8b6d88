"""Pair steps and the row cache: what is computed, what is counted, and what is set aside, step by step."""

from dataclasses import replace

import numpy as np
import pytest

from hinge import Gram, Kernel, Settings, solve
from hinge.dual.formulations import c_svc, epsilon_svr, nu_svc, one_class
from hinge.settings import RULES
from strategies import SURE_RULES

CAPACITY = 3


def labelled(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)


def rows_used(problem, gram, settings, n_steps):
    """Watch β step by step: who grew and who fell used their rows, in this order."""
    used, before = [], problem.near(settings.start)
    for step in range(1, n_steps + 1):
        beta = solve(problem, gram, replace(settings, max_iter=step)).beta
        used.append((*np.flatnonzero(beta > before), *np.flatnonzero(beta < before)))
        before = beta
    return used


def hits_and_misses(used, rule):
    """Play the uses through a cache of three rows: the least recently used leaves, of two the first."""
    row_in, last_use, hits, misses = [None] * CAPACITY, [-1] * CAPACITY, 0, 0
    for now, rows in enumerate(used):
        # Second order brings i before it knows j, the others ask for both at once, by number.
        for asked in (rows[:1], rows) if rule == "second_order" else (rows,):
            for row in asked if rule == "second_order" else sorted(asked):
                if row not in row_in:
                    place = min(range(CAPACITY), key=lambda k: (row_in[k] in asked, last_use[k]))
                    row_in[place] = row
                    misses += 1
        hits += len(rows)
        last_use = [now if row in rows else use for row, use in zip(row_in, last_use, strict=True)]
    return hits - misses, misses


@pytest.mark.parametrize(
    ("rule", "fit_intercept"), [("mvp", True), ("second_order", True), ("mvp", False)], ids=str
)
@pytest.mark.parametrize("seed", range(4))
def test_a_hit_is_a_use_of_a_row_that_was_there(rule, fit_intercept, seed):
    """In a cache of three rows, against the uses that can be seen from outside."""
    n = 12
    X, y = labelled(n, seed)
    problem = c_svc(y, C=2.0, fit_intercept=fit_intercept)
    start = np.random.default_rng(seed).uniform(problem.lo, problem.hi)
    settings = Settings(solver="smo", rule=rule, tol=1e-2, shrinking=False, start=start)
    gram = Gram(X, Kernel("rbf", gamma=0.7), cache_bytes=CAPACITY * n * 8, precision="double", threads=1)
    report = solve(problem, gram, settings).report
    assert report.converged
    assert gram.cache.capacity == CAPACITY
    used = rows_used(problem, Gram(X, Kernel("rbf", gamma=0.7), precision="double"), settings, report.iterations)
    assert {len(rows) for rows in used} == {2 if fit_intercept else 1}
    assert (report.cache_hits, report.cache_misses) == hits_and_misses(used, rule)
    assert report.cache_hits > 0
    n_start = np.count_nonzero(problem.near(start))
    assert report.kernel_evaluations == n * (report.cache_misses + n_start)


@pytest.mark.parametrize("rule", SURE_RULES)
@pytest.mark.parametrize("share", [0.02, 0.2, 1.0])
def test_no_row_is_computed_that_no_step_asked_for(rule, share):
    """Then each row costs as many values as there are samples, and a cache for all rows computes each once."""
    n = 400
    X, y = labelled(n, 1)
    for problem in (c_svc(y, C=10.0), nu_svc(y, 0.3), one_class(n, 0.2), epsilon_svr(X[:, 0], 5.0, 0.05)):
        gram = Gram(X, Kernel("rbf", gamma=0.7), cache_bytes=int(share * 8 * n**2), precision="double", threads=1)
        settings = Settings(solver="smo", rule=rule, shrinking=False)
        start = gram.counts.evaluations
        report = solve(problem, gram, settings).report
        assert report.converged
        at_start = n * np.count_nonzero(problem.coefficients(problem.start))
        assert gram.counts.evaluations - start - at_start == n * report.cache_misses
        assert report.cache_hits + report.cache_misses >= 2 * report.iterations
        if share == 1.0:
            assert report.cache_misses <= n
        if not RULES[rule].looks_back:
            assert report.cache_hits + report.cache_misses == 2 * report.iterations


@pytest.mark.parametrize("rule", SURE_RULES)
def test_samples_are_set_aside_again_as_soon_as_all_have_been_looked_at(rule):
    """After a look at all samples no step is taken among all of them, if many of them can wait."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 2))
    y = np.where(X[:, 0] + 0.2 * rng.normal(size=1500) > 0, 1.0, -1.0)
    seen = []
    settings = Settings(solver="smo", rule=rule, tol=1e-5, callback=lambda progress: seen.append(progress))
    gram = Gram(X, Kernel("rbf", gamma=0.5), precision="double", threads=1)
    assert solve(c_svc(y, C=100.0), gram, settings).report.converged
    is_whole = np.array([progress.n_active == len(y) for progress in seen])
    steps = np.diff([progress.iterations for progress in seen])
    first = np.flatnonzero(~is_whole)[0]
    assert is_whole[first:].any()  # all samples were looked at again
    assert steps[first:][is_whole[first:-1] & is_whole[first + 1 :]].sum() == 0
