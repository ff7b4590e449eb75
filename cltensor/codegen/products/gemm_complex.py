"""Complex matrix products as real ones: one operand is viewed as real, the other expanded to two real rows per row.

For A B, A is viewed as real rows (re, im, re, im, ...), and each row of B is expanded to a row (re, im, ...) and a row
(-im, re, ...), which templates/gemm/complex.mako writes. The real product then has the memory layout of the complex
result. Owns which operand is expanded, and what is copied for that.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...layouts import merge
from ..move.copies import copy_strided
from ..operand import Operand
from ..region import empty, index_type, is_gpu, run, workers
from .product import tile

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...runtime import Backend


def multiply(
    backend: Backend,
    a: Operand,
    b: Operand,
    out: Operand,
    alpha: float,
    beta: float,
    bias: Operand | None,
    conjugated: tuple[bool, bool],
    matmul: Callable[..., Operand],
) -> None:
    """Compute a complex product into `out`, with the arguments of gemm.matmul; `matmul` computes the real product."""
    if isinstance(alpha, complex) or isinstance(beta, complex):
        if complex(alpha).imag or complex(beta).imag:
            raise ValueError("matmul: alpha and beta of a complex product must be real")
        alpha, beta = complex(alpha).real, complex(beta).real
    turned = [_turned(x) for x in (b, a, out)]
    if _copied(*turned) < _copied(a, b, out):
        a, b, out = turned
        bias = None if bias is None else _turned(bias)
        conjugated = conjugated[::-1]
    made = out if _adjacent(out) else empty(backend, out.dtype, out.shape)
    if bias is not None and not _adjacent(bias):
        copy_strided(backend, bias, made)
        bias = made
    rows = a if _adjacent(a) else _dense(backend, a)
    matmul(
        backend,
        _real(rows),
        _longer(backend, b, conjugated),
        _real(made),
        alpha=alpha,
        beta=beta,
        bias=None if bias is None else _real(bias),
    )
    if made is not out:
        copy_strided(backend, made, out)


def _turned(x: Operand) -> Operand:
    (*batch, m, n), (*strides, row, column) = x.shape, x.strides
    return x._replace(shape=(*batch, n, m), strides=(*strides, column, row))


def _adjacent(x: Operand) -> bool:
    """Return whether the last dim has unit stride (or a single element)."""
    return x.strides[-1] == 1 or x.shape[-1] == 1


def _copied(a: Operand, b: Operand, out: Operand) -> int:
    """Estimate the memory traffic of the copies that the product takes when B is expanded, in complex numbers."""
    return (
        5 * _numbers(b)
        + (0 if _adjacent(a) else 3 * _numbers(a))
        + (0 if _adjacent(out) else 3 * _numbers(out))
    )


def _numbers(x: Operand) -> int:
    return math.prod(_own(x))


def _own(x: Operand) -> tuple[int, ...]:
    """Return the shape with broadcast batch dims (stride 0) reduced to 1."""
    leading = zip(x.shape[:-2], x.strides[:-2], strict=True)
    return (*[1 if s == 0 else n for n, s in leading], *x.shape[-2:])


def _dense(backend: Backend, x: Operand) -> Operand:
    own = x._replace(shape=_own(x))
    made = empty(backend, x.dtype, own.shape)
    copy_strided(backend, own, made)
    return _repeated(made, x.shape)


def _real(x: Operand) -> Operand:
    """View a complex [..., m, n] of unit last stride as real [..., m, 2 n]."""
    strides = (*[2 * s for s in x.strides[:-1]], 1)
    return Operand(
        x.buffer, x.dtype.to_real(), (*x.shape[:-1], 2 * x.shape[-1]), strides, 2 * x.offset
    )


def _longer(backend: Backend, b: Operand, conjugated: tuple[bool, bool]) -> Operand:
    """Expand complex [..., k, n] to real [..., 2 k, 2 n], stored by rows or columns, whichever has unit stride in `b`.

    `conjugated` is (the other operand, this one): the signs of what is written here conjugate either.
    """
    by_columns = b.strides[-2] == 1 and not (b.strides[-1] == 1 and b.shape[-1] > 1)
    x, shape = _turned(b) if by_columns else b, b.shape
    x = x._replace(shape=_own(x))
    *batch, m, n = x.shape
    sizes, (steps,) = merge(tuple(batch), (x.strides[:-2],))
    if len(sizes) > 1:
        made = empty(backend, x.dtype, x.shape)
        copy_strided(backend, x, made)
        x, sizes, steps = made, (math.prod(batch),), (m * n,)
    real, count, gpu = x.dtype.to_real(), math.prod(batch), is_gpu(backend)
    made = empty(backend, real, (*batch, 2 * m, 2 * n))
    if made.nbytes:
        other, own = ((-1 if c else 1) for c in conjugated)
        signs = (-other * own, own, other) if by_columns else (own, -own * other, other)
        run(
            backend,
            "gemm/complex",
            f"gemm_complex_{real.code}",
            [x.buffer, made.buffer],
            [count, m, n, x.offset, *(steps or (0,)), *x.strides[-2:], *signs],
            count * m * n if gpu else min(count * m, workers(backend, 8 * count * m * n)),
            3 * made.nbytes // 2,
            I=index_type(backend, x, made),
            T=real.cl,
            V=2 if gpu else tile(backend, real.reg)[1],
            size=real.itemsize,
            gpu=gpu,
        )
    return _repeated(_turned(made) if by_columns else made, shape)


def _repeated(x: Operand, shape: tuple[int, ...]) -> Operand:
    """Broadcast batch dims of size 1 to those of `shape` (stride 0)."""
    strides = [0 if n == 1 else s for n, s in zip(x.shape[:-2], x.strides[:-2], strict=True)]
    return x._replace(shape=(*shape[:-2], *x.shape[-2:]), strides=(*strides, *x.strides[-2:]))
