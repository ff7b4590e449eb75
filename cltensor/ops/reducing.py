"""Launching reductions, with the operand's pending expression as the prologue of the reducing kernel.

Owns the choice between fusing a pending operand and running it first, and the helpers that functions in `reduce.py`,
`norms.py` and the losses share. Knows no public function.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import dtypes, layouts, lazy
from ..autograd import record as graph
from ..codegen.pointwise import IDENTITY
from ..codegen.reduce import reduction as family
from ..codegen.reduce.prologue import Source
from ..dtypes import dtype
from ..lazy import Expr, Fusion, Leaf, View
from ..runtime import Backend, get_backend
from ..size import Size
from ..storage import new_storage
from . import core
from .core import Tensor
from .kinds import Sizes
from .replay import Replayed
from .selection import where

Dims = int | Sequence[int] | None


def source(*xs: Tensor) -> Source:
    """Return the Source that describes tensors, with their pending expressions, to a reducing kernel.

    All tensors broadcast to the shape of the first one.
    """
    shape = tuple(xs[0].shape)
    fusion = Fusion(shape, keep_live=False)
    backend = xs[0]._storage.backend
    values = [_value(fusion, x, shape) for x in xs]
    if (
        256 + len(fusion.leaves) * (16 + 8 * len(shape)) + 16 * len(fusion.scalars)
        > backend.info.arg_bytes
    ):
        lazy.split("arguments")
        for x in xs:
            x._storage.buffer()
        fusion = Fusion(shape, keep_live=False)
        values = [_value(fusion, x, shape) for x in xs]
    leaves = []
    for leaf in fusion.leaves:
        strides = layouts.contiguous_strides(shape) if leaf.strides is None else tuple(leaf.strides)
        leaves.append((leaf.buffer, leaf.dtype, strides, leaf.offset))
    scalars = lazy.scalar_args(fusion.scalars, fusion.scalar_types) if fusion.scalars else ()
    return Source(
        shape,
        tuple(leaves),
        tuple(scalars),
        tuple(fusion.scalar_types),
        tuple(fusion.nodes),
        tuple(values),
    )


def _value(fusion: Fusion, x: Tensor, shape: tuple[int, ...]) -> tuple[str, int]:
    """Add a tensor to a fusion over `shape`, as memory or as its pending expression; return its reference."""
    storage = x._storage
    value = storage.value
    if value.__class__ is Expr:
        found = core.pending_operand(x, value, shape) if lazy.is_read(storage) else None
        if found is not None:
            lazy.note_read(storage)
            lazy.run_held(storage.backend, value)
            return (
                fusion.visit(found.expr, found.dims)
                if isinstance(found, View)
                else fusion.visit(found)
            )
        lazy.split("reduction")
        value = storage.buffer()
    strides: tuple[int, ...] | None = layouts.expand_strides(x.shape, x._strides, shape)
    if x.shape == shape and x.is_contiguous():
        strides = None
    return fusion.leaf(Leaf(value, x.dtype, strides, x._offset), None, shape)


def accumulator(dt: dtype) -> dtype:
    """Return the dtype in which sums and products of `dt` are accumulated."""
    if dt.category < 2:
        return dt if dt is dtypes.uint64 else dtypes.int64
    return (
        dtypes.float32 if dt.itemsize == 2 else dtypes.complex64 if dt is dtypes.complex32 else dt
    )


def comparable(dt: dtype) -> dtype:
    """Return the dtype in which elements of `dt` are compared for extremes."""
    return dtypes.float32 if dt.category == 2 and dt.itemsize == 2 else dt


def positioned(dt: dtype) -> dtype:
    """Return the dtype in which elements of `dt` are compared for extremes whose positions are wanted, too."""
    if dt.category == 2:
        return comparable(dt)
    if dt.itemsize >= 8:
        return dt
    return dtypes.int64 if dt is dtypes.uint32 else dtypes.int32


def run(
    kind: str,
    x: Tensor,
    dims: Sequence[int],
    compute: dtype,
    outputs: Sequence[tuple[str, dtype]],
    *,
    keepdim: bool = False,
    scale: float | None = None,
) -> list[Tensor]:
    """Reduce a tensor over wrapped (non-negative) dims, without gradient; return one tensor per output."""
    # Kernels combine elements in the dtype that they read: where sums are complex, real elements are converted first.
    if compute.is_complex and not x.dtype.is_complex:
        x = core.compute(IDENTITY, compute, compute, (x,), x.shape, x.device)
    return _run((x,), kind, tuple(dims), compute, tuple(outputs), keepdim, Sizes((scale,)))


@Replayed.reading(source)
def _run(
    read: Source,
    _: Any,
    dev: Any,
    kind: str,
    dims: tuple[int, ...],
    compute: dtype,
    outputs: tuple[tuple[str, dtype], ...],
    keepdim: bool,
    scales: tuple[float | None],
) -> list[Tensor]:
    (scale,) = scales
    backend = get_backend(dev)
    with backend.lock:
        if len(read.leaves) > 1:
            read = _alike(backend, read)
        found = family.reduce(backend, kind, read, dims, compute, outputs, scale=scale)
    shape = Size(layouts.reduced_shape(read.shape, dims, keepdim))
    n = layouts.numel(shape)
    return [
        core.make(new_storage(backend, r.buffer, n * r.dtype.itemsize), shape, r.dtype, dev)
        for r in found
    ]


def _alike(backend: Backend, read: Source) -> Source:
    """Return the Source, with operands copied to row-major order if some of them, but not all, run across memory: no
    loop order suits both kinds.
    """
    across = [lazy.runs_across(leaf[2], read.shape) for leaf in read.leaves if any(leaf[2])]
    return row_major(backend, read) if any(across) and not all(across) else read


def row_major(backend: Backend, read: Source) -> Source:
    """Return the Source with those operands copied to row-major order that are large and run across memory."""
    if layouts.numel(read.shape) < lazy.TURN:
        return read
    leaves = [lazy.Leaf(*leaf) for leaf in read.leaves]
    laid = [lazy.turned(backend, leaf, read.shape) for leaf in leaves]
    if all(a is b for a, b in zip(leaves, laid, strict=True)):
        return read
    dense = layouts.contiguous_strides(read.shape)
    return read._replace(
        leaves=tuple([(x.buffer, x.dtype, x.strides or dense, x.offset) for x in laid])
    )


def spread(g: Tensor, shape: Sequence[int], dims: Sequence[int], keepdim: bool) -> Tensor:
    """Return a reduced value expanded to `shape`, the shape before the reduction over `dims`."""
    if not graph.needs_grad(g):  # no history to record: make the view in one step
        steps = list(g._strides)
        for d in sorted(dims):
            steps[d : d + keepdim] = [0]
        return core.Registry.alias(g, Size(shape), tuple(steps), g._offset)
    if not keepdim:
        for d in sorted(dims):
            g = g.unsqueeze(d)
    return g.expand(shape)


def positions(size: int, dim: int, ndim: int, dev: Any) -> Tensor:
    """Return 0, 1, … `size` - 1 (int64, pending) along `dim`, of size 1 in all other of `ndim` dims."""
    flat = core.pending(core.index_expression((size,)), dev)
    return (
        flat.reshape([size if d == dim else 1 for d in range(max(ndim, 1))])
        if ndim
        else flat.reshape(())
    )


def pick_back(g: Tensor, index: Tensor, shape: Sequence[int], dim: int, keepdim: bool) -> Tensor:
    """Return the gradient of picking one element along `dim`: `g` at the positions `index`, zeros elsewhere."""
    if not len(shape):
        return g
    if not keepdim:
        g, index = g.unsqueeze(dim), index.unsqueeze(dim)
    at = positions(shape[dim], dim, len(shape), g.device)
    return where(index == at, g, 0.0)


def count(shape: Sequence[int], dims: Sequence[int]) -> int:
    """Return how many elements are reduced into one output element."""
    n = 1
    for d in dims:
        n *= shape[d]
    return n
