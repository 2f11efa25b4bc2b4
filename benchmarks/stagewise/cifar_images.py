"""CIFAR-10, kept as bytes: an archive of JPEG copies, or the original binaries by path."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np

from benchmarks import data

JPEG = "JPEG copies of quality 75 with halved colours, about 300 bytes of data an image; the originals would give more"


def load(files: str = "") -> data.Split:
    """Bytes of shape (n, 3072), height × width × channel.

    Parameters
    ----------
    files : str
        The folder of the original binaries (data_batch_1.bin … test_batch.bin), or files of images, one a row; without,
        the JPEG copies, decoded once and kept.
    """
    if Path(files, "test_batch.bin").exists():
        train = [_original(Path(files, f"data_batch_{number}.bin")) for number in range(1, 6)]
        X, y = (np.concatenate(parts) for parts in zip(*train, strict=True))
        return X, y, *_original(Path(files, "test_batch.bin"))
    if files:
        return data.split(files)
    folder = data.CACHE / "cifar10"
    names = ("X_train", "y_train", "X_test", "y_test")
    if not (folder / f"{names[-1]}.npy").exists():
        folder.mkdir(parents=True, exist_ok=True)
        parts = _decoded()
        for name, array in zip(names, (*parts["train"], *parts["test"]), strict=True):
            np.save(folder / f"{name}.npy", array)
    X_train, y_train, X_test, y_test = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in names)
    return *data.part_of(X_train, y_train), *data.part_of(X_test, y_test)


def shuffled(files: str = "") -> tuple[np.ndarray, np.ndarray, int, str]:
    """All images, their labels, how many are for training (these come first, in random order), and what they are."""
    X, y, X_test, y_test = load(files)
    order = np.random.default_rng(0).permutation(len(y))
    origin = files or JPEG
    return np.concatenate([X[order], X_test]), np.concatenate([y[order], y_test]), len(y), origin


def _original(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """A byte for the class, then the three channels one after the other."""
    rows = np.fromfile(path, np.uint8).reshape(-1, 3073)
    channels = rows[:, 1:].reshape(-1, 3, 1024)
    return np.ascontiguousarray(channels.transpose(0, 2, 1)).reshape(-1, 3072), rows[:, 0].astype(np.int64)


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
