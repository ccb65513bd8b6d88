"""Certificates of fitted machines: Hinge's, scikit-learn's, and those that were read from a file.

From the dual coefficients of an estimator and the samples that it was fitted to follow the dual problem and β of
each of its machines; `hinge.certificates` proves the rest. A model file does not hold C, ν and ε: they are read
off the coefficients, so that what is proved is that the model is optimal for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from hinge.arrays import Index, Vector
from hinge.certificates import Certificates, certificate
from hinge.estimators.inputs import thread_count
from hinge.kernel.gram import Gram
from hinge.report import machine_names
from hinge.training.data import TrainingData
from hinge.training.formulation import NuClassification
from hinge.training.multiclass import duels
from hinge.training.tasks import Task

# Parameters that make a problem, where a machine has them.
_PRICES = ("C", "nu", "epsilon")

# Model files hold eight digits: a support vector is the sample that is nearer than this share of its length.
_SAME = 1e-6

# Support vectors that are compared with all samples at a time.
_AT_ONCE = 256

# Coefficients this near to the largest are at their bound.
_AT_BOUND = 1e-9


def prove(
    kind: type[Any], estimator: Any, X: Any, y: Any, sample_weight: Any, parameters: Mapping[str, Any]
) -> Certificates:
    """Prove a fitted machine again, from its coefficients alone.

    Parameters
    ----------
    kind : type
        The estimator of Hinge that has the same problem.
    estimator : estimator
        Hinge's or scikit-learn's, fitted or loaded from a file.
    X, y, sample_weight : array-like
        What it was fitted to.
    parameters : mapping
        C, nu, epsilon or loss of the problem, where they should not be taken from the estimator.
    """
    if not hasattr(estimator, "dual_coef_"):
        raise NotFittedError(f"this {type(estimator).__name__} is not fitted yet; there is nothing to prove")
    if hasattr(estimator, "compression_"):
        raise ValueError("a compressed machine is no optimum: prove the one that it was made of")
    twin = _twin(kind, estimator)
    data = twin._training_data(X, y, sample_weight)
    coefficients = coefficients_of(estimator)
    rows = np.zeros((len(coefficients), data.X.shape[0]))
    rows[:, _places(estimator, data, X)] = coefficients
    if type(estimator) is kind and not hasattr(estimator, "report_"):  # it comes from a file
        twin.set_params(**_implied(twin, data, rows, estimator, X, parameters))
    twin.set_params(**parameters)
    formulation = twin._formulation(data)
    tasks = formulation.tasks()
    if isinstance(formulation, NuClassification) and formulation.has_prices:
        raise ValueError("class weights make nu infeasible: such machines are trained twice, and not certified")
    gram = Gram(data.X, twin._kernel_of(data), precision="double", threads=thread_count(twin.n_jobs))
    found = []
    for task, row in zip(tasks, rows, strict=True):
        whole = len(task.samples) == gram.n
        part = gram if whole else gram.part(task.samples, threads=gram.team.size, cache_bytes=gram.cache_bytes)
        found.append(certificate(task.problem, part, _beta_of(task, row[task.samples])))
    names = machine_names(getattr(estimator, "classes_", ()), getattr(twin, "multi_class", "ovo"), len(found))
    prices = {name: float(value) for name in _PRICES if (value := twin.get_params().get(name)) is not None}
    return Certificates(found, names, prices)


def _twin(kind: type[Any], estimator: Any) -> Any:
    """Return an estimator of Hinge with the same problem."""
    own, theirs = kind().get_params(), estimator.get_params(deep=False)
    shared = ("kernel", "degree", "coef0", "C", "nu", "epsilon", "loss", "fit_intercept", "multi_class", "n_jobs")
    twin = kind(**{name: theirs[name] for name in shared if name in own and name in theirs})
    if not callable(twin.kernel) and (gamma := float(getattr(estimator, "_gamma", 0.0))):
        twin.gamma = gamma
    if hasattr(estimator, "classes_"):
        weights = getattr(estimator, "class_weight_", np.ones(len(estimator.classes_)))
        twin.class_weight = dict(zip(estimator.classes_.tolist(), np.asarray(weights).tolist(), strict=True))
    return twin


def coefficients_of(estimator: Any) -> Vector:
    """Return the coefficients of a fitted machine: a row for each of its machines, a column a support vector."""
    layout = estimator.dual_coef_
    layout = np.asarray(layout.toarray() if sp.issparse(layout) else layout, dtype=np.float64)
    n_classes = len(getattr(estimator, "classes_", ()))
    if n_classes <= 2 or getattr(estimator, "multi_class", "ovo") == "ovr":
        return layout
    codes = np.repeat(np.arange(n_classes), estimator.n_support_)
    rows = np.zeros((n_classes * (n_classes - 1) // 2, layout.shape[1]))
    for row, (i, j) in zip(rows, duels(n_classes), strict=True):
        row[codes == i] = layout[j - 1, codes == i]
        row[codes == j] = layout[i, codes == j]
    return rows


def _beta_of(task: Task, coefficients: Vector) -> Vector:
    """Return β of a task: ν-SVC was divided by its margin, regressions have two variables per sample."""
    problem, n = task.problem, task.problem.n_samples
    if task.divide:
        total = float(np.abs(coefficients).sum())
        beta = coefficients * (float(np.abs(problem.sums).sum()) / total if total > 0 else 1.0)
        slack = _AT_BOUND * (problem.hi - problem.lo)  # rounding of the division does not set a variable free
        beta = np.where(problem.hi - beta <= slack, problem.hi, beta)
        return np.where(beta - problem.lo <= slack, problem.lo, beta)
    if problem.n_variables == n:
        return coefficients
    up, down = np.maximum(coefficients, 0.0), np.minimum(coefficients, 0.0)
    if problem.n_groups == 2:  # where the tube has no width, ν-SVR may pull a sample both ways
        missing = float(problem.sums[0] - up.sum())
        room = np.minimum(problem.hi[:n] - up, down - problem.lo[n:])
        both = np.clip(missing - np.concatenate([[0.0], np.cumsum(room)[:-1]]), 0.0, room)
        if missing > _SAME * float(problem.sums[0]):  # else it is what rounding has left, or a model file
            up, down = up + both, down - both
    return np.concatenate([up, down])


# ---------------------------------------------------------------------- where support vectors are


def _places(estimator: Any, data: TrainingData, X: Any) -> Index:
    """Return which of the samples that count each support vector is."""
    support, vectors = np.asarray(estimator.support_, np.int64), estimator.support_vectors_
    n = data.shape[0]
    is_given = callable(estimator.kernel) or estimator.kernel == "precomputed"
    if is_given or _are_rows(vectors, support, X):
        if len(support) and int(support.max()) >= n:
            raise ValueError(f"the machine was fitted to more than the {n} samples given")
        places = np.searchsorted(data.places, support)
        if (data.places[np.minimum(places, len(data.places) - 1)] != support).any():
            raise ValueError("a support vector has the weight 0: pass the weights that the machine was fitted to")
        return np.asarray(places, np.int64)
    return _matched(estimator, vectors, data)


def _are_rows(vectors: Any, support: Index, X: Any) -> bool:
    """Whether the support vectors are the rows of X that they say."""
    if len(support) == 0:
        return True
    values = X if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    if int(support.max()) >= values.shape[0] or vectors.shape[1] != values.shape[1]:
        return False
    rows = sp.csr_array(values)[support] if sp.issparse(values) else values[support]
    difference = abs(sp.csr_array(rows) - sp.csr_array(vectors))
    scale = abs(sp.csr_array(rows)).max() if rows.shape[1] else 0.0
    return bool(difference.max() <= _SAME * scale) if difference.nnz else True


def _matched(estimator: Any, vectors: Any, data: TrainingData) -> Index:
    """Find the support vectors among the samples: each takes a sample of its class that no other has taken."""
    width = max(vectors.shape[1], data.X.shape[1])
    mine, samples = (_widened(part, width) for part in (vectors, data.X))
    lengths = np.asarray(samples.multiply(samples).sum(axis=1)).ravel()
    codes, wanted = np.zeros(samples.shape[0], np.intp), np.zeros(mine.shape[0], np.intp)
    if hasattr(estimator, "classes_"):
        codes = np.searchsorted(estimator.classes_, data.y)
        wanted = np.repeat(np.arange(len(estimator.classes_)), estimator.n_support_)
    is_free, places = np.ones(len(lengths), dtype=bool), np.empty(mine.shape[0], np.int64)
    for start in range(0, mine.shape[0], _AT_ONCE):
        part = mine[start : start + _AT_ONCE]
        size = np.asarray(part.multiply(part).sum(axis=1)).ravel()[:, None] + lengths
        near = size - 2 * (part @ samples.T).toarray() <= _SAME**2 * size
        for k, row in enumerate(near, start=start):
            found = np.flatnonzero(row & is_free & (codes == wanted[k]))
            if not len(found):
                raise ValueError(
                    f"support vector {k} is not among the samples: pass the data that the machine was fitted to, "
                    "scaled as it was then"
                )
            places[k], is_free[found[0]] = found[0], False
    return places


def _widened(rows: Any, width: int) -> Any:
    matrix = sp.csr_array(rows, dtype=np.float64)
    return sp.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=(matrix.shape[0], width))


# ---------------------------------------------------------------------- what a file does not hold


def _implied(
    twin: Any, data: TrainingData, rows: Vector, estimator: Any, X: Any, parameters: Mapping[str, Any]
) -> dict[str, Any]:
    """Return C, ν and ε as the coefficients tell them: the largest are at their bound."""
    if "squared" in str(parameters.get("loss")):
        if missing := [name for name in ("C", "epsilon") if hasattr(twin, name) and name not in parameters]:
            wanted = " and ".join(f"{name}=" for name in missing)
            raise ValueError(f"a model file does not hold the price of a squared loss: pass {wanted}")
        return {}
    sizes = np.abs(rows) / data.weights
    bound = float(sizes.max(initial=0.0)) or 1.0
    known = twin.get_params()
    if hasattr(estimator, "radius_"):
        return {"nu": min(1.0 / float(bound * data.weights.sum()), 1.0)}
    if "C" not in known and not hasattr(estimator, "classes_"):
        return {"nu": min(float(rows.sum() / data.weights.sum()), 1.0)}
    if "C" not in known:
        members = np.isin(np.asarray(data.y), estimator.classes_[:2])
        return {"nu": min(float(sizes[0].sum() / sizes[0].max() / members.sum()), 1.0)}
    if "nu" in known:
        return {"C": bound, "nu": min(float(np.abs(rows).sum() / (bound * data.weights.sum())), 1.0)}
    if "epsilon" in known:
        is_free = (sizes[0] > 0) & (sizes[0] < (1 - _AT_BOUND) * bound)
        errors = np.abs(np.asarray(data.y) - estimator.predict(X)[data.places])
        if not is_free.any():
            raise ValueError("no support vector tells the width of the tube: pass epsilon=")
        return {"C": bound, "epsilon": _simplest(errors[is_free])}
    return {"C": bound, "class_weight": _implied_weights(estimator, data, sizes, bound)}


def _simplest(values: Vector) -> float:
    """Return the number of fewest digits that lies among the values: they differ by the tolerance of a fit."""
    middle = float(np.median(values))
    for digits in range(1, 17):
        rounded = float(f"{middle:.{digits}g}")
        if values.min() <= rounded <= values.max():
            return rounded
    return middle


def _implied_weights(estimator: Any, data: TrainingData, sizes: Vector, bound: float) -> dict[Any, float]:
    """Return a weight of each class: what several of its samples have as their largest coefficient is a bound."""
    weights = {}
    for label in estimator.classes_.tolist():
        mine = sizes[:, np.asarray(data.y) == label]
        largest = float(mine.max(initial=0.0))
        is_bound = np.count_nonzero(mine >= (1 - _AT_BOUND) * largest) > 1
        weights[label] = largest / bound if is_bound and largest > 0 else 1.0
    return weights
