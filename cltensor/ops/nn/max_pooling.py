"""Max pooling over regular, adaptive and random windows, and max unpooling.

The functions with `return_indices` are nn.functional's; those at torch's top level are in FUNCTIONS under the same
names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from ... import dtypes
from ...autograd import record as graph
from ...autograd.mode import unrecorded
from ...codegen.resample.pool import Window
from ...layouts import numel
from .. import formats
from ..core import Tensor
from ..dims import check_flag
from ..operands import check_tensor
from ..refusals import need_float
from ..row import public, titled
from .pooling import (
    HOW_MANY,
    adaptive,
    by_rows,
    check_planes,
    counts,
    each_or_all,
    filled,
    is_number,
    largest,
    need_dtype,
    need_rank,
    output_length,
    pick,
    rand,
    regular,
    repeated,
    triple,
)

# ------------------------------------------------------------------------------------------- regular windows

_CHECKED_IN = "max_pool3d_with_indices_out_cpu_template()"  # what torch's errors name, whichever form was called


def _read(
    function: str, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: Any
) -> list[tuple[int, ...]]:
    values = [counts(function, "kernel_size", 2, kernel)]
    values.append(counts(function, "stride", 3, stride) if stride is not None else ())
    values += [counts(function, "padding", 4, padding), counts(function, "dilation", 5, dilation)]
    check_flag(function, "ceil_mode", ceil_mode, 6)
    return values


def _windows(
    function: str, rank: int, x: Tensor, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: Any
) -> Window:  # fmt: skip
    k, s, p, w = _read(function, kernel, stride, padding, dilation, ceil_mode)
    many = HOW_MANY[rank]
    k = repeated(
        k, rank, f"{function}: kernel_size must either be a single int, or a tuple of {many}"
    )
    s = s and repeated(
        s, rank, f"{function}: stride must either be omitted, a single int, or a tuple of {many}"
    )
    p = repeated(p, rank, f"{function}: padding must either be a single int, or a tuple of {many}")
    w = repeated(w, rank, f"{function}: dilation must be either a single int, or a tuple of {many}")
    if x.ndim not in (rank + 1, rank + 2):
        raise RuntimeError(
            f"non-empty {rank + 1}D or {rank + 2}D (batch mode) tensor expected for input"
        )
    return regular(x, k, s or k, p, w, ceil_mode, lambda: check_planes(_CHECKED_IN, x, rank))


def _pool(
    function: str, rank: int, x: Tensor, positions: bool, *sizes: Any
) -> tuple[Tensor, Tensor]:
    check_tensor(function, "input", 1, x)
    window = _windows(function, rank, x, *sizes)
    need_dtype(x, function, is_number)
    return largest(f"MaxPool{rank}DWithIndices", x, window, positions=positions)


def _max_pool(rank: int, axes: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Make `max_pool<rank>d_with_indices` and `max_pool<rank>d`."""
    function = f"max_pool{rank}d"
    over = f"(N, C, {axes}) or (C, {axes})"

    def with_indices(
        input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False, return_indices: bool = False
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        return _pool(function, rank, input, True, kernel_size, stride, padding, dilation, ceil_mode)

    def plain(
        input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False, return_indices: bool = False
    ) -> Any:  # fmt: skip
        sizes = kernel_size, stride, padding, dilation, ceil_mode
        found = _pool(function, rank, input, return_indices, *sizes)
        return found if return_indices else found[0]

    return (
        titled(
            with_indices,
            f"{function}_with_indices",
            f"Return the largest elements of windows over {over}, and their positions in {axes.replace(', ', ' * ')}.",
        ),
        titled(
            plain,
            function,
            f"Take the largest element of each window over {over}; nan wins. `return_indices` adds positions.",
        ),
    )


max_pool2d_with_indices, max_pool2d = _max_pool(2, "H, W")
max_pool3d_with_indices, max_pool3d = _max_pool(3, "D, H, W")


def _one(function: str, name: str, expected: str, values: tuple[int, ...]) -> int:
    if len(values) != 1:
        raise RuntimeError(
            f"{function}() {name} must be {expected} of size 1 but got size {len(values)}"
        )
    return values[0]


def _row_sizes(sizes: Sequence[tuple[int, ...]]) -> tuple[Any, Any, Any, Any]:
    """Sizes for rows of height 1: kernel 1, stride 1, no padding."""
    k, s, p, w = sizes
    return (1, *k), (1, *(s or k)), (0, *p), (1, *w)


@public(method=False)
def max_pool1d_with_indices(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False, return_indices: bool = False
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the largest elements of windows over (N, C, L) or (C, L), and their positions in L."""
    check_tensor("max_pool1d_with_indices", "input", 1, input)
    sizes = _read("max_pool1d_with_indices", kernel_size, stride, padding, dilation, ceil_mode)
    need_rank("max_pool1d", input)
    for name, v in zip(("kernel_size", "stride", "padding", "dilation"), sizes, strict=True):
        if len(v) != 1 and (v or name != "stride"):
            raise RuntimeError(
                f"max_pool1d_with_indices() argument '{name}' should contain one int (got {len(v)})"
            )
    return by_rows(input, lambda x: max_pool2d_with_indices(x, *_row_sizes(sizes), ceil_mode))


def max_pool1d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False, return_indices: bool = False
) -> Any:  # fmt: skip
    """Take the largest element of each window over (N, C, L) or (C, L); nan wins. `return_indices` adds positions."""
    if return_indices:
        return max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    check_tensor("max_pool1d", "input", 1, input)
    sizes = _read("max_pool1d", kernel_size, stride, padding, dilation, ceil_mode)
    if input.ndim not in (2, 3) or not numel(input.shape[-2:]):
        raise RuntimeError(
            f"max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:{list(input.shape)}"
        )
    k = _one("max_pool1d", "kernel_size", "an int, list of ints or tuple of ints", sizes[0])
    s = _one(
        "max_pool1d", "stride", "None, an int, list of ints, or tuple of ints", sizes[1] or (k,)
    )
    p = _one("max_pool1d", "padding", "an int, list of ints, or tuple of ints", sizes[2])
    w = _one("max_pool1d", "dilation", "an int, list of ints or tuple of ints", sizes[3])
    for name, v in (("kernel_size", k), ("stride", s)):
        if v <= 0:
            raise RuntimeError(f"max_pool1d() {name} must be greater than zero, but got {v}")
    if p < 0:
        raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {p}")
    if p > k // 2:
        raise RuntimeError(
            f"max_pool1d() padding should be at most half of kernel size, but got padding={p} and kernel_size={k}"
        )
    if w <= 0:
        raise RuntimeError(f"max_pool1d() dilation must be greater than zero, but got {w}")
    out = output_length(input.shape[-1], k, s, p, w, ceil_mode)
    if out <= 0:
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {out}")
    need_float("max_pool1d_impl", input.dtype)
    return by_rows(input, lambda x: _largest_of_rows(x, sizes, ceil_mode))


def _largest_of_rows(x: Tensor, sizes: Sequence[tuple[int, ...]], ceil_mode: bool) -> Tensor:
    """Pool rows of height 1; the arguments have been checked."""
    window = regular(x, *_row_sizes(sizes), ceil_mode, lambda: None)
    return largest("MaxPool2DWithIndices", x, window, positions=False)[0]


def _plain(name: str, pool: Callable[..., Any]) -> None:
    """Export the form at torch's top level, which returns the values only."""

    def function(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> Tensor:
        return pool(input, kernel_size, stride, padding, dilation, ceil_mode)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"Take the largest element of each window, as `nn.functional.{name}` without positions."
    )
    public(name, method=False)(function)


_plain("max_pool1d", max_pool1d)
_plain("max_pool2d", max_pool2d)
_plain("max_pool3d", max_pool3d)

# ------------------------------------------------------------------------------------------- adaptive windows


def check_adaptive(function: str, x: Tensor, rank: int, got: str, first: int) -> None:
    """Raise torch's errors for an input of an adaptive pooling; dims from `first` (negative) on must not be empty."""
    if x.ndim not in (rank + 1, rank + 2):
        raise RuntimeError(
            f"{function}(): Expected {rank + 1}D or {rank + 2}D tensor, but got{got} {list(x.shape)}"
        )
    for d in range(x.ndim + first, x.ndim):
        if not x.shape[d]:
            raise RuntimeError(
                f"{function}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {list(x.shape)} "
                f"with dimension {d} being empty"
            )


def _adaptive(
    rank: int, x: Tensor, output_size: Any, positions: bool = True
) -> tuple[Tensor, Tensor]:
    function = f"adaptive_max_pool{rank}d"
    check_tensor(function, "input", 1, x)
    out = counts(function, "output_size", 2, output_size)
    check_adaptive(function, x, rank, ":", -rank - 1 if x.ndim > rank + 1 else -rank)
    message = f"{function}(): internal error: output_size.size() must be {rank}"
    out = each_or_all(out, output_size, rank, message)
    if min(out) < 0:
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {min(out)}: {[*x.shape[:-rank], *out]}"
        )
    need_float(function + ("_cpu" if rank == 3 else ""), x.dtype)
    return largest(f"AdaptiveMaxPool{rank}D", x, adaptive(x, out), positions=positions)


def _adaptive_rows(x: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
    check_tensor("adaptive_max_pool1d", "input", 1, x)
    out = counts("adaptive_max_pool1d", "output_size", 2, output_size)
    need_rank("adaptive_max_pool1d", x)
    if len(out) != 1:
        raise RuntimeError(
            f"adaptive_max_pool1d() argument 'output_size' should contain one int (got {len(out)})"
        )
    check_adaptive("adaptive_max_pool1d", x, 1, ":", 1 - x.ndim if x.ndim > 2 else -1)
    return by_rows(x, lambda rows: _adaptive(2, rows, (1, *out)))


@public("adaptive_max_pool1d", method=False)
def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the largest elements of `output_size` equal parts of the last dim, and their positions."""
    return _adaptive_rows(input, output_size)


def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Take the largest element of `output_size` equal parts of the last dim."""
    found = _adaptive_rows(input, output_size)
    return found if return_indices else found[0]


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the largest elements of equal parts of the last two dims, and their positions in them; None keeps a size."""
    return _adaptive(2, input, filled(input, output_size))


def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Take the largest element of equal parts of the last two dims; None keeps a size."""
    found = _adaptive(2, input, filled(input, output_size), return_indices)
    return found if return_indices else found[0]


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the largest elements of equal parts of the last three dims, and their positions in them; None keeps a size."""
    return _adaptive(3, input, filled(input, output_size))


def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Take the largest element of equal parts of the last three dims; None keeps a size."""
    found = _adaptive(3, input, filled(input, output_size), return_indices)
    return found if return_indices else found[0]


# ------------------------------------------------------------------------------------------- random windows

_SIDES = {2: ("height", "width"), 3: ("time", "height", "width")}


def _check_samples(x: Tensor, rank: int, samples: Tensor) -> None:
    batch = x.shape[0] if x.ndim == rank + 2 else 1
    if samples.dtype is not x.dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    if samples.ndim != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {samples.ndim}")
    if samples.shape[0] < batch:
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if samples.shape[1] != x.shape[-rank - 1]:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if samples.shape[2] != rank:
        raise RuntimeError(
            f"Expect _random_samples.size(2) equals to {rank}; got {samples.shape[2]}."
        )


def _fractional(
    rank: int, x: Tensor, kernel_size: Any, output_size: Any, output_ratio: Any, samples: Any
) -> tuple[Tensor, Tensor]:
    function = f"fractional_max_pool{rank}d"
    check_tensor(function, "input", 1, x)
    if output_size is None and output_ratio is None:
        raise ValueError(f"{function} requires specifying either an output_size or an output_ratio")
    if output_size is None:
        if rank == 2 and len(output_ratio) > 2:
            raise ValueError(
                f"{function} requires output_ratio to either be a single Int or tuple of Ints."
            )
        ratios = (
            tuple(output_ratio) if isinstance(output_ratio, Sequence) else (output_ratio,) * rank
        )
        output_size = [int(x.size(d - rank) * ratios[d]) for d in range(rank)]
    channels = x.size(-rank - 1)
    if samples is None:
        samples = rand(x, 1 if x.ndim == rank + 1 else x.shape[0], channels, rank)
    kernel = counts(function, "kernel_size", 2, kernel_size)
    out = counts(function, "output_size", 3, output_size)
    many = "tuple of Ints" if rank == 2 else "tuple of three Ints"
    message = f"{function}: {{}} must either be a single Int or {many}"
    kernel = each_or_all(kernel, kernel_size, rank, message.format("kernel_size"))
    out = each_or_all(out, output_size, rank, message.format("output_size"))
    said = function + ("()" if rank == 2 else "_out()")
    if x.ndim not in (rank + 1, rank + 2):
        raise RuntimeError(
            f"{said}: Expected {rank + 1}D or {rank + 2}D tensor, but got: {list(x.shape)}"
        )
    for d in range(x.ndim - rank - 1, x.ndim):
        if not x.shape[d]:
            raise RuntimeError(
                f"{said}: Expected input to have non-zero size for non-batch dimensions, but got{list(x.shape)} with dimension {d} being empty."
            )
    size = tuple(x.shape[-rank:])
    for side, k, n, o in zip(_SIDES[rank], kernel, size, out, strict=True):
        if o + k - 1 > n:
            raise RuntimeError(f"{said}: pool {side} {k} too large relative to input {side} {n}")
    if min(out) < 0:
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {min(out)}: {[*x.shape[:-rank], *out]}"
        )
    _check_samples(x, rank, samples)
    need_float(f"{function}_out_frame", x.dtype)
    window = Window("fractional", rank, triple(size, 1), triple(out, 1), triple(kernel, 1))
    return largest(f"FractionalMaxPool{rank}D", x, window, positions=True, samples=samples.detach())


def fractional_max_pool2d_with_indices(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False, _random_samples: Tensor | None = None
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Max pooling by windows at random steps (Graham, arXiv 1412.6071), and positions; samples are (N, C, 2) from [0, 1)."""
    return _fractional(2, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool2d(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False, _random_samples: Tensor | None = None
) -> Any:  # fmt: skip
    """Max pooling by windows at random steps (Graham, arXiv 1412.6071); samples are (N, C, 2) from [0, 1)."""
    found = _fractional(2, input, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]


def fractional_max_pool3d_with_indices(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False, _random_samples: Tensor | None = None
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Max pooling by windows at random steps (Graham, arXiv 1412.6071), and positions; samples are (N, C, 3) from [0, 1)."""
    return _fractional(3, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool3d(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False, _random_samples: Tensor | None = None
) -> Any:  # fmt: skip
    """Max pooling by windows at random steps (Graham, arXiv 1412.6071); samples are (N, C, 3) from [0, 1)."""
    found = _fractional(3, input, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]


# ------------------------------------------------------------------------------------------- back to where it was


def _unpooled_size(x: Tensor, sizes: Sequence[tuple[int, ...]], wanted: Any) -> list[int]:
    kernel, stride, padding = sizes
    rank = len(kernel)
    usual = [(x.shape[d - rank] - 1) * stride[d] + kernel[d] - 2 * padding[d] for d in range(rank)]
    if wanted is None:
        found = usual
    else:
        if len(wanted) == rank + 2:
            wanted = wanted[2:]
        if len(wanted) != rank:
            raise ValueError(
                f"output_size should be a sequence containing {rank} or {rank + 2} elements, but it has a length of '{len(wanted)}'"
            )
        for d in range(rank):
            low, high = usual[d] - stride[d], usual[d] + stride[d]
            if not low < wanted[d] < high:
                raise ValueError(
                    f'invalid output_size "{wanted}" (dim {d} must be between {low} and {high})'
                )
        found = list(wanted)
    for d, n in enumerate(found):
        if n < 0:
            raise ValueError(
                f"max_unpooling: output_size must contain non-negative spatial dimensions, but got output_size[{d}]={n}"
            )
    return found


def _unpool_back(ctx: Any, g: Tensor) -> Tensor:
    return pick(g, ctx.indices, ctx.rank)


_UNPOOLED = {2: "two elements (height, width)", 3: "three elements (depth, height, width)"}


def _check_unpool(x: Tensor, indices: Tensor, size: Sequence[int], rank: int) -> None:
    if indices.dtype is not dtypes.int64:
        got = f" but got: {indices.dtype.scalar_name}" if rank == 2 else ""
        raise RuntimeError(f"elements in indices should be type int64{got}")
    if len(size) != rank:
        raise RuntimeError(
            f"There should be exactly {_UNPOOLED[rank]} in output_size, but got {len(size)} elements."
        )
    if x.ndim not in (rank + 1, rank + 2):
        raise RuntimeError(
            f"Input to max_unpooling{rank}d should be a {rank + 1}d or {rank + 2}d Tensor, but got a tensor with {x.ndim} dimensions."
        )
    if x.shape != indices.shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(x.shape)}) but got indices tensor with shape: {list(indices.shape)}"
        )
    for d in range(1, x.ndim):
        if not x.shape[d]:
            raise RuntimeError(
                f"max_unpooling{rank}d_forward_out_cpu(): Expected input to have non-zero size for non-batch dimensions, but got {list(x.shape)} "
                f"with dimension {d} being empty."
            )


def _unpool(x: Tensor, indices: Tensor, size: Sequence[int], rank: int) -> Tensor:
    """Put elements at their positions in planes of zeros; RuntimeError for a position outside."""
    _check_unpool(x, indices, size, rank)
    need_float(f"max_unpool{rank}d", x.dtype)
    lead, count = x.shape[:-rank], numel(tuple(size))
    with unrecorded():
        try:
            flat = x.new_zeros((*lead, count)).scatter(
                -1, indices.flatten(-rank), x.detach().flatten(-rank)
            )
        except (IndexError, RuntimeError) as error:
            bad = re.search(r"index (-?\d+) is out of bounds", str(error))
            if bad is None:
                raise
            raise RuntimeError(
                f"Found an invalid max index: {bad[1]} (output volumes are of size {'x'.join(map(str, size))})"
            ) from None
        out = flat.view(*lead, *size)
        out = formats.like_images(x, out) if rank == 2 else out
    graph.record(
        f"MaxUnpool{rank}DBackward0", (x,), out, _unpool_back, {"indices": indices, "rank": rank}
    )
    return out


def _unpool_sizes(
    function: str, rank: int, kernel: Any, stride: Any, padding: Any
) -> list[tuple[int, ...]]:
    values = (kernel, kernel if stride is None else stride, padding)
    return [
        v * rank if len(v) == 1 else v
        for v in (counts(function, "kernel_size", 3, a) for a in values)
    ]


def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:  # fmt: skip
    """Put the elements that `max_pool1d` found back at their positions, with zeros elsewhere."""
    check_tensor("max_unpool1d", "input", 1, input)
    check_tensor("max_unpool1d", "indices", 2, indices)
    sizes = _unpool_sizes("max_unpool1d", 1, kernel_size, stride, padding)
    n = _unpooled_size(input, sizes, output_size)
    return _unpool(input.unsqueeze(-1), indices.unsqueeze(-1), (*n, 1), 2).squeeze(-1)


def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:  # fmt: skip
    """Put the elements that `max_pool2d` found back at their positions, with zeros elsewhere."""
    check_tensor("max_unpool2d", "input", 1, input)
    check_tensor("max_unpool2d", "indices", 2, indices)
    sizes = _unpool_sizes("max_unpool2d", 2, kernel_size, stride, padding)
    return _unpool(input, indices, _unpooled_size(input, sizes, output_size), 2)


def max_unpool3d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:  # fmt: skip
    """Put the elements that `max_pool3d` found back at their positions, with zeros elsewhere."""
    check_tensor("max_unpool3d", "input", 1, input)
    check_tensor("max_unpool3d", "indices", 2, indices)
    sizes = _unpool_sizes("max_unpool3d", 3, kernel_size, stride, padding)
    if min(sizes[1]) <= 0:
        raise RuntimeError(f"strides should be greater than zero, but got stride: {list(sizes[1])}")
    return _unpool(input, indices, _unpooled_size(input, sizes, output_size), 3)
