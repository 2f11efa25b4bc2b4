"""What the CIFAR-10 models see: pooled responses to filters, as whole numbers of eight bits, kept in a file.

The responses enter by their square roots, standardised: strong and weak filters then count the same. An image and its
mirror image share their statistics, and are told apart by the odd half of their features alone
(`ImagePatches.even_and_odd`).
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np

from benchmarks.stagewise.exact_kernel import one_thread_each
from manyclass.features import ImagePatches

SHAPE, CHUNK = (32, 32, 3), 250
"""Of an image; images at a time."""
N_FILTERS, N_STATISTICS = 8000, 2000
"""Images from which filters, and means and spreads of their responses, are learned."""
UNIT = 16.0
"""Steps per standard deviation: rounding adds 3e-4 to the variance, and 8 deviations are the largest number."""


@dataclass(frozen=True)
class Bank:
    """Filters of one kind; as many mirror images of them come on top. All their responses are computed at once."""

    filters: int = 256
    patch_size: int = 6
    pool: int = 3
    overlap: int = 0
    threshold: float = 0.15
    whitening: float = 0.1
    contrast: bool | str = "whitened"
    kind: str = "random"
    seed: int = 0

    @property
    def n_features(self) -> int:
        return 4 * self.pool**2 * self.filters

    def file(self, n_images: int) -> str:
        words = repr((asdict(self), n_images, N_FILTERS, N_STATISTICS, UNIT))
        return f"{self.kind}-{self.filters}-{sha256(words.encode()).hexdigest()[:12]}.npy"


class Features:
    """Even and odd features of a bank, learned from the first images."""

    def __init__(self, bank: Bank, images: np.ndarray):
        self.patches = ImagePatches(
            bank.n_features,
            image_shape=SHAPE,
            contrast=bank.contrast,
            mirror=True,
            patch_size=bank.patch_size,
            pool=bank.pool,
            overlap=bank.overlap,
            threshold=bank.threshold,
            whitening=bank.whitening,
            kind=bank.kind,
            random_state=bank.seed,
        )
        self.patches.fit(_as_float(images[:N_FILTERS]))
        sample = images[:N_STATISTICS]
        total = np.zeros((3, bank.n_features // 2))
        for start in range(0, len(sample), CHUNK):
            even, odd = self._halves(sample[start : start + CHUNK])
            total += np.sum(even, axis=0), np.sum(even**2, axis=0), np.sum(odd**2, axis=0)
        mean, even_square, odd_square = total / len(sample)
        spread = np.sqrt((even_square - mean**2 + odd_square) / 2)
        # Filters that hardly ever respond would be blown up to noise.
        self.scale = (UNIT / (spread + 1e-3 * spread.mean())).astype(np.float32)
        self.mean = mean.astype(np.float32)

    def __call__(self, images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        even, odd = self._halves(images)
        even -= self.mean
        return tuple(np.clip(np.rint(half * self.scale), -127, 127).astype(np.int8) for half in (even, odd))

    def _halves(self, images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.patches.even_and_odd(np.sqrt(self.patches.transform(_as_float(images))))


def quantised(bank: Bank, images: np.ndarray, folder: Path, n_learn: int) -> tuple[np.ndarray, float]:
    """Features of all images, of shape (2, n, n_features / 2): even, odd; and the CPU seconds that they took.

    Computed once, and read from a file then.

    Parameters
    ----------
    n_learn : int
        The first so many images may be learned from.
    """
    path = folder / bank.file(len(images))
    seconds = path.with_suffix(".seconds")
    if not seconds.exists():
        began = time.process_time()
        folder.mkdir(parents=True, exist_ok=True)
        shape = (2, len(images), bank.n_features // 2)
        made = np.lib.format.open_memmap(path, mode="w+", dtype=np.int8, shape=shape)
        features = Features(bank, images[:n_learn])

        def fill(start: int) -> None:
            made[:, start : start + CHUNK] = features(images[start : start + CHUNK])

        with one_thread_each() as each:
            each(fill, range(0, len(images), CHUNK))
        made.flush()
        seconds.write_text(str(time.process_time() - began))
    return np.load(path, mmap_mode="r"), float(seconds.read_text())


def _as_float(images: np.ndarray) -> np.ndarray:
    return images.astype(np.float32) / 255
