"""Claim: `AutoClassifier` takes tables as they are kept, and makes no more errors than tuned linear classifiers of
scikit-learn behind encoders that somebody chose for the columns.

    python -m benchmarks.selection.tables                           # every table, 60 s for us and for a peer
    python -m benchmarks.selection.tables --data visits.csv --target label

Whole numbers of the files here are codes of categories, which become text; raw texts are one column. "with gaps" is the
same table of which every tenth cell was emptied. Peers get `StandardScaler` behind `SimpleImputer` with indicators,
`OneHotEncoder` of categories that two rows have, and `TfidfVectorizer` of texts, with its defaults; and choose their
penalty from a grid. Gradient boosting on trees takes categories and gaps as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks import report
from benchmarks.data import data_dir
from benchmarks.report import shown
from benchmarks.selection.auto import OURS, TREES, Result, compared, peers, rows_of, summary
from benchmarks.text import newsgroups_texts

Table = tuple[pd.DataFrame, np.ndarray]
GAPS = 0.1


def coded(name: str) -> Table:
    frame = pd.read_csv(data_dir() / "tabular" / f"{name}.tsv.gz", sep="\t")
    y = frame.pop("target").to_numpy()
    for column in frame.select_dtypes("integer"):
        frame[column] = "code " + frame[column].astype(str)
    return frame, y


def with_gaps(name: str) -> Table:
    frame, y = coded(name)
    return frame.mask(np.random.default_rng(0).random(frame.shape) < GAPS), y


def banking() -> Table:
    frame = pd.read_csv(data_dir() / "banking77" / "train.csv")
    return frame[["text"]], frame["category"].to_numpy()


def newsgroups() -> Table:
    """Posts without their headers, which name the group."""
    posts, groups = newsgroups_texts()["train"]
    return pd.DataFrame({"text": [post.partition("\n\n")[2] for post in posts]}), np.array(groups)


def from_file(path: Path, target: str) -> Table:
    frame = pd.read_csv(path)
    return frame.drop(columns=target), frame[target].astype(str).to_numpy()


TABLES: dict[str, Callable[[], Table]] = {
    **{name: partial(coded, name) for name in ("adult", "connect_4", "krkopt")},
    **{f"{name} with gaps": partial(with_gaps, name) for name in ("adult", "connect_4", "shuttle", "satimage")},
    "banking77 texts": banking,
    "20 Newsgroups texts": newsgroups,
}


def encoder(X: pd.DataFrame) -> Any:
    numbers = X.select_dtypes("number").columns.tolist()
    others = [column for column in X if column not in numbers]
    texts = [column for column in others if X[column].nunique() > len(X) ** 0.5]
    categories = [column for column in others if column not in texts]
    fill = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    codes = OneHotEncoder(min_frequency=2, handle_unknown="infrequent_if_exist")
    return make_column_transformer((fill, numbers), (codes, categories), *((TfidfVectorizer(), one) for one in texts))


def contest(name: str, X: pd.DataFrame, y: np.ndarray, limit: float, most: int) -> Result:
    linear = {title: make_pipeline(encoder(X), model) for title, model in peers(False, False).items()}
    names = X.select_dtypes(exclude="number").columns
    trees = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)
    is_text = any(X[column].nunique() > 255 for column in names)
    X = X if is_text else X.astype(dict.fromkeys(names, "category"))
    return compared(name, X, y, linear | ({} if is_text else {TREES: trees}), limit, limit, most)


def main(
    names: Annotated[list[str] | None, typer.Option("--data", help="Names of tables, or CSV files.")] = None,
    target: Annotated[str, typer.Option(help="Column of the labels of files.")] = "label",
    limit: Annotated[float, typer.Option(help="Seconds for AutoClassifier and for a peer.")] = 60.0,
    most: Annotated[int, typer.Option("--rows", help="Training rows at most.")] = 20_000,
) -> None:
    results = []
    for name in names or TABLES:
        X, y = TABLES[name]() if name in TABLES else from_file(Path(name), target)
        results.append(shown(contest(name, X, y, limit, most), rows_of, as_json=False))
    columns = ["data", "n×d×k", OURS, *peers(False, True), "behind"]
    table = report.Table(f"Tables as they are kept, {limit:g} s at most: the furthest behind first", columns)
    for result in sorted(results, key=lambda one: one.behind, reverse=True):
        table.add(*rows_of(result))
    for line in summary(results):
        table.note(line)
    table.publish("selection_tables" + ("_chosen" if names else ""))


if __name__ == "__main__":
    typer.run(main)
