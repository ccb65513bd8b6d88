"""The estimators: scikit-learn's interface to the solvers, and their files in LIBSVM's format."""

from hinge.estimators.files import load_model, save_model
from hinge.estimators.nu_svc import NuSVC
from hinge.estimators.one_class import OneClassSVM
from hinge.estimators.persistence import SKOPS_TYPES
from hinge.estimators.regression import SVR, NuSVR
from hinge.estimators.svc import SVC

__all__ = ["SKOPS_TYPES", "SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM", "load_model", "save_model"]
