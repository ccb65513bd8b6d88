"""The animation of block decomposition: a real run of the solver, working set by working set."""

from pathlib import Path

import numpy as np

PICTURE = Path(__file__).parent / "explanation" / "generated" / "decomposition.gif"

_FRAMES_A_SECOND = 3
_MOST_FRAMES = 40


def recorded_run():
    """Solve a small problem with small working sets; return samples, labels and the trace of every working set."""
    from hinge import Gram, Kernel, Settings, Sizes, Tracing, solve
    from hinge.dual.formulations import c_svc

    random = np.random.default_rng(3)
    X = random.uniform(-1, 1, size=(400, 2))
    y = np.where(np.sin(4 * X[:, 0]) * 0.5 > X[:, 1] + 0.15 * random.normal(size=400), 1.0, -1.0)
    sizes = Sizes(one_set=60, smallest_set=40, largest_set=40, cheap_subset=100, dear_subset=100)
    settings = Settings(solver="block", sizes=sizes, trace=Tracing(every_step=True, beta=True))
    solution = solve(c_svc(y, C=10.0), Gram(X, Kernel("rbf", gamma=4.0), threads=1), settings)
    return X, y, solution.report.trace


def draw(path=PICTURE):
    """Write the animation, unless it is there."""
    if path.exists():
        return
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt
    from matplotlib.animation import FuncAnimation, PillowWriter

    X, y, trace = recorded_run()
    n_frames = min(len(trace), _MOST_FRAMES)
    figure, (plane, course) = plt.subplots(1, 2, figsize=(9, 4.2), width_ratios=(1.15, 1), layout="constrained")
    colours = np.where(y > 0, "#0072b2", "#d55e00")

    def frame(k):
        plane.clear()
        beta = trace.beta[k]
        moved = beta != trace.beta[max(k - 1, 0)]
        plane.scatter(*X.T, c=colours, s=9, alpha=0.35, linewidths=0)
        plane.scatter(*X[beta != 0].T, c=colours[beta != 0], s=30, linewidths=0)
        plane.scatter(*X[moved].T, s=90, facecolors="none", edgecolors="black", linewidths=1.2)
        plane.set(xticks=[], yticks=[], title=f"working set {k}: {np.count_nonzero(moved)} coefficients moved")
        course.clear()
        course.semilogy(trace.violation[: k + 1], color="#009e73")
        course.axhline(1e-3, color="grey", linestyle=":", linewidth=1)
        course.text(0, 1.2e-3, "tolerance", color="grey", fontsize=8)
        course.set(xlim=(-0.5, n_frames - 0.5), ylim=(0.5 * trace.violation.min(), 2 * trace.violation.max()))
        course.set(xlabel="working set", ylabel="violation on all samples")
        course.set_title(f"{trace.n_active[k]} of {len(y)} samples active")

    path.parent.mkdir(parents=True, exist_ok=True)
    FuncAnimation(figure, frame, frames=n_frames).save(path, PillowWriter(fps=_FRAMES_A_SECOND), dpi=80)
    plt.close(figure)
