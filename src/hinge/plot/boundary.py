"""Where classes meet: regions, margins and support vectors over two features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from hinge.arrays import Vector
from hinge.plot.style import Display, colour_of, draw_rings, ink_of, legend_beside, marker_of, paper_of
from hinge.plot.subjects import Feature, Subject, codes_of, column_of, dense, names_of, rows_like

# Room around the samples, as a share of their range.
_ROOM = 0.08

# How much of a class's colour its region has.
_TINT = 0.22


@dataclass(eq=False)
class DecisionBoundary(Display):
    """The regions of the classes over two features.

    Two classes and one class have their boundary (solid) and margins (dashed); many classes the lines where the
    prediction changes. Rings are support vectors, as large as their α, where X is what the machine was trained on.

    Attributes
    ----------
    xx, yy : arrays
        The grid.
    response : array
        Decisions of two classes or one, numbers of predicted classes of many; on the grid.
    points : array of shape (n_samples, 2)
        The two features of the samples.
    codes : int array or None
        Numbers of their classes.
    classes : list of str
        Names of the classes; empty for one class.
    strengths : array or None
        α of the samples.
    names : tuple of str
        Names of the two features.
    title : str
        What is said above.
    """

    xx: Vector
    yy: Vector
    response: Vector
    points: Vector
    codes: Any
    classes: list[str]
    strengths: Vector | None
    names: tuple[str, str]
    title: str

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        features: Sequence[Feature] = (0, 1),
        grid_resolution: int = 220,
        ax: Any = None,
    ) -> Self:
        """Draw a fitted machine, or a pipeline that ends with one, and samples.

        Parameters
        ----------
        estimator : SVC, NuSVC, OneClassSVM, a pipeline or a search
            The machine, Hinge's or scikit-learn's.
        X : array-like of shape (n_samples, n_features)
            Samples.
        y : array-like, optional
            Their classes.
        features : two ints or names
            Which features are drawn. All others are held at their median.
        grid_resolution : int
            Points of the grid along each axis.
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.

        %(drawn)s

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from hinge import SVC
        >>> X, y = load_iris(return_X_y=True)
        >>> display = DecisionBoundary.from_estimator(SVC().fit(X, y), X, y, features=(2, 3))
        >>> display.ax_.get_xlabel()
        'feature 2'
        """
        subject = Subject.of(estimator)
        if not (subject.is_classifier or subject.is_one_class):
            raise TypeError("a decision boundary needs classes; RegressionTube draws regressions")
        values, names = dense(X), names_of(subject.estimator, X)
        if len(names) < 2:
            raise ValueError("a decision boundary is drawn over two features; X has one")
        chosen = [column_of(feature, names) for feature in features]
        if len(chosen) != 2 or chosen[0] == chosen[1]:
            raise ValueError(f"choose two different features, got {tuple(features)}")
        points = values[:, chosen]
        sides = [_span(column, grid_resolution) for column in points.T]
        xx, yy = np.meshgrid(*sides)
        rows = np.tile(np.median(values, axis=0), (xx.size, 1))
        rows[:, chosen] = np.column_stack([xx.ravel(), yy.ravel()])
        classes = list(subject.machine.classes_) if subject.is_classifier else []
        asked = rows_like(X, rows)
        if len(classes) > 2:
            response = codes_of(subject.estimator.predict(asked), subject.machine.classes_).astype(np.float64)
        else:
            response = np.asarray(subject.estimator.decision_function(asked), dtype=np.float64)
        title = subject.title
        if len(names) > 2:
            title += f"\nthe other {len(names) - 2} feature{'s' * (len(names) > 3)} at the median"
        display = cls(
            xx, yy, response.reshape(xx.shape), points,
            None if y is None or not classes else codes_of(y, subject.machine.classes_),
            [str(label) for label in classes], subject.strengths(len(points)),
            (names[chosen[0]], names[chosen[1]]), title,
        )  # fmt: skip
        return display.plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to; by default a new figure.
        """
        ax = self._begin(ax)
        if len(self.classes) > 2:
            self._draw_regions(ax)
        else:
            self._draw_levels(ax)
        self._draw_samples(ax)
        ax.set(xlabel=self.names[0], ylabel=self.names[1])
        ax.set_xlim(self.xx.min(), self.xx.max())
        ax.set_ylim(self.yy.min(), self.yy.max())
        ax.set_title(self.title, fontsize=10, loc="left")
        legend_beside(ax)
        return self

    def _draw_regions(self, ax: Any) -> None:
        from matplotlib.colors import ListedColormap

        n = len(self.classes)
        colours = ListedColormap([colour_of(k) for k in range(n)])
        extent = (self.xx.min(), self.xx.max(), self.yy.min(), self.yy.max())
        ax.imshow(
            self.response, origin="lower", extent=extent, aspect="auto", cmap=colours, vmin=-0.5, vmax=n - 0.5,
            alpha=_TINT, interpolation="nearest", zorder=0,
        )  # fmt: skip
        for k in range(n):  # one line around each region: levels between two numbers would cross a third
            inside = (self.response == k).astype(np.float64)
            if 0 < inside.mean() < 1:
                ax.contour(self.xx, self.yy, inside, levels=[0.5], colors=[ink_of(ax)], linewidths=0.7, zorder=1)

    def _draw_levels(self, ax: Any) -> None:
        low, high = float(self.response.min()), float(self.response.max())
        sides = (colour_of(0), colour_of(1))
        bounds = [min(low, 0.0) - 1, 0.0, max(high, 0.0) + 1]
        ax.contourf(self.xx, self.yy, self.response, levels=bounds, colors=sides, alpha=_TINT, zorder=0)
        levels = [0.0] if not self.classes else [-1.0, 0.0, 1.0]
        lines = ["-"] if not self.classes else ["--", "-", "--"]
        shown = [(level, line) for level, line in zip(levels, lines, strict=True) if low < level < high]
        if shown:
            ax.contour(
                self.xx, self.yy, self.response, levels=[level for level, _ in shown],
                linestyles=[line for _, line in shown], colors=[ink_of(ax)], linewidths=1.1, zorder=1,
            )  # fmt: skip
        ax.plot([], [], "-", color=ink_of(ax), linewidth=1.1, label="boundary")
        if len(shown) > 1:
            ax.plot([], [], "--", color=ink_of(ax), linewidth=1.1, label="margin")

    def _draw_samples(self, ax: Any) -> None:
        x, y = self.points.T
        size = float(np.clip(4000 / len(x), 10, 26))
        look = {"s": size, "linewidths": 0.4, "edgecolors": paper_of(ax), "zorder": 3}
        if self.codes is None:
            ax.scatter(x, y, color=ink_of(ax), label=f"sample ({len(x)})", **look)
        else:
            for k, name in enumerate(self.classes):
                mine = self.codes == k
                label = f"{name} ({int(mine.sum())})"
                ax.scatter(x[mine], y[mine], color=colour_of(k), marker=marker_of(k), label=label, **look)
        if self.strengths is not None:
            support = self.strengths > 0
            draw_rings(ax, x[support], y[support], self.strengths[support])


def _span(column: Vector, n: int) -> Vector:
    low, high = float(column.min()), float(column.max())
    room = _ROOM * (high - low) or 1.0
    return np.linspace(low - room, high + room, n)
