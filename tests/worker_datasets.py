"""Datasets and functions that worker processes of the data tests import: a spawned process knows only importable names."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from cltensor.utils.data import Dataset, IterableDataset, default_collate, get_worker_info


class Squares(Dataset):
    """Pairs of an array and a number."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> Any:
        return np.full(3, i, np.float32), i * i


class Slow(Squares):
    """The first samples take longest."""

    def __getitem__(self, i: int) -> Any:
        time.sleep(0.3 if i < 2 else 0)
        return i


class Broken(Squares):
    """Fails at one sample."""

    def __getitem__(self, i: int) -> Any:
        if i == 3:
            raise KeyError(f"no sample {i}")
        return i


class Killed(Squares):
    """Kills its own process."""

    def __getitem__(self, i: int) -> Any:
        if i == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return i


class Sleeper(Squares):
    """Never gives a sample in time."""

    def __getitem__(self, i: int) -> Any:
        time.sleep(60)


class Unpicklable(Squares):
    """Gives samples that cannot be sent."""

    def __getitem__(self, i: int) -> Any:
        return lambda: i


class Report(Squares):
    """Reports the worker it runs in, its seed, and whether OpenCL was started there."""

    def __getitem__(self, i: int) -> Any:
        info = get_worker_info()
        assert info is not None
        return {
            "id": info.id,
            "workers": info.num_workers,
            "seed": info.seed,
            "numpy": int(np.random.randint(2**31)),  # noqa: NPY002 - the state that a worker seeds
            "opencl": "pyopencl" in sys.modules,
            "mark": os.environ.get("CLTENSOR_TEST_MARK", ""),
        }


class Stream(IterableDataset):
    """Numbers, split between workers."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __iter__(self) -> Iterator[int]:
        info = get_worker_info()
        start, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(start, self.n, step))


def mark(worker: int) -> None:
    os.environ["CLTENSOR_TEST_MARK"] = f"worker {worker}"


def fail(worker: int) -> None:
    raise ValueError("cannot begin")


def doubled(samples: Any) -> Any:
    return default_collate(samples) * 2


def identity(samples: Any) -> Any:
    return samples
