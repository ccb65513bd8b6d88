"""Hinge: exact, fast and certified support vector machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hinge._version import __version__
from hinge.certificate import Certificate, certificate
from hinge.gram import Gram
from hinge.kernels import Kernel
from hinge.model import Model
from hinge.problem import DualProblem
from hinge.report import Report, Solution, Status
from hinge.settings import Progress, Settings, Sizes
from hinge.solvers import solve

if TYPE_CHECKING:
    from hinge.estimators import SVC, SVR, NuSVC, NuSVR, OneClassSVM

__all__ = [
    "SVC", "SVR", "Certificate", "DualProblem", "Gram", "Kernel", "Model", "NuSVC", "NuSVR", "OneClassSVM",
    "Progress", "Report", "Settings", "Sizes", "Solution", "Status", "__version__", "certificate", "solve",
]  # fmt: skip

_ESTIMATORS = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")


def __getattr__(name: str) -> Any:
    # The estimators bring scikit-learn with them; whoever needs only the solvers does not wait for it.
    if name in _ESTIMATORS:
        from hinge import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module 'hinge' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
