"""`cross_validate_many` and `fit_many`: very many small fits at once."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv

from hinge.estimators.base import KernelMachine
from hinge.estimators.inputs import thread_count
from hinge.many.course import FAILED, Endings, ManyFitsCourse
from hinge.many.problems import Problems
from hinge.many.results import ManyFits, ManyScores, stacked
from hinge.many.scoring import FitSink, ScoreSink, is_accuracy
from hinge.many.stages import Split
from hinge.training.progress import Tally


def cross_validate_many(
    estimator: KernelMachine,
    problems: Any,
    y: Any = None,
    *,
    columns: Any = None,
    C: Any = None,
    cv: Any = None,
    groups: Any = None,
    scoring: Any = None,
    error_score: Any = np.nan,
    return_predictions: bool = False,
    return_decisions: bool = False,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> ManyScores:
    """Cross-validate an estimator on every one of many small problems.

    The scores are those of scikit-learn's ``cross_val_score`` with the same estimator and folds. Problems with the
    same y, as in a searchlight, are fitted by the dozen in compiled loops, on all cores; samples of a problem are
    compared once for all its folds and all values of C.

    Parameters
    ----------
    estimator : SVC, NuSVC, SVR, NuSVR, OneClassSVM or SVDD
        What to fit. The compiled loops are for `SVC`; the others are fitted one by one.
    problems : iterable of (X, y), array (n_problems, n_samples, n_features), or array (n_samples, n_features)
        Samples and targets of each problem; or the samples of all problems, which share ``y``; or, with
        ``columns``, the one X that all problems take their features from.
    y : array-like of shape (n_samples,), optional
        Targets of all problems, unless these are pairs (X, y).
    columns : sequence of lists of int, or sparse matrix of shape (n_problems, n_features), optional
        The features of each problem: numbers, masks, or what is not zero in a row of a sparse matrix.
    C : sequence of float, optional
        Values of C to evaluate in place of the estimator's own; results get an axis for them.
    cv : int, splitter, iterable or None
        As in scikit-learn. Problems with the same y share their folds.
    groups : array-like, optional
        Passed to the splitter; for pairs (X, y) a sequence with the groups of each.
    scoring : str, callable or None
        As in scikit-learn; None is the estimator's own score.
    error_score : "raise" or float
        Score of a fold whose fit fails. Other problems go on; ``"raise"`` ends everything.
    return_predictions, return_decisions : bool
        Whether to keep what is predicted for samples held out, and their decision values. No sample may be held
        out twice.
    n_jobs : int, optional
        Threads; by default every core that this process may use. Results are the same for any number.
    verbose : bool
        Whether to show progress: a bar on a terminal, lines in the log elsewhere.

    Returns
    -------
    ManyScores
        Scores and certificates of all fits, as arrays.

    Raises
    ------
    KeyboardInterrupt
        Ctrl-C was pressed; within about a second.

    See Also
    --------
    fit_many : One fit for each problem.
    hinge.selection.cross_validate : The same for one large problem.

    Notes
    -----
    Features are taken as they are: standardise X before, or pass a `GridSearch` or pipeline to scikit-learn's own
    functions. A fit that the compiled loop cannot certify at once, and a sample so near to the boundary that
    rounding decides its class, are left to the estimator's own ``fit`` and ``predict``.

    Examples
    --------
    >>> import numpy as np
    >>> from hinge import SVC
    >>> from hinge.many import cross_validate_many
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 20)
    >>> volume = rng.normal(size=(40, 10))
    >>> volume[:, 4:6] += 2.0 * y[:, None]
    >>> spheres = [[k - 1, k, k + 1] for k in range(1, 9)]
    >>> found = cross_validate_many(SVC(kernel="linear"), volume, y, columns=spheres, cv=4)
    >>> found.scores.shape, bool(found.converged.all())
    ((8, 4), True)
    >>> int(found.scores.mean(axis=1).argmax()) in (3, 4)
    True
    """
    machines = _machines(estimator, C)
    scorer = _scorer(machines[0], scoring, error_score)
    given = Problems.of(problems, y, columns)
    runs = list(given.runs())
    splits = [_splits(machines[0], given, numbers, cv, groups) for numbers in runs]
    kept = {"predictions": return_predictions, "decisions": return_decisions}
    keeps = {name for name, is_wanted in kept.items() if is_wanted}
    if keeps:
        _check_held_out_once(splits, keeps)
    shape = given.count, len(machines), max((len(folds) for folds in splits), default=0)
    sink = ScoreSink(given, shape, scorer, keeps)
    course = ManyFitsCourse(machines, given, splits, sink, error_score == "raise")
    with Tally(given.count, "problems", verbose) as tally:
        outcome = course.run(thread_count(n_jobs), tally)
    if error_score != "raise":
        sink.scores[outcome.statuses == FAILED] = error_score
    _tell_failures(outcome, given.count)
    scores, statuses, violations = (
        _without_axis(values, C) for values in (sink.scores, outcome.statuses, outcome.violations)
    )
    predictions, decisions = (_without_axis(sink.kept(name), C) for name in kept)
    return ManyScores(scores, statuses, violations, outcome.errors, predictions, decisions, outcome.n_left)


def fit_many(
    estimator: KernelMachine,
    problems: Any,
    y: Any = None,
    *,
    columns: Any = None,
    C: Any = None,
    error_score: Any = np.nan,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> ManyFits:
    """Fit an estimator to every one of many small problems.

    Parameters
    ----------
    estimator : SVC, NuSVC, SVR, NuSVR, OneClassSVM or SVDD
        What to fit. The compiled loops are for `SVC`; the others are fitted one by one.
    problems, y, columns, C
        As in `cross_validate_many`.
    error_score : "raise" or float
        ``"raise"`` ends everything with the first error; a problem that fails is NaN otherwise.
    n_jobs, verbose
        As in `cross_validate_many`.

    Returns
    -------
    ManyFits
        Coefficients, intercepts and certificates of all machines, as arrays.

    Raises
    ------
    KeyboardInterrupt
        Ctrl-C was pressed; within about a second.

    See Also
    --------
    cross_validate_many : Scores of samples held out.

    Examples
    --------
    >>> import numpy as np
    >>> from hinge import SVC
    >>> from hinge.many import fit_many
    >>> X = np.array([[[-1.0], [1.0], [2.0]], [[-2.0], [2.0], [5.0]]])
    >>> fits = fit_many(SVC(kernel="linear", C=10.0), X, [0, 1, 1])
    >>> fits.weights.ravel().round(6), fits.intercepts.ravel().round(6)
    (array([1. , 0.5]), array([0., 0.]))
    >>> fits.statuses
    array(['converged', 'converged'], dtype='<U15')
    """
    machines = _machines(estimator, C)
    given = Problems.of(problems, y, columns)
    nobody = np.empty(0, np.int64)
    splits = [[(np.arange(len(given.target(run.start)), dtype=np.int64), nobody)] for run in given.runs()]
    sink = FitSink((given.count, len(machines)), machines[0].kernel == "linear")
    course = ManyFitsCourse(machines, given, splits, sink, error_score == "raise")
    with Tally(given.count, "problems", verbose) as tally:
        outcome = course.run(thread_count(n_jobs), tally)
    _tell_failures(outcome, given.count)
    weights = stacked(sink.weights) if machines[0].kernel == "linear" else None
    return ManyFits(
        coefficients=_without_axis(stacked(sink.coefficients), C),
        intercepts=_without_axis(stacked(sink.intercepts), C),
        weights=_without_axis(weights, C),
        gammas=_without_axis(sink.gammas, C),
        statuses=_without_axis(outcome.statuses[:, :, 0], C),
        violations=_without_axis(outcome.violations[:, :, 0], C),
        errors=outcome.errors,
        n_left=outcome.n_left,
    )


def _machines(estimator: Any, C: Any) -> list[KernelMachine]:
    """Return the estimator for each value of C, its parameters checked."""
    if not isinstance(estimator, KernelMachine):
        raise TypeError(
            f"many fits are for Hinge's own estimators, got {type(estimator).__name__}; transform the samples "
            "first (standardise X, for instance) instead of passing a pipeline"
        )
    if C is None:
        machines = [clone(estimator)]
    else:
        if "C" not in estimator.get_params():
            raise ValueError(f"{type(estimator).__name__} has no parameter C")
        machines = [clone(estimator).set_params(C=float(value)) for value in np.atleast_1d(C)]
        if not machines:
            raise ValueError("C must have at least one value")
    for machine in machines:
        machine._validate_params()
    return machines


def _scorer(machine: KernelMachine, scoring: Any, error_score: Any) -> Any:
    """Return what scores a fit; None for the estimator's own score."""
    if scoring is not None and not isinstance(scoring, str) and not callable(scoring):
        raise ValueError(f"scoring must be one name or one function, got {scoring!r}")
    scorer = check_scoring(machine, scoring, raise_exc=error_score == "raise")
    return None if scoring is None or is_accuracy(machine, scoring) else scorer


def _splits(machine: KernelMachine, problems: Problems, run: range, cv: Any, groups: Any) -> list[Split]:
    y = np.asarray(problems.target(run.start))
    if groups is not None and len(problems.targets) > 1:
        if len(groups) != problems.count:
            raise ValueError(f"groups must be given for each of the {problems.count} problems, got {len(groups)}")
        groups = groups[run.start]
    splitter = check_cv(cv, y, classifier=is_classifier(machine))
    folds = splitter.split(problems.samples(run.start), y, groups)
    return [(np.asarray(train, np.int64), np.asarray(test, np.int64)) for train, test in folds]


def _check_held_out_once(splits: Sequence[Sequence[Split]], keeps: set[str]) -> None:
    for folds in splits:
        held_out = np.concatenate([test for _, test in folds])
        if len(np.unique(held_out)) < len(held_out):
            raise ValueError(f"{' and '.join(sorted(keeps))} need folds that hold no sample out twice")


def _tell_failures(outcome: Endings, count: int) -> None:
    if outcome.errors:
        number, reason = min(outcome.errors.items())
        warnings.warn(
            f"{len(outcome.errors)} of {count} problems failed, number {number} for one, in {reason}. "
            "The result's `errors` has the reason of each.",
            FitFailedWarning,
            stacklevel=3,
        )


def _without_axis(values: Any, C: Any) -> Any:
    """Leave the axis of C out where no values were given."""
    return values[:, 0] if C is None and values is not None else values
