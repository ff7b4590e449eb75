"""The most frequent fusion, one node over dense operands that nobody shares, run without being collected.

It comes to the program that a `Fusion` would come to; what it spares is Python's time. Owns the kernels of such nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..codegen.pointwise import Program
from ..codegen.region import STREAM
from .expression import INDEXED, Expr, Leaf, Scalar
from .fusion import Fusion
from .launch import entry_of, scalar_args, start

if TYPE_CHECKING:
    from ..storage import Storage

_entries: dict[tuple, tuple] = {}


def run_single(storage: Storage, expr: Expr) -> bool:
    """Give a pending storage its buffer if its value is such a node; the backend's lock is held."""
    if expr.users or expr.flags & INDEXED or expr.live() is not storage:
        return False
    backend, dt = storage.backend, expr.dtype
    nbytes = storage.nbytes
    n = nbytes // dt.itemsize
    if not n:
        return False
    args: list[Any] = [n, 0]
    key: list[Any] = [backend, expr.op, expr.compute, dt]
    leaves: list[Leaf] = []
    numbers: list[Any] = []
    for a in expr.args:
        kind = a.__class__
        if kind is Leaf:
            if a.strides is not None:
                return False
            for i, other in enumerate(leaves):
                if a.buffer is other.buffer and a.offset == other.offset and a.dtype is other.dtype:
                    key.append(i)
                    break
            else:
                key.append(a.dtype)
                leaves.append(a)
                nbytes += n * a.dtype.itemsize
                args += (a.buffer, a.offset)
        elif kind is Scalar:
            key.append(None)
            numbers.append(a.value)
        else:
            return False
    if nbytes >= STREAM:  # there is more to decide
        return False
    found = tuple(key)
    entry = _entries.get(found)
    if entry is None:
        entry = _entries[found] = entry_of(backend, _program(expr))
    if numbers:
        args += scalar_args(numbers, [expr.compute] * len(numbers))
    home = storage.home
    buffer = home if home is not None and _alone(storage, expr) else backend.alloc(storage.nbytes)
    args += (buffer, 0)
    start(backend, entry, n, args, nbytes)
    storage.value = expr.value = buffer
    storage.home = None
    storage.reads = 0
    expr.args = ()
    pending = backend.pending
    if pending and pending[-1] is expr.cell:
        pending.pop()
    return True


def _alone(storage: Storage, expr: Expr) -> bool:
    """Whether the old memory may be written over: its readers are all here, and read an element where it is written."""
    home = storage.home
    mine = [a for a in expr.args if a.__class__ is Leaf and a.buffer is home]
    return storage.reads == len(mine) and all(
        not a.offset and a.dtype.itemsize == expr.dtype.itemsize for a in mine
    )


def _program(expr: Expr) -> Program:
    fusion = Fusion(expr.shape)
    ref = fusion.visit(expr)
    leaves = tuple([(leaf.dtype, "d") for leaf in fusion.leaves])
    scalars, nodes = tuple(fusion.scalar_types), tuple(fusion.nodes)
    return Program(leaves, scalars, nodes, ((ref, expr.dtype, "d"),), 0)
