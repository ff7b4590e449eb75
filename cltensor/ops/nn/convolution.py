"""Convolutions under torch's names: arguments, torch's errors, sizes of results.

What is computed, and the gradients, are in correlation.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import dtypes
from ...autograd import record as graph
from ...autograd.hooks import type_string
from ...autograd.mode import unrecorded
from ...errors import warn_once
from ...symbols import remembered
from ..arguments import invalid_combination
from ..core import Tensor, is_tensor
from ..operands import check_tensor, same_device
from ..row import public
from .correlation import Spec, piece

_NODE = "ConvolutionBackward0"

# ------------------------------------------------------------------------------------------- arguments


def _ints(function: str, values: tuple, value: Any, dims: int) -> tuple[int, ...]:
    """Accept an int for all spatial dims or a sequence; TypeError names the function."""
    if hasattr(value, "__index__") and not isinstance(value, bool):
        return (value.__index__(),) * dims
    if not isinstance(value, tuple | list):
        raise invalid_combination(function, values)
    out = []
    for v in value:
        if not hasattr(v, "__index__") or isinstance(v, bool):
            raise invalid_combination(function, values)
        out.append(v.__index__())
    return tuple(out) * dims if len(out) == 1 else tuple(out)


def _fit(name: str, value: tuple[int, ...], dims: int) -> tuple[int, ...]:
    if len(value) == dims:
        return value
    if len(value) == 1:
        return value * dims
    raise RuntimeError(
        f"expected {name} to be a single integer value or a list of {dims} values to match the convolution dimensions, but got {name}={list(value)}"
    )


def _batched(function: str, x: Tensor, dims: int) -> tuple[Tensor, bool]:
    """Add the batch dim where it is missing."""
    if x.ndim not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"Expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input to {function}, but got input of size: {list(x.shape)}"
        )
    return (x, True) if x.ndim == dims + 2 else (x.unsqueeze(0), False)


def _check_dtypes(x: Tensor, w: Tensor, bool_kernel: str) -> None:
    if x.dtype is dtypes.bool:
        raise NotImplementedError(f"\"{bool_kernel}\" not implemented for 'Bool'")
    if x.dtype is not w.dtype:
        if x.dtype in (dtypes.float32, dtypes.bfloat16, dtypes.float16) or x.dtype.is_complex:
            rest = "" if x.dtype.is_complex else " or input should be a MKLDNN tensor and weight is a dense tensor"  # fmt: skip
            raise RuntimeError(
                f"Input type ({type_string(x)}) and weight type ({type_string(w)}) should be the same{rest}"
            )
        raise RuntimeError(
            f"expected scalar type {x.dtype.scalar_name} but found {w.dtype.scalar_name}"
        )


_DILATION = "dilation should be greater than zero"


def _check_moves(spec: Spec, output_padding: tuple[int, ...]) -> None:
    for values, least, text in (
        (spec.padding, 0, "negative padding"),
        (output_padding, 0, "negative output_padding"),
        (spec.stride, 1, "non-positive stride"),
    ):
        if any(v < least for v in values):
            raise RuntimeError(f"{text} is not supported")
    if min(spec.dilation) < 0:
        raise RuntimeError(_DILATION)


@remembered(1024)
def _fitted(
    spec: Spec, dims: int, output_padding: tuple[int, ...] = (0,)
) -> tuple[Spec, tuple[int, ...]]:
    """Return spec and output padding with a number per spatial dim; RuntimeError for numbers out of range."""
    _check_groups(spec.groups)
    spec = Spec(
        _fit("stride", spec.stride, dims),
        _fit("padding", spec.padding, dims),
        _fit("dilation", spec.dilation, dims),
        spec.groups,
    )
    extra = _fit("output_padding", output_padding, dims)
    _check_moves(spec, extra)
    return spec, extra


def _check_groups(groups: int) -> None:
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")


def _by(sizes: Sequence[int]) -> str:
    return " x ".join(map(str, sizes))


Shape = tuple[int, ...]


def _check_ndim(x: Shape, w: Shape, gap: str = " ") -> None:
    if len(x) != len(w):
        raise RuntimeError(
            f"Expected {len(w)}-dimensional input for {len(w)}-dimensional weight{gap}{list(w)}, but got {len(x)}-dimensional input of size {list(x)} instead"
        )


def _check_shapes(
    x: Shape, w: Shape, bias: Shape | None, spec: Spec, transposed: bool, wide: Sequence[int]
) -> None:
    """Raise torch's errors for operands whose shapes do not fit; `wide` is the padded size of the input."""
    groups, weight, shape = spec.groups, list(w), list(x)
    _check_ndim(x, w)
    if weight[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size {weight} instead"
        )
    if weight[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of size [{weight}] instead"
        )
    wanted, makes = weight[1] * groups, weight[0]
    given = f"groups={groups}"
    if transposed:
        wanted, makes, given = makes, wanted, f"transposed={int(transposed)}"
    if shape[1] != wanted:
        raise RuntimeError(
            f"Given {given}, weight of size {weight}, expected input{shape} to have {wanted} channels, but got {shape[1]} channels instead"
        )
    if bias is not None and bias != (makes,):
        given = f"{given}, weight" if transposed else "weight"
        raise RuntimeError(
            f"Given {given} of size {weight}, expected bias to be 1-dimensional with {makes} elements, but got bias of size {list(bias)} instead"
        )
    reach = [d * (k - 1) + 1 for d, k in zip(spec.dilation, weight[2:], strict=True)]
    if not transposed and any(a < b for a, b in zip(wide, reach, strict=True)):
        raise RuntimeError(
            f"Calculated padded input size per channel: ({_by(wide)}). Kernel size: ({_by(reach)}). Kernel size can't be greater than actual input size"
        )
    if not all(spec.dilation):
        raise RuntimeError(f"{_DILATION}, but got {list(spec.dilation)}")


def _check_extent(x: Tensor, w: Tensor) -> None:
    if not all(x.shape[2:]):
        raise RuntimeError(
            f"Only zero batch or zero channel inputs are supported, but got input shape: {list(x.shape)}"
        )
    if not all(w.shape[2:]):
        raise RuntimeError(
            f"kernel size should be greater than zero, but got kernel size ({_by(w.shape[2:])})"
        )


def _check_output_padding(extra: tuple[int, ...], spec: Spec) -> None:
    if all(e < s or e < d for e, s, d in zip(extra, spec.stride, spec.dilation, strict=True)):
        return

    def listed(name: str, values: tuple[int, ...], fill: int) -> str:
        values = (fill,) * (2 - len(values)) + values
        names = ("depth", "height", "width")[-len(values) :]
        return " ".join(f"{name}_{n}: {v}" for n, v in zip(names, values, strict=True))

    raise RuntimeError(
        "output padding must be smaller than either stride or dilation, but got "
        + " ".join(
            (
                listed("output_padding", extra, 0),
                listed("stride", spec.stride, 1),
                listed("dilation", spec.dilation, 1),
            )
        )
    )


# ------------------------------------------------------------------------------------------- any number of dims


def _sizes(wide: Sequence[int], w: Shape, spec: Spec) -> tuple[int, ...]:
    """Return the spatial sizes of a convolution over padded sizes `wide`."""
    moves = zip(wide, w[2:], spec.stride, spec.dilation, strict=True)
    return tuple((n - d * (k - 1) - 1) // s + 1 for n, k, s, d in moves)


@remembered(1024)
def _planned(
    x: Shape,
    w: Shape,
    bias: Shape | None,
    spec: Spec,
    transposed: bool,
    output_padding: tuple[int, ...],
    right: tuple[int, ...] | None,
) -> tuple[Spec, tuple[int, ...], tuple[int, ...]]:
    """Return the spec and the output padding with a number per spatial dim, and the padded sizes of the input.

    Raises torch's errors for shapes that do not fit.
    """
    if len(w) < 3:
        raise RuntimeError("weight should have at least three dimensions")
    dims = len(w) - 2
    spec, extra = _fitted(spec, dims, output_padding)
    padded = zip(spec.padding, right or spec.padding, strict=True)
    wide = tuple([n + a + b for n, (a, b) in zip(x[2:], padded, strict=len(x) == len(w))])
    _check_shapes(x, w, bias, spec, transposed, wide)
    return spec, extra, wide


def _convolve(
    x: Tensor,
    w: Tensor,
    bias: Tensor | None,
    spec: Spec,
    transposed: bool = False,
    output_padding: tuple[int, ...] = (0,),
    right: tuple[int, ...] | None = None,
) -> Tensor:
    """Convolve batched input; `right` is the padding at the end where it differs from that at the start."""
    shapes = tuple(x.shape), tuple(w.shape), None if bias is None else tuple(bias.shape)
    spec, extra, wide = _planned(*shapes, spec, transposed, output_padding, right)
    _check_dtypes(x, w, _bool_kernel(len(wide), transposed))
    same_device(x, w, *(() if bias is None else (bias,)))
    _check_extent(x, w)
    if not x.shape[1]:
        # As in torch, an input without channels gives a result without channels.
        w, bias = w[:0], None if bias is None else bias[:0]
    shown = {
        "stride": spec.stride,
        "padding": spec.padding,
        "dilation": spec.dilation,
        "transposed": transposed,
        "output_padding": extra,
        "groups": spec.groups,
        "bias_sym_sizes_opt": None if bias is None else tuple(bias.shape),
    }
    if not transposed:
        return piece("y", x, w, spec, _sizes(wide, shapes[1], spec), _NODE, bias, shown)
    _check_output_padding(extra, spec)
    size = tuple((n - 1) * s - 2 * p + d * (k - 1) + e + 1 for n, s, p, d, k, e in zip(x.shape[2:], *spec[:3], w.shape[2:], extra, strict=True))  # fmt: skip
    if any(n < 0 for n in size):
        raise RuntimeError(
            f"Given input size per channel: ({_by(x.shape[2:])}). Calculated output size per channel: ({_by(size)}). Output size is too small"
        )
    return piece("x", x, w, spec, size, _NODE, bias, shown)


def gradient(kind: str, x: Tensor, w: Tensor, g: Tensor, spec: Spec) -> Tensor:
    """Return the gradient of conv(x, w) for the operand `kind`, "x" or "w", from the result's gradient `g`.

    Only the shape of that operand is read. RuntimeError for shapes that do not fit together.
    """
    dims, whole, filters = w.ndim - 2, tuple(x.shape), tuple(w.shape)
    spec, _ = _fitted(spec, dims)
    wide = [n + 2 * p for n, p in zip(whole[2:], spec.padding, strict=False)]
    _check_shapes(whole, filters, None, spec, False, wide)
    expected = (whole[0], filters[0], *_sizes(wide, filters, spec))
    sizes = (*g.shape, *(None for _ in range(x.ndim - g.ndim)))
    for i, (want, got) in enumerate(zip(expected, sizes, strict=False)):
        if want != got:
            raise RuntimeError(
                f"Expected a tensor of dimension {x.ndim} and tensor.size[{i}] == {want} but got: dimension {g.ndim} and tensor.size[{i}] = {got}"
            )
    _check_dtypes(g, w if kind == "x" else x, _bool_kernel(dims, False))
    same_device(x, w, g)
    if kind == "x":
        return piece("x", g, w, spec, tuple(x.shape[2:]))
    return piece("w", g, x, spec, tuple(w.shape[2:]))


def _bool_kernel(dims: int, transposed: bool) -> str:
    if transposed:
        return f"slow_conv_transpose{max(dims, 2)}d_out_cpu"
    return "compute_columns3d" if dims == 3 else "slow_conv2d_cpu"


@public(method=False)
def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    """Convolve [N, C, *S] with any number of spatial dims up to 3; every amount is a sequence."""
    check_tensor("convolution", "input", 1, input)
    check_tensor("convolution", "weight", 2, weight)
    amounts = []
    for position, name, value in (
        (4, "stride", stride),
        (5, "padding", padding),
        (6, "dilation", dilation),
        (8, "output_padding", output_padding),
    ):
        if not isinstance(value, tuple | list):
            raise TypeError(
                f"convolution(): argument '{name}' (position {position}) must be tuple of ints, not {type(value).__name__}"
            )
        amounts.append(tuple(value))
    spec = Spec(amounts[0], amounts[1], amounts[2], groups)
    return _convolve(input, weight, bias, spec, bool(transposed), amounts[3])


def _sides(
    padding: str, weight: Tensor, stride: tuple[int, ...], dilation: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the padding before and after each dim for "valid" or "same"; of an odd total the larger half comes after."""
    dims = weight.ndim - 2
    if padding == "valid":
        return (0,) * dims, (0,) * dims
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    if any(s != 1 for s in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    if any(d < 0 for d in dilation):
        raise RuntimeError(_DILATION)
    total = [d * (k - 1) for d, k in zip(_fit("dilation", dilation, dims), weight.shape[2:])]
    if any(t % 2 for t in total):
        warn_once(
            "Using padding='same' with even kernel lengths and odd dilation may require a zero-padded copy of the input be created"
        )
    return tuple(t // 2 for t in total), tuple(t - t // 2 for t in total)


def _conv(
    dims: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: Any,
) -> Tensor:
    function, given = f"conv{dims}d", (input, weight, bias, stride, padding, dilation, groups)
    groups = _groups(function, input, weight, bias, groups, given)
    stride, dilation = (_ints(function, given, v, dims) for v in (stride, dilation))
    x, batched = _batched(function, input, dims)
    if bias is not None and bias.dtype is not input.dtype:
        raise RuntimeError(
            f"Input type ({dtypes.C_NAMES[input.dtype.name]}) and bias type ({dtypes.C_NAMES[bias.dtype.name]}) should be the same"
        )
    if weight.ndim < 3:
        raise RuntimeError("weight should have at least three dimensions")
    right = None
    if isinstance(padding, str):
        _check_groups(groups)
        if padding == "same":
            _check_ndim(tuple(x.shape), tuple(weight.shape), "")
        padding, right = _sides(padding, weight, stride, dilation)
    else:
        padding = _ints(function, given, padding, dims)
    out = _convolve(x, weight, bias, Spec(stride, padding, dilation, groups), right=right)
    return out if batched else out.squeeze(0)


def _groups(function: str, input: Any, weight: Any, bias: Any, groups: Any, given: tuple) -> int:
    """Return the number of groups as an int; torch's TypeError for arguments of the wrong kind."""
    tensors = is_tensor(input) and is_tensor(weight) and (bias is None or is_tensor(bias))
    if not tensors or not hasattr(groups, "__index__"):
        raise invalid_combination(function, given)
    return groups if groups.__class__ is int else groups.__index__()


@public(method=False)
def conv1d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """Slide [O, C/groups, K] over input [N, C, L] or [C, L]: [N, O, (L + 2 * padding - dilation * (K - 1) - 1) // stride + 1].

    Padding is a number of zeros, "valid" (none) or "same" (the result has the input's length). RuntimeError in torch's
    words for sizes, amounts and dtypes that do not fit.
    """
    return _conv(1, input, weight, bias, stride, padding, dilation, groups)


@public(method=False)
def conv2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """Slide [O, C/groups, KH, KW] over input [N, C, H, W] or [C, H, W]; sizes as in `conv1d`, amounts for both dims or each.

    Where the gradient by a 3 x 3 float32 weight would be infinite, it may be nan on a CPU.
    """
    return _conv(2, input, weight, bias, stride, padding, dilation, groups)


@public(method=False)
def conv3d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """Slide [O, C/groups, KD, KH, KW] over input [N, C, D, H, W] or [C, D, H, W]; else as `conv2d`."""
    return _conv(3, input, weight, bias, stride, padding, dilation, groups)


def _conv_transpose(
    dims: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: Any,
    dilation: Any,
) -> Tensor:
    function = f"conv_transpose{dims}d"
    given = (input, weight, bias, stride, padding, output_padding, groups, dilation)
    groups = _groups(function, input, weight, bias, groups, given)
    amounts = [_ints(function, given, v, dims) for v in (stride, padding, output_padding, dilation)]
    x, batched = _batched(function, input, dims)
    if bias is not None and bias.dtype is not input.dtype:
        bias = bias.to(input.dtype)
    spec = Spec(amounts[0], amounts[1], amounts[3], groups)
    out = _convolve(x, weight, bias, spec, True, amounts[2])
    return out if batched else out.squeeze(0)


@public(method=False)
def conv_transpose1d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: int = 1,
    dilation: Any = 1,
) -> Tensor:  # fmt: skip
    """Map [N, C, L] by weight [C, O/groups, K] as the gradient of `conv1d` maps its output back to its input.

    The result has length (L - 1) * stride - 2 * padding + dilation * (K - 1) + output_padding + 1.
    """
    return _conv_transpose(
        1, input, weight, bias, stride, padding, output_padding, groups, dilation
    )


@public(method=False)
def conv_transpose2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: int = 1,
    dilation: Any = 1,
) -> Tensor:  # fmt: skip
    """Map [N, C, H, W] by weight [C, O/groups, KH, KW] as the gradient of `conv2d` does."""
    return _conv_transpose(
        2, input, weight, bias, stride, padding, output_padding, groups, dilation
    )


@public(method=False)
def conv_transpose3d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: int = 1,
    dilation: Any = 1,
) -> Tensor:  # fmt: skip
    """Map [N, C, D, H, W] by weight [C, O/groups, KD, KH, KW] as the gradient of `conv3d` does."""
    return _conv_transpose(
        3, input, weight, bias, stride, padding, output_padding, groups, dilation
    )


# ------------------------------------------------------------------------------------------- time, batch, channel


@public(method=False)
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Slide [K, C, O] over the time of input [T, B, C]: [T + 2 * pad - K + 1, B, O]; bias [O]."""
    for position, (name, x) in enumerate((("input", input), ("weight", weight), ("bias", bias))):
        check_tensor("conv_tbc", name, position + 1, x)
    if input.ndim != 3:
        raise RuntimeError("Input must have 3 dims: time, batch, in_channel")
    if weight.ndim != 3:
        raise RuntimeError("Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.")  # fmt: skip
    if bias.ndim != 1:
        raise RuntimeError("Bias must be 1-D")
    if input.shape[2] != weight.shape[1]:
        raise RuntimeError("Input dim 2 (input channels) is not == dim 1 in the weight tensor")
    if bias.shape[0] != weight.shape[2]:
        raise RuntimeError("Bias size must equal dim 2 in the weight tensor (output channels).")
    if input.dtype is not weight.dtype:
        raise RuntimeError(
            f"self and mat2 must have the same dtype, but got {input.dtype.scalar_name} and {weight.dtype.scalar_name}"
        )
    spec, length = Spec((1,), (pad,), (1,), 1), input.shape[0] + 2 * pad - weight.shape[0] + 1
    if length < 0:
        shape = [length, input.shape[1], weight.shape[2]]
        raise RuntimeError(f"Trying to create tensor with negative dimension {length}: {shape}")
    with unrecorded():
        value = piece("y", input.permute(1, 2, 0), weight.permute(2, 1, 0), spec, (length,), bias=bias)  # fmt: skip
        value = value.permute(2, 0, 1).contiguous()
    if graph.needs_grad(input, weight, bias):
        saved = {"self": input, "weight": weight, "bias": bias, "pad": pad}
        graph.record("ConvTbcBackward0", (input, weight, bias), value, _tbc_back, saved)
    return value


def _tbc_back(ctx: Any, g: Tensor) -> tuple:
    x, w, y = ctx.self.permute(1, 2, 0), ctx.weight.permute(2, 1, 0), g.permute(1, 2, 0)
    spec = Spec((1,), (ctx.pad,), (1,), 1)
    by_x = by_w = by_bias = None
    if ctx.needs[0]:
        by_x = piece("x", y, w, spec, (x.shape[2],)).permute(2, 0, 1)
    if ctx.needs[1]:
        by_w = piece("w", y, x, spec, (w.shape[2],)).permute(2, 1, 0)
    if ctx.needs[2]:
        by_bias = g.sum((0, 1))
    return by_x, by_w, by_bias
