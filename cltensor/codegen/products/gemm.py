"""The dense-product family: matrix-matrix, matrix-vector and dot products of strided operands.

Owns the public entries and the choice of schedule. A kernel's key is dtypes, how its operands are read (in place or packed)
and its epilogue, never a shape or a stride. Knows nothing of tensors, broadcasting rules or gradients: batch dims
arrive already equal (stride 0 where broadcast).

Schedules, for [M, K] @ [K, N]: "cpu" (gemm_cpu.py: a work-item is a thread), "gpu" (gemm_lanes.py: a work-item is a
lane). Special cases on a CPU:
- batches of small matrices: gemm_small.py
- many rows, few columns (tall and narrow): gemm_tall.py; long rows times a few vectors: gemm_few.py
- few rows and few columns over a long K: gemm_gram.py
- bfloat16, where the processor has AMX tiles: gemm_amx.py
- one row or one column, where the matrix has a dim of unit stride: gemv.py; many short rows by a vector: gemv_short.py
Special cases on a GPU:
- short K: gemm_tiny.py
- one row or one column: gemv_lanes.py
- few rows or columns, or too small to fill the device: gemm_sliced.py
- 16-bit floats, and float64 that fills the device, where it has matrix units that are supported: gemm_mma.py
Complex products become real ones (gemm_complex.py).
"""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING

from ... import dtypes
from ...layouts import collapse, contiguous_strides, numel
from ..operand import Operand
from . import (
    gemm_amx,
    gemm_complex,
    gemm_cpu,
    gemm_few,
    gemm_gram,
    gemm_lanes,
    gemm_mma,
    gemm_sliced,
    gemm_small,
    gemm_tall,
    gemm_tiny,
    gemv,
    gemv_lanes,
    gemv_short,
)
from .product import Product, Side

if TYPE_CHECKING:
    from ...dtypes import dtype
    from ...runtime import Backend
    from .epilogue import Epilogue


def matmul(
    backend: Backend,
    a: Operand,
    b: Operand,
    out: Operand | None = None,
    *,
    alpha: float = 1,
    beta: float = 0,
    bias: Operand | None = None,
    conjugated: tuple[bool, bool] = (False, False),
    schedule: str | None = None,
) -> Operand:
    """Compute beta * bias + alpha * (a @ b) and return the operand that holds the result: `out`, or a new dense one.

    a is [..., M, K], b [..., K, N], bias and out [..., M, N], with equal batch dims and any strides. All have one dtype
    (not bool), except that out and bias may have the dtype sums are accumulated in. `out` may be `bias` but must
    not overlap a or b. beta == 0 ignores bias, even where it is nan. K == 0 gives beta * bias. For complex
    types alpha and beta must be real (else ValueError); `conjugated` says whether a, and whether b, is conjugated.
    `schedule` is "cpu" or "gpu"; by default the device decides.
    """
    m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
    batch = a.shape[:-2]
    assert b.shape == (*batch, k, n), f"matmul: {a.shape} @ {b.shape}"
    assert a.dtype is b.dtype
    assert a.dtype is not dtypes.bool
    if out is None:
        shape = (*batch, m, n)
        out = Operand(
            backend.alloc(numel(shape) * a.dtype.itemsize),
            a.dtype,
            shape,
            contiguous_strides(shape),
        )
    if not numel(out.shape):
        return out
    if beta == 0:
        bias = None
    if a.dtype.is_complex:
        multiply = functools.partial(matmul, schedule=schedule)
        gemm_complex.multiply(backend, a, b, out, alpha, beta, bias, conjugated, multiply)
        return out
    sides = [a, b, out] if bias is None else [a, b, out, bias]
    if not batch:
        p = _product(sides, [0] * 4, (), [()] * 4, m, n, k, alpha, beta)
        _run(backend, a.dtype, p, schedule, out.dtype)
        return out
    dims, strides = collapse(batch, [s.strides[:-2] for s in sides])
    # One launch covers two batch dims; each index of any further dims, which are rare, is a launch of its own.
    for index in itertools.product(*map(range, dims[:-2])):
        moved = [
            sum(i * s for i, s in zip(index, strides[n], strict=False)) for n in range(len(sides))
        ]
        steps = [s[-2:] for s in strides]
        p = _product(sides, moved, dims[-2:], steps, m, n, k, alpha, beta)
        _run(backend, a.dtype, p, schedule, out.dtype)
    return out


def fused(
    backend: Backend,
    a: Operand,
    b: Operand,
    epilogue: Epilogue,
    *,
    alpha: float = 1,
    beta: float = 0,
    bias: Operand | None = None,
    schedule: str | None = None,
) -> bool:
    """Compute a product of two matrices and store the outputs of `epilogue` in its place; return whether that was done.

    Operands as for `matmul`, float32 or float64, or float16 and bfloat16 where a GPU's matrix units multiply them. The
    chain sees the same bits as `matmul` would store. False, with nothing done, where the product takes more than one
    launch or the chain does not fit its kernel.
    """
    (m, k), n = a.shape, b.shape[1]
    dense = Operand(a.buffer, a.dtype, (m, n), (n, 1))
    sides = [a, b, dense] if bias is None or beta == 0 else [a, b, dense, bias]
    p = _product(sides, [0] * 4, (), [()] * 4, m, n, k, alpha, beta)
    if min(m, n, k) < 2 or not takes_chains(backend, a.dtype, schedule):
        return False
    if a.dtype.itemsize == 2 and not gemm_mma.takes(backend, a.dtype, p):
        return False
    return _run(backend, a.dtype, p._replace(epilogue=epilogue), schedule)


def takes_chains(backend: Backend, dt: dtype, schedule: str | None = None) -> bool:
    """Return whether products of this dtype have kernels that can run an epilogue (see `fused`)."""
    if dt.name in ("float32", "float64"):
        return True
    cpu = schedule == "cpu" if schedule else backend.info.kind == "cpu"
    return not cpu and dt.category == 2 and dt.itemsize == 2 and gemm_mma.multiplies(backend)


def matvec(
    backend: Backend,
    a: Operand,
    x: Operand,
    out: Operand | None = None,
    *,
    schedule: str | None = None,
) -> Operand:
    """Compute a @ x, a [..., M, K] and x [..., K]; else as `matmul`."""
    if out is None:
        shape = a.shape[:-1]
        out = Operand(
            backend.alloc(numel(shape) * a.dtype.itemsize),
            a.dtype,
            shape,
            contiguous_strides(shape),
        )

    def column(v: Operand) -> Operand:
        return v._replace(shape=(*v.shape, 1), strides=(*v.strides, 1))

    matmul(backend, a, column(x), column(out), schedule=schedule)
    return out


def dot(
    backend: Backend,
    a: Operand,
    b: Operand,
    out: Operand | None = None,
    *,
    schedule: str | None = None,
) -> Operand:
    """Compute the sum of a * b over the last dim of a and b [..., K], without conjugation."""
    row = a._replace(
        shape=(*a.shape[:-1], 1, a.shape[-1]), strides=(*a.strides[:-1], 0, a.strides[-1])
    )
    if out is not None:
        out = out._replace(shape=(*out.shape, 1), strides=(*out.strides, 1))
    done = matvec(backend, row, b, out, schedule=schedule)
    return done._replace(shape=done.shape[:-1], strides=done.strides[:-1])


def _product(
    sides: list[Operand],
    moved: list[int],
    dims: tuple[int, ...],
    strides: list[tuple[int, ...]],
    m: int,
    n: int,
    k: int,
    alpha: float,
    beta: float,
) -> Product:
    pad = (0, 0)[: 2 - len(dims)]
    made = [
        Side(s.buffer, s.offset + add, s.strides[-2], s.strides[-1], *pad, *st)
        for s, add, st in zip(sides, moved, strides, strict=False)
    ]
    outer, inner = (1, 1)[: 2 - len(dims)] + tuple(dims)
    return Product(
        made[0],
        made[1],
        made[2],
        made[3] if len(made) > 3 else None,
        m,
        n,
        k,
        outer,
        inner,
        alpha,
        beta,
    )


def _run(
    backend: Backend, dt: dtype, p: Product, schedule: str | None, out: dtype | None = None
) -> bool:
    if p.k == 0:
        p = p._replace(alpha=0)
    cpu = schedule == "cpu" if schedule else backend.info.kind == "cpu"
    if cpu and gemm_amx.takes(backend, dt, p):
        gemm_amx.run(backend, out or dt, p)
        return True
    if not cpu:
        return _run_lanes(backend, dt, out or dt, p)
    if out is not None and out is not dt:
        return gemm_cpu.run(backend, dt, out, p)
    if gemm_small.takes(backend, dt, p):
        gemm_small.run(backend, dt, p)
        return True
    if gemm_tall.takes(dt, p):
        return gemm_tall.run(backend, dt, p)
    if gemm_gram.takes(dt, p):
        return gemm_gram.run(backend, dt, p)
    if (short := gemv_short.chosen(backend, dt, p)) is not None:
        gemv_short.run(backend, dt, short)
        return True
    if (few := gemm_few.chosen(dt, p)) is not None:
        return gemm_few.run(backend, dt, few)
    if p.m == p.n == 1 and p.k >= gemv.COPIED and p.epilogue is None:
        p = gemv.dense_vectors(backend, dt, p)
    if (one := gemv.chosen(p)) is not None:
        if p.epilogue is None:
            gemv.run(backend, dt, one)
        return p.epilogue is None
    return gemm_cpu.run(backend, dt, dt, p)


# ---- work-items as lanes


def _run_lanes(backend: Backend, dt: dtype, out_dt: dtype, p: Product) -> bool:
    if gemm_tiny.takes(p):
        return gemm_tiny.run(backend, dt, out_dt, p)
    if min(p.m, p.n) == 1:
        if p.epilogue is None:
            gemv_lanes.run(backend, dt, p, out_dt)
        return p.epilogue is None
    if gemm_mma.takes(backend, dt, p):
        return gemm_mma.run(backend, dt, out_dt, p)
    plan = gemm_lanes.chosen(backend, dt, p)
    if plan is None and (small := gemm_sliced.chosen(backend, dt, p)) is not None:
        return gemm_sliced.run(backend, dt, out_dt, small)
    plan = plan or gemm_lanes.Plan(gemm_lanes.plain(backend, dt))
    return gemm_lanes.run(backend, dt, out_dt, p, plan)
