"""Who tunes, records, serves and spreads."""

import numpy as np
import pytest

from manyclass import GLMClassifier, PegasosClassifier, StagewiseClassifier


def test_optuna(problem):
    optuna = pytest.importorskip("optuna")
    X, y, X_test, y_test = problem
    optuna.logging.set_verbosity(optuna.logging.WARNING)

    def objective(trial):
        model = PegasosClassifier(alpha=trial.suggest_float("alpha", 1e-5, 1.0, log=True))
        for step in range(3):
            model.partial_fit(X, y, classes=np.unique(y))
            trial.report(model.score(X_test, y_test), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return model.score(X_test, y_test)

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(objective, n_trials=4)
    assert study.best_value > 0.7


@pytest.mark.parametrize(
    "model",
    [GLMClassifier(), StagewiseClassifier(n_components=32, block_size=16, loss="softmax", alpha=1e-3)],
    ids=lambda model: type(model).__name__,
)
def test_mlflow_as_skops(model, problem, tmp_path):
    pytest.importorskip("mlflow")
    from mlflow.sklearn import load_model, save_model
    from skops.io import dumps, get_untrusted_types, loads

    X, y, X_test, _ = problem
    model.fit(X, y)
    trusted = get_untrusted_types(data=dumps(model))
    assert all(name.startswith("manyclass.") for name in trusted)
    assert type(loads(dumps(model), trusted=trusted)) is type(model)
    save_model(model, tmp_path / "model", serialization_format="skops", skops_trusted_types=trusted)
    loaded = load_model(str(tmp_path / "model"))
    np.testing.assert_array_equal(loaded.predict_proba(X_test), model.predict_proba(X_test))


def test_skore(problem):
    skore = pytest.importorskip("skore")
    X, y, X_test, y_test = problem
    report = skore.EstimatorReport(GLMClassifier(), X_train=X, y_train=y, X_test=X_test, y_test=y_test)
    assert report.metrics.accuracy() > 0.75
    assert report.metrics.log_loss() < 0.8
    assert len(report.inspection.coefficients().frame()) > 6
    crossed = skore.CrossValidationReport(GLMClassifier(), X, y, splitter=3)
    assert crossed.metrics.summarize().frame().shape[0] > 2


def test_parallel_predictions_of_dask_ml(problem):
    wrappers = pytest.importorskip("dask_ml.wrappers")
    import dask.array as da

    X, y, X_test, _ = problem
    model = wrappers.ParallelPostFit(GLMClassifier(), scoring="accuracy").fit(X, y)
    rows = da.from_array(X_test, chunks=(50, 6))
    P = model.predict_proba(rows)
    assert isinstance(P, da.Array)
    np.testing.assert_allclose(P.compute(scheduler="synchronous"), model.estimator.predict_proba(X_test))
    np.testing.assert_array_equal(model.predict(rows).compute(scheduler="synchronous"), model.estimator.predict(X_test))
