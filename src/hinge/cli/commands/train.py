"""``hinge train``: train a machine on a data file, or cross-validate (LIBSVM's ``svm-train``)."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hinge.arrays import Index
from hinge.cli.clusters import on_cluster, refuse_training, samples_on
from hinge.cli.data import DataFile, classes_path, default_model_name, leave, read_samples, spooled_samples
from hinge.cli.folds import GlibcRandom
from hinge.cli.machines import ModelPlan, Shared, Training, folds_of, plan_model, train_all
from hinge.cli.options import EXIT_FAILURE, EXIT_OK, Parsed
from hinge.cli.outputs import as_json, check_output, write_json
from hinge.cli.parameters import Parameters
from hinge.cli.probabilities import calibrated, predict
from hinge.cli.results import cross_validation_lines, plan_lines
from hinge.cli.tables import TRAIN
from hinge.io import atomic_write, write_libsvm_model
from hinge.io.models.libsvm_model import SVM_TYPES
from hinge.report import Status
from hinge.runtime import clock
from hinge.runtime.interrupt import catching, within
from hinge.training.machine import is_flat
from hinge.training.progress import Listener, Watch

if TYPE_CHECKING:
    from hinge.dask.sessions import Session

_LEAST_FOLDS = 2
_FULL_DIGITS = 17
_LIBSVM_DIGITS = 8


def run(arguments: Sequence[str]) -> int:
    """Run the command; return its exit code."""
    parsed = TRAIN.parse(arguments)
    if parsed["folds"] is not None and parsed["folds"] < _LEAST_FOLDS:
        TRAIN.fail("n-fold cross validation: n must >= 2")
    parameters = Parameters.of(parsed)
    if parsed["folds"] is None:
        check_output(_model_path(parsed), "can't save model to file")
    check_output(parsed["report"], "cannot write the report to")
    if parsed["scheduler"] is not None:
        refuse_training(parsed, parameters, _model_path(parsed))
        files = parsed.files[:-1]
        with on_cluster("train", parsed, files) as cluster:
            return _train(parsed, parameters, samples_on(cluster, files), cluster)
    if parsed["memory"] is None:
        return _train(parsed, parameters, read_samples(parsed.files[0], parsed))
    is_ranking = parameters.type_number == SVM_TYPES.index("ranking")
    if parsed["folds"] is not None or parameters.probability or is_ranking or parameters.kernel(1).is_precomputed:
        TRAIN.fail("--memory trains one model on features: without -v, -b 1, -t 4 and -s 6")
    with spooled_samples(parsed.files[0], parsed, _model_path(parsed)) as (samples, left):
        return _train(parsed, replace(parameters, cache=left / 2**20), samples)


def _train(parsed: Parsed, parameters: Parameters, samples: DataFile, cluster: Session | None = None) -> int:
    complaint = parameters.complaint(samples.labels())
    if complaint is None and samples.names and parameters.is_regression:
        complaint = f"the labels of {parsed.files[0]} are words, and regression needs numbers"
    if complaint is None and samples.n == 0:
        complaint = f"{parsed.files[0]} holds no samples"
    if complaint is not None:
        leave(f"ERROR: {complaint}")
    try:
        if parameters.svm_type == "ranking":
            from hinge.cli.rankings import train_ranking

            return train_ranking(parsed, parameters, samples, _model_path(parsed))
        return _Session(parsed, parameters, samples, cluster).run()
    except ValueError as error:
        return int(leave(f"ERROR: {error}"))


def _model_path(parsed: Parsed) -> str:
    return parsed.files[-1] if len(parsed.files) > 1 else default_model_name(parsed.files[0])


class _Session:
    """One run of the command."""

    def __init__(self, parsed: Parsed, parameters: Parameters, samples: DataFile, cluster: Session | None) -> None:
        self.parsed, self.samples, self.cluster = parsed, samples, cluster
        kernel = parameters.kernel(samples.max_index)
        X = samples.training_data(kernel)
        ready = None if cluster is None else cluster.ready
        self.shared = Shared(parameters, samples.stored, X, samples.y, samples.labels(), kernel, ready)
        self.started = clock.now()
        self.figures: dict[str, Any] = {}

    def run(self) -> int:
        random = GlibcRandom()
        n_folds = self.parsed["folds"]
        if n_folds is None:
            plans = [plan_model(self.shared, np.arange(self.samples.n, dtype=np.int64), random)]
            folds: list[Index] = []
        else:
            folds = self._folds(n_folds, random)
            everyone = [np.concatenate(folds[:f] + folds[f + 1 :]) for f in range(len(folds))]
            plans = [plan_model(self.shared, rest, random) for rest in everyone]
        self._warn_of_weights(plans)
        trainings = [training for plan in plans for training in plan.all_trainings]
        parameters = self.shared.parameters
        if not self._solve(trainings, parameters.validation_tolerance if folds else parameters.tolerance):
            return EXIT_FAILURE
        code = self._cross_validate(plans, folds) if folds else self._save(plans[0])
        self._tell_figures(trainings)
        return code

    def _folds(self, n_folds: int, random: GlibcRandom) -> list[Index]:
        n = self.samples.n
        if n_folds > n:
            print(
                f"WARNING: # folds ({n_folds}) > # data ({n}). Will use # folds = # data instead "
                "(i.e., leave-one-out cross validation)",
                file=sys.stderr,
            )
            n_folds = n
        return folds_of(self.shared.labels if self.shared.parameters.is_classifier else None, n, n_folds, random)

    def _warn_of_weights(self, plans: Sequence[ModelPlan]) -> None:
        if not self.shared.parameters.is_classifier:
            return
        for plan in plans:
            for label, _ in self.shared.parameters.weights:
                if label not in plan.labels:
                    print(f"WARNING: class label {label} specified in weight is not found", file=sys.stderr)

    def _solve(self, trainings: Sequence[Training], tol: float) -> bool:
        """Train all machines; return whether to go on."""
        if not trainings:
            return True
        listeners = self._listeners()
        try:
            with catching(), within(self.parsed["time-limit"]):
                train_all(self.shared, trainings, Watch(listeners, len(trainings)), tol)
        except KeyboardInterrupt:
            print("interrupted: nothing was written", file=sys.stderr)
            return False
        finally:
            for listener in listeners:
                listener.close()
        self._warn_of_limits(trainings)
        self._warn_of_margins(trainings)
        return True

    def _listeners(self) -> list[Listener]:
        is_shown = sys.stderr.isatty() and not self.parsed["quiet"]
        if self.cluster is not None:
            return self.cluster.listeners(is_shown)
        if not is_shown:
            return []
        from hinge.training.progress import BarListener

        return [BarListener()]

    def _warn_of_limits(self, trainings: Sequence[Training]) -> None:
        reports = [training.machine.solution.report for training in trainings]
        late = [report for report in reports if not report.converged]
        if any(report.status is Status.ITERATION_LIMIT for report in late):
            print("\nWARNING: reaching max number of iterations", file=sys.stderr)
        elif late:
            told = f"({late[0].status}): {late[0].message}"
            print(f"WARNING: {len(late)} of {len(reports)} machines did not converge {told}", file=sys.stderr)

    def _warn_of_margins(self, trainings: Sequence[Training]) -> None:
        scaled = [training.machine.solution for training in trainings if training.task.divide]
        n_flat = sum(is_flat(solution) for solution in scaled)
        if n_flat:
            print(
                f"WARNING: nu = {self.shared.parameters.nu:g} is smaller than these data allow: in {n_flat} of "
                f"{len(scaled)} machines the margin has no width, and decisions mean nothing; choose a larger -n",
                file=sys.stderr,
            )

    def _info(self, lines: Sequence[str]) -> None:
        if not (self.parsed["quiet"] or self.parsed["json"]):
            print("\n".join(lines), flush=True)

    def _save(self, whole: ModelPlan) -> int:
        model = calibrated(whole.finish(self.shared), whole, self.shared)
        path = _model_path(self.parsed)
        if _took_no_step(whole.trainings) and os.path.isfile(path) and not self.parsed["force"]:
            leave(f"{path} was not replaced: the time was up before the first step. Give more time, or --force")
        digits = _FULL_DIGITS if self.parsed["full-precision"] else _LIBSVM_DIGITS
        try:
            write_libsvm_model(model, path, digits=digits)
            self._write_classes(path)
        except OSError as error:
            print(f"can't save model to file {path}", file=sys.stderr)
            return int(leave(f"{path}: {error.strerror or error}"))
        lines = plan_lines(whole, model, self.shared)
        if self.cluster is not None:
            lines.append(f"cluster: {self.cluster.work}")
            self.figures["cluster"] = vars(self.cluster.work)
        self._info(lines)  # last: standard output may fail
        self.figures |= {"model_file": path, "total_sv": int(model.coefficients.shape[1])}
        return EXIT_OK

    def _write_classes(self, path: str) -> None:
        """Write the words for the classes; those of an older model of that name would be wrong."""
        beside = classes_path(path)
        if self.samples.names:
            with atomic_write(beside) as file:
                file.writelines(f"{name}\n" for name in self.samples.names)
        else:
            with suppress(OSError):
                os.unlink(beside)

    def _cross_validate(self, plans: Sequence[ModelPlan], folds: Sequence[Index]) -> int:
        run = self.shared
        predictions = np.empty(self.samples.n)
        for plan, fold in zip(plans, folds, strict=True):
            model = calibrated(plan.finish(run), plan, run)
            self._info(plan_lines(plan, model, run))
            decisions = run.decide(plan.machines, fold)
            by_probability = bool(run.parameters.probability) and model.is_classifier
            predictions[fold] = predict(model, decisions, by_probability)
        lines, scores = cross_validation_lines(run.parameters.is_regression, self.samples.y, predictions)
        if not self.parsed["json"]:
            print("\n".join(lines), flush=True)
        self.figures |= scores
        return EXIT_OK

    def _tell_figures(self, trainings: Sequence[Training]) -> None:
        """Write or print the figures of the run, where that is asked for."""
        reports = [training.machine.solution.report.as_dict() for training in trainings]
        figures = {
            "data_file": self.parsed.files[0] if self.cluster is None else list(self.parsed.files[:-1]),
            "n_samples": self.samples.n,
            "max_index": self.samples.max_index,
            "options": {name: self.parsed[name] for name in sorted(self.parsed.given)},
            "weights": dict(self.parsed.weights),
            "seconds": clock.now() - self.started,
            **self.figures,
            "machines": reports,
        }
        if self.parsed["report"] is not None:
            write_json(figures, self.parsed["report"])
        if self.parsed["json"]:
            print(as_json(figures), flush=True)


def _took_no_step(trainings: Sequence[Training]) -> bool:
    """Whether all machines are where they started, although some should have gone on."""
    reports = [training.machine.solution.report for training in trainings]
    has_moved = any(report.iterations or report.outer_steps for report in reports)
    return not has_moved and not all(report.converged for report in reports)
