"""Violations and objectives without rounding: whole numbers for products, sixty digits and more for the rest.

Doubles are whole numbers times a power of two. Products and sums of features are taken exactly; kernel functions
and sums over support vectors have as many decimal digits as keep every error below any tolerance.
"""

from decimal import Context, Decimal, localcontext

import numpy as np

import reference

# Digits of all decimal arithmetic. Values may reach 1e300 and coefficients 1e15.
_DIGITS = 400

# An exponential needs no more: it is at most 1.
_DIGITS_OF_EXPONENTIALS = 60


def _integers(X):
    """Return X as whole numbers and the power of two that they are multiples of."""
    mantissa, exponent = np.frexp(np.asarray(X, dtype=np.float64))
    whole = (mantissa * 2.0**53).astype(np.int64)
    shift = np.where(whole != 0, exponent - 53, 0).astype(int)
    least = int(shift.min(initial=0))
    flat = [int(w) << int(s) - least if w else 0 for w, s in zip(whole.flat, shift.flat, strict=True)]
    return np.array(flat, dtype=object).reshape(whole.shape), least


def _decimal(number, power):
    return Decimal(int(number)) * Decimal(2) ** power


def kernel_matrix(name, X, *, gamma=1.0, coef0=0.0, degree=3, columns=None):
    """The kernel between the rows of X and those of them that ``columns`` names, as decimals."""
    with localcontext() as context:
        context.prec = _DIGITS
        X = _decimals(X.toarray() if hasattr(X, "toarray") else X)
        others = X if columns is None else X[columns]
        parameters = {"gamma": Decimal(float(gamma)), "coef0": Decimal(float(coef0)), "degree": int(degree)}
        options = {"dtype": object, "functions": _Decimals}
        rows = [reference.kernel_matrix(name, row[None, :], others, **parameters, **options)[0] for row in X]
        return np.array(rows, dtype=object).reshape(len(X), len(others))


def _decimals(X):
    whole, power = _integers(X)
    return np.vectorize(lambda number: _decimal(number, power), otypes=[object])(whole)


class _Decimals:
    """Functions of arrays of decimals."""

    @staticmethod
    def exp(x):
        return np.vectorize(lambda z: z.exp(Context(prec=_DIGITS_OF_EXPONENTIALS)), otypes=[object])(x)

    @staticmethod
    def tanh(x):
        e = _Decimals.exp(-2 * np.abs(x))
        return np.where(x >= 0, 1, -1) * (1 - e) / (1 + e)


class Truth:
    """The dual problem of some samples in exact arithmetic.

    ``values(columns)`` returns kernel values between all samples and those named, as decimals.
    """

    def __init__(self, problem, values):
        self.problem = problem
        self.values = values

    def image(self, beta):
        """The coefficient of every sample, and Kβ."""
        n = self.problem.n_samples
        with localcontext() as context:
            context.prec = _DIGITS
            sums = [sum((Decimal(float(b)) for b in copies), Decimal(0)) for copies in beta.reshape(-1, n).T]
            support = [j for j, total in enumerate(sums) if total]
            if not support:
                return sums, [Decimal(0)] * n
            return sums, self._sum_up([sums[j] for j in support], support)

    def _sum_up(self, factors, support):
        K = self.values(support)
        return [sum((c * k for c, k in zip(factors, row, strict=True)), Decimal(0)) for row in K]

    def violation(self, beta):
        """As `reference.violation`."""
        problem, n = self.problem, self.problem.n_samples
        _, image = self.image(beta)
        with localcontext() as context:
            context.prec = _DIGITS
            r = [Decimal(float(problem.v[t])) - image[t % n] for t in range(len(problem.v))]
            worst = Decimal(0)
            groups = problem.group if len(problem.sums) else np.zeros(len(r), int)
            for g in np.unique(groups):
                mine = np.flatnonzero(groups == g)
                up = [r[t] for t in mine if beta[t] < problem.hi[t]]
                down = [r[t] for t in mine if beta[t] > problem.lo[t]]
                if len(problem.sums):
                    worst = max(worst, max(up) - min(down)) if up and down else worst
                else:
                    worst = max([worst, *up, *(-value for value in down)])
            return float(worst)

    def objective(self, beta):
        """As `reference.objective`."""
        sums, image = self.image(beta)
        with localcontext() as context:
            context.prec = _DIGITS
            linear = sum(
                (Decimal(float(v)) * Decimal(float(b)) for v, b in zip(self.problem.v, beta, strict=True)),
                Decimal(0),
            )
            return float(sum((c * k for c, k in zip(sums, image, strict=True)), Decimal(0)) / 2 - linear)


class LinearTruth(Truth):
    """The same for a linear kernel of X, by way of its weight vector."""

    def __init__(self, problem, X):
        self.problem = problem
        with localcontext() as context:
            context.prec = _DIGITS
            self.X = _decimals(X)

    def _sum_up(self, factors, support):
        return list(self.X @ (np.array(factors, dtype=object) @ self.X[support]))
