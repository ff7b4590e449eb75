"""The convolution family: correlation of strided operands, its adjoint, and its weight gradient.

Owns the public entries and the choice of schedule. A CPU's are in cpu.py (any convolution), winograd.py (3 x 3
filters), depthwise.py (a filter per plane); a GPU's are here (any convolution) and in direct.py (few channels);
as_product.py has convolutions that are matrix products, for both. A kernel's key is dtypes and tile, never a shape or
a stride. Knows nothing of tensors, padding modes or gradients: operands arrive with a dim for the groups and three
spatial dims.

    correlate:  y[g, b, o, p] = bias[g, o] + sum over c, k of x[g, b, c, p * stride + k * step - pad] * f[g, o, c, k]
    weigh:      f[g, o, c, k] = sum over b, p of y[g, b, o, p] * x[g, b, c, p * stride + k * step - pad]

p is a place of the output, k a tap of the filter, `step` the dilation. Outside its extent x counts as zero. `weigh` is
`correlate` with the roles of b and c, f and y, stride and step exchanged; a GPU computes it so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...dtypes import bfloat16
from ...layouts import contiguous_strides, numel
from ..operand import Operand
from ..products.product import (
    LONG,
    WIDE,
    access_variables,
    accumulator,
    built,
    ceil_div,
    dots,
    lane_options,
    lane_step,
    lane_width,
)
from ..source import render
from . import as_product, cpu, depthwise, direct, winograd
from .window import LONGS, Three, Window, counter, numbers, reach

if TYPE_CHECKING:
    from ...dtypes import dtype
    from ...runtime import Backend, Kernel

PAIRED = 32  # channels from which on the processor's dot products of bfloat16 pairs pay
PIECE = 1024  # the shortest piece of a sum worth a work-group of its own
# Work-groups per compute unit, which run there concurrently, that splitting a weight gradient aims at.
SHARE = 3


def widens(backend: Backend, dt: dtype) -> bool:
    """Return whether operands of this dtype are to be converted to float32 first.

    On a CPU 16-bit floats are: they are accumulated in float32 anyway, and some schedules take nothing else.
    """
    return _on_cpu(backend, None) and dt.is_floating_point and dt.itemsize == 2


def pairs(
    backend: Backend,
    dt: dtype,
    kind: str,
    filters: tuple[int, ...],
    places: tuple[int, ...],
    window: Window,
) -> bool:
    """Return whether a convolution ("y"), or its gradient by "x" or "w", should keep bfloat16 rather than be widened.

    It should where the processor has dot products of bfloat16 pairs, the convolution is computed as a matrix product,
    and Winograd's transform in float32 is not faster. Filters are (O, C, *K).
    """
    if dt is not bfloat16 or not dots(backend):
        return False
    outputs, channels = filters[:2]
    taps = filters[2:]
    single = numel(taps) == 1 and window.stride == (1, 1, 1) and window.pad == (0, 0, 0)
    if single or kind == "x":
        return single and min(outputs, channels) >= PAIRED // 2
    transformed = taps == (3, 3) and window.stride == (1, 1, 1) and channels >= PAIRED
    if window.step != (1, 1, 1) or (transformed and numel(places) >= as_product.SMALL):
        return False
    return as_product.unfolds(outputs, channels * numel(taps), numel(places), 2 * PAIRED, dt)


def correlate(
    backend: Backend,
    x: Operand,
    f: Operand,
    y: Operand,
    window: Window,
    bias: Operand | None = None,
    *,
    schedule: str | None = None,
) -> None:
    """Write the correlation of x [G, B, C, s0, s1, s2] with f [G, O, C, k0, k1, k2] to y [G, B, O, p0, p1, p2].

    All have one dtype, not bool, complex or one that `widens`, and any strides; bias is [G, O]. Without taps or
    channels the result is the bias. `schedule` is "cpu" or "gpu"; by default the device decides.
    """
    if not numel(y.shape):
        return
    if _on_cpu(backend, schedule):
        if depthwise.correlate(backend, x, f, y, window, bias):
            return
        if winograd.fits(backend, x, f.shape, y, window):
            winograd.correlate(backend, x, f, y, window, bias)
            return
        if as_product.correlate(backend, x, f, y, window, bias):
            return
        if cpu.correlate(backend, x, f, y, window, bias):
            return
    else:
        for way in (direct.correlate, as_product.correlate_single):
            if way(backend, x, f, y, window, bias):
                return
    _gpu(backend, x, f, y, window, bias)


def spread(
    backend: Backend,
    y: Operand,
    f: Operand,
    x: Operand,
    window: Window,
    bias: Operand | None = None,
) -> bool:
    """Write to x the transposed correlation of y: the adjoint of the `correlate` that reads x and writes y.

    Filters are those of that `correlate`: [G, channels of y, channels of x, ...]. False, with nothing done, where no
    schedule does so in one pass; the caller then needs a correlation for each remainder of the stride.
    """
    if not _on_cpu(backend, None):
        return False
    ways = depthwise.spread, as_product.spread, cpu.spread
    return any(way(backend, y, f, x, window, bias) for way in ways)


def weigh(
    backend: Backend,
    x: Operand,
    y: Operand,
    taps: Three,
    window: Window,
    *,
    schedule: str | None = None,
) -> Operand:
    """Return partial sums [pieces, G, O, C, *taps] in the accumulating dtype; their total is the weight gradient."""
    groups, _, channels = x.shape[:3]
    shape = (groups, y.shape[2], channels, *taps)
    if _on_cpu(backend, schedule):
        if winograd.fits_weight(backend, x, shape, y, window):
            return winograd.weigh(backend, x, y, shape, window)
        found = depthwise.weigh(backend, x, y, shape, window)
        found = found or as_product.weigh(backend, x, y, shape, window)
        found = found or cpu.weigh(backend, x, y, shape, window)
        if found is not None:
            return found
    else:
        for way in (direct.weigh, as_product.weigh_single):
            if (found := way(backend, x, y, shape, window)) is not None:
                return found
    wide = WIDE[accumulator(x.dtype)]
    tiles = ceil_div(shape[1], 64) * ceil_div(numel(shape[2:]), 64) * groups
    length = x.shape[1] * numel(y.shape[3:])
    pieces = max(min(SHARE * backend.info.compute_units // max(tiles, 1), length // PIECE), 1)
    out = empty(backend, wide, (pieces, *shape))
    if numel(shape):
        part = Operand(out.buffer, wide, shape, out.strides[1:])
        _gpu(
            backend,
            _exchange(x),
            _exchange(y),
            _exchange(part),
            window.exchanged(),
            None,
            pieces,
        )
    return out


def empty(backend: Backend, dt: dtype, shape: tuple[int, ...]) -> Operand:
    """Allocate a dense operand."""
    return Operand(backend.alloc(numel(shape) * dt.itemsize), dt, shape, contiguous_strides(shape))


def _on_cpu(backend: Backend, schedule: str | None) -> bool:
    return schedule == "cpu" if schedule else backend.info.kind == "cpu"


def _exchange(v: Operand) -> Operand:
    """Exchange dims 1 and 2: samples and channels."""
    s, t = v.shape, v.strides
    return v._replace(shape=(s[0], s[2], s[1], *s[3:]), strides=(t[0], t[2], t[1], *t[3:]))


def _gpu_kernel(
    backend: Backend, dt: dtype, out: dtype, group: int, width: int, counter: str
) -> Kernel:
    longs = (*LONGS, "pieces", "span", "y_piece", "more_c", "more0", "more1", "more2")

    def make() -> tuple[str, str, list[Any], tuple[str, ...]]:
        name = f"conv_gpu{'' if width == 4 else group * width}_{dt.code}_{out.code}"
        variables = access_variables(dt, out, 8)
        step = lane_step(backend, accumulator(dt), width)
        source = render(
            "conv/gpu", fn=name, G=group, W=width, BK=step, I=counter, longs=longs, **variables
        )
        types = [None, None, None, None, np.int32, *[LONG] * len(longs)]
        return name, source, types, lane_options(backend, width) or _lean(backend, dt, counter)

    return built(backend, ("conv gpu", dt, out, width, counter), make)


def _lean(backend: Backend, dt: dtype, counter: str) -> tuple[str, ...]:
    """Return the build options of a kernel with 4 x 4 results per work-item.

    They bound its registers, so that three of its work-groups run at once on an NVIDIA unit.
    """
    lean = counter == "int" and accumulator(dt) in ("float", "uint")
    return backend.info.with_registers(80) if lean else ()


def _gpu(
    backend: Backend,
    x: Operand,
    f: Operand,
    y: Operand,
    window: Window,
    bias: Operand | None,
    pieces: int = 1,
) -> None:
    group = 16 if backend.info.max_group >= 256 else 8
    groups, batch, channels = x.shape[:3]
    length, places = channels * numel(f.shape[3:]), batch * numel(y.shape[3:])
    width = lane_width(backend, accumulator(x.dtype), group, f.shape[1], places, groups * pieces)
    count = counter(places, f.shape[1], reach(x, window), reach(f, window))
    kernel = _gpu_kernel(backend, x.dtype, y.dtype, group, width, count)
    tile = width * group
    # Without taps the result is that of one tap over no channels, which the kernel can compute.
    if not numel(f.shape[3:]):
        f = f._replace(shape=(*f.shape[:2], 0, 1, 1, 1))
        x = x._replace(shape=(*x.shape[:2], 0, *x.shape[3:]))
    step, (k0, k1, k2) = lane_step(backend, accumulator(x.dtype), width), f.shape[3:]
    further = step // (k0 * k1 * k2), step // (k1 * k2) % k0, step // k2 % k1, step % k2
    args = (
        *(x.buffer, f.buffer, y.buffer, (bias or x).buffer, int(bias is not None)),
        *numbers(x, f, y, bias, window),
        *(pieces, max(ceil_div(length, pieces), 1), numel(y.shape), *further),
    )
    columns = ceil_div(places, tile)
    # Some devices allow only 65535 groups in the third dim; the kernel loops over the rest.
    backend.launch(
        kernel,
        (
            columns * group,
            ceil_div(f.shape[1], tile) * group,
            min(groups * pieces, 65535),
        ),
        (group, group, 1),
        args,
        x.nbytes + f.nbytes + y.nbytes,
        2 * numel(y.shape) * length,
    )
