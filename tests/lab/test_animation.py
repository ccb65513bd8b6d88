"""Films: what they show is the recorded run."""

import numpy as np
import pytest

from hinge.dual.formulations import c_svc
from hinge.kernel.kernels import Kernel
from hinge.lab.animation import draw, record
from reference import kernel_matrix, violation

KERNEL = Kernel("rbf", gamma=4.0)


@pytest.fixture(scope="module")
def film():
    random = np.random.default_rng(0)
    X = random.uniform(-1, 1, size=(40, 2))
    return record(X, np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0), KERNEL, 10.0, "smo-second-order")


def test_every_step_is_there_with_its_pair(film):
    assert film.trace.iterations.tolist() == list(range(len(film.trace)))
    assert all(len(film.moved(step)) == 2 for step in range(1, len(film.trace)))
    K = kernel_matrix("rbf", film.X, film.X, gamma=4.0)
    problem = c_svc(film.y, C=10.0)
    for step in (0, 7, len(film.trace) - 1):
        assert film.trace.violation[step] == pytest.approx(violation(film.beta[step], K, problem), rel=1e-3)


def test_frames_are_the_first_steps_and_the_last(film):
    last = len(film.trace) - 1
    frames = film.frames(20)
    assert len(frames) == 20
    assert (np.diff(frames) > 0).all()
    assert frames[:3].tolist() == [0, 1, 2]
    assert frames[-1] == last
    assert film.frames(last + 5).tolist() == list(range(last + 1))


def test_a_film_is_a_gif_and_stills(film, tmp_path):
    pytest.importorskip("matplotlib")
    image = pytest.importorskip("PIL.Image")
    draw(film, tmp_path / "new" / "run.gif", 3, tmp_path / "stills")
    with image.open(tmp_path / "new" / "run.gif") as shown:
        assert shown.format == "GIF"
        assert shown.n_frames >= 3
    assert sorted(path.name for path in (tmp_path / "stills").iterdir()) == [
        f"step-{step:06d}.png" for step in film.frames(3)
    ]


def test_what_cannot_be_shown_is_refused(film, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="two features, got 3"):
        record(np.zeros((4, 3)), np.array([1.0, -1.0, 1.0, -1.0]), KERNEL, 1.0, "smo-mvp")
    with pytest.raises(ValueError, match="up to 2,000 samples"):
        record(np.zeros((2001, 2)), np.ones(2001), KERNEL, 1.0, "smo-mvp")
    pytest.importorskip("matplotlib")
    with pytest.raises(ValueError, match=r"a \.gif or an \.mp4 file"):
        draw(film, tmp_path / "run.avi")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match="ffmpeg"):
        draw(film, tmp_path / "run.mp4")
