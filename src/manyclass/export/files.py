"""Coefficients as safetensors, which any program can read and which hold no code."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from manyclass.data.readers.dataset import DataFileError
from manyclass.data.readers.source import translated
from manyclass.data.rows import to_numpy
from manyclass.data.whole_file import replaced
from manyclass.export.program import check_exportable


def save_coefficients(model: Any, path: str | Path) -> None:
    """Write ``coef_`` and ``intercept_``, and what they mean as JSON under "description" in the file's header.

    Parameters
    ----------
    model : estimator
        Fitted, with ``coef_``: a linear one, or a stagewise model of the columns as they are.
    path : str or Path

    Raises
    ------
    ValueError
        If the model has no ``coef_``.
    TypeError
        If it is not an estimator of this package: a pipeline, say.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn.datasets import load_iris
    >>> from manyclass import GLMClassifier
    >>> from manyclass.export import load_coefficients, save_coefficients
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.safetensors"
    >>> save_coefficients(GLMClassifier().fit(*load_iris(return_X_y=True)), path)
    >>> arrays, description = load_coefficients(path)
    >>> arrays["coef"].shape, description["classes"]
    ((3, 4), [0, 1, 2])
    """
    from safetensors.numpy import save_file

    import manyclass

    check_exportable(model)
    if not hasattr(model, "coef_"):
        raise ValueError(f"This {type(model).__name__} is not linear in the columns of X; use to_onnx or to_torch.")
    description = {
        "estimator": type(model).__name__,
        "manyclass": getattr(manyclass, "__version__", ""),
        "loss": model.loss_,
        "scores": "X @ coef.T + intercept",
        "n_features": int(model.n_features_in_),
        "features": [str(name) for name in getattr(model, "feature_names_in_", [])],
        "temperature": float(getattr(model, "temperature_", 1.0)),
    }
    if hasattr(model, "calibration_"):
        description |= {"slopes and offsets of scores": model.calibration_.tolist()}
    if hasattr(model, "classes_"):
        classes = to_numpy(model.classes_).tolist()
        description |= {"link": model._link, "classes": classes, "multilabel": bool(model.multilabel_)}
    arrays = {
        "coef": np.ascontiguousarray(np.atleast_2d(to_numpy(model.coef_))),
        "intercept": np.ascontiguousarray(np.atleast_1d(to_numpy(model.intercept_))),
    }
    with replaced(Path(path)) as temporary:
        save_file(arrays, str(temporary), metadata={"description": json.dumps(description)})


def load_coefficients(path: str | Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays "coef" and "intercept" of a file, and its description; see `save_coefficients` for an example.

    Raises
    ------
    DataFileError
        A ValueError, if `save_coefficients` has not written the file, or it is damaged.
    """
    from safetensors import safe_open

    path = Path(path)
    path.open("rb").close()  # for the usual OSError where it cannot be opened
    with translated(path, "a whole file of coefficients"), safe_open(path, framework="numpy") as file:
        description = json.loads((file.metadata() or {}).get("description", "null"))
        arrays = {name: file.get_tensor(name) for name in ("coef", "intercept") if name in file.keys()}
        shapes = [array.shape for array in arrays.values() if array.dtype.kind == "f"]
        if len(shapes) < 2 or len(shapes[0]) != 2 or shapes[1] != shapes[0][:1] or not isinstance(description, dict):
            raise DataFileError("it holds no coefficients: give a file that save_coefficients has written")
        return arrays, description
