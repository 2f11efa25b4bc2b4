"""What a fitted model computes, as a graph of ONNX operators: written into an ONNX file, or run by PyTorch."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from manyclass.data.rows import to_numpy
from manyclass.estimators.base import Estimator
from manyclass.features.thermometer import rounded_down
from manyclass.model import LOSSES

OPSET = 18
"""The first version of the operator set that has all operators as they are used here."""
INT64 = 7
"""``onnx.TensorProto.INT64``."""


@dataclass(frozen=True)
class Node:
    """A call of an ONNX operator: the names of its inputs and of its output, and its attributes."""

    operator: str
    inputs: tuple[str, ...]
    output: str
    attributes: dict[str, Any]


@dataclass
class Program:
    """Nodes in the order of evaluation, and the constants that they read beside the rows, whose name is "X"."""

    dtype: str  # "float32" or "float64"
    nodes: list[Node] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)

    def constant(self, values: Any) -> str:
        """The name of a new constant, of the dtype of the program or of 64-bit integers."""
        array = to_numpy(values) if hasattr(values, "dtype") else np.asarray(values)
        name = f"constant{len(self.constants)}"
        self.constants[name] = array.astype(self.dtype if array.dtype.kind == "f" else np.int64)
        return name

    def __call__(self, operator: str, *inputs: Any, **attributes: Any) -> str:
        """Append a node, and give the name of its output; inputs that are no names become constants."""
        names = tuple(value if isinstance(value, str) else self.constant(value) for value in inputs)
        output = f"value{len(self.nodes)}"
        self.nodes.append(Node(operator, names, output, attributes))
        return output

    def affine(self, rows: str, W: Any, b: Any) -> str:
        return self("Add", self("MatMul", rows, W), b)

    def sum(self, terms: list[str]) -> str:
        return reduce(partial(self, "Add"), terms)


def check_dtype(dtype: str) -> None:
    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype={dtype!r} must be 'float32' or 'float64'; make other numbers of what comes out.")


def check_exportable(model: Any, dtype: str = "float32") -> None:
    """Refuse whatever is not a fitted estimator of this package, such as a pipeline or a search around one."""
    check_dtype(dtype)
    if not isinstance(model, Estimator):
        raise TypeError(
            f"{type(model).__name__} is not one model of this package; give the fitted one in it, such as pipeline[-1] "
            "or best_estimator_."
        )
    check_is_fitted(model, "status_")


def scores_of(program: Program, model: Any) -> str:
    """``decision_function`` of shape (n_rows, n_outputs), which is one column for two classes."""
    check_exportable(model)
    if hasattr(model, "models_"):
        return _stagewise_scores(program, model)
    coef = np.atleast_2d(to_numpy(model.coef_))
    return program.affine("X", np.ascontiguousarray(coef.T), np.atleast_1d(to_numpy(model.intercept_)))


def probabilities_of(program: Program, model: Any, scores: str) -> str | None:
    """``predict_proba`` of shape (n_rows, n_classes), from the scores; None if the model has none."""
    if not hasattr(model, "predict_proba"):
        return None
    single, link = is_single(model), model._link
    loss = LOSSES[link]
    if not loss.probabilistic and loss.label_values is not None:
        P = _projected_probabilities(program, model, scores, *loss.label_values)
        return _both(program, P) if single else P
    if hasattr(model, "calibration_"):
        Z = program("Add", program("Mul", scores, model.calibration_[:1]), model.calibration_[1:])
    else:
        temperature = float(getattr(model, "temperature_", 1.0))
        Z = scores if temperature == 1.0 else program("Div", scores, temperature)
    if single:
        if loss.column_loss is not None:
            return _both(program, LINKS[loss.column_loss](program, Z, 1))
        halves = program("Mul", Z, np.array([[-0.5, 0.5]]))
        return LINKS[link](program, halves, 2)
    P = LINKS[link](program, Z, n_outputs_of(model))
    if loss.label_values is None or model.multilabel_:
        return P
    total = program("ReduceSum", P, np.array([1]), keepdims=1)
    return program("Div", P, program("Max", total, 1e-37))


def codes_of(program: Program, model: Any, scores: str, probabilities: str | None) -> str:
    """Indices into ``classes_``, or an indicator matrix of several labels."""
    if not (model.multilabel_ or is_single(model)):
        return program("ArgMax", scores, axis=1, keepdims=0)
    # `AutoClassifier` may have chosen a threshold on probabilities.
    threshold = vars(model).get("_threshold") if model.multilabel_ else None
    compared = (scores, 0.0) if threshold is None else (probabilities, float(threshold))
    present = program("Cast", program("Greater", *compared), to=INT64)
    return present if model.multilabel_ else program("Squeeze", present, np.array([1]))


def is_single(model: Any) -> bool:
    """Whether one column of scores stands for two classes."""
    return not model.multilabel_ and int(model.classes_.shape[0]) == 2 and n_outputs_of(model) == 1


def n_outputs_of(model: Any) -> int:
    """Columns of the scores."""
    if hasattr(model, "models_"):
        return int(model.models_[0].n_outputs)
    return int(np.atleast_2d(to_numpy(model.coef_)).shape[0])


def _both(program: Program, P: str) -> str:
    """The probabilities of both classes, from those of the second."""
    return program("Concat", program("Sub", 1.0, P), P, axis=1)


def simplex(program: Program, V: str, n_outputs: int) -> str:
    """Rows projected onto the simplex, as by `Simplex.project`: max(v − τ, 0), τ = max_j (v_(1) + … + v_(j) − 1)/j."""
    V = program("Sub", V, program("ReduceMax", V, np.array([1]), keepdims=1))
    descending = program("TopK", V, np.array([n_outputs]), axis=1)
    excess = program("Sub", program("CumSum", descending, np.array(1)), 1.0)
    candidates = program("Div", excess, np.arange(1.0, n_outputs + 1.0)[None, :])
    return program("Relu", program("Sub", V, program("ReduceMax", candidates, np.array([1]), keepdims=1)))


def _projected(program: Program, V: str, model: Any) -> str:
    return program("Clip", V, 0.0, 1.0) if model._per_column else simplex(program, V, n_outputs_of(model))


def _projected_probabilities(program: Program, model: Any, scores: str, absent: float, present: float) -> str:
    shifted = program("Add", scores, model._midpoint - absent)
    P = _projected(program, program("Div", shifted, present - absent), model)
    if not model._doubt:
        return P
    even = 0.5 if model._per_column else 1.0 / n_outputs_of(model)
    return program("Add", program("Mul", P, 1.0 - model._doubt), model._doubt * even)


LINKS: dict[str, Callable[[Program, str, int], str]] = {
    "softmax": lambda program, Z, n_outputs: program("Softmax", Z, axis=1),
    "logistic": lambda program, Z, n_outputs: program("Sigmoid", Z),
    "sparsemax": simplex,
}
"""The mean functions of losses, on scores with so many columns."""


# -- stages -----------------------------------------------------------------------------------------------------------


def _stagewise_scores(program: Program, model: Any) -> str:
    X = "X" if model._shift is None else program("Sub", "X", np.asarray(to_numpy(model._shift), dtype=np.float64))
    mean = program.sum([_predictions(program, model, member, X) for member in model.models_])
    if len(model.models_) > 1:
        mean = program("Div", mean, float(len(model.models_)))
    return program("Sub", mean, model._midpoint) if model._midpoint else mean


def _predictions(program: Program, model: Any, member: Any, X: str) -> str:
    """Predictions of one of the models that are averaged; not projected after the last stage."""
    calibrator, features, state, scores = model._calibrator(), {}, None, ""
    for stage in member.stages:
        if stage.block not in features:
            features[stage.block] = features_of(program, member.blocks[stage.block], X)
        gain = program.affine(features[stage.block], stage.coef, stage.intercept)
        state = scores = gain if state is None else program("Add", state, gain)
        if stage.calibration is not None:
            scores = _calibrated(program, calibrator, state, stage.calibration)
            state = _projected(program, scores, model)
    return scores


def _calibrated(program: Program, calibrator: Any, V: str, calibration: Any) -> str:
    coef, intercept = map(to_numpy, calibration)
    if any(map(callable, calibrator.basis)):
        raise ValueError("A basis of functions has no operators in ONNX; fit with powers, such as basis=(1, 2, 3).")
    powers = [V if power == 1 else program("Pow", V, float(power)) for power in calibrator.basis]
    if len(coef) == coef.shape[1] * len(powers):  # joint: functions of all outputs for each
        return program.affine(program("Concat", *powers, axis=1), coef, intercept)
    terms = [program("Mul", power, weights[None, :]) for power, weights in zip(powers, coef, strict=True)]
    return program("Add", program.sum(terms), intercept)


def features_of(program: Program, block: Any, X: str) -> str:
    """``block.transform`` of the rows; the rows themselves without a generator of features."""
    if block is None:
        return X
    convert = GENERATORS.get(type(block).__name__)
    if convert is None:
        raise ValueError(
            f"{type(block).__name__} has no operators in ONNX; those that have are {', '.join(GENERATORS)}, and the "
            "columns as they are."
        )
    origin = getattr(block, "_origin", None)
    return convert(program, block, X if origin is None else program("Sub", X, np.asarray(origin, dtype=np.float64)))


def _fourier(program: Program, block: Any, X: str) -> str:
    Z = program("Cos", program.affine(X, block.random_weights_, block.random_offset_))
    return program("Mul", Z, (2.0 / block.n_features_out) ** 0.5)


def _units(program: Program, block: Any, X: str) -> str:
    Z = program.affine(X, block.random_weights_, block.random_offset_)
    return program("Mul", program(ACTIVATIONS[block.activation], Z), block._scale)


def _polynomials(program: Program, block: Any, X: str) -> str:
    W, b = block.random_weights_, block.random_offset_
    product = program.affine(X, W[0] * block._scale, b[0] * block._scale)
    for r in range(1, block.degree):
        product = program("Mul", product, program.affine(X, W[r], b[r]))
    return product


def _landmarks(program: Program, block: Any, X: str) -> str:
    landmarks, s = np.asarray(block.landmarks_, dtype=np.float64), float(block.bandwidth_)
    squares = program("ReduceSum", program("Mul", X, X), np.array([1]), keepdims=1)
    products = program.affine(X, landmarks.T * (2.0 / s), -(landmarks**2).sum(axis=1) / s)
    exponent = program("Min", program("Sub", products, program("Div", squares, s)), 0.0)  # −‖x − l‖²/s
    return program("MatMul", program("Exp", exponent), block.whitening_)


def _thermometer(program: Program, block: Any, X: str) -> str:
    numbers = program("Gather", X, block.feature_indices_, axis=1)
    exceeds = program("Greater", numbers, rounded_down(block.thresholds_, program.dtype))
    return program("Where", exceeds, 1.0, 0.0)


ACTIVATIONS = {"logistic": "Sigmoid", "relu": "Relu"}

GENERATORS: dict[str, Callable[[Program, Any, str], str]] = {
    "RandomFourierFeatures": _fourier,
    "RandomUnits": _units,
    "RandomPolynomials": _polynomials,
    "Landmarks": _landmarks,
    "FeatureSubset": lambda program, block, X: program("Gather", X, block.feature_indices_, axis=1),
    "ThermometerEncoder": _thermometer,
}
"""Converters of the transformers, by the names of their classes."""
