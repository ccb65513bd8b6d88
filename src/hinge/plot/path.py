"""What C does: support vectors, weights or scores along a regularisation path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from hinge.arrays import Vector
from hinge.plot.style import Display, colour_of, ink_of, legend_beside, line_of, marker_of
from hinge.plot.subjects import Subject, dense

Quantity = Literal["support", "weights", "score"]

# Of many weights the largest are drawn.
_MOST_WEIGHTS = 12


@dataclass(eq=False)
class Path(Display):
    """A quantity of machines over their C.

    Attributes
    ----------
    costs : array
        The values of C, ascending.
    curves : dict of arrays
        What is drawn over them, by name.
    label : str
        What the vertical axis is.
    title : str
        What is said above.
    """

    costs: Vector
    curves: dict[str, Vector]
    label: str
    title: str

    @classmethod
    def from_estimators(
        cls,
        machines: Sequence[Any],
        X: Any = None,
        y: Any = None,
        *,
        quantity: Quantity = "support",
        ax: Any = None,
    ) -> Self:
        """Draw machines that differ in C, as `hinge.selection.regularisation_path` returns them.

        Parameters
        ----------
        machines : sequence of estimators
            Fitted machines of Hinge.
        X, y : array-like, optional
            Samples to score them on; for ``quantity="score"``.
        quantity : {"support", "weights", "score"}
            Numbers of support vectors and of those at their bound; the weights of a linear machine; scores.
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.

        %(drawn)s

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from hinge import SVC
        >>> from hinge.selection import regularisation_path
        >>> machines = regularisation_path(SVC(gamma=0.5), *load_iris(return_X_y=True), [0.1, 1.0, 10.0])
        >>> Path.from_estimators(machines).curves["all support vectors"]
        array([96., 41., 31.])
        """
        if not machines:
            raise ValueError("there is no machine to draw")
        machines = sorted(machines, key=lambda machine: float(machine.C))
        costs = np.array([float(machine.C) for machine in machines])
        if quantity == "support":
            label, curves = "samples", {
                "all support vectors": np.array([float(m.report_.n_support) for m in machines]),
                "at their bound": np.array([float(m.report_.n_bounded) for m in machines]),
            }  # fmt: skip
        elif quantity == "weights":
            label, curves = "weight", _weights(machines)
        elif quantity == "score":
            if X is None or y is None:
                raise ValueError("scores need samples: pass X and y")
            label = "score (accuracy)" if hasattr(machines[0], "classes_") else "score (R²)"
            curves = {"": np.array([machine.score(X, y) for machine in machines])}
        else:
            raise ValueError(f"quantity is 'support', 'weights' or 'score', got {quantity!r}")
        title = Subject.of(machines[0]).title.replace(f"C = {costs[0]:g}", f"C from {costs[0]:g} to {costs[-1]:g}")
        return cls(costs, curves, label, title).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to; by default a new figure.
        """
        ax = self._begin(ax)
        for k, (name, curve) in enumerate(self.curves.items()):
            look = {"color": colour_of(k), "linestyle": line_of(k), "marker": marker_of(k), "markersize": 4}
            ax.plot(self.costs, curve, label=name or None, linewidth=1.4, **look)
        ax.set(xscale="log", xlabel="C", ylabel=self.label)
        ax.grid(alpha=0.25, color=ink_of(ax), linewidth=0.4)
        ax.set_title(self.title, fontsize=10, loc="left")
        legend_beside(ax)
        return self


def _weights(machines: Sequence[Any]) -> dict[str, Vector]:
    if len(getattr(machines[0], "classes_", "12")) > 2:
        raise ValueError(
            "weights are drawn of two classes or a regression; here is a machine for each pair of classes"
        )
    rows = np.array([dense(machine.coef_)[0] for machine in machines])
    names = getattr(machines[0], "feature_names_in_", [f"feature {k}" for k in range(rows.shape[1])])
    largest = np.argsort(-np.abs(rows).max(axis=0), kind="stable")[:_MOST_WEIGHTS]
    return {str(names[k]): rows[:, k] for k in largest}
