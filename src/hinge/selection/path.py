"""A regularisation path: machines for a sequence of C, each from the one before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import indexable

from hinge.estimators.base import KernelMachine
from hinge.estimators.inputs import thread_count
from hinge.runtime.interrupt import catching
from hinge.selection.fold import FoldTrainer, kernel_of
from hinge.selection.job import Job
from hinge.selection.workshop import Workshop


def regularisation_path(
    estimator: KernelMachine, X: Any, y: Any, Cs: Sequence[float], *, sample_weight: Any = None
) -> list[KernelMachine]:
    """Fit the estimator for every C of a sequence: kernel values once, each solution from its neighbour's.

    Parameters
    ----------
    estimator : SVC, SVR or NuSVR
        The machine; its own C does not matter.
    X, y : array-like
        Samples and targets, as for ``fit``.
    Cs : sequence of float
        Values of C, in any order. They are solved from the smallest to the largest.
    sample_weight : array-like of shape (n_samples,), optional
        As for ``fit``.

    Returns
    -------
    list of estimators
        Fitted to all samples, in the order of ``Cs``; each has its certificate in ``report_``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hinge import SVC
    >>> machines = regularisation_path(SVC(gamma=0.5), *load_iris(return_X_y=True), [0.1, 1.0, 10.0])
    >>> [int(machine.n_support_.sum()) for machine in machines]
    [96, 41, 31]
    """
    if "C" not in estimator.get_params(deep=False):
        raise TypeError(f"{type(estimator).__name__} has no C; a path needs SVC, SVR or NuSVR")
    if estimator._calibrates:
        raise ValueError("a path gives no probabilities; use probability=False, and fit the C that you choose")
    X, y, sample_weight = indexable(X, y, sample_weight)
    nobody, everyone = np.empty(0, np.intp), np.arange(len(y))
    job = Job(clone(estimator), X, y, [(everyone, nobody)], None, sample_weight)
    machines: dict[int, KernelMachine] = {}
    with catching():
        shop = job.shared(Workshop)
        (fold,) = shop.folds
        kernel = kernel_of(shop, job.estimator, fold.train)
        values = shop.values(kernel, thread_count(estimator.n_jobs))
        trainer = FoldTrainer(shop, fold, kernel, values)
        for k in np.argsort(Cs, kind="stable"):
            machine = machines[int(k)] = clone(estimator).set_params(C=float(Cs[k]))
            machine._validate_params()
            trainer.fit(machine)
    return [machines[k] for k in range(len(Cs))]
