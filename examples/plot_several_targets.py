"""
A curve from its parameter: two targets at once
===============================================

The place of a point on a curve is two numbers. One `SVR` learns both from the same kernel values; each has its own
machine, its own support vectors and its own certificate.
"""

import matplotlib.pyplot as plt
import numpy as np

from hinge import SVR

rng = np.random.default_rng(0)
t = np.sort(rng.uniform(0, 2 * np.pi, 150))[:, None]
curve = np.hstack([np.sin(2 * t), np.cos(3 * t)])
seen = curve + 0.08 * rng.normal(size=curve.shape)

machine = SVR(C=10, gamma=1.5, epsilon=0.1).fit(t, seen)
found = machine.predict(t)

figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
for k, ax in enumerate(axes[:2]):
    is_support = machine.dual_coef_[k] != 0
    ax.plot(t, seen[:, k], ".", color="#999999")
    ax.plot(t[machine.support_[is_support]], seen[machine.support_[is_support], k], ".", color="#d55e00")
    ax.plot(t, found[:, k], "k")
    ax.set(title=f"target {k}: {is_support.sum()} support vectors", xlabel="t")
axes[2].plot(*seen.T, ".", color="#999999")
axes[2].plot(*found.T, "k")
axes[2].set(title="both together", xticks=[], yticks=[])
plt.show()
