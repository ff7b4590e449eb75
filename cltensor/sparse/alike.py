"""Sparse tensors made after another: `zeros_like` and its kin, `new_zeros`, `zero_`.

`empty_like` of a compressed matrix has its entries, and `ones_like` and others give these values; of a tensor of
coordinates it has none, which nothing fills.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import creation
from ..creation.factory import place
from ..memory_format import layout as Layout
from ..memory_format import sparse_coo, strided
from ..ops import core
from ..ops.elsewhere import refuse
from ..ops.row import FUNCTIONS as F
from .convert import relaid
from .creation import empty
from .table import op
from .tensor import LAYOUT_NAMES, SparseTensor, entries

Tensor = Any


def _empty_like(input: Any, kind: Layout, dtype: Any, device: Any, memory_format: Any) -> Any:
    """Return a dense tensor of undefined elements, a compressed matrix of undefined entries, or one without entries."""
    if kind is strided and input.layout is sparse_coo:
        return creation.empty(input.shape, dtype=dtype, device=device, memory_format=memory_format)
    if input.layout is sparse_coo:
        if memory_format is not None:
            raise RuntimeError("memory format option is only supported by strided tensors")
        return relaid(empty(input.shape, dtype, device, input.sparse_dim()), kind)
    if kind is not input.layout:
        asked = LAYOUT_NAMES.get(kind, "Strided")
        raise RuntimeError(
            f"empty_like with different sparse layout is not supported (self is {LAYOUT_NAMES[input.layout]} but you requested {asked})"
        )
    p = input._pattern
    p = p.clone() if device == input.device else p.to(device)
    values = F["empty_like"](input._v, dtype=dtype, device=device, memory_format=memory_format)
    return SparseTensor._of(p, values, input.shape, kind)


def _like(name: str, torch_name: str, fill: Callable[..., Any] | None) -> None:
    """Enter `<name>_like`: `fill` fills dense values in place; `torch_name` is the operator that refuses others."""

    @op(f"{name}_like")
    def like(
        input: Any,
        *args: Any,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
        memory_format: Any = None,
        **named: Any,
    ) -> Any:
        kind, dev = layout or input.layout, place(device or input.device)
        made = _empty_like(input, kind, dtype or input.dtype, dev, memory_format)
        if kind is strided:
            made = F[f"{name}_like"](made, *args, **named)
        elif name != "empty":
            if fill is None or kind is sparse_coo:
                raise refuse(torch_name)
            fill(made._v, *args, **named)
        if requires_grad:
            core.ask_gradient(made)
        return made


_like("empty", "", None)
_like("ones", "fill_.Scalar", lambda v: v.fill_(1))
_like("full", "fill_.Scalar", lambda v, fill_value: v.fill_(fill_value))
_like("randn", "normal_", lambda v, generator=None: v.normal_(generator=generator))
_like("rand", "uniform_", None)
_like("randint", "random_.from", None)


@op("zeros_like")
def zeros_like(
    input: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Any:
    """Make a tensor of the same sizes without entries; a dense one of zeros if `layout` says so."""
    kind, dt, dev = layout or input.layout, dtype or input.dtype, place(device or input.device)
    if input.layout is sparse_coo or kind is strided:
        made = _empty_like(input, kind, dt, dev, memory_format)
        made = made.zero_() if kind is strided else made
    else:
        made = relaid(empty(input.shape, dt, dev, input.sparse_dim()), kind)
    if requires_grad:
        core.ask_gradient(made)
    return made


def _new(name: str) -> None:
    @op(f"new_{name}", function=False)
    def new_blank(
        self: Any,
        *size: Any,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
        **named: Any,
    ) -> Any:
        """Make a tensor of given sizes without entries, by default with self's layout, dtype and device."""
        shape = named.get("size", size)
        return getattr(creation, name)(
            *shape,
            dtype=dtype or self.dtype,
            layout=layout or self.layout,
            device=device or self.device,
            requires_grad=requires_grad,
        )


_new("zeros")
_new("empty")


def _refused(name: str) -> None:
    @op(f"new_{name}", function=False)
    def new_filled(self: Any, *args: Any, layout: Any = None, **named: Any) -> Any:
        """Make a dense tensor, where `layout` says so."""
        if layout is not strided:
            raise refuse("fill_.Scalar")
        named["dtype"], named["device"] = named.get("dtype") or self.dtype, named.get("device") or self.device  # fmt: skip
        return getattr(creation, name)(*args, **named)


_refused("ones")
_refused("full")


def _in_place(name: str, torch_name: str) -> None:
    @op(name, function=False)
    def fill(self: Any, *args: Any, **kwargs: Any) -> Any:
        """Fill the entries of a compressed matrix."""
        if self.layout is sparse_coo:
            raise refuse(torch_name)
        values = entries(self, F["empty_like"](self._v))
        getattr(values._v, name)(*args, **kwargs)
        return self._become(values)


_in_place("fill_", "fill_.Scalar")
_in_place("normal_", "normal_")


@op("zero_")
def zero_(self: Any) -> SparseTensor:
    """Drop all entries, in place."""
    return self._become(zeros_like(self))
