"""Hinge: exact, fast and certified support vector machines."""

from __future__ import annotations

from hinge._version import __version__
from hinge.certificate import Certificate, certificate
from hinge.gram import Gram
from hinge.kernels import Kernel
from hinge.model import Model
from hinge.problem import DualProblem
from hinge.report import Report, Solution, Status
from hinge.settings import Progress, Settings
from hinge.solvers import solve

__all__ = [
    "Certificate", "DualProblem", "Gram", "Kernel", "Model", "Progress", "Report", "Settings", "Solution", "Status",
    "__version__", "certificate", "solve",
]  # fmt: skip
