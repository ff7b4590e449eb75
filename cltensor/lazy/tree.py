"""A short cut for the most frequent fusions: small trees of nodes over operands in memory, run or written without collecting a `Fusion`.

The program is the one that a `Fusion` would have; only Python time is saved. An expression that needs further decisions
(because of other results that need the same nodes, of layouts, of size) is left to the `Fusion`. Owns the table of such
trees' kernels.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from ..codegen.pointwise import Program
from ..codegen.region import STREAM
from ..dtypes import dtype
from ..size import Size
from ..symbols import WORKING, Work, opened, pattern
from .expression import (
    HEAVY,
    INDEXED,
    NON_DENSE,
    READ,
    STRIDED,
    UNKNOWN_READS,
    Expr,
    Leaf,
    Scalar,
    View,
)
from .fusion import Fusion, arranged, seen
from .launch import TURN, entry_of, runs_across, scalar_args, start
from .product import PRODUCT
from .recompute import is_large

if TYPE_CHECKING:
    from ..runtime import Backend, Buffer
    from ..storage import Storage

MOST = 12  # nodes of a tree that is run this way
VARIANTS = 8  # kernels kept for trees that differ in sizes only
KEPT = 4096  # trees in the table, where a strided tree has an entry for each shape
# Flags that an expression may have and still be run as a small tree.
DECIDED = HEAVY | INDEXED | NON_DENSE | READ | STRIDED
ALONE = HEAVY | NON_DENSE | STRIDED  # flags of a tree of one node over memory and numbers
_HELD = object()  # in a key: a live storage holds the result of the node that follows
_PLACED = object()  # in a key: followed by the strides of the region written to

LeafRecord = tuple["Buffer", int, dtype, tuple[int, ...] | None]
"""An operand in memory: buffer, offset, dtype, and strides as a Leaf has them."""


class _Entry(NamedTuple):
    """A tree's kernel with its division of work, and those of its arguments that are the same at each launch."""

    kernel: tuple  # as `launch.entry_of` returns it
    scalars: list[dtype]  # compute dtypes of the numbers
    sizes: tuple[int, ...]  # of the collapsed iteration space; () if one linear index serves all
    # Of each operand over `sizes`; None if all are dense.
    strides: tuple[tuple[int, ...], ...] | None
    placed: tuple[int, ...]  # strides of the result over `sizes`

    def arguments(self, n: int, leaves: list[LeafRecord], numbers: list[Any]) -> list[Any]:
        """Return the kernel's arguments up to its results."""
        args: list[Any] = [n, 0, *self.sizes]
        if self.strides is None:
            for buffer, offset, _, _ in leaves:
                args += (buffer, offset)
        else:
            for (buffer, offset, _, _), steps in zip(leaves, self.strides, strict=True):
                args += (buffer, offset, *steps)
        if numbers:
            args += scalar_args(numbers, self.scalars)
        return args


_entries: dict[tuple, _Entry | None] = {}  # None: some operand is worth a transposed copy first
# Kind of trees -> variants: a function from sizes to the entry's sizes and strides (None if the entry does not hold for
# them), the entry.
_kinds: dict[tuple, list[tuple[Callable[..., Any], _Entry | None]]] = {}
_NEW: Any = object()


def run_tree(storage: Storage, expr: Expr) -> bool:
    """Run a pending storage's value if it is a small tree; False, with nothing done, if not.

    The caller holds the backend's lock.
    """
    if expr.flags & ~DECIDED or expr.size > MOST or expr.users:
        return False
    cell = (
        expr.cell
    )  # `expr.live()` without a call; None while another thread is registering the expression
    if cell is None or cell() is not storage:
        return False
    if expr.size == 1 and not expr.flags & ~ALONE:
        return _run_node(storage, expr)
    backend, itemsize = storage.backend, expr.dtype.itemsize
    n = storage.nbytes // itemsize
    key: list[Any] = [backend]
    leaves: list[LeafRecord] = []
    numbers: list[Any] = []
    held: list[tuple[Expr, Storage]] = []
    names: dict[Any, int] = {}
    missing: dict[Expr, int] = {}
    if not n or not walk(expr, None, key, leaves, numbers, held, names, missing):
        return False
    if (missing and any(missing.values())) or (held and is_large(expr)):
        return False
    if expr.flags & NON_DENSE:
        key.append(expr.shape)
    for leaf in leaves:
        itemsize += leaf[2].itemsize
    for _, other in held:
        itemsize += other.nbytes // n
    if n * itemsize >= STREAM:
        return False
    entry = _find(backend, expr, tuple(key))
    if entry is None:
        return False
    args = entry.arguments(n, leaves, numbers)
    held_in = [backend.alloc_held(other.nbytes) for _, other in held] if held else ()
    for buffer in held_in:
        args += (buffer, 0)
    home = storage.home
    taken = home is not None and storage.reads == _reads(expr, home, expr.dtype.itemsize)
    buffer = home if taken else backend.alloc_held(storage.nbytes)  # type: ignore[assignment]
    args += (buffer, 0)
    start(backend, entry.kernel, n, args, n * itemsize)
    settle(storage, expr, buffer, held, held_in, names)
    return True


def settle(
    storage: Storage,
    expr: Expr,
    buffer: Buffer,
    held: Sequence[tuple[Expr, Storage]],
    kept: Sequence[Buffer],
    names: dict[Any, int],
) -> None:
    """Store the buffers of a tree that has run: the result's, and those of inner results that live storages hold
    (`kept`, as `held`).

    `held` and `names` are what `walk` found.
    """
    storage.value = expr.value = buffer
    storage.home = None
    storage.reads = 0
    expr.args = ()
    if held:
        # A node seen through a View may be held as well; it then stays pending, and reads the buffers stored here.
        reads = UNKNOWN_READS if any(through is not None for _, through in names) else 0
        for (node, other), its in zip(held, kept, strict=True):
            other.value = node.value = its
            other.reads = reads
            node.args = ()
    _drop_done(storage.backend)


def _run_node(storage: Storage, expr: Expr) -> bool:
    """Do what `run_tree` does, for a tree of one node over memory and numbers, without the cost of `walk`."""
    backend, dt, home = storage.backend, expr.dtype, storage.home
    nbytes, width = storage.nbytes, dt.itemsize
    n = nbytes // width
    key: list[Any] = [backend, expr.op, expr.compute, dt]
    args: list[Any] = [n, 0]
    leaves: list[LeafRecord] = []
    numbers: list[Any] = []
    reads = 0
    for a in expr.args:
        if a.__class__ is Scalar:
            key.append(None)
            numbers.append(a.value)
            continue
        buffer, offset, kind, steps = leaf = a.buffer, a.offset, a.dtype, a.strides
        if buffer is home:
            kept = not offset and steps is None and kind.itemsize == dt.itemsize
            reads = reads + 1 if kept else UNKNOWN_READS
        if leaf in leaves:
            key.append(leaves.index(leaf))
        else:
            key.append(kind)
            if steps is not None:
                key.append(steps)
            leaves.append(leaf)
            args += (buffer, offset)
            width += kind.itemsize
    if not n or n * width >= STREAM:
        return False
    strided = expr.flags & NON_DENSE
    if strided:
        key.append(expr.shape)
    found = tuple(key)
    entry = None if WORKING else _entries.get(found)  # what `_find` mostly does, without a call
    if entry is None:
        entry = _find(backend, expr, found)
        if entry is None:
            return False
    if strided:
        args = entry.arguments(n, leaves, numbers)
    elif numbers:
        args += scalar_args(numbers, entry.scalars)
    taken = home is not None and storage.reads == reads
    buffer = home if taken else backend.alloc_held(nbytes)
    args += (buffer, 0)
    start(backend, entry.kernel, n, args, n * width)
    storage.value = expr.value = buffer
    storage.home = None
    storage.reads = 0
    expr.args = ()
    _drop_done(backend)
    return True


def _drop_done(backend: Backend) -> None:
    """Remove entries that are no longer pending from the end of the backend's list of pending results."""
    pending = backend.pending
    n = kept = len(pending)
    while kept and ((last := pending[kept - 1]()) is None or last.value.__class__ is not Expr):
        kept -= 1
    del pending[kept:n]


def write_tree(
    backend: Backend, expr: Expr, buffer: Buffer, strides: tuple[int, ...], offset: int
) -> bool:
    """Compute a small tree into a region of memory, writing no inner result; False, with nothing done, if it is no
    small tree.

    The caller holds the backend's lock.
    """
    if expr.flags & ~DECIDED or expr.size > MOST or expr.value is not None:
        return False
    n = prod(expr.shape)
    if not n or n >= TURN:
        return False
    key: list[Any] = [backend]
    leaves: list[LeafRecord] = []
    numbers: list[Any] = []
    if not walk(expr, None, key, leaves, numbers, None, {}, {}):
        return False
    key += (_PLACED, strides, expr.shape)
    entry = _find(backend, expr, tuple(key), strides)
    if entry is None:
        return False
    args = entry.arguments(n, leaves, numbers)
    args += (buffer, offset, *entry.placed)
    nbytes = n * (expr.dtype.itemsize + sum([leaf[2].itemsize for leaf in leaves]))
    start(backend, entry.kernel, n, args, nbytes)
    return True


class Prepared:
    """A storage's pending tree whose operands are numbers alone, to be run repeatedly with other numbers in their
    place.

    Raises ValueError if the storage holds anything else.
    """

    def __init__(self, storage: Storage) -> None:
        backend, expr = storage.backend, storage.value
        expr.cell = weakref.ref(storage)  # not registered as pending: the storage is never run
        self.numbers: list[Any] = []  # in the order in which `run` takes them
        leaves: list[LeafRecord] = []
        alone = expr.size <= MOST and walk(expr, None, [], leaves, self.numbers, [], {}, {})
        entry = _entry(backend, expr) if alone and not leaves else None
        if entry is None:
            raise ValueError("not a tree over numbers")
        self._backend, self._entry = backend, entry
        self._nbytes = storage.nbytes
        self._n = self._nbytes // expr.dtype.itemsize

    def run(self, numbers: list[Any]) -> Buffer:
        """Return a new buffer with the tree's values for `numbers`."""
        backend, entry = self._backend, self._entry
        with backend.lock:
            buffer = backend.alloc(self._nbytes)
            args = entry.arguments(self._n, [], numbers)
            args += (buffer, 0)
            start(backend, entry.kernel, self._n, args, self._nbytes)
        return buffer


def walk(
    expr: Expr,
    dims: tuple[int, ...] | None,
    key: list[Any],
    leaves: list[LeafRecord],
    numbers: list[Any],
    held: list[tuple[Expr, Storage]] | None,
    names: dict[Any, int],
    missing: dict[Expr, int],
) -> bool:
    """Append to `key`, `leaves` and `numbers` what identifies and feeds a kernel for an expression seen through `dims`,
    in a Fusion's order.

    Return False where a Fusion has to decide. `held` collects the inner nodes whose results live storages hold, with
    these storages; None if inner results are not to be written. `names` maps (node, dims), for a node that may be met
    again (it has several readers, or is seen through a View), to the number that stands for it in the key; `missing`
    maps a node with several readers to how many of these have not been met.
    """
    op = expr.op
    if op is PRODUCT and dims is not None:
        return False
    key += (op, expr.compute, expr.dtype)
    for a in expr.args:
        kind = a.__class__
        if kind is Scalar:
            key.append(None)
            numbers.append(a.value)
            continue
        through = dims
        if kind is View:
            if a.dims is not None:
                through = (
                    a.dims if dims is None else tuple([a.dims[d] if d >= 0 else -1 for d in dims])
                )
            elif dims is not None:
                return False
            a = a.expr
        if kind is Leaf:
            steps = a.strides if dims is None else seen(a.strides, expr.shape, dims)
            leaf = (a.buffer, a.offset, a.dtype, steps)
        elif a.value is not None:
            steps = None if through is None else seen(None, a.shape, through)
            leaf = (a.value, 0, a.dtype, steps)
        else:
            shared = a.users > 1
            if shared:
                missing[a] = missing.get(a, a.users) - 1
            if shared or through is not None:
                name = names.get((a, through))
                if name is not None:
                    key.append(name)
                    continue
                names[a, through] = -1 - len(names)
            # A node seen through a View cannot be kept: the kernel does not compute its elements in their own order.
            if (
                through is None
                and held is not None
                and (cell := a.cell) is not None
                and (storage := cell()) is not None
                and storage.value is a
            ):
                if storage.home is not None:
                    return False
                key.append(_HELD)  # before the node: behind a chain it would be ambiguous
                if not walk(a, None, key, leaves, numbers, held, names, missing):
                    return False
                held.append((a, storage))
            elif not walk(a, through, key, leaves, numbers, held, names, missing):
                return False
            continue
        if leaf in leaves:
            key.append(leaves.index(leaf))
        else:
            key.append(leaf[2])
            if steps is not None:
                key.append(steps)
            leaves.append(leaf)
    return True


def _reads(expr: Expr, home: Buffer, itemsize: int) -> int:
    """Return how many operands read `home`, the memory the result may overwrite, all at the element being written.

    -1 if one reads elsewhere.
    """
    todo, met, count = [(expr, False)], {(id(expr), False)}, 0
    while todo:
        e, moved = todo.pop()
        for a in e.args:
            if a.__class__ is Leaf:
                if a.buffer is home:
                    if moved or a.offset or a.strides is not None or a.dtype.itemsize != itemsize:
                        return -1
                    count += 1
                continue
            inner, through = (a.expr, True) if a.__class__ is View else (a, moved)
            if inner.__class__ is Expr:
                if inner.value is home:
                    return -1
                if inner.value is None and (id(inner), through) not in met:
                    met.add((id(inner), through))
                    todo.append((inner, through))
    return count


def _find(
    backend: Backend, expr: Expr, key: tuple, placed: tuple[int, ...] | None = None
) -> _Entry | None:
    """Return the entry of a tree by its key.

    `placed` are the strides of the region it is written to, None for a new buffer.
    """
    if WORKING:
        return _entry(backend, expr, placed)
    entry = _entries.get(key, _NEW)
    if entry is _NEW:
        if len(_entries) > KEPT:
            _entries.clear()
        entry = _entries[key] = _of_kind(backend, expr, key, placed)
    return entry


def _of_kind(
    backend: Backend, expr: Expr, key: tuple, placed: tuple[int, ...] | None
) -> _Entry | None:
    """Return the entry of a tree, derived from that of a tree which differs in sizes only, if there is one (Note
    [Symbols] in symbols.py).
    """
    if placed is None and not expr.flags & NON_DENSE:
        return _entry(backend, expr)
    sizes: list[int] = []
    found = tuple([pattern(x, sizes) if x.__class__ in (tuple, Size) else x for x in key])
    variants = _kinds.get(found)
    if variants is None:
        if len(_kinds) > KEPT:
            _kinds.clear()
        _kinds[found] = []
        return _entry(backend, expr, placed)
    for numbers, entry in variants:
        given = numbers(*sizes)
        if given is not None:
            return entry and _with(entry, given)
    if len(variants) >= VARIANTS:
        return _entry(backend, expr, placed)
    with Work() as work:
        *steps, shape = [opened(tuple(x), work.number) for x in key if x.__class__ in (tuple, Size)]
        entry = _entry(backend, expr, None if placed is None else steps.pop(), shape, steps)
        results = (entry.sizes, entry.strides, entry.placed) if entry else ()
    numbers = work.function(results)
    variants.insert(0, (numbers, entry))
    given = numbers(*sizes)
    return entry and _with(entry, given)


def _with(entry: _Entry, given: tuple) -> _Entry:
    """Return an entry with other sizes, strides of operands and strides of the result."""
    sizes, strides, placed = given
    return entry._replace(sizes=sizes, strides=strides, placed=placed)


def _entry(
    backend: Backend,
    expr: Expr,
    placed: tuple[int, ...] | None = None,
    shape: tuple[int, ...] = (),
    steps: Sequence[tuple[int, ...]] = (),
) -> _Entry | None:
    """Make the entry of a tree.

    `shape` and `steps` (leaf strides), if given, replace the expression's own (they may hold Symbols).
    """
    fusion = Fusion(expr.shape, keep_live=placed is None)
    last = fusion.visit(expr)
    given = tuple([leaf.strides for leaf in fusion.leaves])
    if steps:
        others = iter(steps)
        given = tuple([None if st is None else next(others) for st in given])
    shape = shape or tuple(expr.shape)
    if prod(shape) >= TURN and any(runs_across(st, shape) for st in given):
        return None
    outs = [(ref, done.dtype) for ref, done, _ in fusion.outputs]
    if placed is not None:
        outs = [(last, expr.dtype)]
    stored = [*[leaf.dtype for leaf in fusion.leaves], *[dt for _, dt in outs]]
    narrow, rank, sizes, classes, results = arranged(
        backend, shape, given, (placed,) * len(outs), fusion.nodes, stored
    )
    leaves = tuple(
        [(leaf.dtype, kind) for leaf, (kind, _) in zip(fusion.leaves, classes, strict=True)]
    )
    outputs = tuple([(*out, kind) for out, (kind, _) in zip(outs, results, strict=True)])
    scalars, nodes = tuple(fusion.scalar_types), tuple(fusion.nodes)
    kernel = entry_of(backend, Program(leaves, scalars, nodes, outputs, rank, narrow=narrow))
    strides = tuple([steps for _, steps in classes]) if fusion.strided else None
    return _Entry(kernel, list(scalars), sizes, strides, results[-1][1])
