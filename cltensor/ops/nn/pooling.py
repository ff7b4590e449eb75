"""Shared parts of the pooling functions: reading and checking arguments, and the two grad nodes, largest and average.

The gradient of a pooling is a kernel of its own, whose gradient is the forward direction again. The public functions
are in `max_pooling.py` and `average_pooling.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import dtypes, layouts
from ...autograd import record as graph
from ...autograd.mode import unrecorded
from ...codegen.resample import pool as family
from ...codegen.resample.pool import Triple, Window
from ...dtypes import dtype
from ...runtime import get_backend
from ...symbols import remembered
from .. import core, formats
from ..arguments import no_sizes
from ..core import Tensor, is_tensor
from ..kinds import of_sizes
from ..refusals import no_kernel
from ..replay import Replayed
from ..row import FUNCTIONS

of_sizes(Window)

HOW_MANY = {2: "two ints", 3: "three ints"}
_AXES = {2: ("H", "W"), 3: ("T", "H", "W")}
# nodes whose results are row-major whatever the input is
_ROW_MAJOR = ("AvgPool3D", "AdaptiveAvgPool3D", "AdaptiveMaxPool3D", "FractionalMaxPool2D", "FractionalMaxPool3D")  # fmt: skip

# ------------------------------------------------------------------------------------------- arguments


def check_planes(function: str, x: Tensor, rank: int) -> None:
    """Raise torch's RuntimeError for an input with empty planes or channels, for windows of `rank` 2 or 3.

    For rank 2 also where the number of dims does not fit.
    """
    if rank == 2:
        if not layouts.numel(x.shape[-3:]) or x.ndim not in (3, 4):
            raise RuntimeError(
                f"Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:{list(x.shape)}"
            )
        return
    for d, size in enumerate(x.shape[-4:]):
        if not size:
            raise RuntimeError(
                f"{function}: Expected input's non-batch dimensions to have positive length, but input has a shape of {list(x.shape)} "
                f"and non-batch dimension {d} has length zero!"
            )


def counts(function: str, name: str, position: int, value: Any) -> tuple[int, ...]:
    """Read an argument that is an int or a sequence of ints; TypeError in torch's words."""
    if value.__class__ is int:  # most calls
        return (value,)
    values = value if isinstance(value, list | tuple) else (value,)
    found = []
    for v in values:
        if is_tensor(v):
            v = int(v) if v.numel() == 1 and v.dtype.category < 2 else None
        if isinstance(v, bool) or not hasattr(v, "__index__"):
            raise no_sizes(function, name, position, value)
        found.append(v.__index__())
    return tuple(found)


def repeated(values: tuple[int, ...], rank: int, message: str) -> tuple[int, ...]:
    """Return one value per dim, repeating a single one; RuntimeError for another number than 1 or `rank`."""
    if len(values) not in (1, rank):
        raise RuntimeError(message)
    return values * rank if len(values) == 1 else values


def each_or_all(values: tuple[int, ...], given: Any, rank: int, message: str) -> tuple[int, ...]:
    """Do what `repeated` does, but refuse a single value that was given as a sequence of one, not as a number."""
    if len(values) != rank and isinstance(given, list | tuple):
        raise RuntimeError(message)
    return repeated(values, rank, message)


def need_dtype(x: Tensor, kernel: str, allowed: Callable[[dtype], bool]) -> None:
    """Raise torch's error for a dtype it has no kernel for."""
    if not allowed(x.dtype):
        raise no_kernel(kernel, x.dtype)


def is_number(dt: dtype) -> bool:
    """Floating point or an integer that torch computes with."""
    return dt.category == 2 or (dt.category == 1 and (dt.is_signed or dt.itemsize == 1))


def need_rank(function: str, x: Tensor) -> None:
    """Raise torch's error where a 1-d pooling gets anything but (C, L) or (N, C, L)."""
    if x.ndim not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {x.ndim}-dimensional tensor for argument #1 'self' (while checking arguments for {function})"
        )


def by_rows(x: Tensor, pool: Callable[[Tensor], Any]) -> Any:
    """Pool a 1-d input as rows of height 1, as torch does."""
    out = pool(x.unsqueeze(-2))
    return tuple(v.squeeze(-2) for v in out) if isinstance(out, tuple) else out.squeeze(-2)


# ------------------------------------------------------------------------------------------- windows


def _named(rank: int, prefix: str, values: Sequence[int]) -> str:
    return " ".join(f"{prefix}{a}: {v}" for a, v in zip(_AXES[rank], values, strict=True))


@remembered(256)
def _check_sizes(
    rank: int,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> None:
    for k, s, p, w in zip(kernel, stride, padding, dilation, strict=True):
        if s == 0:
            raise RuntimeError("stride should not be zero")
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if k > 0 and w > 0 and p > ((k - 1) * w + 1) // 2:
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and dilation={w}"
            )
    for what, letter, values in (
        ("kernel size", "k", kernel),
        ("stride", "d", stride),
        ("dilation", "dilation", dilation),
    ):
        if min(values) <= 0:
            raise RuntimeError(
                f"{what} should be greater than zero, but got {_named(rank, letter, values)}"
            )


def output_length(n: int, k: int, s: int, p: int, w: int, ceil_mode: bool) -> int:
    """Return how many windows lie along a dim of size n, without one that would start in the padding at the end."""
    out = (n + 2 * p - w * (k - 1) - 1 + (s - 1 if ceil_mode else 0)) // s + 1
    return out - 1 if ceil_mode and (out - 1) * s >= n + p else out


def triple(values: Sequence[int], filler: int) -> Triple:
    """Put a filler before the values of missing leading dims."""
    a, b, c = (filler,) * (3 - len(values)) + tuple(values)
    return a, b, c


def regular(
    x: Tensor,
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    ceil_mode: bool,
    check_input: Callable[[], None],
) -> Window:
    """Check sizes in torch's order and describe the windows; `check_input` judges the input's shape in between."""
    rank = len(kernel)
    _check_sizes(rank, kernel, stride, padding, dilation)
    check_input()
    channels, *size = x.shape[-rank - 1 :]
    return _regular(channels, tuple(size), kernel, stride, padding, dilation, ceil_mode)


@remembered(256)
def _regular(
    channels: int,
    size: tuple[int, ...],
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    ceil_mode: bool,
) -> Window:
    rank = len(kernel)
    if any(p > k // 2 for p, k in zip(padding, kernel, strict=True)):
        got = (
            f"padW = {padding[1]}, padH = {padding[0]}, kW = {kernel[1]}, kH = {kernel[0]}"
            if rank == 2
            else f"kT: {kernel[0]} kW: {kernel[2]} kH: {kernel[1]} padT: {padding[0]} padW: {padding[2]} padH: {padding[1]}"
        )
        raise RuntimeError(
            f"pad should be smaller than or equal to half of kernel size, but got {got}"
        )
    out = tuple(
        output_length(*sizes, ceil_mode)
        for sizes in zip(size, kernel, stride, padding, dilation, strict=True)
    )
    if min(out) < 1:
        given, found = ("x".join(map(str, (channels, *v))) for v in (size, out))
        raise RuntimeError(
            f"Given input size: ({given}). Calculated output size: ({found}). Output size is too small"
        )
    return Window(
        "regular",
        rank,
        triple(size, 1),
        triple(out, 1),
        triple(kernel, 1),
        triple(stride, 1),
        triple(padding, 0),
        triple(dilation, 1),
    )


def adaptive(x: Tensor, out: tuple[int, ...]) -> Window:
    """Return the windows that divide dims into about equal parts, which overlap where a size is not divisible."""
    rank = len(out)
    size = tuple(x.shape[-rank:])
    sizes = triple(size, 1), triple(out, 1)
    if all(o and n % o == 0 for n, o in zip(size, out, strict=True)):
        step = triple([n // o for n, o in zip(size, out, strict=True)], 1)
        return Window("regular", rank, *sizes, step, step)
    return Window("adaptive", rank, *sizes)


def _laid_out(node: str, x: Tensor, found: Tensor) -> Tensor:
    """Return the result `found`, computed from `x`, in the memory order that torch gives it."""
    if node == "MaxPool3DWithIndices" and x.ndim == 4:  # one image without its batch
        kept = not x.is_contiguous() and layouts.is_channels_last((1, *x.shape), (0, *x._strides))
        to = layouts.channels_last_strides((1, *found.shape))[1:] if kept else None
        return formats.settled(found, to)
    return found if node in _ROW_MAJOR else formats.like_images(x, found)


def _check_gradient(node: str, g: Tensor) -> None:
    """Raise torch's error for the empty gradient of an adaptive pooling to size 0."""
    if node.startswith("Adaptive") and 0 in g.shape[1:]:
        function = f"adaptive_{node[8:11].lower()}_pool{node[-2]}d_backward"
        raise RuntimeError(
            f"{function}(): Expected grad_output to have non-zero size for non-batch dimensions, but grad_output has sizes {list(g.shape)} "
            f"with dimension {g.shape.index(0, 1)} being empty"
        )


def _image_order(node: str, x: Tensor, window: Window) -> list[int] | None:
    """Return the memory order of the dims of dense channels-last images, where the result keeps that order; else None."""
    if node in _ROW_MAJOR or x.ndim != window.rank + 2 or 0 in x.shape:
        return None
    if formats.images(x, x.shape) is None:
        return None
    if not layouts.is_channels_last(tuple(x.shape), x._strides):
        return None
    # Stated, because it cannot be read from the strides: those of a single channel are arbitrary.
    return [0, *range(2, x.ndim), 1]


# ------------------------------------------------------------------------------------------- largest


def largest(
    node: str, x: Tensor, window: Window, *, positions: bool, samples: Tensor | None = None
) -> tuple[Tensor, Any]:
    """Return the largest element of each window and, if asked for, its position in its plane.

    `node` is the grad node's name without "Backward0".
    """
    wanted, order = graph.needs_grad(x), _image_order(node, x, window)
    straight, last = (x, False) if order is None else (formats.turned(x, order), True)
    operands = (straight,) if samples is None else (straight, samples)
    few = layouts.numel(window.size) < 2**31  # int32 for positions that only the gradient reads
    kind = dtypes.int64 if positions or not few else dtypes.int32 if wanted else None
    values, places = _largest(operands, window, kind, last)
    if order is not None:
        values, places = (None if t is None else formats.turned_back(t, order) for t in (values, places))  # fmt: skip
    values = _laid_out(node, x, values)
    where = _laid_out(node, x, places) if positions else places
    if wanted:
        saved = {"self": x, "result1": places, "window": window, "node": node}
        graph.record(f"{node}Backward0", (x,), (values, where), _largest_back, saved)
    return values, where


@Replayed.of_memory
def _largest(xs: Sequence[Tensor], window: Window, positions: Any, last: bool) -> list[Any]:
    source, *drawn = [core.kernel_operand(x) for x in xs]
    backend, dev = get_backend(xs[0].device), xs[0].device
    with backend.lock:
        found = family.largest(
            backend, source, window, positions=positions, samples=drawn[0] if drawn else None, last=last
        )  # fmt: skip
    return [None if op is None else core.result(op, dev) for op in found]


@Replayed.of_memory
def _given_back(xs: Sequence[Tensor], window: Window, last: bool) -> list[Tensor]:
    g, where = [core.kernel_operand(x) for x in xs]
    backend, dev = get_backend(xs[0].device), xs[0].device
    with backend.lock:
        found = family.largest_back(backend, g, where, window, last=last)
    return [core.result(found, dev)]


def _largest_back(ctx: Any, g: Tensor, _: Any = None) -> Tensor:
    where, window = ctx.result1, ctx.window
    _check_gradient(ctx.node, g)
    backend = get_backend(g.device)
    with unrecorded():
        if window.kind == "fractional" and backend.info.kind != "cpu":
            # Windows begin at random places, so a work-item cannot tell which windows contain its element.
            shape = (*g.shape[: -window.rank], layouts.numel(window.size))
            flat = (v.reshape(*shape[:-1], -1) for v in (where, g))
            value = g.new_zeros(shape).scatter_add(-1, *flat)
            value = value.view(*shape[:-1], *window.size[-window.rank :])
        else:
            value = _by_image_order(_given_back, ctx, g, where)
        value = _laid_out(ctx.node, ctx.self, value)
    saved = {"indices": where, "rank": window.rank}
    graph.record(f"{ctx.node}BackwardBackward0", (g, ctx.self), value, _pick_back, saved)
    return value


def _by_image_order(run: Callable[..., list[Tensor]], ctx: Any, *tensors: Tensor) -> Tensor:
    """Run a gradient kernel along channels if the pooled images were channels last, else plane by plane."""
    window = ctx.window
    order, (g, *_) = _image_order(ctx.node, ctx.self, window), tensors
    backend = get_backend(g.device)
    if order is None or not family.along_channels(backend, g.dtype, window, g.shape[1]):
        return run(tensors, window, False)[0]
    (value,) = run([formats.turned(t, order) for t in tensors], window, True)
    return formats.turned_back(value, order)


def _pick_back(ctx: Any, g: Tensor) -> tuple:
    return pick(g, ctx.indices, ctx.rank), _none(ctx, g)


def _none(ctx: Any, g: Tensor) -> Tensor | None:
    """Return zeros (None if not needed): a pooling's gradient has, as in torch, the pooled tensor as an input."""
    return g.new_zeros(ctx.shapes[1]) if ctx.needs[1] else None


def pick(x: Tensor, where: Tensor, rank: int) -> Tensor:
    """Return the elements of planes at the given positions, differentiably."""
    found = x.flatten(-rank).gather(-1, where.flatten(-rank))
    return found.view(where.shape)


# ------------------------------------------------------------------------------------------- average


def average(node: str, x: Tensor, window: Window) -> Tensor:
    """Return the mean of each window; `node` is the grad node's name without "Backward0"."""
    order = _image_order(node, x, window)
    straight = x if order is None else formats.turned(x, order)
    (value,) = _averaged((straight,), window, order is not None)
    value = _laid_out(node, x, value if order is None else formats.turned_back(value, order))
    saved = {"self": x, "window": window, "node": node}
    graph.record(f"{node}Backward0", (x,), value, _average_back, saved)
    return value


@Replayed.of_memory
def _averaged(xs: Sequence[Tensor], window: Window, last: bool, back: bool = False) -> list[Tensor]:
    (x,) = xs
    backend, run = get_backend(x.device), family.average_back if back else family.average
    with backend.lock:
        found = run(backend, core.kernel_operand(x), window, last=last)
    return [core.result(found, x.device)]


def _shared_back(gs: Sequence[Tensor], window: Window, last: bool) -> list[Tensor]:
    """Compute the gradient of an average pooling."""
    return _averaged(gs, window, last, True)


def _average_back(ctx: Any, g: Tensor) -> Tensor:
    window, node = ctx.window, ctx.node
    _check_gradient(node, g)
    with unrecorded():
        value = _by_image_order(_shared_back, ctx, g)
    value = _laid_out(node, ctx.self, value)
    saved = {"window": window, "node": node}
    graph.record(f"{node}BackwardBackward0", (g, ctx.self), value, _average_twice, saved)
    return value


def _average_twice(ctx: Any, g: Tensor) -> tuple:
    return average(ctx.node, g, ctx.window), _none(ctx, g)


def filled(x: Tensor, out_size: Any) -> Any:
    """Replace None among output sizes by the input's size."""
    if isinstance(out_size, int):
        return out_size
    if x.ndim <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    sizes = x.shape[x.ndim - len(out_size) :]
    return [n if v is None else v for v, n in zip(out_size, sizes, strict=True)]


def rand(x: Tensor, *shape: int) -> Tensor:
    """Draw from [0, 1) in a tensor's dtype on its device."""
    return FUNCTIONS["rand"](*shape, dtype=x.dtype, device=x.device)
