"""Whether probabilities can be believed: what happened against what was foretold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from hinge.arrays import Vector
from hinge.plot.style import Display, colour_of, ink_of, legend_beside, line_of, marker_of
from hinge.plot.subjects import codes_of

# Classes beyond which only the probability of the predicted class is drawn.
_MOST_CLASSES = 7

# Areas of the smallest and the largest mark, in points².
_AREAS = (12.0, 60.0)


class Curve(NamedTuple):
    """One reliability curve: mean probability of each bin, the share that came true, the size of the bin."""

    foretold: Vector
    happened: Vector
    counts: Vector
    brier: float


@dataclass(eq=False)
class Calibration(Display):
    """Reliability curves: of samples for which a class was foretold with probability p, a share p should be of it.

    Marks are as large as the number of samples in their bin. On the diagonal probabilities can be taken at their
    word; below it they promise too much.

    Attributes
    ----------
    curves : dict of Curve
        By name of the class.
    title : str
        What is said above.
    """

    curves: dict[str, Curve]
    title: str = ""

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, n_bins: int = 10, ax: Any = None) -> Self:
        """Draw the probabilities of a fitted classifier.

        Parameters
        ----------
        estimator : estimator
            A classifier with `predict_proba`; a machine of Hinge has it with ``probability=True``.
        X, y : array-like
            Samples and their classes: best those that the machine has not seen.
        n_bins : int
            Number of bins, with as many samples each.
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.

        %(drawn)s

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from hinge import SVC
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> machine = SVC(probability=True, random_state=0).fit(X[::2], y[::2])
        >>> list(Calibration.from_estimator(machine, X[1::2], y[1::2]).curves)
        ['1']
        """
        if not hasattr(estimator, "predict_proba"):
            raise TypeError("calibration needs predict_proba: fit with probability=True")
        return cls.from_predictions(
            y, estimator.predict_proba(X), classes=estimator.classes_, n_bins=n_bins, ax=ax
        )

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_prob: Any, *, classes: Any = None, n_bins: int = 10, ax: Any = None
    ) -> Self:
        """Draw probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            The true classes.
        y_prob : array-like of shape (n_samples,) or (n_samples, n_classes)
            Probabilities of the later of two classes, or of all classes.
        classes : array-like, optional
            The classes of the columns; by default the labels of ``y_true``, sorted.
        n_bins : int
            Number of bins, with as many samples each.
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.

        %(drawn)s
        """
        classes = np.unique(np.asarray(y_true)) if classes is None else np.asarray(classes)
        codes, shares = codes_of(y_true, classes), np.asarray(y_prob, dtype=np.float64)
        if shares.ndim == 1:
            shares = np.column_stack([1 - shares, shares])
        if shares.shape != (len(codes), len(classes)):
            raise ValueError(
                f"{len(codes)} samples of {len(classes)} classes, but probabilities of {shares.shape}"
            )
        if not ((shares >= 0) & (shares <= 1)).all():
            raise ValueError("probabilities lie between 0 and 1")
        if len(classes) == 2:
            curves = {str(classes[1]): _curve(shares[:, 1], codes == 1, n_bins)}
        elif len(classes) <= _MOST_CLASSES:
            curves = {str(name): _curve(shares[:, k], codes == k, n_bins) for k, name in enumerate(classes)}
        else:
            first = shares.argmax(axis=1)
            curves = {"predicted class": _curve(shares.max(axis=1), codes == first, n_bins)}
        return cls(curves, f"Calibration on {len(codes)} samples").plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to; by default a new figure.
        """
        ax = self._begin(ax)
        ax.plot([0, 1], [0, 1], ":", color=ink_of(ax), linewidth=1.0, label="perfect")
        largest = max(float(curve.counts.max()) for curve in self.curves.values())
        for k, (name, curve) in enumerate(self.curves.items()):
            areas = _AREAS[0] + (_AREAS[1] - _AREAS[0]) * curve.counts / largest
            look = {"color": colour_of(k), "zorder": 3}
            ax.plot(curve.foretold, curve.happened, linestyle=line_of(k), linewidth=1.4, **look)
            ax.scatter(curve.foretold, curve.happened, s=areas, marker=marker_of(k),
                       label=f"{name} (Brier score {curve.brier:.3f})", **look)  # fmt: skip
        ax.set(
            xlabel="probability foretold", ylabel="share that came true", xlim=(-0.04, 1.04), ylim=(-0.04, 1.04)
        )
        ax.grid(alpha=0.25, color=ink_of(ax), linewidth=0.4)
        ax.set_title(self.title, fontsize=10, loc="left")
        legend_beside(ax)
        return self


def _curve(foretold: Vector, happened: Any, n_bins: int) -> Curve:
    """Cut the samples into bins of equal size by their probability."""
    if n_bins < 2:
        raise ValueError(f"n_bins must be 2 or more, got {n_bins}")
    order = np.argsort(foretold, kind="stable")
    bins = [part for part in np.array_split(order, n_bins) if len(part)]
    means = np.array([[foretold[part].mean(), happened[part].mean()] for part in bins])
    counts = np.array([float(len(part)) for part in bins])
    return Curve(means[:, 0], means[:, 1], counts, float(np.mean((foretold - happened) ** 2)))
