"""Small problems in one compiled pass: pair steps, direct solves on the free variables, and the certificate.

What the general way does around its steps takes a hundred times as long as the steps of a small problem. Here all
of it is one compiled function on the whole kernel matrix, in double precision. Its answers are certified as all
others are: the residual is computed anew from β, with a bound on its rounding error. Whatever does not come out
right at once is left to the general way, which goes on from where the pass ended.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import Floats, Index, Vector
from hinge.dual.optimality import gap_between, levels_between, support_counts, survey, violation_between
from hinge.dual.problem import DualProblem
from hinge.dual.residuals import NEGLIGIBLE
from hinge.kernel.gram import Gram
from hinge.kernel.rounding import UNIT
from hinge.report import Report, Solution, Status
from hinge.runtime.jit import borrowing
from hinge.settings import Settings
from hinge.solvers.active_set.direct import AIM, HIDDEN, PATIENCE, Room, clipped, settle
from hinge.solvers.hard_margin import is_unbounded
from hinge.solvers.pairs.loop import take_steps
from hinge.solvers.pairs.rules import SECOND_ORDER, Search
from hinge.solvers.pairs.step import UNBOUNDED, Point, Rows
from hinge.solvers.run import Run

# Turns of pair steps and direct solves, the first of which has a pair step per variable; as many as that are taken
# in all turns. How sharply pair steps settle by themselves.
_TURNS = 15
_PAIR_TOL = 1e-3

# Multiply-adds that a pair step takes for each variable.
_WORK_OF_STEP = 12.0

# The room that each thread worked in last, at most some megabytes, and by how many times it may be too large for
# the next problem: to make it takes longer than a small pass.
_last = threading.local()
_MOST_SPARE = 4

# Lines of `Space.lines`: diagonal, size and error of each sample; bounds of the residual of each variable.
_DIAGONAL, _SIZES, _ERROR, _ABOVE, _BELOW, _N_LINES = range(6)

#: Places of what a pass tells of its point.
ITERATIONS, TURNS, VIOLATION, ROUNDING, OBJECTIVE, GAP, N_SUPPORT, N_BOUNDED, N_FIGURES = range(9)

#: What a report calls them.
FIGURE_NAMES = (
    "iterations", "outer_steps", "violation", "rounding", "objective", "gap", "n_support", "n_bounded",
)  # fmt: skip


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


class Layout(NamedTuple):
    """Problems one after the other, for compiled code.

    Attributes
    ----------
    offsets : int64 array of shape (n_problems + 1,)
        Where each problem begins.
    samples : int64 array
        The row of every variable's sample; empty where there is one problem, on the whole matrix.
    v, sums : arrays
        Linear part of all variables, and the sums, which are those of every problem.
    point : Point
        All variables.
    account : Account
        What is told of each problem, a line each.
    """

    offsets: Any
    samples: Any
    v: Any
    sums: Any
    point: Point
    account: Account

    @classmethod
    def of(cls, offsets: Index, samples: Index, problem: DualProblem, beta: Vector) -> Layout:
        """Lay out problems that begin at ``offsets``, at the point ``beta``, which is shared."""
        count = len(offsets) - 1
        account = Account(np.zeros((count, max(problem.n_groups, 1))), np.zeros((count, N_FIGURES)))
        point = Point.of(problem, beta, np.empty(len(beta)))
        return cls(offsets, samples, problem.v, problem.sums, point, account)


class Space(NamedTuple):
    """What a pass works with, for compiled code; for its problem, or for a larger one.

    Attributes
    ----------
    slots : int64 array of shape (4, n_variables)
        `Rows.slot_of`, `Rows.last_use` and `Rows.clock` of a whole matrix; columns of samples.
    lines : float64 array of shape (_N_LINES, n_variables)
        Vectors.
    search, room : Search, Room
        Of the pair steps; of the direct solves.
    tol : float
        What the violation, rounding errors included, must be within.
    """

    slots: Any
    lines: Any
    search: Search
    room: Room
    tol: float

    @classmethod
    def of(cls, n_variables: int, n_groups: int, tol: float) -> Space:
        """Make room for a problem of this size."""
        slots, lines = np.zeros((4, n_variables), np.int64), np.empty((_N_LINES, n_variables))
        slots[0] = np.arange(n_variables)
        search = Search.of(n_variables, n_groups, np.float64, np.float64, looks_back=False)
        return cls(slots, lines, search, Room.of(n_variables, n_groups), tol)

    @classmethod
    def kept(cls, n_variables: int, n_groups: int, tol: float) -> Space:
        """Return the room that this thread had last, where it is large enough and not far too large."""
        space: Space | None = getattr(_last, "space", None)
        if space is None or not n_variables <= space.slots.shape[1] <= _MOST_SPARE * n_variables:
            space = None
        if space is None or len(space.search.top) != max(n_groups, 1):
            space = _last.space = cls.of(n_variables, n_groups, tol)
        return space if space.tol == tol else space._replace(tol=tol)


def is_for_one_pass(n_variables: int, settings: Settings) -> bool:
    """Whether a problem is small, and nobody watches or limits its steps."""
    sizes = settings.sizes
    return (
        n_variables <= min(sizes.one_pass, sizes.one_set)
        and settings.solver in ("auto", "block")
        and settings.callback is None
        and settings.trace is None
        and settings.max_iter is None
        and settings.gap_tol is None
    )


def suits_one_pass(problem: DualProblem) -> bool:
    """Whether every variable has bounds of its own, and no ridge."""
    return problem.ridge is None and not is_unbounded(problem)


def fits_one_pass(n_variables: int, gram: Gram, settings: Settings) -> bool:
    """Whether a problem is one for the pass, and its matrix at hand."""
    return is_for_one_pass(n_variables, settings) and gram.matrix is not None and gram.precision == "double"


def solve_in_one_pass(
    problem: DualProblem, gram: Gram, settings: Settings, beta: Vector, run: Run, reason: str
) -> Solution | None:
    """Solve a problem that `fits_one_pass` from ``beta`` on, which is changed; return None if it is not certified.

    ``run`` counts the steps in either case.
    """
    if not suits_one_pass(problem):
        return None
    begin, is_certified = beta.copy(), np.zeros(1, dtype=bool)
    layout = Layout.of(np.array([0, len(beta)]), np.empty(0, np.int64), problem, beta)
    bars = Bars(*gram.error_terms())
    solve_parts(writable(gram), bars, np.zeros(1, np.int64), len(beta), layout, settings.tol, is_certified)
    residual, levels, figures = layout.point.residual, layout.account.levels[0], layout.account.figures[0]
    run.count(int(figures[ITERATIONS]), 0.0)
    if not is_certified[0]:
        if not is_trusted(figures, settings.tol):
            beta[:] = begin
        return None
    report = report_of(figures, problem.n_variables, gram, reason, run.seconds)
    return Solution(beta, residual, levels[: problem.n_groups], report)


def solve_parts(
    kernel: Floats,
    bars: Bars,
    chosen: Index,
    largest: int,
    layout: Layout,
    tol: float,
    is_certified: NDArray[np.bool_],
) -> None:
    """Solve the problems ``chosen``, of so many variables at the most, on the kernel matrix of all samples."""
    n_groups, is_whole = layout.point.n_groups, not len(layout.samples)
    space, memory = Space.kept(largest, n_groups, tol), np.empty(0 if is_whole else largest * largest)
    _solve_parts(kernel, memory, chosen, layout, bars, space, is_certified)


def is_trusted(figures: Vector, tol: float) -> bool:
    """Whether rounding is small beside ``tol`` where a pass ended, and it cannot be above its start."""
    return bool(figures[TURNS] > 0 and figures[ROUNDING] <= NEGLIGIBLE * tol and np.isfinite(figures[OBJECTIVE]))


def writable(gram: Gram) -> Floats:
    """Return the matrix in the one form that the pass is compiled for."""
    matrix = gram.matrix
    assert matrix is not None
    is_usual = matrix.flags.c_contiguous and matrix.flags.writeable
    return matrix if is_usual else np.array(matrix, order="C")


def report_of(figures: Vector, n_variables: int, gram: Gram, reason: str, seconds: float) -> Report:
    """Return the report of a certified pass."""
    return shared_report(
        gram, reason, seconds=seconds, largest_set=n_variables,
        iterations=int(figures[ITERATIONS]), outer_steps=int(figures[TURNS]),
        violation=float(figures[VIOLATION]), rounding=float(figures[ROUNDING]),
        objective=float(figures[OBJECTIVE]), gap=float(figures[GAP]),
        n_support=int(figures[N_SUPPORT]), n_bounded=int(figures[N_BOUNDED]),
    )  # fmt: skip


def shared_report(gram: Gram, reason: str, **own: Any) -> Report:
    """Return what certified passes on one Gram matrix have in common in their reports, and what is their own."""
    counts = gram.counts
    return Report(
        Status.CONVERGED, solver="block", rule="second_order", storage=gram.storage, reason=reason,
        kernel_evaluations=counts.evaluations, cache_hits=counts.hits, cache_misses=counts.misses,
        cache_bytes=counts.bytes, fewest_active=gram.n, **own,
    )  # fmt: skip


@borrowing
def _solve_parts(
    whole: Any, memory: Any, chosen: Any, layout: Layout, bars: Bars, space: Space, is_certified: Any
) -> None:
    """Solve the problems ``chosen`` by `_one_pass`, each on its part of the matrix, copied into ``memory``."""
    beta, residual, lo, hi, group, n_groups = layout.point
    samples, kernel, sizes = layout.samples, whole, bars.sizes
    for p in chosen:
        first, last = layout.offsets[p], layout.offsets[p + 1]
        if samples.shape[0] > 0:
            n = last - first
            kernel, sizes = memory[: n * n].reshape(n, n), space.lines[_SIZES][:n]
            _gather(whole, bars.sizes, samples[first:last], kernel, sizes, space.slots[3])
        part = Point(
            beta[first:last], residual[first:last], lo[first:last], hi[first:last], group[first:last], n_groups
        )
        own_bars = Bars(sizes, bars.operations, bars.decays)
        own_account = Account(layout.account.levels[p], layout.account.figures[p])
        v = layout.v[first:last]
        is_certified[p] = _one_pass(kernel, v, layout.sums, part, own_bars, space, own_account)


@borrowing
def _gather(whole: Any, all_sizes: Any, places: Any, kernel: Any, sizes: Any, columns: Any) -> None:
    """Copy the kernel values and sizes of samples, which are known by their rows, see `hinge.solvers.many`."""
    for i in range(places.shape[0]):
        sizes[i], columns[i] = all_sizes[places[i]], places[i] % whole.shape[1]
    for i in range(places.shape[0]):
        row, target = whole[places[i]], kernel[i]
        for j in range(places.shape[0]):
            target[j] = row[columns[j]]


@borrowing
def _one_pass(kernel: Any, v: Any, sums: Any, point: Point, bars: Bars, space: Space, account: Account) -> bool:
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
    space : Space
        What to work with.
    account : Account
        Set to what is to be told of the point.
    """
    n, beta, residual, figures = kernel.shape[0], point.beta, point.residual, account.figures
    diagonal, error = space.lines[_DIAGONAL][:n], space.lines[_ERROR]
    for t in range(n):
        diagonal[t] = kernel[t, t]
    rows = Rows(kernel, space.slots[0][:n], space.slots[1], space.slots[2], diagonal)
    figures[ITERATIONS] = 0.0
    tol = space.tol
    pair_tol = tol if tol < _PAIR_TOL else _PAIR_TOL
    is_finite = _find_residual(kernel, v, beta, residual, error)
    _find_error(beta, bars, n, error)
    first, doubt_of_first = _objective(v, beta, residual, error, n)
    n_variables, n_steps = beta.shape[0], 0
    burst = n_variables
    for turn in range(_TURNS if is_finite else 0):
        figures[ROUNDING] = np.inf  # until this turn's point is looked at
        most = min(burst, _TURNS * n_variables - n_steps) + 1
        outcome = take_steps(point, rows, space.search, SECOND_ORDER, None, pair_tol, most)
        if outcome.code == UNBOUNDED:
            return False
        n_steps += outcome.steps
        aim = AIM * (1.0 + _largest(residual))
        # As long as the steps have taken; where there is none left to take, as long as it takes.
        spent = _WORK_OF_STEP * n_steps * n_variables if outcome.steps > 0 else np.inf
        n_rounds, work = settle(kernel, point, space.room, aim, PATIENCE, spent)
        if work > spent:  # each is to have its share of the time
            burst += n_variables
        figures[ITERATIONS] += outcome.steps + n_rounds
        figures[TURNS] = turn + 1
        _restore_sums(sums, diagonal, point)
        if not _find_residual(kernel, v, beta, residual, error):
            return False
        describe(v, point, bars, space, account)
        violation, rounding = figures[VIOLATION], figures[ROUNDING]
        is_sharp = violation <= aim or (violation <= rounding and violation <= HIDDEN * aim)
        if is_sharp and violation <= tol and rounding <= NEGLIGIBLE * tol:
            return bool(np.isfinite(figures[OBJECTIVE]))
        if n_steps >= _TURNS * n_variables or (turn > 0 and n_rounds == 0) or (turn > 1 and outcome.steps == 0):
            break  # too many are free, or nothing moves
    objective, doubt = _objective(v, beta, residual, error, n)
    if not objective + doubt <= first - doubt_of_first:  # rounding may hide that it is above its start
        figures[ROUNDING] = np.inf
    return False


@borrowing
def _largest(values: Any) -> float:
    largest = 0.0
    for t in range(values.shape[0]):
        largest = abs(values[t]) if abs(values[t]) > largest else largest
    return largest


@borrowing
def _find_residual(kernel: Any, v: Any, beta: Any, residual: Any, image: Any) -> bool:
    """Set the residual to v − Kβ; return whether all of it is finite."""
    n = kernel.shape[0]
    for t in range(n):
        image[t] = 0.0
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
            beta[chosen] = clipped(beta[chosen] + (sums[g] - total), lo[chosen], hi[chosen])


@borrowing
def describe(v: Any, point: Point, bars: Bars, space: Space, account: Account) -> None:
    """Set the multipliers and figures of a point."""
    beta, residual, lo, hi, group, n_groups = point
    levels, figures = account
    n, found, lines = bars.sizes.shape[0], space.room.groups, space.lines
    error, above, below = lines[_ERROR], lines[_ABOVE], lines[_BELOW]
    survey(beta, residual, residual, lo, hi, group, found)
    levels_between(found, levels)
    if n_groups == 0:
        levels[0] = 0.0
    violation = violation_between(found, n_groups)
    n_support, n_bounded = support_counts(beta, lo, hi, n)
    _find_error(beta, bars, n_support, error)
    for t in range(beta.shape[0]):
        bar = error[t % n] + 4 * UNIT * abs(residual[t])
        above[t], below[t] = residual[t] + bar, residual[t] - bar
    objective, _ = _objective(v, beta, residual, error, n)
    survey(beta, above, below, lo, hi, group, found)
    rounding = violation_between(found, n_groups) - violation
    figures[VIOLATION], figures[ROUNDING] = violation, 0.0 if rounding < 0 else rounding
    figures[N_SUPPORT], figures[N_BOUNDED], figures[OBJECTIVE] = n_support, n_bounded, objective
    figures[GAP] = gap_between(beta, residual, lo, hi, group, levels)


@borrowing
def _objective(v: Any, beta: Any, residual: Any, error: Any, n: int) -> tuple[float, float]:
    """`objective_of` and `doubt_of_objective`, without ridge."""
    objective, doubt, unit = 0.0, 0.0, UNIT * (beta.shape[0] + 4)
    for s in range(n):
        coefficient, image = _coefficient(beta, s, n), v[s] - residual[s]
        objective += 0.5 * coefficient * image
        of_image = error[s] + 2 * UNIT * (abs(v[s]) + abs(residual[s])) + unit * abs(image)
        doubt += 0.5 * abs(coefficient) * of_image
    for t in range(beta.shape[0]):
        objective -= v[t] * beta[t]
        doubt += unit * abs(v[t] * beta[t])
    return objective, doubt


@borrowing
def _find_error(beta: Any, bars: Bars, n_support: int, error: Any) -> None:
    """Bound the rounding error of each sample's residual: `Source.rounding`, for sums in any order."""
    sizes, operations, decays = bars
    n = sizes.shape[0]
    mass, mass_of_sizes = 0.0, 0.0
    for s in range(n):
        size = abs(_coefficient(beta, s, n))
        mass += size
        mass_of_sizes += size * (sizes[s] - 1.0 if decays else sizes[s])
    for s in range(n):
        if decays:
            error[s] = UNIT * (operations * (sizes[s] * mass + mass_of_sizes) + n_support * mass)
        else:
            error[s] = UNIT * (operations + n_support) * sizes[s] * mass_of_sizes
