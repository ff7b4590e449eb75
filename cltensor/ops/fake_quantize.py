"""Numbers as a quantised type would hold them, in their own dtype: `fake_quantize_per_tensor_affine` and `_per_channel_affine`.

Chains of pointwise ops, which fuse; the gradient passes straight through where nothing was clipped. Knows no quantised tensors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtypes
from ..autograd import record as graph
from ..autograd.mode import unrecorded
from .core import Tensor, is_tensor
from .refusals import need_float
from .row import public
from .selection import where


def _check_range(quant_min: int, quant_max: int) -> None:
    if quant_min > quant_max:
        raise RuntimeError("`quant_min` should be less than or         equal to `quant_max`.")


def _faked(
    name: str, input: Tensor, scale: Any, inverse: Any, zero_point: Any, low: int, high: int
) -> Tensor:
    """Round to the nearest step; `scale` and `zero_point` are numbers, or tensors that broadcast."""
    with unrecorded():
        x = input.detach()
        wide = x if x.dtype.itemsize > 2 else x.float()  # torch does no step in 16-bit floats
        steps = wide * inverse
        if is_tensor(zero_point) and zero_point.dtype.is_floating_point:
            q = (steps + zero_point).round()
        else:
            q = steps.round() + zero_point
        kept = (q >= low) & (q <= high)
        # NaN has no integer, and counts as below the range.
        clipped = where(q >= low, q.clamp_max(high), low)
        level = clipped - zero_point
        if not is_tensor(scale):  # torch's last step is in float32 here, for float64, too
            level = level.float()
        value = (level * scale).to(x.dtype)
    graph.record(name, (input,), value, _passed, {"mask": kept})
    return value


def _passed(ctx: Any, g: Tensor) -> Tensor:
    return where(ctx.mask, g, 0)


def _single(argument: str, value: Any) -> Any:
    if not is_tensor(value):
        return value
    graph.refuse_gradient(
        "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams", **{argument: value}
    )
    return value.item()


@public(method=False)
def fake_quantize_per_tensor_affine(
    input: Tensor, scale: Any, zero_point: Any, quant_min: int, quant_max: int
) -> Tensor:
    """Round to multiples of `scale`, clipped to factors from quant_min - zero_point to quant_max - zero_point.

    The gradient is that of the identity where nothing was clipped. scale, zero_point: numbers, or tensors of one element.
    """
    kind = "TensorQparams" if is_tensor(scale) else ""
    size, zero = _single("scale", scale), _single("zero_point", zero_point)
    _check_range(quant_min, quant_max)
    if not quant_min <= zero <= quant_max and not kind:
        raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")
    need_float("fake_quantize_tensor_cachemask_kernel_type_handling", input.dtype)
    step = np.float32(size)
    with np.errstate(divide="ignore"):
        inverse = np.float32(1) / step
    name = f"FakeQuantizePerTensorAffineCachemask{kind}Backward0"
    return _faked(name, input, float(step), float(inverse), int(zero), quant_min, quant_max)


@public(method=False)
def fake_quantize_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    """As `fake_quantize_per_tensor_affine`, with a scale and a zero point for each index of the dim `axis`."""
    graph.refuse_gradient(
        "fake_quantize_per_channel_affine_cachemask", scale=scale, zero_point=zero_point
    )
    if scale.dtype not in (dtypes.float32, dtypes.bfloat16):
        raise RuntimeError(f"Scale must be Float or BFloat16, found {scale.dtype.scalar_name}")
    if zero_point.dtype not in (dtypes.int32, dtypes.float32, dtypes.float16):
        raise RuntimeError(
            f"Zero-point must be Int32, Float or Half, found {zero_point.dtype.scalar_name}"
        )
    if scale.ndim != 1:
        raise RuntimeError("scale should be a 1-D tensor")
    if zero_point.ndim != 1:
        raise RuntimeError("zero point should be a 1-D tensor")
    if scale.numel() != zero_point.numel():
        raise RuntimeError("scale and zero-point need to have the same dimensions")
    if axis >= input.ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-input.ndim}, {input.ndim - 1}], but got {axis})"
        )
    if scale.numel() != input.shape[axis]:
        raise RuntimeError(
            "dimensions of scale and zero-point are not consistent with input tensor"
        )
    _check_range(quant_min, quant_max)
    whole = zero_point.dtype is dtypes.int32
    if whole and bool(((zero_point < quant_min) | (zero_point > quant_max)).any()):
        raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")
    if axis < 0:
        raise RuntimeError("`axis` must be between 0 and number of dimensions of input")
    need_float("fake_quantize_channel_cachemask_cpu_type_handling", input.dtype)
    shape = [1] * input.ndim
    shape[axis] = -1
    with unrecorded():
        step, zero = scale.detach().float().reshape(shape), zero_point.detach().reshape(shape)
        inverse = 1.0 / step
    name = "FakeQuantizePerChannelAffineCachemaskBackward0"
    return _faked(name, input, step, inverse, zero, quant_min, quant_max)
