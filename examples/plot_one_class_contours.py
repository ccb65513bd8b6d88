"""
What is usual: contours of a one-class machine
==============================================

Nobody labelled these points. A one-class machine draws a line around most of them; ν says how many may stay
outside.

Small ν trusts every sample, so the line goes around all of them, empty space included. With larger ν it draws
in towards the dense parts and breaks into one shore for each group.
"""

import matplotlib.pyplot as plt
import numpy as np

from hinge import OneClassSVM

rng = np.random.default_rng(2)
X = np.concatenate(
    [rng.normal((-2, 0), 0.5, (120, 2)), rng.normal((1.5, 1), (0.9, 0.4), (120, 2)), rng.uniform(-4, 4, (12, 2))]
)
plane = np.stack(np.meshgrid(np.linspace(-5, 5, 160), np.linspace(-4.5, 4.5, 160)), axis=-1)

figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
for ax, nu in zip(axes, (0.02, 0.1, 0.3), strict=True):
    machine = OneClassSVM(nu=nu, gamma=0.5).fit(X)
    height = machine.decision_function(plane.reshape(-1, 2)).reshape(160, 160)
    ax.contourf(*plane.transpose(2, 0, 1), height, levels=12, cmap="cividis", alpha=0.6)
    ax.contour(*plane.transpose(2, 0, 1), height, levels=[0], colors="k")
    outside = machine.predict(X) < 0
    ax.scatter(*X[~outside].T, s=8, color="white", edgecolors="k", linewidths=0.4)
    ax.scatter(*X[outside].T, s=26, color="#d55e00", edgecolors="k", linewidths=0.4)
    ax.set(title=f"ν = {nu}: {outside.mean():.0%} outside", xticks=[], yticks=[])
plt.show()
