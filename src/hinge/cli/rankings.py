"""``hinge train -s 6``, and what ``hinge predict`` says of rankings; queries are ``qid:`` behind the labels."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from hinge.arrays import Vector
from hinge.cli.data import DataFile, leave
from hinge.cli.options import EXIT_FAILURE, EXIT_OK, Parsed
from hinge.cli.outputs import as_json, write_json
from hinge.cli.parameters import Parameters

_FULL_DIGITS = 17
_LIBSVM_DIGITS = 8


def train_ranking(parsed: Parsed, parameters: Parameters, samples: DataFile, path: str) -> int:
    """Train a ranking and write its model file; return the exit code."""
    from hinge.estimators.files import save_model
    from hinge.estimators.ranking import RankSVM

    if parsed["folds"] is not None:
        leave("ERROR: -v does not keep queries whole; use sklearn.model_selection.GroupKFold with hinge.RankSVM")
    kernel = parameters.kernel(samples.max_index)
    X = samples.training_data(kernel) if kernel.is_precomputed else samples.rows[:, 1:].tocsr()
    machine = RankSVM(
        C=parameters.cost, kernel=kernel.label, gamma=float(kernel.gamma), coef0=float(kernel.coef0),
        degree=int(kernel.degree), tol=parameters.tolerance, gap_tol=parameters.gap_tol,
        cache_size="auto" if parameters.cache is None else parameters.cache, n_jobs=parameters.threads,
        time_limit=parsed["time-limit"],
    )  # fmt: skip
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # said below, in the words of the command
            machine.fit(X, samples.y, samples.qid)
    except KeyboardInterrupt:
        print("interrupted: nothing was written", file=sys.stderr)
        return EXIT_FAILURE
    report = machine.report_
    if not report.converged:
        print(f"WARNING: 1 of 1 machines did not converge ({report.status}): {report.message}", file=sys.stderr)
    try:
        save_model(machine, path, digits=_FULL_DIGITS if parsed["full-precision"] else _LIBSVM_DIGITS)
    except OSError as error:
        print(f"can't save model to file {path}", file=sys.stderr)
        return int(leave(f"{path}: {error.strerror or error}"))
    if not (parsed["quiet"] or parsed["json"]):
        print(f"{report.reason}\nobj = {report.objective:f}\nnSV = {report.n_support}", flush=True)
    figures = {
        "data_file": parsed.files[0], "n_samples": samples.n, "max_index": samples.max_index,
        "model_file": path, "total_sv": report.n_support, "machines": [report.as_dict()],
    }  # fmt: skip
    if parsed["report"] is not None:
        write_json(figures, parsed["report"])
    if parsed["json"]:
        print(as_json(figures), flush=True)
    return EXIT_OK


def ranking_scores(y: Vector, scores: Vector, qid: Any) -> dict[str, float]:
    """Return the share of ordered pairs and NDCG of scores, as far as labels and queries tell."""
    from hinge.estimators.ranking_scores import mean_ndcg, ordered_pairs

    try:
        found = {"ordered_pairs": ordered_pairs(y, scores, qid)}
    except ValueError:  # no pairs
        return {"ordered_pairs": float("nan")}
    return {**found, "ndcg": mean_ndcg(y, scores, qid)} if (y >= 0).all() else found


def ranking_lines(y: Vector, scores: Vector, qid: Any) -> list[str]:
    """Return what ``hinge predict`` prints of a ranking."""
    found = ranking_scores(y, scores, qid)
    lines = [f"Ordered pairs = {100 * found['ordered_pairs']:g}% (ranking)"]
    return [*lines, f"NDCG = {found['ndcg']:g} (ranking)"] if "ndcg" in found else lines
