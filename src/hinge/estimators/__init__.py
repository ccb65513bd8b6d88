"""The estimators: scikit-learn's interface to the solvers, and their files in LIBSVM's format."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hinge.estimators.files import load_model, save_model
from hinge.estimators.nu_svc import NuSVC
from hinge.estimators.one_class import OneClassSVM
from hinge.estimators.regression import SVR, NuSVR
from hinge.estimators.svc import SVC
from hinge.estimators.svdd import SVDD

if TYPE_CHECKING:
    from sklearn.svm import l1_min_c

    from hinge.estimators.linear import LinearSVC, LinearSVR
    from hinge.estimators.persistence import SKOPS_TYPES
    from hinge.estimators.ranking import RankSVM
    from hinge.estimators.ranking_scores import mean_ndcg, ordered_pairs
    from hinge.estimators.transductive import TransductiveSVC

__all__ = [
    "SKOPS_TYPES", "SVC", "SVDD", "SVR", "LinearSVC", "LinearSVR", "NuSVC", "NuSVR", "OneClassSVM", "RankSVM",
    "TransductiveSVC", "l1_min_c", "load_model", "mean_ndcg", "ordered_pairs", "save_model",
]  # fmt: skip

# Imported when they are used: these need parts of scikit-learn that take long to import. `l1_min_c` is
# scikit-learn's own, here so that `hinge` has every public name of `sklearn.svm`.
_LATER = {
    "SKOPS_TYPES": "hinge.estimators.persistence",
    "LinearSVC": "hinge.estimators.linear",
    "LinearSVR": "hinge.estimators.linear",
    "RankSVM": "hinge.estimators.ranking",
    "TransductiveSVC": "hinge.estimators.transductive",
    "l1_min_c": "sklearn.svm",
    "mean_ndcg": "hinge.estimators.ranking_scores",
    "ordered_pairs": "hinge.estimators.ranking_scores",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_LATER[name]), name)
    return value
