"""The graph of pending pointwise expressions, and when and how it runs.

A pending value is an `Expr`: a formula over operands, dense in row-major order of its shape. Operands are other `Expr`s (same
iteration), `View`s of them (permuted or broadcast), `Leaf`s (memory with a layout) and `Scalar`s (kernel arguments). Running
one fuses everything it depends on into one kernel whose outputs are the nodes somebody still holds.

Note [Bounds]. Fusion is bounded: by the number of nodes in an expression, of distinct leaves, of bytes that pending
expressions keep alive, of pending results per device, and by the device's limit on kernel arguments. Whoever ends a fusion
says why in `STATS.splits`.

This module knows storages only as cells with a `value`; it knows nothing of tensors.
"""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any

from . import dtypes, layouts
from .codegen import moves, pointwise
from .codegen.operand import Operand
from .codegen.pointwise import IDENTITY, INDEX, Node, PointOp, Program, stride_count
from .dtypes import dtype
from .errors import debug_line
from .runtime import STATS, Backend, Buffer, Counter

if TYPE_CHECKING:
    from .storage import Storage

MAX_NODES = 64
MAX_LEAVES = 24
MAX_PENDING = 256
MAX_HELD = 1 << 30
MAX_RECOMPUTE = (
    4  # a broadcast expression of at most this many light nodes is recomputed per element
)
GRAIN = (
    1 << 17
)  # elements of a cheap chain that one thread is done with before a second would be awake
TURN = 1 << 16  # elements from which on a transposed operand is copied by tiles first
SIBLINGS = 32  # how many of the latest pending results are considered for the same kernel

UNKNOWN_READS = 1 << 40

NON_DENSE, INDEXED, RESHAPED, HEAVY = 1, 2, 4, 8


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
        size, leaves, held, flags = 1, 0, 0, HEAVY if op.heavy else 0
        for a in args:
            kind = a.__class__
            if kind is Leaf:
                leaves += 1
                held += a.buffer.nbytes
                if a.strides is not None:
                    flags |= NON_DENSE
            elif kind is not Scalar:
                if kind is View:
                    flags |= RESHAPED if a.dims is None else NON_DENSE
                    a = a.expr
                a.users += 1
                size += a.size
                leaves += a.leaves
                held += a.held
                flags |= a.flags
        if op is INDEX:
            flags |= INDEXED
        self.size, self.leaves, self.held, self.flags = size, leaves, held, flags

    @property
    def out_of_bounds(self) -> bool:
        """Whether a bound is broken if nothing in the expression is shared."""
        return self.size > MAX_NODES or self.leaves > MAX_LEAVES or self.held > MAX_HELD

    def live(self) -> Storage | None:
        """The storage whose value this still is, if somebody holds it."""
        storage = self.cell() if self.cell is not None else None
        return storage if storage is not None and storage.value is self else None


def too_big(expr: Expr) -> str | None:
    """Name the bound an expression breaks, after counting exactly what it shares with itself."""
    if not expr.out_of_bounds:
        return None
    seen: set[int] = set()
    buffers: dict[int, int] = {}
    todo: list = [expr]
    while todo:
        e = todo.pop()
        if id(e) in seen:
            continue
        seen.add(id(e))
        if e.value is not None:
            buffers[id(e.value)] = e.value.nbytes
            continue
        for a in e.args:
            if a.__class__ is Leaf:
                buffers[id(a.buffer)] = a.buffer.nbytes
            elif a.__class__ is View:
                todo.append(a.expr)
            elif a.__class__ is Expr:
                todo.append(a)
    expr.size, expr.leaves, expr.held = len(seen), len(buffers), sum(buffers.values())
    if expr.size > MAX_NODES:
        return "nodes"
    if expr.leaves > MAX_LEAVES:
        return "leaves"
    return "held" if expr.held > MAX_HELD else None


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


class Fusion:
    """Collects expressions over one iteration shape into a program and its arguments."""

    def __init__(self, shape: tuple[int, ...], *, keep_live: bool = True) -> None:
        self.shape = shape
        self.keep_live = keep_live
        self.refs: dict[Any, tuple[str, int]] = {}
        self.leaves: list[Leaf] = []
        self.scalars: list[Any] = []
        self.scalar_types: list[dtype] = []
        self.nodes: list[Node] = []
        self.outputs: list[tuple[tuple[str, int], Expr, Storage]] = []
        self.exprs: list[Expr] = []

    def visit(self, expr: Expr, dims: tuple[int, ...] | None = None) -> tuple[str, int]:
        """Add an expression, seen through `dims`; returns its reference."""
        key = (id(expr), dims)
        ref = self.refs.get(key)
        if ref is not None:
            return ref
        if expr.value is not None:
            ref = self.leaf(Leaf(expr.value, expr.dtype, None, 0), dims, expr.shape)
        else:
            args = []
            for a in expr.args:
                kind = a.__class__
                if kind is Expr:
                    args.append(self.visit(a, dims))
                elif kind is Leaf:
                    args.append(self.leaf(a, dims, expr.shape))
                elif kind is Scalar:
                    args.append(("k", len(self.scalars)))
                    self.scalars.append(a.value)
                    self.scalar_types.append(expr.compute)
                elif a.dims is None:
                    args.append(self.visit(a.expr, None))
                elif dims is None:
                    args.append(self.visit(a.expr, a.dims))
                else:
                    args.append(
                        self.visit(a.expr, tuple(a.dims[d] if d >= 0 else -1 for d in dims))
                    )
            ref = ("t", len(self.nodes))
            self.exprs.append(expr)
            self.nodes.append(Node(expr.op, expr.compute, expr.dtype, tuple(args)))
            if dims is None and self.keep_live:
                storage = expr.live()
                if storage is not None:
                    self.outputs.append((ref, expr, storage))
        self.refs[key] = ref
        return ref

    def leaf(
        self, leaf: Leaf, dims: tuple[int, ...] | None, shape: tuple[int, ...]
    ) -> tuple[str, int]:
        """Add an operand in memory, re-laid through `dims`; equal operands are one argument."""
        if dims is not None:
            st = leaf.strides if leaf.strides is not None else layouts.contiguous_strides(shape)
            leaf = Leaf(
                leaf.buffer, leaf.dtype, tuple(st[d] if d >= 0 else 0 for d in dims), leaf.offset
            )
        key = (id(leaf.buffer), leaf.strides, leaf.offset, leaf.dtype)
        ref = self.refs.get(key)
        if ref is None:
            ref = self.refs[key] = ("a", len(self.leaves))
            self.leaves.append(leaf)
        return ref

    def internal_users(self) -> dict[int, int]:
        """How often each collected expression is an operand inside this fusion."""
        count: dict[int, int] = {}
        for e in self.exprs:
            for a in e.args:
                inner = a.expr if a.__class__ is View else a
                if inner.__class__ is Expr:
                    count[id(inner)] = count.get(id(inner), 0) + 1
        return count

    def only_reader(self, storage: Storage) -> bool:
        """Whether nothing outside this fusion can still read the storage's old buffer, and all reads in it are dense."""
        home, mine = storage.home, set()
        for e in self.exprs:
            for a in e.args:
                if a.__class__ is Leaf and a.buffer is home:
                    if a.strides is not None or a.offset:
                        return False
                    mine.add(id(a))
        if any(
            leaf.buffer is home and leaf.strides is not None for leaf in self.leaves
        ) or storage.reads != len(mine):
            return False
        inside = self.internal_users()
        live = {id(expr) for _, expr, _ in self.outputs}
        return all(e.users <= inside.get(id(e), 0) for e in self.exprs if id(e) not in live)


@functools.lru_cache(maxsize=4096)
def classify(
    shape: tuple[int, ...],
    operands: tuple[tuple[int, ...] | None, ...],
    outputs: tuple[tuple[int, ...] | None, ...],
) -> tuple:
    """Collapse all layouts together: (rank, sizes, class and strides per leaf, class and strides per output).

    Rank 0 means that one running index serves everyone.
    """
    constant = [
        st is not None and not any(s for s, n in zip(st, shape, strict=True) if n != 1)
        for st in operands
    ]
    varied = [st for st, c in zip(operands, constant, strict=True) if st is not None and not c]
    varied_out = [st for st in outputs if st is not None]
    if not varied and not varied_out:
        return (
            0,
            (),
            tuple(("c" if c else "d", ()) for c in constant),
            tuple(("d", ()) for _ in outputs),
        )
    dense = layouts.contiguous_strides(shape)
    sizes, strides = layouts.collapse(shape, [dense, *varied, *varied_out])
    if not sizes:
        sizes, strides = (1,), [(1,)] * len(strides)
    rank = len(sizes)
    flat = layouts.contiguous_strides(sizes)

    def classed(st: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
        if st == flat:
            return "d", ()
        if st[-1] == 1:
            return "v", st[:-1]
        return ("s", st[:-1]) if st[-1] == 0 else ("g", st)

    merged = iter(strides[1:])
    leaf_classes = [
        ("c", ()) if c else ("d", ()) if st is None else classed(next(merged))
        for st, c in zip(operands, constant, strict=True)
    ]
    out_classes = [("d", ()) if st is None else classed(next(merged)) for st in outputs]
    if all(cls in "cd" for cls, _ in leaf_classes + out_classes):
        return 0, (), tuple(leaf_classes), tuple(out_classes)
    return rank, tuple(sizes), tuple(leaf_classes), tuple(out_classes)


def scalar_args(values: list[Any], types: list[dtype]) -> list:
    """Kernel arguments for Python numbers, converted to their compute dtype."""
    out: list = []
    for value, dt in zip(values, types, strict=True):
        category = dt.category
        if category == 2:
            out.append(float(value.real if value.__class__ is complex else value))
        elif category == 3:
            value = complex(value)
            out += [value.real, value.imag]
        elif category == 1:
            out.append(value if value.__class__ is Counter else wrap_int(int(value), dt))
        else:
            out.append(1 if value else 0)
    return out


def wrap_int(value: int, dt: dtype) -> int:
    """Two's complement of an integer in a dtype."""
    bits = dt.itemsize * 8
    value &= (1 << bits) - 1
    return value - (1 << bits) if dt.is_signed and value >> (bits - 1) else value


_kernels: dict[tuple, tuple] = {}


def run_program(backend: Backend, program: Program, n: int, args: list, nbytes: int) -> None:
    """Launch a program over n elements; builds its kernel when this is the first of its pattern."""
    key = (backend.device, program)
    entry = _kernels.get(key)
    if entry is None:
        info = backend.info
        lanes = pointwise.choose_lanes(program, info.lanes)
        by_lane = info.kind != "cpu"
        for node in program.nodes:
            backend.require(node.compute)
            backend.require(node.result)
        name, text, types = pointwise.source(program, lanes, by_lane)
        kernel = backend.kernel(name, text, types, info.build_options)
        weight = sum(8 if node.op.heavy else 1 for node in program.nodes)
        entry = _kernels[key] = (kernel, lanes, by_lane, max(4096, GRAIN // (1 + weight // 2)))
    kernel, lanes, by_lane, grain = entry
    if by_lane:
        group = min(128, backend.info.max_group)
        groups = min((n + group - 1) // group, backend.info.compute_units * 64)
        backend.launch(kernel, (groups * group,), (group,), [n, 0, *args], nbytes)
        return
    items = min(backend.info.compute_units * 4, (n + grain - 1) // grain)
    chunk = -(-n // items)
    chunk = -(-chunk // 16) * 16
    backend.launch(kernel, (-(-n // chunk),), (1,), [n, chunk, *args], nbytes)


def _runs_across(leaf: Leaf, shape: tuple[int, ...]) -> bool:
    """Whether neighbours in the iteration lie far apart in memory while another dim has them side by side."""
    strides = leaf.strides
    if strides is None:
        return False
    varied = [(n, st) for n, st in zip(shape, strides, strict=True) if n > 1]
    if not varied or varied[-1][1] < 16 or varied[-1][0] < 16:
        return False
    return any(st == 1 and n >= 16 for n, st in varied) and all(st for _, st in varied)


def _operand(leaf: Leaf, shape: tuple[int, ...]) -> Operand:
    strides = layouts.contiguous_strides(shape) if leaf.strides is None else leaf.strides
    return Operand(leaf.buffer, leaf.dtype, shape, strides, leaf.offset)


def _turned(backend: Backend, leaf: Leaf, shape: tuple[int, ...]) -> Leaf:
    """A dense copy, made by tiles: cheaper than a kernel that takes one element of every cache line."""
    return Leaf(moves.dense(backend, _operand(leaf, shape)).buffer, leaf.dtype, None, 0)


def _is_copy(fusion: Fusion, outputs: list) -> bool:
    nodes = fusion.nodes
    if len(nodes) != 1 or len(outputs) != 1 or nodes[0].op is not IDENTITY:
        return False
    return len(fusion.leaves) == 1 and outputs[0][1] is fusion.leaves[0].dtype is nodes[0].compute


_DENSE = ("d", ())  # the class of an operand that needs no strides


def _launch(
    backend: Backend,
    fusion: Fusion,
    outputs: list[tuple[tuple[str, int], dtype, Buffer, tuple[int, ...] | None, int]],
) -> None:
    """Run a collected fusion into the given buffers (reference, dtype, buffer, strides or None, offset)."""
    shape = fusion.shape
    leaves = fusion.leaves
    if layouts.numel(shape) >= TURN and any(_runs_across(leaf, shape) for leaf in leaves):
        if _is_copy(fusion, outputs):
            _, dt, buffer, strides, offset = outputs[0]
            dense = layouts.contiguous_strides(shape) if strides is None else strides
            moves.copy_strided(
                backend, _operand(leaves[0], shape), Operand(buffer, dt, shape, dense, offset)
            )
            return
        leaves = [
            _turned(backend, leaf, shape) if _runs_across(leaf, shape) else leaf for leaf in leaves
        ]
    layouts_in = [leaf.strides for leaf in leaves]
    layouts_out = [o[3] for o in outputs]
    if any(layouts_in) or any(layouts_out):
        rank, sizes, leaf_classes, out_classes = classify(
            shape, tuple(layouts_in), tuple(layouts_out)
        )
    else:
        rank, sizes = 0, ()
        leaf_classes, out_classes = (_DENSE,) * len(leaves), (_DENSE,) * len(outputs)
    n = layouts.numel(shape)
    args: list = list(sizes)
    operands, results = [], []
    nbytes = 0
    for leaf, (kind, strides) in zip(leaves, leaf_classes, strict=True):
        operands.append((leaf.dtype, kind))
        args.append(leaf.buffer)
        args.append(leaf.offset)
        args += strides
        nbytes += min(leaf.buffer.nbytes, n * leaf.dtype.itemsize)
    if fusion.scalars:
        args += scalar_args(fusion.scalars, fusion.scalar_types)
    for (ref, dt, buffer, _, offset), (kind, strides) in zip(outputs, out_classes, strict=True):
        results.append((ref, dt, kind))
        args.append(buffer)
        args.append(offset)
        args += strides
        nbytes += n * dt.itemsize
    program = Program(
        tuple(operands), tuple(fusion.scalar_types), tuple(fusion.nodes), tuple(results), rank
    )
    run_program(backend, program, n, args, nbytes)


def argument_bytes(fusion: Fusion, outputs: int) -> int:
    """An upper bound on what the kernel's arguments take."""
    rank = max(1, len(fusion.shape))
    strided = sum(leaf.strides is not None for leaf in fusion.leaves)
    return (
        16
        + 8 * rank
        + 16 * (len(fusion.leaves) + outputs)
        + 8 * rank * strided
        + 16 * len(fusion.scalars)
    )


def split(reason: str) -> None:
    """Count, and at debug level 3 say, why a fusion ended."""
    STATS.splits[reason] = STATS.splits.get(reason, 0) + 1
    debug_line(3, "split: %s", reason)


def realise(storage: Storage) -> None:
    """Give a pending storage its buffer, together with everything it shares work with."""
    backend = storage.backend
    with backend.lock:
        expr = storage.value
        if expr.__class__ is not Expr:
            return
        fusion = Fusion(expr.shape)
        fusion.visit(expr)
        _add_siblings(backend, fusion, expr)
        limit = backend.info.arg_bytes
        if argument_bytes(fusion, len(fusion.outputs)) > limit:
            _realise_in_parts(storage, expr)
            return
        _run_outputs(backend, fusion)


def _realise_in_parts(storage: Storage, expr: Expr) -> None:
    """Too many arguments for one kernel: run the operands on their own first."""
    split("arguments")
    for a in expr.args:
        inner = a.expr if a.__class__ is View else a
        if inner.__class__ is Expr and inner.value is None:
            force(inner, storage.backend)
    fusion = Fusion(expr.shape)
    fusion.visit(expr)
    _run_outputs(storage.backend, fusion)


def force(expr: Expr, backend: Backend) -> None:
    """Run a pending expression whether or not somebody holds it; its buffer stays with the expression."""
    storage = expr.live()
    if storage is None:
        from .storage import Storage

        storage = Storage.pending(backend, expr)
    realise(storage)


def run_held(expr: Expr) -> None:
    """Run what an expression reads and somebody holds: a kernel that keeps no intermediate must not leave it pending."""
    todo, seen = [expr], {id(expr)}
    while todo:
        for a in todo.pop().args:
            inner = a.expr if a.__class__ is View else a
            if inner.__class__ is Expr and inner.value is None and id(inner) not in seen:
                seen.add(id(inner))
                storage = inner.live()
                if storage is not None:
                    realise(storage)
                else:
                    todo.append(inner)


def _add_siblings(backend: Backend, fusion: Fusion, target: Expr) -> None:
    """Take in other pending results of the same shape that need nodes this kernel computes anyway."""
    pending = backend.pending
    if len(pending) < 2:
        return
    inside = {key[0] for key in fusion.refs}
    for cell in pending[-SIBLINGS:]:
        storage = cell()
        if storage is None:
            continue
        other = storage.value
        if (
            other.__class__ is not Expr
            or other is target
            or id(other) in inside
            or other.shape != target.shape
        ):
            continue
        if (
            len(fusion.nodes) + other.size > MAX_NODES
            or len(fusion.leaves) + other.leaves > MAX_LEAVES
        ):
            continue
        if _touches(other, inside):
            fusion.visit(other)
            inside = {key[0] for key in fusion.refs}


def _touches(expr: Expr, inside: set[int]) -> bool:
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
    n = layouts.numel(fusion.shape)
    outputs: list[tuple] = []
    for ref, expr, storage in fusion.outputs:
        buffer = None
        if storage.home is not None and fusion.only_reader(storage):
            buffer = storage.home
        if buffer is None:
            buffer = backend.alloc(storage.nbytes)
        outputs.append((ref, expr.dtype, buffer, None, 0))
    if n:
        _launch(backend, fusion, outputs)
    inside = fusion.internal_users() if any(expr.users for _, expr, _ in fusion.outputs) else {}
    for (_, expr, storage), out in zip(fusion.outputs, outputs, strict=True):
        storage.value = expr.value = out[2]
        storage.home = None
        # Expressions outside that hold on to this one will read the buffer without making a Leaf: never write over it.
        storage.reads = UNKNOWN_READS if expr.users > inside.get(id(expr), 0) else 0
    for _, expr, _ in fusion.outputs:
        expr.args = ()
    pending = backend.pending
    if len(pending) <= 2 * len(fusion.outputs) + 2:
        backend.pending = [
            c for c in pending if (s := c()) is not None and s.value.__class__ is Expr
        ]


def write_region(
    backend: Backend,
    op_expr: Expr,
    dt: dtype,
    buffer: Buffer,
    strides: tuple[int, ...],
    offset: int,
) -> None:
    """Compute an expression straight into a strided region of a buffer."""
    with backend.lock:
        fusion = Fusion(op_expr.shape, keep_live=False)
        ref = fusion.visit(op_expr)
        n = layouts.numel(op_expr.shape)
        if n:
            dense = strides == layouts.contiguous_strides(op_expr.shape)
            _launch(backend, fusion, [(ref, dt, buffer, None if dense else strides, offset)])


def run_readers(storage: Storage) -> None:
    """Run every pending result that still reads the storage's buffer, which is about to be written."""
    if not storage.reads:
        return
    buffer = storage.value
    for cell in list(storage.backend.pending):
        reader = cell()
        if reader is not None and reader.value.__class__ is Expr and _reads(reader.value, buffer):
            split("in-place")
            realise(reader)
    storage.reads = 0


def _reads(expr: Expr, buffer: Buffer) -> bool:
    todo, seen = [expr], set()
    while todo:
        e = todo.pop()
        if id(e) in seen:
            continue
        seen.add(id(e))
        if e.value is not None:
            if e.value is buffer:
                return True
            continue
        for a in e.args:
            if a.__class__ is Leaf:
                if a.buffer is buffer:
                    return True
            elif a.__class__ is View:
                todo.append(a.expr)
            elif a.__class__ is Expr:
                todo.append(a)
    return False


def register(backend: Backend, storage: Storage, expr: Expr) -> None:
    """Note a new pending result; runs what would break a bound."""
    cell = expr.cell = weakref.ref(storage)
    with backend.lock:
        pending = backend.pending
        pending.append(cell)
        if len(pending) > MAX_PENDING:
            alive = [c for c in pending if (s := c()) is not None and s.value.__class__ is Expr]
            backend.pending = alive
            if len(alive) > MAX_PENDING // 2:
                split("pending")
                flush(backend)


def flush(backend: Backend) -> None:
    """Run everything pending on a device."""
    with backend.lock:
        try:
            for cell in list(backend.pending):
                storage = cell()
                if storage is not None and storage.value.__class__ is Expr:
                    realise(storage)
        finally:
            backend.pending = []  # what failed has said so; whoever holds it hears it again


__all__ = [
    "INDEX",
    "Expr",
    "Fusion",
    "Leaf",
    "Scalar",
    "View",
    "dtypes",
    "flush",
    "force",
    "realise",
    "register",
    "run_readers",
    "stride_count",
    "write_region",
]
