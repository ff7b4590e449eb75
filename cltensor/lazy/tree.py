"""The most frequent fusions, small trees of nodes over dense operands, run without being collected.

It comes to the program that a `Fusion` would come to; what it spares is Python's time. Where there is more to decide (other
results that need the same nodes, layouts, size) it leaves the expression to the Fusion. Owns the kernels of such trees.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..codegen.pointwise import Program
from ..codegen.region import STREAM
from ..dtypes import dtype
from .expression import HEAVY, INDEXED, Expr, Leaf, Scalar
from .fusion import Fusion
from .launch import entry_of, scalar_args, start

if TYPE_CHECKING:
    from ..runtime import Buffer
    from ..storage import Storage

MOST = 12  # nodes
DECIDED = HEAVY | INDEXED  # flags of expressions that need no other decisions
_HELD = object()  # in a key: somebody holds the node's result

_entries: dict[tuple, tuple[tuple, list[dtype]]] = {}


def run_tree(storage: Storage, expr: Expr) -> bool:
    """Give a pending storage its buffer if its value is such a tree; the backend's lock is held."""
    if expr.flags & ~DECIDED or expr.size > MOST or expr.users or expr.live() is not storage:
        return False
    backend, itemsize = storage.backend, expr.dtype.itemsize
    n = storage.nbytes // itemsize
    key: list[Any] = [backend]
    leaves: list[tuple[Buffer, int, dtype]] = []
    numbers: list[Any] = []
    held: list[tuple[Expr, Storage]] = []
    shared: dict[int, list[int]] = {}
    if not n or not _walk(expr, key, leaves, numbers, held, shared):
        return False
    for _, missing in shared.values():
        if missing:
            return False
    args: list[Any] = [n, 0]
    for buffer, offset, dt in leaves:
        args += (buffer, offset)
        itemsize += dt.itemsize
    for _, other in held:
        itemsize += other.nbytes // n
    if n * itemsize >= STREAM:
        return False
    found = tuple(key)
    entry = _entries.get(found)
    if entry is None:
        program = _program(expr)
        entry = _entries[found] = entry_of(backend, program), list(program.scalars)
    if numbers:
        args += scalar_args(numbers, entry[1])
    held_in = [backend.alloc(other.nbytes) for _, other in held] if held else ()
    for buffer in held_in:
        args += (buffer, 0)
    home = storage.home
    taken = home is not None and storage.reads == _reads(expr, home, expr.dtype.itemsize)
    buffer = home if taken else backend.alloc(storage.nbytes)  # type: ignore[assignment]
    args += (buffer, 0)
    start(backend, entry[0], n, args, n * itemsize)
    storage.value = expr.value = buffer
    storage.home = None
    storage.reads = 0
    expr.args = ()
    for (node, other), buffer in zip(held, held_in, strict=True):
        other.value = node.value = buffer
        other.reads = 0
        node.args = ()
    pending = backend.pending
    while pending and ((last := pending[-1]()) is None or last.value.__class__ is not Expr):
        pending.pop()
    return True


def _walk(
    expr: Expr,
    key: list[Any],
    leaves: list[tuple[Buffer, int, dtype]],
    numbers: list[Any],
    held: list[tuple[Expr, Storage]],
    shared: dict[int, list[int]],
) -> bool:
    """Find what a kernel of the expression is told, in the order of a Fusion; False where a Fusion has to decide.

    `held`: inner nodes whose results somebody has. `shared`: of nodes with several readers, which it is and how many were not met.
    """
    key += (expr.op, expr.compute, expr.dtype)
    for a in expr.args:
        kind = a.__class__
        if kind is Scalar:
            key.append(None)
            numbers.append(a.value)
            continue
        if kind is Leaf:
            leaf = (a.buffer, a.offset, a.dtype)
        elif a.value is not None:
            leaf = (a.value, 0, a.dtype)
        else:
            if a.users > 1:
                seen = shared.get(id(a))
                if seen is not None:
                    key.append(seen[0])
                    seen[1] -= 1
                    continue
                shared[id(a)] = [-1 - len(shared), a.users - 1]
            storage = a.live()
            if storage is not None and storage.home is not None:
                return False
            if not _walk(a, key, leaves, numbers, held, shared):
                return False
            if storage is not None:
                key.append(_HELD)
                held.append((a, storage))
            continue
        if leaf in leaves:
            key.append(leaves.index(leaf))
        else:
            key.append(leaf[2])
            leaves.append(leaf)
    return True


def _reads(expr: Expr, home: Buffer, itemsize: int) -> int:
    """How many operands read the memory that the result may take, each where its element is written; -1 if one reads elsewhere."""
    todo, met, count = [expr], {id(expr)}, 0
    while todo:
        for a in todo.pop().args:
            if a.__class__ is Leaf and a.buffer is home:
                if a.offset or a.dtype.itemsize != itemsize:
                    return -1
                count += 1
            elif a.__class__ is Expr and a.value is None and id(a) not in met:
                met.add(id(a))
                todo.append(a)
            elif a.__class__ is Expr and a.value is home:
                return -1
    return count


def _program(expr: Expr) -> Program:
    fusion = Fusion(expr.shape)
    fusion.visit(expr)
    leaves = tuple([(leaf.dtype, "d") for leaf in fusion.leaves])
    outputs = tuple([(ref, done.dtype, "d") for ref, done, _ in fusion.outputs])
    return Program(leaves, tuple(fusion.scalar_types), tuple(fusion.nodes), outputs, 0)
