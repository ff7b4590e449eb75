"""Dims of sparse tensors: permuted, selected from, joined."""

from __future__ import annotations

from typing import Any

from .. import dtypes, layouts
from ..autograd.mode import unrecorded
from ..memory_format import sparse_coo, sparse_csc, sparse_csr
from ..ops import core
from ..ops.elsewhere import refuse
from ..ops.row import FUNCTIONS as F
from .convert import to_coo
from .pattern import Pattern
from .table import op
from .tensor import SparseTensor, pack, values_of

Tensor = Any


def _coo(s: SparseTensor, name: str) -> None:
    if s.layout is not sparse_coo:
        raise NotImplementedError(f"{name} of {s.layout} tensors is not built: use to_sparse_coo()")


@op("transpose", "swapaxes", "swapdims")
def transpose(input: Any, dim0: int, dim1: int) -> SparseTensor:
    """Swap two dims, both sparse or both dense."""
    a, b = (layouts.wrap_dim(d, input.ndim) for d in (dim0, dim1))
    order = list(range(input.ndim))
    order[a], order[b] = order[b], order[a]
    return permute(input, order)


@op("permute")
def permute(input: Any, *dims: Any, **named: Any) -> SparseTensor:
    """Put the dims into another order; sparse ones stay before dense ones."""
    if input.layout is not sparse_coo and input.dense_dim():
        raise RuntimeError(
            "transpose(): hybrid sparse compressed tensors with dense dimensions are not supported"
        )
    dims = dims or (named["dims"],)
    given = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
    if len(given) != input.ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the "
            f"length of the desired ordering of dimensions i.e. input.dim() = {input.ndim} is not equal to len(dims) = {len(given)}"
        )
    order = [layouts.wrap_dim(d, input.ndim) for d in given]
    if len(set(order)) != len(order):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    sparse = input.sparse_dim()
    if sorted(order[:sparse]) != list(range(sparse)):
        raise RuntimeError(
            "transpose: transposed dimensions must match Got sparse_dim: a dense dim would take a sparse one's place"
        )
    shape = [input.shape[d] for d in order]
    values = values_of(input)
    if order[sparse:] != list(range(sparse, input.ndim)):
        values = values.permute(0, *[d - sparse + 1 for d in order[sparse:]])
    kind = input.layout
    if order[:sparse] == list(range(sparse)):
        return pack(input._pattern, values, shape, kind, "PermuteBackward0")
    if kind is not sparse_coo:
        kind = sparse_csc if kind is sparse_csr else sparse_csr
    return pack(input._pattern.permuted(order[:sparse]), values, shape, kind, "TransposeBackward0")


@op("t")
def t(input: Any) -> SparseTensor:
    """Transpose a matrix."""
    if input.ndim > 2:
        raise RuntimeError(
            f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got {input.sparse_dim()} sparse and {input.dense_dim()} dense dimensions"
        )
    return input if input.ndim < 2 else transpose(input, 0, 1)


@op("t_", function=False)
def t_(self: Any) -> SparseTensor:
    """Transpose a matrix in place."""
    return self._become(t(self))


@op("transpose_", function=False)
def transpose_(self: Any, dim0: int, dim1: int) -> SparseTensor:
    """Swap two dims in place."""
    return self._become(transpose(self, dim0, dim1))


# ------------------------------------------------------------------------------------------- picking


def _picked(
    s: SparseTensor, which: Tensor, indices: Tensor, sizes: Any, shape: Any, name: str
) -> SparseTensor:
    """Return a tensor of the entries numbered `which`, at new coordinates `indices`."""
    coalesced_still = s._pattern.coalesced and name != "IndexSelectBackward0"
    pattern = Pattern(sizes, indices, coalesced=coalesced_still, checked=True)
    return pack(pattern, values_of(s).index_select(0, which), shape, sparse_coo, name)


@op("index_select")
def index_select(input: Any, dim: int, index: Any, **_: Any) -> SparseTensor:
    """Return the positions `index` of a dim."""
    _coo(input, "index_select")
    if not input.ndim:
        raise IndexError("index_select() cannot be applied to a 0-dim tensor.")
    dim = layouts.wrap_dim(dim, input.ndim)
    if index.ndim != 1 or index.dtype not in (dtypes.int64, dtypes.int32):
        raise IndexError("index_select() argument index must be 1-D long-tensor.")
    shape = list(input.shape)
    size, shape[dim] = shape[dim], index.shape[0]
    p = input._pattern
    if dim >= len(p.sizes):
        values = values_of(input).index_select(dim - len(p.sizes) + 1, index)
        return pack(p, values, shape, sparse_coo, "IndexSelectBackward0")
    p.check()
    with unrecorded():
        if index.numel():
            low, high = F["stack"]([index.amin(), index.amax()]).tolist()
            if low < -size or high >= size:
                raise IndexError(
                    f"index_select(): index contains {low if low < -size else high} that is out of range for tensor of size {list(input.shape)} at dimension {dim}"
                )
            index = F["where"](index < 0, index + size, index).long()
        line, order = F["sort"](p.indices[dim], stable=True)
        begin = F["searchsorted"](line, F["arange"](size + 1, device=line.device))
        start = begin.index_select(0, index)
        length = begin.index_select(0, index + 1) - start
        of = F["repeat_interleave"](length)
        before = (length.cumsum(0) - length).index_select(0, of)
        step = F["arange"](of.shape[0], device=of.device) - before
        which = order.index_select(0, start.index_select(0, of) + step)
        rest = p.indices.index_select(1, which)
        indices = F["stack"]([of if d == dim else rest[d] for d in range(len(p.sizes))])
    return _picked(input, which, indices, shape[: len(p.sizes)], shape, "IndexSelectBackward0")


def _within(s: SparseTensor, dim: int, start: int, stop: int) -> tuple[Tensor, Tensor]:
    p = s._pattern
    p.check()
    with unrecorded():
        at = p.indices[dim]
        which = ((at >= start) & (at < stop)).nonzero().reshape(-1)
        return which, p.indices.index_select(1, which)


@op("narrow_copy")
def narrow_copy(input: Any, dim: int, start: int, length: int) -> SparseTensor:
    """Return `length` positions of a dim from `start`."""
    _coo(input, "narrow_copy")
    if not 0 <= dim < input.ndim:
        raise RuntimeError(f"Dimension {dim} out of range. Expecting 0 <= dim < {input.ndim}.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    size = input.shape[dim]
    if start < 0 or start + length > size:
        raise RuntimeError(
            f"Invalid range to narrow. range(start, start+length) must be a subset of range(0, {size})."
        )
    shape = list(input.shape)
    shape[dim] = length
    p = input._pattern
    if dim >= len(p.sizes):
        values = values_of(input).narrow(dim - len(p.sizes) + 1, start, length).clone()
        return pack(p, values, shape, sparse_coo, "NarrowCopyBackward0")
    which, indices = _within(input, dim, start, start + length)
    with unrecorded():
        rows = [indices[d] - start if d == dim else indices[d] for d in range(len(p.sizes))]
        moved = F["stack"](rows)
    return _picked(input, which, moved, shape[: len(p.sizes)], shape, "NarrowCopyBackward0")


@op("select")
def select(input: Any, dim: int, index: int) -> Any:
    """Return one position of a dim; dense where no sparse dim is left."""
    if not input.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    if input.layout is not sparse_coo:
        input = to_coo(input)
    dim = layouts.wrap_dim(dim, input.ndim)
    size = input.shape[dim]
    if not -size <= index < size:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(input.shape)} at dimension {dim}"
        )
    index %= size
    p, dims = input._pattern, len(input._pattern.sizes)
    shape = [n for d, n in enumerate(input.shape) if d != dim]
    if dim >= dims:
        values = values_of(input).select(dim - dims + 1, index)
        return pack(p, values, shape, sparse_coo, "SelectBackward0")
    which, indices = _within(input, dim, index, index + 1)
    if dims == 1:
        return values_of(input).index_select(0, which).sum(0, dtype=input.dtype)
    with unrecorded():
        rest = F["stack"]([indices[d] for d in range(dims) if d != dim])
    return _picked(input, which, rest, shape[: dims - 1], shape, "SelectBackward0")


@op("unsqueeze")
def unsqueeze(input: Any, dim: int) -> SparseTensor:
    """Add a dim of one."""
    _coo(input, "unsqueeze")
    at = layouts.wrap_dim(dim, input.ndim + 1)
    p, dims = input._pattern, len(input._pattern.sizes)
    shape = [*input.shape[:at], 1, *input.shape[at:]]
    if at > dims:
        values = values_of(input).unsqueeze(at - dims + 1)
        return pack(p, values, shape, sparse_coo, "UnsqueezeBackward0")
    with unrecorded():
        zeros = p.indices.new_zeros((1, p.count))
        indices = F["cat"]([p.indices[:at], zeros, p.indices[at:]])
    pattern = Pattern(shape[: dims + 1], indices, coalesced=p.coalesced, checked=p._checked)
    return pack(pattern, values_of(input), shape, sparse_coo, "UnsqueezeBackward0")


def getitem(self: Any, index: Any) -> Any:
    """Take positions by numbers, whole dims by `:`, and rows by a tensor of numbers."""
    parts = list(index) if isinstance(index, tuple) else [index]
    if any(part is Ellipsis for part in parts):
        at = next(i for i, part in enumerate(parts) if part is Ellipsis)
        missing = self.ndim - sum(part is not None and part is not Ellipsis for part in parts)
        parts[at : at + 1] = [slice(None)] * missing
    found, dim = self, 0
    for part in parts:
        if part is None:
            found, dim = found.unsqueeze(dim), dim + 1
        elif isinstance(part, slice):
            if part != slice(None):
                raise refuse("as_strided")
            dim += 1
        elif isinstance(part, int) and not isinstance(part, bool):
            if dim >= found.ndim:
                raise IndexError(f"too many indices for tensor of dimension {self.ndim}")
            if not -found.shape[dim] <= part < found.shape[dim]:
                raise IndexError(
                    f"index {part} is out of bounds for dimension {dim} with size {found.shape[dim]}"
                )
            found = found.select(dim, part)
        elif core.is_tensor(part) and part.ndim == 0 and part.dtype.category == 1:
            found = found.select(dim, int(part))
        else:
            raise refuse("index.Tensor")
    return found.alias() if found is self else found


# ------------------------------------------------------------------------------------------- joining


@op("cat", "concat", "concatenate")
def cat(tensors: Any, dim: int = 0, **_: Any) -> SparseTensor:
    """Join sparse tensors along a dim."""
    tensors = list(tensors)
    for position, x in enumerate(tensors):
        if not isinstance(x, SparseTensor):
            raise RuntimeError(
                f"Concatenating sparse tensors, but a dense tensor was found at position {position}."
            )
        _coo(x, "cat")
    first = tensors[0]
    dim = layouts.wrap_dim(dim, first.ndim)
    dims = first.sparse_dim()
    for position, x in enumerate(tensors):
        for d in range(first.ndim):
            if d != dim and x.shape[d] != first.shape[d]:
                raise RuntimeError(
                    f"All tensors must have the same shape: {list(first.shape)} (except in the concatenating dimension), but found shape: {list(x.shape)} at position {position}."
                )
        if x.sparse_dim() != dims or x.dense_dim() != first.dense_dim():
            raise RuntimeError(
                "All tensors must have the same sparse_dim and dense_dim values: expected "
                f"{dims}, {first.dense_dim()}, but tensor at position {position} has {x.sparse_dim()}, {x.dense_dim()}."
            )
    shape = list(first.shape)
    shape[dim] = sum(x.shape[dim] for x in tensors)
    dt = core.result_type(tensors)
    parts, values, before = [], [], 0
    for x in tensors:
        v = values_of(x).to(dt)
        with unrecorded():
            indices = x._pattern.indices
            if dim < dims:
                rows = [indices[d] + before if d == dim else indices[d] for d in range(dims)]
                indices = F["stack"](rows)
            else:
                at = dim - dims + 1
        if dim >= dims:
            left, right = list(v.shape), list(v.shape)
            left[at], right[at] = before, shape[dim] - before - x.shape[dim]
            v = F["cat"]([v.new_zeros(left), v, v.new_zeros(right)], at)
        parts.append(indices)
        values.append(v)
        before += x.shape[dim]
    with unrecorded():
        joined = F["cat"](parts, 1)
    pattern = Pattern(shape[:dims], joined, checked=all(x._pattern._checked for x in tensors))
    return pack(pattern, F["cat"](values), shape, sparse_coo, "CatBackward0")


@op("unbind")
def unbind(input: Any, dim: int = 0) -> tuple:
    """Return the positions of a dim."""
    at = layouts.wrap_dim(dim, input.ndim)
    return tuple([select(input, at, i) for i in range(input.shape[at])])


@op("stack")
def stack(tensors: Any, dim: int = 0, **_: Any) -> SparseTensor:
    """Join sparse tensors along a new dim."""
    tensors = list(tensors)
    if any(not isinstance(x, SparseTensor) for x in tensors):
        return NotImplemented
    at = layouts.wrap_dim(dim, tensors[0].ndim + 1)
    return cat([unsqueeze(x, at) for x in tensors], at)
