"""One page about a machine, to send to a colleague: what it is, what it proves, how it does. All in one file."""

from __future__ import annotations

import base64
import copy
import io
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

import numpy as np
import scipy.sparse as sp

from hinge import Certificates, Kernel, certificate
from hinge._version import __version__
from hinge.plot.boundary import DecisionBoundary
from hinge.plot.calibration import Calibration
from hinge.plot.convergence import Convergence
from hinge.plot.margins import Margins
from hinge.plot.style import blank_figure
from hinge.plot.subjects import Subject
from hinge.plot.tube import RegressionTube
from hinge.report import html_table

# Samples that are listed as the hardest.
_HARDEST = 12

# Classes up to which a table of confusions can be read.
_MOST_CONFUSED = 25

_STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --paper: #ffffff; --line: #d0d0d0; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e6; --paper: #16181b; --line: #43484f; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 56rem;
       margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
p.small { opacity: 0.75; font-size: 0.9rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.92rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.25rem 0.8rem 0.25rem 0; border-bottom: 1px solid var(--line); text-align: left;
         vertical-align: top; }
thead th { border-bottom-width: 2px; }
img { max-width: 100%; height: auto; background: #ffffff; border-radius: 6px; display: block; margin: 0.8rem 0; }
.proved { border-left: 4px solid #009e73; padding-left: 0.8rem; }
.unproved { border-left: 4px solid #d55e00; padding-left: 0.8rem; }
"""


def page_of(estimator: Any, X: Any, y: Any = None, *, sample_weight: Any = None, data_name: str = "") -> str:
    """Return one HTML page about a fitted machine and samples, with its pictures inside.

    Parameters
    ----------
    estimator : SVC, NuSVC, SVR, NuSVR, OneClassSVM or SVDD
        The machine, Hinge's or scikit-learn's.
    X, y, sample_weight : array-like
        Samples. Where they are those that it was fitted to, the page holds its certificate.
    data_name : str
        What to call them.

    Returns
    -------
    str
        The page.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hinge import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> page_of(SVC().fit(X, y), X, y, data_name="iris").startswith("<!DOCTYPE html>")
    True
    """
    proof, doubt = _proof(Subject.of(estimator), X, y, sample_weight)
    subject = _with_parameters(Subject.of(estimator), proof)
    parts = [
        f"<h1>{escape(subject.title)}</h1>",
        f"<p class='small'>{escape(data_name or 'samples')}: {X.shape[0]:,} rows, {X.shape[1]:,} features. "
        f"Hinge {__version__}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC.</p>",
        _section("The machine", _table(machine_rows(subject.machine))),
        _section("Certificate", doubt if proof is None else _certificate(proof, float(subject.machine.tol))),
        *_convergence(subject),
        *_results(subject, X, y),
    ]
    title = escape(f"{subject.title} – {data_name}".rstrip(" –"))
    head = (
        "<meta charset='utf-8'><meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{title}</title><style>{_STYLE}</style>"
    )
    return (
        f"<!DOCTYPE html>\n<html lang='en'><head>{head}</head>\n<body>\n" + "\n".join(parts) + "\n</body></html>\n"
    )


def machine_rows(machine: Any) -> list[tuple[str, str]]:
    """Return what a person wants to know of a fitted machine first: names and values."""
    vectors = machine.support_vectors_
    rows = [("type", type(machine).__name__)]
    kernel = machine.kernel if isinstance(machine.kernel, str) else getattr(machine.kernel, "__name__", "own")
    numbers = {"gamma": getattr(machine, "_gamma", 0.0), "coef0": machine.coef0, "degree": machine.degree}
    used = Kernel(machine.kernel).uses
    rows.append(("kernel", ", ".join([kernel, *(f"{name} = {numbers[name]:.6g}" for name in used)])))
    if hasattr(machine, "classes_"):
        counts = zip(machine.classes_.tolist(), machine.n_support_.tolist(), strict=True)
        rows.append(("classes", f"{len(machine.classes_)}"))
        each = [f"{label}: {count:,}" for label, count in counts]
        more = f", and {len(each) - 12} more classes" if len(each) > 12 else ""
        rows.append(("support vectors", f"{len(machine.support_):,} ({', '.join(each[:12])}{more})"))
    else:
        rows.append(("support vectors", f"{len(machine.support_):,}"))
    if vectors.shape[1]:
        filled = vectors.nnz if sp.issparse(vectors) else np.count_nonzero(vectors)
        share = filled / max(vectors.shape[0] * vectors.shape[1], 1)
        rows.append(("features", f"{vectors.shape[1]:,}; {share:.1%} of the support vectors' values are not zero"))
    rows.append(("probabilities", "yes" if getattr(machine, "probability", False) else "no"))
    if (report := getattr(machine, "report_", None)) is not None:
        rows += [(name, value) for name, value in report.rows() if name not in ("support vectors", "trace")]
    return rows


def _section(title: str, *parts: str) -> str:
    return f"<h2>{escape(title)}</h2>\n" + "\n".join(parts)


def _table(rows: list[tuple[str, str]]) -> str:
    return _wide([], rows)


def _wide(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table that scrolls where the page is too narrow for it."""
    return f"<div class='scroll'>{html_table(head, rows)}</div>"


def _proof(subject: Subject, X: Any, y: Any, sample_weight: Any) -> tuple[Certificates | None, str]:
    """Return the certificate, or a sentence about why there is none."""
    if subject.machine is not subject.estimator:
        X = subject.estimator[:-1].transform(X)
    try:
        return certificate(subject.machine, X, y, sample_weight), ""
    except ValueError as error:
        return None, f"<p class='unproved'>Not computed: {escape(str(error))}.</p>"


def _with_parameters(subject: Subject, proof: Certificates | None) -> Subject:
    """Give a machine from a file the parameters that were read off its coefficients, or none."""
    if subject.machine is not subject.estimator or hasattr(subject.machine, "n_iter_"):
        return subject
    machine = copy.copy(subject.machine)
    for name in ("C", "nu", "epsilon"):
        if hasattr(machine, name):
            setattr(machine, name, None if proof is None else proof.parameters.get(name))
    return Subject(machine, machine)


def _certificate(proof: Certificates, tol: float) -> str:
    problem = ", ".join(f"{name} = {value:.6g}" for name, value in proof.parameters.items())
    if proof.proves(tol):
        said = f"<p class='proved'>Proved: optimal for {problem} to within a violation of {tol:g}.</p>"
    else:
        said = f"<p class='unproved'>For {problem} the violation is {proof.violation:.3g}, above {tol:g}.</p>"
    rows = [
        ("violation", f"{proof.violation:.3g}, rounding at most {proof.rounding:.1e}"),
        ("duality gap", f"{proof.gap:.3g}"),
        ("objective", f"{proof.objective:.8g}"),
        ("constraints", f"box within {proof.box_error:.1e}, sums within {proof.sum_error:.1e}"),
    ]
    parts = [said, _table(rows)]
    if 1 < len(proof) <= _MOST_CONFUSED:
        parts.append(_wide(["machine", "violation", "gap", "objective"], proof.rows()))
    return "\n".join(parts)


def _convergence(subject: Subject) -> list[str]:
    report = getattr(subject.machine, "report_", None)
    if report is None or report.trace is None:
        return []
    return [_section("Convergence", _picture(Convergence.from_estimator, subject.machine))]


def _results(subject: Subject, X: Any, y: Any) -> list[str]:
    estimator, parts = subject.estimator, []
    predicted = np.asarray(estimator.predict(X))
    if subject.is_one_class:
        values = np.asarray(estimator.decision_function(X))
        return [
            _section("Decisions", _picture(Margins.from_estimator, estimator, X)),
            _section("Farthest outside", _hardest(values, ["decision"], [np.round(values, 6)])),
        ]
    y = np.asarray(y)
    if subject.is_classifier:
        margins = subject.margins(X, y)
        accuracy = f"<p>Accuracy {np.mean(predicted == y):.2%} of {len(y):,} samples.</p>"
        parts.append(_section("Predictions", accuracy, _confusion(y, predicted)))
        parts.append(_section("Margins", _picture(Margins.from_estimator, estimator, X, y)))
        if X.shape[1] == 2 and subject.machine.kernel != "precomputed":
            parts.append(_section("Boundary", _picture(DecisionBoundary.from_estimator, estimator, X, y)))
        if hasattr(estimator, "predict_proba"):
            parts.append(_section("Calibration", _picture(Calibration.from_estimator, estimator, X, y)))
        columns = [y, predicted, np.round(margins, 4)]
        parts.append(_section("Hardest samples", _hardest(margins, ["class", "predicted", "margin"], columns)))
        return parts
    errors = y - predicted
    spread = float(np.var(y)) or 1.0
    said = [
        ("mean squared error", f"{np.mean(errors**2):.6g}"),
        ("mean of |error|", f"{np.mean(np.abs(errors)):.6g}"),
        ("R²", f"{1 - np.mean(errors**2) / spread:.4f}"),
    ]
    parts.append(_section("Predictions", _table(said), _picture(RegressionTube.from_estimator, estimator, X, y)))
    parts.append(_section("Errors", _picture(Margins.from_estimator, estimator, X, y)))
    columns = [y, np.round(predicted, 6), np.round(errors, 6)]
    parts.append(
        _section("Largest errors", _hardest(-np.abs(errors), ["observed", "predicted", "error"], columns))
    )
    return parts


def _confusion(y: Any, predicted: Any) -> str:
    classes, codes = np.unique(np.concatenate([y, predicted]), return_inverse=True)
    if len(classes) > _MOST_CONFUSED:
        wrong = np.flatnonzero(y != predicted)
        pairs, counts = np.unique(np.column_stack([y[wrong], predicted[wrong]]), axis=0, return_counts=True)
        order = np.argsort(-counts)[:_HARDEST]
        mistakes = [(str(pairs[k][0]), str(pairs[k][1]), f"{counts[k]:,}") for k in order]
        return _wide(["class", "taken for", "samples"], mistakes)
    table = np.zeros((len(classes), len(classes)), dtype=np.int64)
    np.add.at(table, (codes[: len(y)], codes[len(y) :]), 1)
    head = ["class \\ predicted", *(str(label) for label in classes), "right"]
    rows = [
        (str(label), *(f"{count:,}" for count in row), f"{row[k] / max(row.sum(), 1):.1%}")
        for k, (label, row) in enumerate(zip(classes, table, strict=True))
    ]
    return _wide(head, rows)


def _hardest(order_by: Any, head: list[str], columns: list[Any]) -> str:
    """List the samples of the smallest values, by their row."""
    worst = np.argsort(order_by, kind="stable")[:_HARDEST]
    rows = [(f"{k + 1}", *(str(column[k]) for column in columns)) for k in worst.tolist()]
    return _wide(["row", *head], rows)


def _picture(draw: Any, *subjects: Any) -> str:
    figure = blank_figure()
    draw(*subjects, ax=figure.add_subplot())
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130)
    name = draw.__self__.__name__
    return f"<img alt='{name}' src='data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}'>"
