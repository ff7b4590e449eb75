"""Views of parts of a tensor: one index, ranges, diagonals, windows, any strides; and the splitting of a dimension."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from .. import dtypes, layouts
from ..autograd import dual, views
from ..autograd import record as graph
from ..autograd.mode import FORWARD, unrecorded
from ..autograd.node import PartFormula
from . import core
from .core import Tensor, is_tensor
from .dims import whole
from .row import FUNCTIONS, METHODS, public, titled
from .shape import inplace_view, sizes, view_of


def embed(g: Tensor, shape: tuple[int, ...], place: Callable[[Tensor], Tensor]) -> Tensor:
    """Return zeros of a shape, with `g` written into the view that `place` returns of them.

    The gradient of this is the same view of the incoming gradient.
    """
    with unrecorded():
        out = g.new_zeros(shape)
        place(out).copy_(g)
    if graph.needs_grad(g):
        graph.record("EmbedBackward0", (g,), out, lambda ctx, gg: ctx.place(gg), {"place": place})
    return out


def _into_zeros(place: Callable[[Tensor, Any], Tensor]) -> PartFormula:
    """Return the backward function of a view of a part: zeros with the incoming gradient in that part, differentiable
    again.

    place: applies the view to a tensor of the input's shape, with the settings that `ctx` saved.
    """
    return PartFormula(lambda ctx, g: embed(g, ctx.shapes[0], lambda z: place(z, ctx)), place)


select_back = _into_zeros(lambda z, ctx: select(z, ctx.dim, ctx.index))


slice_back = _into_zeros(lambda z, ctx: slice_dim(z, ctx.dim, ctx.start, ctx.end, ctx.step))


_diagonal_back = _into_zeros(lambda z, ctx: diagonal(z, ctx.offset, ctx.dim1, ctx.dim2))


@public()
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """Return a view of one index of a dimension; the dimension is removed."""
    index = int(index)
    new = layouts.select(input.shape, input._strides, input._offset, dim, index)
    saved = {"dim": dim, "index": index}
    return core.view(input, *new, "SelectBackward0", select_back, None, saved)


def slice_dim(
    input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """Return a view of a range of a dimension, as a Python slice selects it; the step must be positive."""
    new = layouts.slice_(input.shape, input._strides, input._offset, dim, start, end, step)
    return view_of(
        input,
        new,
        "SliceBackward0",
        slice_back,
        {"dim": dim, "start": start, "end": end, "step": step},
    )


@public()
def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """Return a view of `length` indices of a dimension, from `start` on."""
    if is_tensor(start) and (start.ndim or start.dtype.category != 1):
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    start = int(start)
    new = layouts.narrow(input.shape, input._strides, input._offset, dim, start, length)
    if start < 0:
        start += input.shape[dim]
    return view_of(
        input,
        new,
        "SliceBackward0",
        slice_back,
        {"dim": dim, "start": start, "end": start + length, "step": 1},
    )


@public()
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """View the diagonal of two dimensions; it becomes the last dimension."""
    offset = whole("diagonal", "offset", offset, 2)
    new = layouts.diagonal(input.shape, input._strides, input._offset, offset, dim1, dim2)
    return view_of(
        input,
        new,
        "DiagonalBackward0",
        _diagonal_back,
        {"offset": offset, "dim1": dim1, "dim2": dim2},
    )


@public(function=False)
def unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """View all windows of a dimension; the window becomes the last dimension."""
    new = layouts.unfold(self.shape, self._strides, self._offset, dimension, size, step)
    return view_of(
        self,
        new,
        "UnfoldBackward0",
        _unfold_back,
        {"dimension": dimension, "size": size, "step": step},
    )


def _unfold_back(ctx: Any, g: Tensor) -> Tensor:
    shape = ctx.shapes[0]
    if not shape:
        return g.reshape(())
    dim = layouts.wrap_dim(ctx.dimension, len(shape))
    from .overlap import overlap_add

    return overlap_add(g.movedim(dim, -2), shape[dim], ctx.step).movedim(-1, dim)


@public()
def as_strided(
    input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """View the storage with any shape, strides and offset; RuntimeError beyond its end."""
    offset = input._offset if storage_offset is None else storage_offset
    new = layouts.as_strided(
        sizes("as_strided", (tuple(size),), "size"),
        sizes("as_strided", (tuple(stride),), "stride"),
        offset,
        input.dtype.itemsize,
        input._storage.nbytes,
    )
    return view_of(
        input,
        new,
        "AsStridedBackward0",
        _as_strided_back,
        {
            "size": new[0],
            "stride": new[1],
            "offset": offset,
            "base": (input._strides, input._offset),
        },
    )


def _as_strided_back(ctx: Any, g: Tensor) -> Tensor:
    """Sum the gradient per storage position, then read the sums with the input's own layout."""
    strides, offset = ctx.base
    shape = ctx.shapes[0]
    extent = max(
        layouts.storage_extent(ctx.size, ctx.stride, ctx.offset),
        layouts.storage_extent(shape, strides, offset),
    )
    places = positions(ctx.size, ctx.stride, ctx.offset, g.device).reshape(-1)
    flat = g.new_zeros(extent).index_add(0, places, g.reshape(-1))
    if layouts.internal_overlap(shape, strides) != layouts.NO_OVERLAP:
        own = positions(shape, strides, offset, g.device).reshape(-1)
        count = flat.new_zeros(extent).index_add(0, own, flat.new_ones(own.numel()))
        flat = flat / count.clamp(min=1)
    return as_strided(flat, shape, strides, offset)


def positions(shape: tuple[int, ...], strides: tuple[int, ...], offset: int, dev: Any) -> Tensor:
    """Return the storage position of every element of a layout, as an int64 tensor."""
    out = FUNCTIONS["full"](shape, offset, dtype=dtypes.int64, device=dev)
    for d, (n, s) in enumerate(zip(shape, strides, strict=True)):
        if s and n > 1:
            out = out + (FUNCTIONS["arange"](n, device=dev) * s).view(
                -1, *([1] * (len(shape) - d - 1))
            )
    return out


def _several(
    input: Tensor,
    parts: Sequence[layouts.Layout],
    name: str,
    backward: Callable,
    saved: dict[str, Any],
) -> tuple[Tensor, ...]:
    """Return several views of a tensor, as the results of one node; torch allows no in-place write to such views."""
    alias = core.Registry.alias
    outs = [alias(input, shape, strides, offset) for shape, strides, offset in parts]
    if graph.needs_grad(input):
        graph.record(name, (input,), tuple(outs), backward, saved, dual.VIEW)
    for out in outs:
        views.mark_view(out, input, None, multi=True)
        if FORWARD.open:
            _share(out, input)
    return tuple(outs)


def _share(out: Tensor, x: Tensor) -> None:
    """Give a view the same view of its base's tangents (forward mode)."""
    shape, strides, shift = out.shape, out._strides, out._offset - x._offset
    dual.share(out, x, lambda t: t.as_strided(shape, strides, t._offset + shift))


@public(method=False)
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Return a view of each index of a dimension; the dimension is removed."""
    dim = layouts.wrap_dim(dim, input.ndim)
    if input.ndim == 0:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    shape, strides = input.shape, input._strides
    step, start = strides[dim], input._offset
    shape, strides = layouts.without(shape, strides, dim)
    parts = [(shape, strides, start + i * step) for i in range(input.shape[dim])]
    return _several(
        input,
        parts,
        "UnbindBackward0",
        lambda ctx, *gs: FUNCTIONS["stack"](gs, ctx.dim),
        {"dim": dim},
    )


def _unbound(self: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Return a view of each index of a dimension; the dimension is removed.

    A function object of its own: iterating over a tensor calls the method, and a subclass whose `__torch_function__` is
    asked for it may call `unbind`, the function, to answer.
    """
    return unbind(self, dim)


METHODS["unbind"] = titled(_unbound, "unbind", _unbound.__doc__ or "")


def _split_layouts(input: Tensor, dim: int, lengths: Sequence[int]) -> list[layouts.Layout]:
    """Return the layouts of consecutive pieces of a dimension, of these lengths."""
    strides, offset = input._strides, input._offset
    shape = tuple(input.shape)  # slicing a plain tuple is faster than slicing a Size
    before, after = shape[:dim], shape[dim + 1 :]
    shapes = {n: core.Size((*before, n, *after)) for n in lengths}
    parts: list[layouts.Layout] = []
    for n in lengths:
        parts.append((shapes[n], strides, offset))
        offset += n * strides[dim]
    return parts


def _cat_back(ctx: Any, *gs: Tensor) -> Tensor:
    return FUNCTIONS["cat"](gs, ctx.dim)


@public("split")
def split(
    tensor: Tensor, split_size_or_sections: Any = None, dim: int = 0, *, split_size: Any = None
) -> tuple[Tensor, ...]:
    """Split a dimension into views of one size (the last may be shorter), or of the sizes in a list.

    TypeError if neither is given.
    """
    how = split_size_or_sections if split_size is None else split_size
    if how is None:
        raise TypeError("split() missing 1 required positional argument: 'split_size_or_sections'")
    if tensor.ndim == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    dim = layouts.wrap_dim(dim, tensor.ndim)
    if is_tensor(how):
        if how.numel() != 1:
            raise TypeError(
                "split_with_sizes(): argument 'split_sizes' (position 2) must be tuple of ints, not Tensor"
            )
        how = int(how)
    whole = isinstance(how, int)
    lengths = layouts.split_sizes(
        tensor.shape[dim], how if whole else sizes("split", (tuple(how),), "split_size"), dim
    )
    return _several(
        tensor,
        _split_layouts(tensor, dim, lengths),
        "SplitBackward0" if whole else "SplitWithSizesBackward0",
        _cat_back,
        {"dim": dim},
    )


@public()
def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Split a dimension into views of the given sizes. RuntimeError if these do not add up to the dimension's size."""
    return split(input, list(split_sizes), dim)


@public()
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Split a dimension into at most `chunks` views of equal size, the last of which may be smaller."""
    shape = tuple(input.shape)
    if not shape:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    chunks = whole("chunk", "chunks", chunks)
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    dim = layouts.wrap_dim(dim, len(shape))
    return _several(
        input,
        _split_layouts(input, dim, layouts.chunk_sizes(shape[dim], chunks)),
        "SplitBackward0",
        _cat_back,
        {"dim": dim},
    )


@public()
def tensor_split(
    input: Tensor,
    indices_or_sections: Any = None,
    dim: int = 0,
    *,
    sections: int | None = None,
    indices: Sequence[int] | None = None,
    tensor_indices_or_sections: Tensor | None = None,
) -> tuple[Tensor, ...]:
    """Split a dimension at given indices, or into a number of views, the first of which may be longer by one."""
    if not input.ndim:
        raise RuntimeError(
            "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims"
        )
    cut = indices_or_sections
    if tensor_indices_or_sections is not None and cut is None:
        cut = _whole_indices(tensor_indices_or_sections).tolist()
    elif is_tensor(cut):
        cut = _whole_indices(cut).tolist()
    cut = _cut(cut, sections, indices)
    dim = layouts.wrap_dim(dim, input.ndim)
    return tuple(
        slice_dim(input, dim, a, b) for a, b in layouts.tensor_split_bounds(input.shape[dim], cut)
    )


def _cut(cut: Any, sections: Any, indices: Any) -> int | tuple[int, ...]:
    """Return the one way to cut a dimension that is not None: a number of sections, or indices; TypeError if two are given."""
    if (cut is not None) + (sections is not None) + (indices is not None) != 1:
        raise TypeError("expected one of sections and indices, got both or none")
    if sections is not None or hasattr(cut, "__index__"):
        return operator.index(cut if sections is None else sections)
    return tuple(cut if indices is None else indices)


def _whole_indices(t: Tensor) -> Tensor:
    what = "tensor_split expected tensor_indices_or_sections to"
    if t.dtype is not dtypes.int64:
        raise RuntimeError(f"{what} have dtype of long, but got {t.dtype.scalar_name}")
    if t.ndim > 1:
        raise RuntimeError(
            f"{what} be a zero-dimensional or one-dimensional tensor, but got a tensor with {t.ndim} dims"
        )
    return t


inplace_view("as_strided_", as_strided)


def _splitter(name: str, rank: int, dim: int) -> None:
    """Export NumPy's split along `dim`, for tensors of at least `rank` dims (hsplit: along dim 0 of a 1-dim tensor)."""

    def function(
        input: Tensor,
        indices_or_sections: int | Sequence[int] | None = None,
        *,
        sections: int | None = None,
        indices: Sequence[int] | None = None,
    ) -> tuple[Tensor, ...]:
        if input.ndim < rank:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {rank} dimension, but got a tensor with {input.ndim} dimensions!"
            )
        at = 0 if name == "hsplit" and input.ndim == 1 else dim
        how = _cut(indices_or_sections, sections, indices)
        if isinstance(how, int) and (how <= 0 or input.shape[at] % how):
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {at}, but the size of the dimension {input.shape[at]} is not divisible by "
                f"the split_size {how}!"
            )
        return tensor_split(input, how, at)

    titled(
        function, name, f"Cut dimension {dim} into a number of equal pieces, or at given indices."
    )
    FUNCTIONS[name] = METHODS[name] = function


_splitter("hsplit", 1, 1)
_splitter("vsplit", 2, 0)
_splitter("dsplit", 3, 2)
