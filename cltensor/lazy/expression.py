"""Pending expressions: formulas over other expressions, memory and numbers, and the bounds they may reach."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from .. import layouts
from ..codegen.pointwise import INDEX, PointOp
from ..dtypes import dtype
from ..runtime import Buffer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..storage import Storage

MAX_NODES = 64
MAX_LEAVES = 24
MAX_HELD = 1 << 30
LIGHT = 4  # so many light nodes are computed again by every reduction of them
# Of a result's memory, what numbers of its rows or columns may take that are read with elements.
BESIDE = 1 / 16
MAX_RECOMPUTE = 4  # a broadcast expression of so many light nodes is recomputed per element

UNKNOWN_READS = 1 << 40  # `reads` of a storage whose pending readers nobody counted

# STRIDED: of NON_DENSE ones those that have no other shape, because an operand is neither dense nor one number.
# READ: a kernel that reads expressions has computed it, or something that it is computed from, and kept nothing of it.
NON_DENSE, INDEXED, RESHAPED, HEAVY, PRODUCTS, STRIDED, READ = 1, 2, 4, 8, 16, 32, 64


class Leaf:
    """A buffer read with a layout over the iteration; `strides` None means dense."""

    __slots__ = ("buffer", "dtype", "offset", "strides")

    def __init__(
        self, buffer: Buffer, dt: dtype, strides: tuple[int, ...] | None, offset: int
    ) -> None:
        self.buffer, self.dtype, self.strides, self.offset = buffer, dt, strides, offset


class Scalar:
    """A Python number, passed as an argument of the consumer's compute dtype."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class View:
    """Another pending expression seen through a permutation with broadcasting (-1), or reshaped (dims None)."""

    __slots__ = ("dims", "expr")

    def __init__(self, expr: Expr, dims: tuple[int, ...] | None) -> None:
        self.expr, self.dims = expr, dims


class Expr:
    """A pending pointwise result."""

    __slots__ = (
        "again",
        "args",
        "cell",
        "compute",
        "dtype",
        "flags",
        "held",
        "leaves",
        "op",
        "out_of_bounds",
        "shape",
        "size",
        "users",
        "value",
    )

    def __init__(
        self, op: PointOp, compute: dtype, dt: dtype, shape: tuple[int, ...], args: tuple
    ) -> None:
        self.op, self.compute, self.dtype, self.shape, self.args = op, compute, dt, shape, args
        self.value: Buffer | None = None
        self.cell: weakref.ref[Storage] | None = None
        self.users = 0
        self.again = 0  # kernels that computed it without keeping it (recompute.py)
        size, leaves, held, flags = 1, 0, 0, HEAVY if op.heavy else 0
        for a in args:
            kind = a.__class__
            if kind is Leaf:
                leaves += 1
                held += a.buffer.nbytes
                if a.strides is not None:
                    flags |= NON_DENSE | STRIDED if any(a.strides) else NON_DENSE
            elif kind is not Scalar:
                if kind is View:
                    if a.dims is None:
                        flags |= RESHAPED
                    else:
                        flags |= NON_DENSE | STRIDED if max(a.dims, default=-1) >= 0 else NON_DENSE
                    a = a.expr
                a.users += 1
                size += a.size
                leaves += a.leaves
                held += a.held
                flags |= a.flags
        if op is INDEX:
            flags |= INDEXED
        self.size, self.leaves, self.held, self.flags = size, leaves, held, flags
        # Whether a bound is broken if nothing in the expression is shared.
        self.out_of_bounds = size > MAX_NODES or leaves > MAX_LEAVES or held > MAX_HELD

    def live(self) -> Storage | None:
        """The storage whose value this still is, if somebody holds it."""
        storage = self.cell() if self.cell is not None else None
        return storage if storage is not None and storage.value is self else None


def nodes(expr: Expr) -> Iterator[Expr]:
    """Yield each node of an expression once; what a computed one was made from is no longer part of it."""
    seen: set[int] = set()
    todo = [expr]
    while todo:
        e = todo.pop()
        if id(e) in seen:
            continue
        seen.add(id(e))
        yield e
        if e.value is None:
            for a in e.args:
                if a.__class__ is View:
                    todo.append(a.expr)
                elif a.__class__ is Expr:
                    todo.append(a)


def buffers(expr: Expr) -> Iterator[Buffer]:
    """Yield the buffers an expression reads, one perhaps several times."""
    for e in nodes(expr):
        if e.value is not None:
            yield e.value
            continue
        for a in e.args:
            if a.__class__ is Leaf:
                yield a.buffer


def too_big(expr: Expr) -> str | None:
    """Name the bound an expression breaks, after counting exactly what it shares with itself."""
    if not expr.out_of_bounds:
        return None
    held: dict[int, int] = {}
    seen, todo = {id(expr)}, [expr]
    while todo:
        e = todo.pop()
        if e.value is not None:
            held[id(e.value)] = e.value.nbytes
            continue
        for a in e.args:
            kind = a.__class__
            if kind is Leaf:
                held[id(a.buffer)] = a.buffer.nbytes
            elif kind is not Scalar:
                inner = a if kind is Expr else a.expr
                if id(inner) not in seen:
                    seen.add(id(inner))
                    todo.append(inner)
        if len(seen) > MAX_NODES:
            return "nodes"
    expr.size, expr.leaves, expr.held = len(seen), len(held), sum(held.values())
    if expr.leaves > MAX_LEAVES:
        return "leaves"
    return "held" if expr.held > MAX_HELD else None


def as_good_as_read(expr: Expr) -> bool:
    """Whether to compute it again costs no more than to read its result: a few light nodes over no more memory, or hardly more."""
    if expr.size > LIGHT or expr.flags & (HEAVY | INDEXED | PRODUCTS):
        return False
    return expr.held <= layouts.numel(expr.shape) * expr.dtype.itemsize * (1 + BESIDE)


def view_dims(
    expr: Expr, shape: tuple[int, ...], strides: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Match a layout over a dense expression to its dimensions: a source dimension or -1 (broadcast) per dimension."""
    if expr.flags & (INDEXED | RESHAPED):
        return None
    source = layouts.contiguous_strides(expr.shape)
    free = {(st, n): d for d, (n, st) in enumerate(zip(expr.shape, source, strict=True)) if n != 1}
    dims = []
    for n, st in zip(shape, strides, strict=True):
        if st == 0 or n == 1:
            dims.append(-1)
        elif (st, n) in free:
            dims.append(free.pop((st, n)))
        else:
            return None
    return None if free else tuple(dims)
