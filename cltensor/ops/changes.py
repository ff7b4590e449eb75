"""Changes that a kernel makes to a tensor: each is written once, and gets an out-of-place and an in-place form.

`change` records either form, `both` exports them. Owns what such kernels may read and write. Knows none of the kernels.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from .. import dtypes
from ..autograd import record as graph
from ..autograd import views
from ..autograd.mode import unrecorded
from ..codegen.operand import Operand
from ..errors import class_name
from ..lazy import Expr, Scalar
from . import core, formats, parts, writes
from .core import Tensor, is_tensor
from .row import METHODS, public, titled

INTEGERS = (dtypes.int64, dtypes.int32)


def target(t: Tensor) -> Operand:
    """Return a tensor's memory as the operand that a kernel writes; pending readers of the old contents are run first."""
    return Operand(t._storage.for_write(), t.dtype, t.shape, t._strides, t._offset)


def reading(x: Tensor, t: Tensor) -> Operand:
    """Return the memory of `x` as an operand of a kernel that writes `t`; torch's RuntimeError where the two share
    memory.

    If `x` is on the same storage, a copy is returned, because whether the two overlap may be too hard to tell.
    """
    if x._storage is not t._storage:
        return core.kernel_operand(x)
    writes.check_overlap(t, (x,), apart=True)
    return core.kernel_operand(core.snapshot(x))


def backend_of(t: Tensor) -> Any:
    """Return the backend of a tensor's memory."""
    return t._storage.backend


def change(
    node: str,
    t: Tensor,
    others: Sequence[Any],
    run: Callable[[Tensor], None],
    backward: Callable,
    saved: dict[str, Any],
    *,
    inplace: bool,
    overlap: bool = False,
    anew: Callable[[Tensor], Tensor | None] | None = None,
) -> Tensor:
    """Return `t` after `run` has written into it (`inplace`), or a changed copy; record a node with the inputs (t,
    *others).

    overlap: elements of `t` may share memory. anew: returns the changed copy in one pass, or None where it cannot.
    """
    if not inplace:
        with unrecorded():
            made = None if anew is None else anew(t)
            if made is None:
                made = settled_copy(node, t)
                run(made)
            out = made
        if graph.needs_grad(t, *others):
            graph.record(node, (t, *others), out, backward, saved)
        return out
    views.check_inplace(t, *others)
    if not overlap:
        writes.check_own_overlap(t)
    wanted = graph.needs_grad(t, *others)
    if wanted:
        for key, value in saved.items():
            if value is t and key != "result":
                saved[key] = core.snapshot(t)
    with unrecorded():
        run(t)
    t._vc.value += 1
    if wanted:
        graph.rebase(t, node, (t, *others), backward, saved)
    return t


def settled_copy(node: str, t: Tensor) -> Tensor:
    """Return the copy to be written into: row-major, except for ops where torch keeps the order of dims."""
    if t.is_contiguous() or node.startswith(("IndexFill", "IndexPut", "Put")):
        return core.snapshot(t)
    return formats.settled(t, None)


def both(name: str, fn: Callable, *, out: bool = True) -> None:
    """Export `fn(inplace, input, ...)` as function, method and in-place method."""
    fn.__name__ = fn.__qualname__ = name
    parameters = list(inspect.signature(fn).parameters.values())[1:]

    @functools.wraps(fn)
    def function(*args: Any, **kwargs: Any) -> Tensor:
        into = kwargs.pop("out", None) if out else None
        value = fn(False, *args, **kwargs)
        return (
            value
            if into is None
            else writes.deliver(value, into, name, [a for a in args if is_tensor(a)])
        )

    @functools.wraps(fn)
    def method_(*args: Any, **kwargs: Any) -> Tensor:
        return fn(True, *args, **kwargs)

    extra = [inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None)] if out else []
    function.__signature__ = inspect.Signature([*parameters, *extra])  # type: ignore[attr-defined]
    method_.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.__name__ = function.__qualname__ = name
    titled(method_, name + "_", f"In-place form of `{name}`.")
    public(name)(function)
    METHODS[name + "_"] = method_


def need_tensor(function: str, **named: Any) -> None:
    """Raise torch's TypeError for an argument that must be a tensor and is not."""
    for name, value in named.items():
        if not is_tensor(value):
            raise TypeError(
                f"{function}(): argument '{name}' must be Tensor, not {class_name(value)}"
            )


def like(x: Tensor, t: Tensor) -> Tensor:
    """Return an operand on the device of `t`."""
    return x if x.device is t.device or x.device == t.device else x.to(t.device)


def zeros(g: Tensor, sizes: Sequence[int]) -> Tensor:
    """Return zeros of these sizes, of a gradient's dtype and device."""
    return g.new_zeros(tuple(sizes))


def is_zero(value: Any) -> bool:
    """Return whether a storage's value is a pending expression of zeros."""
    if value.__class__ is not Expr or value.op is not core.IDENTITY:
        return False
    (number,) = value.args
    return number.__class__ is Scalar and str(number.value) in ("0", "0.0", "False")


def crop(x: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """View the leading part of `x` that has the given shape."""
    for d, n in enumerate(sizes):
        if x.ndim == len(sizes) and x.shape[d] != n:
            x = parts.slice_dim(x, d, 0, n)
    return x


def uncrop(g: Tensor, full: tuple[int, ...]) -> Tensor:
    """Return the gradient of `crop`: `g` placed into zeros of the shape `full`."""
    if tuple(g.shape) == tuple(full) or g.ndim != len(full):
        return g
    part = tuple(g.shape)
    return parts.embed(g, full, lambda z: crop(z, part))
