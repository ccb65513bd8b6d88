"""
A searchlight
=============

Where in a volume is there information about what a person saw? A searchlight moves a small sphere through it, and
asks at every place how well the voxels inside tell two conditions apart. That is a cross-validation for each of
some thousand spheres, and one call of `cross_validate_many`.

The volume here is made up: noise, and a blob in which half of the voxels answer a little more to one condition,
the others a little less. On average the blob does not answer at all: neither single voxels nor means show it
well, but the pattern inside a sphere does. The pictures show the slice through its centre.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter

from hinge import SVC
from hinge.many import cross_validate_many

rng = np.random.default_rng(0)
shape, n, radius = (18, 18, 10), 60, 1.8
y = np.arange(n) % 2
place = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), axis=-1).reshape(-1, 3)
distance = np.linalg.norm(place - (11, 7, 5), axis=1)
answers = np.where(distance < 3.5, rng.choice([-0.5, 0.5], len(place)), 0.0)
X = np.array([gaussian_filter(rng.normal(size=shape), 0.5).ravel() for _ in range(n)])
X = X / X.std() + answers * (y[:, None] - 0.5)

spheres = [np.flatnonzero(np.linalg.norm(place - centre, axis=1) <= radius) for centre in place]
found = cross_validate_many(SVC(kernel="linear"), X, y, columns=spheres, cv=5)

accuracy = found.scores.mean(axis=1).reshape(shape)
difference = (X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)).reshape(shape)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for axes, values, title, options in (
    (left, difference, "difference of the means, voxel by voxel", {"cmap": "RdBu_r", "vmin": -1.5, "vmax": 1.5}),
    (
        right,
        accuracy,
        f"accuracy of spheres; {found.converged.sum()} certified fits",
        {"cmap": "cividis", "vmin": 0.5, "vmax": 1.0},
    ),
):
    shown = axes.imshow(values[:, :, 5].T, origin="lower", **options)
    axes.contour(distance.reshape(shape)[:, :, 5].T < 3.5, [0.5], colors="#d55e00", linewidths=1.5)
    axes.set(title=title, xticks=[], yticks=[])
    figure.colorbar(shown, ax=axes, shrink=0.85)
plt.show()
