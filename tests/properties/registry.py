"""The public estimators with what they can be told to do, on data small enough to fit them all again and again."""

from functools import cache

import numpy as np
import scipy.sparse as sp

import manyclass

SMALL = {"n_components": 40, "block_size": 20, "alpha": 1e-4}
MODELS = {
    "GLMClassifier": {},
    "GLMClassifier squared": {"loss": "squared"},
    "GLMClassifier sparsemax": {"loss": "sparsemax"},
    "CalibratedLeastSquaresClassifier": {},
    "StagewiseClassifier": SMALL,
    "StagewiseClassifier softmax": SMALL | {"loss": "softmax"},
    "StagewiseClassifier calibrated": SMALL | {"loss": "calibrated"},
    "StagewiseRegressor": SMALL,
    "PegasosClassifier": {"max_iter": 20},
    "PegasosClassifier hinge": {"loss": "hinge", "max_iter": 20},
    "PegasosClassifier crammer_singer": {"loss": "crammer_singer", "max_iter": 20},
    "PegasosClassifier perceptron": {"loss": "perceptron", "max_iter": 20},
    "SDCAClassifier": {},
    "SDCAClassifier softmax": {"loss": "softmax"},
    "SDCAClassifier crammer_singer": {"loss": "crammer_singer"},
    "SDCARegressor": {},
    "SDCARegressor epsilon_insensitive": {"loss": "epsilon_insensitive"},
    "BoundMajorizationClassifier": {},
    "BoundMajorizationClassifier stochastic": {"method": "stochastic", "max_iter": 15},
}
LINEAR = [name for name in MODELS if not name.startswith("Stagewise")]
"""Those whose penalty is in the units of X."""

LAYOUTS = {
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "csr": lambda X: sp.csr_array(X.astype(np.float32)),
}

N_TRAIN, N_TEST, D, K = 1200, 2000, 8, 3


def make(model, **options):
    name = model.split()[0]
    return getattr(manyclass, name)(**{"alpha": 1e-3} | MODELS[model] | options)


def is_regressor(model):
    return "Regressor" in model


@cache
def data(model):
    """Rows of unit variance and what is to be predicted, for training and testing."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_TRAIN + N_TEST, D))
    signal = X @ rng.standard_normal((D, K))
    y = signal[:, 0] + 0.5 * rng.standard_normal(len(X)) if is_regressor(model) else np.argmax(
        signal + rng.gumbel(size=signal.shape), axis=1
    )  # fmt: skip
    X.flags.writeable = y.flags.writeable = False
    return X[:N_TRAIN], y[:N_TRAIN], X[N_TRAIN:], y[N_TRAIN:]


@cache
def plain(model, layout):
    """The model of the data as they are, and its score on rows it has not seen."""
    X, y, X_test, y_test = data(model)
    fitted = make(model).fit(LAYOUTS[layout](X), y)
    return fitted, fitted.score(LAYOUTS[layout](X_test), y_test)
