"""A fusion: expressions over one iteration shape, collected into a program whose layouts are collapsed together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .. import layouts
from ..codegen.pointwise import Node, narrow_class, narrowed
from ..dtypes import dtype
from ..symbols import remembered
from .expression import MAX_NODES, Expr, Leaf, Scalar, View
from .product import PRODUCT, run

if TYPE_CHECKING:
    from ..runtime import Backend
    from ..storage import Storage


# The references (kind, index) that programs use (see `codegen.pointwise.Node`), made once: a kernel's key is hashed and
# compared at each launch, and identical objects compare faster.
_MOST = 64 * MAX_NODES
_LEAF_REFS = [("a", i) for i in range(_MOST)]
_SCALAR_REFS = [("k", i) for i in range(_MOST)]
_NODE_REFS = [("t", i) for i in range(_MOST)]
_new: Any = tuple.__new__  # makes a named tuple in half the time


# An output of a fusion: the reference of its node in the program, the expression that it computes, and the live storage
# that holds the expression, which will get the buffer.
Output = tuple[tuple[str, int], Expr, "Storage"]
"""What a kernel keeps: its reference, the expression, and who holds it."""


class Fusion:
    """Collects expressions over one iteration shape into a program and its arguments.

    keep_live: nodes that live storages hold become outputs. product: a pending product that may become the launch's
    main part, with the chain as its epilogue; all other products are run first.
    """

    __slots__ = (
        "exprs", "keep_live", "leaves", "left", "nodes", "outputs", "product", "product_leaf", "refs",
        "scalar_types", "scalars", "shape", "strided",
    )  # fmt: skip

    def __init__(
        self, shape: tuple[int, ...], *, keep_live: bool = True, product: Expr | None = None
    ) -> None:
        self.shape = shape
        self.keep_live = keep_live
        self.product = product
        # Stands for the product among the operands, if the chain reads it.
        self.product_leaf: Leaf | None = None
        # Id of an expression, or (id, View dims) -> its reference.
        self.refs: dict[Any, tuple[str, int]] = {}
        self.leaves: list[Leaf] = []
        self.strided = False  # whether any leaf has strides
        self.scalars: list[Any] = []
        self.scalar_types: list[dtype] = []
        self.nodes: list[Node] = []
        self.outputs: list[Output] = []
        # Nodes that live storages hold, and that are recomputed later instead of written.
        self.left: list[Expr] = []
        # The expression of each node; one seen through two Views comes twice.
        self.exprs: list[Expr] = []

    def visit(self, expr: Expr, dims: tuple[int, ...] | None = None) -> tuple[str, int]:
        """Add an expression, seen through View dims or as it is (None), and its operands; return its reference."""
        refs = self.refs
        key = id(expr) if dims is None else (id(expr), dims)
        ref = refs.get(key)
        if ref is not None:
            return ref
        if expr.value is not None or expr.op is PRODUCT:
            ref = refs[key] = self._memory(expr, dims)
            return ref
        args = []
        for a in expr.args:
            kind = a.__class__
            if kind is Expr:
                args.append((dims is None and refs.get(id(a))) or self.visit(a, dims))
            elif kind is Leaf:
                args.append(self.leaf(a, dims, expr.shape))
            elif kind is Scalar:
                args.append(_SCALAR_REFS[len(self.scalars)])
                self.scalars.append(a.value)
                self.scalar_types.append(expr.compute)
            elif a.dims is None:
                args.append(self.visit(a.expr, None))
            elif dims is None:
                args.append(self.visit(a.expr, a.dims))
            else:
                args.append(self.visit(a.expr, tuple(a.dims[d] if d >= 0 else -1 for d in dims)))
        ref = refs[key] = _NODE_REFS[len(self.nodes)]
        self.exprs.append(expr)
        self.nodes.append(_new(Node, (expr.op, expr.compute, expr.dtype, tuple(args))))
        if dims is None and self.keep_live and expr.cell is not None:
            storage = expr.live()
            if storage is not None:
                self.outputs.append((ref, expr, storage))
        return ref

    def _memory(self, expr: Expr, dims: tuple[int, ...] | None) -> tuple[str, int]:
        """Add an expression that is in memory; a pending product is run first, unless it is the fusion's own."""
        if expr.value is None:
            if expr is self.product and dims is None:
                return self._product(expr)
            run(expr)
        assert expr.value is not None
        return self.leaf(Leaf(expr.value, expr.dtype, None, 0), dims, expr.shape)

    def _product(self, expr: Expr) -> tuple[str, int]:
        """Add the product from which the chain starts, as an operand that has no memory yet."""
        ref = _LEAF_REFS[len(self.leaves)]
        self.product_leaf = Leaf(expr.args[0].buffer, expr.dtype, None, 0)
        self.leaves.append(self.product_leaf)
        storage = expr.live()
        if storage is not None:
            self.outputs.append((ref, expr, storage))
        return ref

    def closed(self) -> bool:
        """Return whether no expression outside the fusion reads a node that the fusion computes without keeping it."""
        live = {id(expr) for _, expr, _ in self.outputs}
        return all(id(e) in live for e in self.read_outside())

    def read_outside(self) -> list[Expr]:
        """Return the fusion's expressions, its product included, that expressions outside the fusion also have as
        operands.
        """
        inside = self.internal_users()
        every = self.exprs if self.product is None else [*self.exprs, self.product]
        return [e for e in every if e.users > inside.get(id(e), 0)]

    def leaf(
        self, leaf: Leaf, dims: tuple[int, ...] | None, shape: tuple[int, ...]
    ) -> tuple[str, int]:
        """Add an operand in memory, its layout changed by `dims`; return its reference.

        Equal operands are one argument.
        """
        if dims is not None:
            leaf = Leaf(leaf.buffer, leaf.dtype, seen(leaf.strides, shape, dims), leaf.offset)
        if leaf.strides is not None and len(leaf.strides) != len(self.shape):
            # A single number inside a reshaped expression: its strides are 0 in any shape.
            leaf = Leaf(leaf.buffer, leaf.dtype, (0,) * len(self.shape), leaf.offset)
        buffer, dt, strides, offset = leaf.buffer, leaf.dtype, leaf.strides, leaf.offset
        for ref, other in zip(_LEAF_REFS, self.leaves, strict=False):
            if (
                other.buffer is buffer
                and other.dtype is dt
                and other.offset == offset
                and other.strides == strides
                and other is not self.product_leaf  # a placeholder for a product not yet in memory
            ):
                return ref
        self.leaves.append(leaf)
        if strides is not None:
            self.strided = True
        return _LEAF_REFS[len(self.leaves) - 1]

    def stays_open(self) -> bool:
        """Return whether a node that the kernel does not write stays pending: one that expressions outside the fusion
        read, or that a live storage holds although the fusion only sees it through a View.
        """
        kept, inside = {id(expr) for _, expr, _ in self.outputs}, self.internal_users()
        return any(
            id(e) not in kept and (e.users > inside.get(id(e), 0) or e.live() is not None)
            for e in self.exprs
        )

    def internal_users(self) -> dict[int, int]:
        """Return how often each collected expression (by id) is an operand inside this fusion.

        A node collected in two Views counts once.
        """
        count: dict[int, int] = {}
        for e in {id(e): e for e in self.exprs}.values():
            for a in e.args:
                inner = a.expr if a.__class__ is View else a
                if inner.__class__ is Expr:
                    count[id(inner)] = count.get(id(inner), 0) + 1
        return count

    def only_reader(self, storage: Storage) -> bool:
        """Return whether a result may overwrite the storage's old buffer (`storage.home`): nothing but this fusion can
        still read it, and the fusion reads it densely.
        """
        home, mine = storage.home, set()
        size = storage.value.dtype.itemsize
        for e in self.exprs:
            for a in e.args:
                if a.__class__ is Leaf and a.buffer is home:
                    if a.strides is not None or a.offset or a.dtype.itemsize != size:
                        return False
                    mine.add(id(a))
        if any(
            leaf.buffer is home and leaf.strides is not None for leaf in self.leaves
        ) or storage.reads != len(mine):
            return False
        return self.closed()


def seen(
    strides: tuple[int, ...] | None, shape: tuple[int, ...], dims: tuple[int, ...]
) -> tuple[int, ...]:
    """Return an operand's strides as seen through a View's `dims`; `strides` None means dense in `shape`."""
    steps = layouts.contiguous_strides(shape) if strides is None else strides
    return tuple([steps[d] if d >= 0 else 0 for d in dims])


@remembered(4096)
def classify(
    shape: tuple[int, ...],
    operands: tuple[tuple[int, ...] | None, ...],
    outputs: tuple[tuple[int, ...] | None, ...],
) -> tuple:
    """Collapse all layouts together; return (rank, sizes, (class, strides) per leaf, (class, strides) per output).

    `operands` and `outputs` are strides over `shape`, None for dense. Rank 0 means that one linear index serves all of
    them. Classes are those of codegen/pointwise.py.
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


def arranged(
    backend: Backend,
    shape: tuple[int, ...],
    operands: tuple[tuple[int, ...] | None, ...],
    outputs: tuple[tuple[int, ...] | None, ...],
    nodes: Sequence[Node],
    stored: Iterable[dtype],
) -> tuple:
    """Return what `classify` returns, preceded by `narrow`: the length of rows so short that a kernel takes many at a
    time, else 0.
    """
    rank, sizes, leaves, results = classify(shape, operands, outputs)
    narrow = narrowed(sizes, nodes, stored, backend.info.lanes)
    if narrow:
        leaves, results = (
            tuple([(narrow_class(kind, strides, narrow), strides) for kind, strides in classes])
            for classes in (leaves, results)
        )
    return narrow, rank, sizes, leaves, results


def argument_bytes(fusion: Fusion) -> int:
    """Return an upper bound in bytes on a fused kernel's arguments."""
    rank = max(1, len(fusion.shape))
    strided = sum(leaf.strides is not None for leaf in fusion.leaves)
    return (
        16
        + 8 * rank
        + 16 * (len(fusion.leaves) + len(fusion.outputs))
        + 8 * rank * strided
        + 16 * len(fusion.scalars)
    )
