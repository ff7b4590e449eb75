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

# Bounds of a pending expression (Note [Bounds]): nodes, operands in memory, bytes of memory that these keep alive.
MAX_NODES = 64
MAX_LEAVES = 24
MAX_HELD = 1 << 30
LIGHT = 4  # an expression of at most this many light nodes is recomputed by every kernel that reduces it
# Operands with one number per row or column may take this fraction of a result's bytes and still not count as extra
# memory to read.
BESIDE = 1 / 16
# A broadcast expression of at most this many light nodes is recomputed per element.
MAX_RECOMPUTE = 4

UNKNOWN_READS = 1 << 40  # `Storage.reads` if the pending readers were not counted

# Flags of an expression, which it also inherits from its operands. NON_DENSE: some operand has strides or is broadcast.
# STRIDED: NON_DENSE with an operand that is neither dense nor a single number. INDEXED: contains INDEX nodes, whose
# values are the positions of elements. RESHAPED: contains a View with dims None. HEAVY: contains a formula with
# functions that take long. PRODUCTS: contains a pending matrix product. READ: a kernel that reads expressions (a
# reduction) has computed the expression, or one of its operands, as a prologue, without writing it.
NON_DENSE, INDEXED, RESHAPED, HEAVY, PRODUCTS, STRIDED, READ = 1, 2, 4, 8, 16, 32, 64


class Leaf:
    """A buffer read with a layout over the iteration shape; `strides` None means dense."""

    __slots__ = ("buffer", "dtype", "offset", "strides")

    def __init__(
        self, buffer: Buffer, dt: dtype, strides: tuple[int, ...] | None, offset: int
    ) -> None:
        self.buffer, self.dtype, self.strides, self.offset = buffer, dt, strides, offset


def flags_of(leaf: Leaf) -> int:
    """Return the flags of an expression that reads the leaf."""
    if leaf.strides is None:
        return 0
    return NON_DENSE | STRIDED if any(leaf.strides) else NON_DENSE


class Scalar:
    """A Python number, passed as a kernel argument in the compute dtype of the node that uses it."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class View:
    """Another pending expression as an operand, with its dims permuted, broadcast or reshaped.

    dims: for each dim of the reader, the dim of the expression that runs along it, or -1 for broadcasting; None if the
    expression is read in another shape with the same elements in the same order.
    """

    __slots__ = ("dims", "expr")

    def __init__(self, expr: Expr, dims: tuple[int, ...] | None) -> None:
        self.expr, self.dims = expr, dims


class Expr:
    """A pending pointwise result: a formula (`op`) applied to operands (`args`: Leaf, Scalar, View or Expr).

    value: the buffer once the expression has run, else None. cell: a weak reference to the storage that holds it.
    users: how often it is an operand of other expressions. size, leaves, held: nodes, operands in memory and bytes of
    these, operands of operands included; shared ones may be counted several times.
    """

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
        # How many kernels have computed the expression without writing it (recompute.py).
        self.again = 0
        size, leaves, held, flags = 1, 0, 0, HEAVY if op.heavy else 0
        for a in args:
            kind = a.__class__
            if kind is Leaf:
                leaves += 1
                held += a.buffer.nbytes
                flags |= flags_of(a)
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

    def live(self) -> Storage | None:
        """Return the live storage whose value is this expression, or None."""
        storage = self.cell() if self.cell is not None else None
        return storage if storage is not None and storage.value is self else None


def nodes(expr: Expr) -> Iterator[Expr]:
    """Yield each node of an expression once; the operands of nodes that are already computed are not followed."""
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
    """Yield the buffers an expression reads; the same one may come several times."""
    for e in nodes(expr):
        if e.value is not None:
            yield e.value
            continue
        for a in e.args:
            if a.__class__ is Leaf:
                yield a.buffer


def too_big(expr: Expr) -> str | None:
    """Return the name of the bound that an expression exceeds, or None; shared subexpressions are counted once."""
    if expr.size <= MAX_NODES and expr.leaves <= MAX_LEAVES and expr.held <= MAX_HELD:
        return None  # although shared ones were counted repeatedly
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
    """Return whether recomputing an expression costs no more than reading its result: few light nodes, and operands of
    hardly more bytes.
    """
    if expr.size > LIGHT or expr.flags & (HEAVY | INDEXED | PRODUCTS):
        return False
    return expr.held <= layouts.numel(expr.shape) * expr.dtype.itemsize * (1 + BESIDE)


def view_dims(
    expr: Expr, shape: tuple[int, ...], strides: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Return the `View.dims` that give a dense expression this layout.

    None if it is not a permutation with broadcasting.
    """
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
