"""The kinds of features that `AutoClassifier` generates for a Gaussian kernel, and what a fit to them takes."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from manyclass.features import FeatureGenerator, Landmarks, RandomFourierFeatures


class FeatureKind(ABC):
    """How a kernel is approximated."""

    block_size: ClassVar[int]  # features that a stage solves for together
    is_dear: ClassVar[bool] = False  # whether a fit takes several times as long as with other kinds
    likes_large_blocks: ClassVar[bool] = False  # whether blocks of more features than usual may serve better

    @abstractmethod
    def generator(self, bandwidth: float) -> FeatureGenerator: ...

    @abstractmethod
    def work(self, n_rows: int, n_features: int, block_size: int) -> float:
        """What a fit takes, in a unit of this kind's own."""

    def times_as_long(self, block_size: int) -> float:
        """Seconds of a fit with such blocks, in those of random features."""
        return 1.0

    def n_models(self, share: float) -> int:
        """Models to average that have `share` times the usual number of features together, and none of them fewer."""
        return max(int(share), 1)


@dataclass(frozen=True)
class RandomWaves(FeatureKind):
    """Random Fourier features. A Newton step is right only near where it is taken, so many small ones go further than
    few large ones."""

    metric: str

    block_size = 512

    def generator(self, bandwidth: float) -> FeatureGenerator:
        return RandomFourierFeatures(bandwidth=bandwidth, metric=self.metric)

    def work(self, n_rows: int, n_features: int, block_size: int) -> float:
        return float(n_rows) * n_features


class KernelValues(FeatureKind):
    """Kernel values at training rows. The more of these landmarks are solved for together, the better they stand for
    all rows; and more of them in one model come nearer to the kernel than an average of models does."""

    block_size = 2048
    is_dear = likes_large_blocks = True
    drawing: ClassVar[int] = 2  # rows that take as long to read as drawing one landmark

    def generator(self, bandwidth: float) -> FeatureGenerator:
        return Landmarks(bandwidth=bandwidth)

    def work(self, n_rows: int, n_features: int, block_size: int) -> float:
        together = min(block_size, n_features)
        return float(n_rows + self.drawing * together) * n_features * together

    def times_as_long(self, block_size: int) -> float:
        return block_size / RandomWaves.block_size

    def n_models(self, share: float) -> int:
        return 1


WAVES, LEARNED_WAVES, LANDMARKS = RandomWaves("euclidean"), RandomWaves("learned"), KernelValues()
KINDS = (WAVES, LANDMARKS, LEARNED_WAVES)
"""In the order in which they are tried beside the best."""
