"""A small dense solver for the dual problem, and plain formulas to check any solution with.

Everything here is ordinary NumPy on the full kernel matrix and shares no code with the library, so that an
error in the library cannot hide in its own check. A problem is anything with the attributes ``v``, ``lo``,
``hi``, ``group``, ``sums``, ``start`` and ``n_samples``:

    minimise ½ βᵀKβ − vᵀβ   subject to   lo ≤ β ≤ hi   and   Σβ = sums[g] in every group g
"""

from itertools import count

import numpy as np
import pytest
import scipy.sparse as sp


def kernel_matrix(name, A, B, *, gamma=1.0, coef0=0.0, degree=3, dtype=np.float64, functions=np):
    """The kernel between the rows of two dense or sparse matrices, by its textbook formula.

    For numbers of a class of their own ``dtype`` is object, and ``functions`` has their exp and tanh.
    """
    A, B = (np.asarray(M.toarray() if hasattr(M, "toarray") else M, dtype=dtype) for M in (A, B))
    gamma, coef0 = np.array([gamma, coef0], dtype=dtype)
    if name not in _FORMULAS:
        raise ValueError(f"no formula for the kernel {name!r}")
    return _FORMULAS[name](A, B, gamma, coef0, degree, functions)


def _chi2_distance(A, B):
    total = A[:, None, :] + B[None, :, :]
    return ((A[:, None, :] - B[None, :, :]) ** 2 / np.where(total == 0, 1, total)).sum(axis=2)


def _tanimoto(A, B):
    shared = A @ B.T
    rest = (A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - shared
    return np.where(rest == 0, 1, shared / np.where(rest == 0, 1, rest))


def _minmax(A, B):
    least, most = np.minimum(A[:, None], B).sum(axis=2), np.maximum(A[:, None], B).sum(axis=2)
    return np.where(most == 0, 1, least / np.where(most == 0, 1, most))


_FORMULAS = {
    "linear": lambda A, B, gamma, coef0, degree, f: A @ B.T,
    "poly": lambda A, B, gamma, coef0, degree, f: (gamma * (A @ B.T) + coef0) ** degree,
    "sigmoid": lambda A, B, gamma, coef0, degree, f: f.tanh(gamma * (A @ B.T) + coef0),
    "rbf": lambda A, B, gamma, coef0, degree, f: f.exp(-gamma * ((A[:, None] - B) ** 2).sum(axis=2)),
    "laplacian": lambda A, B, gamma, coef0, degree, f: f.exp(-gamma * np.abs(A[:, None] - B).sum(axis=2)),
    "chi2": lambda A, B, gamma, coef0, degree, f: f.exp(-gamma * _chi2_distance(A, B)),
    "tanimoto": lambda A, B, gamma, coef0, degree, f: _tanimoto(A, B),
    "minmax": lambda A, B, gamma, coef0, degree, f: _minmax(A, B),
}


def expanded(K, problem):
    """K between variables, with the ridge: variable t stands for sample t modulo the number of samples."""
    sample = np.arange(len(problem.v)) % problem.n_samples
    matrix = K[np.ix_(sample, sample)]
    ridge = getattr(problem, "ridge", None)
    return matrix if ridge is None else matrix + np.diag(ridge)


def residual(beta, K, problem):
    return problem.v - expanded(K, problem) @ beta


def objective(beta, K, problem):
    """The minimised value (LIBSVM's ``obj``)."""
    return float(0.5 * beta @ (expanded(K, problem) @ beta) - problem.v @ beta)


def members(problem):
    """The variables of each group; one pseudo-group of all variables where no sum has to be kept."""
    if len(problem.sums) == 0:
        return [np.arange(len(problem.v))]
    return [np.flatnonzero(problem.group == g) for g in range(len(problem.sums))]


def violation(beta, K, problem):
    """How much max r over {β < hi} exceeds min r over {β > lo} in the worst group (never negative).

    Without a sum to keep, the value between the two is fixed at zero.
    """
    r = residual(beta, K, problem)
    worst = 0.0
    for t in members(problem):
        up = r[t][beta[t] < problem.hi[t]].max(initial=-np.inf)
        down = r[t][beta[t] > problem.lo[t]].min(initial=np.inf)
        worst = max(worst, up - down) if len(problem.sums) else max(worst, up, -down)
    return float(worst)


def rounding(beta, K, problem):
    """A bound on what rounding alone can put into ``violation`` in this precision."""
    absolute = np.abs(expanded(K, problem)) @ np.abs(beta)
    return float(4 * np.finfo(absolute.dtype).eps * len(beta) * (absolute.max() + np.abs(problem.v).max()))


def duality_gap(beta, K, problem, multipliers):
    """The primal minus the dual objective: Σ (r−b)₊(hi−β) + (b−r)₊(β−lo), infinite where a bound is."""
    r = residual(beta, K, problem)
    b = np.asarray(multipliers)[problem.group] if len(problem.sums) else 0.0
    with np.errstate(invalid="ignore"):  # an infinite bound times a zero excess is zero
        rise = np.nan_to_num(np.maximum(r - b, 0) * (problem.hi - beta), nan=0.0, posinf=np.inf)
        fall = np.nan_to_num(np.maximum(b - r, 0) * (beta - problem.lo), nan=0.0, posinf=np.inf)
    return float((rise + fall).sum())


def comparable_pairs(y, query):
    """All pairs (higher grade, lower grade) of samples of one query."""
    y, query = np.asarray(y), np.asarray(query)
    return np.argwhere((query[:, None] == query) & (y[:, None] > y))


def assert_feasible(beta, problem):
    """The box holds exactly; each sum holds to 1e-12 of the total width of the box."""
    assert np.all((problem.lo <= beta) & (beta <= problem.hi))
    width = problem.hi - problem.lo
    slack = 1e-12 * max(width[np.isfinite(width)].sum(), np.abs(beta).sum())
    for t, total in zip(members(problem), problem.sums, strict=False):
        assert abs(beta[t].sum() - total) <= slack


def assert_solved(solution, problem, K, tol):
    """The solution says it converged, and its β alone proves it."""
    assert solution.report.status == "converged", solution.report
    assert_feasible(solution.beta, problem)
    allowed = tol + rounding(solution.beta, K, problem)
    assert violation(solution.beta, K, problem) <= allowed
    assert solution.report.violation <= allowed


def is_convex(K, problem):
    """Whether ½ βᵀKβ is convex along every direction that keeps the sums."""
    Q = expanded(K, problem)
    if len(problem.sums):
        keep = np.eye(len(Q))
        for t in members(problem):
            keep[np.ix_(t, t)] -= 1 / len(t)
        Q = keep @ Q @ keep
    return bool(np.linalg.eigvalsh(Q).min() > -1e-10 * max(1.0, np.abs(Q).max()))


def minimise(K, problem, tol=1e-10, max_rounds=3000):
    """Solve the problem to a violation of ``tol`` times the size of its numbers.

    Pair steps (single-variable steps where there is no sum to keep) find the bounds that hold; Newton steps
    on the remaining free variables, stopped at the first bound they meet, then finish quickly.
    """
    Q = expanded(np.asarray(K, dtype=np.float64), problem)
    beta = np.array(problem.start, dtype=np.float64)
    for round_ in count():
        size = max(1.0, np.abs(problem.v).max(), (np.abs(Q) @ np.abs(beta)).max())
        if violation(beta, K, problem) <= tol * size:
            return beta
        if round_ == max_rounds:
            raise RuntimeError(f"no solution: violation {violation(beta, K, problem):g} after {round_} rounds")
        for _ in range(len(beta)):
            if len(problem.sums):
                _pair_step(beta, Q, problem)
            else:
                _single_step(beta, Q, problem)
        while _newton_step(beta, Q, problem):
            pass


def clarabel_minimum(K, problem):
    """The least value of the problem, as Clarabel's interior-point method finds it; a skip without it."""
    clarabel = pytest.importorskip("clarabel")
    wide = np.flatnonzero(problem.lo < problem.hi)
    Q, v, n = expanded(K, problem)[np.ix_(wide, wide)], problem.v[wide], len(wide)
    sums = sp.csc_matrix(np.equal.outer(np.arange(len(problem.sums)), problem.group[wide]).astype(float))
    has_top, has_bottom = np.isfinite(problem.hi[wide]), np.isfinite(problem.lo[wide])
    ones = sp.identity(n, format="csc")
    A = sp.vstack([sums, ones[has_top], -ones[has_bottom]], format="csc")
    b = np.concatenate([problem.sums, problem.hi[wide][has_top], -problem.lo[wide][has_bottom]])
    cones = [clarabel.NonnegativeConeT(int(has_top.sum() + has_bottom.sum()))]
    if len(problem.sums):
        cones.insert(0, clarabel.ZeroConeT(len(problem.sums)))
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-10
    answer = clarabel.DefaultSolver(sp.triu(sp.csc_matrix(Q), format="csc"), -v, A, b, cones, options).solve()
    x = np.asarray(answer.x)
    return float(0.5 * x @ Q @ x - v @ x)


def _move(beta, direction, step, problem):
    """Take a step along a direction, cut at the first bound met; what meets its bound is assigned it."""
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(direction > 0, (problem.hi - beta) / direction, (problem.lo - beta) / direction)
    room[direction == 0] = np.inf
    step = min(step, room.min())
    if not np.isfinite(step):
        raise RuntimeError("the problem is unbounded")
    hit = room <= step
    beta += step * direction
    beta[hit & (direction > 0)] = problem.hi[hit & (direction > 0)]
    beta[hit & (direction < 0)] = problem.lo[hit & (direction < 0)]
    np.clip(beta, problem.lo, problem.hi, out=beta)
    return bool(hit.any())


def _pair_step(beta, Q, problem):
    """Move mass inside one group from j to i: the maximal violating i, and the j of largest gain."""
    r = problem.v - Q @ beta
    best, pair = 0.0, None
    for t in members(problem):
        up, down = t[beta[t] < problem.hi[t]], t[beta[t] > problem.lo[t]]
        if not len(up) or not len(down):
            continue
        i = up[np.argmax(r[up])]
        excess = np.maximum(r[i] - r[down], 0)
        curvature = np.maximum(Q[i, i] + Q.diagonal()[down] - 2 * Q[i, down], 1e-12)
        gain = excess**2 / curvature
        if gain.max() > best:
            best, pair = gain.max(), (i, down[np.argmax(gain)])
    if pair is None:
        return
    i, j = pair
    direction = np.zeros_like(beta)
    direction[i], direction[j] = 1.0, -1.0
    curvature = Q[i, i] + Q[j, j] - 2 * Q[i, j]
    _move(beta, direction, (r[i] - r[j]) / curvature if curvature > 1e-12 else np.inf, problem)


def _single_step(beta, Q, problem):
    r = problem.v - Q @ beta
    push = np.where(((r > 0) & (beta < problem.hi)) | ((r < 0) & (beta > problem.lo)), np.abs(r), 0)
    i = int(np.argmax(push**2 / np.maximum(Q.diagonal(), 1e-12)))
    if push[i] == 0:
        return
    direction = np.zeros_like(beta)
    direction[i] = np.sign(r[i])
    _move(beta, direction, push[i] / Q[i, i] if Q[i, i] > 1e-12 else np.inf, problem)


def _newton_step(beta, Q, problem):
    """Minimise over the free variables; True when a bound was met, so that another step makes sense.

    Where the objective falls without curvature the step follows that direction to the first bound instead.
    """
    free = np.flatnonzero((beta > problem.lo) & (beta < problem.hi))
    if not len(free):
        return False
    keep = np.eye(len(free))
    for t in members(problem) if len(problem.sums) else []:
        inside = np.isin(free, t).astype(float)
        keep -= np.outer(inside, inside) / max(inside.sum(), 1)
    H = Q[np.ix_(free, free)]
    curvature, axes = np.linalg.eigh(keep @ H @ keep)
    slope = axes.T @ (keep @ (problem.v - Q @ beta)[free])
    flat = curvature <= 1e-11 * np.abs(H).max()
    noise = 1e-13 * (np.abs(problem.v).max() + (np.abs(Q) @ np.abs(beta)).max())
    along = np.where(flat, np.where(np.abs(slope) > noise * len(beta), slope, 0), 0)
    if not along.any():
        along = np.where(flat, 0, slope / np.where(flat, 1, curvature))
    d = keep @ (axes @ along)
    fall, bend = slope @ along, d @ H @ d
    if fall <= 0:
        return False
    direction = np.zeros_like(beta)
    direction[free] = d
    return _move(beta, direction, fall / bend if bend > 0 else np.inf, problem)
