"""CIFAR-10 from a zip file of JPEG copies, kept as bytes."""

from __future__ import annotations

import io
import zipfile

import numpy as np

from benchmarks import data


def load() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Bytes of shape (n, 3072), height × width × channel, decoded once from the JPEG copies and kept."""
    folder = data.CACHE / "cifar10"
    names = ("X_train", "y_train", "X_test", "y_test")
    if not (folder / f"{names[-1]}.npy").exists():
        folder.mkdir(parents=True, exist_ok=True)
        parts = _decoded()
        for name, array in zip(names, (*parts["train"], *parts["test"]), strict=True):
            np.save(folder / f"{name}.npy", array)
    X_train, y_train, X_test, y_test = (np.load(folder / f"{name}.npy") for name in names)
    return X_train, y_train, X_test, y_test


def _decoded() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    from PIL import Image

    images: dict[str, list[np.ndarray]] = {"train": [], "test": []}
    labels: dict[str, list[str]] = {"train": [], "test": []}
    with zipfile.ZipFile(data.data_dir() / "cifar10" / "cifar10_jpg.zip") as archive:
        for name in sorted(archive.namelist()):
            pieces = name.split("/")
            if not name.endswith(".jpg") or len(pieces) < 3:
                continue
            with Image.open(io.BytesIO(archive.read(name))) as image:
                images[pieces[-3]].append(np.asarray(image.convert("RGB")).reshape(-1))
            labels[pieces[-3]].append(pieces[-2])
    return {
        part: (np.stack(images[part]), np.unique(labels[part], return_inverse=True)[1].astype(np.int64))
        for part in images
    }
