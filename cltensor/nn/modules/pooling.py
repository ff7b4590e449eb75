"""Pooling layers: maxima, means, p-norms of windows, and the inverse of taking maxima.

Owns their arguments and printed form; nn.functional pools. A class says its function by name, and by that its dimension.
"""

from __future__ import annotations

from typing import Any

from ...tensor import Tensor
from .. import functional as F
from .layer import Layer, ntuple, own_init

__all__ = [
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
]


class _Pool(Layer):
    _function: str

    def _pool(self, *args: Any, **kwargs: Any) -> Any:
        return getattr(F, self._function)(*args, **kwargs)

    def _sizes(self, value: Any) -> tuple[Any, ...]:
        return ntuple(value, int(self._function[-2]))


class _MaxPoolNd(_Pool):
    _shown = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        return_indices: bool = False, ceil_mode: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.dilation = padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, input: Tensor) -> Any:
        return self._pool(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )


class MaxPool1d(_MaxPoolNd):
    """Maxima of windows of (N, C, L) or (C, L)."""

    _function = "max_pool1d"


class MaxPool2d(_MaxPoolNd):
    """Maxima of windows of (N, C, H, W) or (C, H, W)."""

    _function = "max_pool2d"


class MaxPool3d(_MaxPoolNd):
    """Maxima of windows of (N, C, D, H, W) or (C, D, H, W)."""

    _function = "max_pool3d"


class _MaxUnpoolNd(_Pool):
    _shown = ("kernel_size", "stride", "padding")

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size = self._sizes(kernel_size)
        self.stride = self._sizes(kernel_size if stride is None else stride)
        self.padding = self._sizes(padding)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        return self._pool(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(_MaxUnpoolNd):
    """Put maxima back where `MaxPool1d` found them, zeros elsewhere."""

    _function = "max_unpool1d"


class MaxUnpool2d(_MaxUnpoolNd):
    """Put maxima back where `MaxPool2d` found them, zeros elsewhere."""

    _function = "max_unpool2d"


class MaxUnpool3d(_MaxUnpoolNd):
    """Put maxima back where `MaxPool3d` found them, zeros elsewhere."""

    _function = "max_unpool3d"


class AvgPool1d(_Pool):
    """Means of windows of (N, C, L) or (C, L)."""

    _function = "avg_pool1d"
    _shown = ("kernel_size", "stride", "padding")

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = self._sizes(kernel_size)
        self.stride = self._sizes(kernel_size if stride is None else stride)
        self.padding = self._sizes(padding)
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )


class _AvgPoolNd(_Pool):
    _shown = ("kernel_size", "stride", "padding")

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.ceil_mode = padding, ceil_mode
        self.count_include_pad, self.divisor_override = count_include_pad, divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool2d(_AvgPoolNd):
    """Means of windows of (N, C, H, W) or (C, H, W)."""

    _function = "avg_pool2d"


class AvgPool3d(_AvgPoolNd):
    """Means of windows of (N, C, D, H, W) or (C, D, H, W)."""

    _function = "avg_pool3d"


class _FractionalMaxPoolNd(_Pool):
    """Maxima of windows at random places (Graham, arXiv 1412.6071)."""

    def __init__(
        self, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
        return_indices: bool = False, _random_samples: Tensor | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        name = type(self).__name__
        self.kernel_size = self._sizes(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else self._sizes(output_size)
        self.output_ratio = None if output_ratio is None else self._sizes(output_ratio)
        if output_size is None and output_ratio is None:
            raise ValueError(
                f"{name} requires specifying either an output size, or a pooling ratio"
            )
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Any:
        return self._pool(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Maxima of windows at random places of (N, C, H, W) or (C, H, W)."""

    _function = "fractional_max_pool2d"


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Maxima of windows at random places of (N, C, D, H, W) or (C, D, H, W)."""

    _function = "fractional_max_pool3d"

    def __init__(
        self, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
        return_indices: bool = False, _random_samples: Tensor | None = None,
    ) -> None:  # fmt: skip
        if any(k <= 0 for k in ntuple(kernel_size, 1)):
            raise ValueError(f"kernel_size must be greater than 0, but got {kernel_size}")
        super().__init__(kernel_size, output_size, output_ratio, return_indices, _random_samples)


class _LPPoolNd(_Pool):
    _shown = ("norm_type", "kernel_size", "stride", "ceil_mode")

    def __init__(
        self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type, self.kernel_size = norm_type, kernel_size
        self.stride, self.ceil_mode = stride, ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )


class LPPool1d(_LPPoolNd):
    """p-norms of windows of (N, C, L) or (C, L)."""

    _function = "lp_pool1d"


class LPPool2d(_LPPoolNd):
    """p-norms of windows of (N, C, H, W) or (C, H, W)."""

    _function = "lp_pool2d"


class LPPool3d(_LPPoolNd):
    """p-norms of windows of (N, C, D, H, W) or (C, D, H, W)."""

    _function = "lp_pool3d"


class _AdaptiveMaxPoolNd(_Pool):
    _shown = ("output_size",)

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size, self.return_indices = output_size, return_indices

    def forward(self, input: Tensor) -> Any:
        return self._pool(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Maxima of as many windows as the output is to have, of (N, C, L) or (C, L)."""

    _function = "adaptive_max_pool1d"


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Maxima of as many windows as the output is to have, of (N, C, H, W) or (C, H, W)."""

    _function = "adaptive_max_pool2d"


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Maxima of as many windows as the output is to have, of (N, C, D, H, W) or (C, D, H, W)."""

    _function = "adaptive_max_pool3d"


class _AdaptiveAvgPoolNd(_Pool):
    _shown = ("output_size",)

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(input, self.output_size)


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Means of as many windows as the output is to have, of (N, C, L) or (C, L)."""

    _function = "adaptive_avg_pool1d"


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Means of as many windows as the output is to have, of (N, C, H, W) or (C, H, W)."""

    _function = "adaptive_avg_pool2d"


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Means of as many windows as the output is to have, of (N, C, D, H, W) or (C, D, H, W)."""

    _function = "adaptive_avg_pool3d"


own_init(AvgPool2d, AvgPool3d, FractionalMaxPool2d, MaxUnpool1d, MaxUnpool2d, MaxUnpool3d)
