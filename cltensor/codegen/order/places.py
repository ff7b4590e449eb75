"""Conversion between row-major numbers of places and their coordinates, for sorting the entries of sparse tensors.

Owns the two kernels. Knows operands and backends, nothing of tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ... import dtypes
from ..operand import Operand
from ..region import empty, index_type, is_gpu, run, workers
from .mask import compact, first_of_runs, is_small

if TYPE_CHECKING:
    from ...runtime import Backend


def numbers(backend: Backend, indices: Operand, sizes: Sequence[int]) -> Operand | None:
    """Return the row-major number of each place, a column of `indices` (int64); None if one is out of bounds. Waits."""
    rank, count = indices.shape
    keys, gpu = empty(backend, dtypes.int64, (count,)), is_gpu(backend)
    work = count if gpu else workers(backend, count * rank)
    flags = backend.alloc(4 if gpu else 4 * work)
    if gpu:
        backend.write(flags, 0, np.zeros(1, np.int32))
    run(
        backend,
        "sparse/keys",
        f"sparse_keys_d{rank}",
        [indices.buffer, keys.buffer, flags],
        [count, indices.offset, *indices.strides, *sizes],
        work,
        8 * count * (rank + 1),
        rank=rank,
        I="long" if max(sizes) >= 1 << 31 else index_type(backend, indices),
        gpu=gpu,
    )
    return None if backend.read(flags, 0, flags.nbytes).any() else keys


def merged(backend: Backend, keys: Operand, sizes: Sequence[int]) -> tuple[Operand, Operand]:
    """Return where runs of equal `keys`, which are sorted, start, and these places' coordinates (dims, runs). Waits."""
    rank, n, gpu = len(sizes), keys.shape[0], is_gpu(backend)
    alone = is_small(backend, n)
    if alone:
        starts = empty(backend, dtypes.int64, (n + 1,))
    else:
        starts = compact(backend, first_of_runs(backend, keys))
    count = n if alone else starts.shape[0]
    found = empty(backend, dtypes.int64, (rank, count))
    if count:
        run(
            backend,
            "sparse/places",
            f"sparse_places_d{rank}{'_alone' * alone}",
            [keys.buffer, starts.buffer, found.buffer],
            [count, keys.offset, starts.offset, *sizes],
            count if gpu else 1 if alone else workers(backend, count * rank),
            8 * count * (rank + 2),
            rank=rank,
            I="long" if max(sizes) >= 1 << 31 else index_type(backend, keys, found),
            gpu=gpu,
            alone=alone,
        )
    if alone:
        count = int(backend.read(starts.buffer, 8 * n, 8).view(np.int64)[0]) if n else 0
    return starts._replace(shape=(count,)), found._replace(shape=(rank, count))
