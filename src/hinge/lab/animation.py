"""Films of runs: on two-dimensional data, step by step, which variables move, where α stands, what is violated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hinge.arrays import Index, Vector
from hinge.dual.formulations import c_svc
from hinge.kernel.gram import Gram
from hinge.kernel.kernels import Kernel
from hinge.lab import get
from hinge.lab.figures import pyplot
from hinge.settings import Settings
from hinge.trace import Trace, Tracing

_COLOURS = {1.0: "#0072B2", -1.0: "#D55E00"}
_MARKERS = {1.0: "o", -1.0: "s"}
_GRID = 70  # points of the decision function in each direction
_MARGIN = 0.06  # of the plane, around the data
_FRAMES_A_SECOND = 3
_LAST_FRAME = 6  # the solution stands for as many frames
_DPI = 72
_MOST_SAMPLES = 2000  # every step keeps all β, and the picture shows every sample


@dataclass(frozen=True, eq=False)
class Film:
    """A recorded run on two-dimensional data.

    Attributes
    ----------
    X, y : arrays
        Samples, and labels of +1 and -1.
    kernel : Kernel
        The kernel.
    C, tol : float
        Cost, tolerance.
    title : str
        What people call the algorithm.
    trace : Trace
        Every step, with β.
    """

    X: Any
    y: Vector
    kernel: Kernel
    C: float
    tol: float
    title: str
    trace: Trace

    @property
    def beta(self) -> Any:
        """β of every step."""
        assert self.trace.beta is not None
        return self.trace.beta

    def moved(self, step: int) -> Index:
        """Return the samples whose variable the step moved: its pair, or its working set."""
        return np.flatnonzero(self.beta[step] != self.beta[max(step - 1, 0)])

    def frames(self, most: int) -> Index:
        """Return up to ``most`` steps to show: all of the first ones, ever fewer of the later ones, the last one.

        Examples
        --------
        >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0]])
        >>> film = record(X, np.array([-1.0, -1.0, 1.0, 1.0]), Kernel("linear"), 10.0, "smo-mvp")
        >>> film.frames(3).tolist(), film.moved(1).tolist()
        ([0, 1, 3], [0, 2])
        """
        last = len(self.trace) - 1
        if last < most:
            return np.arange(last + 1)
        rest = np.unique(np.geomspace(1, last, most - 1).round().astype(np.int64))
        while len(rest) < most - 1:  # small numbers coincide: fill up with the first that are missing
            rest = np.union1d(rest, np.setdiff1d(np.arange(1, last), rest)[:1])
        return np.concatenate([[0], rest])


def record(
    X: Any, y: Any, kernel: Kernel, C: float, algorithm: str, settings: Settings | None = None
) -> Film:  # fmt: skip
    """Run an algorithm on two-dimensional data and keep every step.

    Parameters
    ----------
    X : array of shape (n, 2)
        Samples.
    y : array of +1 and -1
        Labels.
    kernel : Kernel
        The kernel.
    C : float
        The cost.
    algorithm : str
        Its name in the laboratory.
    settings : Settings, optional
        Tolerance, limits, sizes.

    Raises
    ------
    ValueError
        The data has not two features, or too many samples to show; the name is unknown.
    """
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != 2:
        raise ValueError(f"an animation shows data of two features, got {X.shape[-1]}")
    if len(X) > _MOST_SAMPLES:
        raise ValueError(f"an animation shows up to {_MOST_SAMPLES:,} samples, got {len(X):,}")
    settings = replace(settings or Settings(), trace=Tracing(every_step=True, beta=True))
    known = get(algorithm)
    report = known.solve(c_svc(y, C=C), Gram(X, kernel, threads=1), settings).report
    assert report.trace is not None
    return Film(X, np.asarray(y, dtype=np.float64), kernel, C, settings.tol, known.title, report.trace)


def draw(film: Film, path: Path, most: int = 40, stills: Path | None = None) -> None:
    """Write a film as GIF, or as MP4 where ffmpeg is installed.

    Parameters
    ----------
    film : Film
        What to show.
    path : Path
        The file, ending in ``.gif`` or ``.mp4``.
    most : int
        Most frames.
    stills : Path, optional
        Folder for the same frames as PNG files.

    Raises
    ------
    ValueError
        The ending is another, or there is no ffmpeg.
    """
    plt = pyplot()
    from matplotlib.animation import FFMpegWriter, FuncAnimation, PillowWriter

    if path.suffix not in (".gif", ".mp4"):
        raise ValueError(f"an animation is a .gif or an .mp4 file, got {str(path)!r}")
    if path.suffix == ".mp4" and not FFMpegWriter.isAvailable():
        raise ValueError("an .mp4 file needs ffmpeg, which is not installed; .gif works without")
    steps = film.frames(most)
    figure = plt.figure(figsize=(9.0, 4.5))
    figure.subplots_adjust(left=0.02, right=0.98, bottom=0.12, top=0.92, wspace=0.14, hspace=0.35)
    show = _screen(film, figure, steps)
    writer = (PillowWriter if path.suffix == ".gif" else FFMpegWriter)(fps=_FRAMES_A_SECOND)
    order = [*range(len(steps)), *[len(steps) - 1] * _LAST_FRAME]
    path.parent.mkdir(parents=True, exist_ok=True)
    FuncAnimation(figure, lambda k: show(order[k]), frames=len(order)).save(path, writer, dpi=_DPI)
    if stills is not None:
        stills.mkdir(parents=True, exist_ok=True)
        for k, step in enumerate(steps):
            show(k)
            figure.savefig(stills / f"step-{int(film.trace.iterations[step]):06d}.png", dpi=_DPI)
    plt.close(figure)


def _screen(film: Film, figure: Any, steps: Index) -> Callable[[int], None]:
    """Lay the figure out; return what draws the k-th of the steps."""
    layout = [["plane", "alpha"], ["plane", "course"]]
    plane, alphas, course = figure.subplot_mosaic(layout, width_ratios=(1.1, 1)).values()
    low, high = film.X.min(axis=0), film.X.max(axis=0)
    low, high = low - _MARGIN * (high - low), high + _MARGIN * (high - low)
    across, up = np.meshgrid(*(np.linspace(low[k], high[k], _GRID) for k in (0, 1)))
    points = Gram(np.vstack([film.X, np.column_stack([across.ravel(), up.ravel()])]), film.kernel, threads=1)

    def show(k: int) -> None:
        step = int(steps[k])
        beta, moved = film.beta[step], film.moved(step)
        product = points.product(np.concatenate([beta, np.zeros(points.n - len(beta))]))
        values = (product[len(beta) :] + _threshold(film, beta, product[: len(beta)])).reshape(across.shape)
        _draw_plane(plane, film, beta, moved, (across, up, values))
        plane.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xticks=[], yticks=[])
        plane.set_title(f"{film.title}: after {film.trace.iterations[step]:,} steps", fontsize=10)
        _draw_alphas(alphas, film, beta, moved)
        _draw_course(course, film, step)

    return show


def _threshold(film: Film, beta: Vector, product: Vector) -> float:
    """The middle of the values that the threshold may have (LIBSVM's way where no variable is free)."""
    residual, positive = film.y - product, film.y > 0
    may_grow, may_fall = beta < np.where(positive, film.C, 0.0), beta > np.where(positive, 0.0, -film.C)
    return float((residual[may_grow].max() + residual[may_fall].min()) / 2)


def _draw_plane(axis: Any, film: Film, beta: Vector, moved: Index, field: tuple[Any, Any, Any]) -> None:
    axis.clear()
    across, up, values = field
    if np.ptp(values) > 0:
        axis.contour(across, up, values, levels=[-1, 0, 1], colors="#444444", linestyles=["--", "-", "--"],
                     linewidths=[0.8, 1.4, 0.8])  # fmt: skip
    share = np.abs(beta) / film.C
    for label in (1.0, -1.0):
        own = film.y == label
        look = {"c": _COLOURS[label], "marker": _MARKERS[label]}
        axis.scatter(*film.X[own & (share == 0)].T, s=9, alpha=0.3, linewidths=0, **look)
        for at_bound, edge in ((False, "none"), (True, "black")):
            some = own & (share > 0) & ((share >= 1) == at_bound)
            axis.scatter(*film.X[some].T, s=18 + 36 * share[some], linewidths=0.7, edgecolors=edge, **look)
    axis.scatter(*film.X[moved].T, s=150, facecolors="none", edgecolors="black", linewidths=1.6)
    if len(moved) == 2:
        axis.plot(*film.X[moved].T, color="black", linewidth=1.2)


def _draw_alphas(axis: Any, film: Film, beta: Vector, moved: Index) -> None:
    """α of every sample, class by class, as a share of C."""
    axis.clear()
    order = np.argsort(-film.y, kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    share = np.abs(beta) / film.C
    for label in (1.0, -1.0):
        own = film.y == label
        axis.vlines(place[own], 0, share[own], color=_COLOURS[label], linewidth=1)
    axis.scatter(place[moved], share[moved], s=24, facecolors="none", edgecolors="black", linewidths=1.2)
    axis.set(ylim=(-0.05, 1.12), xlim=(-1, len(order)), xticks=[], yticks=[0, 1], yticklabels=["0", "C"])
    what = "the pair that moved" if len(moved) == 2 else f"{len(moved)} moved"
    bounded, free = int((share >= 1).sum()), int(((share > 0) & (share < 1)).sum())
    axis.set_title(f"α: {free} free, {bounded} at C; ringed: {what}", fontsize=9)


def _draw_course(axis: Any, film: Film, step: int) -> None:
    axis.clear()
    steps, violation = film.trace.iterations, np.maximum(film.trace.violation, 1e-16)
    axis.plot(steps[: step + 1], violation[: step + 1], color="#009E73", linewidth=1.2)
    axis.plot(steps[step], violation[step], "o", color="#009E73", markersize=5)
    axis.axhline(film.tol, color="#777777", linestyle=":", linewidth=1)
    axis.set(yscale="log", xlim=(0, max(int(steps[-1]), 1)), xlabel="steps",
             ylim=(0.5 * min(violation.min(), film.tol), 2 * violation.max()))  # fmt: skip
    axis.set_title(f"violation {violation[step]:.2g} (dotted: tolerance)", fontsize=9)
