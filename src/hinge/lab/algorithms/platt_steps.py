"""The steps of Platt's SMO: the pseudo-code of his section 2.5, compiled (`hinge.lab.algorithms.platt` drives it).

Where a kernel row is missing the procedures return, and are called again once it is there: choosing a pair changes
nothing, and a random place is the same whenever the same question is asked.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hinge.arrays import FeatureRows
from hinge.data.products import add_row, row_dot
from hinge.kernel.gram import Gram
from hinge.lab.algorithms.pairs import move
from hinge.runtime.jit import compiled
from hinge.solvers.state import State

# A step shorter than this, relative to the variable, is no progress (eps in the pseudo-code).
_EPS = 1e-10

DONE, NEEDS_ROWS, STEP_LIMIT = 0, 1, 2


class Trainee(NamedTuple):
    """The machine in training, for the compiled procedures. Variable t belongs to sample ``t % n``.

    Attributes
    ----------
    beta, errors, v, lo, hi : arrays
        The variables; their residuals v − f(x), which are Platt's errors with the sign changed, and right for the
        free ones; targets; box.
    diagonal : array
        k(x, x) of each sample.
    rows, slot_of : arrays
        Kernel rows, and where each sample has its own (-1: nowhere). Without rows the machine is linear.
    indptr, indices, values : arrays
        The samples of a linear machine: in CSR.
    weights, unpacked : arrays
        The weight vector of a linear machine, and a sample with all its zeros.
    free, place : arrays
        The free variables in any order; where each variable stands among them (-1: nowhere).
    now : array
        Threshold; change of the objective, and length of all steps, since the last look.
    counts : array
        Free variables; steps; those entered into the books; kernel values computed alone; place in the pass.
    """

    beta: Any
    errors: Any
    v: Any
    lo: Any
    hi: Any
    diagonal: Any
    rows: Any
    slot_of: Any
    indptr: Any
    indices: Any
    values: Any
    weights: Any
    unpacked: Any
    free: Any
    place: Any
    now: Any
    counts: Any


THRESHOLD, CHANGE, LENGTH = 0, 1, 2
FREE, STEPS, NOTED, VALUES, TURN = 0, 1, 2, 3, 4


# ---------------------------------------------------------------------- the pseudo-code of section 2.5


@compiled
def examine_pass(m: Trainee, order: Any, only_free: bool, tol: float, max_steps: int) -> tuple[int, int, int]:
    """Examine the variables in this order, from where the last call left off.

    Returns why it ended, and the samples whose kernel rows are needed before it can go on.
    """
    last = m.counts[STEPS] + max_steps
    while True:
        turn = _next_violator(m, order, only_free, tol)
        m.counts[TURN] = turn
        if turn == order.shape[0]:
            return DONE, -1, -1
        if m.counts[STEPS] >= last:
            return STEP_LIMIT, -1, -1
        needed, beside = _examine_example(m, order[turn])
        if needed >= 0:
            return NEEDS_ROWS, needed, beside
        m.counts[TURN] += 1


@compiled
def _examine_example(m: Trainee, i2: int) -> tuple[int, int]:
    """Find a partner with which i2, which violates, makes progress, and take that step (section 2.2).

    Returns samples whose kernel rows it needs first, or -1. Asked again, it makes the same choice.
    """
    n = m.diagonal.shape[0]
    is_linear = m.rows.shape[0] == 0
    if not is_linear and m.slot_of[i2 % n] < 0:
        return i2 % n, -1
    if is_linear:
        _unpack(m, i2 % n, True)
    i1, step = _partner(m, i2)
    if is_linear:
        _unpack(m, i2 % n, False)
    if i1 < 0:
        return -1, -1
    if not is_linear and m.slot_of[i1 % n] < 0:
        return i1 % n, i2 % n
    _take_step(m, i1, i2, step)
    return -1, -1


@compiled
def _partner(m: Trainee, i2: int) -> tuple[int, float]:
    """The hierarchy of second choices; the partner and how far β₂ goes up, or -1."""
    n_free, n_all, is_linear = m.counts[FREE], m.beta.shape[0], m.rows.shape[0] == 0
    data = (m.indptr, m.indices, m.values, m.weights)
    i1 = _second_choice(i2, m.free[:n_free], m.errors, m.now[THRESHOLD])
    if i1 >= 0:
        step = _step_with(m, i1, i2)
        if step != 0:
            return i1, step
    start = _random_place(m.counts[STEPS] + i2)
    for k in range(n_free):
        i1 = m.free[(start + k) % n_free]
        step = _step_with(m, i1, i2)
        if step != 0:
            return i1, step
    for k in range(n_all):
        i1 = (start + k) % n_all
        if is_linear and m.place[i1] < 0:
            m.errors[i1] = m.v[i1] - _output(i1 % m.diagonal.shape[0], data)
        step = _step_with(m, i1, i2)
        if step != 0:
            return i1, step
    return -1, 0.0


@compiled
def _take_step(m: Trainee, i1: int, i2: int, step: float) -> None:
    """β₂ grows by ``step`` and β₁ falls by it; errors and threshold follow."""
    n = m.diagonal.shape[0]
    before_1, before_2 = m.errors[i1], m.errors[i2]
    move(i2, step, m.beta, m.lo, m.hi)
    move(i1, -step, m.beta, m.lo, m.hi)
    if m.rows.shape[0] == 0:  # eq. 22
        add_row(m.indptr, m.indices, m.values, i2 % n, step, m.weights)
        add_row(m.indptr, m.indices, m.values, i1 % n, -step, m.weights)
        data = (m.indptr, m.indices, m.values, m.weights)
        _evaluate(m.free[: m.counts[FREE]], n, m.v, m.errors, data)
        _evaluate(np.array([i1, i2]), n, m.v, m.errors, data)
    else:
        row_1, row_2 = m.rows[m.slot_of[i1 % n]], m.rows[m.slot_of[i2 % n]]
        for first in range(0, m.errors.shape[0], n):
            part = m.errors[first : first + n]
            for t in range(n):
                part[t] -= step * (row_2[t] - row_1[t])
    for t in (i1, i2):
        _note_freedom(m, t)
    if m.place[i1] >= 0:  # section 2.3; halfway where both are at a bound
        m.now[THRESHOLD] = m.errors[i1]
    elif m.place[i2] >= 0:
        m.now[THRESHOLD] = m.errors[i2]
    else:
        m.now[THRESHOLD] = (m.errors[i1] + m.errors[i2]) / 2
    # The objective's change is −step times the mean slope along it.
    m.now[CHANGE] -= 0.5 * step * (before_2 - before_1 + m.errors[i2] - m.errors[i1])
    m.now[LENGTH] += 2 * abs(step)
    m.counts[STEPS] += 1


@compiled
def _next_violator(m: Trainee, order: Any, only_free: bool, tol: float) -> int:
    """Place in ``order``, from the turn on, of the next that is off the threshold by more than ``tol``.

    Only one that may move the right way counts. Bounded samples of linear machines are evaluated on the way.
    """
    place, beta, errors, lo, hi = m.place, m.beta, m.errors, m.lo, m.hi
    data = (m.indptr, m.indices, m.values, m.weights)
    is_linear, n = m.rows.shape[0] == 0, m.diagonal.shape[0]
    highest, lowest = m.now[THRESHOLD] + tol, m.now[THRESHOLD] - tol
    for k in range(m.counts[TURN], order.shape[0]):
        t = order[k]
        if place[t] < 0:
            if only_free:
                continue
            if is_linear:
                errors[t] = m.v[t] - _output(t % n, data)
        if (errors[t] > highest and beta[t] < hi[t]) or (errors[t] < lowest and beta[t] > lo[t]):
            return k
    return order.shape[0]


@compiled
def _second_choice(i2: int, free: Any, errors: Any, threshold: float) -> int:
    """Free variable whose error is furthest from that of i2 on the other side; -1 where no other is free."""
    sign = 1.0 if errors[i2] > threshold else -1.0
    best, chosen = -np.inf, -1
    for t in free:
        if t != i2 and -sign * errors[t] > best:
            best, chosen = -sign * errors[t], t
    return chosen


@compiled
def _joint_step(m: Trainee, i1: int, i2: int, k12: float) -> float:
    """How far β₂ goes up, and β₁ down (eq. 13 to 19); 0 where that is no positive progress."""
    beta, lo, hi, n = m.beta, m.lo, m.hi, m.diagonal.shape[0]
    low = max(lo[i2] - beta[i2], beta[i1] - hi[i1])
    high = min(hi[i2] - beta[i2], beta[i1] - lo[i1])
    if i1 == i2 or low >= high:
        return 0.0
    k11, k22 = m.diagonal[i1 % n], m.diagonal[i2 % n]
    slope, eta = m.errors[i2] - m.errors[i1], k11 + k22 - 2 * k12
    if eta > 1e-12 * (abs(k11) + abs(k22)):
        step = min(max(slope / eta, low), high)
    else:  # the objective at both ends of the segment
        at_low, at_high = low * (0.5 * eta * low - slope), high * (0.5 * eta * high - slope)
        step = low if at_low < at_high else high
        if min(at_low, at_high) >= -_EPS * _EPS:
            step = 0.0
    return step if abs(step) >= _EPS * (abs(beta[i2]) + _EPS) else 0.0


# ---------------------------------------------------------------------- kernel values, errors, list of the free


@compiled
def _step_with(m: Trainee, i1: int, i2: int) -> float:
    """`_joint_step` of a pair, i2 being unpacked or having its kernel row."""
    n = m.diagonal.shape[0]
    s1, s2 = i1 % n, i2 % n
    if m.rows.shape[0] == 0:
        k12 = 0.0
        for p in range(m.indptr[s1], m.indptr[s1 + 1]):
            k12 += m.values[p] * m.unpacked[m.indices[p]]
        m.counts[VALUES] += 1
    else:
        k12 = m.rows[m.slot_of[s2], s1]
    return _joint_step(m, i1, i2, k12)


@compiled
def _output(sample: int, data: Any) -> float:
    """The weight vector times a sample; both in ``data`` with the samples' CSR arrays."""
    indptr, indices, values, weights = data
    return row_dot(indptr, indices, values, sample, weights)


@compiled
def _evaluate(variables: Any, n: int, v: Any, errors: Any, data: Any) -> None:
    """Bring the errors of some variables of a linear machine up to date."""
    for t in variables:
        errors[t] = v[t] - _output(t % n, data)


@compiled
def _unpack(m: Trainee, s: int, fill: bool) -> None:
    for p in range(m.indptr[s], m.indptr[s + 1]):
        m.unpacked[m.indices[p]] = m.values[p] if fill else 0.0


@compiled
def _note_freedom(m: Trainee, t: int) -> None:
    """Enter t into the list of the free variables, or strike it out."""
    is_free = m.lo[t] < m.beta[t] < m.hi[t]
    if is_free and m.place[t] < 0:
        m.free[m.counts[FREE]] = t
        m.place[t] = m.counts[FREE]
        m.counts[FREE] += 1
    elif not is_free and m.place[t] >= 0:
        m.counts[FREE] -= 1
        moved = m.free[m.counts[FREE]]
        m.free[m.place[t]] = moved
        m.place[moved] = m.place[t]
        m.place[t] = -1


@compiled
def _random_place(number: int) -> int:
    """A place that looks random and is the same whenever the same question is asked (Knuth's multiplier)."""
    return ((number + 1998) * 2654435761 >> 8) & 0x7FFFFFFF


# ---------------------------------------------------------------------- from a state to a machine


def assemble(state: State) -> Trainee:
    """Lay a state out for the compiled procedures; β and residual are shared with it."""
    problem, gram, n = state.problem, state.gram, state.problem.n_variables
    if gram.through_weights:
        indptr, indices, values = _entries(gram)
        weights = gram.weights.of(problem.coefficients(state.beta))
        rows, slot_of = np.empty((0, 0)), np.empty(0, np.int64)
    else:
        indptr, indices, values = np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0)
        weights = np.empty(0)
        rows, slot_of = gram.cache.rows, gram.cache.slot_of
    free = np.flatnonzero((problem.lo < state.beta) & (state.beta < problem.hi))
    listed, place = np.empty(n, np.int64), np.full(n, -1, np.int64)
    listed[: len(free)], place[free] = free, np.arange(len(free))
    counts = np.array([len(free), 0, 0, 0, 0], np.int64)
    return Trainee(
        state.beta, state.residual, problem.v, problem.lo, problem.hi, gram.diagonal, rows, slot_of,
        indptr, indices, values, weights, np.zeros_like(weights), listed, place, np.zeros(3), counts,
    )  # fmt: skip


def evaluate_all(m: Trainee) -> None:
    """Bring all errors of a linear machine up to date; others have theirs."""
    if m.rows.shape[0] == 0:
        data = (m.indptr, m.indices, m.values, m.weights)
        _evaluate(np.arange(len(m.beta)), len(m.diagonal), m.v, m.errors, data)


def _entries(gram: Gram) -> FeatureRows:
    """The samples in CSR; of dense ones every value is an entry, as in Platt's dense dot products."""
    rows = gram.weights.rows()
    if rows.values.ndim == 1:
        return rows
    values = rows.values.astype(np.float64, copy=False)
    width = values.shape[1]
    indices = np.tile(np.arange(width, dtype=np.int32), gram.n)
    return FeatureRows(np.arange(gram.n + 1) * width, indices, values.ravel())
