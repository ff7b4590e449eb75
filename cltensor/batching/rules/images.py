"""Rules for functions of image batches: slices become further entries of the batch, or, with batched filters, further groups."""

from __future__ import annotations

from typing import Any

from ...ops.row import FUNCTIONS
from ...tensor import Tensor
from ...utils._pytree import tree_map
from ..batched import hide
from ..calls import Call, named_rule, rule


def fold(call: Call, x: Any, ndim: int) -> tuple[Any, tuple[int, ...]]:
    """Merge the hidden dimension and all dims before the last `ndim` into one.

    Return the tensor and the sizes of the merged dims.
    """
    value = call.full(x)
    lead = value.ndim - ndim
    return value.reshape(-1, *value.shape[lead:]), tuple(value.shape[:lead])


def unfold(call: Call, out: Any, lead: tuple[int, ...]) -> Any:
    """Undo `fold` for each tensor of a result: split its first dim into `lead`, and hide the batch dimension."""
    return tree_map(
        lambda t: (
            hide(t.reshape(*lead, *t.shape[1:]), 0, call.level) if isinstance(t, Tensor) else t
        ),
        out,
    )


_SPATIAL = {"1d": 1, "2d": 2, "3d": 3}


@rule(
    "avg_pool1d avg_pool2d avg_pool3d max_pool1d max_pool2d max_pool3d lp_pool1d lp_pool2d lp_pool3d adaptive_avg_pool1d "
    "adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d max_pool1d_with_indices "
    "max_pool2d_with_indices max_pool3d_with_indices adaptive_max_pool1d_with_indices adaptive_max_pool2d_with_indices "
    "adaptive_max_pool3d_with_indices"
)
def pooled(call: Call, input: Any, *args: Any, **kwargs: Any) -> Any:
    """Pool windows of each channel."""
    spatial = next(n for key, n in _SPATIAL.items() if key in call.name)
    if len(input.shape) not in (spatial + 1, spatial + 2) or kwargs.get("out") is not None:
        return call.fallback()
    x, lead = fold(call, input, spatial + 1)
    return unfold(call, call.f(x, *args, **kwargs), lead)


@rule("max_unpool1d max_unpool2d max_unpool3d")
def unpooled(call: Call, input: Any, indices: Any, *args: Any, **kwargs: Any) -> Any:
    """Write pooled maxima back to the positions they came from."""
    spatial = next(n for key, n in _SPATIAL.items() if key in call.name)
    if len(input.shape) not in (spatial + 1, spatial + 2):
        return call.fallback()
    x, lead = fold(call, input, spatial + 1)
    i, _ = fold(call, indices, spatial + 1)
    return unfold(call, call.f(x, i, *args, **kwargs), lead)


@rule("interpolate upsample upsample_nearest upsample_bilinear local_response_norm channel_shuffle")
def images(call: Call, input: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a function of images, with the slices as further entries of the batch."""
    if len(input.shape) < 3:
        return call.fallback()
    x, lead = fold(call, input, len(input.shape) - 1)
    return unfold(call, call.f(x, *args, **kwargs), lead)


@rule("pixel_shuffle pixel_unshuffle")
def pixels(call: Call, input: Any, *args: Any, **kwargs: Any) -> Any:
    """Rearrange elements between channels and positions; the function accepts any number of leading dims."""
    return call.hide(call.f(call.front(input), *args, **kwargs))


@rule("fold")
def folded(call: Call, input: Any, *args: Any, **kwargs: Any) -> Any:
    """Turn windows into columns, or columns back into windows; views.py calls this for `nn.functional.unfold`."""
    own = 2 if call.name == "fold" else 3
    if len(input.shape) not in (own, own + 1):
        return call.fallback()
    x, lead = fold(call, input, own)
    return unfold(call, call.f(x, *args, **kwargs), lead)


@rule("stft istft")
def spectra(call: Call, input: Any, *args: Any, **kwargs: Any) -> Any:
    """Apply the short-time Fourier transform, or its inverse."""
    own = 1 if call.name == "stft" else 2
    complex_pairs = own == 2 and not input.is_complex()
    if any(call.here(v) for v in (*args, *kwargs.values())) or complex_pairs:
        return call.fallback()
    x, lead = fold(call, input, own)
    return unfold(call, call.f(x, *args, **kwargs), lead)


@rule("pad")
def pad(call: Call, input: Any, pad: Any, mode: str = "constant", value: Any = None) -> Any:
    """Pad the last dims, with a number or with the input's own elements."""
    if mode == "constant" or value is not None:
        return call.hide(call.f(call.front(input), pad, mode, value))
    spatial = len(pad) // 2
    if len(input.shape) not in (spatial + 1, spatial + 2):
        return call.fallback()
    x, lead = fold(call, input, spatial + 1)
    return unfold(call, call.f(x, pad, mode, value), lead)


@rule("constant_pad_nd")
def constant_pad(call: Call, input: Any, pad: Any, value: Any = 0) -> Any:
    """Pad the last dims with a number."""
    return call.hide(call.f(call.front(input), pad, value))


@rule("grid_sample grid_sampler grid_sampler_2d grid_sampler_3d")
def grid_sample(call: Call, input: Any, grid: Any, *args: Any, **kwargs: Any) -> Any:
    """Sample images at the positions that a grid holds."""
    if len(input.shape) != len(grid.shape) or len(input.shape) < 4:
        return call.fallback()
    x, lead = fold(call, input, len(input.shape) - 1)
    g, _ = fold(call, grid, len(grid.shape) - 1)
    return unfold(call, call.f(x, g, *args, **kwargs), lead)


@rule("affine_grid")
def affine_grid(call: Call, theta: Any, size: Any, align_corners: bool | None = None) -> Any:
    """Return the sampling grid of an affine map."""
    t, lead = fold(call, theta, 2)
    return unfold(call, call.f(t, (t.shape[0], *size[1:]), align_corners), lead)


# ------------------------------------------------------------------------------------------- convolution


@named_rule("conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d")
def convolved(call: Call, given: dict[str, Any]) -> Any:
    """Convolve; with batched filters, slices are groups, or further output channels where one image meets all filters."""
    x, weight, bias = given["input"], given["weight"], given["bias"]
    spatial = next(n for key, n in _SPATIAL.items() if key in call.name)
    seen = len(x.shape)
    if seen not in (spatial + 1, spatial + 2) or len(weight.shape) != spatial + 2:
        return call.fallback()
    if not call.here(weight):
        given["input"], lead = fold(call, x, spatial + 1)
        if call.here(bias):
            given["bias"] = None
        out = unfold(call, call.again(given), lead)
        if not call.here(x):
            out = call.hide(call.front(out)[:1].expand(call.front(out).shape))
        return out + bias.reshape(-1, *(1,) * spatial) if call.here(bias) else out
    size, groups = call.size, given["groups"]
    transposed = "transpose" in call.name
    w = call.front(weight)
    # All slices convolve the same images: filters are further output channels.
    shared = not call.here(x) and groups == 1
    if shared:
        given["input"] = x if seen == spatial + 2 else x.unsqueeze(0)
        w = w.movedim(0, 1).flatten(1, 2) if transposed else w.flatten(0, 1)
    else:
        images = call.full(x)
        images = images.unsqueeze(1) if seen == spatial + 1 else images
        given["input"] = images.movedim(0, 1).flatten(1, 2)
        given["groups"] = groups * size
        w = w.flatten(0, 1)
    given["weight"] = w
    if bias is not None:
        given["bias"] = call.full(bias).reshape(-1)
    out = call.again(given)
    out = out.reshape(out.shape[0], size, -1, *out.shape[2:])
    if seen == spatial + 1:
        return call.hide(out[0], 0)
    return call.hide(out, 1)


@rule("conv_tbc")
def conv_tbc(call: Call, input: Any, weight: Any, bias: Any, pad: int = 0) -> Any:
    """Convolve sequences whose dims are time, batch and channel."""
    out = FUNCTIONS["conv1d"](input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return out.permute(2, 0, 1)
