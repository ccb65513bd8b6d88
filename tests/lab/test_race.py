"""Races: several algorithms on one problem, their traces, what is said of them and drawn."""

import numpy as np
import pytest

import hinge
from hinge import Gram, Kernel, Settings, certificate
from hinge.dual.formulations import c_svc
from hinge.lab import figures
from hinge.lab.own import algorithm_of
from hinge.lab.race import Track, race
from hinge.lab.report import count, fit_exponent, seconds
from hinge.report import Status

NAMES = ["auto", "smo-mvp", "smo-second-order", "smo-hmg"]


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(3)
    X = random.normal(size=(150, 4))
    return X, np.where(X[:, 0] + 0.5 * random.normal(size=150) > 0, 1.0, -1.0)


def track(data, kernel=Kernel("rbf", gamma=0.3), C=2.0):  # noqa: B008
    return Track(*data, kernel, C, threads=1)


@pytest.fixture(scope="module")
def result(data):
    return race(track(data), NAMES)


def test_everyone_arrives_and_the_certificate_agrees(data, result):
    X, y = data
    gram, problem = Gram(X, Kernel("rbf", gamma=0.3)), c_svc(y, C=2.0)
    assert list(result.runs) == NAMES
    for name, run in result.runs.items():
        assert run.report.converged
        proof = certificate(problem, gram, run.beta)
        assert proof.violation <= 1e-3
        # optimum ≤ objective ≤ optimum + duality gap, whoever ran
        assert result.optimum <= proof.objective + 1e-9
        assert proof.objective - result.optimum <= proof.gap + 1e-9
        assert result.gap(name)[-1] < 1e-4


def test_traces_only_go_forward(result):
    for name in result.runs:
        trace = result.trace(name)
        for work in (trace.iterations, trace.kernel_evaluations, trace.seconds):
            assert (np.diff(work) >= 0).all()
        assert (result.gap(name) >= 0).all()
        assert len(trace) == len(result.gap(name))


def test_progress_is_told_and_may_end_a_run(data):
    heard = []

    def listen(name, progress):
        heard.append(name)
        return name == "smo-mvp"

    stopped = race(track(data), ["smo-mvp", "smo-hmg"], on_progress=listen)
    assert set(heard) == {"smo-mvp", "smo-hmg"}
    assert stopped.runs["smo-mvp"].report.status is Status.INTERRUPTED
    assert stopped.runs["smo-hmg"].report.converged


def test_settings_hold_for_all(data):
    strict = race(track(data, Kernel("linear"), 1.0), NAMES, Settings(tol=1e-6))
    assert all(run.report.violation <= 1e-6 for run in strict.runs.values())


@pytest.mark.parametrize(
    ("names", "message"), [(["no-such"], "no algorithm is called 'no-such'"), (["auto", "auto"], "runs once")]
)
def test_wrong_names(data, names, message):
    with pytest.raises(ValueError, match=message):
        race(track(data, Kernel("linear"), 1.0), names)


# ---------------------------------------------------------------------- numbers and words


def test_the_confidence_interval_covers_as_often_as_it_says():
    random = np.random.default_rng(0)
    sizes = np.array([1000.0, 2000.0, 4000.0, 8000.0, 16000.0])
    fits = [fit_exponent(sizes, sizes**1.9 * np.exp(0.2 * random.normal(size=5))) for _ in range(400)]
    share = np.mean([abs(fit.value - 1.9) <= fit.half_width for fit in fits])
    assert 0.92 <= share <= 0.98
    assert fit_exponent([1.0, 2.0], [1.0, 2.0]) is None
    assert str(fits[0]).endswith("(5)")


def test_numbers_as_text():
    assert [seconds(value) for value in (0.001234, 12.34, 1234.5, None)] == ["0.00123", "12.3", "1,234", "–"]
    assert count(1e6) == "1,000,000"


# ---------------------------------------------------------------------- pictures


def test_no_two_curves_look_alike():
    looks = [tuple(figures.style(k).values()) for k in range(28)]
    assert len(set(looks)) == 28
    assert len({look[:2] for look in looks}) == 28  # colour and line alone tell them apart


def test_a_race_is_drawn(result, tmp_path):
    pytest.importorskip("matplotlib")
    figures.draw_race(result, tmp_path / "race.png")
    assert (tmp_path / "race.png").read_bytes().startswith(b"\x89PNG")


def test_a_map_has_a_place_for_everything(tmp_path):
    pytest.importorskip("matplotlib")
    ratios = np.array([[1.5, np.nan], [-2.0, 0.0]])
    marks = np.array([["", " •"], [" ×", ""]], dtype=object)
    figures.draw_map([1.0, 10.0], [0.1, 1.0], [figures.Duel(ratios, "one")], marks, "HMG", tmp_path / "map.png")
    assert (tmp_path / "map.png").stat().st_size > 1000


# ---------------------------------------------------------------------- solvers of one's own


def climb(problem, gram, settings):
    """Projected gradient steps, as a researcher would write them down."""
    K = gram.block(np.arange(problem.n_samples))
    beta, rate = problem.start.copy(), 1 / np.linalg.norm(K, 2)
    for _ in range(3000):
        residual = problem.v - K @ beta
        yield beta
        after = problem.near(np.clip(beta + rate * residual, problem.lo, problem.hi))
        if np.abs(after - beta).max() < 1e-7:
            return
        beta = after


def borrowed(problem, gram, settings):
    return hinge.solve(problem, gram, settings)


def at_once(problem, gram, settings):
    return hinge.solve(problem, gram, settings).beta


def test_a_function_of_ones_own_enters_the_race(data):
    entrants = ["smo-mvp", climb, borrowed, algorithm_of(at_once, "mine")]
    result = race(track(data), entrants, Settings(tol=1e-2))
    assert list(result.runs) == ["smo-mvp", "climb", "borrowed", "mine"]
    assert all(result.gap(name)[-1] < 1e-2 for name in result.runs)
    assert len(result.trace("climb")) > 10
    assert result.trace("climb").violation[0] > 10 * result.trace("climb").violation[-1]
    problem, gram = c_svc(data[1], C=2.0), Gram(data[0], Kernel("rbf", gamma=0.3))
    proof = certificate(problem, gram, result.runs["climb"].beta)
    assert result.runs["climb"].report.violation == pytest.approx(proof.violation, abs=1e-9)


def test_ones_own_solver_is_not_believed(data):
    lazy = race(track(data), [lambda problem, gram, settings: problem.start])
    (solution,) = lazy.runs.values()
    assert solution.report.status is Status.STALLED
    with pytest.raises(ValueError, match="must give β as 150 finite numbers"):
        race(track(data), [lambda problem, gram, settings: problem.start[1:]])
    with pytest.raises(TypeError, match="a solver is a function"):
        race(track(data), [3.0])


def test_limits_hold_for_ones_own_solver(data):
    def endless(problem, gram, settings):
        while True:
            yield problem.start

    stopped = algorithm_of(endless).solve(
        c_svc(data[1]), Gram(data[0], Kernel("linear")), Settings(time_limit=0.2)
    )
    assert stopped.report.status is Status.TIME_LIMIT
