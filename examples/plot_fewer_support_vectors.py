"""
Fewer support vectors
=====================

A prediction takes a kernel value for each support vector. Many of them say nearly the same: a few, with other
coefficients, make nearly the same function. How nearly is proved for every point of the plane, and far beyond it.

The band around each boundary is where the bound leaves the label open: outside it, no label can differ from that
of the machine with all its support vectors.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from hinge import SVC

X, y = make_moons(2000, noise=0.25, random_state=0)
machine = SVC(C=10, gamma=1.0).fit(X, y)
grid = np.linspace(-2.2, 3.2, 160), np.linspace(-1.8, 2.3, 130)
plane = np.stack(np.meshgrid(*grid), axis=-1).reshape(-1, 2)
exact = machine.decision_function(plane).reshape(130, 160)

figure, axes = plt.subplots(1, 3, figsize=(12, 3.9), sharex=True, sharey=True, layout="constrained")
for ax, n_support in zip(axes, (22, 30, 42), strict=True):
    small = machine.compressed(n_support=n_support)
    values = small.decision_function(plane).reshape(130, 160)
    bound = small.compression_.bound
    ax.contourf(*grid, values, levels=[-1e9, -bound, bound, 1e9], colors=["#dbe9f4", "#dddddd", "#fbe3d6"])
    ax.contour(*grid, exact, levels=[0], colors="black", linewidths=2.5)
    ax.contour(*grid, values, levels=[0], colors="white", linewidths=1, linestyles="dashed")
    ax.scatter(*small.support_vectors_.T, s=18, color="#d55e00", edgecolor="black", linewidth=0.5)
    ax.set(title=f"{n_support} of {len(machine.support_)}: at most {bound:.2g} off", xticks=[], yticks=[])
plt.show()
