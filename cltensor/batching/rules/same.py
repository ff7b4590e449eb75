"""Rules for copies, conversions and `*_like` functions, which keep the layout: the hidden dimension keeps its position."""

from __future__ import annotations

from typing import Any

from ...layouts import is_non_overlapping_and_dense
from ...memory_format import contiguous_format, preserve_format
from ..batched import hide
from ..calls import Call, rule


@rule(
    "clone float double half bfloat16 int long short char byte bool cfloat cdouble chalf alias_copy "
    "zeros_like ones_like empty_like to_dense"
)
def keep(call: Call, input: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a function of one tensor on the underlying tensor."""
    form = kwargs.get("memory_format")
    if form is not None and form is not contiguous_format and form is not preserve_format:
        raise RuntimeError(
            f"NYI: Tensor.{call.name}(memory_format) inside vmap is only supported with memory_format torch.preserve_format or "
            f"torch.contiguous_format (got {form})"
        )
    if form is not contiguous_format and _has_gaps(call, input):
        kwargs["memory_format"] = form = contiguous_format
    if form is contiguous_format:
        return hide(call.f(call.front(input), *args, **kwargs), 0, call.level)
    return hide(call.f(input.value, *args, **kwargs), input.bdim, call.level)


def _has_gaps(call: Call, input: Any) -> bool:
    """Return whether a slice is not dense because other slices lie between its elements: torch copies such a slice contiguously."""
    if not input.bdim or call.name in ("alias_copy", "to_dense"):
        return False
    return not is_non_overlapping_and_dense(tuple(input.shape), input.stride())


@rule("contiguous")
def contiguous(call: Call, input: Any, memory_format: Any = contiguous_format) -> Any:
    """Return the tensor with each slice contiguous in row-major order."""
    if memory_format is not contiguous_format:
        raise RuntimeError(
            "NYI: Tensor.contiguous(...) inside of vmap for memory_format other than torch.contiguous_format"
        )
    return call.hide(call.front(input).contiguous())


@rule("to type_as")
def to(call: Call, input: Any, *args: Any, **kwargs: Any) -> Any:
    """Convert to a dtype or device, or to those of another tensor."""
    other = next((v for v in (*args, *kwargs.values()) if hasattr(v, "_vc")), None)
    if other is not None:
        given = {k: v for k, v in kwargs.items() if v is not other}
        rest = [v for v in args if v is not other]
        if not call.here(input):
            return input.to(other.device, other.dtype, *rest, **given)
        return hide(
            input.value.to(other.device, other.dtype, *rest, **given), input.bdim, call.level
        )
    return hide(call.f(input.value, *args, **kwargs), input.bdim, call.level)


@rule("full_like")
def full_like(call: Call, input: Any, fill_value: Any, **kwargs: Any) -> Any:
    """Return a tensor of the input's shape, filled with one value or with a value for each slice."""
    if not call.here(input):
        return call.fallback()
    if call.here(fill_value):
        made = call.hide(call.front(input).new_empty(call.front(input).shape, **kwargs))
        return made.copy_(fill_value)
    return hide(call.f(input.value, fill_value, **kwargs), input.bdim, call.level)
