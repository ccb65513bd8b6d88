"""Hinge in the place of scikit-learn's classes: names, instances, subclasses, pickles, processes, the way back."""

import copy
import gc
import logging
import pickle
import subprocess
import sys
import types
from abc import ABC

import numpy as np
import pytest
import sklearn.svm
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import hinge
import hinge.patch  # the module of that name is what is called

X = np.random.default_rng(0).normal(size=(40, 2))
Y = (X[:, 0] > 0).astype(int)
NAMES = ["SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM", "LinearSVC", "LinearSVR"]
ORIGINALS = {name: getattr(sklearn.svm, name) for name in NAMES}  # in a dictionary, where no patch reaches


@pytest.fixture
def patched():
    with hinge.patched():
        yield


@pytest.fixture
def client(monkeypatch):
    """A module that has imported scikit-learn's SVC before, under another name."""
    module = types.ModuleType("client_of_svc")
    module.Machine = ORIGINALS["SVC"]
    monkeypatch.setitem(sys.modules, "client_of_svc", module)
    return module


@pytest.fixture(autouse=True)
def unpatched_afterwards():
    yield
    assert not hinge.is_patched()
    assert all(getattr(sklearn.svm, name) is original for name, original in ORIGINALS.items())


@pytest.mark.parametrize("name", NAMES)
def test_classes_are_replaced_where_they_are_public_and_where_they_are_defined(name):
    home = sys.modules[ORIGINALS[name].__module__]
    hinge.patch()
    assert hinge.is_patched()
    assert getattr(sklearn.svm, name) is getattr(home, name) is getattr(hinge, name)
    hinge.unpatch()
    assert getattr(home, name) is ORIGINALS[name]


def test_names_bound_before_are_replaced_told_and_given_back(client, caplog):
    with caplog.at_level(logging.INFO, logger="hinge"), hinge.patched():
        assert client.Machine is hinge.SVC
        (line,) = caplog.messages
        assert "SVC as Machine in client_of_svc" in line
        assert "sklearn.svm" in line
        client.Machine = other = object()
    assert client.Machine is other  # what the client has bound since is left alone


def test_machines_of_both_kinds_are_instances_while_patched():
    theirs, ours = ORIGINALS["SVC"](), hinge.SVC()
    with hinge.patched():
        assert isinstance(theirs, sklearn.svm.SVC)
        assert isinstance(ours, sklearn.svm.SVC)
        assert issubclass(ORIGINALS["SVC"], sklearn.svm.SVC)
        assert not isinstance(theirs, sklearn.svm.SVR)
        assert not isinstance(theirs, hinge.estimators.base.KernelMachine)
    assert not isinstance(theirs, hinge.SVC)
    assert not isinstance(ours, sklearn.svm.SVC)


def test_classes_derived_while_patched_are_hinges(patched):
    class Derived(sklearn.svm.SVC):
        pass

    class Abstract(sklearn.svm.SVC, ABC):  # scikit-learn's classes can be mixed with abstract ones
        pass

    for kind in (Derived, Abstract):
        machine = clone(kind(C=2.0)).fit(X, Y)
        assert machine.report_.converged


def test_classes_that_exist_already_are_named_in_a_warning():
    kind = type("Earlier", (ORIGINALS["SVR"],), {"__module__": "client_of_svr"})
    with pytest.warns(UserWarning, match=r"client_of_svr\.Earlier existed already"):
        hinge.patch()
    assert isinstance(kind(), sklearn.svm.SVR)
    hinge.unpatch()
    with pytest.raises(UserWarning, match="Earlier"), hinge.patched():  # here warnings are errors
        pass
    del kind
    gc.collect()  # a class lives as long as nobody looks for its cycles


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("protocol", [2, 5])
def test_pickles_of_scikit_learn_stay_scikit_learns(name, protocol):
    theirs = ORIGINALS[name]().fit(X, Y)
    before = pickle.dumps(theirs, protocol)
    with hinge.patched():
        meanwhile = pickle.dumps(theirs, protocol)
        copies = [pickle.loads(before), pickle.loads(meanwhile), copy.copy(theirs), copy.deepcopy(theirs)]
    copies += [pickle.loads(before), pickle.loads(meanwhile)]
    for machine in copies:
        assert type(machine) is ORIGINALS[name]
        assert vars(machine).keys() == vars(theirs).keys()
        np.testing.assert_array_equal(machine.predict(X), theirs.predict(X))
    assert b"hinge.estimators" not in meanwhile  # so that it can be read where there is no Hinge


def test_machines_of_hinge_survive_the_way_back(patched):
    ours = sklearn.svm.SVC().fit(X, Y)
    assert type(pickle.loads(pickle.dumps(ours))) is hinge.SVC


def test_other_processes_get_the_class_that_was_sent(patched):
    ours = GridSearchCV(sklearn.svm.SVC(), {"C": [1.0, 2.0]}, n_jobs=2, cv=2).fit(X, Y).best_estimator_
    theirs = GridSearchCV(ORIGINALS["SVC"](), {"C": [1.0, 2.0]}, n_jobs=2, cv=2).fit(X, Y).best_estimator_
    assert (type(ours), type(theirs)) == (hinge.SVC, ORIGINALS["SVC"])


def test_what_changes_nothing_is_said(caplog):
    hinge.unpatch()
    assert "not patched; nothing was changed" in caplog.messages[-1]
    hinge.patch()
    hinge.patch()
    assert "patched already; nothing was changed" in caplog.messages[-1]
    with hinge.patched():
        pass
    assert hinge.is_patched()  # a statement within a patch does not end it
    hinge.unpatch()


def test_errors_within_the_statement_end_the_patch():
    with pytest.raises(ZeroDivisionError), hinge.patched():
        _ = 1 / 0
    assert not hinge.is_patched()


def test_a_scikit_learn_without_one_of_the_classes(monkeypatch):
    fewer = {name: kind for name, kind in ORIGINALS.items() if name != "NuSVR"}
    monkeypatch.setattr("hinge.patch.switch.originals", lambda: fewer)
    with pytest.warns(UserWarning, match=r"has no NuSVR in sklearn\.svm"):
        hinge.patch()
    assert sklearn.svm.NuSVR is ORIGINALS["NuSVR"]
    assert sklearn.svm.SVR is hinge.SVR
    hinge.unpatch()


def run(*arguments, folder):
    command = [sys.executable, "-m", "hinge.patch", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)


def test_scripts_run_patched_with_their_arguments(tmp_path):
    (tmp_path / "neighbour.py").write_text("from sklearn.svm import SVC\n")
    (tmp_path / "script.py").write_text(
        "import sys\nfrom neighbour import SVC\n"
        "if __name__ == '__main__':\n    print(SVC.__module__, sys.argv[1:])\n"
    )
    done = run(tmp_path / "script.py", "-a", "b", folder="/")
    assert done.stdout == "hinge.estimators.svc ['-a', 'b']\n"
    assert len(done.stderr.splitlines()) == 1
    assert "OneClassSVM" in done.stderr
    assert run("-m", "neighbour", folder=tmp_path).returncode == 0


def test_a_script_that_is_missing(tmp_path):
    assert "there is no file nowhere.py" in run("nowhere.py", folder=tmp_path).stderr
    assert "Usage" in run(folder=tmp_path).stderr
