"""What all factories of tensors share: torch's keywords, the dtype and device these ask for, `out=` and
`requires_grad`.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

from .. import dtypes, layouts
from ..memory_format import strided
from ..ops import arguments, core, writes
from ..ops.convert import place
from ..ops.dims import check_flag
from ..ops.elsewhere import elsewhere
from ..ops.operands import check_tensor
from ..ops.shape import sizes
from ..size import Size, sized
from ..tensor import Tensor

Maker = Callable[..., Tensor]

_SHARED = {
    "dtype": None,
    "layout": None,
    "device": None,
    "requires_grad": False,
    "pin_memory": False,
}


def finish(t: Tensor, requires_grad: bool, out: Tensor | None = None, function: str = "") -> Tensor:
    """Return a new tensor as the caller asked for it: written into `out`, or requiring a gradient."""
    if out is not None:
        if out.shape != t.shape and out.numel() == t.numel() and t.ndim == 1:
            # A 1-D result fills an `out` of as many elements, whatever its shape.
            t = t.view(out.shape)
        elif out.shape != t.shape:
            if function == "arange" and out.numel():
                warnings.warn(
                    f"The number of elements in the out tensor of shape {list(out.shape)} is {out.numel()} which does not match the computed number of "
                    f"elements {t.numel()}. Note that this may occur as a result of rounding error. The out tensor will be resized to a tensor of shape ({t.numel()},).",
                    UserWarning, stacklevel=3,
                )  # fmt: skip
            out.resize_(t.shape)
        return writes.deliver(t, out, function)
    if requires_grad:
        core.ask_gradient(t)
    return t


def shape_of(function: str, size: tuple, named: Any = None) -> Size:
    """Return the shape that separate sizes, one sequence or `size=` ask for."""
    if named is not None and not size:
        size = (named,)
    for n in size:
        if n.__class__ is not int or n < 0:
            break
    else:
        if size:
            return sized(size)
    if len(size) == 1 and size[0].__class__ is Size and min(size[0], default=0) >= 0:
        return size[0]
    return Size(layouts.check_shape(sizes(function, size, "size")))


def _publish(call: Any, make: Maker, *, out: bool = False) -> Maker:
    """Give a public form its maker's name, docstring and signature, with torch's shared keywords in place of `dt` and
    `dev`.
    """
    call.__name__ = call.__qualname__ = make.__name__
    call.__doc__, call.__module__ = make.__doc__, make.__module__
    own = inspect.signature(make)
    kept = [p for p in own.parameters.values() if p.name not in ("dt", "dev")]
    rest = [kept.pop()] if kept[-1].kind is inspect.Parameter.VAR_KEYWORD else []
    shared = {"out": None, **_SHARED} if out else _SHARED
    kept += [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=default,
            annotation="Any" if default is None else "bool",
        )
        for name, default in shared.items()
    ]
    call.__signature__ = own.replace(parameters=kept + rest)
    return call


def _prototype(call: Maker, args: tuple, named: dict[str, Any]) -> Tensor:
    like: Any = args[0] if args else named.get("input")
    if not core.is_tensor(like):
        _refuse(call, args, named)
    return like


def _refuse(call: Maker, args: tuple, named: dict[str, Any]) -> None:
    """Raise torch's error for the arguments if their types, number or names are wrong."""
    name = call.__name__
    error = arguments.flaw_of(call, name, name.startswith("new_"), args, named)
    if error is not None:
        raise error from None


def _with_keywords(make: Maker, *, prototype: bool = False, into: bool = False) -> Maker:
    name = make.__name__

    def call(
        *args: Any,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
        **named: Any,
    ) -> Tensor:
        dt = None if dtype is None else dtypes.asked(dtype, name)
        dev, out = None if device is None else place(device), None
        if prototype:
            like = _prototype(call, args, named)
            dt, dev = dt or like.dtype, dev or like.device
        elif named and "out" in named:
            given = named.pop("out") if into else named["out"]
            if given is not None:
                check_tensor(name, "out", 0, given)
                dt = writes.dtype_into(given, dt, layout, dev)
                if given._strided:
                    out = given if into else None
                else:
                    layout, dev, named["out"] = given.layout, given.device, given
        if layout is not None and layout is not strided:
            others = {"dtype": dt, "layout": layout, "device": dev, "requires_grad": requires_grad}
            return elsewhere(f"{name} laid out", args, {**named, **others})
        if requires_grad.__class__ is not bool and requires_grad is not None:
            check_flag(name, "requires_grad", requires_grad)
        try:
            made = make(*args, dt=dt, dev=dev or place(None), **named)
        except Exception:
            _refuse(call, args, named)
            raise
        if out is not None:
            made = finish(made, False, out, name)
        return finish(made, True) if requires_grad else made

    return _publish(call, make, out=into)


def factory(make: Maker) -> Maker:
    """Give a maker torch's shared keywords.

    `make` takes the device as `dev` and, as `dt`, the dtype asked for or None.
    """
    return _with_keywords(make)


def factory_into(make: Maker) -> Maker:
    """Give a maker torch's shared keywords and `out=`, see `factory`."""
    return _with_keywords(make, into=True)


def prototyped(make: Maker) -> Maker:
    """Give a maker whose first argument is a tensor torch's shared keywords; dtype and device are that tensor's unless given."""
    return _with_keywords(make, prototype=True)
