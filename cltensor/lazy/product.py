"""Matrix products that stay pending until a pointwise chain computed from them can become their epilogue.

Note [Products]. A product is an `Expr` whose op is `PRODUCT`: its operands are leaves, so that in-place writes to them
find it as a reader, and its last argument holds the `Factors`. It runs alone as soon as anything other than a pointwise
chain of its own shape needs it. A chain that is run with a product in it becomes that product's epilogue
(codegen/products/epilogue.py): one launch, whose results are bit-identical to those of two. The product itself is
written, too, if a live storage holds it or a pending expression still reads it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..codegen.operand import Operand
from ..codegen.pointwise import PointOp
from ..codegen.products import gemm
from .expression import HEAVY, PRODUCTS, UNKNOWN_READS, Expr, Leaf, Scalar, View

if TYPE_CHECKING:
    from ..runtime import Buffer
    from ..storage import Storage

PRODUCT = PointOp("product", "x")


class Factors(NamedTuple):
    """The product alpha * (a @ b) + beta * bias of two matrices, and the storages of its operands."""

    a: Operand
    b: Operand
    bias: Operand | None
    alpha: float
    beta: float
    # Of a, b and, if there is one, bias: their `reads` count the pending product.
    storages: tuple[Storage, ...]


def pending_product(factors: Factors) -> Expr:
    """Return a pending expression for a product; it counts as a reader of its operands' storages."""
    a, b, bias = factors[:3]
    leaves = []
    for operand, storage in zip((a, b, bias), factors.storages, strict=False):
        if operand is not None:
            leaves.append(Leaf(operand.buffer, operand.dtype, operand.strides, operand.offset))
            storage.reads += 1
    shape = (*a.shape[:-1], b.shape[-1])
    expr = Expr(PRODUCT, a.dtype, a.dtype, shape, (*leaves, Scalar(factors)))
    expr.flags = HEAVY | PRODUCTS
    return expr


def run(expr: Expr) -> Buffer:
    """Run a product alone and return its buffer, which the expression and the storage that holds it keep."""
    f: Factors = expr.args[-1].value
    backend = f.a.buffer.backend
    found = gemm.matmul(backend, f.a, f.b, alpha=f.alpha, beta=f.beta, bias=f.bias)
    storage = expr.live()
    if storage is not None:
        storage.value, storage.home = found.buffer, None
        storage.reads = UNKNOWN_READS if expr.users else 0
    forget(expr)
    expr.value = found.buffer
    return found.buffer


def forget(expr: Expr) -> None:
    """Drop the operands of a product that has run."""
    let_go(expr.args[-1].value)
    expr.args = ()


def let_go(factors: Factors) -> None:
    """Count a product's reads of its operands' storages as done."""
    for operand, storage in zip(factors[:3], factors.storages, strict=False):
        assert operand is not None
        if operand.buffer is storage.value or operand.buffer is storage.home:
            storage.reads = max(storage.reads - 1, 0)


def first_product(expr: Expr) -> Expr | None:
    """Return the pending product in an expression, of several the one with the largest K (the others run alone).

    None if there is none.
    """
    found: Expr | None = None
    most = 0
    todo, seen = [expr], set()
    while todo:
        e = todo.pop()
        if e.value is not None or id(e) in seen or not e.flags & PRODUCTS:
            continue
        seen.add(id(e))
        if e.op is PRODUCT:
            inner = e.args[-1].value.a.shape[1]
            if inner > most:
                found, most = e, inner
            continue
        for a in e.args:
            inner = a.expr if a.__class__ is View else a
            if inner.__class__ is Expr:
                todo.append(inner)
    return found
