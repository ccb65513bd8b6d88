"""Hinge: exact, fast and certified support vector machines."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hinge._version import __version__

if TYPE_CHECKING:
    from hinge.certificates import Certificate, Certificates
    from hinge.dual.problem import DualProblem
    from hinge.estimators import (
        SVC,
        SVDD,
        SVR,
        LinearSVC,
        LinearSVR,
        NuSVC,
        NuSVR,
        OneClassSVM,
        RankSVM,
        TransductiveSVC,
    )
    from hinge.kernel.gram import Gram
    from hinge.kernel.kernels import Kernel
    from hinge.model import Model
    from hinge.patch.switch import is_patched, patch, patched, unpatch
    from hinge.report import Report, Solution, Status
    from hinge.settings import Progress, Settings, Sizes
    from hinge.solvers import solve
    from hinge.tour import Warmth, warm_up
    from hinge.trace import Trace, Tracing

__all__ = [
    "SVC", "SVDD", "SVR", "Certificate", "Certificates", "DualProblem", "Gram", "Kernel", "LinearSVC", "LinearSVR",
    "Model", "NuSVC", "NuSVR", "OneClassSVM", "Progress", "RankSVM", "Report", "Settings", "Sizes", "Solution",
    "Status", "Trace", "Tracing", "TransductiveSVC", "Warmth", "__version__", "certificate", "is_patched",
    "l1_min_c", "patch", "patched", "solve", "unpatch", "warm_up",
]  # fmt: skip

# Where names come from. They are imported when they are used: whoever needs only the solvers does not wait for
# scikit-learn, and a command can be interrupted before it has imported anything.
_HOMES = {
    "certificates": ("Certificate", "Certificates"),
    "estimators": (
        "SVC",
        "SVDD",
        "SVR",
        "LinearSVC",
        "LinearSVR",
        "NuSVC",
        "NuSVR",
        "OneClassSVM",
        "RankSVM",
        "TransductiveSVC",
        "l1_min_c",
    ),
    "kernel.gram": ("Gram",),
    "kernel.kernels": ("Kernel",),
    "model": ("Model",),
    "patch": ("is_patched", "patched", "unpatch"),
    "dual.problem": ("DualProblem",),
    "report": ("Report", "Solution", "Status"),
    "settings": ("Progress", "Settings", "Sizes"),
    "solvers": ("solve",),
    "tour": ("Warmth", "warm_up"),
    "trace": ("Trace", "Tracing"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def certificate(subject: Any, *details: Any, **named: Any) -> Any:
    """Prove an answer again: that of a solver, or a fitted machine of Hinge or scikit-learn.

    Parameters
    ----------
    subject : DualProblem or estimator
        A problem: then follow its Gram matrix and β, as `hinge.certificates.certificate` takes them. Or a fitted
        support vector machine: then follow X, y and the weights that it was fitted to, as
        `hinge.estimators.certify.certify` takes them.
    *details, **named
        What follows.

    Returns
    -------
    Certificate or Certificates
        Of one answer, or of all machines of an estimator.

    Examples
    --------
    >>> import sklearn.svm
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> proof = certificate(sklearn.svm.SVC(C=10.0).fit(X, y), X, y)
    >>> len(proof), proof.violation < 2e-3
    (3, True)
    """
    from hinge.dual.problem import DualProblem

    if isinstance(subject, DualProblem):
        from hinge.certificates import certificate as certificate_of_point

        return certificate_of_point(subject, *details, **named)
    from hinge.estimators.certify import certify

    return certify(subject, *details, **named)


def __getattr__(name: str) -> Any:
    if name == "patch":  # a module that can be called
        return import_module("hinge.patch")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'hinge' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"hinge.{_HOME_OF[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
