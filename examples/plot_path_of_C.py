"""
The path of a machine as C grows
================================

Each line is one sample's α divided by C. As errors become expensive, samples leave their bound (1) one after
the other and settle at 0, where they no longer matter; the few that stay in between hold the boundary.

Every machine of the path starts from its neighbour's solution, so that forty of them cost little more than a
few.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from hinge import SVC
from hinge.selection import regularisation_path

X, y = make_blobs(80, centers=[(-1, 0), (1, 0)], cluster_std=0.8, random_state=3)
Cs = np.logspace(-2, 2, 40)
machines = regularisation_path(SVC(kernel="rbf", gamma=0.3), X, y, Cs)
alphas = np.zeros((len(Cs), len(y)))
for row, machine in zip(alphas, machines, strict=True):
    row[machine.support_] = np.abs(machine.dual_coef_[0]) / machine.C

figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
ax.plot(Cs, alphas, lw=0.9, color="#0072b2", alpha=0.45)
ax.plot(Cs, (alphas > 0).mean(axis=1), "k--", lw=1.6, label="share of support vectors")
ax.set(xscale="log", xlabel="C", ylabel="α / C")
ax.legend(loc="lower left", framealpha=1)
plt.show()
