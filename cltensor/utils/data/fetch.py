"""Functions from indices to a batch, for datasets that are indexed and for those that are iterated."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ... import dtypes
from ...creation import tensor
from .collate import default_collate
from .dataset import Subset, TensorDataset

Fetch = Callable[[Any], Any]


class Exhausted:
    """Sent by a worker whose part of an iterable dataset is exhausted."""


def fetcher(
    dataset: Any, iterable: bool, batched: bool, collate_fn: Fetch, drop_last: bool
) -> Fetch:
    """Return a function from indices to a batch (unbatched: from an index to a sample).

    It raises StopIteration at a stream's end.
    """
    if iterable:
        return _stream(iter(dataset), batched, collate_fn, drop_last)
    if not batched:
        return lambda index: collate_fn(dataset[index])
    rows = _rows(dataset) if collate_fn is default_collate else None
    if rows is not None:
        return rows

    def fetch(indices: Any) -> Any:
        if callable(getattr(dataset, "__getitems__", None)):
            return collate_fn(dataset.__getitems__(indices))
        return collate_fn([dataset[i] for i in indices])

    return fetch


def _stream(source: Iterator[Any], batched: bool, collate_fn: Fetch, drop_last: bool) -> Fetch:
    def fetch(indices: Any) -> Any:
        if not batched:
            return collate_fn(next(source))
        samples = list(itertools.islice(source, len(indices)))
        if not samples or (drop_last and len(samples) < len(indices)):
            raise StopIteration
        return collate_fn(samples)

    return fetch


def _rows(dataset: Any) -> Fetch | None:
    """Return a fetcher that makes a batch with one gather per tensor, for a TensorDataset or a Subset of one.

    Return None for other datasets.
    """
    chosen: Any = None
    if type(dataset) is Subset:
        dataset, chosen = dataset.dataset, dataset.indices
    if type(dataset) is not TensorDataset:
        return None
    tensors = dataset.tensors

    def fetch(indices: Any) -> Any:
        picked = [chosen[i] for i in indices] if chosen is not None else indices
        index = np.asarray(picked)
        if index.dtype.kind != "i" or index.ndim != 1:
            return default_collate([dataset[i] for i in picked])
        where: dict[Any, Any] = {}
        for t in tensors:
            if t.device not in where:
                where[t.device] = tensor(index, dtype=dtypes.int64, device=t.device)
        return [t[where[t.device]] for t in tensors]

    return fetch
