"""Jagged tensors in other shapes: dims moved, added, split, joined, chosen; rows; padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import creation
from ..ops.row import FUNCTIONS as F
from ..tensor import Tensor
from .elements import unpadded
from .ragged import NestedInt, Ragged
from .table import op
from .tensor import JaggedTensor, compact, make, place


def inner(x: JaggedTensor, dim: int, name: str) -> int:
    """Return the dim of the values that is `dim` of the tensor; RuntimeError for the batch and the ragged dim."""
    d = place(dim, x.ndim)
    if d == 0:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0")
    if d == x._at:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on ragged dim")
    return d - 1


@op("unbind")
def unbind(input: JaggedTensor, dim: int = 0) -> Any:
    """Return the tensors of the batch, views of the values."""
    if place(dim, input.ndim):
        raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
    p, d = input._pattern, input._at - 1
    if p.lengths is None:
        return input._v.split(p.sizes, d) if p.sizes else ()
    return tuple(input._v.narrow(d, first, n) for first, n in zip(p.starts, p.sizes, strict=True))


@op("to_padded_tensor", "nested_to_padded_tensor")
def to_padded_tensor(
    input: JaggedTensor, padding: float, output_size: Any = None, out: Any = None
) -> Any:
    """Return a dense tensor (B, ..., longest, ...), filled up with `padding`."""
    x = compact(input)
    p, at = x._pattern, x._at
    rows = x._v.movedim(at - 1, 0)
    full = rows.new_full((p.count * p.longest, *rows.shape[1:]), padding)
    made = full.index_copy(0, p.padded, rows) if rows.numel() else full
    made = made.unflatten(0, (p.count, p.longest)).movedim(1, at)
    if output_size is not None:
        made = enlarged(made, output_size, padding)
    return made if out is None else out.copy_(made)


def enlarged(x: Any, sizes: Sequence[int], padding: float) -> Any:
    """Pad a dense tensor to larger sizes; RuntimeError for smaller ones."""
    if len(sizes) != x.ndim or any(n < m for n, m in zip(sizes, x.shape, strict=True)):
        raise RuntimeError(
            "Value in output_size is less than NestedTensor padded size. Truncation is not supported."
        )
    widths = [
        w for n, m in zip(reversed(sizes), reversed(x.shape), strict=True) for w in (0, n - m)
    ]
    return F["constant_pad_nd"](x, widths, padding) if any(widths) else x


@op("is_same_size")
def is_same_size(input: Any, other: Any) -> bool:
    """Tell whether all sizes agree; ragged ones do if the offsets are the same tensor."""
    for name, x in (("self", input), ("other", other)):
        if not isinstance(x, JaggedTensor):
            raise ValueError(
                "NestedTensor is_same_size_default(self: jt_all, other: jt_all): "
                f"expected {name} to be a jagged layout NestedTensor"
            )
    return input.shape == other.shape


@op("transpose", "swapaxes", "swapdims")
def transpose(input: JaggedTensor, dim0: int, dim1: int) -> JaggedTensor:
    """Swap two dims other than the batch."""
    a, b = place(dim0, input.ndim), place(dim1, input.ndim)
    if a == b:
        return input
    if not a * b:
        raise ValueError("Transpose is not supported on the batch dimension for jagged NT")
    at = {a: b, b: a}.get(input._at, input._at)
    return make(input._v.transpose(a - 1, b - 1), input._pattern, at)


@op("permute")
def permute(input: JaggedTensor, *dims: Any) -> JaggedTensor:
    """Reorder the dims; the batch stays first."""
    given = dims[0] if len(dims) == 1 and isinstance(dims[0], tuple | list) else dims
    if len(given) != input.ndim:
        raise ValueError(
            f"permute(): number of dimensions in the tensor input ({input.ndim}) does not match the length of the desired ordering "
            f"of dimensions ({len(given)})."
        )
    order = [place(d, input.ndim) for d in given]
    if len({*order}) != len(order):
        raise ValueError("permute(): duplicate dims are not allowed.")
    if order[0]:
        raise ValueError("Permute is not supported on the batch dimension for jagged NT")
    values = input._v.permute(*[d - 1 for d in order[1:]])
    return make(values, input._pattern, order.index(input._at))


@op("unsqueeze")
def unsqueeze(input: JaggedTensor, dim: int) -> JaggedTensor:
    """Insert a dim of size 1, not before the batch."""
    d = place(dim, input.ndim + 1)
    if d == 0:
        raise RuntimeError("unsqueeze(): not supported for NestedTensor on dim=0")
    return make(input._v.unsqueeze(d - 1), input._pattern, input._at + (d <= input._at))


@op("squeeze")
def squeeze(input: JaggedTensor, dim: int) -> JaggedTensor:
    """Remove a dim of size 1."""
    d = inner(input, dim, "squeeze")
    values = input._v.squeeze(d)
    return make(
        values, input._pattern, input._at - (values.ndim < input._v.ndim and d < input._at - 1)
    )


def _sizes(size: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(size[0]) if len(size) == 1 and isinstance(size[0], tuple | list) else tuple(size)


def _inner_sizes(input: JaggedTensor, size: tuple[Any, ...]) -> list[int]:
    """Return the sizes of values that a shape asks for, in which the dims up to the ragged one stay."""
    at, own = input._at, tuple(input.shape)
    stays = len(size) > at and all(
        b == a or b == -1 for a, b in zip(own[: at + 1], size[: at + 1], strict=True)
    )
    if not stays or any(isinstance(n, NestedInt) for n in size[at + 1 :]):
        raise RuntimeError(f"view(): cannot view shape {own} as {list(size)}")
    return [*input._v.shape[:at], *size[at + 1 :]]


@op("view")
def view(input: JaggedTensor, *size: Any) -> JaggedTensor:
    """Return the same memory in another shape; the batch, the ragged dim and those between them stay."""
    return make(input._v.view(_inner_sizes(input, _sizes(size))), input._pattern, input._at)


@op("reshape")
def reshape(input: JaggedTensor, *size: Any, shape: Any = None) -> JaggedTensor:
    """Return the elements in another shape, as `view`."""
    wanted = tuple(shape) if shape is not None else _sizes(size)
    return make(input._v.reshape(_inner_sizes(input, wanted)), input._pattern, input._at)


@op("view_as", "reshape_as")
def reshape_as(input: JaggedTensor, other: Any) -> JaggedTensor:
    """Return the elements in the shape of another tensor."""
    return reshape(input, *other.shape)


@op("flatten")
def flatten(input: JaggedTensor, start_dim: int = 0, end_dim: int = -1) -> JaggedTensor:
    """Join neighbouring dims other than the batch and the ragged one."""
    first, last = place(start_dim, input.ndim), place(end_dim, input.ndim)
    if first == last:
        return input
    for d in range(first, last + 1):
        inner(input, d, "flatten")
    at = input._at - (last - first if last < input._at else 0)
    return make(input._v.flatten(first - 1, last - 1), input._pattern, at)


@op("unflatten")
def unflatten(input: JaggedTensor, dim: int, sizes: Any) -> JaggedTensor:
    """Split a dim into several."""
    d = inner(input, dim, "unflatten")
    values = input._v.unflatten(d, sizes)
    return make(values, input._pattern, input._at + (len(sizes) - 1 if d < input._at - 1 else 0))


@op("expand", "broadcast_to")
def expand(input: JaggedTensor, *size: Any) -> JaggedTensor:
    """Repeat dims of size 1 without copying."""
    wanted, own = _sizes(size), tuple(input.shape)
    fits = len(wanted) == len(own) and all(
        b in (-1, a) for a, b in zip(own, wanted, strict=True) if isinstance(a, NestedInt)
    )
    if not fits or wanted[0] not in (-1, own[0]):
        raise RuntimeError(f"expand(): cannot expand shape {own} -> {list(wanted)}")
    sizes = [-1 if isinstance(n, NestedInt) else n for n in wanted[1:]]
    return make(input._v.expand(*sizes), input._pattern, input._at)


@op("chunk")
def chunk(input: JaggedTensor, chunks: int, dim: int = 0) -> tuple[Any, ...]:
    """Split into about equal parts, along the batch too."""
    if place(dim, input.ndim) == 0:
        parts = unbind(input)
        each = -(-len(parts) // chunks)
        groups = [parts[i : i + each] for i in range(0, len(parts), each)]
        return tuple(stacked(g, input._at) for g in groups)
    d = inner(input, dim, "chunk")
    return tuple(make(v, input._pattern, input._at) for v in input._v.chunk(chunks, d))


@op("split", "split_with_sizes")
def split(input: JaggedTensor, split_size: Any, dim: int = 0) -> tuple[Any, ...]:
    """Split into parts of a size, or of given sizes."""
    d = inner(input, dim, "split")
    return tuple(make(v, input._pattern, input._at) for v in input._v.split(split_size, d))


@op("narrow")
def narrow(input: JaggedTensor, dim: int, start: Any, length: int) -> JaggedTensor:
    """Return a part of a dim."""
    d = inner(input, dim, "narrow")
    return make(input._v.narrow(d, start, length), input._pattern, input._at)


@op("select")
def select(input: JaggedTensor, dim: int, index: Any) -> Any:
    """Choose one index of a dim: of the batch gives a dense tensor."""
    if place(dim, input.ndim) == 0:
        return unbind(input)[index]
    d = inner(input, dim, "select")
    return make(input._v.select(d, index), input._pattern, input._at - (d < input._at - 1))


@op("getitem")
def getitem(input: JaggedTensor, index: Any) -> Any:
    """Choose by ints, slices, None and an ellipsis; an int for the batch gives a dense tensor."""
    given = list(index) if isinstance(index, tuple) else [index]
    if any(isinstance(i, Tensor | list) for i in given):
        raise NotImplementedError("index(): not supported for NestedTensor with tensors as indices")
    if Ellipsis in given:
        dots = given.index(Ellipsis)
        taken = sum(i is not None for i in given) - 1
        given[dots : dots + 1] = [slice(None)] * (input.ndim - taken)
    if given and isinstance(given[0], int):
        row = unbind(input)[given[0]]
        return row[tuple(given[1:])] if len(given) > 1 else row
    out, d = input, 0
    for i in given:
        if i is None:
            out, d = unsqueeze(out, d), d + 1
        elif isinstance(i, slice):
            if i != slice(None):
                at = inner(out, d, "slice")
                out = make(out._v[(slice(None),) * at + (i,)], out._pattern, out._at)
            d += 1
        else:
            out = select(out, d, i)
    return out


@op("cat", "concat", "concatenate")
def cat(tensors: Sequence[Any], dim: int = 0, *, axis: Any = None) -> JaggedTensor:
    """Join tensors with the same sequences along a dim other than the batch and the ragged one."""
    first = next(x for x in tensors if isinstance(x, JaggedTensor))
    d = inner(first, dim if axis is None else axis, "cat")
    for x in tensors:
        if (
            not isinstance(x, JaggedTensor)
            or x._pattern is not first._pattern
            or x._at != first._at
        ):
            raise RuntimeError("cat(): expected all nested tensors to have the same ragged dim")
    return make(F["cat"]([x._v for x in tensors], d), first._pattern, first._at)


@op("stack")
def stack(tensors: Sequence[Any], dim: int = 0) -> JaggedTensor:
    """Join tensors with the same sequences along a new dim behind the batch."""
    return cat([unsqueeze(x, dim) for x in _nested(tensors)], dim)


def _nested(tensors: Sequence[Any]) -> Sequence[Any]:
    if not all(isinstance(x, JaggedTensor) for x in tensors):
        raise RuntimeError("stack(): expected all nested tensors inputs")
    return tensors


def stacked(tensors: Sequence[Any], at: int | None = None) -> JaggedTensor:
    """Make a jagged tensor of dense ones, whose sizes differ in one dim at most (dim 1 of the batch if in none)."""
    shapes = [x.shape for x in tensors]
    ragged = [d for d in range(tensors[0].ndim) if len({s[d] for s in shapes}) > 1]
    if len(ragged) > 1:
        raise RuntimeError(
            "Cannot represent given tensor list as a nested tensor with the jagged layout. Note that the jagged layout only allows for "
            "a single ragged dimension. For example: (B, *, D_0, D_1, ..., D_N), with ragged * dim."
        )
    d = ragged[0] if ragged else (at or 1) - 1
    sizes = [s[d] for s in shapes]
    ends = [0]
    for n in sizes:
        ends.append(ends[-1] + n)
    offsets = creation.tensor(ends, device=tensors[0].device)
    return make(F["cat"]([*tensors], d), Ragged.of(offsets, None, max(sizes), min(sizes)), d + 1)


def from_padded(x: Any, like: JaggedTensor) -> JaggedTensor:
    """Make a jagged tensor with the sequences of another of a dense (B, ..., longest, ...)."""
    shaped = make(like._v, like._pattern.packed, like._at)
    return make(unpadded(x, shaped), shaped._pattern, like._at)
