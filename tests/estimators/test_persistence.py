"""Files: skops without surprises, pickles with a version, scikit-learn's machines as LIBSVM's text."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm

import hinge
from hinge.estimators import SKOPS_TYPES, load_model, save_model
from hinge.kernel.kernels import KERNELS

X = 1.0 + np.random.default_rng(0).normal(size=(40, 2))
Y = (X[:, 0] > 1).astype(int)
NAMES = ["SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"]


def decisions(machine, X):
    return machine.decision_function(X) if hasattr(machine, "decision_function") else machine.predict(X)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix, sp.csr_array], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("name", NAMES)
def test_skops_needs_to_trust_nothing_but_the_published_types(name, container):
    skops = pytest.importorskip("skops.io")
    machine = getattr(hinge, name)(probability=True, warm_start=True).fit(container(X), Y)
    data = skops.dumps(machine)
    assert set(skops.get_untrusted_types(data=data)) <= set(SKOPS_TYPES)
    loaded = skops.loads(data, trusted=list(SKOPS_TYPES))
    np.testing.assert_array_equal(decisions(loaded, X), decisions(machine, X))
    assert loaded.report_ == machine.report_
    assert loaded.report_.converged
    assert loaded.report_.status is hinge.Status.CONVERGED


def test_the_published_types_cover_every_kernel():
    skops = pytest.importorskip("skops.io")
    for kernel in KERNELS:
        data = np.abs(X) @ np.abs(X).T if kernel == "precomputed" else np.abs(X)
        machine = hinge.SVC(kernel=kernel).fit(data, Y)
        assert set(skops.get_untrusted_types(data=skops.dumps(machine))) <= set(SKOPS_TYPES), kernel


def test_pickles_carry_the_version():
    machine = hinge.SVC().fit(X, Y)
    assert machine.__getstate__()["_hinge_version"] == hinge.__version__
    assert "_hinge_version" not in vars(pickle.loads(pickle.dumps(machine)))


@pytest.mark.parametrize(("mark", "words"), [("0.0.1", "version 0.0.1"), (None, "left no mark")])
def test_a_pickle_of_another_version_says_what_to_do(mark, words):
    machine = hinge.SVC().fit(X, Y)
    state = {**machine.__getstate__(), "_hinge_version": mark}
    if mark is None:
        del state["_hinge_version"]
    other = hinge.SVC.__new__(hinge.SVC)
    with pytest.warns(UserWarning, match=f"{words}.*Fit it again.*save_model.*as_sklearn"):
        other.__setstate__(state)
    np.testing.assert_array_equal(other.predict(X), machine.predict(X))


@pytest.mark.parametrize("name", NAMES)
def test_machines_of_scikit_learn_are_saved_as_model_files(name, tmp_path):
    theirs = getattr(sklearn.svm, name)().fit(X, Y)
    save_model(theirs, tmp_path / "model", digits=17)
    np.testing.assert_allclose(decisions(load_model(tmp_path / "model"), X), decisions(theirs, X), atol=1e-10)
    with pytest.raises(ValueError, match="not fitted yet"):
        save_model(getattr(sklearn.svm, name)(), tmp_path / "model")
