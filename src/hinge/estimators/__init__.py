"""The estimators: scikit-learn's interface to the solvers."""

from hinge.estimators.nu_svc import NuSVC
from hinge.estimators.one_class import OneClassSVM
from hinge.estimators.regression import SVR, NuSVR
from hinge.estimators.svc import SVC

__all__ = ["SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM"]
