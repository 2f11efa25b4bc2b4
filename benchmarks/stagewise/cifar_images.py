"""CIFAR-10 from an archive of JPEG copies, kept as bytes."""

from __future__ import annotations

import io
import tarfile

import numpy as np

from benchmarks import data


def load(files: str = "") -> data.Split:
    """Bytes of shape (n, 3072), height × width × channel, decoded once from the JPEG copies and kept; or from files."""
    if files:
        return data.split(files)
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
    names: dict[str, list[str]] = {"train": [], "test": []}
    with tarfile.open(data.data_dir() / "cifar10" / "cifar10_jpg.tar.xz") as archive:
        for member in archive:  # in the order of the archive, as anything else would decompress it again and again
            pieces, file = member.name.split("/"), archive.extractfile(member) if member.isfile() else None
            if file is None or not member.name.endswith(".jpg") or len(pieces) < 3:
                continue
            with Image.open(io.BytesIO(file.read())) as image:
                images[pieces[-3]].append(np.asarray(image.convert("RGB")).reshape(-1))
            labels[pieces[-3]].append(pieces[-2])
            names[pieces[-3]].append(member.name)
    found = {}
    for part in images:
        order = np.argsort(names[part])
        codes = np.unique(labels[part], return_inverse=True)[1].astype(np.int64)
        found[part] = np.stack(images[part])[order], codes[order]
    return found
