"""Counting how often each small integer occurs, of which bincount and the histograms are made.

Sums of integers do not depend on their order, so several tables are filled in parallel and added. Knows operands and
backends, nothing of tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import dtypes
from ...layouts import numel
from ..move.copies import dense
from ..operand import Operand
from ..region import empty, index_type, is_gpu, run, workers

if TYPE_CHECKING:
    from ...runtime import Backend

WAYS = 4  # tables that a work-item fills in turn
SHARE = 4  # elements per entry of another table, at least, as its entries have to be cleared and added up, too
LOCAL = 2048  # entries of the largest table that a GPU's work-group keeps in local memory
GROUP = 256  # work-items of such a group
GROUPS = 4  # work-groups per compute unit, at most


def count(backend: Backend, places: Operand, bins: int) -> tuple[Operand, Operand]:
    """Return how often 0, 1, … `bins - 1` occur in an integer operand, int64 (bins,), and all else, int64 (1,)."""
    result = empty(backend, dtypes.int64, (bins,))
    rest = empty(backend, dtypes.int64, (1,))
    src, gpu, width = dense(backend, places), is_gpu(backend), bins + 1
    n = numel(src.shape)
    if n >= 1 << 32:
        raise RuntimeError("counting 2**32 elements and more is not supported")
    items = 1 if gpu else max(1, min(workers(backend, n), n // (SHARE * width)))
    ways = 1 if gpu or n < SHARE * WAYS * items * width else WAYS
    tables = backend.alloc(4 * items * ways * width)
    local, group = gpu and width <= LOCAL, min(GROUP, backend.info.max_group)
    key: dict[str, Any] = {"I": index_type(backend, src, result), "gpu": gpu, "group": group}
    scalars = [n, src.offset, bins, ways]
    counted = [src.buffer, tables]
    if gpu:
        run(backend, "count", "count_zero", counted, scalars, width, 4 * width, action="zero", src=None, room=0, **key)  # fmt: skip
    nbytes = n * src.dtype.itemsize
    work: int | tuple[int, int] = n if gpu else items
    if local:
        most = max(1, min(GROUPS * backend.info.compute_units, n // (SHARE * max(width, group))))
        work = (most * group, group)
    name = f"count_{src.dtype.code}{'_local' * local}"
    run(backend, "count", name, counted, scalars, work, nbytes, action="count", src=src.dtype, room=LOCAL * local, **key)  # fmt: skip
    run(
        backend,
        "count",
        "count_sum",
        [tables, result.buffer, rest.buffer],
        [bins, items * ways],
        width if gpu else workers(backend, items * ways * width),
        4 * items * ways * width,
        action="sum",
        src=None,
        room=0,
        **key,
    )
    return result, rest
