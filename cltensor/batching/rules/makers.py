"""Rules for methods that create tensors: from a batched tensor they create batched ones, into which batched values can be written."""

from __future__ import annotations

from typing import Any

from ...ops.shape import sizes
from ..calls import Call, rule


@rule("new_zeros new_ones new_empty")
def filled(call: Call, input: Any, *size: Any, **kwargs: Any) -> Any:
    """Return a tensor that has the given size for each slice."""
    if "size" in kwargs:
        size = (kwargs.pop("size"),)
    return call.hide(
        call.f(call.front(input), (call.size, *sizes(call.name, size, "size")), **kwargs)
    )


@rule("new_full")
def full(call: Call, input: Any, size: Any, fill_value: Any, **kwargs: Any) -> Any:
    """Return a tensor that has the given size for each slice, filled with one value or with a value for each slice."""
    if call.here(fill_value) or not call.here(input):
        like = input if call.here(input) else fill_value
        made = like.new_empty(size, **({"dtype": input.dtype} | kwargs))
        return made.copy_(fill_value)
    return call.hide(call.f(call.front(input), (call.size, *size), fill_value, **kwargs))


@rule("new_empty_strided")
def strided(call: Call, input: Any, size: Any, stride: Any, **kwargs: Any) -> Any:
    """Return a tensor that has the given size and strides for each slice; the slices lie one after the other."""
    span = 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) if all(size) else 0
    return call.hide(call.f(call.front(input), (call.size, *size), (span, *stride), **kwargs))


@rule("new_tensor tensor as_tensor asarray")
def refused(call: Call, *args: Any, **kwargs: Any) -> Any:
    """Return a tensor made from data; a detached copy if the data are a batched tensor."""
    data = args[1] if call.name == "new_tensor" else args[0]
    if call.here(data):
        named = {k: v for k, v in kwargs.items() if k in ("dtype", "device")}
        return data.detach().clone().to(**named) if named else data.detach().clone()
    if call.name == "new_tensor":
        return call.f(call.front(args[0]), *args[1:], **kwargs)
    return call.fallback()


@rule("arange linspace logspace full scalar_tensor")
def numbers(call: Call, *args: Any, **kwargs: Any) -> Any:
    """Return a tensor made from batched 0-dim tensors: a fill value is copied in; others need a loop over slices."""
    if call.name in ("full", "scalar_tensor"):
        given = dict(kwargs)
        args = list(args)  # type: ignore[assignment]
        value = args.pop() if call.here(args[-1]) else given.pop("fill_value")  # type: ignore[attr-defined]
        size = args[0] if args else given.pop("size", ())
        made = value.new_empty(tuple(size), **given)
        return made.copy_(value)
    return call.loop()
