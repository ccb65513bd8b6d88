"""
Racing the solvers of history
=============================

Four ideas on one small problem: how far each algorithm still is from the optimum, against the kernel values
it asked for, which was the price that mattered when they were invented.

Chunking solves growing sub-problems to the end, so that nothing shows for a long time and everything at once.
Platt's SMO needs little memory and asks for many values. Pairs that violate most need fewer, and those chosen
by second order fewest.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from hinge import Gram, Kernel, Settings, Tracing
from hinge.dual.formulations import c_svc
from hinge.lab import get

X, y = make_moons(300, noise=0.25, random_state=0)
problem = c_svc(2.0 * y - 1, C=10.0)


def run(name, tol):
    """Solve by one algorithm; a Gram matrix of its own, so that kernel values are counted for this run alone."""
    gram = Gram(X, Kernel("rbf", gamma=1.0), precision="double")
    return get(name).solve(problem, gram, Settings(tol=tol, trace=Tracing(every_step=True)))


best = run("auto", 1e-9).report.objective
figure, ax = plt.subplots(figsize=(7, 4.6), layout="constrained")
for name in ("platt", "smo-mvp", "smo-second-order", "chunking"):
    trace = run(name, 1e-4).report.trace
    distance = np.maximum(trace.objective - best, 1e-12)
    ax.step(np.maximum(trace.kernel_evaluations, 1), distance, where="post", label=name)
ax.set(
    xlim=(1e3, None),
    xscale="log",
    yscale="log",
    xlabel="kernel values computed",
    ylabel="objective above the optimum",
)
ax.legend(frameon=False)
plt.show()
