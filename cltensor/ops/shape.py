"""Views of a whole tensor: other shapes, orders and repetitions of its elements, each with its gradient."""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from .. import dtypes, layouts
from ..autograd import record as graph
from ..autograd import views
from ..autograd.hooks import type_string
from ..autograd.node import op_class
from ..errors import caller_level, class_name, warn_once
from ..memory_format import contiguous_format
from ..size import sized
from . import core
from .core import Tensor, is_tensor
from .operands import check_tensor
from .row import METHODS, public, titled


def variadic(name: str, other: str = "") -> Callable:
    """Decorator: accept sizes, given one by one or as a sequence, by keyword too, as torch does."""

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
    given = args
    if len(args) == 1 and isinstance(args[0], tuple | list):
        if args[0].__class__ is core.Size:  # fast path: a Size holds ints only
            return tuple(args[0])
        args = tuple(args[0])
    out = []
    for position, a in enumerate(args):
        if a.__class__ is not int:
            if is_tensor(a) and a.numel() == 1 and a.dtype.category < 2:
                a = int(a)
            else:
                if position == 0 and isinstance(a, bool):  # further ones are taken, as torch does
                    raise TypeError(f"{function}(): {_no_sizes(name, given, args, position)}")
                try:
                    a = operator.index(a)
                except TypeError:
                    why = _no_sizes(name, given, args, position)
                    raise TypeError(f"{function}(): {why}") from None
        out.append(a)
    return tuple(out)


def _no_sizes(name: str, given: tuple, args: tuple, position: int) -> str:
    """Return torch's words for an element of the wrong type, at this position among the sizes."""
    kind = class_name(args[position])
    if position:
        return f"argument '{name}' failed to unpack the object at pos {position + 1} with error \"type must be tuple of ints,but got {kind}\""
    got = f"not {kind}" if given is args else f"but found element of type {kind} at pos 0"
    return f"argument '{name}' (position 1) must be tuple of ints, {got}"


def view_of(
    x: Tensor,
    new: layouts.Layout,
    name: str,
    backward: Callable,
    saved: dict[str, Any] | None = None,
) -> Tensor:
    """Make a view of another layout and record its gradient."""
    return core.view(x, new[0], new[1], new[2], name, backward, None, saved)


# ------------------------------------------------------------------------------------------- reshaping


def view_back(ctx: Any, g: Tensor) -> Tensor:
    """Return a gradient in the shape that was viewed as another."""
    shape = ctx.shapes[0]
    return aliased(g, shape) if _is_final(g) and g._contig else g.reshape(shape)


def _is_final(g: Tensor) -> bool:
    """Return whether a gradient is plain memory whose history nobody wants."""
    return g.__class__ is core.Registry.tensor and not graph.differentiating()


def aliased(x: Tensor, shape: tuple[int, ...], strides: tuple[int, ...] | None = None) -> Tensor:
    """Return a tensor's memory in another layout, without history, in half the time that a view takes.

    strides: None for contiguous. Nobody may keep the result beside `x` who could tell that it is not marked as a view.
    """
    return core.Registry.alias(x, shape, strides, x._offset)


@public(function=False)
@variadic("size", "dtype")
def view(self: Tensor, *shape: Any) -> Tensor:
    """Look at the same elements as another shape (one size may be -1) or, given a dtype, as other bits."""
    if len(shape) == 1 and isinstance(shape[0], dtypes.dtype | type):
        return view_dtype(self, dtypes.required(shape[0], "view"))
    wanted = sizes("view", shape, "size")
    if self._contig:  # so is any view of it
        found, strides = layouts.shape_for(wanted, self.shape), None
    else:
        found, strides, _ = layouts.view(self.shape, self._strides, self._offset, wanted)
    return core.view(self, found, strides, self._offset, "ViewBackward0", view_back, None)


def contiguous_view(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return what `view` does, for a contiguous tensor and a shape of as many elements."""
    return core.view(x, sized(shape), None, x._offset, "ViewBackward0", view_back, None)


@public()
@variadic("shape")
def reshape(input: Tensor, *shape: Any) -> Tensor:
    """Return the elements in another shape, one size of which may be -1: a view where strides allow, else a copy.

    RuntimeError where their number differs.
    """
    given, strides = sizes("reshape", shape), None
    if input._contig:  # so is any view of it
        wanted = layouts.shape_for(given, input.shape)
    else:
        wanted, strides = layouts.reshape(input.shape, input._strides, given)
    if input._contig or strides is not None:
        return core.view(input, wanted, strides, input._offset, "ViewBackward0", view_back, None)
    copy = input.clone(memory_format=contiguous_format)
    out = view_of(
        copy, (wanted, layouts.contiguous_strides(wanted), 0), "UnsafeViewBackward0", view_back
    )
    out._view = None
    return out


@public(function=False)
def view_as(self: Tensor, other: Tensor) -> Tensor:
    """View with the other tensor's shape."""
    check_tensor("view_as", "other", 1, other)
    return self.view(other.shape)


@public(function=False)
def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """Reshape to the other tensor's shape."""
    check_tensor("reshape_as", "other", 1, other)
    return reshape(self, other.shape)


@public()
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Merge the dimensions from start_dim to end_dim into one; 0-d becomes (1,). A view where strides allow."""
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
    if not hasattr(dim, "__index__"):
        kind = class_name(dim)
        raise TypeError(f"unflatten(): argument 'dim' (position 1) must be int, not {kind}")
    if not isinstance(sizes, (tuple, list)):
        kind = type(sizes).__name__
        raise TypeError(
            f"unflatten(): argument 'sizes' (position 2) must be tuple of ints, not {kind}"
        )
    if not input.ndim:
        layouts.wrap_dim(dim, 0)
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
            shape = (*shape[:-1], shape[-1] * k)
            strides = (*[s * k for s in strides[:-1]], 1)
            offset *= k
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
            shape = (*shape[:-1], shape[-1] // k)
            strides = (*[s // k for s in strides[:-1]], 1)
            offset //= k
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
    """Reorder the dimensions, all of which are named: a view."""
    return _permuted(input, sizes("permute", dims, "dims"))


def _permuted(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    shape, strides, order = layouts.permuted(x.shape, x._strides, dims)
    saved = {"order": order}
    return core.view(x, shape, strides, x._offset, "PermuteBackward0", _permute_back, None, saved)


def _permute_back(ctx: Any, g: Tensor) -> Tensor:
    order = layouts.permute_inverse(ctx.order)
    if not _is_final(g):
        return g.permute(order)
    strides = g._strides
    return aliased(g, ctx.shapes[0], tuple([strides[d] for d in order]))


@public(aliases=("swapdims",))
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Swap two dimensions."""
    new = layouts.transpose(input.shape, input._strides, input._offset, dim0, dim1)
    saved = {"dim0": dim0, "dim1": dim1}
    return core.view(input, *new, "TransposeBackward0", _transpose_back, None, saved)


def _transpose_back(ctx: Any, g: Tensor) -> Tensor:
    a, b = ctx.dim0, ctx.dim1
    if not _is_final(g) or not g.shape:
        return g.transpose(a, b)
    strides = [*g._strides]
    strides[a], strides[b] = strides[b], strides[a]
    return aliased(g, ctx.shapes[0], tuple(strides))


@public()
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """Swap two dimensions, as numpy calls them."""
    return transpose(input, axis0, axis1)


@public()
def t(input: Tensor) -> Tensor:
    """Transpose a matrix; vectors and scalars stay as they are."""
    shape, strides = input.shape, input._strides
    if len(shape) > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {len(shape)}D")
    if len(shape) == 2:
        (m, n), (p, q) = shape, strides
        shape, strides = sized((n, m)), (q, p)
    return core.view(input, shape, strides, input._offset, "TBackward0", _t_back, None)


def _t_in_place(x: Tensor) -> Tensor:
    if x.ndim > 2:
        raise RuntimeError(f"t_() expects a tensor with <= 2 dimensions, but self is {x.ndim}D")
    return t(x)


def _t_back(ctx: Any, g: Tensor) -> Tensor:
    if _is_final(g) and len(g.shape) == 2:
        return aliased(g, ctx.shapes[0], g._strides[::-1])
    return g.t()


def numpy_H(self: Tensor) -> Tensor:
    """Conjugate transpose of a matrix."""
    if self.ndim not in (0, 2):
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {self.ndim}-D tensor."
            + (" For batches of matrices, consider using tensor.mH" if self.ndim > 2 else "")
        )
    return matrix_H(self)


def numpy_T(self: Tensor) -> Tensor:
    """All dimensions reversed."""
    if self.ndim not in (0, 2):
        warn_once(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will throw an error in a future "
            "release. Consider `x.mT` to transpose batches of matrices or `x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor."
        )
    return _permuted(self, tuple(range(self.ndim - 1, -1, -1)))


def _same(warning: str, x: Tensor) -> Tensor:
    warnings.warn(warning, UserWarning, stacklevel=caller_level())
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
    order = layouts.movedim_order(input.ndim, source, destination)
    if not order:
        return core.view(input, input.shape, None, input._offset, "AliasBackward0", None, None)
    return _permuted(input, order)


# ------------------------------------------------------------------------------------------- ones


@public()
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """Insert a dimension of size 1."""
    new = layouts.unsqueeze(input.shape, input._strides, input._offset, dim)
    saved = {"dim": dim if dim >= 0 else dim + len(new[0])}
    return core.view(input, *new, "UnsqueezeBackward0", _unsqueeze_back, None, saved)


def _unsqueeze_back(ctx: Any, g: Tensor) -> Tensor:
    return g.squeeze(ctx.dim)


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
    return view_of(input, new, name, view_back)


# ------------------------------------------------------------------------------------------- broadcasting


@public(function=False)
@variadic("size")
def expand(self: Tensor, *size: Any, implicit: bool = False) -> Tensor:
    """Repeat dimensions of size 1 without copying; -1 keeps a size."""
    wanted = sizes("expand", size, "size")
    if len(wanted) < len(self.shape):
        layouts.expand_shape(self.shape, wanted, type_string(self))  # raises
    new = layouts.expand(self.shape, self._strides, self._offset, wanted)
    return core.view(self, *new, "ExpandBackward0", None, None)


@public(function=False)
def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """Expand to the other tensor's shape."""
    check_tensor("expand_as", "other", 1, other)
    return expand(self, tuple(other.shape))


@public("broadcast_to")
def broadcast_to(input: Tensor, size: Sequence[int]) -> Tensor:
    """Expand to a shape."""
    if isinstance(size, int):
        raise TypeError(
            f"broadcast_to(): argument 'size' (position 2) must be tuple of ints, not {type(size).__name__}"
        )
    return expand(input, tuple(size))


METHODS["broadcast_to"] = variadic("size")(
    lambda self, *size: expand(self, sizes("broadcast_to", size, "size"))
)


@public("broadcast_tensors", method=False)
def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Expand tensors to their common shape."""
    if len(tensors) == 1 and isinstance(tensors[0], tuple | list):
        tensors = tuple(tensors[0])
    shape = layouts.broadcast_shapes(*[x.shape for x in tensors])
    return tuple(x if x.shape == shape else expand(x, shape) for x in tensors)


@public(function=False)
@variadic("size")
def sum_to_size(self: Tensor, *size: Any) -> Tensor:
    """Sum over the dimensions along which `size` broadcasts to this tensor's shape; RuntimeError if it does not."""
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


# ------------------------------------------------------------------------------------------- in place


# torch's nodes of the in-place forms, where they have names of their own.
_INPLACE_NODES = {
    "TBackward0": "TBackward1", "TransposeBackward0": "TransposeBackward1", "UnsqueezeBackward0": "UnsqueezeBackward1", "SqueezeBackward0": "SqueezeBackward3",
    "SqueezeBackward1": "SqueezeBackward4", "SqueezeBackward2": "SqueezeBackward5", "AsStridedBackward0": "AsStridedBackward1",
}  # fmt: skip


def inplace_view(name: str, fn: Callable) -> None:
    """Add the in-place form of a view: the tensor object takes the new layout."""

    def method_(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        views.check_inplace(self)
        out = fn(self, *args, **kwargs)
        node = out._node
        if node is not None and node is not self._node:
            node.__class__ = op_class(_INPLACE_NODES[type(node).__name__])
        self._vc.value += 1
        return self._take_layout(out)

    titled(method_, name, f"In-place form of `{name[:-1]}`: the tensor object takes the new shape.")
    METHODS[name] = method_


for _name, _fn in (
    ("t_", _t_in_place),
    ("transpose_", transpose),
    ("swapaxes_", swapaxes),
    ("swapdims_", transpose),
    ("squeeze_", squeeze),
    ("unsqueeze_", unsqueeze),
):
    inplace_view(_name, _fn)
