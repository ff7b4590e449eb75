"""`view_copy` and similar: each view function with its result copied into memory of its own; and the unsafe splits.

One table of view functions; a copy takes over the view's grad node, renamed. The parts of an unsafe split are in the
input's memory, but are no views of it for autograd.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd import dual
from ..autograd.mode import FORWARD, unrecorded
from ..autograd.node import op_class
from ..dtypes import dtype as DType
from ..memory_format import contiguous_format
from . import complex_numbers, convert, parts, shape, writes
from .core import Tensor
from .operands import check_tensor
from .row import FUNCTIONS, METHODS
from .values import into


def _clone(value: Tensor) -> Tensor:
    with unrecorded():
        return convert.clone(value.detach(), memory_format=contiguous_format)


def _same_memory(value: Tensor) -> Tensor:
    return value.data  # with a version of its own


def _copying(
    name: str, view: Callable, node_name: str = "", copy: Callable[[Tensor], Tensor] = _clone
) -> Callable:
    """Export `name`, which copies what `view` returns; its grad node is named as the view's, with `_copy`."""

    def function(input: Tensor, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        check_tensor(name, "input", 1, input)
        if out is not None and not name.endswith("_copy"):
            raise TypeError(f"{name}() got an unexpected keyword argument 'out'")
        seen = view(input, *args, **kwargs)
        if not isinstance(seen, tuple | list):
            value = copy(seen)
            if out is not None:
                return into(value, out, name, (input,))
            _take_over(seen, value)
            return value
        values = tuple([copy(v) for v in seen])
        if out is None:
            for one, value in zip(seen, values, strict=True):
                _take_over(one, value)
            return values
        for value, o in writes.each(values, out):
            into(value, o, name, ())
        return None

    def _take_over(seen: Tensor, value: Tensor) -> None:
        if FORWARD.open:
            dual.keep(value, seen)
        node = seen.grad_fn
        if node is None:
            return
        kind = type(node).__name__
        if kind.endswith(("0", "1")):  # not yet renamed by a sibling
            node.__class__ = op_class(node_name or f"{kind}_copy")
        value._node, value._nr = node, seen._nr

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"Copy what `{name.removesuffix('_copy').removeprefix('unsafe_')}` is a view of."
    )
    FUNCTIONS[name] = function
    return function


def _alias(x: Tensor) -> Tensor:
    return shape.view_of(x, (x.shape, x._strides, x._offset), "AliasBackward0", lambda ctx, g: g)


def _narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    if input.ndim and dim >= input.ndim:
        raise RuntimeError(
            "Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got false."
        )
    if length < 0:
        raise RuntimeError(
            f"start ({start}) + length ({length}) exceeds dimension size ({input.shape[dim]})."
        )
    return parts.narrow(input, dim, start, length)


def _viewed(input: Tensor, *given: Any, size: Any = None, dtype: Any = None) -> Tensor:
    """Return the view of a dtype, or of a shape, which need not be possible in the input's own memory."""
    asked = given or (dtype if size is None else size,)
    return shape.view(input if isinstance(asked[0], DType) else input.contiguous(), *asked)


_copying("alias_copy", _alias)
_copying("as_strided_copy", parts.as_strided)
_copying("detach_copy", _alias, "DetachCopyBackward0")
_copying("diagonal_copy", parts.diagonal)
_copying("expand_copy", shape.expand)
METHODS["narrow_copy"] = _copying("narrow_copy", _narrow, "NarrowCopyBackward0")
_copying("permute_copy", shape.permute)
_copying("select_copy", parts.select)
_copying("slice_copy", parts.slice_dim)
_copying("split_copy", parts.split)
_copying("split_with_sizes_copy", parts.split_with_sizes)
_copying("squeeze_copy", shape.squeeze)
_copying("t_copy", shape.t)
_copying("transpose_copy", shape.transpose)
_copying("unbind_copy", parts.unbind)
_copying("unfold_copy", parts.unfold)
_copying("unsqueeze_copy", shape.unsqueeze)
_copying("view_as_complex_copy", complex_numbers.view_as_complex)
_copying("view_as_real_copy", complex_numbers.view_as_real)
_copying("view_copy", _viewed)
for _name, _view in (
    ("unsafe_chunk", parts.chunk),
    ("unsafe_split", parts.split),
    ("unsafe_split_with_sizes", parts.split_with_sizes),
):
    METHODS[_name] = _copying(_name, _view, "UnsafeSplitBackward0", _same_memory)
    FUNCTIONS[
        _name
    ].__doc__ = f"`{_name.removeprefix('unsafe_')}`, whose parts autograd does not know to share the input's memory: they may be written to."
