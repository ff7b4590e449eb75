"""Ops that read or write whole positions of a dimension: index_select, index_add, select_scatter and similar.

Calls the kernels, and records changes through changes.py and scatter.py; subscripts are in index.py.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from .. import dtypes, layouts
from ..autograd import record as graph
from ..autograd.mode import unrecorded
from ..codegen.index import lookup as kernels
from ..codegen.index import scatter as writing
from ..errors import warn_once
from . import core, formats, parts, writes
from .changes import INTEGERS, backend_of, both, change, like, need_tensor, reading, target, zeros
from .collect import collected
from .core import Tensor, is_tensor
from .replay import Replayed
from .row import public
from .scatter import REDUCTIONS, reduction_grads, with_result
from .selection import warn_expanded
from .values import check_out_dtype, check_value, number

# ------------------------------------------------------------------------------------------- index_*


@public()
def index_select(input: Tensor, dim: int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Take the positions `index` (1-D) of a dimension."""
    need_tensor("index_select", index=index)
    dim = layouts.wrap_dim(dim, input.ndim)
    if index.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if index.dtype not in INTEGERS:
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    if not input.ndim and index.numel() != 1:
        raise RuntimeError(
            f"index_select(): Index to scalar can have only 1 value, got {index.numel()} value(s)"
        )
    if out is not None:
        check_out_dtype(
            input.dtype, out, "index_select(): self and result must have the same scalar type"
        )
        writes.check_overlap(out, ())
    index = like(index, input)
    describe = None if dim and input.ndim > 1 else _out_of_range
    (value,) = _selected((input, index), dim, describe)
    if graph.needs_grad(input):
        graph.record(
            "IndexSelectBackward0",
            (input,),
            value,
            _index_select_back,
            {"dim": dim, "index": index},
        )
    return (
        value
        if out is None
        else writes.deliver(value, out, "index_select", (input, index), apart=True)
    )


@Replayed.of_memory
def _selected(operands: Sequence[Tensor], dim: int, describe: Any) -> list[Tensor]:
    x, index = operands
    chosen = core.kernel_operand(index)
    found = kernels.index_select(
        backend_of(x), core.kernel_operand(x), dim, chosen, describe=describe
    )
    return [core.result(found, x.device)]


def _out_of_range(value: int, ordinal: int) -> Exception:
    return IndexError("index out of range in self")


def _index_select_back(ctx: Any, g: Tensor) -> Tensor:
    if not ctx.shapes[0]:
        return g
    return zeros(g, ctx.shapes[0]).index_add(ctx.dim, ctx.index, g)


def _rows(g: Tensor, ctx: Any) -> Tensor:
    """Return the gradient of an index_* op's source: `g` at the positions that the op wrote, in the source's shape."""
    return g.index_select(ctx.dim, ctx.index).reshape(tuple(ctx.shapes[1]))


def _same_but(t: Tensor, source: Tensor, dim: int) -> None:
    mine, theirs = list(t.shape), list(source.shape)
    same = len(mine) == len(theirs)
    del mine[dim : dim + 1], theirs[dim : dim + 1]
    if not same or mine != theirs:
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. "
            f"Got self.shape = {list(t.shape)} source.shape = {list(source.shape)}"
        )


def _check_rows(
    function: str, t: Tensor, dim: int, index: Tensor, source: Tensor
) -> tuple[int, Tensor, Tensor]:
    need_tensor(function, index=index, source=source)
    dim = layouts.wrap_dim(dim, len(t.shape))
    if index.dtype not in INTEGERS:
        raise RuntimeError(
            f"{function}(): Expected dtype int32/int64 for index but got: {index.dtype.scalar_name}"
        )
    if len(index.shape) > 1:
        raise IndexError(
            f"{function}(): Index is supposed to be a vector, but got dim: {index.ndim} with type: {index.dtype.scalar_name} and size: {list(index.shape)}"
        )
    if source.dtype is not t.dtype:
        raise RuntimeError(
            f"{function}(): self ({t.dtype.scalar_name}) and source ({source.dtype.scalar_name}) must have the same scalar type"
        )
    sizes, indices = tuple(source.shape), prod(index.shape)
    if dim >= max(len(sizes), 1):
        raise RuntimeError(
            f"{function}(): Indexing dim {dim} is out of bounds of the source tensor with dim {len(sizes)}"
        )
    if not sizes and indices != 1:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    count = sizes[dim] if sizes else 1
    if indices != count:
        raise RuntimeError(
            f"{function}(): Number of indices ({indices}) should be equal to source.size(dim): ({count}), for dim: {dim}"
        )
    if sizes or t.shape:
        _same_but(t, source, dim)
    return dim, like(index, t), like(source, t)


def _index_add(
    inplace: bool, input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1
) -> Tensor:
    """Add `alpha * source` to the positions `index` of a dimension; duplicates add up in index order."""
    alpha = number("index_add_", "alpha", alpha)
    dim, index, values = _check_rows("index_add_", input, dim, index, source)

    def run(t: Tensor) -> None:
        if index.numel() and t.numel():
            if not t.ndim:
                writes.overwrite(t, t.detach() + values.detach().reshape(()) * alpha)
                return
            t._storage.for_write()
            _added((t, index, values), dim, alpha)

    return change(
        "IndexAddBackward0",
        input,
        (values,),
        run,
        _index_add_back,
        {"dim": dim, "index": index, "alpha": alpha},
        inplace=inplace,
        anew=lambda t: None if dim or alpha != 1 else collected(t, index, values, wrap=False),
    )


@functools.partial(Replayed, memory=True, exact=True)
def _added(operands: Sequence[Tensor], dim: int, alpha: Any) -> list[Tensor]:
    t, index, values = operands
    at, add = reading(index, t), reading(values, t)
    writing.index_add(backend_of(t), target(t), dim, at, add, alpha)
    return []


def _index_add_back(ctx: Any, g: Tensor) -> tuple:
    part = None
    if ctx.needs[1]:
        part = _rows(g, ctx)
        part = part if ctx.alpha == 1 else part * ctx.alpha
    return g, part


def _index_copy(inplace: bool, input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Copy `source` to the positions `index` of a dimension."""
    need_tensor("index_copy_", index=index, source=source)
    dim = layouts.wrap_dim(dim, input.ndim)
    if index.ndim > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {index.ndim})")
    count = source.shape[dim] if source.ndim > dim else 1
    if source.ndim == 0 and index.numel() != 1:
        raise IndexError(
            f"index_copy_(): When source is scalar, index should have one element (got {index.numel()})"
        )
    if source.ndim != input.ndim and source.ndim and input.ndim:
        raise IndexError(
            f"index_copy_(): When source and destination are not scalars, their dimensionality must match. Source dimensionality ({source.ndim}), "
            f"destination dimensionality ({input.ndim})"
        )
    if index.dtype is not dtypes.int64:
        raise RuntimeError(
            f"index_copy_(): Expected a long tensor for index, but got {index.dtype.scalar_name}"
        )
    if source.dtype is not input.dtype:
        raise RuntimeError(
            f"index_copy_(): self and source expected to have the same dtype, but got (self) {input.dtype.scalar_name} and (source) "
            f"{source.dtype.scalar_name}"
        )
    if source.ndim == input.ndim:
        mine, theirs = (
            [n for d, n in enumerate(s) if d != dim] for s in (input.shape, source.shape)
        )
        if mine != theirs:
            raise RuntimeError(
                "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
                f"{' '.join(map(str, mine))} at dimension {dim} and source slice shape: {' '.join(map(str, theirs))} at dimension 0."
            )
    if source.ndim and index.numel() != count:
        raise IndexError(
            f"index_copy_(): Number of indices ({index.numel()}) should be equal to source.size(dim) ({count})"
        )
    index, values = like(index, input), like(source, input)

    def run(t: Tensor) -> None:
        if index.numel() and t.numel():
            t._storage.for_write()
            _copied((t, index, values), dim)

    return change(
        "IndexCopyBackward0",
        input,
        (values,),
        run,
        _index_copy_back,
        {"dim": dim, "index": index},
        inplace=inplace,
    )


@Replayed.of_memory
def _copied(operands: Sequence[Tensor], dim: int) -> list[Tensor]:
    t, index, values = operands
    writing.index_copy(backend_of(t), target(t), dim, reading(index, t), reading(values, t))
    return []


def _index_copy_back(ctx: Any, g: Tensor) -> tuple:
    own = g.index_fill(ctx.dim, ctx.index, 0) if ctx.needs[0] else None
    return own, _rows(g, ctx) if ctx.needs[1] else None


def _index_fill(inplace: bool, input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """Fill the positions `index` of a dimension with a number or a 0-dim tensor; negative indices count from the end."""
    need_tensor("index_fill_", index=index)
    if index.dtype is not dtypes.int64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    dim = layouts.wrap_dim(dim, input.ndim)
    if index.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    index = like(index, input)
    if is_tensor(value):
        if value.ndim:
            raise RuntimeError(
                f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
            )
        if value.dtype.is_complex and not input.dtype.is_complex:
            raise RuntimeError(
                "index_fill_(): Converting complex Scalar to non-complex type is not supported"
            )
        new = like(value, input).detach().to(input.dtype)
        if new._storage is input._storage:
            new = core.snapshot(new)  # `value` may be a view of an element that is filled
    else:
        if isinstance(value, complex) and not input.dtype.is_complex:
            raise RuntimeError(
                "index_fill_(): Converting complex Scalar to non-complex type is not supported"
            )
        check_value(value, input.dtype)
        new = value

    def run(t: Tensor) -> None:
        if index.numel() and t.numel():
            t._storage.for_write()
            if is_tensor(new):
                _filled((t, index, new), dim, None)
            else:
                _filled((t, index), dim, new)

    if inplace:
        warn_expanded("index_fill_", input)
    others = (value,) if is_tensor(value) else ()
    saved = {"dim": dim, "index": index}
    return change(
        f"IndexFillBackward{len(others)}",
        input,
        others,
        run,
        _index_fill_back,
        saved,
        inplace=inplace,
        overlap=True,
    )


@functools.partial(Replayed, memory=True, exact=True)
def _filled(operands: Sequence[Tensor], dim: int, number: Any) -> list[Tensor]:
    t, index, *new = operands
    value = core.kernel_operand(new[0]) if new else number
    writing.index_fill(backend_of(t), target(t), dim, reading(index, t), value)
    return []


def _index_fill_back(ctx: Any, g: Tensor) -> tuple:
    own = g.index_fill(ctx.dim, ctx.index, 0) if ctx.needs[0] else None
    if not any(ctx.needs[1:]):
        return own, *[None] * len(ctx.needs[1:])
    # A position counts once however often it is filled.
    where_filled = zeros(g, g.shape).index_fill(ctx.dim, ctx.index, 1)
    return own, (g * where_filled).sum()


def _index_reduce(
    inplace: bool,
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    """Reduce `source` into the positions `index` of a dimension by "prod", "mean", "amax" or "amin"."""
    if reduce not in REDUCTIONS[1:]:
        raise RuntimeError(
            f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}."
        )
    warn_once("index_reduce() is in beta and the API may change at any time.")
    return _reduce_rows(inplace, input, dim, index, source, reduce, include_self)


def _reduce_rows(
    inplace: bool,
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    include_self: bool,
) -> Tensor:
    dim, index, values = _check_rows("index_reduce_", input, dim, index, source)
    saved = {"dim": dim, "index": index, "reduce": reduce, "include_self": include_self}

    def run(t: Tensor) -> None:
        if index.numel() and t.numel():
            at, new = reading(index, t), reading(values, t)
            writing.index_reduce(backend_of(t), target(t), dim, at, new, reduce, include_self)

    if reduce != "mean" and graph.needs_grad(input, values):
        saved |= {"self": input, "src": values}
    return with_result(
        "IndexReduceBackward0", input, values, run, _index_reduce_back, saved, reduce, inplace
    )


def _index_reduce_back(ctx: Any, g: Tensor) -> tuple:
    dim, index = ctx.dim, ctx.index
    own, part = reduction_grads(
        ctx, g,
        pick=lambda v: v.index_select(dim, index),
        put=lambda z, v: z.index_add(dim, index, v),
        again=lambda t, v: _reduce_rows(False, t, dim, index, v, ctx.reduce, ctx.include_self),
        fit=lambda v: v,
        names=("index_reduce", "source"),
    )  # fmt: skip
    if own is not None and not ctx.include_self:
        own = own.index_fill(dim, index, 0)
    return own, part


both("index_add", _index_add)
both("index_copy", _index_copy)
both("index_fill", _index_fill, out=False)
both("index_reduce", _index_reduce)

# ------------------------------------------------------------------------------------------- views written into a copy


def _embedded(
    node: str,
    input: Tensor,
    src: Tensor,
    place: Callable[[Tensor], Tensor],
    in_memory: bool = False,
) -> Tensor:
    """Return a copy of `input` with `src` in the part that `place` views.

    in_memory: which part that is depends on where the copy's elements lie in memory.
    """
    need_tensor(node, src=src)
    with unrecorded():
        out = input.detach().clone()
        part = place(out)
        if part.shape != src.shape:
            raise RuntimeError(
                f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, slice size = {list(part.shape)}"
            )
        part.copy_(src.detach())
    if graph.needs_grad(input, src):
        order = formats.order(out._strides) if in_memory else None
        graph.record(node, (input, src), out, _embedded_back, {"place": place, "order": order})
    return out


def _embedded_back(ctx: Any, g: Tensor) -> tuple:
    own, order = None, ctx.order
    if order is not None:  # lay the gradient as the result lies
        g = g.permute(order).contiguous().permute([order.index(d) for d in range(g.ndim)])
    if ctx.needs[0]:
        nothing = zeros(g, ctx.shapes[1])
        own = _embedded("EmbeddedBackward", g, nothing, ctx.place, order is not None)
    return own, ctx.place(g) if ctx.needs[1] else None


@public()
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """Return a copy with `src` at one index of a dimension."""
    return _embedded("SelectScatterBackward0", input, src, lambda z: parts.select(z, dim, index))


@public()
def slice_scatter(
    input: Tensor,
    src: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Return a copy with `src` at `start`, `start + step`, … before `end` of a dimension.

    RuntimeError where `src` has not the shape of that slice.
    """
    value = _embedded(
        "SliceScatterBackward0", input, src, lambda z: parts.slice_dim(z, dim, start, end, step)
    )
    return writes.deliver(value, out, "slice_scatter", (input, src))


@public()
def diagonal_scatter(
    input: Tensor,
    src: Tensor,
    offset: int = 0,
    dim1: int = 0,
    dim2: int = 1,
) -> Tensor:
    """Return a copy with `src` on a diagonal of two dimensions."""
    return _embedded(
        "DiagonalScatterBackward0", input, src, lambda z: parts.diagonal(z, offset, dim1, dim2)
    )


@public()
def as_strided_scatter(
    input: Tensor,
    src: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
) -> Tensor:
    """Return a copy with `src` in a strided part."""
    return _embedded(
        "AsStridedScatterBackward0",
        input,
        src,
        lambda z: parts.as_strided(z, size, stride, storage_offset),
        in_memory=True,
    )
