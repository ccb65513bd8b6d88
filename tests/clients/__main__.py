"""Run a library's own installed tests twice, with scikit-learn's classes and with Hinge's, and compare.

Usage: python -m tests.clients run NAME [pytest's arguments…]
       python -m tests.clients list
"""

import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

# Name: distribution, and what pytest is given. Only the tests of a library that come to a support vector machine.
SUITES = {
    "sklearn.svm": ("scikit-learn", ["sklearn.svm"]),
    "sklearn.common": ("scikit-learn", ["sklearn.tests.test_common", "-k", "SVC or SVR or OneClassSVM"]),
    "sklearn.multiclass": ("scikit-learn", ["sklearn.tests.test_multiclass", "sklearn.tests.test_multioutput"]),
    "sklearn.calibration": ("scikit-learn", ["sklearn.tests.test_calibration"]),
    "sklearn.model_selection": ("scikit-learn", ["sklearn.model_selection"]),
    "sklearn.ensemble": ("scikit-learn", ["sklearn.ensemble"]),
    "sklearn.feature_selection": ("scikit-learn", ["sklearn.feature_selection"]),
    "sklearn.inspection": ("scikit-learn", ["sklearn.inspection"]),
    "sklearn.pipeline": ("scikit-learn", ["sklearn.tests.test_pipeline"]),
    "sklearn.semi_supervised": ("scikit-learn", ["sklearn.semi_supervised"]),
    "sklearn.metrics": ("scikit-learn", ["sklearn.metrics"]),
    "imbalanced-learn": ("imbalanced-learn", ["imblearn.over_sampling", "imblearn.combine", "imblearn.ensemble"]),
    "pyriemann": ("pyriemann", ["tests/test_classification.py"]),
    "skops": ("skops", ["skops.io"]),
    "m2cgen": ("m2cgen", ["m2cgen"]),
    "tslearn": ("tslearn", ["tslearn.tests.test_svm", "tslearn.tests.test_estimators"]),
    "grakel": ("grakel", ["grakel.tests"]),
    "pyod": ("pyod", ["pyod.test.test_ocsvm"]),
    "shap": ("shap", ["shap"]),
    "mapie": ("mapie", ["mapie"]),
    "nilearn": ("nilearn", ["nilearn.decoding"]),
    "mne": ("mne", ["mne.decoding"]),
    "qiskit": ("qiskit-machine-learning", ["qiskit_machine_learning"]),
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
    arguments = [*(["--pyargs"] if arguments[0][0] != "/" else []), *arguments, *extra]
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
