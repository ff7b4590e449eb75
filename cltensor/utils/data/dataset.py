"""Datasets, which map an index to a sample or yield a stream of samples, and combinations of datasets.

Knows nothing of batches, samplers or processes.
"""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from ...tensor import Tensor
from .sampler import permutation

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """A map from an index to a sample: subclasses define `__getitem__`, and `__len__` for most samplers.

    A method `__getitems__(indices)`, where there is one, fetches a whole batch at once.
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], Iterable[T_co]):
    """A stream of samples: subclasses define `__iter__`.

    Each worker process iterates a copy of its own; `__iter__` can ask `get_worker_info` which part of the stream to
    yield.
    """

    def __add__(self, other: Dataset) -> Any:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Sample i is the tuple of all tensors' rows i, along the first dimension. AssertionError for different lengths."""

    def __init__(self, *tensors: Tensor) -> None:
        if any(tensors[0].size(0) != t.size(0) for t in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].size(0)


def _fetch(dataset: Any, indices: Sequence[Any]) -> list[Any]:
    """Return the samples of several indices, by one call of `__getitems__` if the dataset has that method."""
    if callable(getattr(dataset, "__getitems__", None)):
        items = dataset.__getitems__(indices)
        if len(items) != len(indices):
            raise ValueError(
                f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(items)}"
            )
        return items
    return [dataset[i] for i in indices]


class StackDataset(Dataset):
    """Samples are tuples (datasets given by position) or dicts (by name) of the samples of datasets of equal length."""

    def __init__(self, *args: Dataset, **kwargs: Dataset) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or"
                "``dict``- (via ``kwargs``) like input/output, but both types are given."
            )
        parts: Sequence[Any] = args or tuple(kwargs.values())
        if not parts:
            raise ValueError("At least one dataset should be passed")
        self._length = len(parts[0])
        if any(len(part) != self._length for part in parts):
            raise ValueError("Size mismatch between datasets")
        self.datasets: Any = args or kwargs

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: part[index] for name, part in self.datasets.items()}
        return tuple(part[index] for part in self.datasets)

    def __getitems__(self, indices: Sequence[Any]) -> list[Any]:
        """Return the samples of several indices."""
        if isinstance(self.datasets, dict):
            columns = [_fetch(part, indices) for part in self.datasets.values()]
            return [
                dict(zip(self.datasets, row, strict=True)) for row in zip(*columns, strict=True)
            ]
        return list(zip(*[_fetch(part, indices) for part in self.datasets], strict=True))

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T_co]):
    """The concatenation of datasets. AssertionError for an empty sequence, or for an IterableDataset."""

    datasets: list[Any]
    cumulative_sizes: list[int]

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """Return the cumulative lengths of datasets: for each, the index of its last sample plus one."""
        return list(itertools.accumulate(len(part) for part in sequence))

    def __init__(self, datasets: Iterable[Dataset]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(part, IterableDataset) for part in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> T_co:
        if index < 0:
            if -index > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, index)
        before = self.cumulative_sizes[which - 1] if which else 0
        return self.datasets[which][index - before]


class ChainDataset(IterableDataset):
    """The concatenation of iterable datasets."""

    def __init__(self, datasets: Iterable[Dataset]) -> None:
        self.datasets = datasets

    def _parts(self) -> Iterator[Any]:
        for part in self.datasets:
            if not isinstance(part, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield part

    def __iter__(self) -> Iterator[Any]:
        for part in self._parts():
            yield from part

    def __len__(self) -> int:
        return sum(len(part) for part in self._parts())


class Subset(Dataset[T_co]):
    """The samples of a dataset at given indices."""

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[Any]) -> None:
        self.dataset: Any = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """Return the samples of several indices."""
        return _fetch(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Dataset[T_co], lengths: Sequence[int | float], generator: Any = None
) -> list[Subset[T_co]]:
    """Split a dataset at random into subsets of given lengths, or of given fractions of it, which add up to 1.

    ValueError for a fraction outside [0, 1], and for lengths that do not add up to the dataset's.
    """
    total = len(dataset)  # type: ignore[arg-type]
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        lengths = _from_fractions(lengths, total)
    if sum(lengths) != total:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = iter(permutation(total, generator))
    return [Subset(dataset, list(itertools.islice(order, int(n)))) for n in lengths]


def _from_fractions(fractions: Sequence[int | float], total: int) -> list[int]:
    for i, fraction in enumerate(fractions):
        if not 0 <= fraction <= 1:
            raise ValueError(f"Fraction at index {i} is not between 0 and 1")
    made = [math.floor(total * fraction) for fraction in fractions]
    for i in range(total - sum(made)):  # samples left over by rounding down, one per subset
        made[i % len(made)] += 1
    for i, length in enumerate(made):
        if not length:
            warnings.warn(
                f"Length of split at index {i} is 0. This might result in an empty dataset.",
                stacklevel=3,
            )
    return made
