"""Convolution layers and their transposes, in one, two and three dimensions, and the lazy ones.

Owns their arguments, parameters and printed form; the convolution is in nn.functional. A class says its dimension by `_function`.
"""

from __future__ import annotations

import math
from typing import Any

from ...tensor import Tensor
from .. import functional as F
from .. import init
from ..parameter import UninitializedParameter
from .layer import new_parameter, ntuple, own_init
from .lazy import LazyModuleMixin
from .module import Module

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
]

_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """What convolutions of all dimensions share."""

    _function: str
    bias: Tensor | None

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: tuple[int, ...],
        stride: tuple[int, ...], padding: Any, dilation: tuple[int, ...], transposed: bool,
        output_padding: tuple[int, ...], groups: int, bias: bool, padding_mode: str,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        _check_arguments(in_channels, out_channels, stride, padding, groups, padding_mode)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.dilation, self.transposed, self.output_padding = dilation, transposed, output_padding
        self.groups, self.padding_mode = groups, padding_mode
        self._reversed_padding_repeated_twice = self._sides()
        self.weight = new_parameter(self._weight_shape(), device, dtype)
        if bias:
            self.bias = new_parameter((out_channels,), device, dtype)
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _weight_shape(self) -> tuple[int, ...]:
        channels = (self.out_channels, self.in_channels)
        first, second = channels[::-1] if self.transposed else channels
        return (first, second // self.groups, *self.kernel_size)

    def _sides(self) -> list[int]:
        """Return the padding as `F.pad` takes it: before and after, last dimension first."""
        sides: list[int] = []
        for i in reversed(range(min(len(self.dilation), len(self.kernel_size)))):
            if not isinstance(self.padding, str):
                before = after = self.padding[i]
            else:
                total = self.dilation[i] * (self.kernel_size[i] - 1) * (self.padding == "same")
                before, after = total // 2, total - total // 2
            sides += [before, after]
        return sides

    def reset_parameters(self) -> None:
        """Draw weight and bias from U(-b, b) with b = 1 / sqrt(fan_in)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            init.uniform_within(self.bias, init.fans(self.weight)[0])

    def extra_repr(self) -> str:
        shown = [
            str(self.in_channels),
            str(self.out_channels),
            f"kernel_size={self.kernel_size}",
            f"stride={self.stride}",
        ]
        for name, default in (("padding", 0), ("dilation", 1), ("output_padding", 0)):
            value = getattr(self, name)
            if value != (default,) * len(value):
                shown.append(f"{name}={value}")
        if self.groups != 1:
            shown.append(f"groups={self.groups}")
        if self.bias is None:
            shown.append("bias=False")
        if self.padding_mode != "zeros":
            shown.append(f"padding_mode={self.padding_mode}")
        return ", ".join(shown)


def _check_arguments(
    in_channels: int, out_channels: int, stride: Any, padding: Any, groups: int, mode: str
) -> None:
    if groups <= 0:
        raise ValueError("groups must be a positive integer")
    if in_channels % groups != 0:
        raise ValueError("in_channels must be divisible by groups")
    if out_channels % groups != 0:
        raise ValueError("out_channels must be divisible by groups")
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise ValueError(
                f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}"
            )
        if padding == "same" and any(s != 1 for s in stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
    if mode not in _MODES:
        names = ", ".join(repr(m) for m in _MODES)
        raise ValueError(f"padding_mode must be one of {{{names}}}, but got padding_mode='{mode}'")


class _Conv(_ConvNd):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
        padding: Any = 0, dilation: Any = 1, groups: int = 1, bias: bool = True,
        padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        n = _rank(self)
        super().__init__(
            in_channels,
            out_channels,
            ntuple(kernel_size, n),
            ntuple(stride, n),
            padding if isinstance(padding, str) else ntuple(padding, n),
            ntuple(dilation, n),
            False,
            (0,) * n,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = (0,) * len(self.kernel_size)
        convolve = getattr(F, self._function)
        return convolve(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class _ConvTransposeNd(_ConvNd):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
        padding: Any = 0, output_padding: Any = 0, groups: int = 1, bias: bool = True,
        dilation: Any = 1, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        n = _rank(self)
        super().__init__(
            in_channels,
            out_channels,
            ntuple(kernel_size, n),
            ntuple(stride, n),
            ntuple(padding, n),
            ntuple(dilation, n),
            True,
            ntuple(output_padding, n),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _output_padding(self, input: Tensor, output_size: Any) -> tuple[int, ...]:
        """Return the padding that makes the output as large as asked for; ValueError if none does."""
        if output_size is None:
            return self.output_padding
        n = len(self.kernel_size)
        lead = 2 if input.dim() == n + 2 else 1
        wanted = list(output_size)
        if len(wanted) == lead + n:
            wanted = wanted[lead:]
        if len(wanted) != n:
            raise ValueError(
                f"ConvTranspose{n}D: for {input.dim()}D input, output_size must have {n} or {lead + n} elements (got {len(wanted)})"
            )
        least = [
            (input.size(d + lead) - 1) * self.stride[d] - 2 * self.padding[d] + self.dilation[d] * (self.kernel_size[d] - 1) + 1
            for d in range(n)
        ]  # fmt: skip
        most = [low + s - 1 for low, s in zip(least, self.stride)]
        if any(not low <= w <= high for low, w, high in zip(least, wanted, most)):
            raise ValueError(
                f"requested an output size of {output_size[-n:]}, but valid sizes range from {least} to {most} (for an input of "
                f"{input.size()[2:]})"
            )
        return tuple(w - low for w, low in zip(wanted, least))

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        if self.padding_mode != "zeros":
            raise ValueError(
                f"Only `zeros` padding mode is supported for ConvTranspose{len(self.kernel_size)}d"
            )
        convolve = getattr(F, self._function)
        extra = self._output_padding(input, output_size)
        return convolve(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            extra,
            self.groups,
            self.dilation,
        )


def _rank(module: Any) -> int:
    return int(module._function[-2])


class Conv1d(_Conv):
    """Convolve (N, C, L) or (C, L) with a learnt kernel."""

    _function = "conv1d"


class Conv2d(_Conv):
    """Convolve (N, C, H, W) or (C, H, W) with a learnt kernel."""

    _function = "conv2d"


class Conv3d(_Conv):
    """Convolve (N, C, D, H, W) or (C, D, H, W) with a learnt kernel."""

    _function = "conv3d"


class ConvTranspose1d(_ConvTransposeNd):
    """The transpose of `Conv1d` as a linear map: (N, C, L) or (C, L) to longer ones."""

    _function = "conv_transpose1d"


class ConvTranspose2d(_ConvTransposeNd):
    """The transpose of `Conv2d` as a linear map: (N, C, H, W) or (C, H, W) to larger ones."""

    _function = "conv_transpose2d"


class ConvTranspose3d(_ConvTransposeNd):
    """The transpose of `Conv3d` as a linear map: (N, C, D, H, W) or (C, D, H, W) to larger ones."""

    _function = "conv_transpose3d"


class _LazyConvXdMixin(LazyModuleMixin):
    """A convolution that takes its number of input channels from its first input."""

    def reset_parameters(self: Any) -> None:
        """Initialise the parameters if they have a shape."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()  # type: ignore[misc]

    def _wait(self: Any, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def initialize_parameters(self: Any, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Take the number of channels from the input."""
        if not self.has_uninitialized_params():
            return
        n = _rank(self)
        if input.dim() not in (n + 1, n + 2):
            raise RuntimeError(
                f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {type(self).__name__}, but got input of size: {input.shape}"
            )
        self.in_channels = input.shape[-n - 1]
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        self.weight.materialize(self._weight_shape())
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()


class _LazyConv(_LazyConvXdMixin):
    def __init__(
        self, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros",
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype
        )
        self._wait(out_channels, bias, device, dtype)


class _LazyConvTranspose(_LazyConvXdMixin):
    def __init__(
        self, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, groups: int = 1, bias: bool = True, dilation: Any = 1,
        padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            0,
            0,
            kernel_size,
            stride,
            padding,
            output_padding,
            groups,
            False,
            dilation,
            padding_mode,
            device,
            dtype,
        )
        self._wait(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConv, Conv1d):
    """`Conv1d` that takes in_channels from its first input."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """`Conv2d` that takes in_channels from its first input."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """`Conv3d` that takes in_channels from its first input."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """`ConvTranspose1d` that takes in_channels from its first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """`ConvTranspose2d` that takes in_channels from its first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """`ConvTranspose3d` that takes in_channels from its first input."""

    cls_to_become = ConvTranspose3d


own_init(
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    LazyConv1d,
    LazyConv2d,
    LazyConv3d,
    LazyConvTranspose1d,
    LazyConvTranspose2d,
    LazyConvTranspose3d,
)
