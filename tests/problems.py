"""Small problems that every layer is tested on."""

import numpy as np
import scipy.sparse as sp

from manyclass.data import ClassTargets, Design, MatrixTargets
from manyclass.model import LINKS, Objective

ESTIMATORS = {
    "GLMClassifier": {},
    "CalibratedLeastSquaresClassifier": {},
    "StagewiseClassifier": {"n_components": 40, "block_size": 20},
    "StagewiseRegressor": {"n_components": 40, "block_size": 20},
    "PegasosClassifier": {},
    "SDCAClassifier": {},
    "SDCARegressor": {},
    "BoundMajorizationClassifier": {"method": "batch", "max_iter": 200},
}
"""Every estimator, with options that keep its fit short."""


def rows(seed=0, n=60, d=5, k=3):
    """X with very different scales and a mean, class codes, positive weights."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.logspace(1, -1, d) + np.linspace(-2, 2, d)
    codes = np.argmax(X @ rng.standard_normal((d, k)) / 3 + rng.gumbel(size=(n, k)), axis=1)
    codes[:k] = np.arange(k)
    return X, codes, rng.random(n) + 0.2


def objective(link="softmax", alpha=0.05, *, sparse=False, weighted=True, dtype=np.float64, seed=0, **options):
    """An `Objective` and the dense X, Y, s behind it."""
    X, codes, weight = rows(seed)
    X = X.astype(dtype)
    Y = np.eye(3)[codes]
    targets = ClassTargets(codes, 3) if LINKS[link].label_values is None else MatrixTargets(Y)
    design = Design(sp.csr_array(X) if sparse else X)
    built = Objective(
        design, targets, LINKS[link], alpha, sample_weight=weight.astype(dtype) if weighted else None, **options
    )
    return built, X, Y, weight if weighted else np.ones(len(X))
