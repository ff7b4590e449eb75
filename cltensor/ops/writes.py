"""Writing values into existing tensors: into memory, in place, and through `out=`.

`write` puts an expression into a tensor's memory, `assign` makes in-place forms and `deliver` `out=` forms of functions.
Owns torch's errors for tensors that cannot be written to. Must not know how the values were computed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from .. import config, dtypes, layouts, lazy
from ..autograd import dual, views
from ..autograd import record as graph
from ..autograd.mode import FORWARD, unrecorded
from ..codegen.pointwise import IDENTITY
from ..dtypes import dtype
from ..errors import caller_level
from ..lazy import Expr, Leaf, View
from ..lazy.expression import LIGHT
from ..runtime import device
from ..size import Size
from ..storage import Storage
from . import out_history
from .core import NUMBERS, Tensor, in_order, is_tensor, memory_order, numpy_sees, operand, snapshot
from .elsewhere import elsewhere
from .refusals import out_refusal

# ------------------------------------------------------------------------------------------- memory


def write(t: Tensor, expr: Any, own: Storage | None = None, others: Storage | None = None) -> None:
    """Write an expression of the tensor's shape into the tensor's memory (see Note [In place] in storage.py).

    own: the storage of a temporary tensor, if `expr` is its pending value: it is not run, because nothing will read it.
    others: the storage whose pending value `expr` copies, if others hold it, too.
    """
    storage = t._storage
    backend = storage.backend
    if expr.dtype is not t.dtype:
        expr = Expr(IDENTITY, t.dtype, t.dtype, expr.shape, (expr,))
    if is_replaced(t):
        storage.replace(expr)
        if config.CONFIG.eager or numpy_sees(expr):
            storage.buffer()
        return
    if others is not None:
        _bound(others)
    buffer = storage.for_write(own)
    if _must_copy(expr, t, buffer):
        lazy.force(expr, backend)
    lazy.write_region(backend, expr, t.dtype, buffer, t._strides, t._offset)


def is_replaced(t: Tensor) -> bool:
    """Return whether a write to the whole tensor replaces the value of its storage, instead of writing into memory."""
    storage = t._storage
    return (
        not t._offset
        and t.is_contiguous()
        and layouts.numel(t.shape) * t.dtype.itemsize == storage.nbytes
        and not storage.pinned
        and not storage.shared
    )


def _bound(value: Storage) -> None:
    """Run what a write of a part would compute without keeping it, if later writes would compute it again.

    Otherwise each step of a recurrence that writes its states into a tensor would begin with the first step.
    """
    if lazy.is_grown(value):
        lazy.split("write")
        value.buffer()
        return
    expr = value.value
    lazy.note_read(value)
    if expr.size > LIGHT:
        lazy.run_held(value.backend, expr)


def _must_copy(expr: Expr, t: Tensor, buffer: Any) -> bool:
    """Return whether the expression reads the written buffer at other positions than it writes, and so has to be run
    first.
    """
    todo, seen = [(expr, False)], set()
    while todo:
        e, moved = todo.pop()
        if (id(e), moved) in seen:
            continue
        seen.add((id(e), moved))
        if e.value is not None:
            if e.value is buffer:
                return True
            continue
        for a in e.args:
            if a.__class__ is Leaf:
                if a.buffer is buffer:
                    strides = (
                        layouts.contiguous_strides(e.shape) if a.strides is None else a.strides
                    )
                    same = (
                        not moved
                        and a.offset == t._offset
                        and a.dtype is t.dtype
                        and _same_walk(strides, t._strides, t.shape)
                    )
                    if not same:
                        return True
            elif a.__class__ is View:
                todo.append((a.expr, True))
            elif a.__class__ is Expr:
                todo.append((a, moved))
    return False


def _same_walk(a: tuple[int, ...], b: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Return whether two layouts visit the same positions in the same order."""
    return all(p == q or n == 1 for p, q, n in zip(a, b, shape, strict=True))


def nothing(g: Tensor) -> Tensor:
    """Return zeros that depend on a gradient in the graph, by `where`: a product with zero would make NaN of
    infinities.
    """
    return g.where(g.new_zeros((), dtype=dtypes.bool), 0.0)


def overwrite(t: Tensor, value: Tensor, *, fresh: bool = False, own: bool = False) -> None:
    """Write a computed tensor of the same shape into `t` and increment the version.

    `fresh`: no graph holds `value`. `own`: only the caller holds `value`, and will not read it any more.
    """
    t._vc.value += 1
    # If both are permuted alike, the value is a dense expression when its dims are taken in memory order.
    if not t._contig and not value._contig:
        order = memory_order(t.shape, t._strides)
        shape = Size([t.shape[d] for d in order])
        t, value = in_order(t, t.shape, order, shape), in_order(value, t.shape, order, shape)
    source = operand(value, t.shape)
    pending = source.__class__ is Expr
    if pending and (fresh or own):
        write(t, source, value._storage if own else None)
        return
    storage = value._storage
    others = storage if storage.value.__class__ is Expr else None
    write(t, Expr(IDENTITY, value.dtype, value.dtype, t.shape, (source,)), others=others)


# ------------------------------------------------------------------------------------------- in place


def assign(t: Tensor, fn: Callable[[Tensor], Tensor], *, resize: bool = False) -> Tensor:
    """Give `t` the value and the history of `fn(old value of t)`: the in-place form of any differentiable function.

    resize: `t` takes the value's shape, too, as in a few of torch's in-place forms.
    """
    views.check_inplace(t)
    if not graph.needs_grad(t):
        value = fn(t)
        history = graph.needs_grad(value)
    else:
        value = fn(before(t))
        history = True
    if resize and value.shape != t.shape:
        with unrecorded():
            t.resize_(value.shape)
    if value.shape != t.shape:
        raise RuntimeError(
            f"output with shape {list(t.shape)} doesn't match the broadcast shape {list(value.shape)}"
        )
    if not dtypes.can_cast(value.dtype, t.dtype):
        raise RuntimeError(
            f"result type {value.dtype.scalar_name} can't be cast to the desired output type {t.dtype.scalar_name}"
        )
    check_overlap(t, ())
    overwrite(t, value)
    if FORWARD.open:
        dual.take(t, value)
    if history and graph.requires_grad(value):
        if t._view is None:
            views.set_node(t, value._node, value._nr)
        else:
            with dual.only(()):
                graph.rebase(t, "CopyBackwards", (t, value), lambda ctx, g: (nothing(g), g))
    return t


def before(t: Tensor) -> Tensor:
    """Return a snapshot of the tensor's value, history and tangents before a write, which does not change the snapshot."""
    return with_history(snapshot(t), t)


def with_history(value: Tensor, t: Tensor) -> Tensor:
    """Give a snapshot the history and tangents of the tensor it was taken from, and return the snapshot."""
    if graph.requires_grad(t):
        value._node, value._nr, value._requires = t.grad_fn, t._nr, t._requires
    if FORWARD.open:
        dual.keep(value, t)
    return value


# ------------------------------------------------------------------------------------------- out=


# Functions whose `out=` torch lets overlap a part of their input: only its elementwise loops check for that.
_OVER_INPUTS = {
    *(
        "sum",
        "mean",
        "nansum",
        "prod",
        "amax",
        "amin",
        "max",
        "min",
        "median",
        "var",
        "std",
        "norm",
    ),
    *("logsumexp", "argmax", "argmin", "all", "any", "softmax", "log_softmax", "cummax", "cummin"),
    *("mm", "mv", "dot", "vdot", "bmm", "addmm", "addmv", "baddbmm"),
}


def check_own_overlap(t: Tensor) -> None:
    """Raise torch's error for writing to a tensor in which several elements share one memory location."""
    if not t._contig and layouts.internal_overlap(t.shape, t._strides) == layouts.FULL_OVERLAP:
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )


def check_overlap(t: Tensor, others: Sequence[Any], *, apart: bool = False) -> None:
    """Raise torch's errors if elements of `t` share memory, or if an operand partially overlaps `t`.

    `apart` forbids full overlap, too: for ops that do not read each element just where they write it.
    """
    check_own_overlap(t)
    for o in others:
        if (
            o.__class__ not in NUMBERS
            and (apart or o is not t)
            and o._storage is t._storage
            and o.numel()
            and t.numel()
        ):
            state = layouts.overlap(
                (t.shape, t._strides, t._offset), (o.shape, o._strides, o._offset)
            )
            if state == layouts.PARTIAL_OVERLAP or (apart and state == layouts.FULL_OVERLAP):
                raise RuntimeError(
                    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
                    "location. Please clone() the tensor before performing the operation."
                )


def resize_output(out: Tensor, shape: tuple[int, ...]) -> None:
    """Resize an `out=` tensor to the result's shape; warns, as torch does, if it was not empty."""
    if out.shape == shape:
        return
    if out.numel():
        warnings.warn(
            f"An output with one or more elements was resized since it had shape {list(out.shape)}, which does not match the required "
            f"output shape {list(shape)}. This behavior is deprecated, and in a future PyTorch release outputs will not be resized "
            "unless they have zero elements. You can explicitly reuse an out tensor t by resizing it, inplace, to zero elements "
            "with t.resize_(0).",
            UserWarning,
            stacklevel=caller_level(),
        )
    version = out._vc.value
    out.resize_(shape)
    out._vc.value = version  # only the write that follows shall increment the version


def check_out(
    out: Tensor,
    dt: dtype,
    dev: device,
    function: str,
    inputs: Sequence[Any],
    shape: tuple[int, ...] | None = None,
    *,
    differentiable: bool = True,
) -> None:
    """Raise torch's errors for an `out=` tensor that cannot take a result of dtype `dt` on device `dev`.

    If `out` has the result's `shape` already (and is not going to be resized), its elements must not share memory.
    A function that is not `differentiable` accepts tensors that require grad, and ignores that they do.
    """
    if not is_tensor(out):
        raise TypeError(f"{function}(): argument 'out' must be Tensor, not {type(out).__name__}")
    given = [x for x in (*inputs, out) if is_tensor(x)]
    if differentiable and graph.needs_grad(*given):
        if FORWARD.open and not any(views.requires(x) for x in given):
            raise NotImplementedError(
                f"Trying to use forward AD with {function}_out that does not support it because it is an out= function"
            )
        raise out_history.refusal(function)
    views.check_inference(out)
    if out.shape == shape:
        check_own_overlap(out)
    if out.dtype is not dt and (text := out_refusal(function, dt, out.dtype)):
        raise RuntimeError(text)
    if not dtypes.can_cast(dt, out.dtype):
        raise RuntimeError(
            f"result type {dt.scalar_name} can't be cast to the desired output type {out.dtype.scalar_name}"
        )
    if out.device != dev:
        raise RuntimeError(
            f"Expected all tensors to be on the same device, but found at least two devices, {dev} and {out.device}!"
        )


def each(values: Sequence[Tensor], out: Sequence[Tensor]) -> list[tuple[Tensor, Tensor]]:
    """Return the results with the tensors of `out=` for them; torch's TypeError unless there are as many."""
    if len(out) != len(values):
        raise TypeError(f"expected tuple of {len(values)} elements but got {len(out)}")
    return list(zip(values, out, strict=True))


def deliver(
    value: Tensor,
    out: Tensor | None,
    function: str,
    inputs: Sequence[Any] = (),
    *,
    apart: bool = False,
    differentiable: bool = True,
) -> Tensor:
    """Return a computed tensor, or write it into `out=` (see `check_out`).

    Where an operand requires grad, `out` gets what `out_history` says of the function.
    """
    if out is None:
        return value
    if not value._strided:
        return elsewhere("into", (value, out, function))
    underived = False
    if differentiable and graph.needs_grad(value, out, *inputs) and not FORWARD.open:
        if function in out_history.KEPT:
            return _copied(value, out, function)
        underived = out_history.is_underived(function) and not graph.needs_grad(out)
        differentiable = not underived
    check_out(
        out, value.dtype, value.device, function, inputs, value.shape, differentiable=differentiable
    )
    if out.shape != value.shape:
        resize_output(out, value.shape)
        if layouts.is_non_overlapping_and_dense(tuple(value.shape), value._strides):
            out._set_layout(value.shape, value._strides, out._offset)
    check_overlap(out, () if function in _OVER_INPUTS else inputs, apart=apart)
    overwrite(out, value, fresh=True)
    if underived and out.dtype.category >= 2:
        out_history.record_underived(out, function, tuple(inputs))
    return out


def _copied(value: Tensor, out: Tensor, function: str) -> Tensor:
    """Copy a result and its history into `out=`."""
    check_out(out, value.dtype, value.device, function, (), value.shape, differentiable=False)
    views.check_inplace(out)
    resize_output(out, value.shape)
    return out.copy_(value)


def dtype_into(
    out: Tensor, dt: dtype | None, layout: Any = None, dev: device | None = None
) -> dtype:
    """Return the dtype of a factory function's `out=`; RuntimeError if `dtype=`, `layout=` or `device=` contradict it."""
    if dt is not None and dt is not out.dtype:
        raise RuntimeError(
            f"dtype {dt.scalar_name} does not match dtype of out parameter ({out.dtype.scalar_name})"
        )
    if layout is not None and layout is not out.layout:
        asked, own = (
            str(x)[6:].title().replace("_", "").removesuffix("Coo") for x in (layout, out.layout)
        )
        raise RuntimeError(f"layout {asked} does not match layout of out parameter ({own})")
    if dev is not None and dev != out.device:
        raise RuntimeError(
            f"device type {dev.type} does not match device type of out parameter ({out.device.type})"
        )
    return out.dtype
