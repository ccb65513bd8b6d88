"""Kernel functions of the user's own: what they are called with, how often, and what comes of it.

The contract is scikit-learn's: ``kernel(X, X)`` once at fit, ``kernel(X_new, X)`` once at prediction, with the
very objects that the caller passed.
"""

import signal
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV

from hinge import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from hinge.selection import GridSearch, cross_validate

RNG = np.random.default_rng(0)
Y = np.arange(60) % 3
X = RNG.normal(size=(60, 4)) + np.eye(3, 4)[Y]
MACHINES = [SVC(), NuSVC(nu=0.3), SVR(), NuSVR(), OneClassSVM(nu=0.3)]
every_machine = pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: type(machine).__name__)


def rbf(first, second):
    return rbf_kernel(first, second, gamma=0.3)


def watched(function=rbf):
    """A kernel function that remembers what it was called with; clones of an estimator share it."""

    def kernel(first, second):
        kernel.calls.append((first, second))
        return function(first, second)

    kernel.calls = []
    return kernel


# ---------------------------------------------------------------------- how often


@every_machine
@pytest.mark.parametrize("probability", [False, True])
def test_one_call_at_fit_and_one_at_prediction(machine, probability):
    rng = np.random.default_rng(1)
    y = np.arange(500) % 5
    many = rng.normal(size=(500, 5)) + np.eye(5)[y]
    kernel, new = watched(), rng.normal(size=(7, 5))
    machine = clone(machine).set_params(kernel=kernel, probability=probability).fit(many, y)
    ((first, second),) = kernel.calls
    assert first is many
    assert second is many
    kernel.calls.clear()
    machine.predict(new)
    ((first, second),) = kernel.calls
    assert first is new
    assert second is many


def test_samples_of_weight_zero_are_seen_by_the_kernel_alone():
    kernel = watched()
    weights = np.where(np.arange(60) < 30, 1.0, 0.0)
    machine = SVC(kernel=kernel).fit(X, Y, sample_weight=weights)
    ((first, second),) = kernel.calls
    assert first is second is X
    expected = SVC(gamma=0.3).fit(X[:30], Y[:30]).decision_function(X)
    np.testing.assert_allclose(machine.decision_function(X), expected, atol=1e-7)


def test_beyond_the_budget_blocks_give_the_same_machine():
    kernel = watched()
    rng = np.random.default_rng(2)
    many = rng.normal(size=(300, 4))
    y = (many[:, 0] > 0).astype(int)
    machine = SVC(kernel=kernel, cache_size=0.5, probability=True, random_state=0).fit(many, y)  # 65,536 values
    assert len(kernel.calls) > 1
    assert max(len(first) * len(second) for first, second in kernel.calls) < 300**2
    assert sum(len(first) == len(second) == 1 for first, second in kernel.calls) == 0
    expected = SVC(gamma=0.3).fit(many, y).decision_function(many)
    np.testing.assert_allclose(machine.decision_function(many), expected, atol=1e-6)


def test_predictions_beyond_memory_come_in_blocks_of_rows(monkeypatch):
    kernel = watched()
    machine = SVC(kernel=kernel).fit(X, Y)
    expected = machine.decision_function(X)
    kernel.calls.clear()
    monkeypatch.setattr("hinge.model.default_cache_bytes", lambda: 8 * 60 * 25)
    np.testing.assert_allclose(machine.decision_function(X), expected)
    assert [len(first) for first, _ in kernel.calls] == [25, 25, 10]
    assert all(second is X for _, second in kernel.calls)


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        (NuSVC(nu=0.9), "nu is infeasible: nu = 0.9"),
        (SVC(class_weight={7: -1.0}), "class_weight"),
        (NuSVR(nu=2.0), "nu"),
    ],
    ids=["nu", "class weight", "parameter"],
)
def test_what_is_wrong_is_told_before_the_kernel_is_called(machine, message):
    kernel = watched()
    with pytest.raises(ValueError, match=message):
        machine.set_params(kernel=kernel).fit(X, np.arange(60) < 6)
    assert not kernel.calls


def test_searches_call_it_once_for_all_folds_and_candidates():
    kernel, grid = watched(), {"C": [0.1, 1.0, 10.0]}
    ours = GridSearch(SVC(kernel=kernel, tol=1e-6), grid, cv=4, refit=False).fit(X, Y)
    ((first, second),) = kernel.calls
    assert first is second
    theirs = GridSearchCV(sklearn.svm.SVC(kernel=kernel, tol=1e-6), grid, cv=4, refit=False).fit(X, Y)
    for name in ("split0_test_score", "split3_test_score", "mean_test_score"):
        np.testing.assert_allclose(ours.cv_results_[name], theirs.cv_results_[name])


# ---------------------------------------------------------------------- with what


def of_frames(first, second):
    assert isinstance(first, pd.DataFrame)
    assert isinstance(second, pd.DataFrame)
    same = first["name"].to_numpy()[:, None] == second["name"].to_numpy()
    return same + np.exp(-((first["size"].to_numpy()[:, None] - second["size"].to_numpy()) ** 2))


def of_words(first, second):
    return np.array([[len(set(a) & set(b)) for b in second] for a in first], dtype=float)


def of_word_columns(first, second):
    assert first.ndim == second.ndim == 2
    return of_words(first.ravel(), second.ravel())


def of_matrices(first, second):
    assert first.ndim == second.ndim == 3
    return np.einsum("iab,jab->ij", first, second)


def of_phases(first, second):
    return np.abs(first @ second.conj().T) ** 2


def despite_gaps(first, second):
    return rbf_kernel(np.nan_to_num(first), np.nan_to_num(second), gamma=0.3)


WORDS = ["apple", "pear", "plum", "peach", "cat", "dog", "cow", "rabbit", "red", "green", "blue", "grey"] * 5
GAPS = np.where(RNG.random(X.shape) < 0.2, np.nan, X)
CONTAINERS = {
    "data frame": (pd.DataFrame({"name": WORDS, "size": X[:, 0]}), of_frames),
    "list of strings": (WORDS, of_words),
    "array of strings": (np.array(WORDS), of_words),
    "column of strings": (np.array(WORDS)[:, None], of_word_columns),
    "column of objects": (np.array(WORDS, dtype=object)[:, None], of_word_columns),
    "three dimensions": (RNG.normal(size=(60, 3, 3)) + np.eye(3)[Y][:, None], of_matrices),
    "csr": (sp.csr_array(X), lambda a, b: a @ b.T),
    "csc": (sp.csc_matrix(X), lambda a, b: (a @ b.T).toarray()),
    "complex": (X + 1j * X[:, ::-1], of_phases),
    "NaN": (GAPS, despite_gaps),
    "list of arrays": (list(X), lambda a, b: rbf_kernel(np.array(a), np.array(b))),
    "ragged list": ([row[: 1 + t % 4] for t, row in enumerate(X)], lambda a, b: of_lengths(a, b)),
}


def of_lengths(first, second):
    return np.array([[a[: len(b)] @ b[: len(a)] for b in second] for a in first])


@every_machine
@pytest.mark.parametrize("name", CONTAINERS)
def test_any_container_reaches_the_kernel_as_it_is(name, machine):
    """And gives the machine of the matrix of its values."""
    data, function = CONTAINERS[name]
    machine = clone(machine)
    kernel = watched(function)
    values = function(data, data)
    values = values.toarray() if sp.issparse(values) else values
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message="nu = 0.3 is smaller than these data allow")
        warnings.filterwarnings("ignore", message="the weight vector vanishes")
        called = clone(machine).set_params(kernel=kernel).fit(data, Y)
        given = machine.set_params(kernel="precomputed").fit(values, Y)
    assert kernel.calls[0][0] is kernel.calls[0][1] is data
    np.testing.assert_array_equal(called.predict(data), given.predict(values))
    np.testing.assert_array_equal(called.support_, given.support_)
    assert kernel.calls[1][0] is kernel.calls[1][1] is data
    support = called.support_vectors_
    assert (support.shape[0] if hasattr(support, "shape") else len(support)) == len(called.support_)


@pytest.mark.parametrize("name", ["data frame", "list of strings", "three dimensions", "csc", "NaN"])
def test_searches_slice_any_container(name):
    data, function = CONTAINERS[name]
    kernel = watched(function)
    ours = cross_validate(SVC(kernel=kernel), data, Y, cv=3)["test_score"]
    assert len(kernel.calls) == 1
    theirs = sklearn.svm.SVC(kernel=function)
    theirs = GridSearchCV(theirs, {"C": [1.0]}, cv=3).fit(data, Y).cv_results_
    np.testing.assert_allclose(ours, [theirs[f"split{k}_test_score"][0] for k in range(3)])


def test_blocks_slice_any_container():
    for name in ("data frame", "list of strings", "column of strings", "three dimensions", "csc"):
        data, function = CONTAINERS[name]
        machine = SVC(kernel=function, decision_function_shape="ovo", tol=1e-6)
        whole = machine.fit(data, Y).decision_function(data)
        blocks = machine.set_params(cache_size=0.02).fit(data, Y).decision_function(data)
        np.testing.assert_allclose(blocks, whole, atol=1e-4)


class Memory:
    """Knows its training samples by identity alone, as graph kernels with a vocabulary of their own do."""

    def __call__(self, first, second):
        if first is second:
            self.known = first
            return rbf_kernel(first, gamma=0.3)
        assert second is self.known
        return rbf_kernel(first, self.known, gamma=0.3)


@every_machine
def test_kernels_that_know_only_the_whole_training_set(machine):
    machine = clone(machine).set_params(kernel=Memory(), gamma=0.3).fit(X, Y)
    named = clone(machine).set_params(kernel="rbf").fit(X, Y)
    np.testing.assert_allclose(machine.predict(X[:9]), named.predict(X[:9]), atol=1e-6)


def test_wrong_lengths_and_missing_targets_are_told():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        SVC(kernel=of_words).fit(WORDS, Y[:-1])
    with pytest.raises(ValueError, match="requires y"):
        SVC(kernel=of_words).fit(WORDS, None)
    with pytest.raises(ValueError, match="NaN"):
        SVR(kernel=of_words).fit(WORDS, np.full(60, np.nan))


def test_asymmetry_of_single_precision_is_told_and_costs_no_second_call():
    def rounded(first, second):
        return rbf_kernel(first, second, gamma=0.3) * (1 + 1e-7 * np.arange(len(second)) / 60)

    kernel = watched(rounded)
    with pytest.warns(UserWarning, match=r"up to rounding.*differ by up to 7\.\d+e-08 of.*symmetric part"):
        machine = SVC(kernel=kernel).fit(X, Y)
    np.testing.assert_array_equal(machine.predict(X), SVC(gamma=0.3).fit(X, Y).predict(X))
    assert len(kernel.calls) == 2


# ---------------------------------------------------------------------- subclasses, as libraries write them


class Riemannian(SVC):
    """Sets its kernel in fit, for samples that are matrices."""

    def __init__(self, *, reference=None, C=1.0):
        self.reference = reference
        super().__init__(kernel="precomputed", C=C)

    def fit(self, X, y, sample_weight=None):
        self.reference_ = X.mean(axis=0) if self.reference is None else self.reference
        self.kernel = partial(self._compare, center=self.reference_)
        return super().fit(X, y, sample_weight)

    @staticmethod
    def _compare(first, second, center):
        return np.einsum("iab,jab->ij", first - center, second - center)


class Device:
    def __init__(self, function=rbf):
        self.function, self.n_jobs = function, 0

    def evaluate(self, first, second):
        self.n_jobs += 1
        return self.function(first, second)


class Quantum(SVC):
    """Takes the method of an object for its kernel, hides that parameter and passes all others on."""

    def __init__(self, *, device=None, **others):
        self._device = device or Device()
        super().__init__(kernel=self._device.evaluate, **others)

    @property
    def device(self):
        return self._device

    @device.setter
    def device(self, device):
        self._device, self.kernel = device, device.evaluate

    @classmethod
    def _get_param_names(cls):
        names = SVC._get_param_names()
        names.remove("kernel")
        return sorted([*names, "device"])


def test_a_subclass_may_set_its_kernel_in_fit():
    matrices, _ = CONTAINERS["three dimensions"]
    machine = Riemannian(C=2.0).fit(matrices, Y)
    flat = (matrices - matrices.mean(axis=0)).reshape(60, -1)
    expected = SVC(kernel="linear", C=2.0).fit(flat, Y)
    np.testing.assert_allclose(machine.decision_function(matrices), expected.decision_function(flat), atol=1e-5)
    assert clone(machine).get_params() == {"C": 2.0, "reference": None}


def test_a_subclass_with_a_fit_of_its_own_is_left_to_scikit_learn():
    """Its kernel follows from the training fold, which only its own ``fit`` knows."""
    matrices, _ = CONTAINERS["three dimensions"]
    for search in (GridSearch(Riemannian(), {"C": [0.01, 1.0]}).fit, partial(cross_validate, Riemannian())):
        with pytest.raises(TypeError, match=r"Riemannian has a fit of its own.*scikit-learn"):
            search(matrices, Y)


def test_a_subclass_may_hide_its_kernel():
    machine = Quantum(C=2.0, random_state=1).fit(X, Y)
    expected = SVC(C=2.0, gamma=0.3).fit(X, Y)
    np.testing.assert_allclose(machine.decision_function(X), expected.decision_function(X), atol=1e-6)
    assert machine.device.n_jobs == 2
    machine.device = Device(lambda a, b: a @ b.T)
    np.testing.assert_array_equal(machine.fit(X, Y).predict(X), SVC(kernel="linear", C=2.0).fit(X, Y).predict(X))
    search = GridSearch(Quantum(), {"C": [0.1, 1.0]}, cv=3).fit(X, Y)
    expected = GridSearch(SVC(gamma=0.3), {"C": [0.1, 1.0]}, cv=3).fit(X, Y)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"])


@pytest.mark.parametrize("call", ["fit", "predict", "cross_validate"])
def test_ctrl_c_ends_a_kernel_function_in_the_midst_of_its_work(call):
    """Such functions may take hours, and ask nobody whether to stop."""
    ends, is_impatient = [], call != "predict"

    def slow(a, b):
        if is_impatient:
            signal.raise_signal(signal.SIGINT)
        ends.append(call)
        return a @ b.T

    machine = SVC(kernel=slow)
    if call == "predict":
        machine.fit(X, Y)
        ends.clear()
        is_impatient = True
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        {
            "fit": lambda: machine.fit(X, Y),
            "predict": lambda: machine.predict(X),
            "cross_validate": lambda: cross_validate(machine, X, Y, n_jobs=1),
        }[call]()
    assert ends == []
    assert signal.getsignal(signal.SIGINT) is handler
    is_impatient = False
    assert machine.fit(X, Y).report_.converged
