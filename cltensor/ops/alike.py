"""The short path of pointwise ops: operands that broadcast to one of them, of one device and (conditions aside) dtype.

Nearly every small op goes through here, and most of its time is Python's, so this is written for speed: one pass over
the operands builds the expression, counts its size, and finds out whether the op has to be recorded. What is unlike
that is left to `core.compute`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from .. import config, dtypes, layouts, lazy
from ..autograd import record as graph
from ..autograd.mode import FORWARD
from ..codegen.language import OPERANDS
from ..lazy import HEAVY, STRIDED, Expr, Leaf, Scalar, register
from ..lazy.expression import MAX_HELD, MAX_LEAVES, MAX_NODES, NON_DENSE
from ..size import Size, sized
from ..storage import Storage, new_storage
from ..symbols import remembered
from .core import Registry, Tensor, Types, memory_order

if TYPE_CHECKING:
    from .row import Row

_new = object.__new__


def apply_alike(
    row: Row | None,
    types: Types,
    xs: Sequence[Any],
    into: Storage | None = None,
    shape: Size | None = None,
    first: Any = None,
    strides: tuple[int, ...] | None = None,
) -> Tensor | None:
    """Return the pending result of a row, given its `types`, for operands of its short path; None for any others.

    These are tensors of one dtype and device, of the result's shape or broadcasting to it (pending ones dense), and
    after the first also numbers that do not promote them; conditions are bool tensors. row: records the gradient if one
    is needed; None to record nothing. into: the first one's storage, if the result is to replace its whole value; the
    first one is then returned, and nothing is recorded. shape: of the result; None to try the first one's. first: the
    operand that stands for the first one, if that is a condition. strides: of the result and of each tensor, all of
    the result's shape, if their memory is in another order than row-major.
    """
    if config.CONFIG.eager:
        return None
    op, compute_dtype, result_dtype = types
    if first is None:
        first = xs[0]
    given, dt, dev = shape, first.dtype, first.device
    if shape is None:
        shape = first.shape
    outer = shape
    if strides is not None and (shape := _shape_in_memory(outer, strides)) is None:
        return None
    wider: Any = None  # the shape of an operand that may not broadcast to the first one's
    size, leaves, held, flags = 1, 0, 0, HEAVY if op.heavy else 0
    operands: list[Any] = []
    seen = False  # whether numpy sees an operand
    tied = FORWARD.open  # whether an operand may have a history or a tangent
    for x in xs:
        kind = x.__class__
        if kind is float or kind is int:
            if dt.category <= (kind is float):
                break
            short = dt.itemsize == 2 and dt.category == 2 and op.rounds
            operands.append(Scalar(dtypes.nearest(x, dt) if short else x))
            continue
        if kind is bool or kind is complex or x.device is not dev:
            break
        own = x.dtype
        if own is not dt and not (own is dtypes.bool and OPERANDS[len(operands)] in op.masks):
            break
        if x._node is not None or x._requires or x._view is not None:
            tied = True
        storage = x._storage
        value = storage.value
        if strides is None:
            plain = x._contig and not x._offset and x.shape == shape
        else:
            plain = not x._offset and x.shape == outer and x._strides == strides
        if value.__class__ is Expr:
            if not plain or value.dtype is not own or value.shape != shape:
                wider = x.shape
                break
            value.users += 1
            size += value.size
            leaves += value.leaves
            held += value.held
            flags |= value.flags
            operands.append(value)
            continue
        if plain:
            leaf = _new(Leaf)  # in half the time of Leaf(value, own, None, 0)
            leaf.buffer, leaf.dtype, leaf.strides, leaf.offset = value, own, None, 0
        elif strides is None and (
            found := _in_order(x.shape, None if x._contig else x._strides, shape)
        ):
            leaf = _new(Leaf)
            leaf.buffer, leaf.dtype, leaf.offset = value, own, x._offset
            leaf.strides, more = found
            flags |= more
        else:
            wider = x.shape
            break
        storage.reads += 1
        leaves += 1
        held += value.nbytes
        if value.exported:
            seen = True
        operands.append(leaf)
    else:
        expr = _new(Expr)  # in place of Expr(…), which would count the operands again
        expr.op, expr.compute, expr.dtype, expr.shape = op, compute_dtype, result_dtype, shape
        expr.args, expr.flags, expr.value, expr.cell = tuple(operands), flags, None, None
        expr.size, expr.leaves, expr.held = size, leaves, held
        expr.users = expr.again = 0
        small = size <= MAX_NODES and leaves <= MAX_LEAVES and held <= MAX_HELD
        if small or lazy.too_big(expr) is None:
            if into is not None:
                into.replace(expr)
                if seen:
                    into.buffer()
                return first
            backend = first._storage.backend
            storage = new_storage(backend, expr, prod(shape) * result_dtype.itemsize)
            register(backend, storage, expr)
            if seen:
                storage.buffer()
            if strides is None:
                out = Registry.dense(storage, shape, result_dtype, dev)
            else:
                out = Registry.tensor._make(storage, outer, result_dtype, dev, strides, 0)
            if tied and row is not None and row.grads and graph.needs_grad(*xs):
                row.record(xs, out)
            return out
    for x, a in zip(xs, operands, strict=False):  # they are not read after all
        if a.__class__ is Expr:
            a.users -= 1
        elif a.__class__ is Leaf:
            x._storage.reads -= 1
    if wider is None or given is not None or into is not None:
        return None
    joint = _joint(shape, wider)
    if joint is None:
        return None
    if joint != shape:
        return apply_alike(row, types, xs, None, joint, first)
    return (
        None if first._contig else apply_alike(row, types, xs, None, shape, first, first._strides)
    )


@remembered(4096)
def _shape_in_memory(shape: Size, strides: tuple[int, ...]) -> Size | None:
    """Return the shape with the dims in the order of a memory in another order than row-major, if it is that which torch
    gives to results of operands that have these `strides`; else None.
    """
    row_major = layouts.contiguous_strides(shape)
    operands = (shape, strides), ((), ())  # with a number, which counts as an operand of no dims
    if strides == row_major or any(
        layouts.elementwise_strides(shape, operands[:n]) != strides for n in (1, 2)
    ):
        return None
    return Size([shape[d] for d in memory_order(shape, strides)])


@remembered(4096)
def _joint(a: Size, b: Size) -> Size | None:
    """Return the shape to which both broadcast; None if they do not."""
    try:
        return sized(layouts.broadcast_shapes(a, b))
    except RuntimeError:
        return None


@remembered(4096)
def _in_order(
    own: Size, strides: tuple[int, ...] | None, shape: Size
) -> tuple[tuple[int, ...] | None, int] | None:
    """Return the strides over `shape` of memory with the shape `own`, as an operand of a result in row-major order, and
    the flags of an expression that reads it.

    `strides` None means contiguous. None if they may demand a result in another memory order (torch keeps that of the
    operands), or if the memory does not broadcast to `shape`.
    """
    if own == shape:
        if strides is None:
            return None, 0
        before, wider = strides[0], shape[0]
        for step, n in zip(strides, shape, strict=True):
            if not 0 < step <= before or (step == before and n > wider):
                return None
            before, wider = step, n
        return strides, NON_DENSE | STRIDED
    lead = len(shape) - len(own)
    if strides is not None or lead < 0:
        return None
    if any(n not in (1, wanted) for n, wanted in zip(own, shape[lead:], strict=True)):
        return None
    steps = layouts.expand_strides(own, layouts.contiguous_strides(own), shape)
    return steps, NON_DENSE | STRIDED if any(steps) else NON_DENSE
