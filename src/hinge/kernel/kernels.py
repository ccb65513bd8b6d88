"""The kernels: each is a class with all that is asked of it, beside the compiled functions of its tiles.

Nothing else in the library lists them. `Kernel` says what a class may state, CONTRIBUTING.md how to add one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import Floats
from hinge.data.samples import Samples, Statistic
from hinge.kernel.base import KINDS, Kernel, kind_of
from hinge.kernel.double_double import add, divide, exponential, multiply
from hinge.kernel.exponential import exp32, exp64
from hinge.runtime.jit import compiled_exactly, compiled_literally

__all__ = ["FORMULAS", "KERNELS", "Kernel", "kind_of"]

Vector = NDArray[np.float64]


@compiled_exactly
def _exp(like: Any, x: Any) -> Any:
    # The type of `like` is known when this is compiled, so that only one branch remains.
    return exp32(x) if like.itemsize == 4 else exp64(x)


class _Compared(Kernel):
    """A kernel whose values are the comparisons themselves."""

    def apply(self, tile: Floats, row_norms: Floats, column_norms: Floats, statistic: Statistic) -> None:
        pass

    def sharpen(self, high: Any, low: Any, row_norms: Any, column_norms: Any) -> None:
        pass


# ---------------------------------------------------------------------- functions of the dot product


class Linear(_Compared, name="linear"):
    formula = "x·y"
    is_linear = True

    @property
    def is_positive(self) -> bool:
        return True

    def expression(self, xp: Any, compared: Any, norms: Any, others: Any) -> Any:
        return compared

    def reach(self, products: Vector) -> tuple[Vector, Vector]:
        return products, products


class Poly(Kernel, name="poly"):
    formula = "(γ x·y + coef0)^degree"
    uses = ("gamma", "degree", "coef0")

    @property
    def is_positive(self) -> bool:
        return self.coef0 >= 0

    def apply(self, tile: Floats, row_norms: Floats, column_norms: Floats, statistic: Statistic) -> None:
        kind = tile.dtype.type
        _poly(tile, kind(self.gamma), kind(self.coef0), int(self.degree))

    def sharpen(self, high: Any, low: Any, row_norms: Any, column_norms: Any) -> None:
        _sharp_poly(high, low, self.gamma, self.coef0, int(self.degree))

    def expression(self, xp: Any, compared: Any, norms: Any, others: Any) -> Any:
        return (compared * self.gamma + self.coef0) ** self.degree

    @property
    def amplification(self) -> float:
        return float(max(self.degree, 1))

    def sizes(self, samples: Samples, diagonal: Vector) -> Vector:
        return _base(self, samples) ** (self.degree / 2)

    def reach(self, products: Vector) -> tuple[Vector, Vector]:
        values = (self.gamma * products + abs(self.coef0)) ** self.degree
        return values, self.degree * values


@compiled_exactly
def _poly(tile: Any, gamma: Any, coef0: Any, degree: int) -> None:
    base = np.empty(tile.shape[1], tile.dtype)
    for w in range(tile.shape[0]):
        row = tile[w]
        for t in range(row.shape[0]):
            base[t] = gamma * row[t] + coef0
            row[t] = tile.dtype.type(1)
        for _ in range(degree):
            for t in range(row.shape[0]):
                row[t] *= base[t]


@compiled_literally
def _sharp_poly(high: Any, low: Any, gamma: float, coef0: float, degree: int) -> None:
    for w in range(high.shape[0]):
        for t in range(high.shape[1]):
            z = add(multiply((high[w, t], low[w, t]), (gamma, 0.0)), (coef0, 0.0))
            value = (1.0, 0.0)
            for _ in range(degree):
                value = multiply(value, z)
            high[w, t], low[w, t] = value


def _base(kernel: Kernel, samples: Samples) -> Vector:
    """γ‖x‖² + |c| of every sample."""
    return kernel.gamma * samples.squared_norms(np.float64).astype(np.float64) + abs(kernel.coef0)


class Sigmoid(Kernel, name="sigmoid"):
    formula = "tanh(γ x·y + coef0)"
    uses = ("gamma", "coef0")

    def apply(self, tile: Floats, row_norms: Floats, column_norms: Floats, statistic: Statistic) -> None:
        kind = tile.dtype.type
        _sigmoid(tile, kind(self.gamma), kind(self.coef0))

    def sharpen(self, high: Any, low: Any, row_norms: Any, column_norms: Any) -> None:
        _sharp_sigmoid(high, low, self.gamma, self.coef0)

    def expression(self, xp: Any, compared: Any, norms: Any, others: Any) -> Any:
        return xp.tanh(compared * self.gamma + self.coef0)

    def sizes(self, samples: Samples, diagonal: Vector) -> Vector:
        return np.sqrt(1.0 + _base(self, samples))

    def reach(self, products: Vector) -> tuple[Vector, Vector]:
        inner = self.gamma * products + abs(self.coef0)
        return np.minimum(inner, 1.0), inner


@compiled_exactly
def _sigmoid(tile: Any, gamma: Any, coef0: Any) -> None:
    one = tile.dtype.type(1)
    for w in range(tile.shape[0]):
        row = tile[w]
        for t in range(row.shape[0]):
            z = gamma * row[t] + coef0
            e = _exp(tile, -abs(z + z))  # tanh|z| = (1 − e^−2|z|) / (1 + e^−2|z|)
            value = (one - e) / (one + e)
            row[t] = value if z >= 0 else -value


@compiled_literally
def _sharp_sigmoid(high: Any, low: Any, gamma: float, coef0: float) -> None:
    for w in range(high.shape[0]):
        for t in range(high.shape[1]):
            z = add(multiply((high[w, t], low[w, t]), (gamma, 0.0)), (coef0, 0.0))
            sign = -1.0 if z[0] < 0 else 1.0
            e = exponential((-2.0 * sign * z[0], -2.0 * sign * z[1]))
            value = divide(add((1.0, 0.0), (-e[0], -e[1])), add((1.0, 0.0), e))
            high[w, t], low[w, t] = sign * value[0], sign * value[1]


# ---------------------------------------------------------------------- functions of a distance


class _Decaying(Kernel):
    """e^(−γd) of a distance d."""

    uses = ("gamma",)
    decays = True

    @property
    def is_positive(self) -> bool:
        return True

    def apply(self, tile: Floats, row_norms: Floats, column_norms: Floats, statistic: Statistic) -> None:
        _decay(tile, tile.dtype.type(self.gamma))

    def sharpen(self, high: Any, low: Any, row_norms: Any, column_norms: Any) -> None:
        _sharp_decay(high, low, self.gamma)

    def expression(self, xp: Any, compared: Any, norms: Any, others: Any) -> Any:
        return xp.exp(compared * -self.gamma)

    def of_self(self, samples: Samples) -> Vector:
        return np.ones(samples.n)


@compiled_exactly
def _decay(tile: Any, gamma: Any) -> None:
    for w in range(tile.shape[0]):
        row = tile[w]
        for t in range(row.shape[0]):
            row[t] = _exp(tile, -gamma * row[t])


@compiled_literally
def _sharp_decay(high: Any, low: Any, gamma: float) -> None:
    for w in range(high.shape[0]):
        for t in range(high.shape[1]):
            z = multiply((high[w, t], low[w, t]), (gamma, 0.0))
            high[w, t], low[w, t] = exponential((-z[0], -z[1]))


class Rbf(_Decaying, name="rbf"):
    formula = "exp(−γ‖x − y‖²)"
    by_differences = "l2"
    takes_norms = True

    def apply(self, tile: Floats, row_norms: Floats, column_norms: Floats, statistic: Statistic) -> None:
        if statistic == "dot":
            _rbf(tile, row_norms, column_norms, tile.dtype.type(self.gamma))
        else:
            super().apply(tile, row_norms, column_norms, statistic)

    def of_few_features(self, panel: Floats, features: Floats, tile: Floats) -> None:
        _rbf_of_few_features(panel, features, tile.dtype.type(self.gamma), tile)


@compiled_exactly
def _rbf(tile: Any, row_norms: Any, column_norms: Any, gamma: Any) -> None:
    zero = tile.dtype.type(0)
    for w in range(tile.shape[0]):
        row, norm = tile[w], row_norms[w]
        for t in range(row.shape[0]):
            exponent = gamma * (row[t] + row[t] - norm - column_norms[t])
            if exponent > zero:  # rounding; no two samples are closer than 0
                exponent = zero
            row[t] = _exp(tile, exponent)


@compiled_exactly
def _rbf_of_few_features(panel: Any, features: Any, gamma: Any, out: Any) -> None:
    """RBF values of samples with few features, where a matrix product would cost more than it computes.

    ``panel[w]`` holds the features of a row and ``features[f]`` feature f of all columns, a multiple of four of
    them. Differences are squared, four features at a time: no large norms cancel, and it takes no longer.
    """
    for w in range(out.shape[0]):
        row, mine = out[w], panel[w]
        for k in range(0, features.shape[0], 4):
            a, b, c, d = features[k], features[k + 1], features[k + 2], features[k + 3]
            xa, xb, xc, xd = mine[k], mine[k + 1], mine[k + 2], mine[k + 3]
            for t in range(row.shape[0]):
                ya, yb, yc, yd = xa - a[t], xb - b[t], xc - c[t], xd - d[t]
                distance = ya * ya + yb * yb + yc * yc + yd * yd
                row[t] = distance if k == 0 else row[t] + distance
        for t in range(row.shape[0]):  # a loop of its own, or neither would vectorise
            row[t] = _exp(out, -gamma * row[t])


class Laplacian(_Decaying, name="laplacian"):
    formula = "exp(−γ Σ|x − y|)"
    statistic = "l1"
    squares = False


class Chi2(_Decaying, name="chi2"):
    formula = "exp(−γ Σ(x − y)²/(x + y)) for features that are not negative"
    statistic = "chi2"
    needs_nonnegative = True


# ---------------------------------------------------------------------- what two samples share of all they have

#: Norms and sizes below this are sums of numbers that have lost digits, and quotients by them may overflow.
SMALLEST_NORM = 1e-290


class _Share(Kernel):
    """What two samples share, as a part of all that they have: at most 1, which two samples of zeros have too."""

    takes_norms = True
    squares = False
    is_ratio = True

    @property
    def is_positive(self) -> bool:
        return True

    def of_self(self, samples: Samples) -> Vector:
        return np.ones(samples.n)

    def check(self, samples: Samples) -> None:
        super().check(samples)
        norms = samples.norms(self.statistic, np.float64)
        is_lost = (norms < SMALLEST_NORM) & (samples.absolute_sums() > 0)
        bad = is_lost | ~(norms < np.finfo(np.float64).max / 4)
        if bad.any():
            raise ValueError(
                f"X has a row so large or so small that the {self.label} kernel loses its norm, row "
                f"{int(np.argmax(bad))} for one; scale the features, all by the same factor"
            )

    @property
    def amplification(self) -> float:
        return 8.0  # the comparison and two norms, above and below a fraction whose lower part is half their sum

    def reach(self, products: Vector) -> tuple[Vector, Vector]:
        return np.ones_like(products), np.full_like(products, self.amplification)


class Tanimoto(_Share, name="tanimoto"):
    """x·y / (‖x‖² + ‖y‖² − x·y): of 0/1 features the number in common as a part of those that either has.

    It is Σ (x·y)ᵏ / (‖x‖² + ‖y‖²)ᵏ over k ≥ 1, and every such term is positive semi-definite, whatever the signs.
    """

    formula = "x·y / (‖x‖² + ‖y‖² − x·y), for fingerprints and other 0/1 features above all"

    def apply(self, tile: Floats, row_norms: Floats, column_norms: Floats, statistic: Statistic) -> None:
        _tanimoto(tile, row_norms, column_norms)

    def sharpen(self, high: Any, low: Any, row_norms: Any, column_norms: Any) -> None:
        _sharp_tanimoto(high, low, row_norms, column_norms)

    def expression(self, xp: Any, compared: Any, norms: Any, others: Any) -> Any:
        rest = norms + others - compared
        return xp.where(rest > 0.0, compared / rest, 1.0)


@compiled_exactly
def _tanimoto(tile: Any, row_norms: Any, column_norms: Any) -> None:
    zero, half, one = tile.dtype.type(0), tile.dtype.type(0.5), tile.dtype.type(1)
    for w in range(tile.shape[0]):
        row, norm = tile[w], row_norms[w]
        for t in range(row.shape[0]):
            total = norm + column_norms[t]
            shared = min(row[t], half * total)  # rounding; nobody shares more
            rest = total - shared
            row[t] = shared / rest if rest > zero else one


@compiled_literally
def _sharp_tanimoto(high: Any, low: Any, row_norms: Any, column_norms: Any) -> None:
    for w in range(high.shape[0]):
        for t in range(high.shape[1]):
            total = add((row_norms[0, w], row_norms[1, w]), (column_norms[0, t], column_norms[1, t]))
            rest = add(total, (-high[w, t], -low[w, t]))
            value = divide((high[w, t], low[w, t]), rest) if rest[0] > 0 else (1.0, 0.0)
            high[w, t], low[w, t] = value


class MinMax(_Share, name="minmax"):
    """Σ min(x, y) / Σ max(x, y), which is (Σx + Σy − d) / (Σx + Σy + d) with d = Σ|x − y|."""

    formula = "Σ min(x, y) / Σ max(x, y) for features that are not negative, such as counts"
    statistic = "l1"
    needs_nonnegative = True

    def apply(self, tile: Floats, row_norms: Floats, column_norms: Floats, statistic: Statistic) -> None:
        _minmax(tile, row_norms, column_norms)

    def sharpen(self, high: Any, low: Any, row_norms: Any, column_norms: Any) -> None:
        _sharp_minmax(high, low, row_norms, column_norms)

    def expression(self, xp: Any, compared: Any, norms: Any, others: Any) -> Any:
        most = norms + others + compared
        return xp.where(most > 0.0, (norms + others - compared) / most, 1.0)


@compiled_exactly
def _minmax(tile: Any, row_norms: Any, column_norms: Any) -> None:
    zero, one = tile.dtype.type(0), tile.dtype.type(1)
    for w in range(tile.shape[0]):
        row, norm = tile[w], row_norms[w]
        for t in range(row.shape[0]):
            total = norm + column_norms[t]
            least, most = max(total - row[t], zero), total + row[t]  # rounding; nobody shares less
            row[t] = least / most if most > zero else one


@compiled_literally
def _sharp_minmax(high: Any, low: Any, row_norms: Any, column_norms: Any) -> None:
    for w in range(high.shape[0]):
        for t in range(high.shape[1]):
            total = add((row_norms[0, w], row_norms[1, w]), (column_norms[0, t], column_norms[1, t]))
            most = add(total, (high[w, t], low[w, t]))
            least = add(total, (-high[w, t], -low[w, t]))
            value = divide(least, most) if most[0] > 0 else (1.0, 0.0)
            high[w, t], low[w, t] = value


# ---------------------------------------------------------------------- values from elsewhere


class Precomputed(_Compared, name="precomputed"):
    formula = "X is the kernel matrix"
    statistic = "value"
    squares = False
    is_precomputed = True
    has_features = False


class Called(_Compared, name="callable"):
    statistic = "value"
    squares = False
    has_features = False

    def expression(self, xp: Any, compared: Any, norms: Any, others: Any) -> Any:
        raise NotImplementedError("a kernel function of your own cannot be converted to ONNX")


#: The names of all kernels.
KERNELS = tuple(name for name in KINDS if name != "callable")

#: A line of documentation for each.
FORMULAS = tuple(f'``"{name}"``: {KINDS[name].formula}' for name in KERNELS)

if Kernel.__doc__:
    Kernel.__doc__ = Kernel.__doc__.replace("%(kernels)s", "\n        - ".join(FORMULAS))
