"""`DistributedSampler`: divides a dataset among processes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ..._ground.package import submodule
from ..._tensor import namespace as pygrad
from .sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[int]):
    """The indices for one of several processes. All processes shuffle in the same order.

    Args:
        dataset: the dataset.
        num_replicas: the number of processes; by default that of the process group.
        rank: the number of this process; by default its rank.
        shuffle: whether to shuffle, in an order that depends on `seed` and the epoch.
        seed: must be the same in all processes.
        drop_last: drop the remainder of the division; else repeat the first indices.

    Raises:
        ValueError: a rank out of range; neither arguments nor a process group.

    Example:
        >>> from pygrad.utils.data.distributed import DistributedSampler
        >>> list(DistributedSampler(range(5), num_replicas=2, rank=1, shuffle=False))
        [1, 3, 0]
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None:
            num_replicas = submodule("distributed").get_world_size()
        if rank is None:
            rank = submodule("distributed").get_rank()
        if rank >= num_replicas or rank < 0:
            raise ValueError(
                f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]"
            )
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        count = len(dataset)
        if drop_last and count % num_replicas:
            self.num_samples = math.ceil((count - num_replicas) / num_replicas)
        else:
            self.num_samples = math.ceil(count / num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self) -> Iterator[int]:
        indices = list(range(len(self.dataset)))
        if self.shuffle:
            generator = pygrad.Generator()
            generator.manual_seed(self.seed + self.epoch)
            indices = pygrad.randperm(len(indices), generator=generator).tolist()
        if not self.drop_last:
            times = math.ceil(self.total_size / max(len(indices), 1))
            indices = indices * times
        return iter(indices[: self.total_size][self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch, which changes the order of shuffling."""
        self.epoch = epoch
