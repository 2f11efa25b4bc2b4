"""A small model of every kind of estimator, as files that later versions must read."""

import zipfile
from pathlib import Path

import numpy as np
import skops.io
from sklearn.datasets import load_iris

import manyclass
from manyclass import features, linear_model
from manyclass.cli.modelfile import trusted_types

FOLDER = Path(__file__).parent / "models"
STAGES = {"n_components": 8, "block_size": 4, "alpha": 1e-3}


def models():
    """By the name of the file."""
    return {
        "GLMClassifier": manyclass.GLMClassifier(),
        "GLMClassifier-streamed": manyclass.GLMClassifier(loss="squared"),
        "GLMClassifierCV": manyclass.GLMClassifierCV(alphas=2, cv=2, calibrate="temperature"),
        "CalibratedLeastSquaresClassifier": manyclass.CalibratedLeastSquaresClassifier(max_iter=2),
        "StagewiseClassifier": manyclass.StagewiseClassifier(**STAGES),
        "StagewiseClassifier-calibrated": manyclass.StagewiseClassifier(
            features=features.RandomUnits(), loss="calibrated", **STAGES
        ),
        "StagewiseClassifier-landmarks": manyclass.StagewiseClassifier(features=features.Landmarks(), **STAGES),
        "StagewiseClassifier-polynomials": manyclass.StagewiseClassifier(
            features=features.RandomPolynomials(), **STAGES
        ),
        "StagewiseRegressor": manyclass.StagewiseRegressor(**STAGES),
        "PegasosClassifier": manyclass.PegasosClassifier(max_iter=2),
        "SDCAClassifier": manyclass.SDCAClassifier(loss="hinge", calibrate="sigmoid", tol=0.05),
        "SDCARegressor": manyclass.SDCARegressor(tol=0.05),
        "BoundMajorizationClassifier": manyclass.BoundMajorizationClassifier(max_iter=2),
        "AutoClassifier": manyclass.AutoClassifier(max_time=2),
        "LogisticRegression": linear_model.LogisticRegression(),
        "LogisticRegressionCV": linear_model.LogisticRegressionCV(Cs=2, cv=2),
        "RidgeClassifier": linear_model.RidgeClassifier(),
        "RidgeClassifierCV": linear_model.RidgeClassifierCV(),
    }


def values_of(model, X):
    """What the model says of rows."""
    for method in ("predict_proba", "decision_function", "predict"):
        if hasattr(model, method):
            return getattr(model, method)(X)


def rows():
    X, y = load_iris(return_X_y=True)
    return X[::5], y[::5]


def write(version):
    """Fit and store every model, and what it says of the rows it was fitted to."""
    folder = FOLDER / version
    folder.mkdir(parents=True, exist_ok=True)
    X, y = rows()
    found = {}
    for name, model in models().items():
        if name == "GLMClassifier-streamed":
            model.partial_fit(X[:20], y[:20]).partial_fit(X[20:], y[20:])
        else:
            model.fit(X, y)
        skops.io.dump(model, folder / f"{name}.skops", compression=zipfile.ZIP_DEFLATED, compresslevel=9)
        found[name] = values_of(model, X)
    np.savez_compressed(folder / "values.npz", **found)


def read(path):
    return skops.io.load(path, trusted=sorted(trusted_types()))
