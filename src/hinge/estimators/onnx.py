"""Conversion to ONNX: importing this module registers all estimators with ``skl2onnx``.

The graph is made of matrix products and elementwise functions, so that it runs in the precision of its input:
declare ``DoubleTensorType`` for double precision. Kernel functions of your own cannot be converted. The option
``raw_scores`` asks for decision values where there are probabilities.

Examples
--------
>>> import numpy as np
>>> from hinge import SVC
>>> import hinge.estimators.onnx
>>> from skl2onnx import to_onnx
>>> X = np.array([[-1.0], [-2.0], [1.0], [2.0]], dtype=np.float32)
>>> graph = to_onnx(SVC().fit(X, [0, 0, 1, 1]), X)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from skl2onnx import update_registered_converter  # type: ignore[import-untyped]
from skl2onnx.algebra.onnx_ops import (  # type: ignore[import-untyped]
    OnnxAbs,
    OnnxAdd,
    OnnxArgMax,
    OnnxArrayFeatureExtractor,
    OnnxCast,
    OnnxConcat,
    OnnxDiv,
    OnnxExp,
    OnnxGather,
    OnnxGreater,
    OnnxIdentity,
    OnnxMatMul,
    OnnxMax,
    OnnxMin,
    OnnxMul,
    OnnxPow,
    OnnxReduceSum,
    OnnxReshape,
    OnnxSigmoid,
    OnnxSub,
    OnnxTanh,
    OnnxTranspose,
    OnnxUnsqueeze,
    OnnxWhere,
)
from skl2onnx.common.data_types import (  # type: ignore[import-untyped]
    DoubleTensorType,
    FloatTensorType,
    Int64TensorType,
    StringTensorType,
    guess_numpy_type,
)
from skl2onnx.proto import onnx_proto  # type: ignore[import-untyped]

from hinge.estimators import SVC, SVDD, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM
from hinge.estimators.novelty import ROUNDING
from hinge.training.multiclass import duels
from hinge.training.probability import NEAREST_TO_CERTAIN

_FLOATS = {np.float32: onnx_proto.TensorProto.FLOAT, np.float64: onnx_proto.TensorProto.DOUBLE}


class _Graph:
    """Builds nodes in one precision and operator version."""

    def __init__(self, operator: Any, container: Any) -> None:
        self.machine = operator.raw_operator
        self.version = container.target_opset
        self.X = operator.inputs[0]
        kind = guess_numpy_type(self.X.type)
        self.dtype = kind if kind in _FLOATS else np.float32
        if kind not in _FLOATS:
            self.X = self.node(OnnxCast, self.X, to=_FLOATS[self.dtype])

    def node(self, operation: Any, *inputs: Any, **options: Any) -> Any:
        return operation(*inputs, op_version=self.version, **options)

    def constant(self, values: Any) -> Any:
        return np.atleast_1d(np.asarray(values, dtype=self.dtype))

    def decisions(self) -> Any:
        """Decision values, one column per machine."""
        model = self.machine._model
        coefficients, intercepts = _dense(model.coefficients).T, self.constant(model.intercepts)
        if model.kernel.is_linear:
            product = self.node(OnnxMatMul, self.X, self.constant(_dense(model.weights()).T))
        elif model.kernel.is_precomputed:
            spread = np.zeros((self.machine.shape_fit_[0], coefficients.shape[1]))
            spread[model.support] = coefficients
            product = self.node(OnnxMatMul, self.X, self.constant(spread))
        else:
            product = self.node(OnnxMatMul, self._values(model), self.constant(coefficients))
        sums = self.node(OnnxAdd, product, intercepts)
        if model.own == 0:
            return sums
        return self.node(OnnxAdd, sums, self.node(OnnxMul, self._self_values(model), self.constant(model.own)))

    def _self_values(self, model: Any) -> Any:
        """k(x, x) of X as a column, or 1 where it is that of every sample."""
        kernel, n_features = model.kernel, model.support_vectors.shape[1]
        if not kernel.has_features:
            raise NotImplementedError("SVDD needs k(x, x): of kernel values alone it cannot be converted to ONNX")
        if kernel.decays or kernel.is_ratio:
            return self.constant(1.0)
        norms = self._own_norms(kernel.statistic)
        if (kernel.by_differences or kernel.statistic) == "dot":
            compared = norms
        else:  # no sample differs from itself
            compared = self.node(OnnxMatMul, self.X, self.constant(np.zeros((n_features, 1))))
        return kernel.expression(self, _Terms(self, compared), _Terms(self, norms), _Terms(self, norms)).node

    def _values(self, model: Any) -> Any:
        """Kernel values of X with the support vectors, by the kernel's own expression."""
        kernel = model.kernel
        if not kernel.has_features:
            return kernel.expression(self, None, None, None)  # which says why there is none
        vectors = _dense(model.support_vectors).astype(np.float64)
        statistic = kernel.by_differences or kernel.statistic
        compared = _Terms(self, self._compare(statistic, vectors), vectors if statistic == "dot" else None)
        norms, others = self._norms(kernel.statistic, vectors) if kernel.takes_norms else (None, None)
        return kernel.expression(self, compared, norms, others).node

    def exp(self, x: _Terms) -> _Terms:
        """As NumPy's."""
        return _Terms(self, self.node(OnnxExp, x.node))

    def tanh(self, x: _Terms) -> _Terms:
        """As NumPy's."""
        return _Terms(self, self.node(OnnxTanh, x.node))

    def where(self, is_so: _Terms, x: _Terms, y: float) -> _Terms:
        """As NumPy's."""
        return _Terms(self, self.node(OnnxWhere, is_so.node, x.node, self.constant(y)))

    def _compare(self, statistic: str, vectors: Any) -> Any:
        """Compare X with support vectors, as `Samples.compare` does."""
        if statistic == "dot":
            return self.node(OnnxMatMul, self.X, self.constant(vectors.T))
        if statistic == "l2":
            return self._squared_distances(vectors)
        X = self.node(OnnxUnsqueeze, self.X, np.array([1], np.int64))
        others = self.constant(vectors[None, :, :])
        difference = self.node(OnnxSub, X, others)
        if statistic == "l1":
            terms = self.node(OnnxAbs, difference)
        elif statistic == "chi2":  # 0/0 counts as 0: the numerator is 0 wherever the sum is
            sums = self.node(OnnxMax, self.node(OnnxAdd, X, others), self.constant(np.finfo(self.dtype).tiny))
            terms = self.node(OnnxDiv, self.node(OnnxMul, difference, difference), sums)
        else:
            raise NotImplementedError(f"comparisons by {statistic!r} cannot be converted to ONNX")
        return self.node(OnnxReduceSum, terms, np.array([2], np.int64), keepdims=0)

    def _norms(self, statistic: str, vectors: Any) -> tuple[_Terms, _Terms]:
        """Norms of X as a column and of the support vectors as a row, as `Samples.norms` defines them."""
        others = (vectors**2 if _has_squares(statistic) else np.abs(vectors)).sum(axis=1)
        own = self._own_norms(statistic)
        return _Terms(self, own), _Terms(self, self.constant(others[None, :]))

    def _own_norms(self, statistic: str) -> Any:
        terms = self.node(OnnxMul, self.X, self.X) if _has_squares(statistic) else self.node(OnnxAbs, self.X)
        return self.node(OnnxReduceSum, terms, np.array([1], np.int64), keepdims=1)

    def _squared_distances(self, vectors: Any) -> Any:
        center = vectors.mean(axis=0)  # distances stay, products become small
        vectors = vectors - center
        X = self.node(OnnxSub, self.X, self.constant(center))
        ones = self.constant(np.ones((vectors.shape[1], 1)))
        own = self.node(OnnxMatMul, self.node(OnnxMul, X, X), ones)
        cross = self.node(OnnxMatMul, X, self.constant(-2 * vectors.T))
        norms = self.constant((vectors**2).sum(axis=1)[None, :])
        total = self.node(OnnxAdd, self.node(OnnxAdd, own, cross), norms)
        return self.node(OnnxMax, total, self.constant(0.0))


def _has_squares(statistic: str) -> bool:
    """Whether norms are sums of squares, and not of sizes."""
    return statistic in ("dot", "l2")


class _Terms:
    """A node with the signs of arithmetic, for `Kernel.expression`."""

    def __init__(self, graph: _Graph, node: Any, vectors: Any = None) -> None:
        self.graph, self.node = graph, node
        self._vectors = vectors  # where these are dot products with them

    def _with(self, operation: Any, other: Any) -> _Terms:
        right = other.node if isinstance(other, _Terms) else self.graph.constant(other)
        return _Terms(self.graph, self.graph.node(operation, self.node, right))

    def _behind(self, operation: Any, number: float) -> _Terms:
        return _Terms(self.graph, self.graph.node(operation, self.graph.constant(number), self.node))

    def __add__(self, other: Any) -> _Terms:
        return self._with(OnnxAdd, other)

    def __sub__(self, other: Any) -> _Terms:
        return self._with(OnnxSub, other)

    def __mul__(self, other: Any) -> _Terms:
        # onnxruntime would make one node of dot products and a factor, with the factor in float32.
        if self._vectors is not None and not isinstance(other, _Terms):
            return _Terms(self.graph, self.graph._compare("dot", other * self._vectors))
        return self._with(OnnxMul, other)

    def __truediv__(self, other: Any) -> _Terms:
        return self._with(OnnxDiv, other)

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, number: float) -> _Terms:
        return self._behind(OnnxSub, number)

    def __rtruediv__(self, number: float) -> _Terms:
        return self._behind(OnnxDiv, number)

    def __gt__(self, other: Any) -> _Terms:
        return self._with(OnnxGreater, other)

    def __pow__(self, other: Any) -> _Terms:
        return self._with(OnnxPow, other)


def _dense(matrix: Any) -> Any:
    return matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix)


def _output_type(operator: Any) -> Any:
    is_double = isinstance(operator.inputs[0].type, DoubleTensorType)
    return DoubleTensorType if is_double else FloatTensorType


# ---------------------------------------------------------------------- classifiers


def _classifier_shapes(operator: Any) -> None:
    machine, n = operator.raw_operator, operator.inputs[0].get_first_dimension()
    is_text = machine.classes_.dtype.kind in "OUS"
    operator.outputs[0].type = (StringTensorType if is_text else Int64TensorType)([n])
    k = len(machine.classes_)
    has_pairs = k > 2 and machine.multi_class == "ovo" and machine.decision_function_shape == "ovo"
    if _has_probabilities(machine):
        has_pairs = has_pairs and _wants_raw_scores(operator, operator.scope_inst)
    n_scores = k * (k - 1) // 2 if has_pairs else k
    operator.outputs[1].type = _output_type(operator)([n, n_scores])


def _convert_classifier(scope: Any, operator: Any, container: Any) -> None:
    graph = _Graph(operator, container)
    machine, k = graph.machine, len(graph.machine.classes_)
    decisions = graph.decisions()
    if k == 2:
        first = graph.node(OnnxMul, decisions, graph.constant(-1.0))
        merit = scores = graph.node(OnnxConcat, first, decisions, axis=1)
    elif machine.multi_class != "ovo":
        merit = scores = decisions
    else:
        votes, confident = _votes(graph, decisions, k)
        merit = confident if machine.break_ties else votes
        scores = decisions if machine.decision_function_shape == "ovo" else confident
    if _has_probabilities(machine):
        merit = _probabilities(graph, decisions, k)
        scores = scores if _wants_raw_scores(operator, container) else merit
    best = graph.node(OnnxArgMax, merit, axis=1, keepdims=0)
    flat = graph.node(OnnxReshape, best, np.array([-1], np.int64))
    is_text = machine.classes_.dtype.kind in "OUS"
    classes = np.array([str(c) for c in machine.classes_]) if is_text else machine.classes_.astype(np.int64)
    picked = graph.node(OnnxArrayFeatureExtractor, classes, flat)
    labels = graph.node(OnnxReshape, picked, np.array([-1], np.int64), output_names=operator.outputs[:1])
    values = graph.node(OnnxIdentity, scores, output_names=operator.outputs[1:])
    labels.add_to(scope, container)
    values.add_to(scope, container)


def _has_probabilities(machine: Any) -> bool:
    return bool(getattr(machine, "_calibrates", False))  # linear machines never do


def _wants_raw_scores(operator: Any, container: Any) -> bool:
    return bool(container.get_options(operator.raw_operator, {"raw_scores": False})["raw_scores"])


def _probabilities(graph: _Graph, decisions: Any, n_classes: int) -> Any:
    """Probabilities of all classes, as `KernelClassifier._probabilities` makes them of decisions."""
    slopes, offsets = graph.machine._sigmoids.T
    z = graph.node(OnnxAdd, graph.node(OnnxMul, decisions, graph.constant(-slopes)), graph.constant(-offsets))
    of_machines = graph.node(OnnxMax, graph.node(OnnxSigmoid, z), graph.constant(NEAREST_TO_CERTAIN))
    of_machines = graph.node(OnnxMin, of_machines, graph.constant(1 - NEAREST_TO_CERTAIN))
    if n_classes == 2:
        first = graph.node(OnnxSub, graph.constant(1.0), of_machines)
        return graph.node(OnnxConcat, first, of_machines, axis=1)
    shares = of_machines if graph.machine.multi_class == "ovr" else _coupled(graph, of_machines, n_classes)
    sums = graph.node(OnnxReduceSum, shares, np.array([1], np.int64), keepdims=1)
    return graph.node(OnnxDiv, shares, sums)


def _coupled(graph: _Graph, pairwise: Any, n_classes: int) -> Any:
    """Distributions that fit the probabilities of all pairs best, up to their sums; see `couple`.

    ONNX has no linear solve. With Q of `coupling_matrix`, p is a multiple of the solution of (Q + eeᵀ) p = e, e
    all ones: a positive definite system, which needs no pivots.
    """
    rows, columns = np.triu_indices(n_classes, 1)
    spread, base = np.zeros((len(rows), n_classes, n_classes)), np.zeros((n_classes, n_classes))
    spread[np.arange(len(rows)), rows, columns], spread[np.arange(len(rows)), columns, rows] = 1.0, -1.0
    base[columns, rows] = 1.0
    flat = graph.node(OnnxMatMul, pairwise, graph.constant(spread.reshape(len(rows), -1)))
    square = np.array([-1, n_classes, n_classes], np.int64)
    r = graph.node(OnnxAdd, graph.node(OnnxReshape, flat, square), graph.constant(base))
    turned = graph.node(OnnxTranspose, r, perm=[0, 2, 1])
    squares = graph.node(OnnxMul, turned, turned)
    diagonal = graph.node(OnnxReduceSum, squares, np.array([2], np.int64), keepdims=1)
    system = graph.node(OnnxSub, graph.constant(np.ones((n_classes, n_classes))), graph.node(OnnxMul, r, turned))
    system = graph.node(OnnxAdd, system, graph.node(OnnxMul, diagonal, graph.constant(np.eye(n_classes))))
    ones = graph.node(OnnxAdd, graph.node(OnnxMul, diagonal, graph.constant(0.0)), graph.constant(1.0))
    system = graph.node(OnnxConcat, system, ones, axis=2)
    for j in range(n_classes):  # Gauss and Jordan: row j is divided by its pivot and taken from all others
        place = np.array([j], np.int64)
        row = graph.node(OnnxGather, system, place, axis=1)
        row = graph.node(OnnxDiv, row, graph.node(OnnxGather, row, place, axis=2))
        unit = graph.constant(np.eye(n_classes)[:, [j]])
        column = graph.node(OnnxSub, graph.node(OnnxGather, system, place, axis=2), unit)
        system = graph.node(OnnxSub, system, graph.node(OnnxMul, column, row))
    solution = graph.node(OnnxGather, system, np.array([n_classes], np.int64), axis=2)
    found = graph.node(OnnxReshape, solution, np.array([-1, n_classes], np.int64))
    return graph.node(OnnxMax, found, graph.constant(0.0))


def _votes(graph: _Graph, decisions: Any, n_classes: int) -> tuple[Any, Any]:
    """Votes of all pairs, and votes with confidence, as `hinge.training.multiclass` counts them."""
    pairs = duels(n_classes)
    signed = np.zeros((len(pairs), n_classes))
    for row, (i, j) in zip(signed, pairs, strict=True):
        row[i], row[j] = 1.0, -1.0
    for_first = graph.node(
        OnnxCast, graph.node(OnnxGreater, decisions, graph.constant(0.0)), to=_FLOATS[graph.dtype]
    )
    # A pair's vote is 1 for the second class, changed by (+1, −1) if the first one wins.
    base = graph.constant(np.maximum(-signed, 0.0).sum(axis=0))
    votes = graph.node(OnnxAdd, graph.node(OnnxMatMul, for_first, graph.constant(signed)), base)
    confidence = graph.node(OnnxMatMul, decisions, graph.constant(signed))
    size = graph.node(OnnxAdd, graph.node(OnnxAbs, confidence), graph.constant(1.0))
    share = graph.node(OnnxDiv, confidence, graph.node(OnnxMul, size, graph.constant(3.0)))
    return votes, graph.node(OnnxAdd, votes, share)


# ---------------------------------------------------------------------- regressors and novelty detection


def _regressor_shapes(operator: Any) -> None:
    n_targets = len(operator.raw_operator._model.intercepts)
    operator.outputs[0].type = _output_type(operator)([operator.inputs[0].get_first_dimension(), n_targets])


def _convert_regressor(scope: Any, operator: Any, container: Any) -> None:
    graph = _Graph(operator, container)
    out = graph.node(OnnxIdentity, graph.decisions(), output_names=operator.outputs[:1])
    out.add_to(scope, container)


def _one_class_shapes(operator: Any) -> None:
    n = operator.inputs[0].get_first_dimension()
    operator.outputs[0].type = Int64TensorType([n, 1])
    operator.outputs[1].type = _output_type(operator)([n, 1])


def _convert_one_class(scope: Any, operator: Any, container: Any) -> None:
    graph = _Graph(operator, container)
    decisions = graph.decisions()
    # Samples on the boundary have exactly 0, as in `decision_function`.
    reach = graph.constant(ROUNDING * graph.machine._size)
    is_clear = graph.node(OnnxGreater, graph.node(OnnxAbs, decisions), reach)
    decisions = graph.node(OnnxWhere, is_clear, decisions, graph.constant(0.0))
    is_outlier = graph.node(
        OnnxCast, graph.node(OnnxGreater, graph.constant(0.0), decisions), to=onnx_proto.TensorProto.INT64
    )
    minus_two, one = np.array([-2], np.int64), np.array([1], np.int64)
    signs = graph.node(OnnxAdd, graph.node(OnnxMul, is_outlier, minus_two), one, output_names=operator.outputs[:1])
    values = graph.node(OnnxIdentity, decisions, output_names=operator.outputs[1:])
    signs.add_to(scope, container)
    values.add_to(scope, container)


def register() -> None:
    """Register the converters; importing this module has done so already."""
    options = {
        "zipmap": [True, False, "columns"], "nocl": [True, False], "output_class_labels": [False, True],
        "raw_scores": [True, False],
    }  # fmt: skip
    for classifier in (SVC, NuSVC, LinearSVC):
        name = f"Hinge{classifier.__name__}"
        update_registered_converter(classifier, name, _classifier_shapes, _convert_classifier, options=options)
    for regressor in (SVR, NuSVR, LinearSVR):
        name = f"Hinge{regressor.__name__}"
        update_registered_converter(regressor, name, _regressor_shapes, _convert_regressor)
    for detector in (OneClassSVM, SVDD):
        update_registered_converter(detector, f"Hinge{detector.__name__}", _one_class_shapes, _convert_one_class)


register()
