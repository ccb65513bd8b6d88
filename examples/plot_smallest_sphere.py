"""
The smallest sphere around most of the data
===========================================

A one-class machine separates the data from the origin by a plane; support vector data description puts the
smallest sphere around it. With the RBF kernel, where every sample is as far from the origin, the two are the same
machine. With others they are not: the linear kernel's plane cares about where the origin lies, its sphere does
not.
"""

import matplotlib.pyplot as plt
import numpy as np

from hinge import SVDD, OneClassSVM

rng = np.random.default_rng(0)
X = np.concatenate([rng.normal((3, 2), 0.6, (150, 2)), rng.uniform((0, 0), (6, 4), (10, 2))])
plane = np.stack(np.meshgrid(np.linspace(-0.5, 6.5, 160), np.linspace(-0.5, 4.5, 160)), axis=-1)

figure, axes = plt.subplots(2, 2, figsize=(9, 6.5), layout="constrained", sharex=True, sharey=True)
for row, kernel in zip(axes, ("linear", "rbf"), strict=True):
    for ax, kind in zip(row, (OneClassSVM, SVDD), strict=True):
        machine = kind(kernel=kernel, nu=0.1).fit(X)
        inside = machine.decision_function(plane.reshape(-1, 2)).reshape(160, 160)
        ax.contour(*plane.transpose(2, 0, 1), inside, levels=[0], colors="k")
        outside = machine.predict(X) < 0
        ax.scatter(*X[~outside].T, s=8, color="#0072b2")
        ax.scatter(*X[outside].T, s=20, color="#d55e00")
        title = f"{kind.__name__}, {kernel}"
        if kind is SVDD and kernel == "linear":
            ax.plot(*machine.coef_[0], "k+", markersize=12)
            title += f": radius {machine.radius_:.2f}"
        ax.set(title=title, xticks=[], yticks=[], aspect="equal")
    ax.plot(0, 0, "k.")
plt.show()
