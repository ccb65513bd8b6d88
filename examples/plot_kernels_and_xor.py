"""
Four kernels look at XOR
========================

No straight line separates these two classes. A kernel decides what "straight" means: the linear machine gives
up, the polynomial one finds the product of the two coordinates, which is all that XOR is, and the RBF machine
learns each cloud by itself.

The Laplacian kernel measures distance along the axes, as a taxi drives: its boundary has corners where the
RBF machine's is round.
"""

import matplotlib.pyplot as plt
import numpy as np

from hinge import SVC

rng = np.random.default_rng(0)
centres = np.array([(-1, -1), (1, 1), (-1, 1), (1, -1)])
X = np.concatenate([rng.normal(centre, 0.45, (40, 2)) for centre in centres])
y = np.repeat([0, 0, 1, 1], 40)

COLOURS = np.array(["#0072b2", "#e69f00"])
plane = np.stack(np.meshgrid(np.linspace(-3.2, 3.2, 150), np.linspace(-3.2, 3.2, 150)), axis=-1)
figure, axes = plt.subplots(1, 4, figsize=(12, 3.4), layout="constrained")
for ax, settings in zip(
    axes,
    ({"kernel": "linear"}, {"kernel": "poly", "degree": 2}, {"kernel": "rbf"}, {"kernel": "laplacian"}),
    strict=True,
):
    machine = SVC(C=5, **settings).fit(X, y)
    height = machine.decision_function(plane.reshape(-1, 2)).reshape(150, 150)
    ax.contourf(*plane.transpose(2, 0, 1), height, levels=[-1e9, 0, 1e9], colors=COLOURS, alpha=0.25)
    ax.scatter(*X.T, c=COLOURS[y], s=12)
    ax.set(
        title=f"{settings['kernel']}: {machine.score(X, y):.0%}",
        xticks=[],
        yticks=[],
        aspect="equal",
        xlim=(-3.2, 3.2),
        ylim=(-3.2, 3.2),
    )
plt.show()
