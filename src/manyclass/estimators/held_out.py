"""Rows that are kept out of a fit, to stop by."""

from __future__ import annotations

import numpy as np

from manyclass.data import Design, Targets
from manyclass.data.design import Array
from manyclass.estimators.encoding import Labels
from manyclass.model import Objective
from manyclass.model.links import Link


def split_rows(labels: Labels | None, n_rows: int, fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to fit on and rows to hold out, each in order.

    Stratified by class, if there are classes, each has two rows or more and both parts have room for all of them.
    """
    from sklearn.model_selection import train_test_split

    strata = None
    if labels is not None and labels.codes is not None:
        strata = np.asarray(labels.codes.cpu() if hasattr(labels.codes, "cpu") else labels.codes)
        n_out = int(np.ceil(fraction * n_rows))
        if np.bincount(strata).min() < 2 or min(n_out, n_rows - n_out) < len(labels.classes):
            strata = None
    kept, out = train_test_split(np.arange(n_rows), test_size=fraction, random_state=seed, stratify=strata)
    return np.sort(kept), np.sort(out)


def split_weights(
    labels: Labels | None, design: Design, sample_weight: Array | None, fraction: float, rng: np.random.Generator
) -> tuple[Array, Array, np.ndarray]:
    """Weights for fitting, weights for scoring (each 0 where the other is not), and the held-out rows.

    No row of X is copied.
    """
    _, out = split_rows(labels, design.n_rows, fraction, int(rng.integers(2**31)))
    mask = np.zeros(design.n_rows)
    mask[out] = 1.0
    weight = 1.0 if sample_weight is None else sample_weight
    scored = design.asarray(mask)
    return weight * (1.0 - scored), weight * scored, out


def objective_on(
    rows: np.ndarray | None,
    design: Design,
    targets: Targets,
    link: Link,
    alpha: float = 0.0,
    *,
    sample_weight: Array | None,
    **options: bool,
) -> Objective:
    """The objective of some rows, which are copied; of all where `rows` is None."""
    if rows is not None:
        if sample_weight is not None:
            sample_weight = design.xp.take(sample_weight, design.asarray(rows, dtype=design.xp.int64))
            if not float(design.xp.sum(sample_weight)) > 0:
                raise ValueError(
                    "All rows held out, or all others, have weight 0; change validation_fraction or set "
                    "early_stopping=False."
                )
        design, targets = Design(design.take(rows)), targets.take(rows)
    return Objective(design, targets, link, alpha, sample_weight=sample_weight, **options)
