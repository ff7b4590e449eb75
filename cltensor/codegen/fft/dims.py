"""Fourier transforms along several dims, one after the other.

What lies between two dims is read soon after it was written: on a CPU the batch is divided into parts for which it
stays in the caches, and all parts use the same memory for it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ...layouts import contiguous_strides
from ..operand import Operand
from ..region import empty, is_gpu
from . import lengths, passes

if TYPE_CHECKING:
    from ...dtypes import dtype
    from ...runtime import Backend, Buffer

# Bytes between two dims for each compute unit: those of a part, which stay in its second-level cache, and those from
# which on a batch is divided.
PART_BYTES = 3 << 17
WHOLE_BYTES = 3 << 19


class Step(NamedTuple):
    """A transform along one dim. `half` keeps the first n // 2 + 1 results only; `real`: the source is such a half
    spectrum, and the result is real."""

    dim: int
    n: int
    forward: bool
    scale: float
    half: bool = False
    real: bool = False

    def results(self) -> int:
        """Return the length of the result along the dim."""
        return self.n // 2 + 1 if self.half else self.n


def takes(backend: Backend, dt: dtype, step: Step) -> bool:
    """Return whether `transforms` does a step in the complex dtype `dt`."""
    return lengths.is_smooth(step.n) and not (step.half and step.n > passes.reach(backend, dt))


def transforms(
    backend: Backend, src: Operand, steps: Sequence[Step], window: Operand | None = None
) -> Operand:
    """Return `src` transformed by all steps, dense. A `window` multiplies it (see `passes.windows`)."""
    dt = src.dtype.to_complex()
    shapes = [src.shape]
    for step in steps:
        shapes.append(_with(shapes[-1], step.dim, step.results()))
    between = max([math.prod(shape) for shape in shapes[1:-1]], default=0)
    cut, part = _part(backend, src.shape, steps, between * dt.itemsize)
    count = part if cut is None else src.shape[cut]
    nbytes = -(-between * dt.itemsize * part // max(count, 1))
    memory = [backend.alloc(nbytes) for _ in steps[1:3]]
    result = empty(backend, dt.to_real() if steps[-1].real else dt, shapes[-1])
    start = 0
    while start < count:
        length = min(part, count - start)
        there = _slice(src, cut, start, length)
        for i, step in enumerate(steps):
            if i + 1 < len(steps):
                into = _dense(memory[i % 2], dt, _with(shapes[i + 1], cut, length))
            else:
                into = _slice(result, cut, start, length)
            there = _done(backend, there, step, into, window if i == 0 else None)
        start += length
    return result


def _done(
    backend: Backend, src: Operand, step: Step, into: Operand, window: Operand | None
) -> Operand:
    return passes.transform(
        backend,
        src,
        step.dim,
        step.n,
        into.dtype,
        forward=step.forward,
        scale=step.scale,
        nout=step.results(),
        herm=step.real,
        window=window,
        into=into,
    )


def _part(
    backend: Backend, shape: tuple[int, ...], steps: Sequence[Step], nbytes: int
) -> tuple[int | None, int]:
    """Return along which dim the batch is divided, None for no division, and the length of a part.

    `nbytes`: between two dims, in all.
    """
    along = [step.dim for step in steps]
    free = [d for d, n in enumerate(shape) if d not in along and n > 1]
    units = backend.info.compute_units
    if not free or is_gpu(backend) or nbytes <= WHOLE_BYTES * units:
        return None, 1
    count = shape[free[0]]
    return free[0], max(count * PART_BYTES * units // nbytes, 1)


def _with(shape: tuple[int, ...], dim: int | None, n: int) -> tuple[int, ...]:
    return shape if dim is None else (*shape[:dim], n, *shape[dim + 1 :])


def _slice(x: Operand, dim: int | None, start: int, length: int) -> Operand:
    if dim is None:
        return x
    shape = _with(x.shape, dim, length)
    return Operand(x.buffer, x.dtype, shape, x.strides, x.offset + start * x.strides[dim])


def _dense(buffer: Buffer, dt: dtype, shape: tuple[int, ...]) -> Operand:
    return Operand(buffer, dt, shape, contiguous_strides(shape), 0)
