"""Layers that only move elements: flatten, unflatten, fold, unfold, pixel and channel shuffles."""

from __future__ import annotations

from typing import Any

from ...tensor import Tensor
from .. import functional as F
from .layer import Layer

__all__ = [
    "Flatten",
    "Unflatten",
    "Fold",
    "Unfold",
    "PixelShuffle",
    "PixelUnshuffle",
    "ChannelShuffle",
]


class Flatten(Layer):
    """Join the dimensions from start_dim to end_dim."""

    _shown = ("start_dim", "end_dim")

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)


class Unflatten(Layer):
    """Split a dimension into several of the given sizes."""

    _shown = ("dim", "unflattened_size")

    def __init__(self, dim: Any, unflattened_size: Any) -> None:
        super().__init__()
        if not isinstance(unflattened_size, (tuple, list)):
            raise TypeError(
                f"unflattened_size must be a tuple of ints, but found type {type(unflattened_size).__name__}"
            )
        for i, n in enumerate(unflattened_size):
            if not isinstance(n, int):
                raise TypeError(
                    f"unflattened_size must be tuple of ints, but found element of type {type(n).__name__} at pos {i}"
                )
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)


class Fold(Layer):
    """Sum windows (N, C * window, L) into images (N, C, *output_size) where they overlap."""

    _shown = ("output_size", "kernel_size", "dilation", "padding", "stride")

    def __init__(
        self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0,
        stride: Any = 1,
    ) -> None:  # fmt: skip
        super().__init__()
        self.output_size, self.kernel_size = output_size, kernel_size
        self.dilation, self.padding, self.stride = dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(
            input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )


class Unfold(Layer):
    """Take the windows of images (N, C, H, W) as columns (N, C * window, L)."""

    _shown = ("kernel_size", "dilation", "padding", "stride")

    def __init__(
        self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__()
        self.kernel_size, self.dilation = kernel_size, dilation
        self.padding, self.stride = padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


class PixelShuffle(Layer):
    """Turn (…, C * r², H, W) into (…, C, H * r, W * r) (Shi et al., arXiv 1609.05158)."""

    _shown = ("upscale_factor",)

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(Layer):
    """Turn (…, C, H * r, W * r) into (…, C * r², H, W)."""

    _shown = ("downscale_factor",)

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)


class ChannelShuffle(Layer):
    """Interleave the channels (dim 1) of `groups` groups (Zhang et al., arXiv 1707.01083)."""

    _shown = ("groups",)

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)
