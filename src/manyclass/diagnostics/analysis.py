"""A look at data before anything is fitted to them: what they are, how hard they are, and what to fit."""

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.validation import _get_feature_names

from manyclass.choice.costs import Cost, costs
from manyclass.data import Rows, as_rows
from manyclass.data.frames import NUMBER, as_table, in_numbers, is_mixed, kinds_of, n_missing
from manyclass.data.labels import Labels, encode
from manyclass.data.rows import to_numpy
from manyclass.data.summary import Ranges, column_keys, finite_rows, ranges, row_keys
from manyclass.data.validation import check_columns, check_known
from manyclass.diagnostics.correlation import ResponseCorrelation, response_correlation
from manyclass.diagnostics.mistakes import Mistakes, left_out
from manyclass.diagnostics.report import ColumnFacts, DataReport, Hardness, LabelFacts, RowFacts, Trial
from manyclass.estimators.glm import GLMClassifier
from manyclass.estimators.stagewise import StagewiseClassifier
from manyclass.features import RandomFourierFeatures, TableEncoder, ThermometerEncoder
from manyclass.fit.held_out import folds_by_content

FLOPS = 1e10
"""Of the Gram matrix that the spectrum is computed from: a second or so."""
CELLS, RESPONSES = 1e8, 1e7
"""Most values of the sample that the spectrum is computed from, and of its responses."""
ALPHAS = (1e-2, 1e-4, 1e-6)
FAR, DIFFERENT = 10.0, 100.0
"""Standard deviations from which a mean is far, and the factor from the median size at which a column is different."""
TRIAL_ROWS, TRIAL_CELLS, TRIAL_CLASSES, FEWEST = 2000, 3e6, 200, 60
"""Most rows, values and classes of a trial, and the fewest rows."""
MOST_STEPS = 5000
"""Most columns of a `ThermometerEncoder` in a trial."""
SLOW, WORTH_IT = 1.0, 4.0
"""Seconds below which speed decides nothing, and the factor by which another estimator has to be faster."""
LINKS = ("softmax", "logistic")
"""Losses of the linear models that may be recommended."""


def analyze(X: Any, y: Any, *, feature_names: Any = None, label_names: Any = None) -> DataReport:
    """What the data are, how hard they are to fit, what each estimator would cost, and which to begin with.

    Counts, ranges, density, repeated rows and columns are of all rows. The spectrum is of as many rows drawn at random
    as a second allows, all of them for 10⁶ rows of 100 columns; no d×d matrix is made that this would not allow. Where
    columns differ in size by more than a hundred it is that of scaled columns: one of dates would hide all others. The
    trial of generated features against a linear model is made on at most 2000 rows. Seconds are estimates, from the
    speed of this machine, measured in a few milliseconds, and from the spectrum of 192 rows.

    What `TableEncoder` makes of frames with text, categories or dates is looked at in their place.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features), frame, or table of pyarrow
        Numbers that are missing, infinite or too large to compute with are counted, and their rows left out of what
        follows.
    y : array-like of shape (n_samples,), or (n_samples, n_labels)
        Labels of any dtype, or an indicator matrix.
    feature_names : sequence of str, optional
        What columns are called in the report; by default those of a data frame, else numbers from 0.
    label_names : sequence of str, optional
        Likewise those of an indicator matrix.

    Returns
    -------
    DataReport
        ``print`` it, show it in a notebook, or take ``to_dict()`` and ``plot()``.

    Raises
    ------
    ValueError
        If y is missing or real, holds one class, or has another number of rows than X; or there are not as many names
        as columns.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from manyclass import analyze
    >>> report = analyze(*load_wine(return_X_y=True))
    >>> report.rows.n_rows, report.labels.n_classes, report.columns.constant
    (178, 3, ())
    >>> report.columns.largest_ratio > 1000  # proline beside the hue of the colour
    True
    """
    if y is None:
        raise ValueError("analyze requires y, the labels of the rows, but it is None.")
    label_names = getattr(y, "columns", None) if label_names is None else label_names
    X, names, of_table = _numbers(X, feature_names)
    rows = as_rows(check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite=False))
    labels = _encoded(rows, y)
    _check_names(names, rows.n_features, "feature_names", "column of X")
    if labels.is_multilabel:
        _check_names(label_names, labels.n_classes, "label_names", "column of y")
    complete, n_missing, n_nan = finite_rows(rows)
    mend = "" if not n_missing else "fill in what is missing (TableEncoder)"
    if n_missing > n_nan:
        mend = "correct what is infinite or too large, or take it for missing and fill it in (TableEncoder)"
    balance, index = _balance(labels, label_names), np.flatnonzero(complete)
    shape: dict[str, Any] = {
        "n_rows": rows.n_rows,
        "n_features": rows.n_features,
        "dtype": str(rows.dtype),
        "memory": rows.row_bytes * rows.n_rows,
        "n_missing": n_missing,
        "n_rows_with_missing": rows.n_rows - len(index),
        **of_table,
    }
    if not len(index):
        facts = RowFacts(**shape, density=0.0, n_repeated=0, n_contradicting=0)
        sentence = f"{mend[0].upper()}{mend[1:]}: no row is complete."
        return DataReport(facts, balance, ColumnFacts((), (), (), (), 1.0), None, (), None, "TableEncoder", sentence)
    if n_missing:
        rows, labels = rows.take(index), labels.take(index)
    n_repeated, n_contradicting = _repeated(rows, labels)
    statistics = ranges(rows)
    density = statistics.n_nonzero / (rows.n_rows * rows.n_features)
    facts = RowFacts(**shape, density=density, n_repeated=n_repeated, n_contradicting=n_contradicting)
    columns = _columns(rows, statistics, names)
    scaler: Any = None  # to put in front of a model
    if columns.badly_scaled or columns.largest_ratio > DIFFERENT:
        scaler = (StandardScaler() if density > 0.5 else MaxAbsScaler()).set_output(transform="default")
    correlation, mistakes = _correlation(rows, labels, scaler)
    methods = costs(rows, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        trial = _trial(rows, labels)
    recommended = _recommended(mend, ["TableEncoder"] if of_table else [], scaler, methods, trial)
    spectrum, name = correlation.spectrum, None if scaler is None else type(scaler).__name__
    free = {alpha: spectrum.effective_dimension(alpha) for alpha in ALPHAS}
    sizes = spectrum.n_rows, spectrum.n_components, spectrum.condition_number()
    hardness = Hardness(*sizes, free, correlation.tau, name)
    return DataReport(facts, balance, columns, hardness, methods, trial, *recommended, mistakes, correlation)


def _numbers(X: Any, names: Any) -> tuple[Any, Any, dict[str, int]]:
    """X, which a `TableEncoder` encodes if it is a mixed table; the names of its columns; fields of `RowFacts`."""
    table = as_table(X) if is_mixed(X) or hasattr(X, "column_names") else None
    if table is None or set(kinds_of(table.schema).values()) == {NUMBER}:
        X, named = in_numbers(X)
        check_columns(X)
        return X, named or _get_feature_names(X) if names is None else names, {}
    encoder = TableEncoder().set_output(transform="default")
    (n_cells, n_rows), X = n_missing(table), encoder.fit_transform(table)
    of_table = {"n_table_columns": table.num_columns, "n_missing": n_cells, "n_rows_with_missing": n_rows}
    return X, encoder.get_feature_names_out(names), of_table


def _encoded(rows: Rows, y: Any) -> Labels:
    y = y if hasattr(y, "shape") else np.asarray(y)
    check_known(y)
    n = y.shape[0] if y.shape else 1
    if n != rows.n_rows:
        raise ValueError(f"X has {rows.n_rows} rows but y has {n}; give one label per row of X.")
    return encode(column_or_1d(y) if y.ndim == 2 and y.shape[1] == 1 else y, "analyze")


def _check_names(names: Any, n: int, parameter: str, of: str) -> None:
    if names is not None and len(names) != n:
        raise ValueError(f"{parameter} holds {len(names)} names for {n}; give one for each {of}.")


def _balance(labels: Labels, names: Any) -> LabelFacts:
    classes = to_numpy(labels.classes).tolist()
    if labels.codes is None:
        classes = classes if names is None else list(names)
        counts = np.asarray(to_numpy(labels.indicator) != 0).sum(axis=0)
    else:
        counts = np.bincount(to_numpy(labels.codes), minlength=labels.n_classes)
    return LabelFacts(labels.is_multilabel, tuple(classes), tuple(counts.tolist()))


def _repeated(rows: Rows, labels: Labels) -> tuple[int, int]:
    """The number of rows that equal another, and of those that equal one with another label."""
    _, group, size = np.unique(row_keys(rows), return_inverse=True, return_counts=True)
    label = to_numpy(labels.guide)
    if label.ndim == 2:
        label = np.unique(row_keys(as_rows(label.astype(np.float64))), return_inverse=True)[1]
    first = np.unique(group * (int(label.max()) + 1) + label, return_index=True)[1]
    n_labels = np.bincount(group[first], minlength=len(size))
    return int(size[size > 1].sum()), int(size[n_labels > 1].sum())


def _columns(rows: Rows, statistics: Ranges, names: Any) -> ColumnFacts:
    names = np.arange(rows.n_features) if names is None else np.asarray(names)
    varies = statistics.maximum > statistics.minimum
    deviation = np.where(varies, statistics.deviation, 1.0)
    first_of: dict[int, int] = {}
    repeated = [first_of.setdefault(int(key), place) != place for place, key in enumerate(column_keys(rows))]
    sizes = statistics.sizes[varies & (statistics.sizes > 0)]
    different = varies & False
    if len(sizes):
        relative = statistics.sizes / np.median(sizes)
        different = varies & ((relative > DIFFERENT) | (relative < 1.0 / DIFFERENT))
    is_far = abs(statistics.mean) > FAR * deviation
    masks = (~varies, varies & np.array(repeated, dtype=bool), varies & is_far, different)
    constant, duplicated, far, badly_scaled = (tuple(names[mask].tolist()) for mask in masks)
    largest_ratio = float(sizes.max() / sizes.min()) if len(sizes) else 1.0
    return ColumnFacts(constant, duplicated, far, badly_scaled, largest_ratio)


def _drawn(rows: Rows, labels: Labels, n_rows: int) -> tuple[Rows, Labels]:
    """All rows, or so many of them at random."""
    if n_rows >= rows.n_rows:
        return rows, labels
    index = np.sort(np.random.default_rng(0).choice(rows.n_rows, n_rows, replace=False))
    return rows.take(index), labels.take(index)


def _correlation(rows: Rows, labels: Labels, scaler: Any) -> tuple[ResponseCorrelation, Mistakes]:
    n, d = rows.n_rows, rows.n_features
    allowed = max(FLOPS / d**2, (FLOPS / d) ** 0.5)
    sample, part = _drawn(rows, labels, int(min(n, allowed, CELLS / d + 100, RESPONSES / labels.n_classes + 100)))
    # Columns that do not occur in the sample have no variance there.
    values = sample.occurring()[0].dense()
    values = values if values.shape[1] else np.zeros((sample.n_rows, 1), values.dtype)
    values = values if scaler is None else scaler.fit_transform(values)
    correlation = response_correlation(values, to_numpy(part.guide))
    return correlation, left_out(correlation, as_rows(values), part)


def _trial(rows: Rows, labels: Labels) -> Trial | None:
    """Errors of models that are fitted to two thirds of a sample, on the other third."""
    few = int(min(TRIAL_ROWS, TRIAL_CELLS / rows.n_features, rows.n_rows))
    if not rows.can_be_centred or labels.codes is None or few < FEWEST or labels.n_classes > TRIAL_CLASSES:
        return None
    sample, part = _drawn(rows, labels, few)
    X, codes = to_numpy(sample.dense()), to_numpy(part.guide)
    is_judge = folds_by_content(sample, codes, None, 3) == 2
    learn, judge = np.flatnonzero(~is_judge), np.flatnonzero(is_judge)
    if len(np.unique(codes[learn])) < 2:
        return None
    linear, encoder = GLMClassifier(alpha=1e-3, tol=1e-2, max_iter=100), ThermometerEncoder()
    generated = StagewiseClassifier(RandomFourierFeatures(), n_components=1024, block_size=512)
    models = [make_pipeline(StandardScaler(), model) for model in (linear, generated)]
    if encoder.n_bins * X.shape[1] <= MOST_STEPS and np.ptp(X[learn], axis=0).any():
        models.append(make_pipeline(encoder, clone(linear)))
    wrong = np.array([model.fit(X[learn], codes[learn]).predict(X[judge]) != codes[judge] for model in models])
    differing = tuple(np.mean(wrong[1:] != wrong[0], axis=1).tolist())
    stepped = float(wrong[2].mean()) if len(wrong) > 2 else None
    return Trial(len(learn), len(judge), float(wrong[0].mean()), float(wrong[1].mean()), stepped, differing)


def _recommended(
    mend: str, front: list[str], scaler: Any, methods: tuple[Cost, ...], trial: Trial | None
) -> tuple[str, str]:
    """The class to begin with, and the sentence that recommends it."""
    affordable = [cost for cost in methods if cost.fits]
    linear = next((cost for cost in affordable if cost.estimator == "GLMClassifier" and cost.loss in LINKS), None)
    dual = next((cost for cost in affordable if cost.estimator == "SDCAClassifier"), None)
    scaling = [] if scaler is None or front else [type(scaler).__name__]
    if trial is not None and trial.steps_serve and linear is not None:
        name, scaling = "GLMClassifier", ["ThermometerEncoder"]
        why = (
            f"of columns in steps it made {100 * (trial.stepped_error or 0.0):.1f} % errors where one of the columns "
            f"themselves made {100 * trial.linear_error:.1f} %"
        )
    elif trial is not None and trial.gains and any(cost.estimator == "StagewiseClassifier" for cost in affordable):
        name = "StagewiseClassifier"
        why = (
            f"generated features made {100 * trial.generated_error:.1f} % errors where a linear model made "
            f"{100 * trial.linear_error:.1f} %"
        )
    elif linear is None and dual is None:
        name, why = "PegasosClassifier", "nothing that reads all rows again and again fits into memory"
    elif linear is None or (dual is not None and linear.seconds > SLOW and dual.seconds * WORTH_IT < linear.seconds):
        name, why = "SDCAClassifier", "its steps cost one row each, and no factor of the columns is cheap"
    else:
        name = "GLMClassifier"
        why = f"an estimated {linear.seconds:.2g} s bring it to a proven minimum"
        if trial is not None:
            both = trial.stepped_error is not None
            made = "neither generated features nor steps clearly made" if both else "generated features hardly made"
            why += f", and {made} fewer errors"
    front = [f"a {kind}" for kind in (*front, *scaling)]
    first = " and ".join([*([mend] if mend else []), *([f"put {' and '.join(front)} in front"] if front else [])])
    return name, (f"{first[0].upper()}{first[1:]}, then take" if first else "Take") + f" {name}: {why}."
