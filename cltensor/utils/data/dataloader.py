"""`DataLoader`: batches of a dataset, in the order of a sampler, made in this process or in worker processes."""

from __future__ import annotations

import itertools
import multiprocessing
import multiprocessing.context
import os
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from ...ops.random.generator import Generator
from ...runtime import start_method
from .collate import default_collate, default_convert
from .dataset import Dataset, IterableDataset
from .fetch import Exhausted, fetcher
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, draw_seed
from .worker import Failure, Job, Pool, get_worker_info

T_co = TypeVar("T_co", covariant=True)
_collate_fn_t = Callable[[list[Any]], Any]  # torch's name for annotations
_FIXED = {"batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"}


class _Forever(Sampler[None]):
    """The sampler of an iterable dataset, which has no indices: yields None for ever."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


class _DatasetKind:
    """Whether a dataset is indexed or iterated."""

    Map, Iterable = 0, 1


class DataLoader(Generic[T_co]):
    """Iterate over a dataset in batches.

    With batch_size None it yields samples, not batches. `sampler` yields indices, `batch_sampler` lists of indices.
    With `num_workers`, batches are made in as many processes, by each up to `prefetch_factor` ahead, and are yielded in
    order unless `in_order` is False. `multiprocessing_context` says how processes are started; the default is Python's,
    but "spawn" in place of "fork" unless the cpu device is pip's PoCL. If they are not forked, dataset, `collate_fn`
    and `worker_init_fn` must be picklable, and the program must start under `if __name__ == "__main__":`. Workers send
    host memory; with the default `collate_fn` they make no tensors, and kernels in a worker run on one thread.
    `pin_memory` has no effect.

    An exception in a worker is raised again in this process, with the worker's traceback in its message. RuntimeError
    when a worker dies, or when a batch takes more than `timeout` seconds (0: no limit).
    """

    dataset: Any
    batch_size: int | None
    num_workers: int
    sampler: Any
    batch_sampler: Any
    _ready = False

    def __init__(
        self,
        dataset: Dataset[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler | Iterable | None = None,
        batch_sampler: Sampler[list] | Iterable[list] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        streams = isinstance(dataset, IterableDataset)
        self._dataset_kind = _DatasetKind.Iterable if streams else _DatasetKind.Map
        if streams:
            _check_stream(shuffle, sampler, batch_sampler)
        _check_sampling(batch_size, shuffle, sampler, batch_sampler, drop_last)
        self.dataset, self.num_workers = dataset, num_workers
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.timeout, self.worker_init_fn, self.in_order = timeout, worker_init_fn, in_order
        self.multiprocessing_context = multiprocessing_context
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        if sampler is None:
            sampler = (
                _Forever()
                if streams
                else RandomSampler(dataset, generator=generator)  # type: ignore[arg-type]
                if shuffle
                else SequentialSampler(dataset)  # type: ignore[arg-type]
            )
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)  # type: ignore[arg-type]
        self.batch_size, self.drop_last, self.generator = batch_size, drop_last, generator
        self.sampler, self.batch_sampler = sampler, batch_sampler
        self.collate_fn = collate_fn or (
            default_collate if self._auto_collation else default_convert
        )
        self.persistent_workers = persistent_workers
        self._iterator: _MultiProcessingDataLoaderIter | None = None
        # An iterable dataset's length when `len(self)` was last called, None before: iterators warn if they yield more.
        self._IterableDataset_len_called: int | None = None
        self._ready = True
        _warn_of_many(num_workers)

    def __setattr__(self, name: str, value: Any) -> None:
        if self._ready and name in _FIXED:
            raise ValueError(
                f"{name} attribute should not be set after {type(self).__name__} is initialized"
            )
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self) -> Any:
        """The context of `multiprocessing` by which workers are started; None for the default."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, value: Any) -> None:
        if value is not None:
            if not self.num_workers:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
                    f"num_workers={self.num_workers}"
                )
            if isinstance(value, str):
                known = multiprocessing.get_all_start_methods()
                if value not in known:
                    raise ValueError(
                        f"multiprocessing_context option should specify a valid start method in {known!r}, but got "
                        f"multiprocessing_context={value!r}"
                    )
                value = multiprocessing.get_context(value)
            if not isinstance(value, multiprocessing.context.BaseContext):
                raise TypeError(
                    "multiprocessing_context option should be a valid context object or a string specifying the start "
                    f"method, but got multiprocessing_context={value}"
                )
        self._context = value

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def __iter__(self) -> _BaseDataLoaderIter:
        if not self.num_workers:
            return _SingleProcessDataLoaderIter(self)
        if not self.persistent_workers:
            return _MultiProcessingDataLoaderIter(self)
        if self._iterator is None or self._iterator.pool is None:
            self._iterator = _MultiProcessingDataLoaderIter(self)
        else:
            self._iterator.restart()
        return self._iterator

    def __len__(self) -> int:
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        count = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is None:
            return count
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


def _check_workers(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent: bool
) -> None:
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; use num_workers=0 to disable multiprocessing."
        )
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing."
            "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_stream(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    for name, value, given in (
        ("shuffle", shuffle, shuffle not in (False, None)),
        ("sampler", sampler, sampler is not None),
        ("batch_sampler", batch_sampler, batch_sampler is not None),
    ):
        if given:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
            )


def _check_sampling(
    batch_size: Any, shuffle: Any, sampler: Any, batch_sampler: Any, drop_last: bool
) -> None:
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise ValueError(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
            )
    elif batch_size is None and drop_last:
        raise ValueError(
            "batch_size=None option disables auto-batching and is mutually exclusive with drop_last"
        )


def _warn_of_many(num_workers: int) -> None:
    affinity = getattr(os, "sched_getaffinity", None)
    limit = len(affinity(0)) if affinity else os.cpu_count()
    if limit is not None and num_workers > limit:
        warnings.warn(
            f"This DataLoader will create {num_workers} worker processes in total. Our suggested max number of worker in "
            f"current system is {limit}, which is smaller than what this DataLoader is going to create. Please be aware "
            "that excessive worker creation might get DataLoader running slow or even freeze, lower the worker number to "
            "avoid potential slowness/freeze if necessary.",
            stacklevel=3,
        )


class _BaseDataLoaderIter:
    """One pass over a loader."""

    def __init__(self, loader: DataLoader) -> None:
        self.loader = loader
        self.base_seed = draw_seed(loader.generator)
        self.indices = iter(loader._index_sampler)
        self.yielded = 0
        # Copied, so that a later call of `len(loader)` does not change what this pass warns of.
        self.expected = loader._IterableDataset_len_called

    def __iter__(self) -> _BaseDataLoaderIter:
        return self

    def __len__(self) -> int:
        return len(self.loader._index_sampler)

    def __next__(self) -> Any:
        data = self._next()
        self.yielded += 1
        if self.loader._dataset_kind == _DatasetKind.Iterable:
            self._check_length()
        return data

    def _next(self) -> Any:
        raise NotImplementedError

    def _check_length(self) -> None:
        if self.expected is not None and self.yielded > self.expected:
            warnings.warn(
                f"Length of IterableDataset {self.loader.dataset} was reported to be {self.expected}(when accessing "
                f"len(dataloader)), but {self.yielded} samples have been fetched. "
                + (
                    "For multiprocessing data-loading, this could be caused by not properly configuring the IterableDataset "
                    "replica at each worker. Please see https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset "
                    "for examples."
                    if self.loader.num_workers
                    else ""
                ),
                stacklevel=3,
            )


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """A pass that makes its batches in this process."""

    def __init__(self, loader: DataLoader) -> None:
        super().__init__(loader)
        self.fetch = fetcher(
            loader.dataset,
            loader._dataset_kind == _DatasetKind.Iterable,
            loader._auto_collation,
            loader.collate_fn,
            loader.drop_last,
        )

    def _next(self) -> Any:
        return self.fetch(next(self.indices))


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """A pass that makes its batches in worker processes.

    Tasks are numbered, and given in turn to the workers whose streams have not ended. Results are yielded by number, or
    as they arrive if the loader's `in_order` is False.
    """

    def __init__(self, loader: DataLoader) -> None:
        super().__init__(loader)
        if get_worker_info() is not None:
            raise AssertionError("daemonic processes are not allowed to have children")
        jobs = [
            Job(
                loader.dataset,
                loader._dataset_kind == _DatasetKind.Iterable,
                loader._auto_collation,
                loader.collate_fn,
                loader.drop_last,
                loader.worker_init_fn,
                worker,
                loader.num_workers,
                self.base_seed,
            )
            for worker in range(loader.num_workers)
        ]
        self.pool: Pool | None = Pool(
            loader.multiprocessing_context or multiprocessing.get_context(start_method()), jobs
        )
        self.epoch = 0
        self._begin()

    def restart(self) -> None:
        """Begin another pass with the same workers."""
        self.indices = iter(self.loader._index_sampler)
        self.yielded, self.expected = 0, self.loader._IterableDataset_len_called
        self.epoch += 1
        self._begin()

    def _begin(self) -> None:
        # The workers whose streams have not ended; the first one gets the next task.
        self.active = deque(range(self.loader.num_workers))
        self.given = 0  # the number of the next task
        self.wanted = 0  # the number of the task whose result comes next
        self.owner: dict[int, int] = {}  # tasks without a result yet, and their workers
        self.done: dict[int, Any] = {}  # results that arrived before their turn
        for _ in range((self.loader.prefetch_factor or 1) * self.loader.num_workers):
            self._give()

    def _give(self) -> None:
        """Send the next task, if any, to the next worker."""
        if not self.active or self.pool is None:
            return
        try:
            indices = next(self.indices)
        except StopIteration:
            return
        worker = self.active[0]
        self.active.rotate(-1)
        self.owner[self.given] = worker
        self.pool.give(worker, (self.epoch, self.given, indices))
        self.given += 1

    def _retire(self, worker: int) -> None:
        """Give no more tasks to a worker whose stream has ended; its unfinished ones will yield nothing."""
        if worker in self.active:
            self.active.remove(worker)

    def _next(self) -> Any:
        try:
            number = self._await()
        except BaseException as error:
            if not isinstance(error, StopIteration) or not self.loader.persistent_workers:
                self._close()
            raise
        data = self.done.pop(number)
        self._give()
        if isinstance(data, Failure):
            data.reraise()
        return data

    def _await(self) -> int:
        """Wait for the result to yield next and return its task's number. StopIteration at the end of the pass."""
        if self.pool is None:
            raise StopIteration
        while True:
            if self.loader.in_order:
                while self.wanted < self.given and not (
                    self.wanted in self.owner or self.wanted in self.done
                ):
                    self.wanted += 1  # this task yields nothing: its worker's stream had ended
                if self.wanted in self.done:
                    self.wanted += 1
                    return self.wanted - 1
            elif self.done:
                return next(iter(self.done))
            if not self.owner:
                raise StopIteration
            self._hear()

    def _hear(self) -> None:
        assert self.pool is not None
        epoch, number, data = self.pool.hear(self.loader.timeout)
        if epoch != self.epoch:
            return  # belongs to an earlier pass, which the caller left before its end
        worker = self.owner.pop(number)
        if isinstance(data, Exhausted):
            self._retire(worker)
            self._give()
        else:
            self.done[number] = data

    def _close(self) -> None:
        if self.pool is not None:
            self.pool.close()
            self.pool = None
