"""The films of the documentation: real runs, recorded step by step when the site is built."""

from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent / "explanation" / "generated"

_FRAMES = 24


def _waves(n, seed):
    random = np.random.default_rng(seed)
    X = random.uniform(-1, 1, size=(n, 2))
    return X, np.where(np.sin(4 * X[:, 0]) * 0.5 > X[:, 1] + 0.15 * random.normal(size=n), 1.0, -1.0)


def _films():
    """Block decomposition with small working sets; two rules of SMO on the same samples."""
    from hinge import Kernel, Settings, Sizes
    from hinge.lab.animation import record

    sizes = Sizes(one_set=60, smallest_set=40, largest_set=40, cheap_subset=100, dear_subset=100)
    kernel = Kernel("rbf", gamma=4.0)
    yield "decomposition", record(*_waves(400, 3), kernel, 10.0, "block", Settings(sizes=sizes))
    for name in ("smo-second-order", "smo-hmg"):
        yield name, record(*_waves(120, 5), kernel, 10.0, name)


def draw(folder=FOLDER):
    """Write the films, unless they are there."""
    from hinge.lab.animation import draw

    names = ("decomposition", "smo-second-order", "smo-hmg")
    if all((folder / f"{name}.gif").exists() for name in names):
        return
    for name, film in _films():
        draw(film, folder / f"{name}.gif", _FRAMES)
