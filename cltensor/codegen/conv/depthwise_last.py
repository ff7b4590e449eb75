"""Depthwise convolution of channels-last images on a CPU, forward and both gradients: vectors run over channels.

Owns how rows are divided among work-items, and the launches of templates/conv/depthwise_last.mako and
conv/depthwise_last_weight.mako. depthwise.py checks that filter size and stride have kernels, and calls here where
channels have unit stride.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ... import dtypes
from ...layouts import contiguous_strides, numel
from ..operand import Operand
from ..products.product import LONG, access_variables, built, ceil_div, tile
from ..source import render
from .window import LONGS, numbers

if TYPE_CHECKING:
    from ...runtime import Backend, Kernel
    from .window import Window

LEAST = 8  # channels, at least: half a vector
PLACES = 4  # output places computed together


def lies_so(x: Operand, y: Operand) -> bool:
    """Return whether the channels of input and output have unit stride, and there are enough of them."""
    return x.strides[0] == y.strides[0] == 1 and x.shape[0] >= LEAST


def correlate(
    backend: Backend, x: Operand, f: Operand, y: Operand, window: Window, bias: Operand | None, items: int, *, spread: bool = False
) -> None:  # fmt: skip
    """Compute depthwise.correlate, or with `spread` depthwise.spread from x to y, in about `items` work-items."""
    what = "spread" if spread else "plain"
    kernel = _kernel(backend, what, f.shape[5], window.stride[2], _lanes(backend, x))
    lines = y.shape[1] * y.shape[4]
    each = ceil_div(lines, items)
    args = (
        *(x.buffer, f.buffer, y.buffer, (bias or x).buffer, int(bias is not None)),
        *numbers(x, f, y, bias, window),
        each,
    )
    work = 2 * max(numel(x.shape), numel(y.shape)) * f.shape[5] ** 2
    nbytes = x.nbytes + f.nbytes + y.nbytes
    backend.launch(kernel, (ceil_div(lines, each),), (1,), args, nbytes, work)


def weigh(
    backend: Backend, x: Operand, y: Operand, shape: tuple[int, ...], window: Window, items: int
) -> Operand:
    """Compute depthwise.weigh, with one partial sum per work-item, of which there are about `items`."""
    lines = y.shape[1] * y.shape[4]
    each = ceil_div(lines, items)
    whole = (ceil_div(lines, each), *shape)
    out = Operand(backend.alloc(numel(whole) * 4), x.dtype, whole, contiguous_strides(whole))
    values = numbers(x, out._replace(shape=shape, strides=out.strides[1:]), y, None, window)
    backend.launch(
        _kernel(backend, "weight", shape[5], window.stride[2], _lanes(backend, x)),
        whole[:1],
        (1,),
        (x.buffer, y.buffer, out.buffer, *values, each),
        x.nbytes + y.nbytes + out.nbytes,
        2 * numel(y.shape) * shape[5] ** 2,
    )
    return out


def _lanes(backend: Backend, x: Operand) -> int:
    return min(tile(backend, "float")[1], 16 if x.shape[0] >= 16 else 8)


def _kernel(backend: Backend, what: str, taps: int, stride: int, lanes: int) -> Kernel:
    """Return the kernel of a correlation ("plain"), a transposed one ("spread") or the weight gradient ("weight")."""
    longs, weight = (*LONGS, "each"), what == "weight"

    def make() -> tuple[str, str, list[Any]]:
        name = f"conv_depthwise_last_{what}{taps}x{taps}s{stride}"
        source = render(
            "conv/depthwise_last_weight" if weight else "conv/depthwise_last",
            fn=name,
            K=taps,
            S=stride,
            R=PLACES,
            spread=what == "spread",
            longs=longs,
            **access_variables(dtypes.float32, dtypes.float32, lanes),
        )
        types = [None] * 3 if weight else [None] * 4 + [np.int32]
        return name, source, [*types, *[LONG] * len(longs)]

    return built(backend, ("conv depthwise last", what, taps, stride, lanes), make)
