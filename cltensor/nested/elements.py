"""Functions of single elements of jagged tensors: computed on the values, beside numbers, dense and nested operands."""

from __future__ import annotations

from typing import Any

from ..ops.row import first_name
from ..tensor import Tensor
from .ragged import Ragged
from .tensor import JaggedTensor, NestedTensor, compact, make

_IN_PLACE = frozenset(
    [
        "__iadd__",
        "__isub__",
        "__imul__",
        "__itruediv__",
        "__ifloordiv__",
        "__imod__",
        "__ipow__",
        "__iand__",
        "__ior__",
        "__ixor__",
        "__ilshift__",
        "__irshift__",
    ]
)


def in_place(name: str) -> bool:
    """Tell whether a function writes to its first argument."""
    return name in _IN_PLACE or (name.endswith("_") and not name.endswith("__"))


def _by_elements(func: Any, args: Any, kwargs: Any) -> Any:
    first = next(a for a in (*args, *kwargs.values()) if isinstance(a, JaggedTensor))
    name = first_name(func)
    if name == "contiguous":
        return (
            first
            if first.is_contiguous()
            else _wrap(compact(first)._v.contiguous(), compact(first))
        )
    given = [_values(a, first, name) for a in args]
    named = {k: _values(a, first, name) for k, a in kwargs.items()}
    made = func(*given, **named)
    if in_place(name):
        if not isinstance(args[0], NestedTensor):
            raise RuntimeError(f"{name}(): a nested operand cannot be written to a dense tensor")
        args[0].dtype = args[0]._v.dtype
        return args[0]
    return _wrap(made, first)


def _wrap(made: Any, like: JaggedTensor) -> Any:
    if isinstance(made, Tensor):
        return _placed(made, like)
    if isinstance(made, tuple):
        parts = [_wrap(x, like) for x in made]
        return type(made)(parts)
    return made


def _placed(values: Any, like: JaggedTensor) -> JaggedTensor:
    p = like._pattern
    if values.device != p.offsets.device:
        offsets, lengths = (
            None if x is None else x.to(values.device) for x in (p.offsets, p.lengths)
        )
        p = Ragged.of(offsets, lengths, *p.known)
    return make(values, p, like._at)


def _values(a: Any, first: JaggedTensor, name: str) -> Any:
    """Return an operand as one that broadcasts to the values of `first`."""
    if isinstance(a, JaggedTensor):
        if a._pattern is not first._pattern or a._at != first._at or a.ndim != first.ndim:
            raise _mismatch(name, first, a)
        return a._v
    if isinstance(a, NestedTensor):
        raise _mismatch(name, first, a)
    if isinstance(a, Tensor) and a.ndim:
        return beside(a, first, name)
    return a


def _mismatch(name: str, a: Any, b: Any) -> RuntimeError:
    shapes = [tuple(x.shape) if isinstance(x, JaggedTensor) else x.size() for x in (a, b)]
    return RuntimeError(
        f"cannot call binary pointwise function {name} with inputs of shapes {shapes[0]} and {shapes[1]}"
    )


def beside(x: Any, like: JaggedTensor, name: str) -> Any:
    """Return a dense operand that broadcasts to `like` as one that broadcasts to its values.

    Along the ragged dim it has one element, or as many as the longest sequence.
    """
    ndim, at, p = like.ndim, like._at, like._pattern
    if x.ndim > ndim:
        raise _mismatch(name, like, x)
    sizes = (1,) * (ndim - x.ndim) + tuple(x.shape)
    if sizes[0] == sizes[at] == 1:
        return x.squeeze(0) if x.ndim == ndim else x
    if sizes[0] not in (1, p.count) or p.lengths is not None:
        raise _mismatch(name, like, x)
    if sizes[at] == 1:
        return spread(x.squeeze(at), like)
    if sizes[at] != p.longest or sizes[0] != p.count:
        raise _mismatch(name, like, x)
    return unpadded(x.reshape(sizes).expand(p.count, *sizes[1:]), like)


def spread(x: Any, like: JaggedTensor) -> Any:
    """Give each place along the ragged dim its sequence's part of x [B, dims other than the ragged one]."""
    p, at = like._pattern, like._at
    total = like._v.shape[at - 1]
    if x.is_floating_point() and p.lengths is None:
        found = p.segments(total).spread(x)
    else:
        found = x.index_select(0, p.packed.owners)
    return found.movedim(0, at - 1)


def unpadded(x: Any, like: JaggedTensor) -> Any:
    """Return values [...] in the places of `like`, without gaps, of a dense x [B, ..., longest, ...]."""
    p, at = like._pattern.packed, like._at
    rows = x.movedim(at, 1).flatten(0, 1)
    return rows.index_select(0, p.padded).movedim(0, at - 1)


JaggedTensor._by_elements = staticmethod(_by_elements)
