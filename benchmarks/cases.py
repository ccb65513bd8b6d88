"""What is measured: data sets with their preprocessing, formulation, kernel and parameters.

"Standardised" means zero mean and unit variance (ddof = 0) of every feature, "unit rows" that every row is divided
by its length. Data of which more than half is not zero is dense, all other data CSR. Random rows are drawn without
replacement by a generator with a fixed seed, and keep their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.preprocessing import minmax_scale, normalize

Task = Literal["binary", "multiclass", "regression"]

TOL = 1e-3
SLACK = 1.2  # a true violation beyond this multiple of the tolerance is a wrong answer: it does not win
CACHE_MB = 2000
SEED = 0
DENSE_SHARE = 0.5


@dataclass(frozen=True)
class Case:
    """One problem.

    Attributes
    ----------
    name, data : str
        Short name, and the name by which `hinge.io.datasets.load` knows the data.
    n, d : int
        Rows and features after preprocessing.
    C, gamma, epsilon : float
        Price, kernel parameter, and half the width of the tube of a regression.
    task, kernel : str
        Formulation and kernel function.
    standardised : bool
        Whether the features (and the target of a regression) are standardised.
    unit_rows : bool
        Whether every row is scaled to length one.
    prepare : callable, optional
        Anything else that is done to the samples; ``prepared`` says what.
    usual_gamma : bool
        Whether γ is one over the number of features and the variance: known only when the data is there.
    relabel : callable, optional
        Turns labels into -1 and 1; rows that become 0 are dropped.
    rows : int, optional
        How many random rows to take.
    test : str, optional
        Data to predict.
    peers : bool
        False for the long runs, which only Hinge does.
    """

    name: str
    data: str
    n: int
    d: int
    C: float
    gamma: float = 0.0
    epsilon: float = 0.1
    task: Task = "binary"
    kernel: str = "rbf"
    standardised: bool = False
    unit_rows: bool = False
    prepare: Callable[[Any], Any] | None = None
    prepared: str = ""
    usual_gamma: bool = False
    relabel: Callable[[NDArray[Any]], NDArray[Any]] | None = None
    rows: int | None = None
    test: str | None = None
    peers: bool = True

    @property
    def title(self) -> str:
        """What a reader needs to know: data, kernel, parameters."""
        name = "RBF" if self.kernel == "rbf" else "polynomial of degree 3"
        kernel = "linear" if self.kernel == "linear" else f"{name}, γ={self.gamma:.5g}"
        scaled = " standardised" if self.standardised else " unit rows" if self.unit_rows else ""
        scaled += f" {self.prepared}" if self.prepared else ""
        tube = f", ε={self.epsilon:g}" if self.task == "regression" else ""
        return f"{self.name}{scaled}, {kernel}, C={self.C:g}{tube}"

    @property
    def point(self) -> dict[str, float]:
        """The parameters that a sweep varies."""
        return {"C": self.C, "gamma": self.gamma, "epsilon": self.epsilon}

    def load(self) -> tuple[Any, NDArray[Any]]:
        """Return samples (CSR or dense, as they come) and targets."""
        from hinge.io.datasets import load

        X, y = MADE[self.data]() if self.data in MADE else load(self.data)
        if self.relabel is not None:
            y = self.relabel(y)
            X, y = X[y != 0], y[y != 0]
        if self.rows is not None:
            chosen = np.sort(np.random.default_rng(SEED).choice(X.shape[0], self.rows, replace=False))
            X, y = X[chosen], y[chosen]
        if self.standardised:
            X = standardise(X)
            y = standardise(y[:, None])[:, 0] if self.task == "regression" else y
        if self.unit_rows:
            X = normalize(X)
        if self.prepare is not None:
            X = self.prepare(X)
        if sp.issparse(X) and X.nnz > DENSE_SHARE * X.shape[0] * X.shape[1]:
            X = X.toarray()
        if X.shape != (self.n, self.d):
            raise ValueError(f"{self.name}: expected {self.n} x {self.d}, found {X.shape[0]} x {X.shape[1]}")
        return X, np.asarray(y, dtype=np.float64)

    def resolved(self, X: Any) -> Case:
        """Return the case with its γ, where that depends on the data."""
        return replace(self, gamma=usual_gamma(X), usual_gamma=False) if self.usual_gamma else self

    def load_test(self) -> tuple[Any, NDArray[Any]]:
        """Return the samples and labels to predict."""
        return replace(self, data=str(self.test), n=TEST_ROWS[str(self.test)], rows=None).load()


def usual_gamma(X: Any) -> float:
    """Return one over the number of features and the variance of all entries."""
    mean_square = X.multiply(X).mean() if sp.issparse(X) else np.mean(X * X)
    return float(1.0 / (X.shape[1] * (mean_square - X.mean() ** 2)))


def made_dense() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return two overlapping classes of dense samples that share a direction, as image features do."""
    rng = np.random.default_rng(SEED)
    X = rng.normal(size=(20000, 500)) + 0.3 * rng.normal(size=500)
    return X, np.sign(normalize(X) @ rng.normal(size=500) + 0.1 * rng.normal(size=20000))


def made_planes() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return Breiman's two planes, with noise: the sign of the first feature says which three others count."""
    rng, n = np.random.default_rng(SEED), 40768
    X = rng.integers(-1, 2, size=(n, 10)).astype(np.float64)
    X[:, 0] = rng.choice([-1.0, 1.0], n)
    upper, lower = X[:, 1:4] @ [3.0, 2.0, 1.0] + 3.0, X[:, 4:7] @ [3.0, 2.0, 1.0] - 3.0
    return X, np.where(X[:, 0] > 0, upper, lower) + rng.normal(0.0, 2.0**0.5, n)


def made_regression() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a hundred of a thousand features that a target is linear in."""
    rng, n, d = np.random.default_rng(SEED), 100_000, 1000
    X, weights = rng.normal(size=(n, d)), np.zeros(d)
    weights[:100] = 100 * rng.random(100)
    return X, X @ weights


def made_unit() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return dense rows of length one, of two classes that a noisy direction tells apart."""
    rng, n, d = np.random.default_rng(SEED), 100_000, 2000
    X = rng.standard_normal((n, d), dtype=np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    margin = X @ rng.normal(size=d)
    return X.astype(np.float64), np.sign(margin + 0.5 * rng.normal(size=n))


#: Data that no file holds.
MADE = {
    "made": made_dense, "made planes": made_planes, "made regression": made_regression,
    "made unit rows": made_unit,
}  # fmt: skip

TEST_ROWS = {"a9a.t": 16281, "mnist.t": 10000}


def standardise(X: Any) -> NDArray[np.float64]:
    """Return X dense, every column with zero mean and unit variance; constant columns become zero."""
    X = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    deviation = X.std(axis=0)
    return np.asarray((X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0))


def _one_against_rest(label: int) -> Callable[[NDArray[Any]], NDArray[Any]]:
    return lambda y: np.where(y == label, 1, -1)


def _high_digit(y: NDArray[Any]) -> NDArray[Any]:
    return np.where(y >= 5, 1, -1)


def _sign(y: NDArray[Any]) -> NDArray[Any]:
    return np.sign(y)


def _odd_digit(y: NDArray[Any]) -> NDArray[Any]:
    return np.where(y % 2 == 1, 1, -1)


def _to_unit_range(X: Any) -> NDArray[np.float64]:
    return np.asarray(minmax_scale(X.toarray() if sp.issparse(X) else X))


def _of_pixels(X: Any) -> Any:
    return X / 255.0


_MNIST_GAMMA = 1 / (2 * 3500.0**2)
_COVTYPE = {"relabel": _one_against_rest(2), "standardised": True, "C": 1, "gamma": 1 / 54}

_ALL: list[Case] = [
    # The table of seven.
    Case("spambase", "spambase", 4601, 57, C=50, gamma=0.005, standardised=True),
    Case("a9a", "a9a", 32561, 123, C=1, gamma=0.05, test="a9a.t"),
    Case("w8a", "w8a", 49749, 300, C=5, gamma=0.05),
    Case("ijcnn1", "ijcnn1", 49990, 22, C=32, gamma=2),
    Case("connect-4", "connect-4", 30555, 126, C=4.5, gamma=0.2222, relabel=_sign, rows=30555),
    Case("cod-rna", "cod-rna", 59535, 8, C=32, gamma=0.5, standardised=True),
    Case("mnist-10000", "mnist", 10000, 784, C=50, gamma=_MNIST_GAMMA, relabel=_high_digit, rows=10000),
    # Scale.
    Case("mnist-60000", "mnist", 60000, 784, C=50, gamma=_MNIST_GAMMA, relabel=_high_digit),
    Case("covtype-50000", "covtype", 50000, 54, rows=50000, **_COVTYPE),  # type: ignore[arg-type]
    Case("covtype", "covtype", 581012, 54, peers=False, **_COVTYPE),  # type: ignore[arg-type]
    # Further shapes.
    Case("skin", "skin_nonskin", 245057, 3, C=10, gamma=1, standardised=True, relabel=_one_against_rest(1)),
    Case("cadata", "cadata", 20640, 8, C=10, gamma=0.125, task="regression", standardised=True),
    Case("reuters-rbf", "reuters-money-fx", 7770, 8315, C=10, gamma=1),
    # Many classes.
    Case("shuttle", "shuttle", 43500, 9, C=32, gamma=0.5, task="multiclass", standardised=True),
    Case("letter", "letter.scale", 15000, 16, C=16, gamma=1, task="multiclass"),
    Case("usps", "usps", 7291, 256, C=10, gamma=1 / 128, task="multiclass"),
    Case("news20-rbf", "news20", 15935, 62061, C=10, gamma=1, task="multiclass", unit_rows=True),
    Case("mnist-ten", "mnist", 60000, 784, C=50, gamma=_MNIST_GAMMA, task="multiclass", test="mnist.t"),
    # Linear kernels.
    Case("w8a-linear", "w8a", 49749, 300, C=1, kernel="linear"),
    Case("reuters-linear", "reuters-money-fx", 7770, 8315, C=1, kernel="linear"),
    Case("news20-linear", "news20", 15935, 62061, C=1, kernel="linear", task="multiclass", unit_rows=True),
    Case("a9a-linear", "a9a", 32561, 123, C=1, kernel="linear"),
    Case("ijcnn1-linear", "ijcnn1", 49990, 22, C=1, kernel="linear"),
    Case("cod-rna-linear", "cod-rna", 59535, 8, C=1, kernel="linear", standardised=True),
    Case("spambase-linear", "spambase", 4601, 57, C=1, kernel="linear", standardised=True),
    Case("connect-4-linear", "connect-4", 61108, 126, C=1, kernel="linear", relabel=_sign),
    Case("covtype-linear", "covtype", 50000, 54, kernel="linear", rows=50000, **_COVTYPE | {"gamma": 0.0}),  # type: ignore[arg-type]
    Case("made-linear", "made", 20000, 500, C=1, kernel="linear", unit_rows=True),
    # Small: to try the harness, and for the sweep.
    Case("heart", "heart_scale", 270, 13, C=1, gamma=1 / 13),
    Case("a1a", "a1a", 1605, 123, C=1, gamma=0.05, test="a9a.t"),
    Case("iris", "iris.scale", 150, 4, C=1, gamma=0.25, task="multiclass"),
    Case("housing", "housing", 506, 13, C=10, gamma=0.1, task="regression", standardised=True),
    Case("svmguide1", "svmguide1", 3089, 4, C=1, gamma=1, standardised=True, relabel=_one_against_rest(1)),
]

_USUAL: dict[str, Any] = {"usual_gamma": True}
_SECOND: dict[str, Any] = {"relabel": _one_against_rest(2)}
_UNIT_RANGE: dict[str, Any] = {"prepare": _to_unit_range, "prepared": "scaled to 0…1"}
_PIXELS: dict[str, Any] = {"prepare": _of_pixels, "prepared": "in 0…1"}

# What Intel publishes of its SVMs (but for NuSVC and NuSVR), γ by the usual rule, and two papers' large settings.
_INTEL: list[Case] = [
    Case("a9a-linear-1", "a9a", 32561, 123, C=1, kernel="linear"),
    Case("skin-10", "skin_nonskin", 245057, 3, C=10, standardised=True, relabel=_one_against_rest(1), **_USUAL),
    Case("ijcnn1-100", "ijcnn1", 49990, 22, C=100, **_USUAL),
    *[
        Case(f"connect-4-all-{kernel}", "connect-4", 67557, 126, C=10, task="multiclass", kernel=kernel, **_USUAL)
        for kernel in ("rbf", "poly")
    ],
    *[
        Case(f"mnist-ten-{kernel}", "mnist", 60000, 784, C=1, task="multiclass", kernel=kernel, **_USUAL)
        for kernel in ("rbf", "poly")
    ],
    *[
        Case(f"planes-{kernel}", "made planes", 40768, 10, C=1, task="regression", kernel=kernel, **_USUAL)
        for kernel in ("linear", "poly", "rbf")
    ],
    Case("regression-linear", "made regression", 100_000, 1000, C=1, task="regression", kernel="linear"),
    *[
        Case(f"unit-rows-{kernel}", "made unit rows", 100_000, 2000, C=1, kernel=kernel, **_USUAL)
        for kernel in ("rbf", "poly")
    ],
    Case("covtype-dcsvm", "covtype", 581012, 54, C=32, gamma=32, peers=False, **_UNIT_RANGE | _SECOND),
    Case("mnist-odd", "mnist", 60000, 784, C=10, gamma=0.25, relabel=_odd_digit, **_PIXELS),
]  # fmt: skip


def _growing(family: str, case: Case, sizes: Sequence[int]) -> list[Case]:
    return [replace(case, name=f"{family} {n}", n=n, rows=n) for n in sizes]


# The same problem on more and more of its rows, with Hinge alone.
_GROWTH = {
    "covtype": _growing(
        "covtype", Case("", "covtype", 0, 54, **_COVTYPE),  # type: ignore[arg-type]
        (10_000, 20_000, 40_000, 80_000, 160_000, 320_000, 581_012),
    ),
    "a9a": _growing("a9a", Case("", "a9a", 0, 123, C=1, gamma=0.05), (2000, 4000, 8000, 16_000, 32_561)),
    "mnist": _growing(
        "mnist", Case("", "mnist", 0, 784, C=50, gamma=_MNIST_GAMMA, relabel=_high_digit),
        (7500, 15_000, 30_000, 60_000),
    ),
}  # fmt: skip

CASES = {case.name: case for case in [*_ALL, *_INTEL, *(case for of in _GROWTH.values() for case in of)]}

TABLE = ("spambase", "a9a", "w8a", "ijcnn1", "connect-4", "cod-rna", "mnist-10000")
SCALE = ("mnist-60000", "covtype-50000", "covtype")
MORE = ("skin", "cadata", "reuters-rbf")
MULTICLASS = ("letter", "usps", "shuttle", "news20-rbf")
LINEAR = (
    "w8a-linear", "reuters-linear", "news20-linear", "a9a-linear", "ijcnn1-linear", "cod-rna-linear",
    "spambase-linear", "connect-4-linear", "covtype-linear", "made-linear",
)  # fmt: skip
INPUTS = ("a9a", "w8a", "mnist-10000")
PREDICT = ("a9a", "mnist-ten")
MEMORY = ("a9a", "w8a", "cod-rna", "mnist-10000", "covtype-50000")
SWEEP = ("svmguide1",)
INTEL = tuple(case.name for case in _INTEL)
GROWTH = {family: tuple(case.name for case in of) for family, of in _GROWTH.items()}


def grid() -> list[list[tuple[float, float]]]:
    """Return the points (C, γ) of the sweep, one list for each γ; the usual steps of four."""
    return [[(2.0**c, 2.0**g) for c in range(-5, 16, 2)] for g in range(-15, 4, 2)]
