"""Joining: cat, stack and the forms by direction that are made of them.

Pending operands are computed straight into their part of the result. Owns the lists of tensors that such functions take. Must not
know what repeats, turns or combines tensors (repeats.py, turns.py, meshes.py), nor how they are cut apart (parts.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import dtypes, layouts
from ..autograd import record as graph
from ..codegen.move import join as kernels
from ..codegen.pointwise import IDENTITY
from ..lazy import Expr
from ..memory_format import contiguous_format
from ..runtime import get_backend
from ..size import Size
from ..storage import Storage
from . import core, formats, writes
from .changes import zeros
from .core import Tensor, is_tensor
from .kinds import Sizes
from .replay import Replayed
from .row import FUNCTIONS, METHODS, public, titled


def tensor_list(function: str, tensors: Any) -> list[Tensor]:
    """Return the tensors of an argument; torch's TypeError for anything but a tuple or list of tensors."""
    if is_tensor(tensors) or not isinstance(tensors, tuple | list):
        raise TypeError(
            f"{function}(): argument 'tensors' (position 1) must be tuple of Tensors, not {type(tensors).__name__}"
        )
    tensor = core.Registry.tensor
    for x in tensors:
        if not isinstance(x, tensor):
            place = next(i for i, x in enumerate(tensors) if not is_tensor(x))
            raise TypeError(
                f"expected Tensor as element {place} in argument 0, but got {type(x).__name__}"
            )
    return list(tensors)


def listed(args: tuple) -> list[Tensor]:
    """Accept tensors one by one or as one sequence."""
    return list(args[0]) if len(args) == 1 and isinstance(args[0], tuple | list) else list(args)


# ------------------------------------------------------------------------------------------- cat and stack


def _fresh(dims: Sequence[int], dt: dtypes.dtype, dev: Any) -> Tensor:
    backend = get_backend(dev)
    backend.require(dt)
    return core.make(
        Storage.empty(backend, layouts.numel(tuple(dims)) * dt.itemsize), Size(dims), dt, dev
    )


def _place(x: Tensor, part: Tensor) -> None:
    """Compute or copy `x` into a part of newly allocated memory, converting its dtype."""
    expr = core.operand(x, part.shape)
    writes.write(part, Expr(IDENTITY, x.dtype, x.dtype, part.shape, (expr,)))


def _interleaved(xs: Sequence[Tensor], dim: int, out: Tensor) -> bool:
    """Fill `out` in one launch if the tensors' runs of elements, from `dim` on, are equal and short.

    Return whether `out` was filled.
    """
    first = xs[0]
    length = layouts.numel(tuple(first.shape[dim:]))
    if not kernels.interleaves(out.numel(), length, len(xs), out.dtype.itemsize):
        return False
    for x in xs:
        if x.dtype is not out.dtype or x.shape != first.shape or not x._contig or x._storage.waits:
            return False
    backend = out._storage.backend
    kernels.interleave(
        backend, [core.kernel_operand(x) for x in xs], length, core.kernel_operand(out)
    )
    return True


def _beside(xs: Sequence[Tensor], dim: int, out: Tensor) -> bool:
    """Fill `out` in one launch if all tensors are dense, in memory, and their rows (from `dim` on) suit.

    Return whether `out` was filled.
    """
    backend = out._storage.backend
    widths = [layouts.numel(tuple(x.shape[dim:])) for x in xs]
    rows = layouts.numel(tuple(out.shape[:dim]))
    if not kernels.goes_beside(backend, rows, widths, out.dtype.itemsize):
        return False
    for x in xs:
        if x.dtype is not out.dtype or not x._contig or x._storage.waits:
            return False
    operands = [core.kernel_operand(x) for x in xs]
    kernels.beside(backend, operands, widths, core.kernel_operand(out))
    return True


def _joined(
    parts: Sequence[Tensor], dim: int, dims: Sequence[int], dt: dtypes.dtype, dev: Any
) -> Tensor:
    """Write tensors one after another along a dimension of a fresh tensor, which is channels last where they all are."""
    if _images(parts):
        order = formats.order(layouts.channels_last_strides(tuple(dims)))
        turned = [formats.turned(x, order) for x in parts]
        (joined,) = _in_a_row(turned, order.index(dim), Sizes([dims[d] for d in order]), dt, dev)
        return formats.turned_back(joined, order)
    return _in_a_row(parts, dim, Sizes(dims), dt, dev)[0] if parts else _fresh(dims, dt, dev)


def _images(xs: Sequence[Tensor]) -> bool:
    return bool(xs) and all(formats.suggested(x) is not contiguous_format for x in xs)


@Replayed
def _in_a_row(
    parts: Sequence[Tensor], dim: int, dims: tuple[int, ...], dt: dtypes.dtype, dev: Any
) -> list[Tensor]:
    out = _fresh(dims, dt, dev)
    if _interleaved(parts, dim, out) or _beside(parts, dim, out):
        return [out]
    start = 0
    for x in parts:
        n = x.shape[dim]
        if x.numel():
            new = layouts.slice_(out.shape, out._strides, 0, dim, start, start + n)
            _place(x, core.make(out._storage, Size(new[0]), dt, dev, new[1], new[2]))
        start += n
    return [out]


@public(aliases=("concat", "concatenate"), method=False)
def cat(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Join tensors along a dimension; dtypes promote, other sizes must agree, empty 1-D tensors are passed over."""
    xs = tensor_list("cat", tensors)
    if not xs:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    shapes = [x.shape for x in xs]
    if () in shapes:
        raise RuntimeError(
            f"zero-dimensional tensor (at position {shapes.index(())}) cannot be concatenated"
        )
    real = [x for x in xs if x.shape != (0,)] if (0,) in shapes else xs
    first = real[0] if real else xs[0]
    dim = layouts.wrap_dim(dim, first.ndim) if real else 0
    dims = list(first.shape)
    if shapes.count(first.shape) == len(shapes):
        dims[dim] *= len(xs)
    else:
        _check_sizes(shapes, first.shape, dim)
        dims[dim] = sum([x.shape[dim] for x in real])
    dev, dt = _common_device(xs), _common_dtype(xs)
    if out is not None:
        _check_cast(dt, out)
    value = _joined(real, dim, dims, dt, dev)
    if graph.needs_grad(*xs):
        lengths = [0 if tuple(x.shape) == (0,) else x.shape[dim] for x in xs]
        saved = {"dim": dim, "lengths": lengths}
        graph.record("CatBackward0", xs, value, _cat_back, saved, _cat_push)
    return value if out is None else writes.deliver(value, out, "cat", xs, apart=True)


def _check_sizes(shapes: Sequence[Size], first: Size, dim: int) -> None:
    """Raise torch's errors for tensors that do not fit to the first one; empty 1-D ones are passed over."""
    for place, shape in enumerate(shapes):
        if shape in (first, (0,)):
            continue
        if len(shape) != len(first):
            raise RuntimeError(
                f"Tensors must have same number of dimensions: got {len(first)} and {len(shape)}"
            )
        for d, (n, m) in enumerate(zip(first, shape, strict=True)):
            if d != dim and n != m:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {dim}. Expected size {n} but got size {m} for tensor number {place} in the list."
                )


def _common_device(xs: Sequence[Tensor]) -> Any:
    devices = [x.device for x in xs]
    return devices[0] if devices.count(devices[0]) == len(xs) else core.common_device(xs)


def _common_dtype(xs: Sequence[Tensor]) -> dtypes.dtype:
    found = [x.dtype for x in xs]
    return found[0] if found.count(found[0]) == len(xs) else core.result_type(xs)


def _filled(ctx: Any, out: Tensor, parts: Sequence[Tensor | None]) -> list[Tensor]:
    """Return the parts' tangents, with zeros for a part that has none."""
    return [
        out.new_zeros(shape) if p is None else p.to(out.device, out.dtype)
        for p, shape in zip(parts, ctx.shapes, strict=True)
    ]


def _cat_push(ctx: Any, out: Tensor, *parts: Tensor | None) -> Tensor:
    return cat(_filled(ctx, out, parts), ctx.dim)


def _stack_push(ctx: Any, out: Tensor, *parts: Tensor | None) -> Tensor:
    return stack(_filled(ctx, out, parts), ctx.dim)


def _stack_back(ctx: Any, g: Tensor) -> tuple:
    return tuple(g.unbind(ctx.dim))


def _cat_back(ctx: Any, g: Tensor) -> tuple:
    grads: list[Any] = []
    start = 0
    for n, wanted, dims in zip(ctx.lengths, ctx.needs, ctx.shapes, strict=True):
        if not wanted:
            grads.append(None)
        elif tuple(dims) == (0,):
            grads.append(zeros(g, dims))
        else:
            grads.append(g.narrow(ctx.dim, start, n))
        start += n
    return tuple(grads)


def _check_cast(dt: dtypes.dtype, out: Tensor) -> None:
    if not dtypes.can_cast(dt, out.dtype):
        raise TypeError(
            f"torch.cat(): input types can't be cast to the desired output type {out.dtype.scalar_name}"
        )


@public(method=False)
def stack(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Join tensors of one shape along a new dimension."""
    xs = tensor_list("stack", tensors)
    if not xs:
        raise RuntimeError("stack expects a non-empty TensorList")
    first = xs[0]
    dim = layouts.wrap_dim(dim, first.ndim + 1)
    shapes = [x.shape for x in xs]
    if shapes.count(first.shape) < len(shapes):
        place, shape = next((i, s) for i, s in enumerate(shapes) if s != first.shape)
        raise RuntimeError(
            f"stack expects each tensor to be equal size, but got {list(first.shape)} at entry 0 and {list(shape)} at entry {place}"
        )
    dev, dt = _common_device(xs), _common_dtype(xs)
    if out is not None:
        _check_cast(dt, out)
    value = _stacked(xs, dim, dt, dev)
    if graph.needs_grad(*xs):
        graph.record("StackBackward0", xs, value, _stack_back, {"dim": dim}, _stack_push)
    return value if out is None else writes.deliver(value, out, "stack", xs)


def _stacked(xs: Sequence[Tensor], dim: int, dt: dtypes.dtype, dev: Any) -> Tensor:
    before, after = tuple(xs[0].shape[:dim]), tuple(xs[0].shape[dim:])
    shape = (*before, len(xs), *after)
    if after and _images(xs):
        joined = _joined(xs, dim, (*before, len(xs) * after[0], *after[1:]), dt, dev)
        strides = layouts.view_strides(tuple(joined.shape), joined._strides, shape)
        return core.make(joined._storage, Size(shape), dt, dev, strides)
    return _side_by_side(xs, dim, Sizes(shape), dt, dev)[0]


@Replayed
def _side_by_side(
    xs: Sequence[Tensor], dim: int, shape: tuple[int, ...], dt: dtypes.dtype, dev: Any
) -> list[Tensor]:
    value = _fresh(shape, dt, dev)
    if value.numel() and not (_interleaved(xs, dim, value) or _beside(xs, dim, value)):
        for place, x in enumerate(xs):
            new = layouts.select(value.shape, value._strides, 0, dim, place)
            _place(x, core.make(value._storage, Size(new[0]), dt, dev, new[1], new[2]))
    return [value]


def _some(function: str, tensors: Any) -> list[Tensor]:
    xs = tensor_list(function, tensors)
    if not xs:
        raise RuntimeError(f"{function} expects a non-empty TensorList")
    return xs


@public(method=False)
def hstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Join along the second dimension, 1-D tensors along their only one."""
    xs = [atleast_1d(x) for x in _some("hstack", tensors)]
    return cat(xs, 0 if xs[0].ndim == 1 else 1, out=out)


@public(method=False, aliases=("row_stack",))
def vstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Join along the first dimension; 1-D tensors are rows."""
    return cat([atleast_2d(x) for x in _some("vstack", tensors)], 0, out=out)


@public(method=False)
def dstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Join along the third dimension."""
    return cat([atleast_3d(x) for x in _some("dstack", tensors)], 2, out=out)


@public(method=False)
def column_stack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Join along the second dimension; 0-D and 1-D tensors are columns."""
    xs = _some("column_stack", tensors)
    return hstack([x if x.ndim > 1 else x.reshape(x.numel(), 1) for x in xs], out=out)


def _at_least(name: str, rank: int, raised: Callable[[Tensor], Tensor]) -> Callable:
    def function(*tensors: Any) -> Any:
        if len(tensors) == 1 and is_tensor(tensors[0]):
            return raised(tensors[0])
        return tuple(raised(x) for x in tensor_list(name, listed(tensors)))

    titled(
        function,
        name,
        f"View tensors (one, several or a sequence) with at least {rank} dimension{'s' * (rank > 1)}.",
    )
    FUNCTIONS[name] = METHODS[name] = function
    return function


def _raise_2d(x: Tensor) -> Tensor:
    return x.reshape(1, 1) if not x.ndim else x.unsqueeze(0) if x.ndim == 1 else x


def _raise_3d(x: Tensor) -> Tensor:
    if not x.ndim:
        return x.reshape(1, 1, 1)
    return x.unsqueeze(0).unsqueeze(-1) if x.ndim == 1 else x.unsqueeze(-1) if x.ndim == 2 else x


atleast_1d = _at_least("atleast_1d", 1, lambda x: x if x.ndim else x.reshape(1))
atleast_2d = _at_least("atleast_2d", 2, _raise_2d)
atleast_3d = _at_least("atleast_3d", 3, _raise_3d)
