"""
The tube of a regression
========================

ε-SVR pays nothing for errors below ε. Samples inside the tube have no influence at all: remove them and the
curve stays where it is. Those on its rim and outside are the support vectors.

ν-SVR turns the question around. It is told which share of the samples may lie outside, and finds the width
itself; with noise of a known distribution that width says how large the noise is.
"""

import matplotlib.pyplot as plt
import numpy as np

from hinge import SVR, NuSVR

rng = np.random.default_rng(4)
x = np.sort(rng.uniform(0, 10, 120))
y = np.sin(x) + 0.1 * x + rng.normal(0, 0.2, 120)
X, grid = x[:, None], np.linspace(0, 10, 400)[:, None]

figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
for ax, machine, width in (
    (axes[0], SVR(C=10, gamma=0.5, epsilon=0.3).fit(X, y), 0.3),
    (axes[1], nu := NuSVR(C=10, gamma=0.5, nu=0.2).fit(X, y), nu.epsilon_),
):
    curve = machine.predict(grid)
    ax.fill_between(
        grid[:, 0], curve - width, curve + width, color="#0072b2", alpha=0.15, label=f"tube of ±{width:.2f}"
    )
    ax.plot(grid[:, 0], curve, color="#0072b2")
    ax.scatter(x, y, s=14, color="#777777")
    ax.scatter(
        x[machine.support_],
        y[machine.support_],
        s=26,
        color="#d55e00",
        label=f"{len(machine.support_)} support vectors",
    )
    ax.set(title=type(machine).__name__, xlabel="x")
    ax.legend(loc="upper left", frameon=False)
plt.show()
