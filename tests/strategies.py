"""Random problems of every formulation, on every storage, for the property tests."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

from hinge import DualProblem, Gram, Kernel, Sizes
from hinge.dual.formulations import c_svc, epsilon_svr, nu_svc, nu_svr, one_class, svdd
from hinge.kernel import kernels as library
from hinge.kernel.kernels import kind_of
from hinge.runtime.threads import lazy
from hinge.settings import RULES
from reference import kernel_matrix

FORMULATIONS = (
    "c_svc",
    "nu_svc",
    "one_class",
    "svdd",
    "epsilon_svr",
    "nu_svr",
    "c_svc_without_threshold",
    "epsilon_svr_without_threshold",
    "hard_margin",
)
SQUARED = ("c_svc_squared", "c_svc_squared_without_threshold", "epsilon_svr_squared")
STORAGES = ("dense64", "dense32", "csr_matrix", "csr_array_int64", "bits", "precomputed", "callable")
# Kernels of features by name; those that are positive semi-definite.
NAMED = tuple(name for name in library.KERNELS if kind_of(name).has_features)
KERNELS = tuple(name for name in NAMED if Kernel(name).is_positive)
SURE_RULES = tuple(rule.name for rule in RULES.values() if not rule.may_stall)
SOLVERS = (("auto", "second_order"), ("block", "second_order"), *(("smo", rule) for rule in RULES))
SURE_SOLVERS = tuple((solver, rule) for solver, rule in SOLVERS if rule in SURE_RULES)


@dataclass(frozen=True)
class Case:
    """What it takes to build one random problem; its data follow from these few values."""

    formulation: str
    storage: str
    kernel: str
    spread: str
    weighting: str
    n: int
    d: int
    C: float
    gamma: float
    coef0: float
    degree: int
    seed: int

    @lazy
    def X(self) -> np.ndarray:  # noqa: N802
        """Samples: spread out, on a coarse grid (ties and duplicate rows) or all 0/1."""
        rng = np.random.default_rng(self.seed)
        shape = (self.n, self.d)
        if self.formulation == "hard_margin":  # distinct points, which the RBF kernel always separates
            columns = rng.permuted(np.tile(np.arange(self.n), (self.d, 1)), axis=1)
            X = columns.T + rng.integers(-9, 10, size=shape) / 64
        elif self.storage == "bits" or self.spread == "bits":
            X = rng.integers(0, 2, size=shape)
        elif self.spread == "grid":
            X = rng.integers(-2, 3, size=shape) / 2
        else:
            X = np.round(64 * rng.normal(size=shape)) / 64  # the same number in float32
        return suited(self.kernel, X.astype(float))

    @lazy
    def K(self) -> np.ndarray:  # noqa: N802
        return self.textbook(self.X, self.X)

    @lazy
    def problem(self) -> DualProblem:
        rng = np.random.default_rng(self.seed + 1)
        return dual_problem(self.formulation, self.X, rng, self.C, self._weights(rng), self.K.diagonal())

    def gram(self, **options) -> Gram:
        if self.storage == "precomputed":
            return Gram(self.K, Kernel("precomputed"), **options)
        if self.storage == "callable":
            return Gram(self.X, Kernel(self.textbook), **options)
        kernel = Kernel(self.kernel, gamma=self.gamma, coef0=self.coef0, degree=self.degree)
        return Gram(stored(self.X, self.storage), kernel, **options)

    def textbook(self, A, B):
        return kernel_matrix(self.kernel, A, B, gamma=self.gamma, coef0=self.coef0, degree=self.degree)

    def _weights(self, rng):
        if self.weighting == "none":
            return None
        zero = (rng.random(self.n) < 0.2) & (self.weighting == "some zero") & (np.arange(self.n) > 3)
        return np.where(zero, 0.0, rng.uniform(0.2, 3.0, self.n))


def suited(kernel, X):
    """X itself, or without signs for a kernel that does not take them."""
    return abs(X) if kind_of(kernel).needs_nonnegative else X


def stored(X, storage):
    """The same numbers in another container."""
    if storage == "dense32":
        return X.astype(np.float32)
    if storage == "csr_matrix":
        return sp.csr_matrix(X)
    if storage == "csr_array_int64":
        rows = sp.csr_array(X)
        rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
        return rows
    return X


def cases(formulations=FORMULATIONS, storages=STORAGES, kernels=KERNELS, n_samples=(4, 40), n_features=(1, 6)):
    """Problems of 4 to 40 samples, if nothing else is said."""

    def build(formulation, kernel, gamma, **others):
        kernel = "rbf" if formulation == "hard_margin" else kernel
        gamma = min(gamma, 0.5) if kernel == "poly" else gamma  # pair steps crawl beyond
        return Case(formulation, kernel=kernel, gamma=gamma, **others)

    return st.builds(
        build,
        formulation=st.sampled_from(formulations),
        storage=st.sampled_from(storages),
        kernel=st.sampled_from(kernels),
        spread=st.sampled_from(("normal", "grid", "bits")),
        weighting=st.sampled_from(("none", "random", "some zero")),
        n=st.integers(*n_samples),
        d=st.integers(*n_features),
        C=st.sampled_from((0.1, 1.0, 10.0)),
        gamma=st.sampled_from((0.1, 0.5, 2.0)),
        coef0=st.sampled_from((0.0, 1.0)),
        degree=st.integers(1, 3),
        seed=st.integers(0, 2**32 - 1),
    )


def small_sizes(least, most):
    """Sizes at which problems are divided into working sets of ``least`` to ``most`` variables, and subsets."""

    def build(one_set, smallest_set, more, subset):
        return Sizes(one_set, smallest_set, smallest_set + more, subset, subset)

    return st.builds(
        build,
        one_set=st.integers(least, most),
        smallest_set=st.integers(least, most),
        more=st.integers(0, most),
        subset=st.sampled_from((least, 10**9)),
    )


def dual_problem(formulation, X, rng, C, weights, diagonal=None):
    n = len(X)
    y = np.sign(X[:, 0] - X[:, 0].mean() + 0.5 * rng.normal(size=n))
    y[:4] = (1, -1, 1, -1)  # both classes, also where weights may be zero
    target = np.round(np.sin(X.sum(axis=1)) + 0.2 * rng.normal(size=n), 2)
    if formulation == "c_svc":
        return c_svc(y, C=C, weights=weights)
    if formulation == "c_svc_without_threshold":
        return c_svc(y, C=C, weights=weights, fit_intercept=False)
    if formulation in ("c_svc_squared", "c_svc_squared_without_threshold"):
        return c_svc(y, C, weights, fit_intercept=formulation == "c_svc_squared", squared=True)
    if formulation == "epsilon_svr_squared":
        return epsilon_svr(target, C, 0.1, weights, squared=True)
    if formulation == "hard_margin":
        return c_svc(y, C=np.inf)
    if formulation == "nu_svc":
        cost = np.ones(n) if weights is None else weights
        feasible = 2 * min(cost[y > 0].sum(), cost[y < 0].sum()) / cost.sum()
        return nu_svc(y, nu=feasible * rng.uniform(0.05, 0.95), weights=weights)
    if formulation == "one_class":
        return one_class(n, nu=rng.uniform(0.05, 0.95), weights=weights)
    if formulation == "svdd":
        diagonal = (X**2).sum(axis=1) if diagonal is None else diagonal
        return svdd(diagonal, nu=rng.uniform(0.05, 0.95), weights=weights)
    if formulation == "nu_svr":
        return nu_svr(target, C=C, nu=rng.uniform(0.05, 0.95), weights=weights)
    with_threshold = formulation == "epsilon_svr"
    return epsilon_svr(target, C=C, epsilon=0.1, weights=weights, fit_intercept=with_threshold)
