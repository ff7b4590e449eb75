"""Padding layers: constant, zero, reflected, replicated, circular, in one to three dimensions."""

from __future__ import annotations

from typing import Any

from ...tensor import Tensor
from .. import functional as F
from .layer import ntuple, own_init
from .module import Module

__all__ = [
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
]


class _Pad(Module):
    """Pad the last `_rank` dimensions; a single number is used for all sides."""

    _rank: int
    _mode: str

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = ntuple(padding, 2 * self._rank)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_Pad):
    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Pad (N, C, L) or (C, L) with a value; negative sizes cut off."""

    _rank = 1


class ConstantPad2d(_ConstantPadNd):
    """Pad (N, C, H, W) or (C, H, W) with a value."""

    _rank = 2


class ConstantPad3d(_ConstantPadNd):
    """Pad (N, C, D, H, W) or (C, D, H, W) with a value."""

    _rank = 3


class _ZeroPad(_ConstantPadNd):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_ZeroPad, ConstantPad1d):
    """Pad (N, C, L) or (C, L) with zeros."""


class ZeroPad2d(_ZeroPad, ConstantPad2d):
    """Pad (N, C, H, W) or (C, H, W) with zeros."""


class ZeroPad3d(_ZeroPad, ConstantPad3d):
    """Pad (N, C, D, H, W) or (C, D, H, W) with zeros."""


class _ReflectionPadNd(_Pad):
    _mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    """Pad (N, C, L) or (C, L) by its mirror image about the edge elements."""

    _rank = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Pad (N, C, H, W) or (C, H, W) by its mirror image about the edge elements."""

    _rank = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Pad (N, C, D, H, W) or (C, D, H, W) by its mirror image about the edge elements."""

    _rank = 3


class _ReplicationPadNd(_Pad):
    _mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    """Pad (N, C, L) or (C, L) with the nearest edge element."""

    _rank = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Pad (N, C, H, W) or (C, H, W) with the nearest edge element."""

    _rank = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Pad (N, C, D, H, W) or (C, D, H, W) with the nearest edge element."""

    _rank = 3


class _CircularPadNd(_Pad):
    _mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        n = self._rank
        if input.dim() not in (n + 1, n + 2):
            raise ValueError(f"expected {n + 1}D or {n + 2}D input (got {input.dim()}D input)")
        return super().forward(input)


class CircularPad1d(_CircularPadNd):
    """Pad (N, C, L) or (C, L) with the other end."""

    _rank = 1


class CircularPad2d(_CircularPadNd):
    """Pad (N, C, H, W) or (C, H, W) with the other end."""

    _rank = 2


class CircularPad3d(_CircularPadNd):
    """Pad (N, C, D, H, W) or (C, D, H, W) with the other end."""

    _rank = 3


own_init(
    CircularPad1d,
    CircularPad2d,
    CircularPad3d,
    ConstantPad1d,
    ConstantPad2d,
    ConstantPad3d,
    ReflectionPad1d,
    ReflectionPad2d,
    ReflectionPad3d,
    ReplicationPad1d,
    ReplicationPad2d,
    ReplicationPad3d,
    ZeroPad1d,
    ZeroPad2d,
    ZeroPad3d,
)
