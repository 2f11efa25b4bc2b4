"""Ours and the peers behind one interface: settings to choose among, budgets to spend, seconds and predictions.

Every alpha is the penalty of (1/n) Σ ℓ + (alpha/2) ‖W‖² divided by the mean ‖x‖², so that one grid serves all data.
Conversion to a library's own format happens in `prepare` and is not timed, where the library has such a format.
"""

from __future__ import annotations

import itertools
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.datasets import dump_svmlight_file
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.svm import LinearSVC

from benchmarks.dual.liblinear import Problem
from manyclass import PegasosClassifier

MODULES = {"LIBLINEAR": "liblinear", "Vowpal Wabbit": "vowpalwabbit", "Snap ML": "snapml"}
"""What peers need beyond our own dependencies."""
Setting = dict[str, Any]
Predict = Callable[[Any], np.ndarray]

ALPHAS = (1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6)
PASSES = (0.05, 0.1, 0.2, 0.5, 1, 2, 3, 5, 8, 12, 20, 30)
EPSILONS = (1.0, 0.3, 0.1, 0.03, 0.01)


@dataclass(frozen=True)
class Method:
    """One row of the table.

    Attributes
    ----------
    fit : callable
        ``fit(prepared, setting, budget, seed)`` gives seconds and a function from rows to class codes.
    settings : tuple of dict
        The grid. A setting's alpha is relative to the mean ‖x‖².
    budgets : tuple of float
        From little to much work: passes, or tolerances.
    unit : str
        What a budget is.
    compared_at : tuple of float
        The budgets at which settings are compared on held-out rows; the best of a setting counts, as small penalties
        need more work than large ones.
    chosen_at : float
        The one budget of comparisons that spend the same on every setting.
    cells_to_choose : int
        Rows × classes to choose a setting from at most.
    prepare : callable
        ``prepare(X, y)``, whose result `fit` takes.
    is_ours : bool
    """

    fit: Callable[[Any, Setting, float, int], tuple[float, Predict]]
    settings: tuple[Setting, ...]
    budgets: tuple[float, ...] = PASSES
    unit: str = "passes"
    compared_at: tuple[float, ...] = (3, 12)
    chosen_at: float = 5
    cells_to_choose: int = 800_000
    prepare: Callable[[Any, np.ndarray], Any] = field(default=lambda X, y: (X, y))
    is_ours: bool = False


def installed(name: str) -> bool:
    """Whether a method of such a name can be run here; where not, ``make bench-peers`` installs it."""
    return all(find_spec(module) is not None for peer, module in MODULES.items() if peer in name)


def grid(**options: Any) -> tuple[Setting, ...]:
    return tuple(dict(zip(options, values, strict=True)) for values in itertools.product(*options.values()))


def absolute(alpha: float, X: Any) -> float:
    squares = X.multiply(X).sum() if hasattr(X, "multiply") else np.einsum("ij,ij->", X, X)
    return alpha * float(squares) / X.shape[0]


def _timed_estimator(estimator: Any, X: Any, y: np.ndarray) -> tuple[float, Predict]:
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(X, y)
    return time.process_time() - start, estimator.predict


def ours(loss: str, **options: Any) -> Method:
    def fit(prepared: Any, setting: Setting, budget: float, seed: int) -> tuple[float, Predict]:
        X, y = prepared
        model = PegasosClassifier(
            absolute(setting["alpha"], X),
            loss=loss,
            max_iter=budget,
            tol=0,
            random_state=seed,
            **options,
        )
        seconds, predict = _timed_estimator(model, X, y)
        return seconds - model.compile_seconds_, predict

    return Method(fit, grid(alpha=ALPHAS), is_ours=True)


def warm_up(X: Any, y: np.ndarray) -> float:
    """Compile, or load from Numba's cache, what our methods run; the seconds of it."""
    rows = np.concatenate([np.flatnonzero(y == c)[:2] for c in np.unique(y)])
    start = time.process_time()
    model = PegasosClassifier(max_iter=1).fit(X[rows], y[rows])
    model.predict(X[rows])
    return time.process_time() - start


def linear_svc(prepared: Any, setting: Setting, budget: float, seed: int) -> tuple[float, Predict]:
    X, y = prepared
    C = 1 / (absolute(setting["alpha"], X) * X.shape[0])
    return _timed_estimator(LinearSVC(C=C, loss=setting["loss"], tol=budget, random_state=seed), X, y)


def sgd(loss: str) -> Method:
    def fit(prepared: Any, setting: Setting, budget: float, seed: int) -> tuple[float, Predict]:
        X, y = prepared
        model = SGDClassifier(
            loss=loss,
            alpha=absolute(setting["alpha"], X),
            average=setting["average"],
            max_iter=int(budget),
            tol=None,
            random_state=seed,
        )
        return _timed_estimator(model, X, y)

    return Method(fit, grid(alpha=ALPHAS, average=(True, False)), PASSES[4:])


def saga(prepared: Any, setting: Setting, budget: float, seed: int) -> tuple[float, Predict]:
    X, y = prepared
    C = 1 / (absolute(setting["alpha"], X) * X.shape[0])
    model = LogisticRegression(solver="saga", C=C, max_iter=int(budget), tol=0.0, random_state=seed)
    return _timed_estimator(model, X, y)


def liblinear(solver: int, with_intercept: bool = True) -> Method:
    """The C library: its problem structure is built beforehand, and weights are read out after the clock stops."""

    def prepare(X: Any, y: np.ndarray) -> Any:
        return Problem(csr_matrix(X), y, 1 if with_intercept else -1), X

    def fit(prepared: Any, setting: Setting, budget: float, seed: int) -> tuple[float, Predict]:
        problem, X = prepared
        found = problem.fit(solver, 1 / (absolute(setting["alpha"], X) * X.shape[0]), budget)
        W = found.coef.T

        def predict(X: Any) -> np.ndarray:
            Z = X @ W[: X.shape[1]] + W[X.shape[1] :].sum(axis=0)
            return problem.classes[(Z[:, 0] > 0).astype(int) if Z.shape[1] == 1 else Z.argmax(axis=1)]

        return found.seconds, predict

    return Method(fit, grid(alpha=ALPHAS), EPSILONS, "eps", (1.0, 0.1), prepare=prepare)


class VowpalRows:
    """Rows in a folder that goes with the object: as text, and as the cache that Vowpal Wabbit reads passes from."""

    def __init__(self, X: Any, y: np.ndarray):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name)
        self.n_classes = len(np.unique(y))
        _write_vowpal(self.path / "train.vw", X, y)
        self.run("-d", "train.vw", "--cache_file", "train.cache", "-k", "--oaa", str(self.n_classes))

    def run(self, *arguments: str) -> float:
        from vowpalwabbit import Workspace

        files = ("-d", "--cache_file", "-f", "-i", "-p")
        last = ""
        words = ["--quiet"]
        for word in arguments:
            words.append(str(self.path / word) if last in files else word)
            last = word
        start = time.process_time()
        Workspace(arg_list=words).finish()
        return time.process_time() - start


def vowpal_wabbit(prepared: VowpalRows, setting: Setting, budget: float, seed: int) -> tuple[float, Predict]:
    n_classes, rate = str(prepared.n_classes), str(setting["rate"])
    learner = ["--oaa", n_classes, "--loss_function", setting["loss"], "-l", rate, "--random_seed", str(seed)]
    passes = ["--passes", str(int(budget)), "--holdout_off"]
    seconds = prepared.run("-d", "train.vw", "--cache_file", "train.cache", *learner, *passes, "-f", "model")

    def predict(X: Any) -> np.ndarray:
        _write_vowpal(prepared.path / "test.vw", X, np.zeros(X.shape[0]))
        prepared.run("-t", "-d", "test.vw", "-i", "model", "-p", "predictions")
        return np.loadtxt(prepared.path / "predictions").astype(int) - 1

    return seconds, predict


def _write_vowpal(path: Path, X: Any, y: np.ndarray) -> None:
    with tempfile.TemporaryFile() as plain:
        dump_svmlight_file(X, y + 1, plain)
        plain.seek(0)
        with path.open("wb") as file:
            for line in plain:
                label, _, features = line.partition(b" ")
                file.write(label + b" | " + features)


METHODS: dict[str, Method] = {
    **{
        f"manyclass {loss}": ours(loss)
        for loss in ("crammer_singer", "squared_crammer_singer", "softmax", "hinge", "squared_hinge", "logistic")
    },
    "LIBLINEAR -s 1": liblinear(1),
    "LIBLINEAR -s 4": liblinear(4),
    "LinearSVC": Method(
        linear_svc, grid(alpha=ALPHAS, loss=("hinge", "squared_hinge")), EPSILONS[1:], "tol", compared_at=(0.3, 0.1)
    ),
    "SGDClassifier hinge": sgd("hinge"),
    "SGDClassifier log loss": sgd("log_loss"),
    "Vowpal Wabbit --oaa": Method(
        vowpal_wabbit,
        grid(loss=("hinge", "logistic"), rate=(0.05, 0.2, 0.5, 2.0)),
        (1, 2, 3, 5, 8, 12, 20),
        compared_at=(1, 4),
        cells_to_choose=4_000_000,  # its best rate depends on the number of rows more than the best alpha does
        prepare=VowpalRows,
    ),
    "saga": Method(saga, grid(alpha=ALPHAS), (1, 2, 3, 5, 8, 12, 20, 30), compared_at=(4, 12)),
}


def chosen(names: list[str]) -> Iterator[tuple[str, Method]]:
    """Methods whose name holds one of `names`; all without any."""
    for name, method in METHODS.items():
        if not names or any(part.lower() in name.lower() for part in names):
            yield name, method
