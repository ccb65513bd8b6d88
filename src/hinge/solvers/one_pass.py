"""Small problems in one compiled pass: pair steps, direct solves on the free variables, and the certificate.

What the general way does around its steps takes a hundred times as long as the steps of a small problem. Here all
of it is one compiled function on the whole kernel matrix, in double precision. Its answers are certified as all
others are: the residual is computed anew from β, with a bound on its rounding error. Whatever does not come out
right at once is left to the general way, which goes on from where the pass ended.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hinge.arrays import Floats, Vector
from hinge.dual.optimality import gap_between, levels_between, support_counts, survey, violation_between
from hinge.dual.problem import DualProblem
from hinge.dual.residuals import NEGLIGIBLE
from hinge.kernel.gram import Gram
from hinge.kernel.rounding import UNIT
from hinge.report import Report, Solution, Status
from hinge.runtime.jit import borrowing, compiled
from hinge.settings import Settings
from hinge.solvers.active_set.direct import AIM, HIDDEN, settle
from hinge.solvers.hard_margin import is_unbounded
from hinge.solvers.pairs.loop import optimise
from hinge.solvers.pairs.rules import SECOND_ORDER
from hinge.solvers.pairs.step import CONVERGED, STEP_LIMIT, Point, Rows
from hinge.solvers.run import Run

# Pair steps a variable before the free variables are moved together, and how sharply they settle by themselves.
_BURST = 5
_PAIR_TOL = 1e-3

# Turns of pair steps and direct solves; directions in each, and how many of them may be in vain.
_TURNS = 3
_MOST_ROUNDS = 30
_PATIENCE = 2

#: Places of what a pass tells of its point.
ITERATIONS, TURNS, VIOLATION, ROUNDING, OBJECTIVE, GAP, N_SUPPORT, N_BOUNDED, N_FIGURES = range(9)


class Bars(NamedTuple):
    """What bounds the rounding error of kernel values and their sums, for compiled code.

    Attributes
    ----------
    sizes : float64 array of shape (n_samples,)
        Size of every sample, as `hinge.kernel.rounding` defines it.
    operations : float
        κ of a kernel value.
    decays : bool
        Whether these are sizes of an exponent's terms.
    """

    sizes: Any
    operations: float
    decays: bool


class Account(NamedTuple):
    """What a pass tells of its point, for compiled code.

    Attributes
    ----------
    levels : float64 array
        The multiplier of each group; one at least.
    figures : float64 array of shape (N_FIGURES,)
        Figures of the report.
    """

    levels: Any
    figures: Any


def fits_one_pass(n_variables: int, gram: Gram, settings: Settings) -> bool:
    """Whether a problem is one for the pass: small, its matrix at hand, and nobody watches or limits its steps."""
    sizes = settings.sizes
    return (
        n_variables <= min(sizes.one_pass, sizes.one_set)
        and settings.solver in ("auto", "block")
        and settings.callback is None
        and settings.max_iter is None
        and settings.gap_tol is None
        and gram.matrix is not None
        and gram.precision == "double"
    )


def solve_in_one_pass(
    problem: DualProblem, gram: Gram, settings: Settings, beta: Vector, run: Run, reason: str
) -> Solution | None:
    """Solve a problem that `fits_one_pass` from ``beta`` on, which is changed; return None if it is not certified.

    ``run`` counts the steps in either case.
    """
    if is_unbounded(problem):
        return None
    begin, point = beta.copy(), Point.of(problem, beta, np.empty(len(beta)))
    account = Account(np.zeros(max(problem.n_groups, 1)), np.zeros(N_FIGURES))
    kernel, bars = writable(gram), Bars(*gram.error_terms())
    is_certified = one_pass(kernel, problem.v, problem.sums, point, bars, settings.tol, account)
    levels, figures = account
    run.count(int(figures[ITERATIONS]), 0.0)
    if not is_certified:
        if not is_trusted(figures, settings.tol):
            beta[:] = begin
        return None
    report = report_of(figures, problem.n_variables, gram, reason, run.seconds)
    return Solution(beta, point.residual, levels[: problem.n_groups], report)


def is_trusted(figures: Vector, tol: float) -> bool:
    """Whether rounding is small beside ``tol`` where a pass ended, so that it cannot be above its start."""
    return bool(figures[TURNS] > 0 and figures[ROUNDING] <= NEGLIGIBLE * tol and np.isfinite(figures[OBJECTIVE]))


def writable(gram: Gram) -> Floats:
    """Return the matrix in the one form that the pass is compiled for."""
    matrix = gram.matrix
    assert matrix is not None
    is_usual = matrix.flags.c_contiguous and matrix.flags.writeable
    return matrix if is_usual else np.array(matrix, order="C")


def report_of(figures: Vector, n_variables: int, gram: Gram, reason: str, seconds: float) -> Report:
    """Return the report of a certified pass."""
    counts = gram.counts
    return Report(
        Status.CONVERGED, solver="block", rule="second_order",
        iterations=int(figures[ITERATIONS]), outer_steps=int(figures[TURNS]),
        violation=float(figures[VIOLATION]), rounding=float(figures[ROUNDING]),
        objective=float(figures[OBJECTIVE]), gap=float(figures[GAP]),
        n_support=int(figures[N_SUPPORT]), n_bounded=int(figures[N_BOUNDED]),
        kernel_evaluations=counts.evaluations, cache_hits=counts.hits, cache_misses=counts.misses,
        cache_bytes=counts.bytes, storage=gram.storage, seconds=seconds, reason=reason,
        largest_set=n_variables, fewest_active=gram.n,
    )  # fmt: skip


@compiled
def one_pass(kernel: Any, v: Any, sums: Any, point: Point, bars: Bars, tol: float, account: Account) -> bool:
    """Solve a problem on its whole kernel matrix, from ``beta`` on; return whether its answer is certified.

    Parameters
    ----------
    kernel : float64 array of shape (n_samples, n_samples)
        Kernel values.
    v, sums : arrays
        Linear part and sums of the problem.
    point : Point
        A feasible point, changed in place; its residual is set.
    bars : Bars
        What bounds rounding errors.
    tol : float
        What the violation, rounding errors included, must be within.
    account : Account
        Set to what is to be told of the point.
    """
    n, beta, residual, figures = kernel.shape[0], point.beta, point.residual, account.figures
    diagonal = np.empty(n)
    for t in range(n):
        diagonal[t] = kernel[t, t]
    rows = Rows(kernel, np.arange(n), np.zeros(n, np.int64), np.zeros(1, np.int64), diagonal)
    figures[ITERATIONS] = 0.0
    is_finite = _find_residual(kernel, v, beta, residual)
    for turn in range(_TURNS if is_finite else 0):
        figures[ROUNDING] = np.inf  # until this turn's point is looked at
        outcome = optimise(point, rows, SECOND_ORDER, None, min(tol, _PAIR_TOL), _BURST * beta.shape[0] + 1)
        if outcome.code != CONVERGED and outcome.code != STEP_LIMIT:
            return False
        aim = AIM * (1.0 + _largest(residual))
        _, n_rounds = settle(kernel, point, aim, _PATIENCE, _MOST_ROUNDS)
        figures[ITERATIONS] += outcome.steps + n_rounds
        figures[TURNS] = turn + 1
        _restore_sums(sums, diagonal, point)
        if not _find_residual(kernel, v, beta, residual):
            return False
        _describe(v, point, bars, account)
        violation, rounding = figures[VIOLATION], figures[ROUNDING]
        is_sharp = violation <= aim or violation <= min(rounding, HIDDEN * aim)
        if is_sharp and violation <= tol and rounding <= NEGLIGIBLE * tol:
            return bool(np.isfinite(figures[OBJECTIVE]))
    return False


@borrowing
def _largest(values: Any) -> float:
    largest = 0.0
    for t in range(values.shape[0]):
        largest = max(largest, abs(values[t]))
    return largest


@compiled
def _find_residual(kernel: Any, v: Any, beta: Any, residual: Any) -> bool:
    """Set the residual to v − Kβ; return whether all of it is finite."""
    n, image = kernel.shape[0], np.zeros(kernel.shape[0])
    for s in range(n):
        coefficient = _coefficient(beta, s, n)
        if coefficient != 0:
            row = kernel[s]
            for t in range(n):
                image[t] += coefficient * row[t]
    size = 0.0
    for t in range(v.shape[0]):
        residual[t] = v[t] - image[t % n]
        size += abs(residual[t])
    return bool(np.isfinite(size))


@borrowing
def _coefficient(beta: Any, sample: int, n: int) -> float:
    """Add up the variables of a sample."""
    total = 0.0
    for t in range(sample, beta.shape[0], n):
        total += beta[t]
    return total


@borrowing
def _restore_sums(sums: Any, diagonal: Any, point: Point) -> None:
    """Give what the rounding of many steps has taken from a sum to the free variable of least curvature."""
    beta, _, lo, hi, group, _ = point
    n = diagonal.shape[0]
    for g in range(sums.shape[0]):
        total, chosen = 0.0, -1
        for t in range(beta.shape[0]):
            if group[t] == g:
                total += beta[t]
                is_free = lo[t] < beta[t] < hi[t]
                if is_free and (chosen < 0 or diagonal[t % n] < diagonal[chosen % n]):
                    chosen = t
        if chosen >= 0:
            beta[chosen] = min(max(beta[chosen] + (sums[g] - total), lo[chosen]), hi[chosen])


@compiled
def _describe(v: Any, point: Point, bars: Bars, account: Account) -> None:
    """Set the multipliers and figures of a point."""
    beta, residual, lo, hi, group, n_groups = point
    levels, figures = account
    n = bars.sizes.shape[0]
    top, bottom, n_free, total = survey(beta, residual, lo, hi, group, n_groups)
    found = levels_between(top, bottom, n_free, total)
    for g in range(levels.shape[0]):
        levels[g] = found[g] if n_groups > 0 else 0.0
    figures[VIOLATION] = violation_between(top, bottom, n_groups)
    n_support, n_bounded = support_counts(beta, lo, hi, n)
    figures[N_SUPPORT], figures[N_BOUNDED] = n_support, n_bounded
    above, below = residual.copy(), residual.copy()
    error, objective = _error(beta, bars, n_support), 0.0
    for t in range(beta.shape[0]):
        bar = error[t % n] + 4 * UNIT * abs(residual[t])
        above[t] += bar
        below[t] -= bar
        objective -= 0.5 * beta[t] * (v[t] + residual[t])
    up, _, _, _ = survey(beta, above, lo, hi, group, n_groups)
    _, down, _, _ = survey(beta, below, lo, hi, group, n_groups)
    figures[ROUNDING] = max(violation_between(up, down, n_groups) - figures[VIOLATION], 0.0)
    figures[OBJECTIVE] = objective
    figures[GAP] = gap_between(beta, residual, lo, hi, group, levels)


@compiled
def _error(beta: Any, bars: Bars, n_support: int) -> Any:
    """Bound the rounding error of each sample's residual: `Source.rounding`, for sums in any order."""
    sizes, operations, decays = bars
    n = sizes.shape[0]
    mass, mass_of_sizes = 0.0, 0.0
    for s in range(n):
        size = abs(_coefficient(beta, s, n))
        mass += size
        mass_of_sizes += size * (sizes[s] - 1.0 if decays else sizes[s])
    error = np.empty(n)
    for s in range(n):
        if decays:
            error[s] = UNIT * (operations * (sizes[s] * mass + mass_of_sizes) + n_support * mass)
        else:
            error[s] = UNIT * (operations + n_support) * sizes[s] * mass_of_sizes
    return error
