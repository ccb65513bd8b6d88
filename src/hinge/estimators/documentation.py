"""Texts that the estimators' pages share, so that they are written once."""

from __future__ import annotations

import re
from typing import Any, ClassVar, TypeVar

from hinge.kernel.kernels import FORMULAS, KERNELS
from hinge.settings import RULES

T = TypeVar("T", bound=type)

# Where the site is: as `python -m docs` builds it in a checkout, until it has a home.
SITE = "docs/_build/html"

_RULES = ", ".join(f'"{name}"' for name in RULES)
_KERNELS = "\n".join(f"    - {line}" for line in FORMULAS)

PARAMETERS = {
    "kernel": f"""\
kernel : {{{", ".join(f'"{name}"' for name in KERNELS)}}} or callable, default="rbf"
    One of these names, or a function of two sets of samples that returns the matrix of their kernel values. It is
    called once with X and X at fit, once with new samples and X at prediction, whatever X is; by blocks of
    samples where the matrix exceeds ``cache_size``.

{_KERNELS}

degree : int, default=3
    Exponent above.
gamma : {{"scale", "auto"}} or float, default="scale"
    γ above. ``"scale"`` is 1 / (n_features · variance of X), where each sample counts by its weight; ``"auto"``
    is 1 / n_features.
coef0 : float, default=0.0
    Constant above.""",
    "shrinking": """\
shrinking : bool, default=True
    Set aside samples that look settled, and come back to them before convergence is declared. The answer is
    within ``tol`` either way.""",
    "tol": """\
tol : float, default=1e-3
    Largest violation of the optimality conditions at which the solver stops, checked in double precision.
    Where that is cheap the solution is then polished to about 1e-12.
cache_size : "auto" or float, default="auto"
    Megabytes for kernel values, of small problems too; at least three rows and a working set of 32 samples are
    kept. ``"auto"`` takes up to a quarter of the memory that the computer, ``ulimit`` and control groups leave
    free, touched only as it is used. Everything else takes a small multiple of the data. Where values have to be
    computed again because it is small, the steps are others, and the answer is another one within ``tol``;
    polished ones agree to rounding.""",
    "verbose": """\
verbose : bool or int, default=False
    Show a progress bar on a terminal: how far the violation on all samples has come from its start to ``tol``, on
    a scale of logarithms. Elsewhere a line on standard error every few seconds, in notebooks one that is updated,
    and lines in the logger ``"hinge"`` at level INFO.
max_iter : int, default=-1
    Most steps of each machine; -1 for the larger of ten million and a hundred per variable.""",
    "votes": """\
decision_function_shape : {"ovr", "ovo"}, default="ovr"
    What `decision_function` returns for many classes: a score for each class, or the value of each pair.
break_ties : bool, default=False
    Whether `predict` settles equal votes by the summed decision values instead of by the order of classes.""",
    "random_state": """\
random_state : int, RandomState or None, default=None
    Deals the samples out to the folds of ``probability=True``. Training itself is deterministic.""",
    "ours": """\
solver : {"auto", "block", "smo"}, default="auto"
    ``"block"`` solves large working sets by matrix products, ``"smo"`` moves pairs, ``"auto"`` chooses by size and
    works on the weight vector of a linear kernel.
precision : {"auto", "single", "double"}, default="auto"
    Type of the kernel values that steps are computed from. Answers are checked in double precision in any case.
n_jobs : int or None, default=None
    Number of threads; None and -1 take every core that this process may use (affinity, containers and joblib's
    inner limits respected). It does not change the answer, not even its last bit; but several machines that are
    trained at once share the cache.
time_limit : float or None, default=None
    Most seconds for the fit, without what is compiled at a first use. What is reached by then is kept, with a
    ConvergenceWarning.
warm_start : bool, default=False
    Start from the solution of the last fit, if it had as many samples and the same classes; this continues a
    fit that was stopped.
callback : callable or None, default=None
    Called with a `hinge.training.progress.FitProgress` after each outer step; a true answer stops the fit.
trace : bool or Tracing, default=False
    Record the course of the fit in ``report_.trace``: violation, objective and gap on all samples over time. A
    `hinge.Tracing` says how much of it.
gap_tol : float or None, default=None
    Also stop once the duality gap is at most this share of the objective's size (of 1, where that is smaller).
rule : {"""
    + _RULES
    + """}, default="second_order"
    Which pair ``solver="smo"`` moves next (`hinge.settings.RULES`). Other solvers know the default alone.""",
    "stop": """\
stop : {"tolerance", "labels"} or samples, default="tolerance"
    ``"labels"`` ends the fit before ``tol`` is met, as soon as no label of the training samples can change any
    more (`predict_certain`); samples, as `predict` takes them, as soon as none of theirs can. Labels are looked
    at whenever the violation has come down to a tenth, which takes a certificate each time.""",
    "threshold": """\
fit_intercept : bool, default=True
    False for a machine without intercept.
intercept_scaling : float, default=1.0
    The intercept is the weight of a further feature of this value, and is held near zero like every other weight:
    the larger the value, the less. ``inf`` leaves the intercept free, as kernel machines have it.""",
    "linear": """\
verbose : bool or int, default=0
    Show a progress bar on a terminal; elsewhere log to the logger ``"hinge"`` at level INFO.
random_state : int, RandomState or None, default=None
    Accepted as in scikit-learn. Training is deterministic.
max_iter : int, default=1000
    Most passes of each machine over the data: a pass is as many steps as there are samples.
n_jobs : int or None, default=None
    Number of threads, which train the machines of several classes side by side; None and -1 take every core that
    this process may use. It does not change the answer.
time_limit : float or None, default=None
    Most seconds for the fit. What is reached by then is kept, with a ConvergenceWarning.
warm_start : bool, default=False
    Start from the solution of the last fit, if it had as many samples and the same classes.
callback : callable or None, default=None
    Called with a `hinge.training.progress.FitProgress` after each outer step; a true answer stops the fit.
gap_tol : float or None, default=None
    Also stop once the duality gap is at most this share of the objective's size (of 1, where that is smaller).
    None means a thousandth of ``tol`` for squared losses and for all classes in one problem.""",
}

_SUPPORT = """\
support_ : int32 array of shape (n_SV,)
    Places of the support vectors in the training data.
support_vectors_ : array or sparse matrix of shape (n_SV, n_features)
    The support vectors; without columns for a precomputed kernel."""

ATTRIBUTES = {
    "class_support": f"""\
classes_ : array of shape (n_classes,)
    The labels.
{_SUPPORT}
n_support_ : int32 array of shape (n_classes,)
    Number of support vectors of each class; `support_` lists them class by class.""",
    "targets": """\
n_support_ : int32 array of shape (1,)
    Number of support vectors.
dual_coef_ : array or sparse matrix of shape (n_targets, n_SV)
    Coefficients of the support vectors, a row for each target.
intercept_ : array of shape (n_targets,)
    The intercept of each target.
coef_ : array or sparse matrix of shape (n_targets, n_features)
    Weights of the features; only for the linear kernel.
n_iter_ : int, or int32 array of shape (n_targets,)
    Steps that the solver took; an array where y had columns.""",
    "support": _SUPPORT,
    "outcome": """\
fit_status_ : int
    0 if the solver converged, 1 otherwise (there was a ConvergenceWarning).
report_ : Report
    How the fit went: status, violation, objective, duality gap, kernel evaluations, seconds and more.
reports_ : Reports
    The report of every machine, a tuple; ``reports_.names`` says which classes it tells apart.
shape_fit_ : tuple of int
    Shape of the training data.
n_features_in_ : int
    Number of features.
feature_names_in_ : array of str
    Names of the features, where X had names.""",
    "linear_outcome": """\
n_iter_ : int
    Passes of the machine that took most.
fit_status_ : int
    0 if the solver converged, 1 otherwise (there was a ConvergenceWarning).
report_ : Report
    How the fit went: status, violation, objective, duality gap, seconds and more.
reports_ : tuple of Report
    The report of every machine.
n_features_in_ : int
    Number of features.
feature_names_in_ : array of str
    Names of the features, where X had names.""",
}


class Linked:
    """Lets notebooks link an estimator, and each of its parameters, to its page of the reference."""

    _doc_link_module: ClassVar[str] = "hinge"
    _doc_link_template: ClassVar[Any] = f"{SITE}/reference/api/{{page}}.html"

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        package = type(self).__module__.split(".")[1]
        public = "hinge" if package == "estimators" else f"hinge.{package}"
        return {"page": f"{public}.{type(self).__name__}"}


def documented(estimator: T) -> T:
    """Fill ``%(name)s`` in a class's docstring with the shared text of that name, keeping the indentation."""
    if estimator.__doc__:
        texts = {**PARAMETERS, **ATTRIBUTES}

        def fill(match: re.Match[str]) -> str:
            indent, name = match.groups()
            return "\n".join((indent + line).rstrip() for line in texts[name].splitlines())

        estimator.__doc__ = re.sub(r"^([ ]*)%\((\w+)\)s$", fill, estimator.__doc__, flags=re.MULTILINE)
    return estimator
