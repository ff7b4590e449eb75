"""How ops make tensors: pending results of formulas, results of immediate kernels, and views.

`compute` makes a pending result, `result` wraps what an immediate kernel computed, `view` makes and records another
layout of the same storage. Also owns the common device and dtype of operands. Tensors are made by the class that
tensor.py registers here; this package never imports it. Must not know how values are written into existing tensors
(writes.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .. import config, dtypes, layouts, lazy
from ..autograd import dual, views
from ..autograd import record as graph
from ..autograd.mode import FORWARD
from ..autograd.saved import TensorBase
from ..codegen.operand import Operand
from ..codegen.pointwise import IDENTITY, PointOp
from ..dtypes import dtype
from ..lazy import HEAVY, MAX_RECOMPUTE, STRIDED, Expr, Leaf, Scalar, View
from ..runtime import Backend, device, get_backend
from ..size import Size
from ..storage import Storage, new_storage
from ..symbols import remembered

Tensor = Any  # in annotations, because the class itself is defined on a higher floor
Number = bool | int | float | complex
NUMBERS = (int, float, bool, complex)


class _Registry:
    """The class of the user's object, and its ways to make a dense one, and another one's memory in another layout; set
    by tensor.py.
    """

    __slots__ = ("alias", "dense", "tensor")

    tensor: Any
    dense: Callable[[Storage, Size, dtype, device], Tensor]
    alias: Callable[[Tensor, tuple[int, ...], tuple[int, ...] | None, int], Tensor]

    def adopt(self, cls: Any) -> None:
        """Make tensors of this class from now on."""
        self.tensor, self.dense, self.alias = cls, cls._dense, cls._alias


Registry = _Registry()  # an object, of which CPython reads attributes sooner than of a class


def is_tensor(x: Any) -> bool:
    """Return whether `x` is a tensor."""
    return isinstance(x, TensorBase)


def make(
    storage: Storage,
    shape: tuple[int, ...],
    dt: dtype,
    dev: device,
    strides: tuple[int, ...] | None = None,
    offset: int = 0,
) -> Tensor:
    """Make a tensor without a grad node over a storage; `strides` None means contiguous."""
    return Registry.tensor._make(storage, shape, dt, dev, strides, offset)


# ------------------------------------------------------------------------------------------- operands


def operand(x: Tensor, shape: tuple[int, ...]) -> Expr | Leaf | View:
    """Return a tensor, expanded to `shape`, as an operand of an expression over that shape.

    A pending tensor stays pending where `pending_operand` can describe it; otherwise it is run first.
    """
    storage = x._storage
    value = storage.value
    if value.__class__ is Expr:
        found = pending_operand(x, value, shape)
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


def pending_operand(x: Tensor, value: Expr, shape: tuple[int, ...]) -> Expr | View | None:
    """Return a tensor whose pending value is `value` as an operand of an expression over `shape`.

    None if no View describes its layout, or if it is broadcast and dear: each element would be computed repeatedly.
    """
    if x._offset or x.dtype is not value.dtype:
        return None
    if x.is_contiguous():
        if x.shape == value.shape:
            if x.shape == shape:
                return value
        elif x.shape == shape and layouts.numel(shape) == layouts.numel(value.shape):
            return None if value.flags & STRIDED else View(value, None)
    if value.size > MAX_RECOMPUTE or value.flags & HEAVY:
        return None
    if x.shape == value.shape and x.is_contiguous():
        own: tuple[int, ...] = layouts.contiguous_strides(value.shape)
    else:
        own = x._strides
    dims = lazy.view_dims(value, shape, layouts.expand_strides(x.shape, own, shape))
    return None if dims is None else View(value, dims)


def kernel_operand(x: Tensor) -> Operand:
    """Return a tensor's memory as an operand of an immediate kernel; a pending tensor is run first."""
    return Operand(x._storage.buffer(), x.dtype, tuple(x.shape), x._strides, x._offset)


def result(op: Operand, dev: device) -> Tensor:
    """Wrap what an immediate kernel computed into freshly allocated contiguous memory."""
    backend = get_backend(dev)
    return make(
        new_storage(backend, op.buffer, layouts.numel(op.shape) * op.dtype.itemsize),
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
    ran = False  # whether an operand that was pending may have been run meanwhile
    short = op.rounds and compute.itemsize == 2 and compute.category == 2
    for a in args:
        if a.__class__ in NUMBERS:
            found.append(Scalar(dtypes.nearest(a, compute) if short else a))
            continue
        storage = a._storage
        value = storage.value
        if not a._contig or a.shape != shape or a._offset:
            found.append(operand(a, shape))
            ran = ran or value.__class__ is Expr
        elif value.__class__ is not Expr:
            storage.reads += 1
            found.append(Leaf(value, a.dtype, None, 0))
        elif value.dtype is a.dtype and value.shape == shape:
            found.append(value)
        else:
            found.append(operand(a, shape))
            ran = True
    # Running one operand may have run another that had been taken as pending: that is taken again, as memory, so that
    # its storage counts the read.
    if ran:
        for k, a in enumerate(found):
            inner = a.expr if a.__class__ is View else a
            if inner.__class__ is Expr and inner.value is not None:
                found[k] = operand(args[k], shape)
    operands = tuple(found)
    expr = Expr(op, compute, out, shape, operands)
    if (reason := lazy.too_big(expr)) is not None:
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
    """Return a tensor that holds an expression; run it at once in eager mode, or if NumPy sees an operand's memory."""
    if backend is None:
        backend = get_backend(dev)
    storage = Storage.pending(backend, expr)
    if config.CONFIG.eager or numpy_sees(expr):
        storage.buffer()
    shape = shape or expr.shape
    return Registry.dense(
        storage, shape if shape.__class__ is Size else Size(shape), expr.dtype, dev
    )


def numpy_sees(expr: Expr) -> bool:
    """Return whether NumPy can see, and so write, an operand's memory.

    It never sees the memory of a pending operand: exporting a tensor to NumPy runs what is pending.
    """
    for a in expr.args:
        kind = a.__class__
        if kind is Leaf:
            if a.buffer.exported:
                return True
        elif kind is not Scalar:
            ran = (a.expr if kind is View else a).value
            if ran is not None and ran.exported:
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
                strides = layouts.elementwise_strides(shape, _layouts(args))
                if strides != layouts.contiguous_strides(shape):
                    return laid_out(op, compute_dtype, out, args, shape, dev, strides)
                break
    return pending(expression(op, compute_dtype, out, args, shape), dev, shape, backend)


class Types(NamedTuple):
    """What a row does with operands that promote to one dtype."""

    op: PointOp  # the formula for the dtype's category
    compute: dtype  # the dtype in which the formula is computed
    result: dtype  # the dtype of the result


class _Arranged(NamedTuple):
    """An iteration in the order of a result's memory."""

    shape: Size
    steps: tuple[tuple[int, ...], ...]  # the strides of each operand over this shape


def _layouts(args: Sequence[Any]) -> tuple[tuple[Any, Any], ...]:
    """Return the operands' shapes and strides; a number has the shape ()."""
    return tuple([((), ()) if a.__class__ in NUMBERS else (a.shape, a._strides) for a in args])


@remembered(4096)
def _arranged(
    shape: tuple[int, ...], strides: tuple[int, ...], operands: tuple[tuple[Any, Any], ...]
) -> _Arranged:
    """Return the iteration for a result with dense `strides` over operands of these layouts."""
    order = memory_order(shape, strides)
    steps = [layouts.expand_strides(*layout, shape) for layout in operands]
    return _Arranged(
        Size([shape[d] for d in order]), tuple([tuple([st[d] for d in order]) for st in steps])
    )


def laid_out(
    op: PointOp,
    compute_dtype: dtype,
    out: dtype,
    args: Sequence[Any],
    shape: tuple[int, ...],
    dev: device,
    strides: tuple[int, ...],
) -> Tensor:
    """Apply one op lazily, without gradient; the result has the dense strides `strides`.

    Expressions are row-major, so this one is over the dims reordered from the largest stride to the smallest.
    """
    found = _arranged(shape, strides, _layouts(args))
    operands = [
        a
        if a.__class__ in NUMBERS
        else make(a._storage, found.shape, a.dtype, a.device, steps, a._offset)
        for a, steps in zip(args, found.steps, strict=True)
    ]
    t = pending(expression(op, compute_dtype, out, operands, found.shape), dev)
    return make(t._storage, shape, out, dev, strides)


def memory_order(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[int]:
    """Return the dims ordered from the largest stride to the smallest; dims of size 1 keep their positions."""
    varied = [d for d, n in enumerate(shape) if n != 1]
    largest = iter(sorted(varied, key=lambda d: -strides[d]))
    return [d if n == 1 else next(largest) for d, n in enumerate(shape)]


def in_order(t: Tensor, shape: tuple[int, ...], order: list[int], inner: Size) -> Tensor:
    """View a tensor, expanded to `shape`, with dims in `order`, which gives it the shape `inner`; without a grad node."""
    steps = layouts.expand_strides(t.shape, t._strides, shape)
    return make(t._storage, inner, t.dtype, t.device, tuple([steps[d] for d in order]), t._offset)


def index_expression(shape: tuple[int, ...]) -> Expr:
    """Return an expression whose elements are their own linear indices, as int64."""
    return Expr(lazy.INDEX, dtypes.int64, dtypes.int64, Size(shape), ())


# ------------------------------------------------------------------------------------------- devices and dtypes


def common_device(tensors: Sequence[Tensor]) -> device:
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
    """Return the operands with 0-dim cpu tensors moved to the device of the others, differentiably."""
    dev = common_device([x for x in xs if x.__class__ not in NUMBERS])
    return tuple([x if x.__class__ in NUMBERS or x.device == dev else x.to(dev) for x in xs])


def _free_rank(tensors: Sequence[Tensor], dev: device) -> bool:
    """Return whether a tensor on `dev` has dims, so that it cannot be moved to another tensor's device."""
    return any(t.device == dev and t.ndim for t in tensors)


def result_type(args: Sequence[Any]) -> dtype:
    """Return the dtype that tensors and numbers promote to, as in torch."""
    return dtypes.result_type_of(
        [
            (dtypes.scalar_dtype(a), 0)
            if a.__class__ in NUMBERS
            else (a.dtype, 2 if a.shape else 1)
            for a in args
        ]
    )


# ------------------------------------------------------------------------------------------- views


def view(
    x: Tensor,
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None,
    offset: int,
    name: str,
    backward: Callable | None,
    replay: Callable[[Tensor], Tensor] | None,
    saved: dict[str, Any] | None = None,
) -> Tensor:
    """Return a tensor of another layout on the storage of `x`, recorded as a view; `strides` None means contiguous.

    name: torch's name of the gradient node; backward: its function, None to pass the gradient on unchanged; saved: what
    that reads. replay: makes the same view of another tensor in place of `x`, None where that is not possible.
    """
    out = Registry.alias(x, shape, strides, offset)
    if FORWARD.open:
        _share(out, x, name, backward, replay, dict(saved or {}))
    # Most tensors have no history, which is seen sooner here.
    if (x._node is not None or x._requires or x._view is not None) and graph.needs_grad(x):
        graph.record(name, (x,), out, backward or _same, saved or {}, dual.VIEW)
    views.mark_view(out, x, replay)
    return out


def _share(
    out: Tensor, x: Tensor, name: str, backward: Any, replay: Any, saved: dict[str, Any]
) -> None:
    """Give a view of `x` its tangents: the same views of the tangents of `x`, which are laid out as `x` is."""
    shape, strides, shift = out.shape, out._strides, out._offset - x._offset

    def part(t: Tensor) -> Tensor:
        return view(t, shape, strides, t._offset + shift, name, backward, replay, dict(saved))

    dual.share(out, x, part)


def _same(ctx: Any, g: Tensor) -> Tensor:
    return g


def snapshot(t: Tensor) -> Tensor:
    """Return the tensor's present value, safe from later in-place writes."""
    return compute(IDENTITY, t.dtype, t.dtype, (t,), t.shape, t.device)


def ask_gradient(t: Tensor) -> None:
    """Make a newly created tensor require grad; torch's RuntimeError for integers and bools."""
    if t.dtype.category < 2:
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    t._requires = True
