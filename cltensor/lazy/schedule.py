"""When pending results run: on demand, before an in-place write, or when there are too many; and which others run in the same launch.

Note [List of pending results]. `Backend.pending` lists weak references to storages in the order in which they became
pending. Any thread may append to it at any time. Entries are removed by a thread that holds the backend's lock, and
only among the first `n`, where `n` is a length read before the removed ones were chosen; the list is never replaced.
"""

from __future__ import annotations

import weakref
from operator import attrgetter
from typing import TYPE_CHECKING

from .. import layouts
from ..dtypes import dtype
from ..errors import debug_line
from ..runtime import STATS, Backend, Buffer
from .epilogue import run_fused
from .expression import (
    MAX_LEAVES,
    MAX_NODES,
    PRODUCTS,
    UNKNOWN_READS,
    Expr,
    View,
    as_good_as_read,
    buffers,
)
from .fusion import Fusion, argument_bytes
from .launch import launch
from .product import PRODUCT, first_product, forget, run
from .product_tree import run_product_tree
from .recompute import is_large, note_left, spared
from .tree import run_tree, write_tree

if TYPE_CHECKING:
    from ..storage import Storage

MAX_PENDING = 256  # pending results listed for a device: beyond this, all are run, unless half of the list has died
MOST_BYTES = 100  # an upper bound of the argument bytes that one node or operand adds: its pointer, strides and numbers
SIBLINGS = 32  # how many of the latest pending results are considered for sharing a launch


def split(reason: str) -> None:
    """Count, and at debug level 3 say, why a fusion ended."""
    STATS.splits[reason] = STATS.splits.get(reason, 0) + 1
    debug_line(3, "split: %s", reason)


def realise(storage: Storage) -> None:
    """Run the expression that a storage holds, if it is pending, so that the storage holds a buffer; siblings share the launch."""
    backend = storage.backend
    with backend.lock:
        _realise(backend, storage)


def _realise(backend: Backend, storage: Storage) -> None:
    """`realise` for a caller that holds the backend's lock."""
    expr = storage.value
    if expr.__class__ is not Expr:
        return
    if expr.value is not None:  # already run for another storage that holds this expression
        storage.value, storage.reads = expr.value, UNKNOWN_READS
        return
    if expr.flags & PRODUCTS:
        done = run_product_tree(storage, expr, _run_long)
    else:
        done = run_tree(storage, expr)
    if not done:
        _run_long(backend, storage, expr)


def _run_long(backend: Backend, storage: Storage, expr: Expr) -> None:
    """Run an expression by the general way: collect a fusion, cut it down to what a kernel can take, launch it."""
    if expr.op is PRODUCT:
        run(expr)
        return
    fusion = _collect(backend, expr)
    if is_large(expr):
        _leave_pending(fusion, expr)
    if fusion.product is not None and fusion.product_leaf is not None:
        if _run_with_product(backend, fusion):
            return
        run(fusion.product)
        fusion = _collect(backend, expr)
        if is_large(expr):
            _leave_pending(fusion, expr)
    if not _fits(backend, fusion):
        fusion = _collect_alone(expr)
        while not _fits(backend, fusion):
            split("arguments")
            force(_half(expr), backend)
            fusion = _collect_alone(expr)
    _run_outputs(backend, fusion)


def _fits(backend: Backend, fusion: Fusion) -> bool:
    """Return whether the arguments of a fusion's kernel stay below the device's limit in bytes."""
    limit, most = backend.info.arg_bytes, (len(fusion.refs) + len(fusion.leaves)) * MOST_BYTES
    return most <= limit or argument_bytes(fusion) <= limit


def _half(expr: Expr) -> Expr:
    """Return a subexpression of at most half the nodes, to be run as a kernel of its own: from the root, the operand with most nodes is followed."""
    half, part = expr.size // 2, expr
    while part is expr or part.size > half:
        inner = [a.expr if a.__class__ is View else a for a in part.args]
        pending = [a for a in inner if a.__class__ is Expr and a.value is None]
        if not pending:
            break
        part = max(pending, key=attrgetter("size"))
    return part


def _leave_pending(fusion: Fusion, target: Expr) -> None:
    """Remove from a fusion's outputs those that are recomputed when needed instead of written (lazy/recompute.py)."""
    left = spared(fusion, target)
    if left:
        fusion.outputs = [out for out in fusion.outputs if out not in left]
        fusion.left = [expr for _, expr, _ in left]


def _collect(backend: Backend, expr: Expr) -> Fusion:
    """Return an expression's fusion, with siblings that share its work; one product may stay pending in it."""
    product = first_product(expr) if expr.flags & PRODUCTS else None
    fusion = Fusion(expr.shape, product=product)
    fusion.visit(expr)
    _add_siblings(backend, fusion, expr)
    return fusion


def _collect_alone(expr: Expr) -> Fusion:
    """Return the fusion of an expression without siblings; all products in it are run first."""
    fusion = Fusion(expr.shape)
    fusion.visit(expr)
    return fusion


def _run_with_product(backend: Backend, fusion: Fusion) -> bool:
    """Run a fusion as a matrix product with an epilogue, in one launch; return False, with nothing done, where that is
    not possible.

    The product itself is written, too, if a live storage holds it or one of its readers stays pending.
    """
    product, leaf = fusion.product, fusion.product_leaf
    assert product is not None
    assert leaf is not None
    outputs = [(ref, e.dtype, backend.alloc(s.nbytes)) for ref, e, s in fusion.outputs]
    held = any(e is product for _, e, _ in fusion.outputs)
    asked = not held and (bool(fusion.left) or not fusion.closed())
    if asked:
        ref = ("a", fusion.leaves.index(leaf))
        nbytes = layouts.numel(product.shape) * product.dtype.itemsize
        outputs.append((ref, product.dtype, backend.alloc(nbytes)))
    if not run_fused(backend, fusion, outputs):
        return False
    forget(product)
    if asked:
        product.value = outputs[-1][2]
    _settle(backend, fusion, [buffer for _, _, buffer in outputs])
    return True


def force(expr: Expr, backend: Backend) -> None:
    """Run a pending expression even if no live storage holds it; the expression keeps its buffer."""
    storage = expr.live()
    if storage is None:
        from ..storage import Storage

        storage = Storage.pending(backend, expr)
    realise(storage)


def run_held(backend: Backend, expr: Expr) -> None:
    """Run those subexpressions of `expr` that live storages hold, because the kernel about to run computes them without writing them.

    Excepted is what can be recomputed as fast as it can be read: writing it would cost a pass over memory that may not be needed.
    """
    todo, seen = [expr], {id(expr)}
    if expr.size > 1 and is_large(expr):
        fusion = _collect_alone(expr)
        _leave_pending(fusion, expr)
        note_left(backend, fusion.left)
        seen.update([id(e) for e in fusion.left])
    while todo:
        for a in todo.pop().args:
            inner = a.expr if a.__class__ is View else a
            if inner.__class__ is Expr and inner.value is None and id(inner) not in seen:
                seen.add(id(inner))
                storage = inner.live()
                if storage is not None and not (
                    inner.shape == expr.shape and as_good_as_read(inner)
                ):
                    realise(storage)
                else:
                    todo.append(inner)


def _add_siblings(backend: Backend, fusion: Fusion, target: Expr) -> None:
    """Add other pending results of the same shape to a fusion, if they need nodes that the fusion computes anyway.

    If the target is large, others are added, too, most of whose operands the fusion reads: that saves a pass over
    memory.
    """
    pending = backend.pending[-SIBLINGS:]
    # If there are many, testing each of them costs more than asking the fusion first.
    many = len(pending) > 4 * len(fusion.exprs)
    large = is_large(target)
    if many and not large and not fusion.read_outside():
        return
    others = []
    for cell in pending:
        storage = cell()
        if storage is not None:
            other = storage.value
            if other.__class__ is Expr and other is not target and other.shape == target.shape:
                others.append(other)
    if not others or not (many or large or fusion.read_outside()):
        return
    inside = {id(e) for e in fusion.exprs}
    for other in others:
        if (
            id(other) in inside
            or len(fusion.nodes) + other.size > MAX_NODES
            or len(fusion.leaves) + other.leaves > MAX_LEAVES
        ):
            continue
        if _touches(other, inside) or (large and not other.again and _reads_alike(other, fusion)):
            fusion.visit(other)
            inside = {id(e) for e in fusion.exprs}


def _reads_alike(expr: Expr, fusion: Fusion) -> bool:
    """Return whether a fusion reads more than half of the buffers that an expression reads."""
    if expr.flags & PRODUCTS:
        return False
    read, wanted = {id(leaf.buffer) for leaf in fusion.leaves}, {id(b) for b in buffers(expr)}
    return 2 * len(wanted & read) > len(wanted)


def _touches(expr: Expr, inside: set[int]) -> bool:
    """Return whether an expression contains a pending node of a fusion, whose nodes' ids are `inside`."""
    todo = [expr]
    seen = set()
    while todo:
        e = todo.pop()
        if e.value is not None or id(e) in seen:
            continue
        seen.add(id(e))
        if id(e) in inside:
            return True
        for a in e.args:
            if a.__class__ is Expr:
                todo.append(a)
    return False


def _run_outputs(backend: Backend, fusion: Fusion) -> None:
    """Launch a fusion's kernel; an output is written to its storage's old buffer where nothing else reads that."""
    n = layouts.numel(fusion.shape)
    outputs: list[tuple] = []
    for ref, expr, storage in fusion.outputs:
        buffer = None
        if storage.home is not None and fusion.only_reader(storage):
            buffer = storage.home
        if buffer is None:
            buffer = backend.alloc(storage.nbytes)
        outputs.append((ref, expr.dtype, buffer, None, 0))
    if n and outputs:  # no outputs: the target has run meanwhile, as a sibling of its operands
        launch(backend, fusion, outputs)
    _settle(backend, fusion, [out[2] for out in outputs])


def _settle(backend: Backend, fusion: Fusion, buffers: list[Buffer]) -> None:
    """Store the buffers of a fusion that has run in its outputs' storages and expressions, and drop their operands."""
    inside: dict[int, int] | None = None
    for (_, expr, storage), buffer in zip(fusion.outputs, buffers, strict=False):
        storage.value = expr.value = buffer
        storage.home = None
        # Pending expressions outside the fusion that have this one as an operand will read its buffer. Readers are
        # counted by Leafs, which they have none of: mark the count as unknown, so that the buffer is never overwritten
        # in place.
        users = expr.users
        if users:
            if inside is None:  # if a node of the fusion stays pending, no user counts as finished
                inside = {} if fusion.stays_open() else fusion.internal_users()
            users -= inside.get(id(expr), 0)
        storage.reads = UNKNOWN_READS if users else 0
    for _, expr, _ in fusion.outputs:
        expr.args = ()
    note_left(backend, fusion.left)
    pending, n = backend.pending, len(backend.pending)
    if n <= 2 * len(fusion.outputs) + 2:
        pending[:n] = [c for c in pending[:n] if _waits(c)]


def write_region(
    backend: Backend,
    op_expr: Expr,
    dt: dtype,
    buffer: Buffer,
    strides: tuple[int, ...],
    offset: int,
) -> None:
    """Compute an expression directly into a strided region of a buffer: an in-place write of a part."""
    with backend.lock:
        if write_tree(backend, op_expr, buffer, strides, offset):
            return
        fusion = Fusion(op_expr.shape, keep_live=False)
        ref = fusion.visit(op_expr)
        n = layouts.numel(op_expr.shape)
        if n:
            dense = strides == layouts.contiguous_strides(op_expr.shape)
            launch(backend, fusion, [(ref, dt, buffer, None if dense else strides, offset)])


def run_readers(storage: Storage, spared: Storage | None = None) -> None:
    """Run every pending result that reads the storage's buffer, which is about to be written.

    spared: a pending result that need not be run, because nothing will read it any more.
    """
    if not storage.reads:
        return
    buffer = storage.value
    backend = storage.backend
    for cell in [*backend.left, *backend.pending]:
        reader = cell()
        if (
            reader is not None
            and reader is not spared
            and reader.value.__class__ is Expr
            and any(b is buffer for b in buffers(reader.value))
        ):
            split("in-place")
            realise(reader)
    storage.reads = 0


def register(backend: Backend, storage: Storage, expr: Expr) -> None:
    """Register a new pending result; run all pending results of the device if there are too many.

    Acquires no lock, for every small op comes here: see Note [List of pending results].
    """
    cell = expr.cell = weakref.ref(storage)
    pending = backend.pending
    pending.append(cell)
    if len(pending) > MAX_PENDING:
        with backend.lock:
            n = len(pending)
            alive = [
                c
                for c in pending[:n]
                if (s := c()) is not None and s.value.__class__ is Expr and not s.value.again
            ]
            pending[:n] = alive
            if len(alive) > MAX_PENDING // 2:
                split("pending")
                flush(backend)


def flush(backend: Backend) -> None:
    """Run everything pending on a device."""
    with backend.lock:
        tried = [*backend.left, *backend.pending]
        try:
            for cell in tried:
                storage = cell()
                if storage is not None and storage.value.__class__ is Expr:
                    _realise(backend, storage)
        finally:  # after an error, too: they are removed, and a failed result raises again when it is read
            backend.left = []
            pending, n = backend.pending, len(backend.pending)
            if n:
                done = {id(cell) for cell in tried}
                pending[:n] = [c for c in pending[:n] if id(c) not in done and _waits(c)]


def _waits(cell: weakref.ref[Storage]) -> bool:
    """Return whether a listed result lives and is pending still."""
    storage = cell()
    return storage is not None and storage.value.__class__ is Expr
