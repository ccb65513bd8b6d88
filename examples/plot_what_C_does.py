"""
What C does
===========

C is the price of an error. A cheap error (left) buys a wide margin and a smooth boundary; an expensive one (right)
makes the boundary bend around single samples, at the cost of support vectors that matter more and more.

Look at the two outliers inside the other class: at C = 0.1 the machine shrugs, at C = 1000 each of them owns
an island. Neither is right by itself: cross-validation decides, and on noisy data it usually prefers
something in between.
"""

import matplotlib.pyplot as plt
import numpy as np

from hinge import SVC

rng = np.random.default_rng(1)
X = np.vstack(
    [rng.normal((-1, -0.6), 0.55, (40, 2)), rng.normal((1, 0.6), 0.55, (40, 2)), [[1.4, 1.0], [-1.2, -0.9]]]
)
y = np.array([0] * 40 + [1] * 40 + [0, 1])

figure, axes = plt.subplots(1, 3, figsize=(11, 3.8), sharex=True, sharey=True, layout="constrained")
plane = np.stack(np.meshgrid(np.linspace(-3, 3, 160), np.linspace(-2.6, 2.6, 160)), axis=-1)
for ax, C in zip(axes, (0.1, 10, 1000), strict=True):
    machine = SVC(C=C, gamma=1.0).fit(X, y)
    height = machine.decision_function(plane.reshape(-1, 2)).reshape(160, 160)
    ax.contourf(
        plane[..., 0], plane[..., 1], height, levels=[-99, 0, 99], colors=["#0072b2", "#e69f00"], alpha=0.25
    )
    ax.contour(
        plane[..., 0],
        plane[..., 1],
        height,
        levels=[-1, 0, 1],
        colors="k",
        linestyles=["--", "-", "--"],
        linewidths=1,
    )
    ax.scatter(*X.T, c=np.array(["#0072b2", "#e69f00"])[y], s=18, zorder=3)
    ax.scatter(*machine.support_vectors_.T, s=60, facecolors="none", edgecolors="k", linewidths=0.8, zorder=4)
    ax.set(title=f"C = {C:g}: {len(machine.support_)} support vectors", xticks=[], yticks=[])
plt.show()
