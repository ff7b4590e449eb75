"""The standard's `fft`, over torch's: axes instead of dims."""

from __future__ import annotations

import inspect
from typing import Any

from .. import fft as torch_fft
from ..tensor import Tensor

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft", "rfftfreq", "rfftn",
]  # fmt: skip


def _line(name: str) -> Any:
    function = getattr(torch_fft, name)

    def transform(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:  # fmt: skip
        return function(x, n, axis, norm)

    return _named(transform, name)


def _grid(name: str) -> Any:
    function = getattr(torch_fft, name)

    def transform(x: Tensor, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:  # fmt: skip
        return function(x, s, axes, norm)

    return _named(transform, name)


def _shift(name: str) -> Any:
    function = getattr(torch_fft, name)

    def shift(x: Tensor, /, *, axes: Any = None) -> Tensor:
        return function(x, axes)

    return _named(shift, name)


def _frequencies(name: str) -> Any:
    function = getattr(torch_fft, name)

    def frequencies(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
        return function(n, d, dtype=dtype, device=device)

    return _named(frequencies, name)


def _named(function: Any, name: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = inspect.getdoc(getattr(torch_fft, name))
    return function


fft, ifft, rfft, irfft, hfft, ihfft = map(_line, ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"))
fftn, ifftn, rfftn, irfftn = map(_grid, ("fftn", "ifftn", "rfftn", "irfftn"))
fftshift, ifftshift = _shift("fftshift"), _shift("ifftshift")
fftfreq, rfftfreq = _frequencies("fftfreq"), _frequencies("rfftfreq")
