"""One way to call every library: prepare its own data format, fit (timed), then read the answer out."""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.verify import Answer


class Adapter(Protocol):
    """What a worker asks of a library; only `fit` and `predict` are timed."""

    def prepare(self, X: Any, y: NDArray[Any]) -> None:
        """Take the data."""

    def fit(self, point: dict[str, float]) -> None:
        """Train with the parameters C, gamma and epsilon."""

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict rows of the kind that `prepare` took."""

    def answer(self) -> Answer:
        """Return the trained machines."""

    def figures(self) -> dict[str, Any]:
        """Return what the library says of its run."""


class EstimatorAdapter:
    """Hinge, scikit-learn and its Intel extension: the same estimators in three packages."""

    MODULES: ClassVar[dict[str, str]] = {"hinge": "hinge", "sklearn": "sklearn.svm", "sklearnex": "sklearnex.svm"}

    def __init__(self, job: dict[str, Any]) -> None:
        self.job = job
        module = import_module(self.MODULES[job["library"]])
        self.is_regression = job["task"] == "regression"
        self.kind = module.SVR if self.is_regression else module.SVC

    def prepare(self, X: Any, y: NDArray[Any]) -> None:
        """Keep the arrays as they are."""
        self.X, self.y = X, y

    def fit(self, point: dict[str, float]) -> None:
        """Train the estimator."""
        options: dict[str, Any] = {"tol": self.job["tol"], "cache_size": self.job["cache_mb"]}
        if self.job["kernel"] != "linear":
            options["gamma"] = point["gamma"]
        if self.is_regression:
            options["epsilon"] = point["epsilon"]
        if self.job.get("verbose") and self.job["library"] == "hinge":
            options["verbose"] = True
        self.machine = self.kind(kernel=self.job["kernel"], C=point["C"], **options).fit(self.X, self.y)

    def predict(self, X: Any) -> NDArray[Any]:
        """Call the estimator."""
        return np.asarray(self.machine.predict(X))

    def answer(self) -> Answer:
        """Read scikit-learn's attributes."""
        dual = self.machine.dual_coef_
        dual = np.atleast_2d(dual.toarray() if sp.issparse(dual) else dual).astype(np.float64)
        labels = np.empty(0) if self.is_regression else np.asarray(self.machine.classes_, dtype=np.float64)
        intercepts = np.ravel(self.machine.intercept_).astype(np.float64)
        return Answer(np.asarray(self.machine.support_, dtype=np.int64), dual, intercepts, labels)

    def figures(self) -> dict[str, Any]:
        """Return iterations, and of Hinge all that its report says of the work done."""
        report = getattr(self.machine, "report_", None)
        if report is None:
            return {"iterations": int(np.sum(self.machine.n_iter_))}
        names = (
            "iterations",
            "outer_steps",
            "kernel_evaluations",
            "cache_bytes",
            "storage",
            "precision",
            "solver",
        )
        return {**{name: getattr(report, name) for name in names}, "outcome": str(report.status)}


class LibsvmAdapter:
    """LIBSVM through its own Python package; the data is converted to its sparse format before the clock runs."""

    def __init__(self, job: dict[str, Any]) -> None:
        from libsvm import svm, svmutil

        self.job, self.svm, self.util = job, svm, svmutil

    def prepare(self, X: Any, y: NDArray[Any]) -> None:
        """Convert the data."""
        self.problem = self.svm.svm_problem(np.ascontiguousarray(y), sp.csr_matrix(X))

    def fit(self, point: dict[str, float]) -> None:
        """Train; LIBSVM takes as many threads as OpenMP gives it."""
        options = {
            "-s": 3 if self.job["task"] == "regression" else 0,
            "-t": ("linear", "poly", "rbf").index(self.job["kernel"]),
            "-c": point["C"], "-g": point["gamma"], "-p": point["epsilon"], "-e": self.job["tol"],
            "-m": self.job["cache_mb"],
        }  # fmt: skip
        text = " ".join(f"{name} {value!r}" for name, value in options.items())
        self.machine = self.util.svm_train(self.problem, self.svm.svm_parameter(f"{text} -q"))

    def predict(self, X: Any) -> NDArray[Any]:
        """Call LIBSVM's own prediction."""
        return np.asarray(self.util.svm_predict(np.zeros(X.shape[0]), sp.csr_matrix(X), self.machine, "-q")[0])

    def answer(self) -> Answer:
        """Read the model: its classes stand in the order of their first appearance."""
        machine = self.machine
        n_machines = 1
        labels = np.empty(0)
        if self.job["task"] != "regression":
            labels = np.asarray(machine.get_labels(), dtype=np.float64)
            n_machines = len(labels) * (len(labels) - 1) // 2
        support = np.asarray(machine.get_sv_indices(), dtype=np.int64) - 1
        intercepts = -np.array([machine.rho[k] for k in range(n_machines)])
        dual = np.array(machine.get_sv_coef(), dtype=np.float64).T
        return Answer(support, np.atleast_2d(dual), intercepts, labels, positive_first=True)

    def figures(self) -> dict[str, Any]:
        """Return nothing: LIBSVM only prints."""
        return {}


class LinearAdapter:
    """Hinge's LinearSVC with LIBLINEAR's loss and threshold."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job, self.kind = job, import_module("hinge").LinearSVC

    def prepare(self, X: Any, y: NDArray[Any]) -> None:
        """Keep the arrays as they are."""
        self.X, self.y = X, y

    def fit(self, point: dict[str, float]) -> None:
        """Train with the plain hinge loss."""
        self.machine = self.kind(loss="hinge", C=point["C"], tol=self.job["tol"]).fit(self.X, self.y)

    def predict(self, X: Any) -> NDArray[Any]:
        """Call the estimator."""
        return np.asarray(self.machine.predict(X))

    def answer(self) -> Answer:
        """Read the weights, positive for the label of their row."""
        labels = np.asarray(self.machine.classes_, dtype=np.float64)
        weights = np.column_stack([self.machine.coef_, self.machine.intercept_])
        labels = labels[::-1] if len(labels) == 2 else labels
        nothing = np.empty(0, dtype=np.int64)
        return Answer(nothing, np.empty((1, 0)), weights[:, -1], labels, positive_first=True, weights=weights)

    def figures(self) -> dict[str, Any]:
        """Return what the report says of the work done."""
        report = self.machine.report_
        return {
            "iterations": report.iterations, "outer_steps": report.outer_steps, "storage": report.storage,
            "solver": report.solver, "outcome": str(report.status), "gap": report.gap,
        }  # fmt: skip


class LiblinearAdapter:
    """LIBLINEAR's dual solver of the same hinge loss; its threshold is part of the regularised weights."""

    def __init__(self, job: dict[str, Any]) -> None:
        from liblinear import liblinear, liblinearutil  # type: ignore[import-untyped]

        self.job, self.linear, self.util = job, liblinear, liblinearutil

    def prepare(self, X: Any, y: NDArray[Any]) -> None:
        """Convert the data."""
        self.problem = self.linear.problem(np.ascontiguousarray(y), sp.csr_matrix(X), 1)

    def fit(self, point: dict[str, float]) -> None:
        """Train with solver 3, L1-loss dual."""
        text = f"-s 3 -c {point['C']!r} -e {self.job['tol']!r} -B 1 -q"
        self.machine = self.util.train(self.problem, self.linear.parameter(text))

    def predict(self, X: Any) -> NDArray[Any]:
        """Call LIBLINEAR's own prediction."""
        return np.asarray(self.util.predict(np.zeros(X.shape[0]), sp.csr_matrix(X), self.machine, "-q")[0])

    def answer(self) -> Answer:
        """Read the weights; there are no dual coefficients."""
        labels = np.asarray(self.machine.get_labels(), dtype=np.float64)
        indices = range(1 if len(labels) == 2 else len(labels))
        decisions = [self.machine.get_decfun(k) for k in indices]
        weights = np.array([[*row, bias] for row, bias in decisions])
        nothing = np.empty(0, dtype=np.int64)
        return Answer(nothing, np.empty((1, 0)), weights[:, -1], labels, positive_first=True, weights=weights)

    def figures(self) -> dict[str, Any]:
        """Return nothing: LIBLINEAR only prints."""
        return {}


def adapter_for(job: dict[str, Any]) -> Adapter:
    """Return the adapter of the job's library; imports that library."""
    if job["library"] == "hinge" and job.get("by_weights"):
        return LinearAdapter(job)
    special: dict[str, Any] = {"libsvm": LibsvmAdapter, "liblinear": LiblinearAdapter}
    return special.get(job["library"], EstimatorAdapter)(job)
