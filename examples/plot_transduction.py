"""
A boundary where no samples are
===============================

Six labelled samples, and two hundred without a label. The machine of the labelled samples alone (left) cannot know
better than a line between them. Transduction lets unlabelled samples count more and more: labels change places
while that lowers the objective, and the boundary moves to where no samples are.

It ends at a local optimum, and which one depends on where it began: on the right the same for 25 random choices
of the six samples. Most gain, some lose.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from hinge import TransductiveSVC

X, y = make_moons(206, noise=0.09, random_state=8)
grid = np.linspace(-1.6, 2.6, 160), np.linspace(-1.1, 1.6, 120)
plane = np.stack(np.meshgrid(*grid), axis=-1).reshape(-1, 2)
colours = np.array(["#0072b2", "#d55e00"])


def fitted(seed, price):
    """Label three random samples of each class; return the machine, and which they are."""
    rng = np.random.default_rng(seed)
    known = np.concatenate([rng.choice(np.flatnonzero(y == c), 3, replace=False) for c in (0, 1)])
    few = np.full(len(y), -1)
    few[known] = y[known]
    return TransductiveSVC(gamma=1.0, C=10.0, C_unlabeled=price, share=0.5).fit(X, few), known


def share_right(machine):
    """Return the share of labels that were found right."""
    return float(np.mean(machine.transduction_ == y))


figure, axes = plt.subplots(1, 4, figsize=(13, 3.4), layout="constrained")
for ax, price in zip(axes, (1e-6, 0.1, 10.0), strict=False):
    machine, known = fitted(16, price)
    decisions = machine.decision_function(plane).reshape(120, 160)
    ax.contourf(*grid, decisions, levels=[-np.inf, 0, np.inf], colors=colours, alpha=0.12)
    ax.contour(*grid, decisions, levels=[-1, 0, 1], colors="black", linewidths=[0.6, 1.4, 0.6])
    ax.scatter(*X.T, s=9, color=colours[machine.transduction_])
    ax.scatter(*X[known].T, s=90, color=colours[y[known]], edgecolor="black", zorder=3)
    exchanged = sum(step.exchanged for step in machine.steps_ if step.is_kept)
    ax.set(title=f"price {price:g}: {exchanged} exchanges, {share_right(machine):.0%}", xticks=[], yticks=[])

before, after = (np.array([share_right(fitted(seed, price)[0]) for seed in range(25)]) for price in (1e-6, 10.0))
axes[3].plot([0.5, 1], [0.5, 1], color="#999999", linewidth=1)
axes[3].scatter(before, after, s=18, color=np.where(after >= before, "#009e73", "#cc79a7"))
axes[3].set(
    xlabel="labels right at price 1e-06", ylabel="at price 10", title="25 choices of the six", aspect="equal"
)
plt.show()
