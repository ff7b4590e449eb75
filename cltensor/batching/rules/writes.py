"""Rules for in-place writes: batched values can be written into batched tensors only.

A tensor that is not batched has one value for all slices, and cannot hold different ones.
"""

from __future__ import annotations

from typing import Any

from ...memory_format import preserve_format
from ...ops.row import FUNCTIONS, METHODS
from ..calls import RULES, Call, rule
from .pointwise import aligned, rank, refuse_unbatched


@rule("copy_")
def copy(call: Call, self: Any, src: Any, non_blocking: bool = False) -> Any:
    """Copy the elements of `src`, broadcast, into the tensor."""
    refuse_unbatched(call, self)
    if rank((self, src)) > len(self.shape):
        raise RuntimeError(
            f"output with shape {list(self.shape)} doesn't match the broadcast shape {list(src.shape)}"
        )
    into = call.front(self)
    if call.here(src):
        src = call.front(src)
        missing = len(into.shape) - len(src.shape)
        if missing:
            src = src.reshape(src.shape[0], *(1,) * missing, *src.shape[1:])
    into.copy_(src)
    return self


@rule("clamp_ clip_ lerp_ addcmul_ addcdiv_ nan_to_num_ add_ sub_ subtract_ div_ divide_ true_divide_ floor_divide_ remainder_ fmod_ pow_ "
      "clamp_min_ clamp_max_ square_ abs_ absolute_ round_ logit_ float_power_ bitwise_left_shift_ bitwise_right_shift_")  # fmt: skip
def elements(call: Call, self: Any, *args: Any, **kwargs: Any) -> Any:
    """Apply a pointwise function in place."""
    refuse_unbatched(call, self)
    keys = list(kwargs)
    values = [self, *args, *kwargs.values()]
    if rank(values) > len(self.shape):
        return call.fallback()
    made = aligned(call, values)
    into = made[0]
    call.f(into, *made[1 : len(args) + 1], **dict(zip(keys, made[len(args) + 1 :], strict=True)))
    return self


@rule("deliver")
def deliver(call: Call, value: Any, out: Any, function: str, *args: Any, **kwargs: Any) -> Any:
    """Return a computed result; with `out=`, into which it would be written, raise RuntimeError as torch does."""
    if out is None:
        return value
    raise RuntimeError(
        f"Batching rule not implemented for aten::{function}.out; the fallback path doesn't work on out= or view ops."
    )


@rule("fill_")
def fill(call: Call, self: Any, value: Any) -> Any:
    """Fill with a number, which may be batched."""
    if len(value.shape if hasattr(value, "_vc") else ()):
        raise RuntimeError(
            f"fill_ only supports 0-dimension value tensor but got tensor with {len(value.shape)} dimensions."
        )
    if not call.here(value):
        self.value.fill_(value)
        return self
    return self.copy_(value)


@rule("masked_fill_")
def masked_fill_(call: Call, self: Any, mask: Any, value: Any) -> Any:
    """Fill in place with a number, which may be batched, where a mask holds."""
    refuse_unbatched(call, self)
    return self.copy_(self.masked_fill(mask, value))


@rule("masked_fill")
def masked_fill(call: Call, input: Any, mask: Any, value: Any) -> Any:
    """Return the input filled with a number, which may be batched, where a mask holds."""
    if not call.here(value):
        input, mask = aligned(call, (input, mask))
        return call.hide(call.f(input, mask, value))
    if len(value.shape):
        raise RuntimeError(
            f"masked_fill only supports a 0-dimensional value tensor, but got tensor with {len(value.shape)} dimension(s)."
        )
    return FUNCTIONS["where"](mask, value.to(input.dtype), input)


@rule("zero_")
def zero(call: Call, self: Any) -> Any:
    """Write zeros."""
    self.value.zero_()
    return self


@rule("assign")
def assign(call: Call, t: Any, fn: Any, *, resize: bool = False) -> Any:
    """Replace a tensor's value by `fn(t)`."""
    if not call.here(t):
        return call.entry.original(t, fn, resize=resize)
    return t.copy_(fn(t))


@rule("squeeze_ unsqueeze_ t_ transpose_ swapaxes_ swapdims_ as_strided_")
def reshaped(call: Call, self: Any, *args: Any, **kwargs: Any) -> Any:
    """Turn the tensor itself into a view of its elements, which the function of the same name without `_` returns."""
    return self._become(getattr(self, call.name[:-1])(*args, **kwargs))


@rule("resize_")
def resize(call: Call, self: Any, *size: Any, memory_format: Any = None) -> Any:
    """Resize all slices in place, in the memory that they have together; the batch dimension has to be the first one."""
    refuse_unbatched(call, self)
    if self.bdim:
        raise RuntimeError("NYI: resize_ batch rule for batch dim != 0")
    shape = size[0] if len(size) == 1 and isinstance(size[0], tuple | list) else size
    call.f(self.value, (self.value.shape[0], *shape), memory_format=memory_format)
    return self


@rule("resize_as_")
def resize_as(call: Call, self: Any, the_template: Any, *, memory_format: Any = None) -> Any:
    """Resize all slices in place to the shape of another tensor's."""
    refuse_unbatched(call, self, "aten::resize_as_")
    if memory_format is preserve_format:
        memory_format = None
    return self.resize_(tuple(the_template.shape), memory_format=memory_format)


@rule("set_")
def share(call: Call, self: Any, *source: Any, **layout: Any) -> Any:
    """Let the slices share another tensor's memory."""
    refuse_unbatched(call, self, "aten::set_")
    return call.fallback()


def _out_of_place(call: Call, self: Any, *args: Any, **kwargs: Any) -> Any:
    """Write the result of the method of the same name without `_` into the tensor."""
    refuse_unbatched(call, self)
    return self.copy_(getattr(self, call.name[:-1])(*args, **kwargs))


def _rest() -> None:
    """Give all in-place methods that have no rule yet the rule `_out_of_place`."""
    for name in METHODS:
        plain = name[:-1]
        if (
            name.endswith("_")
            and not name.endswith("__")
            and plain in METHODS
            and name not in RULES
        ):
            RULES[name] = _out_of_place


_rest()
