"""Conversions between sparse and dense, layouts, dtypes and devices; copies."""

from __future__ import annotations

from math import prod
from typing import Any

from .. import creation, dtypes
from ..autograd import record as graph
from ..autograd.mode import unrecorded
from ..memory_format import layout as Layout
from ..memory_format import (
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)
from ..ops import convert as dense_convert
from ..ops.destination import destination
from ..ops.row import FUNCTIONS as F
from ..ops.row import public
from ..size import Size
from .creation import empty
from .pattern import Pattern
from .table import op
from .tensor import LAYOUT_NAMES, SparseTensor, at, coalesced, like, pack, summed, values_of

Tensor = Any

# ------------------------------------------------------------------------------------------- to dense


@op("to_dense", function=False)
def to_dense(self: Any, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """Return the dense tensor with the same elements.

    The gradient has the entries of the tensor or, with `masked_grad` False, one wherever the incoming gradient is not
    zero.
    """
    if masked_grad is False and graph.needs_grad(self):
        with unrecorded():
            out = to_dense(self, dtype)
        kept = {"dims": self.sparse_dim(), "kind": self.layout}
        graph.record("ToDenseBackward0", (self,), out, _dense_back, kept)
        return out
    p, values = self._pattern, values_of(self)
    if dtype is not None:
        values = values.to(dtype)
    count = prod(p.sizes)
    if p.coalesced and count:
        flat = values.new_zeros((count, *values.shape[1:])).index_copy(0, p.keys, values)
    else:
        flat = summed(values, p.keys, count)
    return flat.reshape(self.shape)


def _dense_back(ctx: Any, g: Tensor) -> SparseTensor:
    return relaid(_from_dense(g, ctx.dims), ctx.kind)


# ------------------------------------------------------------------------------------------- from dense


def _dense_layout(function: str, layout: Any) -> None:
    if layout not in (sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc):
        raise RuntimeError(f"{function}: conversion from Strided to {layout} is not supported")


def _from_dense(x: Tensor, dims: int) -> SparseTensor:
    """Return a COO tensor of the elements, or slices of the dims after the first `dims`, that are not zero."""
    with unrecorded():
        there = x != 0
        if dims < x.ndim:
            there = there.flatten(dims).any(-1)
        indices = (
            there.nonzero().t().contiguous()
            if dims
            else creation.zeros(
                (0, int(there.any()) if x.ndim else int(there)), dtype=dtypes.int64, device=x.device
            )
        )
    pattern = Pattern(x.shape[:dims], indices, coalesced=True, checked=True)
    return pack(pattern, at(x, pattern), x.shape, sparse_coo, "ToSparseBackward0")


@public(function=False)
def to_sparse(
    self: Tensor,
    sparse_dim: Any = None,
    *,
    layout: Any = None,
    blocksize: Any = None,
    dense_dim: Any = None,
) -> SparseTensor:
    """Return the elements that are not zero as a sparse tensor; with `sparse_dim`, slices of the dims after that many."""
    if isinstance(sparse_dim, Layout):
        sparse_dim, layout = None, sparse_dim
    if layout is not None and layout is not sparse_coo:
        if layout is strided:
            return self
        _dense_layout("to_sparse", layout)
        if layout in (sparse_bsr, sparse_bsc):
            raise NotImplementedError(f"to_sparse: {layout} tensors are not built")
        return (to_sparse_csr if layout is sparse_csr else to_sparse_csc)(self, dense_dim)
    if dense_dim is not None:
        if sparse_dim is not None:
            raise TypeError("to_sparse(): give sparse_dim or dense_dim, not both")
        if not 0 <= dense_dim <= self.ndim:
            raise RuntimeError(
                f"dense_to_sparse: dense_dim argument must be in [0,{self.ndim}] range, but {dense_dim} is given"
            )
        sparse_dim = self.ndim - dense_dim
    dims = self.ndim if sparse_dim is None else sparse_dim
    if not 0 <= dims <= self.ndim or (not dims and self.ndim):
        raise RuntimeError(
            f"dense_to_sparse: sparse_dim argument must be in [0,{self.ndim}] range, but {dims} is given"
        )
    return _from_dense(self, dims)


@public(function=False)
def to_sparse_coo(self: Tensor) -> SparseTensor:
    """Return the elements that are not zero as a sparse tensor of coordinates."""
    return to_sparse(self)


def _compressed_from_dense(x: Tensor, kind: Layout, dense_dim: Any) -> SparseTensor:
    name = str(kind)[13:]
    if x.ndim < 2:
        raise RuntimeError(
            f"to_sparse_{name}: conversion from Strided to {LAYOUT_NAMES[kind]} for input tensors with sparse_dim()!=2 is not supported"
        )
    dense = 0 if dense_dim is None else dense_dim
    if not 0 <= dense <= x.ndim - 2:
        raise RuntimeError(
            f"dense_to_sparse_{name}: dense_dim argument must be in [0,{x.ndim - 2}] range, but {dense} is given"
        )
    if dense < x.ndim - 2:
        raise NotImplementedError(
            f"to_sparse_{name}: batches of compressed matrices are not built: give dense_dim={x.ndim - 2} for dense dims"
        )
    return compress(_from_dense(x, 2), 0 if kind is sparse_csr else 1)


@public(function=False)
def to_sparse_csr(self: Tensor, dense_dim: Any = None) -> SparseTensor:
    """Return the elements of a matrix that are not zero, by rows; with `dense_dim`, slices of that many last dims."""
    return _compressed_from_dense(self, sparse_csr, dense_dim)


@public(function=False)
def to_sparse_csc(self: Tensor, dense_dim: Any = None) -> SparseTensor:
    """Return the elements of a matrix that are not zero, by columns; with `dense_dim`, slices of that many last dims."""
    return _compressed_from_dense(self, sparse_csc, dense_dim)


@public(function=False)
def sparse_mask(self: Tensor, mask: Any) -> SparseTensor:
    """Return a sparse tensor of the tensor's elements where `mask`, a sparse tensor, has entries."""
    if not isinstance(mask, SparseTensor):
        raise RuntimeError(f"sparse_mask(): sparse mask expected but got {mask.layout} mask")
    if self.shape != mask.shape:
        raise RuntimeError(
            f"sparse_mask(): operands have incompatible sizes; self has size {list(self.shape)} but mask has size {list(mask.shape)}"
        )
    p = mask._pattern
    return pack(p, at(self, p), self.shape, mask.layout, "SparseMaskBackward0")


@op("sparse_mask", function=False)
def _sparse_mask(self: Any, mask: Any) -> SparseTensor:
    """Return what a sparse tensor has where `mask` has entries."""
    return sparse_mask(self, mask)


# ------------------------------------------------------------------------------------------- between layouts


def compress(s: SparseTensor, along: int) -> SparseTensor:
    """Return a COO matrix as CSR (`along` 0) or CSC (1)."""
    s = coalesced(s)
    pattern, order = s._pattern.compress(along)
    values = values_of(s)
    if order is not None:
        values = values.index_select(0, order)
    kind = sparse_csr if along == 0 else sparse_csc
    return pack(pattern, values, s.shape, kind, "ToSparseBackward1")


def to_coo(s: SparseTensor) -> SparseTensor:
    """Return the same entries in COO layout, coalesced if they were compressed."""
    if s.layout is sparse_coo:
        return s
    p, values = s._pattern, values_of(s)
    if s.layout is sparse_csr:  # its entries are in order
        made = Pattern(p.sizes, p.indices, coalesced=True, checked=True)
        return pack(made, values, s.shape, sparse_coo, "ToSparseBackward1")
    merge = p.merge
    if merge.order is not None:
        values = values.index_select(0, merge.order)
    return pack(merge.pattern, values, s.shape, sparse_coo, "ToSparseBackward1")


def relaid(s: SparseTensor, kind: Layout, dense_dim: Any = None) -> SparseTensor:
    """Return the tensor in another sparse layout.

    As in torch, RuntimeError for a `dense_dim`: it is for dense tensors.
    """
    if dense_dim is not None:
        source, title = LAYOUT_NAMES[s.layout], LAYOUT_NAMES.get(kind, str(kind))
        function = f"{'coo' if s.layout is sparse_coo else 'sparse_compressed'}_to_{str(kind)[6:]}"
        raise RuntimeError(
            f"{function}: conversion from {source} to {title} with dense_dim argument given is not supported"
        )
    if s.layout is kind:
        return s
    if kind is sparse_coo:
        return to_coo(s)
    if kind not in (sparse_csr, sparse_csc):
        raise NotImplementedError(f"to_sparse: {kind} tensors are not built")
    if s.sparse_dim() != 2:
        raise RuntimeError(
            f"coo_to_{str(kind)[6:]}: conversion from Sparse to {LAYOUT_NAMES[kind]} for input tensors with sparse_dim()!=2 is not supported"
        )
    return compress(to_coo(s), 0 if kind is sparse_csr else 1)


@op("to_sparse", function=False)
def _to_sparse(
    self: Any, sparse_dim: Any = None, *, layout: Any = None, dense_dim: Any = None, **_: Any
) -> SparseTensor:
    """Return the tensor in a sparse layout, coordinates by default."""
    if strided in (layout, sparse_dim):
        return to_dense(self)
    if isinstance(sparse_dim, Layout):
        sparse_dim, layout = None, sparse_dim
    if isinstance(sparse_dim, int) and sparse_dim != self.sparse_dim():
        raise RuntimeError(
            "to_sparse: conversion from Sparse to Sparse with sparse_dim argument !=self.sparse_dim() is not supported"
        )
    return relaid(self, layout or sparse_coo, dense_dim)


@op("to_sparse_coo", function=False)
def _to_sparse_coo(self: Any) -> SparseTensor:
    return relaid(self, sparse_coo)


@op("to_sparse_csr", function=False)
def _to_sparse_csr(self: Any, dense_dim: Any = None) -> SparseTensor:
    return relaid(self, sparse_csr, dense_dim)


@op("to_sparse_csc", function=False)
def _to_sparse_csc(self: Any, dense_dim: Any = None) -> SparseTensor:
    return relaid(self, sparse_csc, dense_dim)


@op("coalesce", function=False)
def coalesce(self: Any) -> SparseTensor:
    """Sum entries in the same place, and sort them by place."""
    self._need("coalesce", sparse_coo)
    return coalesced(self)


# ------------------------------------------------------------------------------------------- copies


@op("detach")
def detach(self: Any) -> SparseTensor:
    """Return the same entries without history."""
    return self.alias()


@op("clone")
def clone(self: Any, *, memory_format: Any = None) -> SparseTensor:
    """Copy indices and values."""
    values = values_of(self).clone()
    return (
        pack(self._pattern.clone(), values, self.shape, self.layout, "CloneBackward0")
        if not graph.needs_grad(values)
        else like(self, values, "CloneBackward0")
    )


@op("to", function=False)
def to(
    self: Any,
    *args: Any,
    device: Any = None,
    dtype: Any = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
    tensor: Any = None,
) -> Any:
    """Convert dtype and / or device; the tensor itself when nothing changes."""
    device, dtype, _, copies = destination(
        args, device, dtype, non_blocking or None, copy or None, tensor
    )
    dev = self.device if device is None else dense_convert.canonical(device)
    dtype = self.dtype if dtype is None else dtype
    if dev == self.device and dtype is self.dtype:
        return clone(self) if copies else self
    values = values_of(self).to(device=dev, dtype=dtype)
    pattern = self._pattern if dev == self.device else self._pattern.to(dev)
    return pack(pattern, values, self.shape, self.layout, "ToCopyBackward0")


def _cast(name: str, dt: Any) -> None:
    def method(self: Any, memory_format: Any = None) -> Any:
        return to(self, dtype=dt)

    method.__doc__ = f"Convert to {dt!r}."
    op(name, function=False)(method)


_CASTS = "float double half bfloat16 int long short bool cfloat cdouble chalf"
for _name in _CASTS.split():
    _cast(_name, getattr(dtypes, _name))
_cast("char", dtypes.int8)
_cast("byte", dtypes.uint8)


@op("contiguous", function=False)
def contiguous(self: Any, memory_format: Any = None) -> Any:
    """Return a compressed matrix itself; RuntimeError for a COO tensor, as in torch."""
    if self.layout is not sparse_coo:
        return self
    raise RuntimeError("unsupported memory format option Contiguous")


@op("copy_", function=False, mixed=True)
def copy_(self: Any, src: Any, non_blocking: bool = False) -> Any:
    """Take the entries of another sparse tensor of the same layout."""
    own, other = self.layout, src.layout
    if own not in (sparse_coo, strided) and own is not other:
        raise RuntimeError(
            "torch.copy_: copy of sparse compressed tensors having different layouts is not supported. "
            f"self layout is {LAYOUT_NAMES[own]} and src layout is {LAYOUT_NAMES.get(other, 'Strided')}"
        )
    if own is not other and other not in (sparse_coo, strided):
        raise RuntimeError(
            f"copy_sparse_compressed_ expected sparse compressed tensor layout but got {LAYOUT_NAMES.get(own, 'Strided')}"
        )
    if not isinstance(src, SparseTensor) or not isinstance(self, SparseTensor):
        raise RuntimeError(
            "copy_() between dense and sparse Tensors is not implemented! Found self type = "
            f"{self.type()} and src type = {src.type()}"
        )
    if own is sparse_coo and self.shape != src.shape:
        sparse_resize_(self, src.shape, src.sparse_dim(), src.dense_dim())
    if own is not sparse_coo:
        _need_alike(self, src)
    return self._become(clone(to(src, self.device, self.dtype)))


def _need_alike(self: SparseTensor, src: SparseTensor) -> None:
    if self._nnz() != src._nnz():
        raise RuntimeError(
            "torch.copy_: only sparse compressed tensors with the same number of specified elements are supported."
        )
    for dim, (n, m) in enumerate(zip(self.shape, src.shape, strict=True)):
        if n != m:
            raise RuntimeError(
                f"torch.copy_: expected shapes of self and src to match along dimension {dim} for {LAYOUT_NAMES[self.layout]} layout but the "
                f"corresponding dimensions of self and src are {n} and {m}, respectively."
            )


@op("resize_as_", "resize_as_sparse_", function=False)
def resize_as_(self: Any, the_template: Any, **_: Any) -> SparseTensor:
    """Take the sizes of another sparse tensor; a compressed matrix those of any tensor."""
    if self.layout is not sparse_coo:
        return resize_(self, *the_template.shape)
    if not isinstance(the_template, SparseTensor):
        return NotImplemented
    return sparse_resize_(
        self, the_template.shape, the_template.sparse_dim(), the_template.dense_dim()
    )


@op("resize_", function=False)
def resize_(self: Any, *size: Any, **_: Any) -> SparseTensor:
    """Change the sizes of a compressed matrix, which keeps its entries: those of lines that are no more join the last."""
    if self.layout is sparse_coo:
        return NotImplemented
    shape = Size(size[0] if len(size) == 1 and not isinstance(size[0], int) else size)
    if len(shape) < 2:
        raise RuntimeError(
            f"torch.resize_: Only batched sparse CSR matrices are supported, but got size {list(shape)}"
        )
    if len(shape) > 2 or self.ndim > 2:
        raise NotImplementedError(f"resize_: batches of {self.layout} tensors are not built")
    if shape[1] < self.shape[1]:
        raise RuntimeError(
            "torch.resize_: Resizing columns of sparse CSR tensors to a smaller value is not supported. "
            f"The original number of columns is {self.shape[1]} while the requested new number of columns is {shape[1]}."
        )
    pointer, plain, along = self._pattern.compressed
    lines, count = shape[along], plain.shape[0] if shape[along] else 0
    begin = pointer[: min(lines, self.shape[along])]
    pointer = F["cat"]([begin, pointer.new_full((lines + 1 - begin.shape[0],), count)])
    pattern = Pattern(shape, None, compressed=(pointer, plain[:count], along))
    return self._become(SparseTensor._of(pattern, self._v[:count], shape, self.layout))


@op("is_same_size")
def is_same_size(input: Any, other: Any) -> bool:
    """Tell whether both are sparse, with the same sizes and numbers of sparse dims."""
    return (
        isinstance(input, SparseTensor)
        and isinstance(other, SparseTensor)
        and input.shape == other.shape
        and input.sparse_dim() == other.sparse_dim()
    )


_INSTEAD = """
You could try the following options:
1. If you need an empty sparse tensor of this size, call `x = torch.sparse_coo_tensor(size)`.
2. If you need to resize this tensor, you have the following options:
    1. For both sparse and dense dimensions, keep the number of them constant and the size of them non-shrinking, and then try the same call again.
    2. Or, create a new sparse tensor with the correct indices and values from this sparse tensor."""


@op("sparse_resize_", function=False)
def sparse_resize_(self: Any, size: Any, sparse_dim: int, dense_dim: int) -> SparseTensor:
    """Grow to larger sizes, keeping the entries; a tensor without entries may take any sizes."""
    if self.layout is not sparse_coo:
        return NotImplemented
    if sparse_dim + dense_dim != len(size):
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = {sparse_dim}, dense_dim = {dense_dim}"
        )
    p = self._pattern
    if not p.count:
        return self._become(empty(size, self.dtype, self.device, sparse_dim))
    now = tuple(self.shape)
    before, after = (
        (now[: len(p.sizes)], now[len(p.sizes) :]),
        (size[:sparse_dim], size[sparse_dim:]),
    )
    for kind, old, new in zip(("sparse", "dense"), before, after, strict=True):
        if len(old) != len(new):
            raise RuntimeError(
                f"changing the number of {kind} dimensions (from {len(old)} to {len(new)}) on a non-empty sparse tensor is not supported.{_INSTEAD}"
            )
    for kind, old, new in zip(("sparse", "dense"), before, after, strict=True):
        if any(n < m for n, m in zip(new, old, strict=True)):
            raise RuntimeError(
                f"shrinking the size of {kind} dimensions (from {list(old)} to {list(new)}) on a non-empty sparse tensor is not supported.{_INSTEAD}"
            )
    values = self._v
    # Values keep their order in memory, not their place in the dense dims.
    if tuple(after[1]) != before[1]:
        values = values.new_zeros((p.count, *after[1]))
        values.view(-1)[: self._v.numel()].copy_(self._v.reshape(-1))
    pattern = Pattern(after[0], p.indices, coalesced=p.coalesced, checked=p._checked)
    return self._become(pack(pattern, values, size, sparse_coo))


@op("sparse_resize_and_clear_", function=False)
def resize_and_clear_(self: Any, size: Any, sparse_dim: int, dense_dim: int) -> SparseTensor:
    """Take new sizes and numbers of sparse and dense dims, dropping all entries."""
    if self.layout is not sparse_coo:
        return NotImplemented
    if sparse_dim + dense_dim != len(size):
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = {sparse_dim}, dense_dim = {dense_dim}"
        )
    return self._become(empty(size, self.dtype, self.device, sparse_dim))


def _refused(name: str, text: str) -> None:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(text)

    method.__doc__ = "RuntimeError, as in torch."
    op(name, function=False)(method)


_refused("reshape", "reshape is not implemented for sparse tensors")
_refused("expand", "expand is unsupported for Sparse tensors")
_refused("expand_as", "expand is unsupported for Sparse tensors")
_refused("broadcast_to", "expand is unsupported for Sparse tensors")
