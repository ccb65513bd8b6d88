"""Certificates of fitted machines: Hinge's, scikit-learn's, and those of model files."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

import hinge
from hinge import SVC, SVR, Gram, Kernel, NuSVC, NuSVR, OneClassSVM, certificate
from hinge.dual.formulations import c_svc
from hinge.estimators.files import load_model, save_model

IRIS = StandardScaler().fit_transform(load_iris().data), load_iris().target
MOONS = make_moons(150, noise=0.3, random_state=0)
LINE = np.linspace(0, 6, 80)[:, None]
WAVE = np.sin(LINE[:, 0]) + 0.2 * np.cos(41 * LINE[:, 0])
WEIGHTS = np.random.default_rng(0).integers(0, 4, 150).astype(float)

CASES = [
    pytest.param(SVC, {"C": 3.0}, MOONS, id="SVC"),
    pytest.param(SVC, {"C": 3.0, "class_weight": "balanced"}, IRIS, id="SVC, three classes"),
    pytest.param(NuSVC, {"nu": 0.4}, MOONS, id="NuSVC"),
    pytest.param(NuSVC, {"nu": 0.3}, IRIS, id="NuSVC, three classes"),
    pytest.param(SVR, {"C": 2.0, "epsilon": 0.05}, (LINE, WAVE), id="SVR"),
    pytest.param(NuSVR, {"C": 2.0, "nu": 0.4}, (LINE, WAVE), id="NuSVR"),
    pytest.param(OneClassSVM, {"nu": 0.3}, MOONS, id="OneClassSVM"),
]


@pytest.mark.parametrize(("kind", "options", "data"), CASES)
@pytest.mark.parametrize("is_weighted", [False, True])
def test_a_fit_is_proved_again(kind, options, data, is_weighted):
    X, y = data
    weights = WEIGHTS[: len(y)] if is_weighted else None
    machine = kind(**options).fit(X, y, sample_weight=weights)
    proof = machine.certificate(X, y, weights)
    assert len(proof) == len(machine.reports_)
    assert proof.proves(1e-3)
    for one, report in zip(proof, machine.reports_, strict=True):
        assert one.objective == pytest.approx(report.objective, rel=1e-6)
        assert one.gap == pytest.approx(report.gap, abs=1e-5 * max(1.0, abs(one.objective)))


@pytest.mark.parametrize(("kind", "options", "data"), CASES)
def test_machines_of_scikit_learn_are_proved(kind, options, data):
    X, y = data
    theirs = getattr(sklearn.svm, kind.__name__)(**options).fit(X, y)
    proof = certificate(theirs, X, y)
    assert proof.violation < 2e-2  # LIBSVM's own tolerance; ν formulations are scaled by it
    assert max(proof.box_error, proof.sum_error) < 1e-6
    sharp = getattr(sklearn.svm, kind.__name__)(**options, tol=1e-7).fit(X, y)
    assert certificate(sharp, X, y).violation < 1e-5


def test_it_agrees_with_the_certificate_of_the_problem():
    X, y = MOONS
    machine = SVC(C=3.0, gamma=0.7).fit(X, y)
    beta = np.zeros(len(y))
    beta[machine.support_] = machine.dual_coef_[0]
    direct = certificate(c_svc(np.where(y == 1, 1.0, -1.0), C=3.0), Gram(X, Kernel("rbf", gamma=0.7)), beta)
    (own,) = machine.certificate(X, y)
    assert (own.violation, own.gap, own.objective) == pytest.approx(
        (direct.violation, direct.gap, direct.objective)
    )


@pytest.mark.parametrize(("kind", "options", "data"), CASES)
def test_a_model_file_is_proved_with_the_parameters_that_it_implies(tmp_path, kind, options, data):
    X, y = data
    machine = kind(**options).fit(X, y)
    save_model(machine, tmp_path / "model")
    order = np.random.default_rng(1).permutation(len(y))  # the file does not say where its vectors were
    loaded = load_model(tmp_path / "model")
    proof = loaded.certificate(X[order], y[order])
    assert proof.violation < 2e-3
    for name in ("C", "nu", "epsilon"):
        if name in options:
            assert proof.parameters[name] == pytest.approx(options[name], rel=1e-4)


def test_a_wrong_machine_is_not_proved():
    X, y = MOONS
    machine = SVC(C=3.0).fit(X, y)
    assert not certificate(machine, X, y, C=4.0).proves(1e-3)
    assert not machine.certificate(X, np.where(np.arange(len(y)) == machine.support_[0], 1 - y, y)).proves(1e-3)
    early = sklearn.svm.SVC(C=3.0, tol=0.5).fit(X, y)
    assert not certificate(early, X, y).proves(1e-3)


def test_sparse_precomputed_and_own_kernels():
    X, y = IRIS
    assert SVC().fit(sp.csr_matrix(X), y).certificate(sp.csr_matrix(X), y).proves(1e-3)
    assert SVC(kernel="precomputed").fit(X @ X.T, y).certificate(X @ X.T, y).proves(1e-3)
    assert SVC(kernel=lambda a, b: a @ b.T).fit(X, y).certificate(X, y).proves(1e-3)
    assert SVC(multi_class="ovr").fit(X, y).certificate(X, y).proves(1e-3)


def test_a_tube_without_width_pulls_samples_both_ways_by_little():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X @ [1.0, 2.0, -1.0] + rng.normal(size=60)
    pull = np.maximum(SVR(kernel="linear", epsilon=0.0, tol=1e-8).fit(X, y).dual_coef_, 0).sum()
    machine = NuSVR(kernel="linear", nu=2 * pull * (1 + 1e-4) / len(y), tol=1e-8).fit(X, y)
    assert machine.certificate(X, y).proves(1e-6)


def test_what_cannot_be_proved_says_why():
    X, y = MOONS
    machine = SVC().fit(X, y)
    with pytest.raises(ValueError, match="not among the samples"):
        machine.certificate(X + 0.5, y)
    with pytest.raises(ValueError, match="weight 0"):
        machine.certificate(X, y, np.where(np.arange(len(y)) == machine.support_[0], 0.0, 1.0))
    with pytest.raises(NotFittedError, match="not fitted yet"):
        certificate(SVC(), X, y)
    with pytest.raises(TypeError, match="got StandardScaler"):
        certificate(StandardScaler().fit(X), X, y)


def test_certificates_print_name_their_machines_and_travel():
    X, y = IRIS
    proof = SVC().fit(X, y).certificate(X, y)
    assert proof.names == ["0 against 1", "0 against 2", "1 against 2"]
    assert "C = 1" in str(proof)
    again = pickle.loads(pickle.dumps(proof))
    assert (again.names, again.violation) == (proof.names, proof.violation)
    assert hinge.Certificates is type(proof)
