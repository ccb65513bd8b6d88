"""A batch of problems with the same targets: kernel values of all of them, and all pairs of classes in one loop.

Samples of each problem are compared once. γ is a factor of every comparison, so that kernel values of other folds,
each with a γ of its own, take one pass over the comparisons of the whole batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hinge.arrays import Floats, Index, Vector
from hinge.data.dense import DenseSamples
from hinge.data.products import dense_differences
from hinge.data.samples import KINDS
from hinge.estimators.svc import SVC
from hinge.kernel.kernels import Kernel, kind_of
from hinge.kernel.rounding import operations_of, sizes_of
from hinge.many.problems import Stack
from hinge.many.stages import Stage
from hinge.solvers.one_pass import VIOLATION, Bars

# Share of the mean square that a variance must be, if sums of squares are to tell it to a dozen digits.
_CLEAR_VARIANCE = 1e-4

# Decisions nearer to zero than this, beside the largest one, may have another sign where they are summed up in
# another order: these the estimator itself decides.
_CLOSE = 1e-7


@dataclass(frozen=True, eq=False)
class Values:
    """Kernel values of a batch.

    Attributes
    ----------
    matrices : float64 array of shape (n_problems, n_samples, n_samples)
        The matrices.
    bars : Bars
        What bounds their rounding errors.
    gammas : float64 array of shape (n_problems,)
        γ of each problem; NaN for kernels that have none.
    is_known : bool array of shape (n_problems,)
        False for problems without values.
    """

    matrices: Vector
    bars: Bars
    gammas: Vector
    is_known: Any


@dataclass(frozen=True, eq=False)
class Solved:
    """What became of a stage, for each problem of a batch.

    Attributes
    ----------
    coefficients : float64 array of shape (n_problems, n_machines, n_samples)
        Coefficients of all samples.
    intercepts : float64 array of shape (n_problems, n_machines)
        Intercepts.
    decisions : float64 array of shape (n_problems, n_test, n_machines)
        Decisions on the samples held out.
    violations : float64 array of shape (n_problems,)
        The largest violation of all machines.
    is_settled : bool array of shape (n_problems,)
        Whether every machine is certified, and no decision is a matter of rounding.
    """

    coefficients: Vector
    intercepts: Vector
    decisions: Vector
    violations: Vector
    is_settled: Any


class Batch:
    """Problems with the same targets.

    Parameters
    ----------
    machine : SVC
        Names the kernel.
    stack : Stack
        The samples.

    Raises
    ------
    ValueError
        The kernel is not defined for some of the samples.
    """

    def __init__(self, machine: SVC, stack: Stack) -> None:
        self._stack = stack
        self._uses_gamma = "gamma" in kind_of(machine.kernel).uses
        self._gamma: Any = machine.gamma if self._uses_gamma else 1.0
        self._kernel = Kernel(machine.kernel, 1.0, float(machine.coef0), int(machine.degree))
        count, n, n_features = stack.X.shape
        self._samples = DenseSamples(stack.X.reshape(count * n, n_features))
        self._kernel.check(self._samples)
        self._statistic = self._kernel.by_differences or self._kernel.statistic
        self._norms: Floats = np.empty(0)
        self._compared = self._compare()
        self._moments: tuple[Vector, Vector] | None = None
        self._last: Values | None = None

    def _compare(self) -> Vector:
        """Compare the samples of each problem with each other."""
        X, kernel = self._stack.X, self._kernel
        count, n, _ = X.shape
        if self._statistic != kernel.statistic:  # ‖x‖² + ‖y‖² − 2 x·y, seen from the centre of the samples
            X = X - X.mean(axis=1, keepdims=True)
            norms = np.einsum("pnf,pnf->pn", X, X)
            compared = np.matmul(X, -2.0 * X.swapaxes(1, 2))
            compared += norms[:, :, None]
            compared += norms[:, None, :]
            np.maximum(compared, 0.0, out=compared)
            compared[:, np.arange(n), np.arange(n)] = 0.0
            self._norms = norms.ravel()
            return compared
        if kernel.takes_norms:
            self._norms = self._samples.norms(self._statistic, np.float64)
        if self._statistic == "dot":
            return np.matmul(X, X.swapaxes(1, 2))
        compared = np.empty((count, n, n))
        for rows, tile in zip(X, compared, strict=True):
            dense_differences(KINDS[self._statistic], rows, rows, tile)
        return compared

    # ------------------------------------------------------------------ kernel values

    def values(self, train: Index) -> Values:
        """Return the kernel values of machines that are trained on some of the samples."""
        follows_data = isinstance(self._gamma, str) and self._gamma == "scale"
        if self._last is None or follows_data:
            gammas, is_known = self._gammas(train)
            matrices, bars = self._matrices(gammas), self._bars(float(gammas.max()))
            told = gammas if self._uses_gamma else np.full(len(gammas), np.nan)
            self._last = Values(matrices, bars, told, is_known)
        return self._last

    def _gammas(self, train: Index) -> tuple[Vector, Any]:
        """Return γ of each problem, and whether it is known to a dozen digits."""
        widths, is_usable = self._stack.widths, self._stack.is_usable
        if not isinstance(self._gamma, str):
            return np.full(len(widths), float(self._gamma)), is_usable
        if self._gamma == "auto":
            return 1.0 / widths, is_usable
        if self._moments is None:
            X = self._stack.X
            deviations = X - (X.sum(axis=(1, 2)) / (X.shape[1] * widths))[:, None, None]
            deviations *= self._stack.is_feature[:, None, :]
            self._moments = deviations.sum(axis=2), np.einsum("pnf,pnf->pn", deviations, deviations)
        first, second = (moments[:, train].sum(axis=1) / (len(train) * widths) for moments in self._moments)
        variances = second - first**2
        is_known = is_usable & (variances > _CLEAR_VARIANCE * second)
        return 1.0 / (widths * np.where(is_known, variances, 1.0)), is_known

    def _matrices(self, gammas: Vector) -> Vector:
        kernel, compared = self._kernel, self._compared
        if kernel.is_linear:
            return compared
        count, n, _ = compared.shape
        matrices = np.multiply(compared, gammas[:, None, None]) if self._uses_gamma else compared.copy()
        if self._statistic == kernel.statistic and kernel.takes_norms:
            for tile, norms in zip(matrices, self._norms.reshape(count, n), strict=True):
                kernel.apply(tile, norms, norms, self._statistic)
        else:
            kernel.apply(matrices.reshape(count * n, n), self._norms, self._norms, self._statistic)
        return matrices

    def _bars(self, gamma: float) -> Bars:
        """Bound the rounding errors of all problems: the largest γ has the largest."""
        kernel = Kernel(self._kernel.name, gamma, self._kernel.coef0, self._kernel.degree)
        operations, _ = operations_of(self._samples, kernel, 0)
        if self._statistic != kernel.statistic:
            return Bars(1.0 + 2.0 * gamma * self._norms, operations, kernel.decays)
        diagonal = kernel.of_self(self._samples)
        return Bars(sizes_of(self._samples, kernel, self._statistic, diagonal), operations, kernel.decays)

    # ------------------------------------------------------------------ fits

    def solve(self, stage: Stage, values: Values) -> Solved:
        """Fit the machines of a stage to every problem, on this thread."""
        count, n, _ = values.matrices.shape
        n_machines = stage.n_machines
        parts = stage.parts(count)
        chosen = np.flatnonzero(np.repeat(values.is_known, n_machines))
        parts.solve(chosen, values.matrices.reshape(count * n, n), values.bars, float(stage.machine.tol))
        levels, figures = parts.layout.account
        coefficients = stage.spread(parts.beta, count)
        intercepts = levels[:, 0].reshape(count, n_machines)
        decisions = np.matmul(coefficients, values.matrices)[:, :, stage.test] + intercepts[:, :, None]
        sizes = np.abs(decisions)
        is_clear = sizes.min(axis=(1, 2), initial=np.inf) > _CLOSE * sizes.max(axis=(1, 2), initial=1.0)
        is_certified = parts.is_certified.reshape(count, n_machines).all(axis=1)
        violations = figures[:, VIOLATION].reshape(count, n_machines).max(axis=1)
        return Solved(coefficients, intercepts, decisions.swapaxes(1, 2), violations, is_certified & is_clear)
