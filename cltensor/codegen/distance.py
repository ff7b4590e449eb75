"""Distances between all pairs of rows of two matrices, and their gradients. Knows nothing of tensors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .index.rows import memory_of
from .operand import Operand
from .region import empty, index_type, is_gpu, run, workers
from .source import include, lane_macros

if TYPE_CHECKING:
    from ..runtime import Backend

# Rows of the second matrix that are transposed together on a CPU, so that the lanes of a vector are rows.
_COLUMNS = 64
_DEPTH = 32  # numbers of each of those rows that are transposed at a time
_MOST_ROWS = 64  # rows of the first matrix per work-item, at most


class Rows(NamedTuple):
    """Matrices (batch, n, width) with contiguous rows; `step` is the batch stride, 0 for a single matrix."""

    operand: Operand
    n: int
    width: int
    step: int


def _kind(p: float) -> str:
    named = {0.0: "number", 1.0: "size", 2.0: "square", math.inf: "largest"}
    return named.get(p, "power")


def _bits(p: float, itemsize: int) -> int:
    return int(np.float32(p).view(np.int32) if itemsize == 4 else np.float64(p).view(np.int64))


def _run(
    backend: Backend, first: Rows, second: Rows, batch: int, p: float, packed: bool, out: Operand,
    given: tuple[Operand, ...], steps: list[int],
) -> None:  # fmt: skip
    """Launch the forward kernel, or the backward one where the gradient and the distances are `given`.

    `steps` are then the gradient's strides.
    """
    dt, gpu, back, kind = out.dtype, is_gpu(backend), bool(given), _kind(p)
    lanes = 1 if gpu else backend.info.lanes * 4 // dt.itemsize
    pairs = batch * first.n * second.n
    rows = min(_MOST_ROWS, max(8, -(-first.n * batch // (4 * backend.info.compute_units))))
    pieces = batch * (first.n if back else -(-first.n // rows))
    work = min(workers(backend, pairs * (first.width + 8)), pieces)
    if gpu:
        work = batch * first.n * first.width if back else pairs
    head = lane_macros(lanes, dt.itemsize == 8)
    power = kind == "power" and not (gpu and dt.itemsize == 8)
    run(
        backend,
        "distance",
        f"distance_{kind}{'_back' * back}{'_packed' * packed}_{dt.code}",
        [x.buffer for x in (first.operand, second.operand, *given, out)],
        [batch, first.n, second.n, first.width, first.operand.offset, second.operand.offset,
         first.step, second.step, *[x.offset for x in given], *steps, rows],
        work,
        (pairs + batch * (first.n + second.n) * first.width) * dt.itemsize,
        longs=[_bits(p, dt.itemsize)],
        dt=dt,
        I=index_type(backend, first.operand, second.operand, out, *given),
        kind=kind,
        back=back,
        packed=packed,
        lanes=lanes,
        columns=_COLUMNS,
        depth=_DEPTH,
        memory=memory_of(dt, lanes),
        headers=head + include("elementary/pow") if power else head,
        gpu=gpu,
    )  # fmt: skip


def between(backend: Backend, first: Rows, second: Rows, batch: int, p: float) -> Operand:
    """Return the p-distances (batch, n1, n2) of float32 or float64 rows."""
    out = empty(backend, first.operand.dtype, (batch, first.n, second.n))
    _run(backend, first, second, batch, p, False, out, (), [])
    return out


def among(backend: Backend, rows: Rows, p: float) -> Operand:
    """Return the p-distances of all pairs i < j of rows of one matrix, packed as the rows of the upper triangle."""
    out = empty(backend, rows.operand.dtype, (rows.n * (rows.n - 1) // 2,))
    _run(backend, rows, rows, 1, p, True, out, (), [])
    return out


def slope(
    backend: Backend, first: Rows, second: Rows, batch: int, p: float, g: Operand, distances: Operand, turned: bool
) -> Operand:  # fmt: skip
    """Return the gradient (batch, n, width) by `first`.

    g and distances are dense: (batch, n of first, n of second), or with `turned` (batch, n of second, n of first).
    """
    out = empty(backend, first.operand.dtype, (batch, first.n, first.width))
    steps = [first.n * second.n, *((1, first.n) if turned else (second.n, 1))]
    _run(backend, first, second, batch, p, False, out, (g, distances), steps)
    return out


def slope_among(backend: Backend, rows: Rows, p: float, g: Operand, distances: Operand) -> Operand:
    """Return the gradient (1, n, width) of the distances of `among`; g and distances are dense."""
    out = empty(backend, rows.operand.dtype, (1, rows.n, rows.width))
    _run(backend, rows, rows, 1, p, True, out, (g, distances), [0, 0, 1])
    return out
