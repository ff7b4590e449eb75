"""Subscripts: `x[index]` and `x[index] = value`, and index_put.

A subscript is taken apart into views (ints, slices, None, Ellipsis) and at most one step through index tensors and masks.
The views are made in subscript_views.py; what the items of a subscript are is subscripts.py's. Masks by themselves are
in mask.py, ops along a dimension in scatter.py and along.py.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import dtypes, layouts
from ..autograd import record as graph
from ..autograd import views
from ..autograd.hooks import type_string
from ..codegen.index import lookup as kernels
from ..codegen.operand import Operand
from ..codegen.pointwise import IDENTITY
from ..errors import caller_level
from ..lazy import Expr, Scalar
from ..symbols import remembered
from . import along, core, shape, writes
from .changes import backend_of, both, change, like, reading, target, zeros
from .collect import collected
from .core import NUMBERS, Tensor, is_tensor
from .kinds import Sizes
from .mask import kept, masked_scatter, nonzero
from .operands import check_tensor
from .replay import Replayed
from .selection import masked_fill_, masked_fill_row, warn_expanded, where
from .subscript_views import SCALAR, alias, select_at, slice_at, view_at_once
from .subscripts import (
    MASKS,
    as_integer,
    as_tuple,
    count_dims,
    from_host,
    from_sequence,
    is_sequence,
    type_name,
)
from .values import check_value, refuse_complex

__all__ = ["along", "getitem", "setitem"]

INDICES = (dtypes.int64, dtypes.int32, *MASKS)
Indices = list[tuple[int, Tensor]]  # dimension of the sliced tensor, index tensor or mask


# ------------------------------------------------------------------------------------------- the steps of a subscript


def _steps(x: Tensor, items: Sequence[Any]) -> tuple[Tensor, Indices]:
    """Apply the views of a subscript; returns the view and the index tensors that are left, by dimension."""
    items = [from_sequence(x, i) if is_sequence(i) and as_integer(i) is None else i for i in items]
    named = count_dims(items)
    if named > x.ndim:
        raise IndexError(
            SCALAR
            if not x.ndim and as_integer(items[0]) is not None and len(items) == 1
            else f"too many indices for tensor of dimension {x.ndim}"
        )
    dim, out = 0, x
    found: Indices = []
    for place, item in enumerate(items):
        number = as_integer(item)
        if number is not None:
            out = select_at(out, dim, number, place)
        elif isinstance(item, slice):
            out = slice_at(out, dim, item, skip_whole=True)
            dim += 1
        elif item is Ellipsis:
            dim += x.ndim - named
        elif item is None:
            out = shape.unsqueeze(out, dim)
            dim += 1
        elif item is True or item is False:
            out = shape.unsqueeze(out, dim)
            found.append((dim, _truth(x, item)))
            dim += 1
        elif is_tensor(item):
            if not item.ndim and item.dtype.category < 2:
                if item.dtype in MASKS:
                    out = shape.unsqueeze(out, dim)
                    found.append((dim, _truth(x, bool(item))))
                    dim += 1
                else:
                    out = select_at(out, dim, int(item), place)
            else:
                found.append((dim, item))
                dim += item.ndim if item.dtype in MASKS else 1
        else:
            raise IndexError(
                f"only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got {type_name(item)})"
            )
    return out, found


def _truth(x: Tensor, value: bool) -> Tensor:
    """Return a bool of a subscript as an index along a new dim of size 1: [0] for True, [] for False."""
    return from_host(x, np.zeros(1 if value else 0, np.int64))


# ------------------------------------------------------------------------------------------- index tensors


def _check_mask(x: Tensor, dim: int, mask: Tensor) -> None:
    for j, n in enumerate(mask.shape):
        if dim + j >= x.ndim or n != x.shape[dim + j]:
            raise IndexError(
                f"The shape of the mask {list(mask.shape)} at index {j} does not match the shape of the indexed tensor {list(x.shape)} at index {dim + j}"
            )


def _checked(x: Tensor, found: Indices) -> Indices:
    """Return the index tensors on the tensor's device, after checking their dtypes and the shapes of masks."""
    out = []
    for dim, index in found:
        if index.dtype not in INDICES:
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        if index.dtype is dtypes.uint8:
            warnings.warn(
                "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.",
                UserWarning,
                stacklevel=caller_level(),
            )
        if index.dtype in MASKS:
            _check_mask(x, dim, index)
        out.append((dim, like(index, x)))
    return out


def _expanded(x: Tensor, found: Indices) -> Indices:
    """Return index tensors of one shape: masks become the coordinates where they hold, then all are broadcast together."""
    flat: Indices = []
    for dim, index in found:
        if index.dtype in MASKS:
            flat += [(dim + j, c) for j, c in enumerate(nonzero(index).unbind(1))]
        else:
            flat.append((dim, index))
    shapes = [tuple(i.shape) for _, i in flat]
    try:
        joint = layouts.broadcast_shapes(*shapes) if len(shapes) > 1 else shapes[0]
    except RuntimeError:
        listed = ", ".join(str(list(s)) for s in shapes)
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {listed}"
        ) from None
    if layouts.numel(joint) and any(not x.shape[d] for d, _ in flat):
        raise IndexError("index is out of bounds for dimension with size 0")
    return [(d, i if i.shape == joint else shape.expand(i, joint)) for d, i in flat]


def _operands(flat: Indices, t: Tensor | None = None) -> list[tuple[int, Operand]]:
    return [(d, core.kernel_operand(i) if t is None else reading(i, t)) for d, i in flat]


@Replayed.of_memory
def _taken(operands: Sequence[Tensor], dims: tuple[int, ...]) -> list[Tensor]:
    x, *indices = operands
    flat = _operands(list(zip(dims, indices, strict=True)))
    return [
        core.result(kernels.advanced_get(backend_of(x), core.kernel_operand(x), flat), x.device)
    ]


def _whole_mask(x: Tensor, found: Indices) -> Tensor | None:
    """Return the mask if the subscript is a single mask over all dimensions of `x`, else None."""
    if len(found) == 1 and found[0][1].dtype in MASKS and found[0][1].ndim == x.ndim:
        return found[0][1]
    return None


def _take(x: Tensor, found: Indices) -> Tensor:
    """Return a copy of the elements that index tensors and masks select."""
    found = _checked(x, found)
    mask = _whole_mask(x, found)
    if mask is not None:
        out = kept(x, mask)
        if graph.needs_grad(x):
            graph.record("IndexBackward0", (x,), out, _take_mask_back, {"indices": (mask,)})
        return out
    return _gathered(x, _expanded(x, found))


def _gathered(x: Tensor, flat: Indices) -> Tensor:
    """Return a copy of the elements that integer index tensors of one shape select."""
    (out,) = _taken([x, *[i for _, i in flat]], tuple([d for d, _ in flat]))
    if graph.needs_grad(x):
        graph.record("IndexBackward0", (x,), out, _take_back, _saved(flat))
    return out


def _saved(flat: Indices) -> dict[str, Any]:
    """Return index tensors as torch's nodes save them: one per dim, None for dims without one."""
    indices: list[Any] = [None] * (flat[-1][0] + 1)
    for d, i in flat:
        indices[d] = i
    return {"indices": tuple(indices)}


def _found(indices: Sequence[Any]) -> Indices:
    return [(d, i) for d, i in enumerate(indices) if i is not None]


def _take_mask_back(ctx: Any, g: Tensor) -> Tensor:
    return masked_scatter(zeros(g, ctx.shapes[0]), ctx.indices[0], g)


def _take_back(ctx: Any, g: Tensor) -> Tensor:
    return _write(zeros(g, ctx.shapes[0]), _found(ctx.indices), g, accumulate=True, inplace=False)


def getitem(x: Tensor, index: Any) -> Tensor:
    """Return `x[index]`: a view for ints, slices, None and Ellipsis, a copy through index tensors and masks."""
    kind = index.__class__
    if kind is int:
        return select_at(x, 0, index, 0)
    if kind is slice:
        return slice_at(x, 0, index, skip_whole=False)
    if index is None:
        return shape.unsqueeze(x, 0)
    if index is Ellipsis:
        return alias(x)
    if kind is not tuple:
        index = (index,) if kind is core.Registry.tensor else as_tuple(index) or (index,)
    ready = _ready(x, index)
    if ready is not None:
        return _gathered(x, ready)
    if kind is tuple and not graph.needs_grad(x):
        out = view_at_once(x, index)
        if out is not None:
            return out
    out, found = _steps(x, index)
    if found:
        return _take(out, found)
    return alias(x) if out is x else out


def _ready(x: Tensor, index: tuple) -> Indices | None:
    """Return the index tensors if a subscript consists of nothing else, and they need neither checks nor broadcasting nor
    a move to another device; else None.
    """
    first: Any = None
    for item in index:
        if item.__class__ is not core.Registry.tensor or item.dtype is not dtypes.int64:
            return None
        if first is None:
            first = item
        if item.shape != first.shape or item.device is not x.device:
            return None
    if first is None or not first.shape or len(index) > len(x.shape) or 0 in x.shape:
        return None
    return [*enumerate(index)]


# ------------------------------------------------------------------------------------------- assignment


def setitem(x: Tensor, index: Any, value: Any) -> None:
    """Write a number or tensor, broadcast and converted, to `x[index]`."""
    value = _value(x, value)
    if index is False:
        return
    kind = index.__class__
    if kind is int:
        out, found = select_at(x, 0, index, 0), None
    elif kind is slice:
        out, found = slice_at(x, 0, index, skip_whole=True), None
    elif index is Ellipsis:
        out, found = x, None
    elif index is None or index is True:
        out, found = shape.unsqueeze(x, 0), None
    else:
        if kind is not tuple:
            index = (index,) if kind is core.Registry.tensor else as_tuple(index) or (index,)
        out, found = x, _ready(x, index)
        if found is None:
            plain = view_at_once(x, index) if not graph.needs_grad(x, value) else None
            out, found = (plain, None) if plain is not None else _steps(x, index)
            found = found and _checked(out, found)
    if found:
        if is_tensor(value):
            value = like(value, x)
            if value.ndim and value.shape[0] == 1:
                value = value.reshape(_stripped(value.shape))
        _write(out, found, value, accumulate=False, inplace=True)
    else:
        _copy_to(out, value)


def _value(x: Tensor, value: Any) -> Any:
    if is_tensor(value):
        return value
    if value.__class__ not in NUMBERS and not isinstance(value, NUMBERS):
        raise TypeError(f"can't assign a {type_name(value)} to a {x.type()}")
    if isinstance(value, int) and not isinstance(value, bool):
        if not -(1 << 63) <= value < 1 << 63:
            raise ValueError("Overflow when unpacking long long")
        value = int(value)
    elif isinstance(value, float):
        value = float(value)
    if x.dtype is not dtypes.bool:
        check_value(value, x.dtype)
    return value


def _stripped(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes without leading 1s."""
    d = 0
    while d < len(sizes) and sizes[d] == 1:
        d += 1
    return tuple(sizes[d:])


def _copy_to(t: Tensor, value: Any) -> None:
    if not is_tensor(value):
        _fill(t, value)
    elif value.shape == t.shape or not value.ndim:
        t.copy_(value)
    else:
        value = value.reshape(_stripped(value.shape)) if value.shape[0] == 1 else value
        layouts.expand_shape(value.shape, tuple(t.shape), type_string(value))
        t.copy_(shape.expand(value, tuple(t.shape)) if value.shape != t.shape else value)


def _fill(t: Tensor, value: Any) -> None:
    views.check_inplace(t)
    writes.check_overlap(t, ())
    writes.write(t, Expr(IDENTITY, t.dtype, t.dtype, t.shape, (Scalar(value),)))
    t._vc.value += 1
    if graph.needs_grad(t):
        name = "FillBackward3" if t.ndim else "CopyBackwards"
        graph.rebase(t, name, (t, None), lambda ctx, g: (zeros(g, g.shape), None))


def _fill_mask(t: Tensor, dim: int, mask: Tensor, value: Any, *, inplace: bool) -> Tensor:
    """Set the elements selected by a mask (over the dimensions from `dim` on) to one value, lazily."""
    tail = t.ndim - dim - mask.ndim
    at = (
        (mask if mask.dtype is dtypes.bool else mask != 0).reshape((*mask.shape, *[1] * tail))
        if tail
        else mask
    )
    given = value
    if is_tensor(value):
        refuse_complex(value, t.dtype)
        given = value.detach().reshape(()).to(t.dtype)
    if inplace:
        views.check_inplace(t, value)
        if layouts.internal_overlap(t.shape, t._strides) == layouts.FULL_OVERLAP:
            return masked_fill_(t, at, given)
    wanted = graph.needs_grad(t, value)
    new = masked_fill_row.forward((t, at, given))
    saved = {"indices": (*[None] * dim, mask), "mask": at, "accumulate": False}
    if not inplace:
        if wanted:
            graph.record("IndexPutBackward0", (t, value), new, _fill_mask_back, saved)
        return new
    writes.overwrite(t, new, own=True)
    if wanted:
        graph.rebase(t, "IndexPutBackward0", (t, value), _fill_mask_back, saved)
    return t


def _fill_mask_back(ctx: Any, g: Tensor) -> tuple:
    own = where(ctx.mask, 0.0, g) if ctx.needs[0] else None
    return own, where(ctx.mask, g, 0.0).sum().reshape(tuple(ctx.shapes[1])) if ctx.needs[
        1
    ] else None


def _write(t: Tensor, found: Indices, values: Any, *, accumulate: bool, inplace: bool) -> Tensor:
    """Write, or with `accumulate` add, values (a tensor or a number) to the elements that index tensors and masks
    select.
    """
    if inplace:
        warn_expanded("index_put_", t, "tensor[indices] = tensor")
    single = not is_tensor(values) or values.numel() == 1
    if len(found) == 1 and found[0][1].dtype in MASKS and single and not accumulate:
        if found[0][1].dtype is dtypes.uint8:
            raise RuntimeError(
                "masked_fill_ only supports boolean masks, but got mask with dtype unsigned char"
            )
        return _fill_mask(t, *found[0], values, inplace=inplace)
    flat = _expanded(t, found)
    if is_tensor(values):
        joint = _selected_shape(t.shape, tuple([d for d, _ in flat]), flat[0][1].shape)
        try:
            layouts.expand_strides(values.shape, values._strides, joint)
        except RuntimeError:
            raise RuntimeError(
                f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing result of shape {list(joint)}"
            ) from None
        if values.dtype is not t.dtype:
            raise RuntimeError(
                f"Index put requires the source and destination dtypes match, got {t.dtype.scalar_name} for the destination and "
                f"{values.dtype.scalar_name} for the source."
            )

    def run(into: Tensor) -> None:
        if not all(i.numel() for _, i in flat) or not into.numel():
            return
        into._storage.for_write()
        where = tuple([d for d, _ in flat])
        operands = [into, *[i for _, i in flat]]
        if is_tensor(values):
            _put([*operands, values], where, Sizes(joint), None, accumulate)
        else:
            _put(operands, where, None, values, accumulate)

    def anew(t: Tensor) -> Tensor | None:
        if not accumulate or not is_tensor(values) or [d for d, _ in flat] != [0]:
            return None
        index = flat[0][1]
        if tuple(values.shape) != (*index.shape, *t.shape[1:]) or not index.is_contiguous():
            return None
        rows = values.detach().reshape(-1, *t.shape[1:]) if values.numel() else values
        return collected(t, index.reshape(-1), rows, wrap=True)

    saved = {**_saved(flat), "accumulate": accumulate}
    return change(
        "IndexPutBackward0",
        t,
        (values if is_tensor(values) else None,),
        run,
        _write_back,
        saved,
        inplace=inplace,
        overlap=True,
        anew=anew,
    )


@functools.partial(Replayed, memory=True, exact=True)
def _put(
    operands: Sequence[Tensor],
    dims: tuple[int, ...],
    joint: tuple[int, ...] | None,
    number: Any,
    accumulate: bool,
) -> list[Tensor]:
    """Write or add `number` at the indices; if `joint`, the shape of what is written, is given, the last operand
    instead.
    """
    into, *indices = operands
    new = number
    if joint is not None:
        read = reading(indices.pop(), into)
        new = read._replace(
            shape=joint, strides=layouts.expand_strides(read.shape, read.strides, joint)
        )
    flat = _operands(list(zip(dims, indices, strict=True)), into)
    kernels.advanced_set(backend_of(into), target(into), flat, new, accumulate)
    return []


@remembered(1024)
def _selected_shape(
    shape: tuple[int, ...], dims: tuple[int, ...], index: tuple[int, ...]
) -> tuple[int, ...]:
    """Return the shape of what index tensors of the shape `index` along `dims` select from a tensor of `shape`."""
    layout: Any = Operand(None, dtypes.int64, index, (0,) * len(index))  # type: ignore[arg-type]
    return kernels.advanced_shape(shape, [(d, layout) for d in dims])


def _write_back(ctx: Any, g: Tensor) -> tuple:
    found = _found(ctx.indices)
    own = None
    if ctx.needs[0]:
        own = g if ctx.accumulate else _write(g, found, 0, accumulate=False, inplace=False)
    return own, _take(g, found) if ctx.needs[1] else None


def _index_put(
    inplace: bool,
    input: Tensor,
    indices: Sequence[Tensor],
    values: Tensor,
    accumulate: bool = False,
) -> Tensor:
    """Write `values` to `input[indices]`, or add them there; duplicates add up in index order."""
    name = "index_put_" if inplace else "index_put"
    need = f"{name}(): argument 'indices' (position 1) must be tuple of Tensors, not {type(indices).__name__}"
    if not isinstance(indices, tuple | list):
        raise TypeError(need)
    for place, i in enumerate(indices):
        if not is_tensor(i):
            raise TypeError(
                f"expected Tensor as element {place} in argument 0, but got {type(i).__name__}"
            )
    check_tensor(name, "values", 2, values)
    if not indices:
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing result of shape {list(input.shape)}"
        )
    found, dim = [], 0
    for i in indices:
        found.append((dim, i))
        dim += i.ndim if i.dtype in MASKS else 1
    if dim > input.ndim:
        raise IndexError(f"too many indices for tensor of dimension {input.ndim} (got {dim})")
    return _write(
        input, _checked(input, found), like(values, input), accumulate=accumulate, inplace=inplace
    )


both("index_put", _index_put, out=False)


# As Tensor's methods, they have the names of methods.
getitem.__name__, setitem.__name__ = "__getitem__", "__setitem__"
