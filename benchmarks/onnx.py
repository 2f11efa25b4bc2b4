"""How far onnxruntime's predictions are from the models' own: estimator × data set, the largest difference.

    python -m benchmarks.onnx

float32, columns of unit variance; probabilities, or scores where there are none.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import onnxruntime
from sklearn import datasets

from benchmarks.report import Table
from manyclass import (
    BoundMajorizationClassifier,
    CalibratedLeastSquaresClassifier,
    GLMClassifier,
    GLMClassifierCV,
    PegasosClassifier,
    SDCAClassifier,
    StagewiseClassifier,
    linear_model,
)
from manyclass.export import to_onnx
from manyclass.features import FeatureSubset, Landmarks, RandomPolynomials, RandomUnits

BLOCKS: dict[str, Any] = {"n_components": 256, "block_size": 128}
MODELS: dict[str, Any] = {
    "GLM softmax": GLMClassifier(),
    "GLM logistic": GLMClassifier(loss="logistic"),
    "GLM squared": GLMClassifier(loss="squared"),
    "GLM sparsemax": GLMClassifier(loss="sparsemax"),
    "GLM CV, temperature": GLMClassifierCV(alphas=4, cv=3, calibrate="temperature"),
    "LogisticRegression": linear_model.LogisticRegression(),
    "RidgeClassifierCV": linear_model.RidgeClassifierCV(),
    "SDCA softmax": SDCAClassifier(),
    "SDCA hinge": SDCAClassifier(loss="hinge"),
    "Pegasos": PegasosClassifier(),
    "bound majorization": BoundMajorizationClassifier(max_iter=15),
    "calibrated": CalibratedLeastSquaresClassifier(),
    "stagewise, Fourier": StagewiseClassifier(**BLOCKS),
    "stagewise, Fourier, calibrated": StagewiseClassifier(loss="calibrated", max_iter=2, **BLOCKS),
    "stagewise, units, softmax": StagewiseClassifier(features=RandomUnits(), loss="softmax", **BLOCKS),
    "stagewise, landmarks": StagewiseClassifier(features=Landmarks(), **BLOCKS),
    "stagewise, polynomials": StagewiseClassifier(features=RandomPolynomials(), **BLOCKS),
    "stagewise, columns": StagewiseClassifier(features=FeatureSubset(), n_components=None),
}
TITLE = "Largest difference between onnxruntime and the model itself, float32"
DATA = ("iris", "wine", "breast_cancer", "digits")


def difference(model: Any, X: np.ndarray) -> tuple[float, int]:
    """The largest between the model's own values and those of its ONNX form, and how many labels differ."""
    session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"])
    labels, values = session.run(None, {"X": X})
    expected = model.predict_proba(X) if hasattr(model, "predict_proba") else model.decision_function(X)
    return float(np.abs(values.reshape(expected.shape) - expected).max()), int(np.sum(labels != model.predict(X)))


def main() -> None:
    warnings.simplefilter("ignore")
    table = Table(TITLE, ["estimator", *DATA], live=True)
    for name, model in MODELS.items():
        cells = []
        for data in DATA:
            X, y = getattr(datasets, f"load_{data}")(return_X_y=True)
            X = ((X - X.mean(axis=0)) / (X.std(axis=0) + 1e-3)).astype(np.float32)
            largest, n_labels = difference(model.fit(X, y), X)
            cells.append(f"{largest:.0e}" + (f", {n_labels} labels" if n_labels else ""))
        table.add(name, *cells)
    table.note("Of probabilities, or of scores where there are none; columns of unit variance.")
    table.note("0 is bit for bit: both libraries add the products of so few columns in the same order.")
    table.publish("onnx")


if __name__ == "__main__":
    main()
