"""
The hinge and its square
========================

A sample that falls short of its margin pays by how much, or by the square of that. The square forgives small
faults and punishes large ones: nearly every sample near the margin becomes a support vector, coefficients have no
upper bound, and a single sample on the wrong side pulls harder.

Larger dots are larger coefficients; crosses are no support vectors.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from hinge import SVC

X, y = make_moons(120, noise=0.2, random_state=0)
X = np.vstack([X, [[0.9, 1.1]]])  # one sample on the wrong side
y = np.append(y, 1)
grid = np.linspace(-1.8, 2.8, 120), np.linspace(-1.3, 1.8, 100)
plane = np.stack(np.meshgrid(*grid), axis=-1).reshape(-1, 2)
colours = np.array(["#0072b2", "#d55e00"])

figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
margin = np.linspace(-1.5, 2.5, 200)
fault = np.maximum(0, 1 - margin)
axes[0].plot(margin, fault, color="black", label="hinge")
axes[0].plot(margin, fault**2, color="black", linestyle="--", label="squared hinge")
axes[0].set(title="price of a sample", xlabel="y f(x)")
axes[0].legend()
for ax, loss in zip(axes[1:], ("hinge", "squared_hinge"), strict=True):
    machine = SVC(C=2, gamma=1.0, loss=loss).fit(X, y)
    decisions = machine.decision_function(plane).reshape(100, 120)
    ax.contour(*grid, decisions, levels=[-1, 0, 1], colors="black", linestyles=["--", "-", "--"])
    others = np.setdiff1d(np.arange(len(y)), machine.support_)
    ax.scatter(*X[others].T, marker="x", s=14, c=colours[y[others]])
    ax.scatter(*machine.support_vectors_.T, s=25 * np.abs(machine.dual_coef_[0]), c=colours[y[machine.support_]])
    ax.set(title=f"{loss}: {len(machine.support_)} support vectors", xticks=[], yticks=[])
plt.show()
