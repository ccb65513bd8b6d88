"""Certificates of any fitted support vector machine, whoever made it."""

from __future__ import annotations

from typing import Any

from hinge.certificates import Certificates
from hinge.estimators.base import KernelMachine
from hinge.estimators.nu_svc import NuSVC
from hinge.estimators.one_class import OneClassSVM
from hinge.estimators.proofs import prove
from hinge.estimators.regression import SVR, NuSVR
from hinge.estimators.svc import SVC

_KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in (SVC, NuSVC, SVR, NuSVR, OneClassSVM)}


def certify(estimator: Any, X: Any, y: Any = None, sample_weight: Any = None, **parameters: Any) -> Certificates:
    """Prove a fitted machine again, from its coefficients alone.

    Parameters
    ----------
    estimator : SVC, NuSVC, SVR, NuSVR, OneClassSVM or SVDD
        Hinge's or scikit-learn's, fitted or loaded from a file.
    X, y, sample_weight : array-like
        What it was fitted to.
    **parameters
        C, nu, epsilon or loss of the problem, where they should not be taken from the estimator. Of a model that
        was loaded from a file all but the loss are read off its coefficients by default; of one with a squared
        loss, C and epsilon have to be passed as well. Of a ranking ``qid``.

    Returns
    -------
    Certificates
        Feasibility, violation and duality gap of every machine.

    Raises
    ------
    ValueError
        A support vector is not among the samples.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hinge import OneClassSVM
    >>> X, _ = load_iris(return_X_y=True)
    >>> certify(OneClassSVM(nu=0.2).fit(X), X).proves(1e-3)
    True
    """
    name = type(estimator).__name__
    if isinstance(estimator, KernelMachine) and type(estimator).certificate is not KernelMachine.certificate:
        return estimator.certificate(X, y, sample_weight=sample_weight, **parameters)  # it has one of its own
    kind = type(estimator) if isinstance(estimator, KernelMachine) else _KINDS.get(name)
    if kind is None:
        raise TypeError(f"a certificate needs a fitted SVC, NuSVC, SVR, NuSVR or OneClassSVM, got {name}")
    return prove(kind, estimator, X, y, sample_weight, parameters)
