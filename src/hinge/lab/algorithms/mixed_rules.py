"""A rule for each size: second order where the cache holds every row, else hybrid maximum gain.

Idea. Second order needs the fewest steps, hybrid maximum gain the fewest new rows: it uses one variable of the
last pair again. Glasmachers & Igel find the first faster where the kernel matrix fits the cache, the second where
it does not, and suggest to switch "depending on cache and problem size" (section 5). What has to fit is the matrix
of the samples that are not set aside, so that a large problem changes over once enough of them are.

Cost. That of the rule; shrinking as in LIBSVM.

When to use. Where kernel values are expensive, and nobody wants to say beforehand how many samples will matter.
"""

from __future__ import annotations

from dataclasses import replace

from hinge.lab.algorithms.course import ANY_GROUPS, laboratory
from hinge.solvers.block.shrinking import ActiveSet, unsettled
from hinge.solvers.pairs.smo import no_pair, solve_smo
from hinge.solvers.run import Run
from hinge.solvers.state import State

_STEPS_A_ROUND = 1000  # between two looks at what can be set aside, as in LIBSVM


def rule_for(state: State) -> str:
    """Return the name of the rule that suits the samples of a state and their cache."""
    return "second_order" if state.gram.cache.capacity >= state.gram.n else "hmg"


def by_cache(state: State, tol: float, run: Run) -> None:
    """Take pair steps on ever fewer samples, by the rule that suits these, until all are settled."""
    steps = _STEPS_A_ROUND
    while not _pairs(state, tol, run, steps):
        with ActiveSet(state, unsettled(state), run) as active:
            while not _pairs(active.part, tol, run, _STEPS_A_ROUND):
                active.narrow(unsettled(active.part))
        steps = 1  # all samples again: is it over, or what can be set aside now?


def _pairs(state: State, tol: float, run: Run, most: int) -> bool:
    run.settings = replace(run.settings, rule=rule_for(state))
    return solve_smo(state, tol, run, no_pair(state, run), most)


ALGORITHMS = (
    laboratory(
        "smo-by-cache",
        "SMO, second order where all rows fit the cache, else hybrid maximum gain",
        "Glasmachers & Igel, section 5",
        ANY_GROUPS,
        by_cache,
    ),
)
