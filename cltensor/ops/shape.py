"""Views: other layouts of the same storage, each with the gradient that lays the incoming one back."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from .. import dtypes, layouts
from ..autograd import record as graph
from ..autograd import views
from ..autograd.node import op_class
from . import core
from .core import Tensor, is_tensor
from .row import FUNCTIONS, METHODS, public


def variadic(name: str, other: str = "") -> Callable:
    """Let a function whose sizes come one by one or as a sequence take them by keyword too, as torch does."""

    def wrap(fn: Callable) -> Callable:
        @functools.wraps(fn)
        def call(input: Tensor, *args: Any, **kwargs: Any) -> Any:
            if kwargs and not args:
                for key in (name, other):
                    if key in kwargs:
                        args = (kwargs.pop(key),)
            return fn(input, *args, **kwargs)

        return call

    return wrap


def sizes(function: str, args: tuple, name: str = "shape") -> tuple[int, ...]:
    """Accept sizes as separate ints or one sequence; TypeError names the function and what it got."""
    if not args:
        raise TypeError(f'{function}() missing 1 required positional arguments: "{name}"')
    if len(args) == 1 and isinstance(args[0], tuple | list):
        args = tuple(args[0])
    out = []
    for position, a in enumerate(args):
        if a.__class__ is not int:
            if is_tensor(a) and a.numel() == 1 and a.dtype.category < 2:
                a = int(a)
            elif hasattr(a, "__index__") and not isinstance(a, bool):
                a = a.__index__()
            else:
                raise TypeError(
                    f"{function}(): argument '{name}' must be tuple of ints, but found element of type {type(a).__name__} at pos {position}"
                )
        out.append(a)
    return tuple(out)


def _view(
    x: Tensor,
    new: layouts.Layout,
    name: str,
    backward: Callable,
    saved: dict[str, Any] | None = None,
    replay: Callable | None = None,
) -> Tensor:
    return core.view(x, new[0], new[1], new[2], name, backward, replay, saved)


# ------------------------------------------------------------------------------------------- reshaping


def _view_back(ctx: Any, g: Tensor) -> Tensor:
    return g.reshape(ctx.shapes[0])


@public(function=False)
@variadic("size", "dtype")
def view(self: Tensor, *shape: Any) -> Tensor:
    """Look at the same elements as another shape (one size may be -1) or, given a dtype, as other bits."""
    if len(shape) == 1 and isinstance(shape[0], dtypes.dtype):
        return view_dtype(self, shape[0])
    wanted = sizes("view", shape)
    return _view(
        self,
        layouts.view(self.shape, self._strides, self._offset, wanted),
        "ViewBackward0",
        _view_back,
    )


@public()
@variadic("shape")
def reshape(input: Tensor, *shape: Any) -> Tensor:
    """Return the elements in another shape: a view where strides allow, else a copy."""
    wanted = layouts.infer_shape(sizes("reshape", shape), input.numel())
    strides = layouts.view_strides(input.shape, input._strides, wanted)
    if strides is not None:
        return _view(input, (wanted, strides, input._offset), "ViewBackward0", _view_back)
    copy = input.clone(memory_format="contiguous")
    out = _view(
        copy, (wanted, layouts.contiguous_strides(wanted), 0), "UnsafeViewBackward0", _view_back
    )
    out._view = None
    return out


@public(function=False)
def view_as(self: Tensor, other: Tensor) -> Tensor:
    """View with the other tensor's shape."""
    return self.view(other.shape)


@public(function=False)
def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """Reshape to the other tensor's shape."""
    return reshape(self, other.shape)


@public()
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Merge the dimensions from start_dim to end_dim into one."""
    if input.ndim == 0:
        layouts.wrap_dim(start_dim, 0), layouts.wrap_dim(end_dim, 0)
        return reshape(input, 1)
    shape = layouts.flatten_shape(input.shape, start_dim, end_dim)
    return input if shape == input.shape else reshape(input, shape)


@public()
def ravel(input: Tensor) -> Tensor:
    """Flatten to one dimension; contiguous."""
    return reshape(input.contiguous(), -1)


@public()
def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """Split one dimension into several; one size may be -1."""
    if not input.ndim:
        raise RuntimeError(
            "unflatten got an unexpected error:\nDimension specified as 0 but tensor has no dimensions"
        )
    return input.view(layouts.unflatten_shape(input.shape, dim, tuple(sizes)))


def view_dtype(x: Tensor, dt: dtypes.dtype) -> Tensor:
    """Look at the same bits as another dtype; sizes of the last dimension scale with the item sizes."""
    old, new = x.dtype.itemsize, dt.itemsize
    shape, strides, offset = x.shape, x._strides, x._offset
    if old != new:
        if x.ndim == 0:
            raise RuntimeError(
                f"self.dim() cannot be 0 to view {x.dtype.scalar_name} as {dt.scalar_name} (different element sizes)"
            )
        if strides[-1] != 1:
            raise RuntimeError(
                f"self.stride(-1) must be 1 to view {x.dtype.scalar_name} as {dt.scalar_name} (different element sizes), but got {strides[-1]}"
            )
        if old > new:
            k = old // new
            shape, strides, offset = (
                (*shape[:-1], shape[-1] * k),
                (*[s * k for s in strides[:-1]], 1),
                offset * k,
            )
        else:
            k = new // old
            if shape[-1] % k:
                raise RuntimeError(
                    f"self.size(-1) must be divisible by {k} to view {x.dtype.scalar_name} as {dt.scalar_name} (different element sizes), but got {shape[-1]}"
                )
            if offset % k:
                raise RuntimeError(
                    f"self.storage_offset() must be divisible by {k} to view {x.dtype.scalar_name} as {dt.scalar_name} (different element sizes), but got {offset}"
                )
            for d, s in enumerate(strides[:-1]):
                if s % k:
                    raise RuntimeError(
                        f"self.stride({d}) must be divisible by {k} to view {x.dtype.scalar_name} as {dt.scalar_name} (different element sizes), but got {s}"
                    )
            shape, strides, offset = (
                (*shape[:-1], shape[-1] // k),
                (*[s // k for s in strides[:-1]], 1),
                offset // k,
            )
    return as_dtype(x, dt, tuple(shape), tuple(strides), offset)


def as_dtype(
    x: Tensor, dt: dtypes.dtype, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
) -> Tensor:
    """Make a view of another dtype, without history."""
    x._storage.buffer()
    out = core.make(x._storage, core.Size(shape), dt, x.device, strides, offset)
    out._vc = x._vc
    return out


# ------------------------------------------------------------------------------------------- permuting


@public()
@variadic("dims")
def permute(input: Tensor, *dims: Any) -> Tensor:
    """Reorder the dimensions."""
    order = layouts.permutation(sizes("permute", dims, "dims"), input.ndim)
    return _view(
        input,
        layouts.permute(input.shape, input._strides, input._offset, order),
        "PermuteBackward0",
        _permute_back,
        {"order": order},
    )


def _permute_back(ctx: Any, g: Tensor) -> Tensor:
    return g.permute(layouts.permute_inverse(ctx.order))


@public(aliases=("swapaxes", "swapdims"))
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Swap two dimensions."""
    new = layouts.transpose(input.shape, input._strides, input._offset, dim0, dim1)
    return _view(input, new, "TransposeBackward0", _transpose_back, {"dim0": dim0, "dim1": dim1})


def _transpose_back(ctx: Any, g: Tensor) -> Tensor:
    return g.transpose(ctx.dim0, ctx.dim1)


@public()
def t(input: Tensor) -> Tensor:
    """Transpose a matrix; vectors and scalars stay as they are."""
    if input.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input.ndim}D")
    new = (
        layouts.transpose(input.shape, input._strides, input._offset, 0, 1)
        if input.ndim == 2
        else (input.shape, input._strides, input._offset)
    )
    return _view(input, new, "TBackward0", _t_back)


def _t_back(ctx: Any, g: Tensor) -> Tensor:
    return g.t()


def numpy_T(self: Tensor) -> Tensor:
    """All dimensions reversed."""
    if self.ndim not in (0, 2):
        warnings.warn(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will throw an error in a future "
            "release. Consider `x.mT` to transpose batches of matrices or `x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor.",
            UserWarning, stacklevel=3,
        )  # fmt: skip
    return permute(self, tuple(range(self.ndim - 1, -1, -1)))


def _same(warning: str, x: Tensor) -> Tensor:
    warnings.warn(warning, UserWarning, stacklevel=3)
    return x


def matrix_T(self: Tensor) -> Tensor:
    """The last two dimensions swapped."""
    if self.ndim == 0:
        return _same(
            "Tensor.mT is deprecated on 0-D tensors. This function is the identity in these cases.",
            self,
        )
    if self.ndim < 2:
        raise RuntimeError(
            f"tensor.mT is only supported on matrices or batches of matrices. Got {self.ndim}-D tensor."
        )
    return transpose(self, -2, -1)


def matrix_H(self: Tensor) -> Tensor:
    """Conjugate transpose of (batches of) matrices."""
    if self.ndim == 0:
        return _same(
            "Tensor.mH is deprecated on 0-D tensors. Consider using x.conj().", self
        ).conj()
    if self.ndim < 2:
        raise RuntimeError(
            f"tensor.mH is only supported on matrices or batches of matrices. Got {self.ndim}-D tensor."
        )
    return transpose(self, -2, -1).conj()


@public()
def adjoint(input: Tensor) -> Tensor:
    """Conjugate transpose of (batches of) matrices."""
    if input.ndim == 0:
        return _same(
            "adjoint() is deprecated on 0-D tensors. Consider using x.conj().", input
        ).conj()
    if input.ndim < 2:
        raise RuntimeError(
            f"tensor.adjoint() is only supported on matrices or batches of matrices. Got {input.ndim}-D tensor."
        )
    return matrix_H(input)


@public(aliases=("moveaxis",))
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Move dimensions to new positions, keeping the order of the others."""
    return permute(input, layouts.movedim_order(input.ndim, source, destination))


# ------------------------------------------------------------------------------------------- ones


@public()
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """Insert a dimension of size 1."""
    new = layouts.unsqueeze(input.shape, input._strides, input._offset, dim)
    at = dim if dim >= 0 else dim + input.ndim + 1
    return _view(input, new, "UnsqueezeBackward0", lambda ctx, g: g.squeeze(ctx.dim), {"dim": at})


@public()
def squeeze(input: Tensor, dim: Any = None) -> Tensor:
    """Drop dimensions of size 1: all, one, or those of a tuple that are 1."""
    new = layouts.squeeze(input.shape, input._strides, input._offset, dim)
    name = (
        "SqueezeBackward0"
        if dim is None
        else "SqueezeBackward1"
        if isinstance(dim, int)
        else "SqueezeBackward2"
    )
    return _view(input, new, name, _view_back)


# ------------------------------------------------------------------------------------------- broadcasting


@public(function=False)
@variadic("size")
def expand(self: Tensor, *size: Any, implicit: bool = False) -> Tensor:
    """Repeat dimensions of size 1 without copying; -1 keeps a size."""
    new = layouts.expand(self.shape, self._strides, self._offset, sizes("expand", size, "size"))
    return _view(self, new, "ExpandBackward0", lambda ctx, g: g)


@public(function=False)
def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """Expand to the other tensor's shape."""
    return expand(self, tuple(other.shape))


@public("broadcast_to")
def broadcast_to(input: Tensor, size: Sequence[int]) -> Tensor:
    """Expand to a shape."""
    return expand(input, tuple(size))


@public("broadcast_tensors", method=False)
def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Expand tensors to their common shape."""
    if len(tensors) == 1 and isinstance(tensors[0], tuple | list):
        tensors = tuple(tensors[0])
    shape = layouts.broadcast_shapes(*[x.shape for x in tensors])
    return tuple(expand(x, shape) for x in tensors)


@public(function=False)
@variadic("size")
def sum_to_size(self: Tensor, *size: Any) -> Tensor:
    """Sum over the dimensions along which a tensor of that size would be repeated to give this one."""
    shape = sizes("sum_to_size", size, "size")
    lead = self.ndim - len(shape)
    if lead < 0 or any(n not in (1, m) for n, m in zip(shape, self.shape[lead:], strict=True)):
        raise RuntimeError(
            f"size {{{list(shape)}}} is not expandable to size {{{list(self.shape)}}}."
        )
    dims = (
        *range(lead),
        *[d + lead for d, n in enumerate(shape) if n == 1 and self.shape[d + lead] != 1],
    )
    if not shape:
        return self.sum()
    return (self.sum(dims, True) if dims else self).reshape(shape)


# ------------------------------------------------------------------------------------------- parts


def _into_zeros(place: Callable[[Tensor, Any], Tensor]) -> Callable:
    """Gradient of a view of a part: zeros with the incoming gradient in its place, differentiable again."""

    def backward(ctx: Any, g: Tensor) -> Tensor:
        return core.embed(g, ctx.shapes[0], lambda z: place(z, ctx))

    return backward


_select_back = _into_zeros(lambda z, ctx: select(z, ctx.dim, ctx.index))
_slice_back = _into_zeros(lambda z, ctx: slice_dim(z, ctx.dim, ctx.start, ctx.end, ctx.step))
_diagonal_back = _into_zeros(lambda z, ctx: diagonal(z, ctx.offset, ctx.dim1, ctx.dim2))


@public()
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """Take one index of a dimension, which disappears."""
    new = layouts.select(input.shape, input._strides, input._offset, dim, int(index))
    return _view(input, new, "SelectBackward0", _select_back, {"dim": dim, "index": int(index)})


def slice_dim(input: Tensor, dim: int, start: int | None, end: int | None, step: int = 1) -> Tensor:
    """Take a range of a dimension, as Python slices do; steps are positive."""
    new = layouts.slice_(input.shape, input._strides, input._offset, dim, start, end, step)
    return _view(
        input,
        new,
        "SliceBackward0",
        _slice_back,
        {"dim": dim, "start": start, "end": end, "step": step},
    )


@public()
def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """Take `length` indices of a dimension from `start` on."""
    if is_tensor(start) and (start.ndim or start.dtype.category != 1):
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    start = int(start)
    new = layouts.narrow(input.shape, input._strides, input._offset, dim, start, length)
    if start < 0:
        start += input.shape[dim]
    return _view(
        input,
        new,
        "SliceBackward0",
        _slice_back,
        {"dim": dim, "start": start, "end": start + length, "step": 1},
    )


@public()
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """View the diagonal of two dimensions; it becomes the last dimension."""
    new = layouts.diagonal(input.shape, input._strides, input._offset, offset, dim1, dim2)
    return _view(
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
    return _view(
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
    return _view(
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
    """Add the gradient up over storage positions, then read it with the input's own layout."""
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
    """The storage position of every element of a layout, int64."""
    out = FUNCTIONS["full"](shape, offset, dtype=dtypes.int64, device=dev)
    for d, (n, s) in enumerate(zip(shape, strides, strict=True)):
        if s and n > 1:
            out = out + (FUNCTIONS["arange"](n, device=dev) * s).view(
                -1, *([1] * (len(shape) - d - 1))
            )
    return out


# ------------------------------------------------------------------------------------------- several parts


def _several(
    input: Tensor, parts: list[layouts.Layout], name: str, backward: Callable, saved: dict[str, Any]
) -> tuple[Tensor, ...]:
    outs = []
    for shape, strides, offset in parts:
        out = core.make(
            input._storage, core.Size(shape), input.dtype, input.device, strides, offset
        )
        out._vc = input._vc
        outs.append(out)
    if graph.needs_grad(input):
        graph.record(name, (input,), tuple(outs), backward, saved)
    for out in outs:
        views.mark_view(out, input, None, multi=True)
    return tuple(outs)


@public()
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Take every index of a dimension."""
    if input.ndim == 0:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    dim = layouts.wrap_dim(dim, input.ndim)
    parts = [
        layouts.select(input.shape, input._strides, input._offset, dim, i)
        for i in range(input.shape[dim])
    ]
    return _several(
        input,
        parts,
        "UnbindBackward0",
        lambda ctx, *gs: FUNCTIONS["stack"](gs, ctx.dim),
        {"dim": dim},
    )


def _split_layouts(input: Tensor, dim: int, lengths: Sequence[int]) -> list[layouts.Layout]:
    parts, start = [], 0
    for n in lengths:
        parts.append(layouts.narrow(input.shape, input._strides, input._offset, dim, start, n))
        start += n
    return parts


def _cat_back(ctx: Any, *gs: Tensor) -> Tensor:
    return FUNCTIONS["cat"](gs, ctx.dim)


@public("split")
def split(
    tensor: Tensor, split_size_or_sections: Any = None, dim: int = 0, *, split_size: Any = None
) -> tuple[Tensor, ...]:
    """Cut a dimension into pieces of a size, or of the sizes of a list."""
    how = split_size_or_sections if split_size is None else split_size
    if tensor.ndim == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    dim = layouts.wrap_dim(dim, tensor.ndim)
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
    """Cut a dimension into pieces of the given sizes."""
    return split(input, list(split_sizes), dim)


@public()
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Cut a dimension into about equal pieces."""
    if input.ndim == 0:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    dim = layouts.wrap_dim(dim, input.ndim)
    return _several(
        input,
        _split_layouts(input, dim, layouts.chunk_sizes(input.shape[dim], chunks)),
        "SplitBackward0",
        _cat_back,
        {"dim": dim},
    )


@public()
def tensor_split(input: Tensor, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Cut a dimension into a number of pieces, or at given indices."""
    if not input.ndim:
        raise RuntimeError(
            "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims"
        )
    if is_tensor(indices_or_sections):
        indices_or_sections = indices_or_sections.tolist()
    dim = layouts.wrap_dim(dim, input.ndim)
    how = (
        indices_or_sections if isinstance(indices_or_sections, int) else tuple(indices_or_sections)
    )
    return tuple(
        slice_dim(input, dim, a, b) for a, b in layouts.tensor_split_bounds(input.shape[dim], how)
    )


# ------------------------------------------------------------------------------------------- in place


# torch's nodes of the in-place forms, where they have names of their own.
_INPLACE_NODES = {
    "TBackward0": "TBackward1", "TransposeBackward0": "TransposeBackward1", "UnsqueezeBackward0": "UnsqueezeBackward1", "SqueezeBackward0": "SqueezeBackward3",
    "SqueezeBackward1": "SqueezeBackward4", "SqueezeBackward2": "SqueezeBackward5", "AsStridedBackward0": "AsStridedBackward1",
}  # fmt: skip


def _inplace_view(name: str, fn: Callable) -> None:
    def method_(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        views.check_inplace(self)
        out = fn(self, *args, **kwargs)
        node = out._node
        if node is not None and node is not self._node:
            node.__class__ = op_class(_INPLACE_NODES[type(node).__name__])
        return self._take_layout(out)

    method_.__name__ = method_.__qualname__ = name
    method_.__doc__ = f"In-place form of `{name[:-1]}`: the tensor object takes the new shape."
    METHODS[name] = method_


for _name, _fn in (
    ("t_", t),
    ("transpose_", transpose),
    ("swapaxes_", transpose),
    ("swapdims_", transpose),
    ("squeeze_", squeeze),
    ("unsqueeze_", unsqueeze),
    ("as_strided_", as_strided),
):
    _inplace_view(_name, _fn)
