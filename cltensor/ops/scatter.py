"""Gathering and scattering along a dimension: gather, scatter and its reductions, take, put.

Each op that writes is stated once, as a change (changes.py). Indices out of range are found by the kernels. The index_* family is
in along.py, subscripts are in index.py.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from .. import dtypes, layouts
from ..autograd import record as graph
from ..autograd.mode import unrecorded
from ..codegen.index import lookup as kernels
from ..codegen.index import scatter as writing
from ..errors import warn_once
from ..lazy import Expr
from . import core, writes
from .changes import (
    INTEGERS,
    backend_of,
    both,
    change,
    crop,
    is_zero,
    like,
    need_tensor,
    reading,
    settled_copy,
    target,
    uncrop,
    zeros,
)
from .composite import plain
from .core import NUMBERS, Tensor, is_tensor
from .kinds import Sizes
from .refusals import raising
from .replay import Replayed
from .row import public
from .selection import where
from .values import check_out_dtype, check_value

# ------------------------------------------------------------------------------------------- gather, scatter


def _check_index(function: str, index: Tensor) -> None:
    need_tensor(function, index=index)
    if index.dtype not in INTEGERS and index.numel():
        raise RuntimeError(f"{function}(): Expected dtype int32/int64 for index")


@public()
def gather(
    input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False, out: Tensor | None = None
) -> Tensor:
    """Take `input[index[i][j]][j]` (for dim 0), in the shape of `index`."""
    _check_index("gather", index)
    check_out_dtype(input.dtype, out)
    dim = layouts.wrap_dim(dim, input.ndim)
    index = like(index, input)
    if index.numel():
        if max(1, index.ndim) != max(1, input.ndim):
            raise RuntimeError(
                "Index tensor must have the same number of dimensions as input tensor"
            )
        for d in range(min(index.ndim, input.ndim)):
            if d != dim and index.shape[d] > input.shape[d]:
                raise RuntimeError(
                    f"Size does not match at dimension {d} expected index {list(index.shape)} to be no larger than self "
                    f"{list(input.shape)} apart from dimension {dim}"
                )
        (value,) = _gathered((input, index), dim)
    else:
        value = input.new_empty(tuple(index.shape))
    if graph.needs_grad(input):
        graph.record(
            "GatherBackward0",
            (input,),
            value,
            _gather_back,
            {"dim": dim, "index": index, "sparse_grad": sparse_grad},
        )
    return (
        value if out is None else writes.deliver(value, out, "gather", (input, index), apart=True)
    )


@Replayed.of_memory
def _gathered(operands: Sequence[Tensor], dim: int) -> list[Tensor]:
    x, index = operands
    found = kernels.gather(backend_of(x), core.kernel_operand(x), dim, core.kernel_operand(index))
    return [core.result(found, x.device)]


def _gather_back(ctx: Any, g: Tensor) -> Tensor:
    return zeros(g, ctx.shapes[0]).scatter_add(ctx.dim, ctx.index, g)


def _check_scatter(t: Tensor, dim: int, index: Tensor, src: Any) -> tuple[int, Tensor, Any]:
    _check_index("scatter", index)
    dim = layouts.wrap_dim(dim, len(t.shape))
    index, many = like(index, t), is_tensor(src)
    if many:
        if src.dtype is not t.dtype:
            raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
        src = like(src, t)
    if not index.numel():
        return dim, index, src
    given, sizes = index.shape, t.shape
    if given == sizes and (not many or src.shape == given):
        return dim, index, src
    rank = len(given) or 1
    if rank != (len(sizes) or 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as self tensor")
    if many and rank != (len(src.shape) or 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    wrong = [n > m and d != dim for d, (n, m) in enumerate(zip(given, sizes, strict=False))]
    if many:
        wrong += [n > m for n, m in zip(given, src.shape, strict=False)]
    if True in wrong:
        larger = f" and to be no larger size than src {list(src.shape)}" if many else ""
        raise RuntimeError(
            f"Expected index {list(given)} to be no larger than self {list(sizes)} apart from dimension {dim}{larger}"
        )
    return dim, index, src


def _scatter_into(
    t: Tensor,
    dim: int,
    index: Tensor,
    src: Any,
    reduce: str | None = None,
    include_self: bool = True,
) -> None:
    if not index.numel():
        return
    t._storage.for_write()
    operands, number = ((t, index, src), None) if is_tensor(src) else ((t, index), src)
    _scattered(operands, dim, number, reduce, include_self)


@functools.partial(Replayed, memory=True, exact=True)
def _scattered(
    operands: Sequence[Tensor], dim: int, number: Any, reduce: str | None, include_self: bool
) -> list[Tensor]:
    t, index, *src = operands
    at, value = reading(index, t), reading(src[0], t) if src else number
    writing.scatter(backend_of(t), target(t), dim, at, value, reduce, include_self)
    return []


def _anew(t: Tensor, dim: int, index: Tensor, src: Any, reduce: str | None = None) -> Tensor | None:
    """Return a copy of `t` with `src` scattered into its rows, each row built in local memory and written once.

    None where that kernel does not apply: it needs the last dim, an index with a row for each row of `t`, dense
    operands in memory and short rows. For all others, `_scatter_into` writes into a copy.
    """
    if dim != t.ndim - 1 or not index.numel() or index.shape[:-1] != t.shape[:-1]:
        return None
    count = index.shape[-1] if index.ndim else 1
    adds, many = reduce is not None, is_tensor(src)
    if not writing.fits_anew(backend_of(t), t.dtype, tuple(t.shape), count, adds, not many):
        return None
    operands = [index]
    if many:
        if src.shape != index.shape or not (src.is_contiguous() or not any(src.stride())):
            return None
        operands.append(src)
    elif reduce is not None:
        return None
    start = t._storage.value
    if not is_zero(start):
        # Computing the pending value writes memory that can serve as the copy.
        if start.__class__ is Expr:
            return None
        operands.append(t)
    if not (index.is_contiguous() and t.is_contiguous()):
        return None
    number = None if many else src
    based = operands[-1] is t
    return _scattered_anew(operands, Sizes(t.shape), t.dtype, number, reduce, based)[0]


@functools.partial(Replayed, memory=True, exact=True)
def _scattered_anew(
    operands: Sequence[Tensor], shape: Any, dt: Any, number: Any, reduce: str | None, based: bool
) -> list[Tensor]:
    index, *others = operands
    base = core.kernel_operand(others.pop()) if based else None
    value = core.kernel_operand(others[0]) if others else number
    at = core.kernel_operand(index)
    made = writing.scattered(backend_of(index), dt, tuple(shape), base, at, value, reduce)
    return [core.result(made, index.device)]


def _scatter(
    inplace: bool,
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Any = None,
    *,
    value: Any = None,
    reduce: str | None = None,
) -> Tensor:
    """Write `src` (a tensor or a number) to `input[index[i][j]][j]` (for dim 0); `reduce`: "add" or "multiply"."""
    src = value if src is None else src
    if src is None:
        raise TypeError('scatter() missing 1 required positional arguments: "src"')
    if not is_tensor(src):
        if src.__class__ not in NUMBERS:
            src = src.item()
        check_value(src, input.dtype)
    dim, index, src = _check_scatter(input, dim, index, src)
    if reduce is not None:
        if reduce not in ("add", "multiply"):
            raise RuntimeError("reduce argument must be either add or multiply.")
        if is_tensor(src):
            _warn_reduce()
        return change(
            "NotImplemented",
            input,
            (),
            lambda t: _scatter_into(t, dim, index, src, reduce),
            _no_formula,
            {},
            inplace=inplace,
        )
    saved = {"dim": dim, "index": index}
    if is_tensor(src):
        return change(
            "ScatterBackward0",
            input,
            (src,),
            lambda t: _scatter_into(t, dim, index, src),
            _scatter_back,
            saved,
            inplace=inplace,
            anew=lambda t: _anew(t, dim, index, src),
        )
    return change(
        "ScatterBackward1",
        input,
        (),
        lambda t: _scatter_into(t, dim, index, src),
        _scatter_value_back,
        saved,
        inplace=inplace,
        anew=lambda t: _anew(t, dim, index, src),
    )


def _warn_reduce() -> None:
    warn_once(
        "The reduce argument of torch.scatter with Tensor src is deprecated and will be removed in a future PyTorch release. Use "
        "torch.scatter_reduce instead for more reduction options."
    )


_no_formula = raising("derivative for aten::scatter is not implemented")


def _scatter_back(ctx: Any, g: Tensor) -> tuple:
    own = g.scatter(ctx.dim, ctx.index, 0) if ctx.needs[0] else None
    return own, uncrop(g.gather(ctx.dim, ctx.index), ctx.shapes[1]) if ctx.needs[1] else None


def _scatter_value_back(ctx: Any, g: Tensor) -> Tensor:
    return g.scatter(ctx.dim, ctx.index, 0)


def _scatter_add(inplace: bool, input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Add `src` to `input[index[i][j]][j]` (for dim 0); duplicates add up in index order."""
    need_tensor("scatter_add", src=src)
    dim, index, src = _check_scatter(input, dim, index, src)
    return change(
        "ScatterAddBackward0", input, (src,), lambda t: _scatter_into(t, dim, index, src, "add"), _scatter_add_back,
        {"dim": dim, "index": index}, inplace=inplace, anew=lambda t: _anew(t, dim, index, src, "add"),
    )  # fmt: skip


def _scatter_add_back(ctx: Any, g: Tensor) -> tuple:
    return g, uncrop(g.gather(ctx.dim, ctx.index), ctx.shapes[1]) if ctx.needs[1] else None


REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


def _scatter_reduce(
    inplace: bool,
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    """Reduce `src` into `input[index[i][j]][j]` by "sum", "prod", "mean", "amax" or "amin"."""
    need_tensor("scatter_reduce", src=src)
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    if reduce not in REDUCTIONS:
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
        )
    dim, index, src = _check_scatter(input, dim, index, src)
    saved = {"dim": dim, "index": index, "reduce": reduce, "include_self": include_self}

    def run(t: Tensor) -> None:
        _scatter_into(t, dim, index, src, reduce, include_self)

    if reduce in ("prod", "amax", "amin") and graph.needs_grad(input, src):
        saved |= {"self": input, "src": src}
    return with_result(
        "ScatterReduceBackward0", input, src, run, _scatter_reduce_back, saved, reduce, inplace
    )


def with_result(
    node: str,
    input: Tensor,
    src: Tensor,
    run: Callable,
    backward: Callable,
    saved: dict,
    reduce: str,
    inplace: bool,
) -> Tensor:
    """Do what `change` does, for reductions whose gradient needs the result."""
    if reduce not in ("prod", "amax", "amin") or not graph.needs_grad(input, src):
        return change(node, input, (src,), run, backward, saved, inplace=inplace)
    if inplace:
        saved["result"] = input
        return change(node, input, (src,), run, backward, saved, inplace=True)
    with unrecorded():
        out = settled_copy(node, input)
        run(out)
    saved["result"] = out
    graph.record(node, (input, src), out, backward, saved)
    return out


def _scatter_reduce_back(ctx: Any, g: Tensor) -> tuple:
    dim, index = ctx.dim, ctx.index
    own, part = reduction_grads(
        ctx, g,
        pick=lambda v: v.gather(dim, index),
        put=lambda z, v: z.scatter_add(dim, index, v),
        again=lambda t, v: t.scatter_reduce(dim, index, v, ctx.reduce, include_self=ctx.include_self),
        fit=lambda v: crop(v, tuple(index.shape)),
        names=("scatter_reduce", "src"),
    )  # fmt: skip
    if own is not None and not ctx.include_self:
        own = own.scatter(dim, index, 0)
    return own, None if part is None else uncrop(part, ctx.shapes[1])


def _underivable(part: Tensor, function: str, source: str) -> Tensor:
    """Return the gradient `part` so that differentiating it raises.

    The value is correct, but its derivative would not be where several zeros are multiplied into one position.
    """

    def back(ctx: Any, g: Tensor) -> Any:
        raise RuntimeError(
            f"{function}(): Double backward is unsupported for {source} when >1 zeros in {source} are scattered to the same position in self"
        )

    value = part.detach()
    graph.record("Error", (part,), value, back)
    return value


def reduction_grads(
    ctx: Any, g: Tensor, pick: Callable, put: Callable, again: Callable, fit: Callable, names: tuple[str, str]
) -> tuple:  # fmt: skip
    """Gradients of a reduction into positions: `pick` reads them, `put` adds to them, `again` repeats the reduction.

    names: the function's and its source's name, for an error's text.
    """
    reduce, first, second = ctx.reduce, ctx.needs[0], ctx.needs[1]
    if reduce == "sum":
        return g, pick(g) if second else None
    if reduce == "mean":
        start = g.new_ones(g.shape) if ctx.include_self else zeros(g, g.shape)
        seed = pick(g)
        count = put(start, g.new_ones(seed.shape)).clamp(min=1)
        share = g / count
        return share, pick(share) if second else None
    t, src, result = ctx.self, fit(ctx.src), ctx.result
    if reduce == "prod":
        own = part = None
        if first:
            safe = t.masked_fill(t == 0, 1)
            own = g * again(safe, src) / safe
        if second:
            zero = src == 0
            count = put(zeros(t, t.shape), zero.to(t.dtype))
            lone = zero & (pick(count) == 1)
            others = again(t, src.masked_fill(lone, 1))
            part = where(lone, pick(g * others), pick(g * result) / src.masked_fill(zero, 1))
            if graph.requires_grad(part) and bool((count > 1).any()):
                part = _underivable(part, *names)
        return own, part
    mine = (t == result).to(t.dtype)
    theirs = (src == pick(result)).to(t.dtype)
    share = g / put(mine if ctx.include_self else zeros(mine, mine.shape), theirs).clamp(min=1)
    return mine * share if first else None, theirs * pick(share) if second else None


both("scatter", _scatter)
both("scatter_add", _scatter_add)
both("scatter_reduce", _scatter_reduce)

# ------------------------------------------------------------------------------------------- take, put


def _flat_index(function: str, index: Tensor) -> None:
    need_tensor(function, index=index)
    if index.dtype is not dtypes.int64:
        raise RuntimeError(
            f"{function}(): Expected a long tensor for index, but got {index.dtype.scalar_name}"
        )


@public()
def take(input: Tensor, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Take elements of the flattened tensor; negative indices count from the end."""
    _flat_index("take", index)
    if is_tensor(out):
        kinds = f"self.dtype = {input.dtype.scalar_name} and out.dtype = {out.dtype.scalar_name}"
        check_out_dtype(
            input.dtype,
            out,
            f"take(): self and out expected to have the same dtype, but got {kinds}",
        )
    index = like(index, input)
    (value,) = _taken((input, index))
    if graph.needs_grad(input):
        graph.record("TakeBackward0", (input,), value, _take_back, {"index": index})
    return value if out is None else writes.deliver(value, out, "take", (input, index), apart=True)


@Replayed.of_memory
def _taken(operands: Sequence[Tensor]) -> list[Tensor]:
    x, index = operands
    found = kernels.take(backend_of(x), core.kernel_operand(x), core.kernel_operand(index))
    return [core.result(found, x.device)]


def _take_back(ctx: Any, g: Tensor) -> Tensor:
    return zeros(g, ctx.shapes[0]).put_(ctx.index, g, True)


@public()
def take_along_dim(
    input: Tensor, indices: Tensor, dim: int | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Take along a dimension where sizes broadcast in the others; of the flattened tensor without `dim`.

    Along a dimension, indices count modulo its size.
    """
    need_tensor("take_along_dim", indices=indices)
    if indices.dtype is not dtypes.int64:
        raise RuntimeError(
            f"torch.take_along_dim(): dtype of indices should be Long but got {indices.dtype.scalar_name}"
        )
    if dim is None:
        return gather(input.reshape(-1), 0, indices.reshape(-1), out=out)
    if input.ndim != indices.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{input.ndim} dimensions for input, and {indices.ndim} dimensions for indices"
        )
    dim = layouts.wrap_dim(dim, input.ndim)
    if not input.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    if _is_plain_along(input, dim, indices) and out is None:
        return _taken_along((input, indices), dim, input.shape[dim])[0]
    rest = [list(input.shape), list(indices.shape)]
    rest[0][dim] = rest[1][dim] = 1
    wide = list(layouts.broadcast_shapes(tuple(rest[0]), tuple(rest[1])))
    wide[dim] = input.shape[dim]
    indices = indices.remainder(wide[dim]) if wide[dim] else indices
    input = input.expand(tuple(wide))
    wide[dim] = indices.shape[dim]
    return gather(input, dim, indices.expand(tuple(wide)), out=out)


def _is_plain_along(input: Tensor, dim: int, indices: Tensor) -> bool:
    """Return whether small tensors need no broadcasting, recording or move to another device to take along `dim`."""
    if not (input.numel() and indices.numel()) or not plain((input, indices)):
        return False
    if input.device != indices.device or graph.needs_grad(input):
        return False
    before, after = slice(None, dim), slice(dim + 1, None)
    mine, theirs = tuple(input.shape), tuple(indices.shape)
    return mine[before] == theirs[before] and mine[after] == theirs[after]


@Replayed.of_memory
def _taken_along(operands: Sequence[Tensor], dim: int, size: int) -> list[Tensor]:
    x, index = operands
    with unrecorded():
        at = index.remainder(size)
    found = kernels.gather(backend_of(x), core.kernel_operand(x), dim, core.kernel_operand(at))
    return [core.result(found, x.device)]


def _put(
    inplace: bool, input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False
) -> Tensor:
    """Write `source` to positions of the flattened tensor, or add it there."""
    _flat_index("put_", index)
    need_tensor("put_", source=source)
    if source.dtype is not input.dtype:
        raise RuntimeError(
            f"put_(): self and source expected to have the same dtype, but got self.dtype = {input.dtype.scalar_name} and source.dtype = "
            f"{source.dtype.scalar_name}"
        )
    if source.numel() != index.numel():
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source.numel()}, index.numel() = {index.numel()}"
        )
    index, values = like(index, input), like(source, input)

    def run(t: Tensor) -> None:
        if index.numel():
            t._storage.for_write()
            shape = tuple(index.shape)
            new = values if values.shape == shape else values.detach().reshape(shape)
            _written((t, index, new), accumulate)

    return change(
        "PutBackward0",
        input,
        (values,),
        run,
        _put_back,
        {"index": index, "accumulate": accumulate},
        inplace=inplace,
    )


@Replayed.of_memory
def _written(operands: Sequence[Tensor], accumulate: bool) -> list[Tensor]:
    t, index, values = operands
    at, new = reading(index, t), reading(values, t)
    kernels.put(backend_of(t), target(t), at, new, accumulate)
    return []


def _put_back(ctx: Any, g: Tensor) -> tuple:
    own = None
    if ctx.needs[0]:
        own = g if ctx.accumulate else g.put(ctx.index, zeros(g, ctx.index.shape))
    return own, g.take(ctx.index).reshape(tuple(ctx.shapes[1])) if ctx.needs[1] else None


both("put", _put, out=False)
