"""Window functions of signal processing, as compositions over `arange`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import dtypes
from ..dtypes import dtype as DType
from ..ops.row import FUNCTIONS
from ..runtime import device
from ..tensor import Tensor
from .factory import factory
from .filled import full, ones
from .ranges import arange


def _hamming(i: Tensor, last: int, alpha: float = 0.54, beta: float = 0.46) -> Tensor:
    return alpha - beta * (i * (2 * math.pi / last)).cos()


def _kaiser(i: Tensor, last: int, beta: float = 12.0) -> Tensor:
    half = last / 2
    top = full((), beta, dtype=i.dtype, device=i.device).i0()
    return (beta * (1 - ((i - half) / half) ** 2).clamp_min(0).sqrt()).i0() / top


def _blackman(i: Tensor, last: int) -> Tensor:
    turn = i * (2 * math.pi / last)
    return 0.42 - 0.5 * turn.cos() + 0.08 * (i * (4 * math.pi / last)).cos()


def _window(function: str, shape: Callable[..., Tensor]) -> None:
    def window(
        window_length: int,
        periodic: bool = True,
        *args: Any,
        dt: DType | None,
        dev: device,
        **named: Any,
    ) -> Tensor:
        made = dt or dtypes.get_default_dtype()
        if made.category != 2:
            raise RuntimeError(f"{function} expects floating point dtypes, got: {made!r}")
        if window_length < 0:
            raise RuntimeError(
                f"{function} requires non-negative window_length, got window_length={window_length}"
            )
        if window_length < 2:
            return ones(window_length, dtype=made, device=dev)
        points = window_length + bool(periodic)
        wide = dtypes.float32 if made.itemsize < 4 else made
        curve = shape(arange(points, dtype=wide, device=dev), points - 1, *args, **named)
        return curve[:window_length].contiguous().to(made)

    window.__name__ = function
    window.__doc__ = "Make a window function: symmetric of `window_length` points, or the first points of a period."
    FUNCTIONS[function] = factory(window)


_window("hann_window", lambda i, last: _hamming(i, last, 0.5, 0.5))
_window("hamming_window", _hamming)
_window("bartlett_window", lambda i, last: 1 - (i * (2 / last) - 1).abs())
_window("blackman_window", _blackman)
_window("kaiser_window", _kaiser)
