"""What files of other formats must be told about our estimators."""

from __future__ import annotations

import scipy.sparse as sp

from hinge.estimators.linear import LinearSVC, LinearSVR
from hinge.estimators.nu_svc import NuSVC
from hinge.estimators.one_class import OneClassSVM
from hinge.estimators.regression import SVR, NuSVR
from hinge.estimators.svc import SVC
from hinge.estimators.svdd import SVDD
from hinge.kernel.kernels import KERNELS, kind_of
from hinge.model import Model
from hinge.report import Ledger, Report
from hinge.training.compression import Compression
from hinge.training.course import Past

_ESTIMATORS = (SVC, NuSVC, SVR, NuSVR, OneClassSVM, SVDD, LinearSVC, LinearSVR)
_PARTS = (Model, Ledger, Report, Past, Compression, *(kind_of(name) for name in KERNELS))

# skops asks about these for scikit-learn's own machines, too, where the data was sparse.
_CONTAINERS = (sp.csr_matrix, sp.csr_array)

#: The types that ``skops.io.load(file, trusted=...)`` must trust to load an estimator, whatever its parameters and
#: its data, unless its kernel is a function of yours: that one has to be added.
SKOPS_TYPES: tuple[str, ...] = tuple(
    sorted(f"{kind.__module__}.{kind.__qualname__}" for kind in (*_ESTIMATORS, *_PARTS, *_CONTAINERS))
)
