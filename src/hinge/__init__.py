"""Hinge: exact, fast and certified support vector machines."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hinge._version import __version__

if TYPE_CHECKING:
    from hinge.certificates import Certificate, certificate
    from hinge.dual.problem import DualProblem
    from hinge.estimators import SVC, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM
    from hinge.kernel.gram import Gram
    from hinge.kernel.kernels import Kernel
    from hinge.model import Model
    from hinge.patch.switch import is_patched, patch, patched, unpatch
    from hinge.report import Report, Solution, Status
    from hinge.settings import Progress, Settings, Sizes
    from hinge.solvers import solve
    from hinge.tour import Warmth, warm_up

__all__ = [
    "SVC", "SVR", "Certificate", "DualProblem", "Gram", "Kernel", "LinearSVC", "LinearSVR", "Model", "NuSVC",
    "NuSVR", "OneClassSVM", "Progress", "Report", "Settings", "Sizes", "Solution", "Status", "Warmth",
    "__version__", "certificate", "is_patched", "l1_min_c", "patch", "patched", "solve", "unpatch", "warm_up",
]  # fmt: skip

# Where names come from. They are imported when they are used: whoever needs only the solvers does not wait for
# scikit-learn, and a command can be interrupted before it has imported anything.
_HOMES = {
    "certificates": ("Certificate", "certificate"),
    "estimators": ("SVC", "SVR", "LinearSVC", "LinearSVR", "NuSVC", "NuSVR", "OneClassSVM", "l1_min_c"),
    "kernel.gram": ("Gram",),
    "kernel.kernels": ("Kernel",),
    "model": ("Model",),
    "patch": ("is_patched", "patched", "unpatch"),
    "dual.problem": ("DualProblem",),
    "report": ("Report", "Solution", "Status"),
    "settings": ("Progress", "Settings", "Sizes"),
    "solvers": ("solve",),
    "tour": ("Warmth", "warm_up"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "patch":  # a module that can be called
        return import_module("hinge.patch")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'hinge' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"hinge.{_HOME_OF[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
