"""Models as ONNX, by skl2onnx."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from manyclass.data.rows import to_numpy
from manyclass.export.program import (
    OPSET,
    Program,
    check_dtype,
    is_single,
    n_outputs_of,
    probabilities_of,
    scores_of,
    threshold_of,
)


def to_onnx(model: Any, dtype: str = "float32", **options: Any) -> Any:
    """A fitted model, or a pipeline that ends with one, as an ONNX model.

    Parameters
    ----------
    model : estimator
        A linear one of this package, calibrated least squares or a stagewise model; a `Pipeline` around it; or what
        found it, such as `AutoClassifier`.
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
    register_converters()
    options.setdefault("target_opset", OPSET)
    kind = {"float32": FloatTensorType, "float64": DoubleTensorType}[dtype]
    return skl2onnx.to_onnx(model, initial_types=[("X", kind([None, model.n_features_in_]))], **options)


def register_converters() -> None:
    """Tell skl2onnx how to convert the estimators of this package, also as parts of pipelines and ensembles.

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
    from manyclass.estimators.base import Estimator

    kinds = [getattr(home, name) for home in (manyclass, manyclass.linear_model) for name in home.__all__]
    for kind in kinds:
        if not (isinstance(kind, type) and issubclass(kind, Estimator)):
            continue
        update_registered_converter(kind, f"Manyclass{kind.__name__}", _shapes, _convert, overwrite=True, parser=_parse)


def _parse(scope: Any, model: Any, inputs: list[Any], custom_parsers: Any = None) -> list[Any]:
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, Int64TensorType, StringTensorType

    operator = scope.declare_local_operator(f"Manyclass{type(model).__name__}", model)
    operator.inputs = inputs
    real = DoubleTensorType if isinstance(inputs[0].type, DoubleTensorType) else FloatTensorType
    if hasattr(model, "classes_"):
        labels = Int64TensorType() if are_whole(model.classes_) else StringTensorType()
        operator.outputs.append(scope.declare_local_variable("label", labels))
        second = "probabilities" if hasattr(model, "predict_proba") else "scores"
        operator.outputs.append(scope.declare_local_variable(second, real()))
    else:
        operator.outputs.append(scope.declare_local_variable("variable", real()))
    return list(operator.outputs)


def are_whole(classes: Any) -> bool:
    """Whether labels are whole numbers, as floats that are labels are, too; others become text."""
    return to_numpy(classes).dtype.kind in "biuf"


def _shapes(operator: Any) -> None:
    model, n_rows = operator.raw_operator, operator.inputs[0].get_first_dimension()
    width = n_outputs_of(model)
    if hasattr(model, "classes_"):
        operator.outputs[0].type.shape = [n_rows, width] if model.multilabel_ else [n_rows]
        gives = hasattr(model, "predict_proba") and not model.multilabel_
        width = len(to_numpy(model.classes_)) if gives else width
    operator.outputs[-1].type.shape = [n_rows, width]


def _convert(scope: Any, operator: Any, container: Any) -> None:
    from onnx import TensorProto
    from skl2onnx.common.data_types import DoubleTensorType

    model, given = operator.raw_operator, operator.inputs[0]
    is_double = isinstance(given.type, DoubleTensorType)
    program = Program("float64" if is_double else "float32")
    real = TensorProto.DOUBLE if is_double else TensorProto.FLOAT
    scores = scores_of(program, model)
    names = {}

    def add(kind: str, inputs: list[str], outputs: list[str], **attributes: Any) -> None:
        name = scope.get_unique_operator_name(kind)
        container.add_node(kind, inputs, outputs, name=name, op_domain="", op_version=18, **attributes)

    names["X"] = scope.get_unique_variable_name("rows")
    add("Cast", [given.full_name], [names["X"]], to=real)
    last = scores
    if hasattr(model, "classes_"):
        last = probabilities_of(program, model, scores) or scores
        codes = _codes(program, model, scores, last)
    for name, array in program.constants.items():
        names[name] = scope.get_unique_variable_name(name)
        kind = TensorProto.INT64 if array.dtype.kind == "i" else real
        container.add_initializer(names[name], kind, list(array.shape), array.ravel().tolist())
    for node in program.nodes:
        names[node.output] = scope.get_unique_variable_name(node.output)
        outputs = [names[node.output]] + [scope.get_unique_variable_name("index")] * (node.operator == "TopK")
        add(node.operator, [names[name] for name in node.inputs], outputs, **node.attributes)
    add("Identity", [names[last]], [operator.outputs[-1].full_name])
    if not hasattr(model, "classes_"):
        return
    label = operator.outputs[0].full_name
    if model.multilabel_:
        add("Identity", [names[codes]], [label])
        return
    classes, table = to_numpy(model.classes_), scope.get_unique_variable_name("classes")
    if are_whole(classes):
        container.add_initializer(table, TensorProto.INT64, [len(classes)], classes.astype(np.int64).tolist())
    else:
        container.add_initializer(table, TensorProto.STRING, [len(classes)], [str(one) for one in classes])
    add("Gather", [table, names[codes]], [label], axis=0)


def _codes(program: Program, model: Any, scores: str, probabilities: str) -> str:
    """Places in ``classes_``, or indicators of several labels."""
    from onnx import TensorProto

    if not (model.multilabel_ or is_single(model)):
        return program("ArgMax", scores, axis=1, keepdims=0)
    threshold = threshold_of(model)
    told, least = (scores, 0.0) if threshold is None else (probabilities, threshold)
    positive = program("Cast", program("Greater", told, least), to=TensorProto.INT64)
    return positive if model.multilabel_ else program("Squeeze", positive, np.array([1]))
