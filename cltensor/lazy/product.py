"""Matrix products that wait for what is computed from them.

Note [Products]. A product is an `Expr` whose op is `PRODUCT`: its operands are leaves, so that writes in place find it, and
its last argument holds the `Factors`. It runs alone as soon as anything but a pointwise chain of its own shape wants it. A
chain that is run with a product in it becomes that product's epilogue (codegen/products/epilogue.py): one launch, whose results
have the bits that two would give. The product is stored too if somebody holds it or will read it later.
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
    """alpha * (a @ b) + beta * bias of two matrices, and the storages they were read from."""

    a: Operand
    b: Operand
    bias: Operand | None
    alpha: float
    beta: float
    storages: tuple[Storage, ...]


def pending_product(factors: Factors) -> Expr:
    """Make the pending expression of a product."""
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
    """Run a product by itself; its buffer stays with the expression and whoever holds it."""
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
    """Let go of a product's operands, which it has read."""
    let_go(expr.args[-1].value)
    expr.args = ()


def let_go(factors: Factors) -> None:
    """Count the reads of a product's operands as done."""
    for operand, storage in zip(factors[:3], factors.storages, strict=False):
        assert operand is not None
        if operand.buffer is storage.value or operand.buffer is storage.home:
            storage.reads = max(storage.reads - 1, 0)


def first_product(expr: Expr) -> Expr | None:
    """Find a product that an expression waits for, the one with most work of several; the others run alone."""
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
