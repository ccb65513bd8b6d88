"""Updates: samples come and go, weights and prices change, and the machine is that of a fit from scratch."""

from __future__ import annotations

import pickle
import signal
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from hinge import SVC, SVDD, SVR, NuSVC, NuSVR, OneClassSVM, Settings
from hinge.report import Status
from hinge.settings import Sizes
from hinge.training.machine import is_flat

TIGHT = 1e-9


class World:
    """A training set that changes, and a machine that follows."""

    def __init__(self, machine: Any, rng: np.random.Generator, n: int, n_classes: int, is_sparse: bool) -> None:
        self.machine, self.rng, self.n_classes, self.is_sparse = machine, rng, n_classes, is_sparse
        self.X, self.y = self.draw(n)
        self.w = rng.uniform(0.3, 2.0, n)
        machine.fit(self.X, self.y, sample_weight=self.w)

    def draw(self, n: int) -> tuple[Any, Any]:
        X = self.rng.normal(size=(n, 3))
        if isinstance(self.machine, SVC | NuSVC):
            y = self.rng.integers(0, self.n_classes, n)
            y[: self.n_classes] = np.arange(min(self.n_classes, n))
            X[:, 0] += y
        else:
            y = None if isinstance(self.machine, OneClassSVM | SVDD) else np.sin(X.sum(axis=1))
        if self.is_sparse:
            X = sp.csr_array(X * (self.rng.random(X.shape) < 0.7))
        return X, y

    def add(self, n: int) -> None:
        X, y = self.draw(n)
        w = self.rng.uniform(0.3, 2.0, n)
        self.machine.add(X, y, sample_weight=w)
        self.X = sp.csr_array(sp.vstack([self.X, X])) if self.is_sparse else np.vstack([self.X, X])
        self.y = None if y is None else np.concatenate([self.y, y])
        self.w = np.concatenate([self.w, w])

    def forget(self, n: int) -> None:
        gone = self.rng.choice(len(self.w), n, replace=False)
        kept = np.setdiff1d(np.arange(len(self.w)), gone)
        self.machine.forget(gone)
        self.X, self.w = self.X[kept], self.w[kept]
        self.y = None if self.y is None else self.y[kept]

    def reweight(self, n: int) -> None:
        chosen = self.rng.choice(np.flatnonzero(self.w), n, replace=False)
        weights = self.rng.uniform(0.3, 2.0, n) * (self.rng.random(n) < 0.8)
        self.machine.reweight(chosen, weights)
        self.w[chosen] = weights

    def change(self, n: int) -> None:
        name = "C" if "C" in self.machine.get_params() else "nu"
        factor = 10 ** self.rng.uniform(-0.5, 0.5) if name == "C" else self.rng.uniform(0.8, 1.2)
        self.machine.change(**{name: float(self.machine.get_params()[name] * factor)})

    def take(self, steps: list[tuple[str, int]]) -> None:
        for name, count in steps:
            getattr(self, name)(count)

    def check(self) -> None:
        machine = self.machine
        assert machine.shape_fit_[0] == len(self.w)
        fresh = clone(machine).fit(self.X, self.y, sample_weight=self.w)
        status, wanted = machine.report_.status, fresh.report_.status
        assert status == wanted or (machine.report_.converged and wanted is Status.STALLED)
        if wanted is Status.INFEASIBLE:  # no plane separates these samples
            return
        assert wanted in (Status.CONVERGED, Status.STALLED)
        queries, _ = self.draw(40)
        gap = machine._decide(queries) - fresh._decide(queries)
        scale = max(1.0, float(np.abs(fresh._decide(queries)).max()))
        pairs = zip(gap.T, machine._fitted.machines, fresh._fitted.machines, strict=True)
        for number, (column, mine, twin) in enumerate(pairs):
            if isinstance(machine, NuSVC) and is_flat(twin.solution):
                self.check_without_margin(mine, number, queries)
                continue
            free = _clearly_free(twin, fresh)
            rest = column if free else column - column.mean()  # without them intercepts are an interval
            assert np.abs(rest).max() <= 1e-7 * scale
        prove = (self.X,) if self.y is None else (self.X, self.y)
        # Where C is infinite coefficients may be millions: rounding leaves a doubt then, or ends the fit itself.
        own, found = (one.certificate(*prove, sample_weight=self.w) for one in (fresh, machine))
        doubt = own.rounding + (0.0 if machine.report_.converged else 2 * own.violation)
        assert found.violation + found.rounding <= 3 * TIGHT + doubt
        largest = max(np.abs(one.solution.beta).max() for one in machine._fitted.machines)
        assert max(found.box_error, found.sum_error) <= 3 * TIGHT * max(1.0, largest)

    def check_without_margin(self, mine: Any, number: int, queries: Any) -> None:
        """Decisions were divided by a margin of rounding: the optimum has none, and no interval is finite."""
        assert is_flat(mine.solution)
        self.machine.set_params(decision_function_shape="ovo")
        lower, upper = (values.reshape(40, -1)[:, number] for values in self.machine.decision_interval(queries))
        assert not np.isfinite(upper - lower).any()
        assert 2 * mine.solution.report.objective <= 1e-14 * float(np.abs(mine.solution.beta).sum()) ** 2  # ‖w‖²


def _clearly_free(machine: Any, fitted: Any) -> bool:
    bound = np.abs(machine.solution.beta).max(initial=0.0)
    sizes = np.abs(machine.solution.beta)
    return bool(((sizes > 1e-9 * bound) & (sizes < (1 - 1e-9) * bound)).sum() > 2)


MACHINES = {
    "svc": lambda **k: SVC(C=2.0, **k),
    "balanced": lambda **k: SVC(C=5.0, class_weight="balanced", multi_class="ovr", **k),
    "squared": lambda **k: SVC(C=2.0, loss="squared_hinge", **k),
    "separable": lambda **k: SVC(C=np.inf, **k),
    "svr": lambda **k: SVR(C=2.0, epsilon=0.05, **k),
    "squared_svr": lambda **k: SVR(C=2.0, loss="squared_epsilon_insensitive", fit_intercept=False, **k),
    "nu_svc": lambda **k: NuSVC(nu=0.3, **k),
    "nu_svr": lambda **k: NuSVR(C=2.0, nu=0.4, **k),
    "one_class": lambda **k: OneClassSVM(nu=0.3, **k),
    "svdd": lambda **k: SVDD(nu=0.3, **k),
}


@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_boxes_are_those_of_a_fit_to_the_last_bit(kernel: str) -> None:
    """Of SVDD they are w / νΣw: samples that are gone must not change how that sum is rounded."""
    for seed in range(20):
        machine = SVDD(nu=0.3, kernel=kernel, gamma=0.6, coef0=1.0, degree=2, tol=TIGHT)
        world = World(machine, np.random.default_rng(seed), 50, 2, is_sparse=False)
        world.take([("forget", 3)])
        world.check()


@pytest.mark.parametrize("seed", [98, 1067])
def test_updates_that_take_the_margin_of_nu_away(seed: int) -> None:
    """Three of a thousand random sequences: two fits divide by different rounding errors, and neither is wrong."""
    rng = np.random.default_rng(seed)
    kernel = "laplacian" if rng.choice(["rbf", "linear", "laplacian", "poly"]) == "laplacian" else "rbf"
    machine = NuSVC(nu=0.3, kernel=kernel, gamma=0.6, coef0=1.0, degree=2, tol=TIGHT)
    n_classes, is_sparse = int(rng.integers(2, 5)), bool(rng.integers(2))
    world = World(machine, np.random.default_rng(seed), 50, n_classes, is_sparse)
    steps = [
        (str(rng.choice(["add", "forget", "reweight", "change"])), int(rng.integers(1, 5)))
        for _ in range(rng.integers(1, 6))
    ]
    with pytest.warns(UserWarning, match="the margin has no width"):
        world.take(steps)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        world.check()


@pytest.mark.hypothesis
@settings(deadline=None, max_examples=30)
@given(
    kind=st.sampled_from(sorted(MACHINES)),
    kernel=st.sampled_from(["rbf", "linear", "laplacian", "poly"]),
    seed=st.integers(0, 10_000),
    n_classes=st.integers(2, 4),
    is_sparse=st.booleans(),
    steps=st.lists(
        st.tuples(st.sampled_from(["add", "forget", "reweight", "change"]), st.integers(1, 4)),
        min_size=1,
        max_size=5,
    ),
)
@example("separable", "rbf", 1, 2, True, [("forget", 1), ("add", 2)])
@example("separable", "rbf", 24, 2, True, [("forget", 3)])
def test_any_sequence_of_updates_ends_where_a_fit_does(
    kind: str, kernel: str, seed: int, n_classes: int, is_sparse: bool, steps: list[tuple[str, int]]
) -> None:
    if kind in ("one_class", "nu_svc", "nu_svr") and kernel != "laplacian":
        kernel = "rbf"  # where margins and weights do not vanish
    machine = MACHINES[kind](kernel=kernel, gamma=0.6, coef0=1.0, degree=2, tol=TIGHT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of a nu that is too large for a pair, and of rounding
        world = World(machine, np.random.default_rng(seed), 50, n_classes, is_sparse)
        world.take(steps)
        world.check()


class Divided(SVC):
    """Divides problems as large ones are divided."""

    def _settings(self) -> Settings:
        sizes = Sizes(one_set=100, smallest_set=40, largest_set=200, cheap_subset=100, one_pass=50)
        return Settings(**{**vars(super()._settings()), "sizes": sizes})


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_updates_of_what_is_trained_in_parts(precision: str, C: float) -> None:
    """Samples that lagged at the end of the fit, and residuals of single precision, do no harm."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(1500, 2))
    y = (X[:, 0] * X[:, 1] + 0.2 * rng.normal(size=1500) > 0).astype(int)
    machine = Divided(C=C, gamma=1.0, precision=precision).fit(X[:1400], y[:1400])
    assert machine.report_.most_lagging > 0
    kept = np.arange(1400)
    for step in range(12):
        if step % 3 == 0:
            machine.add(X[1400 + step : 1403 + step], 1 - y[1400 + step : 1403 + step])
            kept = np.concatenate([kept, 1400 + step + np.arange(3)])
        else:
            gone = rng.choice(len(kept), 2, replace=False) if step % 3 == 1 else machine.support_[[step, 2 * step]]
            machine.forget(gone)
            kept = np.delete(kept, gone)
        labels = np.where(kept < 1400, y[kept], 1 - y[kept])
        certificate = machine.certificate(X[kept], labels)
        assert certificate.proves(1.02e-3), step
        assert machine.report_.converged
        true = _residual(machine, X[kept], labels)
        solution = machine._fitted.machines[0].solution
        assert (np.abs(true - solution.residual) <= solution.error + 1e-12).all()


@pytest.mark.parametrize("precision", ["single", "double"])
def test_the_first_update_takes_bounds_of_samples_that_lagged_as_they_are(precision: str) -> None:
    """They are further from the margin than their bound: none of them is computed anew for a sample that goes."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(4000, 2))
    y = (X[:, 0] * X[:, 1] + 0.2 * rng.normal(size=4000) > 0).astype(int)
    machine = Divided(gamma=1.0, precision=precision).fit(X, y)
    assert np.count_nonzero(machine._fitted.machines[0].solution.error > 0.01) > 1000
    gone = machine.support_[5]
    assert machine.forget([gone]).report_.kernel_evaluations < 200 * 4000
    kept = np.delete(np.arange(4000), gone)
    assert machine.certificate(X[kept], y[kept]).proves(1.02e-3)


def _residual(machine: Any, X: Any, y: Any) -> Any:
    distances = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    coefficients = np.zeros(len(X))
    coefficients[machine.support_] = machine.dual_coef_[0]
    return np.where(y == 1, 1.0, -1.0) - np.exp(-machine._gamma * distances) @ coefficients


def test_only_the_pairs_of_classes_that_are_touched_are_trained() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 30)
    X = rng.normal(size=(120, 2)) + y[:, None]
    machine = SVC(gamma=0.5).fit(X, y)
    before = list(machine._fitted.machines)
    machine.add([[0.0, 0.5]], [1])
    for k, (old, new) in enumerate(zip(before, machine._fitted.machines, strict=True)):
        is_touched = 1 in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)][k]
        assert (new.solution is old.solution) != is_touched


@pytest.mark.parametrize("kind", ["svc", "svr", "squared"])
def test_samples_that_had_no_part_in_a_machine_leave_it_where_it_is(kind: str) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(90, 3))
    y = np.sin(X[:, 0]) if kind == "svr" else np.where(X[:, 0] + 0.3 * X[:, 1] > 0, 1, -1)
    machine = MACHINES[kind](gamma=0.3, tol=TIGHT).fit(X, y)
    others = np.setdiff1d(np.arange(90), machine.support_)
    gone, beta = others[::2], machine.dual_coef_.copy()
    kept = np.setdiff1d(np.arange(90), gone)
    weights = np.ones(len(kept))
    weights[np.searchsorted(kept, others[1])] = 3.0
    machine.forget(gone).reweight(sample_weight=weights)
    assert machine.report_.kernel_evaluations == 0
    np.testing.assert_array_equal(machine.dual_coef_, beta)
    certificate = machine.certificate(X[kept], y[kept], weights)
    assert certificate.proves(3 * TIGHT)
    assert machine.report_.gap == pytest.approx(certificate[0].gap, abs=1e-6)
    fresh = clone(machine).fit(X[kept], y[kept], sample_weight=weights)
    assert np.allclose(machine._decide(X), fresh._decide(X), atol=1e-7)
    evaluated = machine.forget([machine.support_[0]]).report_.kernel_evaluations
    assert evaluated > 0


def test_boxes_that_shrink_together_cost_few_rows() -> None:
    """The price of SVDD is 1 / νn: every sample changes every box, and nearly every variable is at a bound."""
    X = np.random.default_rng(0).normal(size=(1500, 3))
    machine = SVDD(nu=0.5, gamma=0.2).fit(X).forget([7])
    assert machine.add(X[:1]).reweight([4], 2.0).report_.kernel_evaluations < 60 * 1500
    X = np.vstack([np.delete(X, 7, axis=0), X[:1]])
    assert machine.certificate(X, sample_weight=np.where(np.arange(1500) == 4, 2.0, 1.0)).proves(1e-3)


def test_a_class_comes_and_goes() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 20)
    X = rng.normal(size=(60, 2)) + 2 * np.repeat(np.arange(3), 20)[:, None]
    for scheme in ("ovo", "ovr"):
        machine = SVC(gamma=0.5, tol=TIGHT, multi_class=scheme).fit(X[:40], y[:40])
        machine.add(X[40:], y[40:])
        assert machine.classes_.tolist() == ["a", "b", "c"]
        fresh = clone(machine).fit(X, y)
        assert np.allclose(machine._decide(X), fresh._decide(X), atol=1e-7)
        machine.forget(np.arange(20))
        assert machine.classes_.tolist() == ["b", "c"]
        fresh = clone(machine).fit(X[20:], y[20:])
        assert np.allclose(machine._decide(X), fresh._decide(X), atol=1e-7)
        assert machine.certificate(X[20:], y[20:]).proves(3 * TIGHT)


def _blobs(n: int = 60) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    y = np.arange(n) % 2
    return rng.normal(size=(n, 3)) + y[:, None], y


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m: m.forget(60), IndexError, "no sample 60: the training set has 60"),
        (lambda m: m.forget([-1]), IndexError, "no sample -1"),
        (lambda m: m.forget([0.5]), ValueError, "named by their numbers"),
        (lambda m: m.forget(np.ones(3, bool)), ValueError, "a mask of samples"),
        (lambda m: m.forget(np.arange(0, 60, 2)), ValueError, "sample 58 is the last one of class"),
        (lambda m: m.forget(np.arange(60)), ValueError, "no sample would be left"),
        (lambda m: m.reweight(sample_weight=np.zeros(60)), ValueError, "no sample would be left"),
        (lambda m: m.reweight([1], [-1.0]), ValueError, "must be finite and not negative"),
        (lambda m: m.reweight([1, 2], [1.0, 2.0, 3.0]), ValueError, "one number or one for each of 2"),
        (lambda m: m.reweight([1]), ValueError, "pass the numbers of samples and their weights"),
        (lambda m: m.change(C=-1.0), ValueError, "'C' parameter"),
        (lambda m: m.change(gamma=2.0), ValueError, "gamma cannot be changed .* C, class_weight, tol"),
        (lambda m: m.add([[1.0, 2.0]], [0]), ValueError, "2 features, but SVC is expecting 3"),
        (lambda m: m.add([[1.0, 2.0, np.nan]], [0]), ValueError, "NaN"),
        (lambda m: m.add([[1.0, 2.0, 3.0]], [0, 1]), ValueError, "inconsistent numbers of samples"),
        (lambda m: m.add([[1.0, 2.0, 3.0]]), ValueError, "requires y"),
        (lambda m: m.add([[1.0, 2.0, 3.0]], ["left"]), ValueError, "y has labels like"),
        (lambda m: m.set_params(kernel="linear").forget(1), ValueError, "fit again"),
        (lambda m: pickle.loads(pickle.dumps(m)).forget(1), NotFittedError, "without its training samples"),
        (lambda m: pickle.loads(pickle.dumps(m)).partial_fit([[1, 2, 3]], [0]), NotFittedError, "without its"),
        (lambda m: SVC().forget(1), NotFittedError, "not fitted yet"),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(call: Any, error: type, message: str) -> None:
    X, y = _blobs()
    machine = SVC().fit(X, y)
    before = dict(vars(machine))
    with pytest.raises(error, match=message):
        call(machine)
    after = {name: value for name, value in vars(machine).items() if name != "kernel"}
    assert all(before[name] is value for name, value in after.items())


def test_a_sample_of_weight_zero_is_not_kept() -> None:
    X, y = _blobs()
    machine = SVC().fit(X, y).reweight([4], 0.0)
    assert machine.shape_fit_[0] == 60
    assert machine.certificate(X, y, np.where(np.arange(60) == 4, 0.0, 1.0)).proves(1e-3)
    with pytest.raises(ValueError, match="sample 4 had the weight 0"):
        machine.reweight([4], 1.0)
    assert machine.forget([4, 5]).shape_fit_[0] == 58


def test_an_interrupted_update_leaves_the_machine_as_it_was() -> None:
    X, y = _blobs()
    machine = SVC().fit(X, y).set_params(callback=lambda progress: signal.raise_signal(signal.SIGINT))
    before = dict(vars(machine))
    with pytest.raises(KeyboardInterrupt, match="as it was"):
        machine.forget([machine.support_[0]])
    assert vars(machine) == before


def test_an_update_that_a_limit_ends_says_so() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    y = rng.integers(0, 2, 400)
    machine = SVC(C=10.0).fit(X[:200], y[:200])
    machine.set_params(max_iter=3)
    with pytest.warns(UserWarning, match="terminated early"):
        machine.add(X[200:], y[200:])
    assert machine.shape_fit_[0] == 400
    machine.set_params(max_iter=-1)
    assert machine.change(C=10.0).report_.converged
    assert machine.certificate(X, y).proves(1e-3)


def test_probabilities_are_those_of_a_fit() -> None:
    X, y = _blobs()
    machine = SVC(gamma=0.3, probability=True, random_state=0, tol=1e-8).fit(X[:50], y[:50]).add(X[50:], y[50:])
    fresh = clone(machine).fit(X, y)
    assert np.allclose(machine.predict_proba(X), fresh.predict_proba(X), atol=1e-5)


def test_gamma_is_kept() -> None:
    X, y = _blobs()
    machine = SVC().fit(X[:50], y[:50])
    gamma = machine._gamma
    assert machine.add(100 * X[50:], y[50:])._gamma == gamma


def test_kernels_without_features() -> None:
    X, y = _blobs()
    K = X @ X.T
    sphere = SVDD(kernel="precomputed", nu=0.2, tol=TIGHT).fit(K[:50, :50]).add(K[50:])
    plain_sphere = SVDD(kernel="linear", nu=0.2, tol=TIGHT).fit(X)
    assert sphere.radius_ == pytest.approx(plain_sphere.radius_, abs=1e-7)
    given_matrix = SVC(kernel="precomputed", tol=TIGHT).fit(K[:50, :50], y[:50]).add(K[50:], y[50:])
    called = SVC(kernel=lambda a, b: a @ b.T, tol=TIGHT).fit(X[:50], y[:50]).add(X[50:], y[50:])
    plain = SVC(kernel="linear", tol=TIGHT).fit(X, y)
    gone = [1, 2, 30]
    kept = np.delete(np.arange(60), gone)
    expected = plain.forget(gone).decision_function(X)
    assert np.allclose(given_matrix.forget(gone).decision_function(K[:, kept]), expected, atol=1e-7)
    assert np.allclose(called.forget(gone).decision_function(X), expected, atol=1e-7)
    with pytest.raises(ValueError, match="kernel values of the new samples"):
        given_matrix.add(K[50:, :50], y[50:])


def test_streams() -> None:
    X, y = _blobs()
    machine = SVC(gamma=0.4)
    with pytest.raises(ValueError, match="greater than one"):
        machine.partial_fit(X[:1], y[:1], classes=[0, 1])
    for start in range(0, 60, 20):
        machine.partial_fit(X[start : start + 20], y[start : start + 20], classes=[0, 1])
    assert machine.certificate(X, y).proves(1e-3)
    with pytest.raises(ValueError, match="label 7"):
        machine.partial_fit(X[:1], [7])
    with pytest.raises(ValueError, match="not those of the first call"):
        machine.partial_fit(X[:1], y[:1], classes=[0, 2])
    assert machine.fit(X, y + 5).partial_fit(X[:1], [7]).classes_.tolist() == [5, 6, 7]
    for regressor in (SVR(), NuSVR()):
        regressor.partial_fit(X[:30], X[:30, 0]).partial_fit(X[30:], X[30:, 0])
        assert regressor.shape_fit_ == (60, 3)
    assert OneClassSVM().partial_fit(X[:30]).partial_fit(X[30:]).shape_fit_ == (60, 3)


def test_parameters_that_were_set_before_are_followed() -> None:
    X, y = _blobs()
    machine = SVC(gamma=0.4).fit(X, y).set_params(C=30.0)
    machine.forget([0])
    assert machine.certificate(X[1:], y[1:]).proves(1e-3)
    assert machine.change(tol=1e-8).report_.violation <= 1e-8


def test_a_third_class_comes_to_two() -> None:
    """The machine of two classes is that of the second against the rest, and the other way round of the first."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 3)), np.repeat([0, 1, 2], 40)
    X[:, :2] += 2.0 * np.column_stack([y == 1, y == 2])
    machine = SVC(gamma=0.5, multi_class="ovr", loss="squared_hinge", tol=1e-6).fit(X[:80], y[:80])
    machine.add(X[80:], y[80:])
    fresh = SVC(gamma=0.5, multi_class="ovr", loss="squared_hinge", tol=1e-6).fit(X, y)
    assert machine.certificate(X, y).proves(1e-6)
    np.testing.assert_allclose(machine.decision_function(X), fresh.decision_function(X), atol=1e-4)
