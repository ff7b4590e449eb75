"""`cltensor.nn.grad`: the gradients of convolutions as functions of their own, for those who write a backward by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..ops.nn.convolution import gradient
from ..ops.nn.correlation import Spec
from ..tensor import Tensor

__all__ = [
    "conv1d_input",
    "conv1d_weight",
    "conv2d_input",
    "conv2d_weight",
    "conv3d_input",
    "conv3d_weight",
]


def _make(dims: int) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    def spec(stride: Any, padding: Any, dilation: Any, groups: int) -> Spec:
        each = [(a,) if isinstance(a, int) else tuple(a) for a in (stride, padding, dilation)]
        return Spec(each[0], each[1], each[2], groups)

    def conv_input(
        input_size: Sequence[int], weight: Tensor, grad_output: Tensor,
        stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
    ) -> Tensor:  # fmt: skip
        moves = spec(stride, padding, dilation, groups)
        return gradient("x", grad_output.new_empty(1).expand(input_size), weight, grad_output, moves)  # fmt: skip

    def conv_weight(
        input: Tensor, weight_size: Sequence[int], grad_output: Tensor,
        stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
    ) -> Tensor:  # fmt: skip
        moves = spec(stride, padding, dilation, groups)
        return gradient("w", input, grad_output.new_empty(1).expand(weight_size), grad_output, moves)  # fmt: skip

    for fn, of in ((conv_input, "input"), (conv_weight, "weight")):
        fn.__name__ = fn.__qualname__ = f"conv{dims}d_{of}"
        fn.__doc__ = f"Return the gradient of `conv{dims}d` by its {of}, which has `{of}_size`, given that by its result."
    return conv_input, conv_weight


conv1d_input, conv1d_weight = _make(1)
conv2d_input, conv2d_weight = _make(2)
conv3d_input, conv3d_weight = _make(3)
