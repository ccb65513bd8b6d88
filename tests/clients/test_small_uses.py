"""Small, real uses of libraries that build on `sklearn.svm`: the same answers from Hinge in its place."""

import numpy as np
import pytest
import sklearn.svm

import hinge

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 4))
Y = (X[:, 0] + 0.5 * RNG.normal(size=80) > 0.6).astype(int)
SKLEARN_SVC, SKLEARN_ONE_CLASS = ([kind] for kind in (sklearn.svm.SVC, sklearn.svm.OneClassSVM))  # out of reach


def library(name):
    """Import a library while patched, or skip the test. What it derives stays derived from Hinge's classes."""
    with hinge.patched():
        return pytest.importorskip(name, reason=f"{name} is not installed (extra: clients)", exc_type=ImportError)


pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),
]


def test_imbalanced_learn_draws_the_same_samples():
    over_sampling = library("imblearn.over_sampling")
    resampled = []
    for machine in (SKLEARN_SVC[0](), hinge.SVC()):
        sampler = over_sampling.SVMSMOTE(svm_estimator=machine, random_state=0)
        resampled.append(sampler.fit_resample(X, Y))
    (X_theirs, y_theirs), (X_ours, y_ours) = resampled
    np.testing.assert_allclose(X_ours, X_theirs)
    np.testing.assert_array_equal(y_ours, y_theirs)
    with hinge.patched():
        sampler = over_sampling.SVMSMOTE(random_state=0)
        sampler.fit_resample(X, Y)
    assert type(sampler.svm_estimator_) is hinge.SVC


def test_pyriemann_tells_covariance_matrices_apart():
    classification = library("pyriemann.classification")
    factors = RNG.normal(size=(30, 3, 8)) * np.where(np.arange(30) % 2, 1.0, 3.0)[:, None, None]
    matrices, labels = factors @ factors.transpose(0, 2, 1), np.arange(30) % 2
    machine = classification.SVC(metric="riemann").fit(matrices, labels)
    assert isinstance(machine, hinge.SVC)
    K = machine.kernel(matrices, matrices)
    theirs = SKLEARN_SVC[0](kernel="precomputed", tol=1e-8).fit(K, labels)
    np.testing.assert_allclose(machine.decision_function(matrices), theirs.decision_function(K), atol=1e-4)


def test_tslearn_classifies_series_with_its_alignment_kernel():
    svm = library("tslearn.svm")
    series = RNG.normal(size=(20, 12, 1)) + np.linspace(0, 2, 20)[:, None, None]
    labels = (np.arange(20) > 9).astype(int)
    with hinge.patched():
        machine = svm.TimeSeriesSVC(kernel="gak", gamma=5.0).fit(series, labels)
    assert type(machine.svm_estimator_) is hinge.SVC
    assert machine.score(series, labels) == 1.0


def test_grakel_kernels_and_its_reading_of_dual_coefficients():
    grakel = library("grakel")
    edges = [{(0, 1), (1, 2)}, {(0, 1), (1, 2), (0, 2)}, {(0, 1)}, {(0, 1), (1, 2), (2, 3)}]
    graphs = [
        [{*pairs, *((b, a) for a, b in pairs)}, {n: n % 2 for pair in pairs for n in pair}] for pairs in edges
    ]
    K = grakel.VertexHistogram().fit_transform(graphs) + np.eye(4)
    theirs = SKLEARN_ONE_CLASS[0](kernel="precomputed", nu=0.5, tol=1e-8).fit(K)
    ours = hinge.OneClassSVM(kernel="precomputed", nu=0.5, tol=1e-8).fit(K)
    np.testing.assert_allclose(ours.decision_function(K), theirs.decision_function(K), atol=1e-6)
    np.testing.assert_allclose(ours._dual_coef_[0], theirs._dual_coef_[0], atol=1e-6)


def test_pyod_finds_the_same_outliers():
    ocsvm = library("pyod.models.ocsvm")
    with hinge.patched():
        ours = ocsvm.OCSVM(contamination=0.1).fit(X)
    assert type(ours.detector_) is hinge.OneClassSVM
    theirs = ocsvm.OCSVM(contamination=0.1)
    theirs.fit(X)
    np.testing.assert_allclose(ours.decision_scores_, theirs.decision_scores_, atol=0.01)
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)


def test_shap_explains_decisions_that_add_up():
    shap = library("shap")
    machine = hinge.SVC().fit(X, Y)
    explainer = shap.KernelExplainer(machine.decision_function, X[:10], seed=0)
    values = explainer.shap_values(X[:3], nsamples=50, silent=True)
    total = values.sum(axis=1) + explainer.expected_value
    np.testing.assert_allclose(total, machine.decision_function(X[:3]), atol=1e-6)


@pytest.mark.parametrize("machine", [hinge.SVC(), hinge.NuSVC(nu=0.3), hinge.SVR(), hinge.NuSVR()], ids=repr)
def test_m2cgen_writes_code_that_decides_alike(machine):
    m2cgen = library("m2cgen")
    machine.fit(X, Y)
    names = {}
    exec(m2cgen.export_to_python(machine.as_sklearn()), names)
    decide = machine.decision_function if hasattr(machine, "decision_function") else machine.predict
    expected = decide(X[:5])
    found = np.array([names["score"](list(row)) for row in X[:5]])
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-9)  # m2cgen has LIBSVM's sign


def test_mapie_makes_intervals_that_hold():
    regression = library("mapie.regression")
    y = X @ [1.0, 2.0, 0.0, 0.0] + 0.1 * RNG.normal(size=80)
    machine = regression.SplitConformalRegressor(hinge.SVR(C=10.0), confidence_level=0.8, prefit=False)
    _, intervals = machine.fit(X[:40], y[:40]).conformalize(X[40:60], y[40:60]).predict_interval(X[60:])
    assert np.mean((intervals[:, 0, 0] <= y[60:]) & (y[60:] <= intervals[:, 1, 0])) > 0.5


@pytest.mark.filterwarnings("ignore:The decoding model will be trained only on 27 features")
def test_nilearn_decodes_with_the_machine_that_it_knows_by_name():
    decoding, nibabel = library("nilearn.decoding"), library("nibabel")
    target = np.linspace(-1, 1, 30)
    volumes = RNG.normal(size=(3, 3, 3, 30))
    volumes[1, 1, 1] += 4 * target
    image, mask = (nibabel.Nifti1Image(values, np.eye(4)) for values in (volumes, np.ones((3, 3, 3), np.int8)))
    with hinge.patched():
        decoder = decoding.DecoderRegressor(
            "svr", mask=mask, cv=3, standardize="zscore_sample", screening_percentile=100
        )
        weights = decoder.fit(image, target).coef_img_["beta"].get_fdata()
    assert type(decoder.estimator_) is hinge.SVR
    assert np.unravel_index(np.argmax(np.abs(weights)), weights.shape) == (1, 1, 1)


def test_mne_slides_a_machine_over_time():
    decoding = library("mne.decoding")
    data = RNG.normal(size=(30, 3, 5))
    labels = (np.arange(30) % 2).astype(int)
    data[labels == 1, 0, 3] += 5.0
    sliding = decoding.SlidingEstimator(hinge.SVC(kernel="linear"), scoring="accuracy", verbose=False)
    scores = sliding.fit(data, labels).score(data, labels)
    assert int(np.argmax(scores)) == 3


def test_qiskit_machines_are_derived_from_ours():
    algorithms, kernels = library("qiskit_machine_learning.algorithms"), library("qiskit_machine_learning.kernels")
    circuits = library("qiskit.circuit.library")
    kernel = kernels.FidelityStatevectorKernel(feature_map=circuits.zz_feature_map(2))
    points = X[:30, :2]
    with hinge.patched():
        machine = algorithms.QSVC(quantum_kernel=kernel).fit(points, Y[:30])
    assert isinstance(machine, hinge.SVC)
    theirs = SKLEARN_SVC[0](kernel="precomputed", tol=1e-8).fit(kernel.evaluate(points), Y[:30])
    expected = theirs.decision_function(kernel.evaluate(points))
    np.testing.assert_allclose(machine.decision_function(points), expected, atol=1e-4)
