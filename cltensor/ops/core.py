"""How an op reaches the graph: operands in, lazy storage out, gradient recorded.

`pointwise` is the way of every elementwise op; `result` wraps what an immediate kernel computed; `view` makes another layout
of the same storage; `write` puts values into an existing tensor (in-place and `out=` forms). Tensors are made by the
class that tensor.py registers as `TENSOR`; this package never imports it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .. import config, dtypes, layouts, lazy
from ..autograd import dual, views
from ..autograd import record as graph
from ..autograd.mode import FORWARD, unrecorded
from ..codegen.operand import Operand
from ..codegen.pointwise import IDENTITY, PointOp
from ..dtypes import dtype
from ..lazy import HEAVY, MAX_RECOMPUTE, NON_DENSE, Expr, Leaf, Scalar, View
from ..runtime import Backend, Buffer, device, get_backend
from ..size import Size
from ..storage import Storage
from .elsewhere import elsewhere
from .refusals import out_refusal

Tensor = Any
Number = bool | int | float | complex
NUMBERS = (int, float, bool, complex)


class _Registry:
    """The class of the user's object, set by tensor.py."""

    tensor: Any


def is_tensor(x: Any) -> bool:
    """Tell a tensor from numbers and everything else."""
    return isinstance(x, _Registry.tensor)


def make(
    storage: Storage,
    shape: tuple[int, ...],
    dt: dtype,
    dev: device,
    strides: tuple[int, ...] | None = None,
    offset: int = 0,
) -> Tensor:
    """Make a tensor without history over a storage; `strides` None means contiguous."""
    return _Registry.tensor._make(storage, shape, dt, dev, strides, offset)


# ------------------------------------------------------------------------------------------- operands


def operand(x: Tensor, shape: tuple[int, ...]) -> Expr | Leaf | View:
    """Read a tensor, expanded to the iteration's shape, without running anything if that can be helped."""
    storage = x._storage
    value = storage.value
    if value.__class__ is Expr:
        found = _pending_operand(x, value, shape)
        if found is not None:
            return found
        lazy.split("view")
        storage.buffer()
        value = storage.value
    storage.reads += 1
    if x.shape == shape and x.is_contiguous():
        return Leaf(value, x.dtype, None, x._offset)
    strides = x._strides if x.shape == shape else layouts.expand_strides(x.shape, x._strides, shape)
    return Leaf(value, x.dtype, strides, x._offset)


def _pending_operand(x: Tensor, value: Expr, shape: tuple[int, ...]) -> Expr | View | None:
    if x._offset or x.dtype is not value.dtype:
        return None
    if x.is_contiguous():
        if x.shape == value.shape:
            if x.shape == shape:
                return value
        elif x.shape == shape and layouts.numel(shape) == layouts.numel(value.shape):
            return None if value.flags & NON_DENSE else View(value, None)
    if value.size > MAX_RECOMPUTE or value.flags & HEAVY:
        return None
    if x.shape == value.shape and x.is_contiguous():
        own: tuple[int, ...] = layouts.contiguous_strides(value.shape)
    else:
        own = x._strides
    dims = lazy.view_dims(value, shape, layouts.expand_strides(x.shape, own, shape))
    return None if dims is None else View(value, dims)


def kernel_operand(x: Tensor) -> Operand:
    """Describe a tensor's memory to an immediate kernel; runs what is pending for it."""
    return Operand(x._storage.buffer(), x.dtype, tuple(x.shape), x._strides, x._offset)


def result(op: Operand, dev: device) -> Tensor:
    """Wrap what an immediate kernel computed into freshly allocated contiguous memory."""
    backend = get_backend(dev)
    return make(
        Storage(backend, op.buffer, layouts.numel(op.shape) * op.dtype.itemsize),
        Size(op.shape),
        op.dtype,
        dev,
    )


# ------------------------------------------------------------------------------------------- pointwise


def expression(
    op: PointOp, compute: dtype, out: dtype, args: Sequence[Any], shape: tuple[int, ...]
) -> Expr:
    """Build the expression of one op; operands that would make it too big are run first."""
    found: list[Any] = []
    short = op.rounds and compute.itemsize == 2 and compute.category == 2
    for a in args:
        if a.__class__ in NUMBERS:
            found.append(Scalar(dtypes.nearest(a, compute) if short else a))
            continue
        storage = a._storage
        value = storage.value
        if not a._contig or a.shape != shape or a._offset:
            found.append(operand(a, shape))
        elif value.__class__ is not Expr:
            storage.reads += 1
            found.append(Leaf(value, a.dtype, None, 0))
        elif value.dtype is a.dtype and value.shape == shape:
            found.append(value)
        else:
            found.append(operand(a, shape))
    operands = tuple(found)
    expr = Expr(op, compute, out, shape, operands)
    if expr.out_of_bounds and (reason := lazy.too_big(expr)) is not None:
        lazy.split(reason)
        backend = next(a._storage.backend for a in args if a.__class__ not in NUMBERS)
        for a in operands:
            inner = a.expr if a.__class__ is View else a
            if inner.__class__ is Expr and inner.value is None:
                lazy.force(inner, backend)
        expr = Expr(op, compute, out, shape, operands)
    return expr


def pending(
    expr: Expr, dev: device, shape: tuple[int, ...] | None = None, backend: Backend | None = None
) -> Tensor:
    """Make the tensor of an expression; runs it at once in eager mode or when numpy sees an operand."""
    if backend is None:
        backend = get_backend(dev)
    storage = Storage.pending(backend, expr)
    if config.CONFIG.eager or _sees_numpy(expr):
        storage.buffer()
    return _Registry.tensor._make(storage, shape or expr.shape, expr.dtype, dev, None, 0)


def _sees_numpy(expr: Expr) -> bool:
    """Whether numpy can see, and write, an operand; it cannot for what is pending, which runs before memory is shown to numpy."""
    for a in expr.args:
        inner = a.expr if a.__class__ is View else a
        buffer = inner.buffer if inner.__class__ is Leaf else getattr(inner, "value", None)
        if buffer.__class__ is Buffer and buffer.exported:
            return True
    return False


def compute(
    op: PointOp,
    compute_dtype: dtype,
    out: dtype,
    args: Sequence[Any],
    shape: tuple[int, ...],
    dev: device,
) -> Tensor:
    """Apply one op lazily, without gradient; the result's dims lie in memory in the order torch gives them."""
    backend = None
    for a in args:
        if a.__class__ not in NUMBERS:
            backend = a._storage.backend
            if not a._contig:
                strides = _result_strides(args, shape)
                if strides != layouts.contiguous_strides(tuple(shape)):
                    return laid_out(op, compute_dtype, out, args, shape, dev, strides)
                break
    return pending(expression(op, compute_dtype, out, args, shape), dev, shape, backend)


class Types(NamedTuple):
    """What a row does with operands of one dtype: its formula, and the dtypes it computes and returns."""

    op: PointOp
    compute: dtype
    result: dtype


def compute_alike(types: Types, xs: Sequence[Any]) -> Tensor | None:
    """Do as `compute` for what most calls are given, None for anything else.

    That is: dense tensors of one shape, dtype and device, after the first perhaps numbers that do not promote them. Every small
    op comes by here: it is written for speed.
    """
    first = xs[0]
    shape, dt, dev = first.shape, first.dtype, first.device
    backend = first._storage.backend
    if config.CONFIG.eager:
        return None
    operands: list[Any] = []
    read: list[Storage] = []
    for x in xs:
        kind = x.__class__
        if kind is float or kind is int:
            if dt.category <= (kind is float):
                return None
            short = dt.itemsize == 2 and dt.category == 2 and types.op.rounds
            operands.append(Scalar(dtypes.nearest(x, dt) if short else x))
            continue
        if kind in NUMBERS or not x._contig or x._offset:
            return None
        if x is not first and (x.dtype is not dt or x.device is not dev or x.shape != shape):
            return None
        storage = x._storage
        value = storage.value
        if value.__class__ is Expr:
            if value.dtype is not dt or value.shape != shape:
                return None
            operands.append(value)
        elif value.exported:
            return None
        else:
            read.append(storage)
            operands.append(Leaf(value, dt, None, 0))
    for storage in read:
        storage.reads += 1
    op, compute_dtype, result_dtype = types
    expr = Expr(op, compute_dtype, result_dtype, shape, tuple(operands))
    if expr.out_of_bounds and lazy.too_big(expr) is not None:
        return None
    storage = Storage.pending(backend, expr)
    return _Registry.tensor._make(storage, shape, result_dtype, dev, None, 0)


def _result_strides(args: Sequence[Any], shape: tuple[int, ...]) -> tuple[int, ...]:
    operands = [((), ()) if a.__class__ in NUMBERS else (tuple(a.shape), a._strides) for a in args]
    return layouts.elementwise_strides(tuple(shape), operands)


def laid_out(
    op: PointOp,
    compute_dtype: dtype,
    out: dtype,
    args: Sequence[Any],
    shape: tuple[int, ...],
    dev: device,
    strides: tuple[int, ...],
) -> Tensor:
    """Apply one op lazily, without gradient, into dense strides: an expression over the dims in the order they lie in."""
    order = sorted(range(len(shape)), key=lambda d: -strides[d])
    inner = Size([shape[d] for d in order])

    def turned(t: Tensor) -> Tensor:
        steps = layouts.expand_strides(t.shape, t._strides, shape)
        return make(
            t._storage, inner, t.dtype, t.device, tuple([steps[d] for d in order]), t._offset
        )

    operands = [a if a.__class__ in NUMBERS else turned(a) for a in args]
    t = pending(expression(op, compute_dtype, out, operands, inner), dev)
    return make(t._storage, shape, out, dev, strides)


def index_expression(shape: tuple[int, ...]) -> Expr:
    """The linear index of every element, int64."""
    return Expr(lazy.INDEX, dtypes.int64, dtypes.int64, Size(shape), ())


# ------------------------------------------------------------------------------------------- devices and dtypes


def common_device(tensors: Sequence[Tensor], function: str = "") -> device:
    """Return the device all tensors are on; 0-dim cpu tensors may join any. Raises torch's RuntimeError."""
    dev: Any = None
    for t in tensors:
        if dev is None or (
            dev.type == "cpu" and dev is not t.device and not _free_rank(tensors, dev)
        ):
            dev = t.device
    for t in tensors:
        if t.device is not dev and t.device != dev and not (t.device.type == "cpu" and t.ndim == 0):
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but found at least two devices, {dev} and {t.device}!"
            )
    return dev


def on_one_device(xs: Sequence[Any]) -> tuple:
    """Bring 0-dim cpu tensors to the device of the others, with their history."""
    dev = common_device([x for x in xs if x.__class__ not in NUMBERS])
    return tuple([x if x.__class__ in NUMBERS or x.device == dev else x.to(dev) for x in xs])


def _free_rank(tensors: Sequence[Tensor], dev: device) -> bool:
    return any(t.device == dev and t.ndim for t in tensors)


def result_type(args: Sequence[Any]) -> dtype:
    """Promote operands as torch does."""
    return dtypes.result_type_of(
        [
            (dtypes.scalar_dtype(a), 0)
            if a.__class__ in NUMBERS
            else (a.dtype, 2 if a.shape else 1)
            for a in args
        ]
    )


# ------------------------------------------------------------------------------------------- views and writes


def view(
    x: Tensor,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    offset: int,
    name: str,
    backward: Callable | None,
    replay: Callable[[Tensor], Tensor] | None,
    saved: dict[str, Any] | None = None,
) -> Tensor:
    """Make another layout of the same storage, with its history."""
    out = _Registry.tensor._make(x._storage, shape, x.dtype, x.device, strides, offset)
    out._vc = x._vc
    if FORWARD.open:
        _share(out, x, name, backward, replay, dict(saved or {}))
    if graph.needs_grad(x):
        graph.record(name, (x,), out, backward or _same, saved or {}, dual.VIEW)
    views.mark_view(out, x, replay)
    return out


def _share(
    out: Tensor, x: Tensor, name: str, backward: Any, replay: Any, saved: dict[str, Any]
) -> None:
    """Give a view of `x` its tangents: these views of those of `x`, which are laid out as `x` is."""
    shape, strides, shift = out.shape, out._strides, out._offset - x._offset

    def part(t: Tensor) -> Tensor:
        return view(t, shape, strides, t._offset + shift, name, backward, replay, dict(saved))

    dual.share(out, x, part)


def _same(ctx: Any, g: Tensor) -> Tensor:
    return g


def write(t: Tensor, expr: Any) -> None:
    """Put an expression over the tensor's shape into its memory (see Note [In place])."""
    storage = t._storage
    backend = storage.backend
    if expr.dtype is not t.dtype:
        expr = Expr(IDENTITY, t.dtype, t.dtype, expr.shape, (expr,))
    whole = (
        not t._offset
        and t.is_contiguous()
        and layouts.numel(t.shape) * t.dtype.itemsize == storage.nbytes
    )
    if whole and not storage.pinned and not storage.shared:
        storage.replace(expr)
        if config.CONFIG.eager or _sees_numpy(expr):
            storage.buffer()
        return
    buffer = storage.for_write()
    if _must_copy(expr, t, buffer):
        lazy.force(expr, backend)
    lazy.write_region(backend, expr, t.dtype, buffer, t._strides, t._offset)


def _must_copy(expr: Expr, t: Tensor, buffer: Any) -> bool:
    """Whether the expression reads the buffer elsewhere than where it will write."""
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
    return all(p == q or n == 1 for p, q, n in zip(a, b, shape, strict=True))


def check_overlap(t: Tensor, others: Sequence[Any], *, apart: bool = False) -> None:
    """Raise torch's errors for writing to memory that elements share or that an operand partly covers.

    `apart` forbids operands that cover it exactly, too: ops that do not read an element where they write it.
    """
    if layouts.internal_overlap(t.shape, t._strides) == layouts.FULL_OVERLAP:
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )
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


def snapshot(t: Tensor) -> Tensor:
    """The tensor's present value, safe from later in-place writes."""
    return compute(IDENTITY, t.dtype, t.dtype, (t,), t.shape, t.device)


def before(t: Tensor) -> Tensor:
    """The tensor's present value with its history and tangents, safe from the write that is to come."""
    return with_history(snapshot(t), t)


def with_history(value: Tensor, t: Tensor) -> Tensor:
    """Give a snapshot the history and tangents of the tensor it was taken of."""
    if graph.requires_grad(t):
        value._node, value._nr, value._requires = t.grad_fn, t._nr, t._requires
    if FORWARD.open:
        dual.keep(value, t)
    return value


def resize_output(out: Tensor, shape: tuple[int, ...]) -> None:
    """Give an `out=` tensor its shape; warns as torch does when it had another."""
    if out.shape == shape:
        return
    if out.numel():
        warnings.warn(
            f"An output with one or more elements was resized since it had shape {list(out.shape)}, which does not match the required "
            f"output shape {list(shape)}. This behavior is deprecated, and in a future PyTorch release outputs will not be resized "
            "unless they have zero elements. You can explicitly reuse an out tensor t by resizing it, inplace, to zero elements "
            "with t.resize_(0).",
            UserWarning,
            stacklevel=4,
        )
    version = out._vc.value
    out.resize_(shape)
    out._vc.value = version  # the write to come counts, the new size does not


def check_out(out: Tensor, dt: dtype, dev: device, function: str, inputs: Sequence[Any]) -> None:
    """Raise torch's errors for an `out=` tensor that cannot take the result."""
    if not is_tensor(out):
        raise TypeError(f"{function}(): argument 'out' must be Tensor, not {type(out).__name__}")
    given = [x for x in (*inputs, out) if is_tensor(x)]
    if graph.needs_grad(*given):
        if FORWARD.open and not any(views.requires(x) for x in given):
            raise NotImplementedError(
                f"Trying to use forward AD with {function}_out that does not support it because it is an out= function"
            )
        raise RuntimeError(
            f"{function}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad."
        )
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


def deliver(
    value: Tensor,
    out: Tensor | None,
    function: str,
    inputs: Sequence[Any] = (),
    *,
    apart: bool = False,
) -> Tensor:
    """Return a computed tensor, or write it into `out=`."""
    if out is None:
        return value
    if not value._strided:
        return elsewhere("into", (value, out, function))
    check_out(out, value.dtype, value.device, function, inputs)
    if out.shape != value.shape:
        resize_output(out, value.shape)
        if layouts.is_non_overlapping_and_dense(tuple(value.shape), value._strides):
            out._set_layout(value.shape, value._strides, out._offset)
    check_overlap(out, inputs, apart=apart)
    overwrite(out, value, fresh=True)
    return out


def dtype_into(
    out: Tensor, dt: dtype | None, layout: Any = None, dev: device | None = None
) -> dtype:
    """Return the dtype of a maker's `out=` tensor; RuntimeError when `dtype=`, `layout=` or `device=` asks for another."""
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


def ask_gradient(t: Tensor) -> None:
    """Let a new tensor require its gradient; RuntimeError for integers and bools."""
    if t.dtype.category < 2:
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    t._requires = True


def overwrite(t: Tensor, value: Tensor, *, fresh: bool = False) -> None:
    """Write a computed tensor of the same shape into `t` and count the version; `fresh` says nobody else holds it."""
    source = operand(value, t.shape)
    if not (fresh and source.__class__ is Expr):
        source = Expr(IDENTITY, value.dtype, value.dtype, t.shape, (source,))
    write(t, source)
    t._vc.value += 1


def assign(t: Tensor, fn: Callable[[Tensor], Tensor], *, resize: bool = False) -> Tensor:
    """In-place form of any differentiable function: `t` takes the value and history of `fn(t's old value)`.

    `resize` lets it take the value's shape, too, as a few of torch's in-place forms do.
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
                graph.rebase(t, "CopyBackwards", (t, value), lambda ctx, g: (g * 0, g))
    return t


def embed(g: Tensor, shape: tuple[int, ...], place: Callable[[Tensor], Tensor]) -> Tensor:
    """Zeros of a shape with `g` written where `place` (a view function) says; its gradient reads the place back."""
    with unrecorded():
        out = g.new_zeros(shape)
        place(out).copy_(g)
    if graph.needs_grad(g):
        graph.record("EmbedBackward0", (g,), out, lambda ctx, gg: ctx.place(gg), {"place": place})
    return out
