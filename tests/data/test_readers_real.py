"""Real files: shapes, classes and a few known figures. Set MANYCLASS_DATA to the folder that has them."""

import os
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from manyclass.data.readers import companion_labels, read

ROOT = Path(os.environ.get("MANYCLASS_DATA", "../shared/data"))
pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not ROOT.is_dir(), reason=f"no folder {ROOT}: set MANYCLASS_DATA to the real data sets"),
]


@pytest.mark.parametrize(
    ("name", "shape", "n_classes"),
    [
        ("letter", (20_000, 16), 26),
        ("satimage", (6_435, 36), 6),
        ("adult", (48_842, 14), 2),
        ("shuttle", (58_000, 9), 7),
        ("krkopt", (28_056, 6), 18),
    ],
)
def test_tabular(name, shape, n_classes):
    dataset = read(ROOT / "tabular" / f"{name}.tsv.gz")
    assert dataset.X.shape == shape
    assert len(np.unique(dataset.y)) == n_classes
    assert dataset.target_name == "target"
    assert np.isfinite(dataset.X).all()


@pytest.mark.parametrize(
    ("name", "shape", "classes"),
    [
        ("a9a", (32_561, 123), [-1, 1]),
        ("w8a", (49_749, 300), [-1, 1]),
        ("pendigits", (7_494, 16), list(range(10))),
    ],
)
def test_libsvm(name, shape, classes):
    dataset = read(ROOT / "libsvm" / f"{name}.gz")
    assert dataset.X.shape == shape
    assert np.unique(dataset.y).tolist() == classes
    assert dataset.X.dtype == np.float32


def test_libsvm_test_file_is_narrower_than_its_model():
    assert read(ROOT / "libsvm" / "a9a.t.gz").X.shape == (16_281, 122)
    assert read(ROOT / "libsvm" / "a9a.t.gz", features=123).X.shape == (16_281, 123)


@pytest.mark.parametrize(
    ("name", "shape", "n_labels", "is_sparse"),
    [
        ("yeast", (1_500, 103), 14, False),
        ("scene", (1_211, 294), 6, False),
        ("bibtex", (4_880, 1_836), 159, True),
    ],
)
def test_multilabel(name, shape, n_labels, is_sparse):
    folder = ROOT / "multilabel" / name
    dataset = read(folder / f"{name}-train.arff.gz", labels=folder / f"{name}.xml")
    assert dataset.X.shape == shape
    assert dataset.y.shape == (shape[0], n_labels)
    assert sparse.issparse(dataset.X) == is_sparse
    assert (dataset.y.sum(axis=0) > 0).all()


def test_mnist():
    images = ROOT / "mnist" / "t10k-images-idx3-ubyte.gz"
    dataset = read(images, labels=companion_labels(images))
    assert dataset.X.shape == (10_000, 784)
    assert (dataset.X.min(), dataset.X.max()) == (0, 255)
    # The test set's class counts, as published with the data.
    assert np.bincount(dataset.y).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
