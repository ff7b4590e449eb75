"""From tensors to the dense-product kernels of `codegen.gemm`, and whether a product stays pending for its epilogue.

Knows nothing of gradients or of torch's checks, which are in products.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import dtypes, layouts, lazy
from ..autograd.mode import unrecorded
from ..codegen.operand import Operand
from ..codegen.products import gemm
from ..runtime import get_backend
from . import core
from .core import Tensor
from .replay import Replayed
from .values import check_value

# A product of at least this many multiply-adds may stay pending, to be fused with the pointwise chain that follows it.
WAITS = 1 << 22
# Bytes of operands that a pending product may keep alive; if four times its result's bytes are more, that many.
HELD = 1 << 24


def run(
    a: Tensor,
    b: Tensor,
    bias: Tensor | None = None,
    alpha: Any = 1,
    beta: Any = 1,
    *,
    waits: bool = True,
) -> Tensor:
    """Compute `alpha * (a @ b) + beta * bias` over equal batch dims, without a grad node.

    a is [..., M, K] and b is [..., K, N], of one dtype, with any strides; the bias broadcasts to [..., M, N]. `waits`:
    the product may stay pending, to be fused with what is computed from it.
    """
    dt = a.dtype
    if bias is None or beta == 0:
        bias, beta = None, 0
    if alpha != 1 or beta not in (0, 1):
        alpha, beta = check_value(alpha, dt), check_value(beta, dt)
        # With alpha 0 the factors are not read, as in BLAS: an infinity in them gives no NaN. An empty K does that.
        if alpha == 0:
            with unrecorded():
                a, b = a.narrow(-1, 0, 0), b.narrow(-2, 0, 0)
    if dt.category < 2:
        alpha, beta = int(alpha), int(beta)
    elif alpha.__class__ is complex or beta.__class__ is complex:
        return _complex_factors(run(a, b), bias, alpha, beta)
    operands = (a, b) if bias is None else (a, b, bias)
    if not waits or not _is_worth(a, b):
        return _product(operands, alpha, beta)[0]
    storages = tuple([x._storage for x in operands])
    factors = lazy.Factors(*_sides(operands), alpha, beta, storages)
    return core.pending(lazy.pending_product(factors), a.device)


@Replayed.of_memory
def _product(operands: Sequence[Tensor], alpha: Any, beta: Any) -> list[Tensor]:
    dev = operands[0].device
    a, b, bias = _sides(operands)
    return [
        core.result(gemm.matmul(get_backend(dev), a, b, alpha=alpha, beta=beta, bias=bias), dev)
    ]


def by_vector(a: Tensor, x: Tensor) -> Tensor:
    """Compute the product of a matrix [M, K] and a vector [K] of one dtype, without a grad node."""
    return _vector((a, x))[0]


@Replayed.of_memory
def _vector(operands: Sequence[Tensor]) -> list[Tensor]:
    dev = operands[0].device
    a, x = map(core.kernel_operand, operands)
    column = x._replace(shape=(*x.shape, 1), strides=(*x.strides, 1))
    made = gemm.matmul(get_backend(dev), a, column, alpha=1, beta=0, bias=None)
    return [core.result(made._replace(shape=made.shape[:1], strides=(1,)), dev)]


def _sides(operands: Sequence[Tensor]) -> tuple[Operand, Operand, Operand | None]:
    """Describe the memory of the two factors, and of the bias expanded to the product's shape (None without one)."""
    a, b = core.kernel_operand(operands[0]), core.kernel_operand(operands[1])
    if len(operands) == 2:
        return a, b, None
    bias = core.kernel_operand(operands[2])
    shape = (*a.shape[:-1], b.shape[-1])
    if bias.shape != shape:
        strides = layouts.expand_strides(bias.shape, bias.strides, shape)
        bias = Operand(bias.buffer, bias.dtype, shape, strides, bias.offset)
    return a, b, bias


def _is_worth(a: Tensor, b: Tensor) -> bool:
    """Return whether a product is worth fusing with what follows, without keeping much memory alive meanwhile."""
    if len(a.shape) != 2:
        return False
    (m, k), (_, n) = a.shape, b.shape
    if m * n * k < WAITS or min(m, n, k) < 2:
        return False
    known = a.dtype in (dtypes.float32, dtypes.float64)
    if not known and not gemm.takes_chains(get_backend(a.device), a.dtype):
        return False
    return (m * k + k * n) * a.dtype.itemsize <= max(4 * m * n * a.dtype.itemsize, HELD)


def _complex_factors(product: Tensor, bias: Tensor | None, alpha: Any, beta: Any) -> Tensor:
    with unrecorded():
        value = product * alpha
        return value if bias is None else value + bias.detach() * beta
