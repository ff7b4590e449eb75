"""Reductions over dims, norms, and softmax over the entries of sparse tensors."""

from __future__ import annotations

from typing import Any

from .. import dtypes, layouts
from ..autograd import record as graph
from ..autograd.mode import unrecorded
from ..memory_format import sparse_coo, sparse_csc, sparse_csr
from ..ops.convert import wide
from ..ops.elsewhere import refuse
from ..ops.refusals import no_kernel
from ..ops.row import FUNCTIONS as F
from .convert import relaid, to_coo
from .pattern import Pattern
from .table import op
from .tensor import SparseTensor, at, check_dims, coalesced, pack, summed, values_of

Tensor = Any


def sum(input: Any, dim: Any = None, dtype: Any = None) -> Any:
    """Sum all elements, or over dims; dense where no sparse dim is left.

    Gradients flow to the entries.
    """
    if not isinstance(input, SparseTensor):
        return F["sum"](input, dtype=dtype) if dim is None else F["sum"](input, dim, dtype=dtype)
    kind = input.layout
    values, p = values_of(input), input._pattern
    if dtype is None and input.dtype.category < 2:
        dtype = dtypes.int64
    if dim is None or (not isinstance(dim, int) and not len(dim)):
        return values.sum(dtype=dtype)
    given = check_dims(input, dim)
    if len(set(given)) != len(given):
        raise RuntimeError("dim appears multiple times in the list of dims")
    dims = len(p.sizes)
    over = [d - dims + 1 for d in given if d >= dims]
    left = [d for d in range(dims) if d not in given]
    if over:
        values = values.sum(over, dtype=dtype)
    elif dtype is not None:
        values = values.to(dtype)
    if not left:
        return values.sum(0)
    shape = [n for d, n in enumerate(input.shape) if d not in given]
    if len(left) == dims:
        made = pack(p, values, shape, kind, "SparseSumBackward0")
        return coalesced(made) if kind is sparse_coo else made
    with unrecorded():
        indices = F["stack"]([p.indices[d] for d in left])
    pattern = Pattern([p.sizes[d] for d in left], indices, checked=p._checked)
    made = pack(pattern, values, shape, sparse_coo, "SparseSumBackward0")
    return coalesced(made)


@op("sum")
def _sum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, **_: Any) -> Any:
    if dim is None and not keepdim:
        return _whole(input, dtype)
    if input.layout is sparse_csr and dim is not None:
        if not keepdim:
            raise RuntimeError(
                "reduction operations on CSR tensors with keepdim=False is unsupported"
            )
        to = dtype or (dtypes.int64 if input.dtype.category < 2 else input.dtype)
        return reduced(input, "sum", tuple(check_dims(input, dim)), True, to, None, 0)
    found = sum(input, dim, dtype)
    if keepdim:
        for d in sorted(check_dims(input, range(input.ndim) if dim is None else dim)):
            found = found.unsqueeze(d)
    return found


def _whole(input: Any, dtype: Any) -> Tensor:
    """Sum all elements. The gradient is dense, as in torch: elements without an entry have one, too."""
    with unrecorded():
        out = sum(input, None, dtype)
    if graph.needs_grad(input):
        graph.record("SumBackward0", (input,), out, _spread_out)
    return out


def _spread_out(ctx: Any, g: Tensor) -> Tensor:
    return g.expand(ctx.shapes[0])


def reduced(
    input: Any, name: str, dims: tuple[int, ...], keepdim: bool, dtype: Any, mask: Any, nothing: Any
) -> SparseTensor:
    """Reduce the entries, or the elements where `mask` is true, by the function `name`: "sum", "prod", "amax" or
    "amin".

    The result has the input's layout, and entries only where an element counted. Elements that `mask` selects and that
    are no entries count as `nothing`, the identity of the reduction. For CSR matrices `name` may be "mean", too.
    """
    rows = input.layout is sparse_csr
    s, sparse = coalesced(to_coo(input)), input.sparse_dim()
    p, values = s._pattern, values_of(s)
    if mask is not None:
        coo = isinstance(mask, SparseTensor) and mask.layout is sparse_coo
        if rows and coo and mask.sparse_dim() != 2:
            raise RuntimeError(
                "coo_to_sparse_csr: conversion from Sparse to SparseCsr for input tensors with sparse_dim()!=2 is not supported"
            )
        if isinstance(mask, SparseTensor) and mask.dense_dim() != input.dense_dim():
            raise AssertionError(
                f"mask.dense_dim() must match input.dense_dim(): {mask.dense_dim()} vs {input.dense_dim()}"
            )
        if mask.shape != s.shape or not isinstance(mask, SparseTensor):
            mask = mask.to_dense().expand(s.shape).to_sparse(sparse)
        kept = coalesced(to_coo(mask))
        with unrecorded():
            true = kept._v.to(dtypes.bool)
            there = true.flatten(1).any(1) if true.ndim > 1 else true
            which = there.nonzero().reshape(-1)
            places = kept._pattern.indices.index_select(1, which)
        p = Pattern(p.sizes, places, coalesced=True, checked=True)
        values = F["where"](true.index_select(0, which), at(s, p), nothing)
    values = values.to(dtype)
    over = [d - sparse + 1 for d in dims if sparse <= d < s.ndim]
    for d in reversed(over):
        values = F[name](values, d, keepdim)
    left = [d for d in range(sparse) if d not in dims]
    if not left and not rows:
        whole = F[name](values, 0) if p.count else values.new_full(values.shape[1:], nothing)
        whole = whole.reshape((1,) * (sparse if keepdim else 0) + tuple(whole.shape))
        return whole.to_sparse()
    with unrecorded():
        kept_dims = [
            p.indices[d] if d in left else p.indices.new_zeros(p.count)
            for d in range(sparse)
            if d in left or keepdim
        ]
        sizes = [p.sizes[d] if d in left else 1 for d in range(sparse) if d in left or keepdim]
        merge = Pattern(sizes, F["stack"](kept_dims), checked=True).merge
        group, count = merge.group, merge.pattern.count
    if group is not None:
        to = group.reshape(-1, *[1] * (values.ndim - 1)).expand(values.shape)
        terms = wide(values)
        start = terms.new_zeros((count, *values.shape[1:]))
        values = start.scatter_reduce(0, to, terms, name, include_self=False).to(values.dtype)
    made = pack(merge.pattern, values, (*sizes, *values.shape[1:]))
    return relaid(made, sparse_csr) if rows else made


@op("norm")
def norm(
    input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None, **_: Any
) -> Tensor:
    """Return the norm of all elements."""
    if dim is not None and len(check_dims(input, dim)) not in (0, input.ndim):
        raise RuntimeError(
            "norm_sparse currently only supports full reductions, so 'dim' must either be empty or contain all dimensions of the input"
        )
    if keepdim:
        raise RuntimeError("norm_sparse currently does not support keepdim=True")
    if dtype is not None and p in ("fro", None):
        raise ValueError("dtype argument is not supported in frobenius norm")
    if isinstance(p, str) and p not in ("fro", "nuc"):
        raise RuntimeError(f"only valid string values are 'fro' and 'nuc', found {p}")
    if p == "nuc":
        raise refuse("_linalg_svd")
    if dtype is not None:
        raise RuntimeError("norm_sparse currently does not support 'dtype' argument")
    s = coalesced(input) if input.layout is sparse_coo else input
    return values_of(s).reshape(-1).norm(2 if p == "fro" or p is None else p)


@op("any")
def any_(input: Any, *args: Any, **kwargs: Any) -> Tensor:
    """Tell whether some element is not zero."""
    if args or kwargs:
        return NotImplemented
    return values_of(input).any()


def _grouped(input: Any, dim: int, dtype: Any, name: str, log: bool) -> SparseTensor:
    if not isinstance(input, SparseTensor):
        raise core_refusal(name)
    kind = input.layout
    s = coalesced(to_coo(input))
    dim = layouts.wrap_dim(dim, s.ndim)
    values, p = values_of(s), s._pattern
    if dtype is not None:
        values = values.to(dtype)
    dims = len(p.sizes)
    if dim >= dims:
        at = dim - dims + 1
        values = F["log_softmax"](values, at) if log else F["softmax"](values, at)
        return pack(p, values, s.shape, sparse_coo, name)
    if not values.dtype.is_floating_point:
        raise no_kernel("softmax", values.dtype)
    with unrecorded():
        others = [d for d in range(dims) if d != dim]
        sizes = [p.sizes[d] for d in others]
        rows = F["stack"]([p.indices[d] for d in others]) if others else p.indices[:0]
        rest = Pattern(sizes, rows, checked=True)
        merge = rest.merge
        group = merge.group
        if group is None:
            group = F["arange"](p.count, device=values.device)
        count = merge.pattern.count
        top = values.detach().new_full((count, *values.shape[1:]), -float("inf"))
        to = group.reshape(-1, *[1] * (values.ndim - 1)).expand(values.shape)
        top = top.scatter_reduce(0, to, values.detach(), "amax")
        top = top.index_select(0, group)
    shifted = values - top
    total = summed(shifted.exp(), group, count).index_select(0, group)
    found = shifted - total.log() if log else shifted.exp() / total
    return relaid(pack(p, found, s.shape, sparse_coo, name), kind)


def core_refusal(name: str) -> Exception:
    """The error for a dense tensor."""
    return NotImplementedError(
        f"Could not run 'aten::_{name}' with arguments from the 'CPU' backend."
    )


def softmax(input: Any, dim: int, *, dtype: Any = None) -> SparseTensor:
    """Return the softmax along a dim over the entries: elements without an entry count as minus infinity."""
    return _grouped(input, dim, dtype, "SparseSoftmaxBackward0", False)


def log_softmax(input: Any, dim: int, *, dtype: Any = None) -> SparseTensor:
    """Return the logarithm of `softmax`."""
    return _grouped(input, dim, dtype, "SparseLogSoftmaxBackward0", True)


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Any, layout: Any = None) -> SparseTensor:
    """Make a matrix of given diagonals: element j of row i of `diagonals` lies in column j of the diagonal
    `offsets[i]`.
    """
    if diagonals.ndim == 1:
        diagonals = diagonals.unsqueeze(0)
    if diagonals.ndim != 2:
        raise RuntimeError("Diagonals must be vector or matrix")
    if offsets.ndim > 1:
        raise RuntimeError("Offsets must be scalar or vector")
    offsets = offsets.reshape(-1)
    if len(shape) != 2:
        raise RuntimeError("Output shape must be 2d")
    if diagonals.shape[0] != offsets.shape[0]:
        raise RuntimeError(
            f"Number of diagonals ({diagonals.shape[0]}) does not match the number of offsets ({offsets.shape[0]})"
        )
    if offsets.dtype is not dtypes.int64:
        raise RuntimeError(
            f"Offset Tensor must have dtype Long but got {offsets.dtype.scalar_name}"
        )
    if layout not in (None, sparse_coo, sparse_csr, sparse_csc):
        name = str(layout).removeprefix("torch.").title().replace("_", "")
        raise RuntimeError(
            f"Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got {name}"
        )
    if offsets.unique().numel() != offsets.numel():
        raise RuntimeError("Offset tensor contains duplicate values")
    rows, columns = shape
    with unrecorded():
        column = F["arange"](diagonals.shape[1], device=diagonals.device).expand(diagonals.shape)
        row = column - offsets.unsqueeze(1)
        inside = ((row >= 0) & (row < rows) & (column < columns)).reshape(-1).nonzero().reshape(-1)
        indices = F["stack"]([row.reshape(-1)[inside], column.reshape(-1)[inside]])
    pattern = Pattern(shape, indices, checked=True)
    made = pack(pattern, diagonals.reshape(-1).index_select(0, inside), shape, sparse_coo)
    return made if layout is None or layout is sparse_coo else relaid(made, layout)
