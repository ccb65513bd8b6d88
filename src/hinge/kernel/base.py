"""What a kernel is: everything that anyone asks of one. The kernels themselves are in `hinge.kernel.kernels`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import Floats
from hinge.data.cancellation import comparison_of
from hinge.data.samples import Samples, Statistic
from hinge.data.storage import store

#: The classes of all kernels that have a name; each enters itself.
KINDS: dict[str, type[Kernel]] = {}


@dataclass(frozen=True)
class Kernel:
    """A kernel function with its parameters.

    ``Kernel(name)`` is an object of the class of that name. What is the same for all kernels of a class is said by
    its class attributes.

    Parameters
    ----------
    name : str or callable
        One of these names, or a function of two sets of rows that returns the matrix of their kernel values.

        - %(kernels)s
    gamma : float
        γ above.
    coef0, degree : float, int
        As above.

    Attributes
    ----------
    formula : str
        How documentation shows it, with γ, coef0 and degree for the parameters.
    uses : tuple of str
        Which of gamma, degree and coef0 change its values.
    statistic : str
        What two samples are compared by; see `Samples.compare`.
    by_differences : str or None
        A statistic that is ‖x‖² + ‖y‖² − 2 x·y, for a kernel that is a function of just this and compares by dot
        products because they are fast. It takes their place where they would cancel, and `of_few_features` where
        features are few.
    takes_norms : bool
        Whether values depend on the norms of both samples too; see `Samples.norms`.
    decays : bool
        Whether it is e^(−γd), where d is the statistic, or ``by_differences``.
    needs_nonnegative : bool
        Whether features must not be negative.
    squares : bool
        Whether it fails where squares of features overflow.
    is_ratio : bool
        Whether small samples have values as large as those of large ones, so that no size may be lost.
    is_linear : bool
        Whether it is x·y itself, and has a weight vector of features.
    is_precomputed : bool
        Whether the data is the kernel matrix.
    has_features : bool
        Whether values are computed here, from features.

    Examples
    --------
    >>> Kernel("rbf", gamma=0.5).matrix(np.array([[0.0], [1.0]])).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """

    name: str | Callable[[Any, Any], Any]
    gamma: float = 1.0
    coef0: float = 0.0
    degree: int = 3

    formula: ClassVar[str] = ""
    uses: ClassVar[tuple[str, ...]] = ()
    statistic: ClassVar[Statistic] = "dot"
    by_differences: ClassVar[Statistic | None] = None
    takes_norms: ClassVar[bool] = False
    decays: ClassVar[bool] = False
    needs_nonnegative: ClassVar[bool] = False
    squares: ClassVar[bool] = True
    is_ratio: ClassVar[bool] = False
    is_linear: ClassVar[bool] = False
    is_precomputed: ClassVar[bool] = False
    has_features: ClassVar[bool] = True

    def __init_subclass__(cls, name: str = "") -> None:
        if name:
            KINDS[name] = cls

    def __new__(cls, name: Any = None, *_: Any, **__: Any) -> Kernel:
        """Make an object of the class of that name; a class of its own (as when unpickling) stays what it is."""
        return object.__new__(kind_of(name) if cls is Kernel else cls)

    def __post_init__(self) -> None:
        if not (isfinite(self.gamma) and self.gamma >= 0):
            raise ValueError(f"gamma must be a finite number that is not negative, got {self.gamma}")
        if not isfinite(self.coef0):
            raise ValueError(f"coef0 must be finite, got {self.coef0}")
        if self.degree < 0 or self.degree != int(self.degree):
            raise ValueError(f"degree must be a whole number that is not negative, got {self.degree}")

    @property
    def label(self) -> str:
        """The kernel's name, "callable" for a function."""
        return self.name if isinstance(self.name, str) else "callable"

    @property
    def is_positive(self) -> bool:
        """Whether the kernel is known to be positive semi-definite, so that it has a weight vector."""
        return False

    # ------------------------------------------------------------------ values

    def apply(self, tile: Floats, row_norms: Floats, column_norms: Floats, statistic: Statistic) -> None:
        """Turn the comparisons in ``tile``, which are of ``statistic``, into kernel values, in place."""
        raise NotImplementedError(f"the {self.label} kernel has no values")

    def sharpen(self, high: Any, low: Any, row_norms: Any, column_norms: Any) -> None:
        """As `apply` in double-double arithmetic; tile and norms are sums of two arrays.

        Comparisons are of ``by_differences``, where that is not None.
        """
        raise NotImplementedError(f"the {self.label} kernel has no sharp values")

    def of_few_features(self, panel: Floats, features: Floats, tile: Floats) -> None:
        """Fill ``tile`` with kernel values by differences: ``panel[w]`` against ``features[:, t]``."""
        raise NotImplementedError(f"the {self.label} kernel is no function of distances")

    def expression(self, xp: Any, compared: Any, norms: Any, others: Any) -> Any:
        """Return the formula in whole arrays, from the same numbers as `sharpen`. ONNX graphs are made of it.

        ``xp`` has functions of NumPy's names: exp, tanh, where. Columns of ``norms`` and rows of ``others``
        spread out.

        Raises
        ------
        NotImplementedError
            It cannot be written like that; the message says why.
        """
        raise NotImplementedError(f"the {self.label} kernel cannot be converted to ONNX")

    def of_self(self, samples: Samples) -> NDArray[np.float64]:
        """Return k(x, x) for every sample, in double precision."""
        tile = samples.diagonal_statistic(self.statistic).reshape(-1, 1)
        no_norms = np.zeros(1)
        with np.errstate(over="ignore"):
            self.apply(tile, no_norms, no_norms, self.statistic)
        return tile.ravel()

    def matrix(self, X: Any) -> NDArray[np.float64]:
        """Return the whole kernel matrix of X in double precision, for small data and for tests."""
        samples = store(X, self)
        statistic = comparison_of(samples, self)
        tile = np.empty((samples.n, samples.n))
        samples.compare(statistic, samples.panel(np.arange(samples.n), np.float64), 0, samples.n, tile)
        norms = samples.norms(statistic, np.float64)
        self.apply(tile, norms, norms, statistic)
        return tile

    def check(self, samples: Samples) -> None:
        """Raise ValueError if this kernel is not defined for the samples."""
        if self.needs_nonnegative and samples.has_negatives():
            raise ValueError(
                f"Negative values in data: the {self.label} kernel needs features that are not negative; shift or "
                "rescale X first"
            )

    # ------------------------------------------------------------------ rounding

    @property
    def amplification(self) -> float:
        """How many times the rounding of a comparison and its norms can enter a value, relative to `sizes`."""
        return 1.0

    def sizes(self, samples: Samples, diagonal: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return s of every sample, with ``|k(x, y)| ≤ s(x) s(y)``; `rounding` says what else it bounds.

        Not asked of a kernel that decays. By default √k(x, x), as for positive semi-definite kernels.
        """
        return np.sqrt(np.abs(diagonal))

    def reach(self, products: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Bound ``|k(x, y)|`` and the terms whose rounding enters it, from ‖x‖‖y‖; not of one that decays."""
        raise NotImplementedError(f"no bound on the values of the kernel {self.label!r} is known")


def kind_of(name: Any) -> type[Kernel]:
    """Return the class of the kernel with that name, or of a function.

    Raises
    ------
    ValueError
        There is none.
    """
    if callable(name):
        return KINDS["callable"]
    if not isinstance(name, str) or name not in KINDS or name == "callable":
        known = ", ".join(kind for kind in KINDS if kind != "callable")
        raise ValueError(f"unknown kernel {name!r}; known are {known}, or a function of two sets of rows")
    return KINDS[name]
