"""Samplers: the order in which indices of a dataset are visited, one by one or in batches."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Generic, TypeVar

from ... import dtypes
from ...creation import as_tensor
from ...ops.random.generator import Generator, default_generator
from ...ops.row import FUNCTIONS

T_co = TypeVar("T_co", covariant=True)
_CHUNK = 1024  # indices drawn at a time when sampling with replacement


def draw_seed(generator: Generator | None = None) -> int:
    """Return a fresh seed of a generator (the cpu's own by default), without touching a device."""
    return _mix(*(generator or default_generator).take(1))


def _mix(seed: int, counter: int) -> int:
    """Return a 63-bit hash of a seed and a counter (splitmix64): adjacent inputs give unrelated numbers."""
    z = (seed + 0x9E3779B97F4A7C15 * (counter + 1)) % 2**64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    return (z ^ z >> 31) >> 1


def permutation(n: int, generator: Generator | None = None) -> list[int]:
    """Return the numbers below n in random order."""
    return FUNCTIONS["randperm"](n, generator=generator, device="cpu").tolist()


class Sampler(Generic[T_co]):
    """Base of samplers: subclasses define `__iter__`, and `__len__` where it is known."""

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """Indices in order."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """`num_samples` random indices (default: the dataset's length).

    With `replacement` they are drawn independently; without, an index comes again only after all others have come.
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.data_source, self.replacement = data_source, replacement
        self._num_samples, self.generator = num_samples, generator
        if not isinstance(replacement, bool):
            raise TypeError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(
                f"num_samples should be a positive integer value, but got num_samples={self.num_samples}"
            )

    @property
    def num_samples(self) -> int:
        """How many indices an epoch has; follows the dataset's length."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        source = self.generator or Generator().manual_seed(draw_seed())
        n = len(self.data_source)
        if self.replacement:
            randint = FUNCTIONS["randint"]
            for start in range(0, self.num_samples, _CHUNK):
                count = min(_CHUNK, self.num_samples - start)
                yield from randint(0, n, (count,), generator=source, device="cpu").tolist()
            return
        rounds = itertools.chain.from_iterable(
            permutation(n, source) for _ in range(-(-self.num_samples // n))
        )
        yield from itertools.islice(rounds, self.num_samples)

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Given indices in random order."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        for i in permutation(len(self.indices), self.generator):
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn with probabilities proportional to weights, which need not sum to one."""

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise ValueError(
                f"num_samples should be a positive integer value, but got num_samples={num_samples}"
            )
        if not isinstance(replacement, bool):
            raise ValueError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        made = as_tensor(weights, dtype=dtypes.float64, device="cpu")
        if made.ndim != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape {tuple(made.shape)}"
            )
        self.weights, self.num_samples = made, num_samples
        self.replacement, self.generator = replacement, generator

    def __iter__(self) -> Iterator[int]:
        draw = self.weights.multinomial(
            self.num_samples, self.replacement, generator=self.generator
        )
        yield from draw.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of `batch_size` indices of another sampler; the last may be shorter, unless `drop_last`."""

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(
                f"batch_size should be a positive integer value, but got batch_size={batch_size}"
            )
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        source = iter(self.sampler)
        while batch := list(itertools.islice(source, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
