"""Data made like SUSY: eight quantities of collisions, ten functions of them, two classes that overlap."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

WIDTH = 18

# Rows that are made at a time, each from a seed of its own: any number of workers makes the same data.
_CHUNK = 100_000


def made(first: int, stop: int, seed: int = 0) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
    """Return the rows from ``first`` to ``stop`` and their classes, 1 or -1; ``first`` begins a chunk.

    Two particles have a momentum and two angles each, and what is missing has a size and an angle. Where new
    particles were made (class 1) momenta and what is missing are larger, and less of it lies along the two. The
    other features are masses, ratios and projections of these, as analysts form them.
    """
    parts = [_chunk(start, min(start + _CHUNK, stop), seed) for start in range(first, stop, _CHUNK)]
    X, y = zip(*parts, strict=True)
    return np.concatenate(X), np.concatenate(y)


def collection(n: int, seed: int = 0) -> tuple[Any, Any]:
    """Return n rows and their classes as Dask arrays, whose chunks the workers make."""
    import dask.array as da
    from dask.delayed import delayed

    sizes = [min(_CHUNK, n - start) for start in range(0, n, _CHUNK)]
    parts = [delayed(made)(k * _CHUNK, k * _CHUNK + size, seed) for k, size in enumerate(sizes)]
    X = [da.from_delayed(part[0], (size, WIDTH), np.float32) for part, size in zip(parts, sizes, strict=True)]
    y = [da.from_delayed(part[1], (size,), np.int8) for part, size in zip(parts, sizes, strict=True)]
    return da.concatenate(X), da.concatenate(y)


def _chunk(start: int, stop: int, seed: int) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
    rng = np.random.default_rng([seed, start // _CHUNK])
    n = stop - start
    y = np.where(rng.random(n) < 0.46, 1, -1)
    is_new = y > 0
    momenta = rng.gamma(2.0, np.where(is_new, 0.75, 0.45)[:, None], (n, 2))
    pseudorapidity = rng.normal(0.0, np.where(is_new, 0.8, 1.1)[:, None], (n, 2))
    angles = rng.uniform(-np.pi, np.pi, (n, 2))
    missing = rng.gamma(1.5, np.where(is_new, 0.9, 0.45))
    towards = np.where(is_new, rng.uniform(-np.pi, np.pi, n), angles[:, 0] + np.pi + rng.normal(0.0, 0.9, n))
    along = missing[:, None] * np.cos(angles - towards[:, None])
    apart, turned = np.ptp(pseudorapidity, axis=1), np.cos(np.ptp(angles, axis=1))
    mass = np.sqrt(2 * momenta.prod(axis=1) * np.abs(np.cosh(apart) - turned))
    total = momenta.sum(axis=1) + missing
    columns = [
        momenta, pseudorapidity, angles, missing, np.angle(np.exp(1j * towards)), along, mass,
        missing / np.sqrt(total), momenta[:, 0] / momenta[:, 1].clip(1e-3), mass / total, apart, turned,
        np.sqrt(np.abs(total**2 - along.sum(axis=1) ** 2)), np.hypot(along[:, 0], mass),
    ]  # fmt: skip
    X = np.column_stack(columns)
    X = np.sign(X) * np.log1p(np.abs(X)) + rng.normal(0.0, 0.1, X.shape)  # detectors blur; long tails are cut
    return X.astype(np.float32), y.astype(np.int8)
