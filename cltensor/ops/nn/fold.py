"""Sliding blocks as columns (unfold, im2col) and their sum back into an image (fold, col2im).

Blocks are a strided view of the padded image, so unfolding is one copy. Knows no kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ... import layouts
from ...autograd import record as graph
from ...memory_format import contiguous_format
from ..composite import in_one
from ..core import Tensor
from ..kinds import Sizes
from ..operands import check_tensor
from ..parts import as_strided
from ..refusals import no_kernel
from .padding import constant_pad

Pair = tuple[int, int]


class Blocks(NamedTuple):
    """The geometry of sliding blocks in an image; each pair has the height first."""

    kernel: Pair
    dilation: Pair
    padding: Pair
    stride: Pair

    def counts(self, size: Sequence[int]) -> Pair:
        """Return how many blocks fit into an image along both dims; may be less than one."""
        (a, b) = ((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in zip(size, *self))  # fmt: skip
        return a, b


def _pair(name: str, value: Any) -> Pair:
    if hasattr(value, "__index__"):
        return (value.__index__(),) * 2
    if len(value) != 2:
        raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(value)}")
    return value[0].__index__(), value[1].__index__()


def _blocks(kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Blocks:
    found = Blocks(
        _pair("kernel_size", kernel_size),
        _pair("dilation", dilation),
        _pair("padding", padding),
        _pair("stride", stride),
    )
    for values, name, short, least, text in (
        (found.kernel, "kernel size", "kernel", 1, "greater than zero"),
        (found.dilation, "dilation", "dilation", 1, "greater than zero"),
        (found.padding, "padding", "pad", 0, "non-negative"),
        (found.stride, "stride", "stride", 1, "greater than zero"),
    ):
        if min(values) < least:
            raise RuntimeError(
                f"{name} should be {text}, but got {short}_height: {values[0]} {short}_width: {values[1]}"
            )
    return found


def _check_dtype(x: Tensor, kernel: str) -> None:
    if x.dtype.category == 1:
        raise no_kernel(kernel, x.dtype)


def _view(image: Tensor, blocks: Blocks, counts: Pair) -> Tensor:
    """Return a view of a padded image [N, C, H, W] with the shape [N, C, kh, kw, rows of blocks, columns of blocks]."""
    n, c, h, w = image._strides
    (dh, dw), (sh, sw) = blocks.dilation, blocks.stride
    shape = (*image.shape[:2], *blocks.kernel, *counts)
    return as_strided(image, shape, (n, c, h * dh, w * dw, h * sh, w * sw), image._offset)


def unfold(
    input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Return the sliding blocks of [N, C, H, W] or [C, H, W] as columns: [N, C * kh * kw, number of blocks], without N
    for [C, H, W].

    Floats, complex and bool; RuntimeError in torch's words for sizes that do not fit.
    """
    check_tensor("im2col", "input", 1, input)
    blocks = _blocks(kernel_size, dilation, padding, stride)
    for d in range(input.ndim, 3):
        layouts.wrap_dim(d, input.ndim)
    if input.ndim not in (3, 4) or not all(input.shape[-3:]):
        raise RuntimeError(
            f"Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: {list(input.shape)}"
        )
    size = (input.shape[-2], input.shape[-1])
    counts = blocks.counts(size)
    if min(counts) < 1:
        raise RuntimeError(
            f"Given input with spatial size {size}, kernel_size={blocks.kernel}, dilation={blocks.dilation}, padding={blocks.padding}, "
            f"calculated shape of the array of sliding blocks as {counts}, but its components must be at least one."
        )
    _check_dtype(input, "im2col_out_cpu")
    (value,) = _columns((input.detach(),), blocks, Sizes(counts))
    if graph.needs_grad(input):
        saved = {"size": size, "blocks": blocks}
        graph.record(
            "Im2ColBackward0", (input,), value, lambda ctx, g: fold(g, ctx.size, *ctx.blocks), saved
        )
    return value


@in_one
def _columns(xs: Sequence[Tensor], blocks: Blocks, counts: Pair) -> list[Tensor]:
    """Compute `unfold`'s result."""
    (x,) = xs
    lead = tuple(x.shape[:-3])
    image = x if lead else x.unsqueeze(0)
    (ph, pw) = blocks.padding
    if ph or pw:
        image = constant_pad(image, (pw, pw, ph, ph))
    rows = x.shape[-3] * blocks.kernel[0] * blocks.kernel[1]
    cells = counts[0] * counts[1]
    found = _view(image, blocks, counts).clone(memory_format=contiguous_format)
    return [found.view(*lead, rows, cells)]


def fold(
    input: Tensor,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Tensor:
    """Return an image [N, C, *output_size] in which the columns [N, C * kh * kw, blocks] are added up at the places of
    their blocks; without N for [C * kh * kw, blocks].

    Floats, complex and bool; RuntimeError in torch's words for sizes that do not fit.
    """
    check_tensor("col2im", "input", 1, input)
    size = _pair("output_size", output_size)
    blocks = _blocks(kernel_size, dilation, padding, stride)
    shape = tuple(input.shape)
    if input.ndim not in (2, 3) or not all(shape[-2:]):
        raise RuntimeError(
            f"Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, but got: {list(shape)}"
        )
    counts = _check_columns(input, size, blocks)
    _check_dtype(input, "col2im_out_cpu")
    (value,) = _images((input.detach(),), Sizes(size), blocks, Sizes(counts))
    if graph.needs_grad(input):
        graph.record(
            "Col2ImBackward0",
            (input,),
            value,
            lambda ctx, g: unfold(g, *ctx.blocks),
            {"blocks": blocks},
        )
    return value


def _check_columns(x: Tensor, size: Pair, blocks: Blocks) -> Pair:
    rows, cells = x.shape[-2:]
    kernel = blocks.kernel
    if rows % (kernel[0] * kernel[1]):
        raise RuntimeError(
            f"Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)={rows} and kernel_size={kernel}."
        )
    counts = blocks.counts(size)
    given = f"Given output_size={size}, kernel_size={kernel}, dilation={blocks.dilation}, padding={blocks.padding}, stride={blocks.stride}"
    if min(counts) < 1:
        raise RuntimeError(
            f"{given}, calculated shape of the array of sliding blocks as {counts}, which is too small (non-positive)"
        )
    if counts[0] * counts[1] != cells:
        raise RuntimeError(
            f"{given}, expected size of input's dimension 2 to match the calculated number of sliding blocks {counts[0]} * {counts[1]} = {counts[0] * counts[1]}, but got "
            f"input.size(2)={cells}."
        )
    return counts


@in_one
def _images(xs: Sequence[Tensor], size: Pair, blocks: Blocks, counts: Pair) -> list[Tensor]:
    """Compute `fold`'s result."""
    (x,) = xs
    (kh, kw), (ph, pw) = blocks.kernel, blocks.padding
    lead = tuple(x.shape[:-2])
    channels = x.shape[-2] // (kh * kw)
    columns = x.reshape(*(lead or (1,)), channels, kh, kw, *counts)
    wide = (columns.shape[0], channels, size[0] + 2 * ph, size[1] + 2 * pw)
    # 16-bit floats are summed in float32: in 16 bits the sum would be rounded after every block.
    image = columns.new_zeros(wide)
    if x.dtype.itemsize == 2:
        image = image.float()
    places = _view(image, blocks, counts)
    apart = (s > d * (k - 1) for s, d, k in zip(blocks.stride, blocks.dilation, blocks.kernel))
    if all(apart):
        places.copy_(columns)
    else:
        for i in range(kh):
            for j in range(kw):
                places[:, :, i, j].add_(columns[:, :, i, j])
    image = image[:, :, ph : ph + size[0], pw : pw + size[1]].to(x.dtype)
    return [image.contiguous().reshape(*lead, channels, *size)]
