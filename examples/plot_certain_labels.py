"""
Which labels are final
======================

A fit that was stopped early proves something too. Its duality gap bounds how far the exact decision of every
sample can be from the one at hand; where both ends of that interval have the same sign, the label cannot change
any more.

The same machine is stopped after a few, some and many steps. Hollow points are samples whose label is still open.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from hinge import SVC

X, y = make_moons(300, noise=0.25, random_state=0)
grid = np.linspace(-1.8, 2.8, 120), np.linspace(-1.3, 1.8, 100)
plane = np.stack(np.meshgrid(*grid), axis=-1).reshape(-1, 2)

figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), sharex=True, sharey=True, layout="constrained")
for ax, steps in zip(axes, (45, 60, 80), strict=True):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it did not converge, as it was told to
        machine = SVC(C=5, gamma=1.0, max_iter=steps).fit(X, y)
    _, is_final = machine.predict_certain(plane)
    ax.contourf(*grid, is_final.reshape(100, 120), levels=[-0.5, 0.5, 1.5], colors=["#dddddd", "white"])
    ax.contour(*grid, machine.decision_function(plane).reshape(100, 120), levels=[0], colors="black")
    labels, is_certain = machine.predict_certain(X)
    for label, colour in ((0, "#0072b2"), (1, "#d55e00")):
        mine = labels == label
        ax.scatter(*X[mine & is_certain].T, s=12, color=colour)
        ax.scatter(*X[mine & ~is_certain].T, s=12, facecolor="none", edgecolor=colour)
    ax.set(title=f"{steps} steps: {is_certain.mean():.0%} final", xticks=[], yticks=[])
plt.show()
