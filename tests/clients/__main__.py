"""Run a library's own tests twice, with scikit-learn's classes and with Hinge's, and compare.

Usage: python -m tests.clients run NAME [pytest's arguments…]
       python -m tests.clients list

Libraries that do not install their tests need the path of these, in a checkout of the version that is installed.
"""

import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def _tests(package: str, names: str) -> list[str]:
    """Return the modules of a package's tests that mention a support vector machine."""
    return [f"{package}.tests.test_{name}" for name in names.split()]


# Name: distribution, and what pytest is given: the parts that come to a support vector machine; nothing
# where the tests are not installed.
SUITES = {
    "sklearn.svm": ("scikit-learn", ["sklearn.svm"]),
    "sklearn.common": ("scikit-learn", ["sklearn.tests.test_common", "-k", "SVC or SVR or OneClassSVM"]),
    "sklearn.multiclass": ("scikit-learn", ["sklearn.tests.test_multiclass", "sklearn.tests.test_multioutput"]),
    "sklearn.calibration": ("scikit-learn", ["sklearn.tests.test_calibration"]),
    "sklearn.model_selection": (
        "scikit-learn",
        _tests("sklearn.model_selection", "search validation split classification_threshold successive_halving"),
    ),
    "sklearn.ensemble": (
        "scikit-learn",
        _tests("sklearn.ensemble", "bagging common forest gradient_boosting stacking voting weight_boosting"),
    ),
    "sklearn.feature_selection": ("scikit-learn", _tests("sklearn.feature_selection", "from_model rfe")),
    "sklearn.pipeline": ("scikit-learn", ["sklearn.tests.test_pipeline"]),
    "sklearn.semi_supervised": ("scikit-learn", _tests("sklearn.semi_supervised", "self_training")),
    "sklearn.metrics": (
        "scikit-learn",
        [
            *_tests("sklearn.metrics", "classification ranking score_objects"),
            *_tests("sklearn.metrics._plot", "confusion_matrix_display"),
        ],
    ),
    "sklearn.others": (
        "scikit-learn",
        [
            *_tests("sklearn", "base metaestimators metaestimators_metadata_routing"),
            *_tests("sklearn.feature_extraction", "text"),
            *_tests("sklearn.linear_model", "common sgd"),
            *_tests("sklearn.preprocessing", "data polynomial"),
            *_tests("sklearn.utils", "estimator_checks multiclass pprint validation"),
            *_tests("sklearn.utils._repr_html", "estimator"),
        ],
    ),
    "imbalanced-learn": (
        "imbalanced-learn",
        [
            "imblearn.over_sampling._smote.tests.test_svm_smote",
            *_tests("imblearn.over_sampling", "common"),
            *_tests("imblearn.ensemble", "bagging"),
            *_tests("imblearn", "pipeline"),
        ],
    ),
    "pyriemann": ("pyriemann", []),
    "skops": ("skops", ["skops.io", "-k", "SVC or SVR or OneClassSVM"]),
    "m2cgen": ("m2cgen", []),
    "tslearn": ("tslearn", []),
    "pyod": ("pyod", []),
    "shap": ("shap", []),
    "nilearn": ("nilearn", _tests("nilearn.decoding", "decoder")),
    "mne": ("mne", []),
    "qiskit": ("qiskit-machine-learning", []),
    "mlxtend": ("mlxtend", []),
    "aeon": (
        "aeon",
        [
            *_tests("aeon.anomaly_detection.series.outlier_detection", "one_class_svm"),
            *_tests("aeon.classification.interval_based", "interval_pipelines quant"),
            *_tests("aeon.classification.shapelet_based", "stc"),
            *_tests("aeon.distances", "sklearn_compatibility"),
            *_tests("aeon.regression.interval_based", "interval_pipelines"),
            *_tests("aeon.utils", "sklearn_typing"),
        ],
    ),
    "dask-ml": ("dask-ml", []),
    "skl2onnx": ("skl2onnx", []),
}


def outcomes(arguments: list[str], *, is_patched: bool) -> dict[str, str]:
    """Run pytest and return how each test ended."""
    runner = ["hinge.patch", "-m", "pytest"] if is_patched else ["pytest"]
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.xml"
        options = ["-q", "-p", "no:cacheprovider", f"--junitxml={results}", "--tb=short", *arguments]
        subprocess.run([sys.executable, "-m", *runner, *options], cwd=folder, check=False)
        if not results.exists():
            sys.exit("pytest left no results: what it says is above")
        return {
            f"{case.get('classname')}::{case.get('name')}": _outcome(case)
            for case in ElementTree.parse(results).iter("testcase")
        }


def _outcome(case: ElementTree.Element) -> str:
    for kind in ("error", "failure", "skipped"):
        if case.find(kind) is not None:
            return kind
    return "passed"


def summary(found: dict[str, str]) -> str:
    return ", ".join(f"{number} {kind}" for kind, number in sorted(Counter(found.values()).items()))


def run(name: str, extra: list[str]) -> int:
    distribution, arguments = SUITES[name]
    try:
        print(f"{name}: {distribution} {version(distribution)}")
    except PackageNotFoundError:
        print(f"{name}: {distribution} is not installed")
        return 2
    if not arguments and not extra:
        print(f"{distribution} does not install its tests: add their path, in a checkout of that version")
        return 2
    arguments = [*(["--pyargs"] if arguments else []), *arguments, *extra]
    theirs, ours = (outcomes(arguments, is_patched=is_patched) for is_patched in (False, True))
    different = [test for test in {**theirs, **ours} if theirs.get(test) != ours.get(test)]
    print(f"\n{name}\n  unpatched: {summary(theirs)}\n  patched:   {summary(ours)}")
    for test in different:
        print(f"  {test}: {theirs.get(test, 'absent')} -> {ours.get(test, 'absent')}")
    return int(bool(different))


def main(arguments: list[str]) -> int:
    match arguments:
        case ["run", name, *extra] if name in SUITES:
            return run(name, extra)
        case ["list"]:
            print("\n".join(SUITES))
            return 0
    print(__doc__ + "\nNames: " + ", ".join(SUITES))
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
