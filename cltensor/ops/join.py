"""Joining, repeating and rearranging: cat and its kin, repeat, flip, roll, grids.

Pending operands of `cat` and `stack` are computed straight into their part of the result; repeats are lazy expressions.
Triangles and diagonals are in diagonal.py, views that cut tensors apart in shape.py.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from .. import dtypes, layouts
from ..autograd import record as graph
from ..autograd.mode import unrecorded
from ..codegen import join as kernels
from ..codegen.pointwise import IDENTITY
from ..lazy import Expr
from ..memory_format import contiguous_format
from ..runtime import get_backend
from ..size import Size
from ..storage import Storage
from . import core, diagonal, formats, parts
from .core import Tensor, is_tensor
from .replay import Replayed
from .row import FUNCTIONS, METHODS, public, titled
from .scatter import zeros
from .shape import sizes, variadic

__all__ = ["cat", "diagonal", "stack"]


def tensor_list(function: str, tensors: Any) -> list[Tensor]:
    if is_tensor(tensors) or not isinstance(tensors, tuple | list):
        raise TypeError(
            f"{function}(): argument 'tensors' (position 1) must be tuple of Tensors, not {type(tensors).__name__}"
        )
    for place, x in enumerate(tensors):
        if not is_tensor(x):
            raise TypeError(
                f"expected Tensor as element {place} in argument 0, but got {type(x).__name__}"
            )
    return list(tensors)


def _listed(args: tuple) -> list[Tensor]:
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
    """Compute or copy `x` into a part of fresh memory, converting its dtype."""
    expr = core.operand(x, part.shape)
    core.write(part, Expr(IDENTITY, x.dtype, x.dtype, part.shape, (expr,)))


def _interleaved(xs: Sequence[Tensor], dim: int, out: Tensor) -> bool:
    """Make `out` in one launch where what it has of each tensor, from a dim on, is a short run; say whether it was."""
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


def _joined(
    parts: Sequence[Tensor], dim: int, dims: Sequence[int], dt: dtypes.dtype, dev: Any
) -> Tensor:
    """Write tensors one after another along a dimension of a fresh tensor, which is channels last where they all are."""
    if _images(parts):
        order = formats.order(layouts.channels_last_strides(tuple(dims)))
        turned = [formats.turned(x, order) for x in parts]
        (joined,) = _in_a_row(turned, order.index(dim), tuple([dims[d] for d in order]), dt, dev)
        return formats.turned_back(joined, order)
    return _in_a_row(parts, dim, tuple(dims), dt, dev)[0] if parts else _fresh(dims, dt, dev)


def _images(xs: Sequence[Tensor]) -> bool:
    return bool(xs) and all(formats.suggested(x) is not contiguous_format for x in xs)


@Replayed
def _in_a_row(
    parts: Sequence[Tensor], dim: int, dims: tuple[int, ...], dt: dtypes.dtype, dev: Any
) -> list[Tensor]:
    out = _fresh(dims, dt, dev)
    if _interleaved(parts, dim, out):
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
    for place, x in enumerate(xs):
        if not x.ndim:
            raise RuntimeError(
                f"zero-dimensional tensor (at position {place}) cannot be concatenated"
            )
    real = [x for x in xs if tuple(x.shape) != (0,)]
    first = real[0] if real else xs[0]
    dim = layouts.wrap_dim(dim, first.ndim) if real else 0
    for place, x in enumerate(xs):
        if tuple(x.shape) == (0,):
            continue
        if x.ndim != first.ndim:
            raise RuntimeError(
                f"Tensors must have same number of dimensions: got {first.ndim} and {x.ndim}"
            )
        for d, (n, m) in enumerate(zip(first.shape, x.shape, strict=True)):
            if d != dim and n != m:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {dim}. Expected size {n} but got size {m} for tensor number {place} in the list."
                )
    dev = core.common_device(xs)
    dt = xs[0].dtype
    for x in xs[1:]:
        if x.dtype is not dt:
            dt = core.result_type(xs)
            break
    if out is not None and not dtypes.can_cast(dt, out.dtype):
        raise TypeError(
            f"torch.cat(): input types can't be cast to the desired output type {out.dtype.scalar_name}"
        )
    dims = list(first.shape)
    dims[dim] = sum(x.shape[dim] for x in real)
    value = _joined(real, dim, dims, dt, dev)
    if graph.needs_grad(*xs):
        lengths = [0 if tuple(x.shape) == (0,) else x.shape[dim] for x in xs]
        saved = {"dim": dim, "lengths": lengths}
        graph.record("CatBackward0", xs, value, _cat_back, saved, _cat_push)
    return value if out is None else core.deliver(value, out, "cat", xs, apart=True)


def _filled(ctx: Any, out: Tensor, parts: Sequence[Tensor | None]) -> list[Tensor]:
    """The parts' tangents, zeros where one has none."""
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


@public(method=False)
def stack(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Join tensors of one shape along a new dimension."""
    xs = tensor_list("stack", tensors)
    if not xs:
        raise RuntimeError("stack expects a non-empty TensorList")
    first = xs[0]
    dim = layouts.wrap_dim(dim, first.ndim + 1)
    for place, x in enumerate(xs):
        if x.shape != first.shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(first.shape)} at entry 0 and {list(x.shape)} at entry {place}"
            )
    dev = core.common_device(xs)
    dt = first.dtype if all(x.dtype is first.dtype for x in xs) else core.result_type(xs)
    value = _stacked(xs, dim, dt, dev)
    if graph.needs_grad(*xs):
        graph.record("StackBackward0", xs, value, _stack_back, {"dim": dim}, _stack_push)
    return value if out is None else core.deliver(value, out, "stack", xs)


def _stacked(xs: Sequence[Tensor], dim: int, dt: dtypes.dtype, dev: Any) -> Tensor:
    before, after = tuple(xs[0].shape[:dim]), tuple(xs[0].shape[dim:])
    shape = (*before, len(xs), *after)
    if after and _images(xs):
        joined = _joined(xs, dim, (*before, len(xs) * after[0], *after[1:]), dt, dev)
        strides = layouts.view_strides(tuple(joined.shape), joined._strides, shape)
        return core.make(joined._storage, Size(shape), dt, dev, strides)
    return _side_by_side(xs, dim, shape, dt, dev)[0]


@Replayed
def _side_by_side(
    xs: Sequence[Tensor], dim: int, shape: tuple[int, ...], dt: dtypes.dtype, dev: Any
) -> list[Tensor]:
    value = _fresh(shape, dt, dev)
    if not _interleaved(xs, dim, value) and value.numel():
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
        return tuple(raised(x) for x in tensor_list(name, _listed(tensors)))

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


def _splitter(name: str, rank: int, dim: int) -> None:
    def function(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
        if input.ndim < rank:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {rank} dimension, but got a tensor with {input.ndim} dimensions!"
            )
        at = 0 if name == "hsplit" and input.ndim == 1 else dim
        how = indices_or_sections
        if isinstance(how, int) and (how <= 0 or input.shape[at] % how):
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {at}, but the size of the dimension {input.shape[at]} is not divisible by "
                f"the split_size {how}!"
            )
        return parts.tensor_split(input, how, at)

    titled(
        function, name, f"Cut dimension {dim} into a number of equal pieces, or at given indices."
    )
    FUNCTIONS[name] = METHODS[name] = function


_splitter("hsplit", 1, 1)
_splitter("vsplit", 2, 0)
_splitter("dsplit", 3, 2)

# ------------------------------------------------------------------------------------------- repeating


@public(function=False)
@variadic("repeats")
def repeat(self: Tensor, *repeats: Any) -> Tensor:
    """Repeat along each dimension; more counts than dimensions add leading ones. Lazy."""
    if not repeats:
        raise TypeError('repeat() missing 1 required positional arguments: "repeats"')
    counts = sizes("repeat", repeats, "repeats")
    if len(counts) < self.ndim:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor"
        )
    whole = (1,) * (len(counts) - self.ndim) + tuple(self.shape)
    target = tuple(n * c for n, c in zip(whole, counts, strict=True))
    layouts.check_shape(target)
    wide = tuple(v for n, c in zip(whole, counts, strict=True) for v in (c, n))
    with unrecorded():
        x = self.detach().reshape(tuple(v for n in whole for v in (1, n))).expand(wide)
        value = core.pending(
            core.expression(IDENTITY, x.dtype, x.dtype, (x,), x.shape), x.device, Size(target)
        )
    if graph.needs_grad(self):
        graph.record(
            "RepeatBackward0", (self,), value, _repeat_back, {"repeats": counts, "wide": wide}
        )
    return value


def _repeat_back(ctx: Any, g: Tensor) -> Tensor:
    if not g.numel():
        return zeros(g, ctx.shapes[0])
    dims = tuple(2 * d for d, c in enumerate(ctx.repeats) if c != 1)
    g = g.reshape(ctx.wide)
    return (g.sum(dims) if dims else g).reshape(tuple(ctx.shapes[0]))


@public()
@variadic("dims")
def tile(input: Tensor, *dims: Any) -> Tensor:
    """Repeat along the last dimensions."""
    counts = sizes("tile", dims, "dims")
    return repeat(input, (1,) * (input.ndim - len(counts)) + counts)


@public()
def repeat_interleave(
    input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Repeat each element of a dimension (of the flattened tensor without `dim`), all alike or by a tensor of counts."""
    if repeats is None:
        return _interleave_index(input, output_size)
    x, at = (input.reshape(-1), 0) if dim is None else (input, layouts.wrap_dim(dim, input.ndim))
    if is_tensor(repeats):
        if repeats.ndim > 1:
            raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
        if not repeats.ndim or repeats.numel() == 1:
            repeats = repeats.reshape(1).expand(x.shape[at])
        elif repeats.numel() != x.shape[at]:
            raise RuntimeError(
                f"repeats must have the same size as input along dim, but got repeats.size(0) = {repeats.numel()} and input.size({at}) = {x.shape[at]}"
            )
        return x.index_select(at, _interleave_index(repeats, output_size))
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    total = x.shape[at] * int(repeats)
    if output_size is not None and output_size != total:
        raise RuntimeError(
            f"repeat_interleave: Invalid output_size, expected {total} but got {output_size}"
        )
    wide = (*x.shape[: at + 1], int(repeats), *x.shape[at + 1 :])
    out = x.unsqueeze(at + 1).expand(wide).clone(memory_format=contiguous_format)
    return out.view((*x.shape[:at], total, *x.shape[at + 1 :]))


def _interleave_index(repeats: Tensor, output_size: int | None) -> Tensor:
    """For counts [1, 0, 2]: the positions [0, 2, 2]."""
    if repeats.ndim != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if repeats.dtype not in (dtypes.int64, dtypes.int32):
        raise NotImplementedError(
            f"\"repeat_interleave_cpu\" not implemented for '{repeats.dtype.scalar_name}'"
        )
    if not repeats.numel():
        return repeats.new_empty((0,))
    ends = repeats.cumsum(0)
    low, total = stack((repeats.min(), ends[-1])).tolist()
    if low < 0:
        raise RuntimeError("repeats can not be negative")
    if output_size is not None and output_size != total:
        raise RuntimeError("allocated size does not match required size")
    backend = get_backend(repeats.device)
    places = kernels.spread(backend, core.kernel_operand(ends), total, repeats.dtype)
    return core.result(places, repeats.device)


# ------------------------------------------------------------------------------------------- turning around


@public()
@variadic("dims")
def flip(input: Tensor, *dims: Any) -> Tensor:
    """Reverse the order along dimensions; a copy."""
    given = sizes("flip", dims, "dims")
    order = tuple(layouts.wrap_dim(d, input.ndim) for d in given)
    for d in order:
        if order.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    if input.ndim:
        value = _flipped(input, order)
    else:
        with unrecorded():
            value = core.snapshot(input)
    if graph.needs_grad(input):
        graph.record(
            "FlipBackward0", (input,), value, lambda ctx, g: flip(g, ctx.dims), {"dims": order}
        )
    return value


def _flipped(x: Tensor, dims: Sequence[int]) -> Tensor:
    """Flip in the order the dims lie in, which the result keeps."""
    order = formats.order(layouts.preserve_strides(tuple(x.shape), x._strides))
    (found,) = _straight_flipped((formats.turned(x, order),), tuple([order.index(d) for d in dims]))
    return formats.turned_back(found, order)


@Replayed.of_memory
def _straight_flipped(xs: Sequence[Tensor], dims: tuple[int, ...]) -> list[Tensor]:
    (x,) = xs
    found = kernels.flip(x._storage.backend, core.kernel_operand(x), dims)
    return [core.result(found, x.device)]


@Replayed.of_memory
def _rolled(xs: Sequence[Tensor], moves: tuple[int, ...], dims: tuple[int, ...]) -> list[Tensor]:
    (x,) = xs
    found = kernels.roll(x._storage.backend, core.kernel_operand(x), moves, dims)
    return [core.result(found, x.device)]


@public()
def fliplr(input: Tensor) -> Tensor:
    """Reverse the second dimension. RuntimeError where there is none."""
    if input.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(input, 1)


@public()
def flipud(input: Tensor) -> Tensor:
    """Reverse the first dimension."""
    if input.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return flip(input, 0)


@public()
def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Turn by k quarters in the plane of two dimensions, from the first towards the second."""
    if not isinstance(dims, tuple | list):
        raise TypeError(
            f"rot90(): argument 'dims' (position 3) must be tuple of ints, not {type(dims).__name__}"
        )
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if input.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {input.ndim}")
    a, b = (layouts.wrap_dim(d, input.ndim) for d in dims)
    if a == b:
        raise RuntimeError(
            f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}"
        )
    with unrecorded():
        x, turns = input.detach(), k % 4
        if turns == 0:
            value = core.snapshot(x)
        elif turns == 2:
            value = flip(x, a, b)
        else:
            value = flip(x, b if turns == 1 else a).transpose(a, b)
            value._view = None
    if graph.needs_grad(input):
        graph.record(
            "Rot90Backward0",
            (input,),
            value,
            lambda ctx, g: rot90(g, -ctx.k, ctx.dims),
            {"k": k, "dims": (a, b)},
        )
    return value


@public()
def roll(input: Tensor, shifts: Any, dims: Any = ()) -> Tensor:
    """Shift along dimensions (of the flattened tensor without `dims`); what leaves at the end comes in at the start."""
    moves = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    along = (dims,) if isinstance(dims, int) else tuple(dims or ())
    if not moves:
        raise RuntimeError("`shifts` required")
    if not along and len(moves) == 1:
        flat = (
            roll(input.detach().reshape(-1), moves, 0) if input.numel() else input.detach().clone()
        )
        value = flat.reshape(tuple(input.shape))
        value._view = None
    else:
        if len(moves) != len(along):
            raise RuntimeError(
                f"shifts and dimensions must align. shifts: {len(moves)}, dims:{len(along)}"
            )
        order = [layouts.wrap_dim(d, input.ndim) for d in along]
        total: dict[int, int] = {}
        for s, d in zip(moves, order, strict=True):
            total[d] = total.get(d, 0) + s
        (found,) = _rolled((input,), tuple(total.values()), tuple(total))
        value = formats.like_images(input, found)
    if graph.needs_grad(input):
        graph.record(
            "RollBackward0",
            (input,),
            value,
            lambda ctx, g: roll(g, tuple(-s for s in ctx.shifts), ctx.dims),
            {"shifts": moves, "dims": along},
        )
    return value


# ------------------------------------------------------------------------------------------- grids


@public(method=False)
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Expand vectors to a grid: one view per vector. `indexing`: "ij", or "xy" with the first two vectors' dimensions swapped."""
    xs = tensor_list("meshgrid", _listed(tensors))
    if not xs:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for x in xs:
        if x.ndim > 1:
            raise RuntimeError(
                f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {x}"
            )
        if x.dtype is not xs[0].dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
        if x.device != xs[0].device:
            raise RuntimeError("meshgrid expects all tensors to have the same device")
    if indexing is None:
        warnings.warn(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.",
            UserWarning,
            stacklevel=2,
        )
        indexing = "ij"
    if indexing not in ("xy", "ij"):
        raise RuntimeError(
            f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}'
        )
    swap = indexing == "xy" and len(xs) >= 2
    if swap:
        xs[0], xs[1] = xs[1], xs[0]
    dims = tuple(x.numel() for x in xs)
    grids = [
        x.reshape((1,) * d + (-1,) + (1,) * (len(xs) - d - 1)).expand(dims)
        for d, x in enumerate(xs)
    ]
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


@public(method=False)
def cartesian_prod(*tensors: Any) -> Tensor:
    """Return all combinations of elements of vectors as rows; a single vector as it is."""
    xs = tensor_list("cartesian_prod", _listed(tensors))
    for x in xs:
        if x.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(x.shape)}")
    if len(xs) == 1:
        return xs[0]
    return stack([g.reshape(-1) for g in meshgrid(xs, indexing="ij")], 1)


@public()
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Return the combinations of r elements of a vector, in order: (number of them, r). RuntimeError for other than 1-D."""
    if input.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return input.new_empty((0,))
    places = meshgrid([FUNCTIONS["arange"](input.numel(), device=input.device)] * r, indexing="ij")
    mask = None
    for a, b in itertools.pairwise(places):
        ordered = a <= b if with_replacement else a < b
        mask = ordered if mask is None else mask & ordered
    if mask is None:
        return stack([input], 1)
    return stack([x.masked_select(mask) for x in meshgrid([input] * r, indexing="ij")], 1)
