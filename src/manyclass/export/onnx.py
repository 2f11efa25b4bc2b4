"""Models as ONNX, by skl2onnx."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from manyclass.data.rows import to_numpy
from manyclass.export.program import (
    GENERATORS,
    OPSET,
    Program,
    check_dtype,
    codes_of,
    features_of,
    n_outputs_of,
    probabilities_of,
    scores_of,
)
from manyclass.features import TableEncoder


def to_onnx(model: Any, dtype: str = "float32", **options: Any) -> Any:
    """A fitted model, or a pipeline that ends with one, as an ONNX model.

    Parameters
    ----------
    model : estimator
        A linear one of this package, calibrated least squares or a stagewise model; a `Pipeline` that ends with it; or
        a search that found it, such as `AutoClassifier`.
    dtype : {"float32", "float64"}
        Of the rows and the coefficients. Calibrated least squares may lose digits in float32: its probabilities were
        off by up to 0.004 where calibration had large coefficients that nearly cancel.
    **options
        Passed on to ``skl2onnx.to_onnx``; ``target_opset`` is by default the first that has all operators used, so that
        old runtimes can read the model.

    Returns
    -------
    onnx_model : onnx.ModelProto
        With the input "X", of shape (n_rows, n_features), and the outputs "label" and "probabilities" ("scores" of
        models without any), or "variable" of a regressor.

    Raises
    ------
    ValueError
        If `dtype` is neither, or features or the basis of a calibration are functions that ONNX has no operators for.
    TypeError
        If the pipeline begins with a `TableEncoder`.

    Examples
    --------
    >>> import onnxruntime  # doctest: +SKIP
    >>> from sklearn.datasets import load_iris
    >>> from manyclass import GLMClassifier
    >>> from manyclass.export import to_onnx
    >>> X, y = load_iris(return_X_y=True)
    >>> content = to_onnx(GLMClassifier().fit(X, y)).SerializeToString()  # doctest: +SKIP
    >>> session = onnxruntime.InferenceSession(content)  # doctest: +SKIP
    >>> label, probabilities = session.run(None, {"X": X.astype("float32")})  # doctest: +SKIP
    >>> probabilities.shape  # doctest: +SKIP
    (150, 3)
    """
    import skl2onnx
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    check_is_fitted(model)
    check_dtype(dtype)
    model = getattr(model, "best_estimator_", model)
    if any(isinstance(step, TableEncoder) for _, step in getattr(model, "steps", ())):
        raise TypeError(
            "Tables of text and gaps have no operators in ONNX: export what is behind TableEncoder, such as "
            "best_estimator_[1:], and give that the rows that TableEncoder.transform gives."
        )
    register_converters()
    options.setdefault("target_opset", OPSET)
    kind = {"float32": FloatTensorType, "float64": DoubleTensorType}[dtype]
    return skl2onnx.to_onnx(model, initial_types=[("X", kind([None, model.n_features_in_]))], **options)


def register_converters() -> None:
    """Register converters with skl2onnx for the estimators of this package, also within pipelines and ensembles.

    Examples
    --------
    >>> import skl2onnx  # doctest: +SKIP
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from manyclass import GLMClassifier
    >>> from manyclass.export import register_converters
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), GLMClassifier()).fit(X, y)
    >>> register_converters()  # doctest: +SKIP
    >>> graph = skl2onnx.to_onnx(model, X[:1])  # doctest: +SKIP
    """
    from skl2onnx import update_registered_converter

    import manyclass
    from manyclass import features
    from manyclass.estimators.base import Estimator

    kinds = [getattr(home, name) for home in (manyclass, manyclass.linear_model) for name in home.__all__]
    for kind in kinds:
        if not (isinstance(kind, type) and issubclass(kind, Estimator)):
            continue
        update_registered_converter(kind, f"Manyclass{kind.__name__}", _shapes, _convert, overwrite=True, parser=_parse)
    for name in GENERATORS:
        kind = getattr(features, name)
        update_registered_converter(kind, f"Manyclass{name}", _shape_of_features, _convert_features, overwrite=True)


def _parse(scope: Any, model: Any, inputs: list[Any], custom_parsers: Any = None) -> list[Any]:
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, Int64TensorType, StringTensorType

    operator = scope.declare_local_operator(f"Manyclass{type(model).__name__}", model)
    operator.inputs = inputs
    real = DoubleTensorType if isinstance(inputs[0].type, DoubleTensorType) else FloatTensorType
    if hasattr(model, "classes_"):
        labels = Int64TensorType() if has_integer_labels(model.classes_) else StringTensorType()
        operator.outputs.append(scope.declare_local_variable("label", labels))
        second = "probabilities" if hasattr(model, "predict_proba") else "scores"
        operator.outputs.append(scope.declare_local_variable(second, real()))
    else:
        operator.outputs.append(scope.declare_local_variable("variable", real()))
    return list(operator.outputs)


def has_integer_labels(classes: Any) -> bool:
    """Whether labels become integers, as booleans and floats do (those of classes are whole), rather than text."""
    return to_numpy(classes).dtype.kind in "biuf"


def _shapes(operator: Any) -> None:
    model, n_rows = operator.raw_operator, operator.inputs[0].get_first_dimension()
    width = n_outputs_of(model)
    if hasattr(model, "classes_"):
        operator.outputs[0].type.shape = [n_rows, width] if model.multilabel_ else [n_rows]
        if hasattr(model, "predict_proba") and not model.multilabel_:
            width = len(to_numpy(model.classes_))
    operator.outputs[-1].type.shape = [n_rows, width]


def _shape_of_features(operator: Any) -> None:
    shape = [operator.inputs[0].get_first_dimension(), operator.raw_operator.n_features_out]
    operator.outputs[0].type.shape = shape


def _convert_features(scope: Any, operator: Any, container: Any) -> None:
    writer = _Writer(scope, operator, container)
    writer.write(features_of(writer.program, operator.raw_operator, "X"))


def _convert(scope: Any, operator: Any, container: Any) -> None:
    model, writer = operator.raw_operator, _Writer(scope, operator, container)
    scores = scores_of(writer.program, model)
    if not hasattr(model, "classes_"):
        writer.write(scores)
        return
    probabilities = probabilities_of(writer.program, model, scores)
    codes = codes_of(writer.program, model, scores, probabilities)
    writer.write(probabilities or scores)
    label = operator.outputs[0].full_name
    if model.multilabel_:
        writer.add("Identity", [writer.names[codes]], [label])
    else:
        writer.add("Gather", [writer.labels(to_numpy(model.classes_)), writer.names[codes]], [label], axis=0)


class _Writer:
    """Writes a program into an ONNX model, in the precision of the operator's input, which the program reads as "X"."""

    def __init__(self, scope: Any, operator: Any, container: Any):
        from onnx import TensorProto
        from skl2onnx.common.data_types import DoubleTensorType

        self.scope, self.operator, self.container = scope, operator, container
        is_double = isinstance(operator.inputs[0].type, DoubleTensorType)
        self.program = Program("float64" if is_double else "float32")
        self.real = TensorProto.DOUBLE if is_double else TensorProto.FLOAT
        self.names: dict[str, str] = {}  # from those in the program to those in the ONNX model

    def add(self, kind: str, inputs: list[str], outputs: list[str], **attributes: Any) -> None:
        name = self.scope.get_unique_operator_name(kind)
        self.container.add_node(kind, inputs, outputs, name=name, op_domain="", op_version=OPSET, **attributes)

    def write(self, last: str) -> None:
        """Write all nodes and constants; the value `last` becomes the last output of the operator."""
        from onnx import TensorProto

        named = self.scope.get_unique_variable_name
        self.names["X"] = named("rows")
        self.add("Cast", [self.operator.inputs[0].full_name], [self.names["X"]], to=self.real)
        for name, array in self.program.constants.items():
            self.names[name] = named(name)
            kind = TensorProto.INT64 if array.dtype.kind == "i" else self.real
            self.container.add_initializer(self.names[name], kind, list(array.shape), array.ravel().tolist())
        for node in self.program.nodes:
            self.names[node.output] = named(node.output)
            outputs = [self.names[node.output]] + [named("index")] * (node.operator == "TopK")
            self.add(node.operator, [self.names[name] for name in node.inputs], outputs, **node.attributes)
        self.add("Identity", [self.names[last]], [self.operator.outputs[-1].full_name])

    def labels(self, classes: np.ndarray) -> str:
        """The name of a new constant that holds the labels."""
        from onnx import TensorProto

        name: str = self.scope.get_unique_variable_name("classes")
        is_integer = has_integer_labels(classes)
        values = classes.astype(np.int64).tolist() if is_integer else list(map(str, classes))
        kind = TensorProto.INT64 if is_integer else TensorProto.STRING
        self.container.add_initializer(name, kind, [len(classes)], values)
        return name
