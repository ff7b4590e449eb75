"""The sampler that gives each of several replicas its share of a dataset."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ...ops.random.generator import Generator
from .sampler import Sampler, permutation


class DistributedSampler(Sampler[int]):
    """The indices of one replica: every `num_replicas`-th, beginning at `rank`.

    Number of replicas and rank default to those of the default process group. Without `drop_last`, indices are repeated
    until the replicas' shares are equal. With `shuffle`, call `set_epoch` before each epoch to get another order.
    ValueError for a rank out of range, and if there is no process group to ask.
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
        if num_replicas is None or rank is None:
            from ...distributed import get_rank, get_world_size

            num_replicas = get_world_size() if num_replicas is None else num_replicas
            rank = get_rank() if rank is None else rank
        if rank >= num_replicas or rank < 0:
            raise ValueError(
                f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]"
            )
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.shuffle, self.seed, self.drop_last, self.epoch = shuffle, seed, drop_last, 0
        count = len(dataset)
        self.num_samples = (
            count // num_replicas
            if drop_last and count % num_replicas
            else math.ceil(count / num_replicas)
        )
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset)
        order = list(range(count))
        if self.shuffle:
            order = permutation(count, Generator().manual_seed(self.seed + self.epoch))
        if not self.drop_last and order:
            order = (order * math.ceil(self.total_size / count))[: self.total_size]
        return iter(order[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Choose the random order of the next iteration: it depends on `seed + epoch`."""
        self.epoch = epoch
