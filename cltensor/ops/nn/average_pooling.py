"""Average pooling over regular and adaptive windows, and the power averages made of it."""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ...layouts import numel
from .. import formats, writes
from ..core import Tensor
from ..dims import check_flag
from ..operands import check_tensor
from ..refusals import need_float
from ..row import FUNCTIONS, public
from .max_pooling import check_adaptive, max_pool1d, max_pool2d, max_pool3d
from .pooling import (
    HOW_MANY,
    adaptive,
    average,
    by_rows,
    check_planes,
    counts,
    each_or_all,
    filled,
    need_dtype,
    need_rank,
    regular,
    repeated,
)

# ------------------------------------------------------------------------------------------- regular windows


def _check_planes(x: Tensor, kernel: tuple[int, ...]) -> None:
    check_planes("avg_pool3d()", x, len(kernel))
    if len(kernel) == 2:
        return
    if any(n < k for n, k in zip(x.shape[-3:], kernel, strict=True)):
        (t, h, w), (kt, kh, kw) = x.shape[-3:], kernel
        raise RuntimeError(
            f"input image (T: {t} H: {h} W: {w}) smaller than kernel size (kT: {kt} kH: {kh} kW: {kw})"
        )


def _pool(
    rank: int, x: Tensor, kernel_size: Any, stride: Any, padding: Any, ceil_mode: Any, include: Any, divisor: int | None
) -> Tensor:  # fmt: skip
    function = f"avg_pool{rank}d"
    check_tensor(function, "input", 1, x)
    k = counts(function, "kernel_size", 2, kernel_size)
    s = () if stride is None else counts(function, "stride", 3, stride)
    p = counts(function, "padding", 4, padding)
    check_flag(function, "ceil_mode", ceil_mode)
    check_flag(function, "count_include_pad", include)
    must, many = "must either be" if rank == 2 else "must be", HOW_MANY[rank]
    k = repeated(k, rank, f"{function}: kernel_size {must} a single int, or a tuple of {many}")
    s = s and repeated(
        s, rank, f"{function}: stride {must} omitted, a single int, or a tuple of {many}"
    )
    p = repeated(p, rank, f"{function}: padding {must} a single int, or a tuple of {many}")
    if rank == 2:
        x.size(-3)
    elif x.ndim not in (4, 5):
        raise RuntimeError("non-empty 4D or 5D (batch mode) tensor expected for input")
    if divisor is not None and not divisor:
        raise RuntimeError("divisor must be not zero")
    window = regular(x, k, s or k, p, (1,) * rank, ceil_mode, lambda: _check_planes(x, k))
    need_dtype(
        x,
        "avg_pool2d" if rank == 2 else "avg_pool3d_out_frame",
        lambda dt: dt.category == 2 or dt is dtypes.int64,
    )
    window = window._replace(include_padding=include, divisor=divisor or 0)
    return average(f"AvgPool{rank}D", x, window)


def avg_pool2d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True,
    divisor_override: int | None = None, *, out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Average windows over (N, C, H, W) or (C, H, W); the divisor is the window's size, padding counted or not, or given."""
    value = _pool(
        2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )
    return writes.deliver(value, out, "avg_pool2d", (input,))


def avg_pool3d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True,
    divisor_override: int | None = None, *, out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Average windows over (N, C, D, H, W) or (C, D, H, W); the divisor is the window's size, padding counted or not, or given."""
    value = _pool(
        3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )
    return writes.deliver(value, out, "avg_pool3d", (input,))


@public(method=False)
def avg_pool1d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True
) -> Tensor:  # fmt: skip
    """Average windows over (N, C, L) or (C, L)."""
    check_tensor("avg_pool1d", "input", 1, input)
    sizes = [
        counts("avg_pool1d", "kernel_size", 2, kernel_size),
        () if stride is None else counts("avg_pool1d", "stride", 3, stride),
        counts("avg_pool1d", "padding", 4, padding),
    ]
    for name, v in zip(("kernel_size", "stride", "padding"), sizes, strict=True):
        if len(v) != 1 and (v or name != "stride"):
            raise RuntimeError(
                f"avg_pool1d() argument '{name}' should contain one int (got {len(v)})"
            )
    need_rank("avg_pool1d", input)
    k, s, p = sizes
    return by_rows(
        input,
        lambda x: avg_pool2d(x, (1, *k), (1, *(s or k)), (0, *p), ceil_mode, count_include_pad),
    )


# ------------------------------------------------------------------------------------------- adaptive windows


def _adaptive(rank: int, x: Tensor, output_size: Any) -> Tensor:
    function = f"adaptive_avg_pool{rank}d"
    check_tensor(function, "input", 1, x)
    out = counts(function, "output_size", 2, output_size)
    out = each_or_all(out, output_size, rank, f"{function}: output_size must be {rank}")
    if min(out) < 0:
        said = f"{out[0]}, {out[1]}" + (f",{out[2]}" if rank == 3 else "")
        raise RuntimeError(
            f"{function}: elements of output_size must be greater than or equal to 0 but received {{{said}}}"
        )
    if out == (1,) * rank and x.ndim > rank:
        means = x.mean(tuple(range(-rank, 0)), True)
        to = formats.images(x, means.shape) if rank == 2 else None
        # The strides of dims of size 1 are arbitrary: channels-last strides are another view of the same numbers.
        return means if to is None else means.as_strided(means.shape, to)
    check_adaptive(function, x, rank, "", -2 if rank == 2 else 1 - x.ndim)
    need_float(function + ("_cpu" if rank == 3 else ""), x.dtype)
    return average(f"AdaptiveAvgPool{rank}D", x, adaptive(x, out))


@public(method=False)
def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """Average `output_size` equal parts of the last dim of (N, C, L) or (C, L)."""
    check_tensor("adaptive_avg_pool1d", "input", 1, input)
    out = counts("adaptive_avg_pool1d", "output_size", 2, output_size)
    if len(out) != 1:
        raise RuntimeError(
            f"adaptive_avg_pool1d() argument 'output_size' should contain one int (got {len(out)})"
        )
    need_rank("adaptive_avg_pool1d", input)
    return by_rows(input, lambda x: _adaptive(2, x, (1, *out)))


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Average equal parts of the last two dims of (N, C, H, W) or (C, H, W); None keeps a size."""
    return _adaptive(2, input, filled(input, output_size))


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Average equal parts of the last three dims of (N, C, D, H, W) or (C, D, H, W); None keeps a size."""
    return _adaptive(3, input, filled(input, output_size))


# ------------------------------------------------------------------------------------------- power averages


def _power(
    rank: int, x: Tensor, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool
) -> Tensor:
    largest, mean = (
        (max_pool1d, avg_pool1d),
        (max_pool2d, avg_pool2d),
        (max_pool3d, avg_pool3d),
    )[rank - 1]
    if norm_type == float("inf"):
        return largest(x.abs(), kernel_size, stride, 0, 1, ceil_mode)
    if norm_type == -float("inf"):
        return -largest(-x.abs(), kernel_size, stride, 0, 1, ceil_mode)
    out = mean(x.pow(norm_type), kernel_size, stride, 0, ceil_mode)
    sides = counts(f"lp_pool{rank}d", "kernel_size", 3, kernel_size)
    size = numel(sides * rank if len(sides) == 1 else sides)
    return (out.sign() * FUNCTIONS["relu"](out.abs())).mul(size).pow(1.0 / norm_type)


def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """Take the p-th root of the sum of p-th powers of each window over (N, C, L) or (C, L)."""
    return _power(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """Take the p-th root of the sum of p-th powers of each window over (N, C, H, W) or (C, H, W)."""
    return _power(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """Take the p-th root of the sum of p-th powers of each window over (N, C, D, H, W) or (C, D, H, W)."""
    return _power(3, input, norm_type, kernel_size, stride, ceil_mode)
