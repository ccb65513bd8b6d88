"""The estimators: scikit-learn's interface to the solvers, and their files in LIBSVM's format."""

from sklearn.svm import l1_min_c  # so that `hinge` has every public name of `sklearn.svm`

from hinge.estimators.files import load_model, save_model
from hinge.estimators.linear import LinearSVC, LinearSVR
from hinge.estimators.nu_svc import NuSVC
from hinge.estimators.one_class import OneClassSVM
from hinge.estimators.persistence import SKOPS_TYPES
from hinge.estimators.regression import SVR, NuSVR
from hinge.estimators.svc import SVC

__all__ = [
    "SKOPS_TYPES", "SVC", "SVR", "LinearSVC", "LinearSVR", "NuSVC", "NuSVR", "OneClassSVM", "l1_min_c",
    "load_model", "save_model",
]  # fmt: skip
