"""Interpolation: images enlarged and shrunk, as one kernel over separable tables (codegen/resample/axes.py).

Interpolation is linear in the image, so its gradient is the transposed kernel, and the gradient's gradient the kernel
again. Owns the arguments, their errors and the choice of tables; mode "area" is adaptive average pooling.
"""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Sequence
from typing import Any

from ... import layouts
from ...autograd import record as graph
from ...codegen.conv.correlation import widens
from ...codegen.resample.axes import Axis, packs
from ...codegen.resample.axes import resample as kernel
from ...errors import caller_level
from ...memory_format import channels_last
from ...runtime import get_backend
from ...size import Size
from .. import core, formats
from ..core import Tensor
from ..refusals import no_kernel
from ..replay import Replayed
from . import average_pooling

# mode -> (spatial dims it is for, kind of axis, torch's name of the kernel that refuses a dtype)
_MODES = {
    "nearest": ((1, 2, 3), "nearest", "compute_indices_weights_nearest"),
    "nearest-exact": ((1, 2, 3), "exact", "compute_indices_weights_nearest"),
    "linear": ((1,), "linear", "compute_indices_weights_linear"),
    "bilinear": ((2,), "linear", "compute_indices_weights_linear"),
    "trilinear": ((3,), "linear", "compute_indices_weights_linear"),
    "bicubic": ((2,), "cubic", "compute_indices_weights_cubic"),
    "lanczos": ((2,), "lanczos", "compute_index_ranges_weights"),
}
_ANTIALIAS = ("bilinear", "bicubic", "lanczos")
_NO_CORNERS = ("nearest", "area", "nearest-exact")
_BYTES = ("nearest", "nearest-exact", "bilinear", "bicubic", "lanczos")


def _run(x: Tensor, axes: tuple[Axis, ...], turned: bool) -> Tensor:
    weighted = any(axis.taps > 1 for axis in axes)
    if widens(get_backend(x.device), x.dtype) and weighted:  # float32, as vectors and sums are
        return _run(x.float(), axes, turned).to(x.dtype)
    return formats.like_images(x, _resampled((x,), axes, turned)[0])


@Replayed.of_memory
def _resampled(xs: Sequence[Tensor], axes: tuple[Axis, ...], turned: bool) -> list[Tensor]:
    # Each size has lookup tables of its own in device memory, so a replay is kept for each value of `axes`.
    (x,) = xs
    backend = get_backend(x.device)
    whole = x.dtype.category == 2 or packs(backend, x.dtype, axes, x.shape[1])
    last = _channels_inward(x) if whole else None
    if last is not None:
        channels = last.shape[-1]
        x, axes = last, (*axes, Axis("nearest", channels, channels, 1.0))
    with backend.lock:
        out = core.result(kernel(backend, core.kernel_operand(x), axes, turned), x.device)
    return [out if last is None else _channels_outward(out)]


def _channels_inward(x: Tensor) -> Tensor | None:
    """View channels-last images as volumes (N, 1, H, W, C), whose rows are contiguous; None for other layouts."""
    if x.ndim != 4 or x._strides[1] != 1:
        return None
    if formats.suggested(x) is not channels_last:
        return None
    n, c, *sizes = x.shape
    by_n, _, *steps = x._strides
    return core.make(
        x._storage, Size((n, 1, *sizes, c)), x.dtype, x.device, (by_n, by_n, *steps, 1), x._offset
    )


def _channels_outward(x: Tensor) -> Tensor:
    """Return a dense volume (N, 1, H, W, C) as channels-last images (N, C, H, W)."""
    n, _, *sizes, c = x.shape
    shape = Size((n, c, *sizes))
    strides = layouts.channels_last_strides(tuple(shape))
    return core.make(x._storage, shape, x.dtype, x.device, strides)


def _apply(x: Tensor, axes: tuple[Axis, ...], turned: bool, node: str) -> Tensor:
    """Resample or, if `turned`, apply the transposed map, which is the gradient; each is the other's derivative."""
    out = _run(x.detach(), axes, turned)
    if graph.needs_grad(x):
        stem = node.replace("Backward", "").removesuffix("0")
        again = stem + ("Backward0" if turned else "BackwardBackward0")

        def backward(ctx: Any, g: Tensor) -> Tensor:
            return _apply(g, axes, not turned, again)

        graph.record(node, (x,), out, backward)
    return out


def _node(mode: str, dims: int, antialias: bool) -> str:
    stem = "".join(part.title() for part in mode.split("-"))
    return f"Upsample{stem}{dims}D{'Aa' if antialias else ''}Backward0"


def _list(sizes: Sequence[int]) -> str:
    return ", ".join(f"{n}: {s}" for n, s in zip("DHW"[-len(sizes) :], sizes, strict=True))


def _check(input: Tensor, size: Sequence[int], mode: str) -> None:
    """Raise torch's errors for sizes and dtypes."""
    spatial = input.shape[2:]
    if min(*spatial, *size) <= 0:
        joint = " and output " if len(size) == 1 else " output "
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input ({_list(spatial)}){joint}({_list(size)})"
        )
    if not math.prod(input.shape[1:]):
        raise RuntimeError(
            f"Non-empty {input.ndim}D data tensor expected but got a tensor with sizes {list(input.shape)}"
        )
    if input.dtype.category != 2 and not (input.dtype.name == "uint8" and mode in _BYTES):
        raise no_kernel(_MODES[mode][2], input.dtype)


def _axis(kind: str, ni: int, no: int, factor: float | None, aligned: bool, packed: bool) -> Axis:
    if aligned:
        scale = (ni - 1) / (no - 1) if no > 1 else 0.0
    elif packed and kind == "nearest" and no in (ni, 2 * ni):
        scale = ni / no  # torch's channels-last kernel computes the scale of these from the sizes
    else:
        scale = 1.0 / factor if factor is not None and factor > 0 else ni / no
    return Axis(kind, ni, no, scale, aligned)


def _is_integer(x: Any) -> bool:
    if core.is_tensor(x):
        return bool(x.dtype.category < 2)
    return hasattr(x, "__index__")


def _output_size(
    input: Tensor, size: Any, scale_factor: Any, recompute: bool | None
) -> tuple[list[int], list[float] | None]:
    """Return the sizes of the result, and the scale factors where positions depend on them, else None."""
    spatial, dims = input.shape[2:], input.ndim - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if size is not None:
        if isinstance(size, list | tuple):
            if len(size) != dims:
                raise ValueError(
                    "Input and output must have the same number of spatial dimensions, but got "
                    f"input with spatial dimensions of {list(spatial)} and output size of {size}. "
                    "Please provide input tensor in (N, C, d1, d2, ...,dK) format and "
                    "output size in (o1, o2, ...,oK) format."
                )
            if not all(_is_integer(x) for x in size):
                raise TypeError(
                    "expected size to be one of int or Tuple[int] or Tuple[int, int] or "
                    f"Tuple[int, int, int], but got size with types {[type(x) for x in size]}"
                )
            sizes = list(size)
        else:
            sizes = [size] * dims
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        return [operator.index(s) for s in sizes], None
    if isinstance(scale_factor, list | tuple):
        if len(scale_factor) != dims:
            raise ValueError(
                "Input and scale_factor must have the same number of spatial dimensions, but "
                f"got input with spatial dimensions of {list(spatial)} and scale_factor of shape {scale_factor}. "
                "Please provide input tensor in (N, C, d1, d2, ...,dK) format and "
                "scale_factor in (s1, s2, ...,sK) format."
            )
        factors = [float(f) for f in scale_factor]
    else:
        factors = [float(scale_factor)] * dims
    sizes = [int(n * f) for n, f in zip(spatial, factors, strict=True)]
    return sizes, None if recompute else factors


def _check_mode(input: Tensor, mode: str, aligned: bool, antialias: bool) -> None:
    """Raise torch's errors for a mode that does not fit the input."""
    dims = input.ndim - 2
    if antialias and not (mode in _ANTIALIAS and input.ndim == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    if mode == "lanczos" and dims == 2:
        if aligned:
            raise ValueError("Lanczos mode does not support align_corners=True")
        if not antialias:
            raise ValueError("Lanczos mode requires antialias=True")
    if dims in (_MODES[mode][0] if mode in _MODES else (1, 2, 3) if mode == "area" else ()):
        return
    if mode in ("linear", "bilinear", "trilinear") and dims in (1, 2, 3):
        raise NotImplementedError(
            f"Got {input.ndim}D input, but {mode} mode needs {_MODES[mode][0][0] + 2}D input"
        )
    raise NotImplementedError(
        f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.ndim}D) for the modes: "
        f"nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact (got {mode})"
    )


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resample (N, C, …) with one to three spatial dims to `size`, or by `scale_factor`.

    mode: "nearest", "nearest-exact", "linear" (3-D), "bilinear", "bicubic" (4-D), "trilinear" (5-D), "area", "lanczos" (4-D, with
    antialias). `align_corners`: the corner elements' centres stay in place, instead of the corners' edges. `antialias`: when
    shrinking, average over all that an element covers. uint8 images keep their dtype (4-D modes and the nearest ones).
    """
    if mode in _NO_CORNERS and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    aligned = bool(align_corners)
    recompute = recompute_scale_factor or (mode == "area" and size is None)
    sizes, factors = _output_size(input, size, scale_factor, recompute)
    _check_mode(input, mode, aligned, antialias)
    if mode == "area":
        return getattr(average_pooling, f"adaptive_avg_pool{input.ndim - 2}d")(input, sizes)
    return resampled(input, sizes, factors, mode, aligned, antialias)


def resampled(
    input: Tensor,
    sizes: Sequence[int],
    factors: Sequence[float | None] | None,
    mode: str,
    aligned: bool,
    antialias: bool,
) -> Tensor:
    """Resample to `sizes`, with scale factors `factors` where these are given, in any mode but "area"."""
    dims = input.ndim - 2
    _check(input, sizes, mode)
    kind = f"antialias_{_MODES[mode][1]}" if antialias else _MODES[mode][1]
    packed = dims == 2 and layouts.is_channels_last(input.shape, input._strides)
    axes = tuple(
        _axis(kind, input.shape[2 + d], sizes[d], factors[d] if factors else None, aligned, packed)
        for d in range(dims)
    )
    return _apply(input, axes, False, _node(mode, dims, antialias))


def _deprecated(name: str) -> None:
    warnings.warn(
        f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=caller_level(),
    )


def upsample(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Deprecated name of `interpolate`."""
    _deprecated("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Deprecated form of `interpolate` with mode "nearest"."""
    _deprecated("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Deprecated form of `interpolate` with mode "bilinear" and aligned corners."""
    _deprecated("upsample_bilinear")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)
