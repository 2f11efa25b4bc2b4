"""What a fitted model computes, as operators of ONNX: written into an ONNX file, or carried out by PyTorch."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from manyclass.data.rows import to_numpy
from manyclass.estimators.base import Estimator
from manyclass.features.thermometer import rounded_down
from manyclass.model import LOSSES

OPSET = 18
"""The first version of the operators that has all of them as they are used here."""
INT64 = 7
"""The number of that type in ONNX."""


@dataclass(frozen=True)
class Node:
    """An operator of ONNX (`OPSET`), what it reads, the name of what it gives, and its attributes."""

    operator: str
    inputs: tuple[str, ...]
    output: str
    attributes: dict[str, Any]


@dataclass
class Program:
    """Nodes in their order, and the arrays they read beside the rows, whose name is "X"."""

    dtype: str  # "float32" or "float64"
    nodes: list[Node] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)

    def constant(self, values: Any) -> str:
        """The name of an array; real ones take the dtype of the program."""
        array = to_numpy(values) if hasattr(values, "dtype") else np.asarray(values)
        name = f"constant{len(self.constants)}"
        self.constants[name] = array.astype(self.dtype if array.dtype.kind == "f" else np.int64)
        return name

    def __call__(self, operator: str, *inputs: Any, **attributes: Any) -> str:
        """Append an operator; inputs that are no names become constants."""
        names = tuple(one if isinstance(one, str) else self.constant(one) for one in inputs)
        output = f"value{len(self.nodes)}"
        self.nodes.append(Node(operator, names, output, attributes))
        return output

    def affine(self, rows: str, W: Any, b: Any) -> str:
        return self("Add", self("MatMul", rows, W), b)


def check_dtype(dtype: str) -> None:
    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype={dtype!r} must be 'float32' or 'float64'; make other numbers of what comes out.")


def check_exportable(model: Any, dtype: str = "float32") -> None:
    """Refuse what has no scores of its own: no model of this package, or one around another."""
    check_dtype(dtype)
    if not isinstance(model, Estimator):
        raise TypeError(
            f"{type(model).__name__} is not one model of this package; give the fitted one in it, such as pipeline[-1] "
            "or best_estimator_."
        )
    check_is_fitted(model, "status_")


def scores_of(program: Program, model: Any) -> str:
    """(n_rows, n_outputs) as the model's own scores, one column for two classes."""
    check_exportable(model)
    if hasattr(model, "models_"):
        return _of_stages(program, model)
    coef = np.atleast_2d(to_numpy(model.coef_))
    return program.affine("X", np.ascontiguousarray(coef.T), np.atleast_1d(to_numpy(model.intercept_)))


def probabilities_of(program: Program, model: Any, scores: str) -> str | None:
    """(n_rows, n_classes) from scores; None where the model gives none."""
    if not hasattr(model, "predict_proba"):
        return None
    single = is_single(model)
    loss = LOSSES[model._link]
    if not loss.probabilistic and loss.label_values is not None:
        absent, present = loss.label_values
        near = program("Add", scores, model._midpoint - absent)
        P = _projected(program, program("Div", near, present - absent), model)
        doubt = getattr(model, "_doubt", 0.0)
        if doubt:
            even = 0.5 if model._per_column else 1.0 / n_outputs_of(model)
            P = program("Add", program("Mul", P, 1.0 - doubt), doubt * even)
        return _both(program, P) if single else P
    temperature, link = getattr(model, "temperature_", 1.0), model._link
    Z = scores if temperature == 1.0 else program("Div", scores, float(temperature))
    if hasattr(model, "calibration_"):
        Z = program("Add", program("Mul", scores, model.calibration_[:1]), model.calibration_[1:])
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
    """Places in ``classes_``, or indicators of several labels."""
    if not (model.multilabel_ or is_single(model)):
        return program("ArgMax", scores, axis=1, keepdims=0)
    # A threshold that `AutoClassifier` has chosen is one of probabilities.
    chosen = vars(model).get("_threshold") if model.multilabel_ else None
    beyond = program("Greater", scores, 0.0) if chosen is None else program("Greater", probabilities, float(chosen))
    present = program("Cast", beyond, to=INT64)
    return present if model.multilabel_ else program("Squeeze", present, np.array([1]))


def is_single(model: Any) -> bool:
    """Whether two classes have one column of scores."""
    return not model.multilabel_ and int(model.classes_.shape[0]) == 2 and n_outputs_of(model) == 1


def n_outputs_of(model: Any) -> int:
    """Columns of the scores."""
    if hasattr(model, "models_"):
        return int(model.models_[0].n_outputs)
    return int(np.atleast_2d(to_numpy(model.coef_)).shape[0])


def _both(program: Program, P: str) -> str:
    return program("Concat", program("Sub", 1.0, P), P, axis=1)


def simplex(program: Program, V: str, n_outputs: int) -> str:
    """Rows projected onto the simplex: max(v − τ, 0), τ the largest of (v_(1) + … + v_(j) − 1)/j over j.

    Of V less its largest, as `Simplex.project`.
    """
    V = program("Sub", V, program("ReduceMax", V, np.array([1]), keepdims=1))
    descending = program("TopK", V, np.array([n_outputs]), axis=1)
    excess = program("Sub", program("CumSum", descending, np.array(1)), 1.0)
    candidates = program("Div", excess, np.arange(1.0, n_outputs + 1.0)[None, :])
    return program("Relu", program("Sub", V, program("ReduceMax", candidates, np.array([1]), keepdims=1)))


def _projected(program: Program, V: str, model: Any) -> str:
    return program("Clip", V, 0.0, 1.0) if model._per_column else simplex(program, V, n_outputs_of(model))


LINKS: dict[str, Callable[[Program, str, int], str]] = {
    "softmax": lambda program, Z, n_outputs: program("Softmax", Z, axis=1),
    "logistic": lambda program, Z, n_outputs: program("Sigmoid", Z),
    "sparsemax": simplex,
}
"""Probabilities by the link of a loss, from scores with so many columns."""


# -- stages -----------------------------------------------------------------------------------------------------------


def _of_stages(program: Program, model: Any) -> str:
    X = "X" if model._shift is None else program("Sub", "X", np.asarray(to_numpy(model._shift), dtype=np.float64))
    total = None
    for one in model.models_:
        scores = _of_one(program, model, one, X)
        total = scores if total is None else program("Add", total, scores)
    assert total is not None
    if len(model.models_) > 1:
        total = program("Div", total, float(len(model.models_)))
    return program("Sub", total, model._midpoint) if model._midpoint else total


def _of_one(program: Program, model: Any, one: Any, X: str) -> str:
    calibrator, features, state, scores = model._calibrator(), {}, None, ""
    for stage in one.stages:
        if stage.block not in features:
            features[stage.block] = features_of(program, one.blocks[stage.block], X)
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
    n_outputs = coef.shape[1]
    if len(coef) == n_outputs * len(powers):
        functions = program("Concat", *powers, axis=1)
        return program.affine(functions, coef, intercept)
    parts = [program("Mul", power, coef[number][None, :]) for number, power in enumerate(powers)]
    total = parts[0]
    for part in parts[1:]:
        total = program("Add", total, part)
    return program("Add", total, intercept)


def features_of(program: Program, block: Any, X: str) -> str:
    """What a fitted generator of features makes of rows."""
    if block is None:
        return X
    known = GENERATORS.get(type(block).__name__)
    if known is None:
        raise ValueError(
            f"{type(block).__name__} has no operators in ONNX; those that have are {', '.join(GENERATORS)}, and the "
            "columns as they are."
        )
    origin = getattr(block, "_origin", None)
    return known(program, block, X if origin is None else program("Sub", X, np.asarray(origin, dtype=np.float64)))


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
    near = program.affine(X, landmarks.T * (2.0 / s), -(landmarks**2).sum(axis=1) / s)
    exponent = program("Min", program("Sub", near, program("Div", squares, s)), 0.0)
    return program("MatMul", program("Exp", exponent), block.whitening_)


def _codes_of_columns(program: Program, block: Any, X: str) -> str:
    numbers = program("Gather", X, block.feature_indices_, axis=1)
    beyond = program("Greater", numbers, rounded_down(block.thresholds_, program.dtype))
    return program("Where", beyond, 1.0, 0.0)


ACTIVATIONS = {"logistic": "Sigmoid", "relu": "Relu"}

GENERATORS: dict[str, Callable[[Program, Any, str], str]] = {
    "RandomFourierFeatures": _fourier,
    "RandomUnits": _units,
    "RandomPolynomials": _polynomials,
    "Landmarks": _landmarks,
    "FeatureSubset": lambda program, block, X: program("Gather", X, block.feature_indices_, axis=1),
    "ThermometerEncoder": _codes_of_columns,
}
"""What each transformer of this package computes, by the name of its class."""
