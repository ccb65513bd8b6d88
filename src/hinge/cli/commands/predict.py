"""``hinge predict``: predict a data file by a model file (LIBSVM's ``svm-predict``)."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from hinge.arrays import Vector
from hinge.cli.clusters import decided_on, on_cluster
from hinge.cli.data import leave, read_classes, read_samples
from hinge.cli.options import EXIT_OK, Parsed
from hinge.cli.outputs import as_json, check_output
from hinge.cli.probabilities import class_probabilities, normal_probability, predict
from hinge.cli.rankings import ranking_lines, ranking_scores
from hinge.cli.results import noise_lines, prediction_lines, prediction_scores
from hinge.cli.tables import PREDICT
from hinge.io import LibsvmModel, ModelFileError, atomic_write, read_libsvm_model
from hinge.io.models.write import number_texts


def run(arguments: Sequence[str]) -> int:
    """Run the command; return its exit code."""
    parsed = PREDICT.parse(arguments)
    *test_files, model_file, output_file = parsed.files
    check_output(output_file)
    check_output(parsed["decision-values"])
    if parsed["scheduler"] is not None:
        with on_cluster("predict", parsed, test_files) as cluster:
            model = _read_model(model_file)
            _check_probabilities(model, parsed)
            return _predict(parsed, model, decided_on(cluster, test_files, model))
    samples = read_samples(test_files[0], parsed, names=read_classes(model_file))
    model = _read_model(model_file)
    _check_probabilities(model, parsed)
    if model.kernel.is_precomputed:
        _check_rows(samples.rows)
    decided = model.decide(samples.rows, parsed["threads"])
    pieces = ((samples.y[start : start + len(decisions)], decisions) for start, decisions in decided)
    return _predict(parsed, model, pieces, samples.qid)


def _predict(parsed: Parsed, model: LibsvmModel, pieces: Iterable[tuple[Vector, Vector]], qid: Any = None) -> int:
    """Write and tell what follows from labels and decisions, which come piece by piece."""
    *_, model_file, output_file = parsed.files
    words = {float(k): name for k, name in enumerate(read_classes(model_file), 1)}
    predicted, given = [np.empty(0)], [np.empty(0)]
    try:
        with ExitStack() as stack:
            output = stack.enter_context(atomic_write(output_file))
            decisions_file = parsed["decision-values"]
            extra = stack.enter_context(atomic_write(decisions_file)) if decisions_file else None
            output.write(_head(model, bool(parsed["probability"]), words))
            for known, decisions in pieces:
                labels, lines = _answers(model, decisions, bool(parsed["probability"]), words)
                predicted.append(labels)
                given.append(known)
                output.writelines(lines)
                if extra is not None:
                    extra.writelines(" ".join(number_texts(row, 17)) + "\n" for row in decisions)
    except ConnectionError:  # of a cluster
        raise
    except OSError as error:
        print(f"can't open output file {output_file}", file=sys.stderr)
        leave(f"{error.filename or output_file}: {error.strerror or error}")
    except ValueError as error:
        leave(f"ERROR: {error}")
    _tell(parsed, model, np.concatenate(given), np.concatenate(predicted), qid)
    return EXIT_OK


def _tell(parsed: Parsed, model: LibsvmModel, y: Vector, predicted: Vector, qid: Any) -> None:
    """Print how good the predictions are."""
    is_ranking = model.svm_type == "ranking"
    if parsed["json"]:
        scores = (
            ranking_scores(y, predicted, qid)
            if is_ranking
            else prediction_scores(model.is_regression, y, predicted)
        )
        print(as_json({"output_file": parsed.files[-1], "n_samples": len(y), **scores}), flush=True)
    elif not parsed["quiet"]:
        told = (
            ranking_lines(y, predicted, qid) if is_ranking else prediction_lines(model.is_regression, y, predicted)
        )
        print("\n".join(told), flush=True)


def _read_model(path: str) -> LibsvmModel:
    try:
        return read_libsvm_model(path)
    except ModelFileError as error:
        print(error.message if error.message.startswith("unknown text") else str(error), file=sys.stderr)
        if error.message.startswith("unknown text"):
            print("ERROR: fscanf failed to read model", file=sys.stderr)
    except OSError:
        pass
    leave(f"can't open model file {path}")
    raise AssertionError


def _check_probabilities(model: LibsvmModel, parsed: Parsed) -> None:
    is_quiet = parsed["quiet"] or parsed["json"]
    if parsed["probability"]:
        if not model.has_probabilities:
            leave("Model does not support probabiliy estimates")
        if model.is_regression and model.prob_a is not None and not is_quiet:
            print("\n".join(noise_lines(float(model.prob_a[0]), "sigma=")))
    elif model.has_probabilities and not is_quiet:
        print("Model supports probability estimates, but disabled in prediction.")


def _check_rows(rows: Any) -> None:
    """Rows of a precomputed kernel begin with 0:anything; what follows are kernel values."""
    first = rows.indptr[:-1]
    filled = rows.indptr[1:] > first
    if not (filled.all() and (rows.indices[first] == 0).all()):
        leave("Wrong input format: first column must be 0:sample_serial_number")


def _head(model: LibsvmModel, with_probabilities: bool, words: dict[float, str]) -> str:
    if not with_probabilities or model.is_regression:
        return ""
    if model.labels is None:
        return "label normal outlier\n"
    return " ".join(["labels", *(words.get(label, str(label)) for label in model.labels.tolist())]) + "\n"


def _answers(
    model: LibsvmModel, decisions: Vector, with_probabilities: bool, words: dict[float, str]
) -> tuple[Vector, Iterator[str]]:
    """Return labels or values, and the lines of the output file."""
    if not with_probabilities or model.is_regression:
        labels = predict(model, decisions)
        return labels, (text + "\n" for text in _label_texts(labels, 17, words))
    if model.is_novelty:
        assert model.density_marks is not None
        labels = predict(model, decisions)
        normal = normal_probability(model.density_marks, decisions[:, 0])
        probabilities = np.column_stack([normal, 1 - normal])
    else:
        assert model.labels is not None
        probabilities = class_probabilities(model, decisions)
        labels = model.labels[np.argmax(probabilities, axis=1)].astype(np.float64)
    columns = [_label_texts(labels, 6, words), *(number_texts(column, 6) for column in probabilities.T)]
    return labels, (" ".join(row) + "\n" for row in zip(*columns, strict=True))


def _label_texts(labels: Vector, digits: int, words: dict[float, str]) -> Sequence[str]:
    """Return labels as they are written: as words where the model has words for them."""
    texts = number_texts(labels, digits)
    return [words.get(label, text) for label, text in zip(labels.tolist(), texts, strict=True)] if words else texts
