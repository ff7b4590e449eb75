"""The dense-product family: matrix-matrix, matrix-vector and dot products of strided operands.

Owns the public entries, the choice of schedule and blocking, and the matrix-matrix launches. A
kernel's key is dtypes and how its operands are read (in place or packed), never a shape or a
stride. Knows nothing of tensors, broadcasting rules or gradients: batch dims arrive already equal
(stride 0 where broadcast).

Schedules: "cpu" (templates/gemm_cpu.mako: a work-item is a thread), "gpu" (templates/gemm_gpu.mako:
a work-item is a lane). Products with one row or one column go to gemv.py when the matrix has an
adjacent dim.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import dtypes
from ..layouts import collapse, contiguous_strides, numel
from . import gemv
from .operand import Operand
from .product import (
    LONG,
    SCALARS,
    Product,
    Side,
    access_variables,
    accumulator,
    built,
    ceil_div,
    in_pieces,
    number,
    spread_args,
    tile,
)
from .source import render

if TYPE_CHECKING:
    from ..dtypes import dtype
    from ..runtime import Backend, Kernel

PACK_BYTES = 256 * 1024  # local memory for packed columns, at most; stays in a core's cache
K_ROOM = 512  # the longest block of K while rows are packed
TASK_WORK = 1 << 18  # multiply-adds that make a work-item worth its start
PIECE = 1024  # the shortest piece of K worth a second pass

_SIDES = [None, LONG, LONG, LONG] * 4


def matmul(
    backend: Backend,
    a: Operand,
    b: Operand,
    out: Operand | None = None,
    *,
    alpha: float = 1,
    beta: float = 0,
    bias: Operand | None = None,
    schedule: str | None = None,
) -> Operand:
    """Compute beta * bias + alpha * (a @ b) and return where it lies.

    a is [..., M, K], b [..., K, N], bias and out [..., M, N] with equal batch dims, any strides,
    one dtype (not bool). Without `out` the result is dense and new; `out` may be `bias` but must
    not overlap a or b. beta == 0 ignores bias, nan and all. K == 0 gives beta * bias. For complex
    types alpha and beta are real (ValueError).
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
        _complex(backend, a, b, out, alpha, beta, bias, schedule)
        return out
    sides = [a, b, out] if bias is None else [a, b, out, bias]
    if not batch:
        _run(
            backend, a.dtype, _product(sides, [0] * 4, (), [()] * 4, m, n, k, alpha, beta), schedule
        )
        return out
    dims, strides = collapse(batch, [s.strides[:-2] for s in sides])
    # Two batch dims go into one launch; what is left over (rare) is a launch each.
    for index in itertools.product(*map(range, dims[:-2])):
        moved = [
            sum(i * s for i, s in zip(index, strides[n], strict=False)) for n in range(len(sides))
        ]
        _run(
            backend,
            a.dtype,
            _product(sides, moved, dims[-2:], [s[-2:] for s in strides], m, n, k, alpha, beta),
            schedule,
        )
    return out


def matvec(
    backend: Backend,
    a: Operand,
    x: Operand,
    out: Operand | None = None,
    *,
    alpha: float = 1,
    beta: float = 0,
    bias: Operand | None = None,
    schedule: str | None = None,
) -> Operand:
    """Compute beta * bias + alpha * (a @ x), a [..., M, K] and x [..., K]; else as `matmul`."""
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

    matmul(
        backend,
        a,
        column(x),
        column(out),
        alpha=alpha,
        beta=beta,
        schedule=schedule,
        bias=None if bias is None else column(bias),
    )
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
    made = [
        Side(
            s.buffer,
            s.offset + add,
            s.strides[-2],
            s.strides[-1],
            *((0, 0)[: 2 - len(dims)] + tuple(st)),
        )
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


def _complex(
    backend: Backend,
    a: Operand,
    b: Operand,
    out: Operand,
    alpha: float,
    beta: float,
    bias: Operand | None,
    schedule: str | None,
) -> None:
    """Four real products over the components, which lie at twice the stride."""
    if isinstance(alpha, complex) or isinstance(beta, complex):
        if complex(alpha).imag or complex(beta).imag:
            raise ValueError("matmul: alpha and beta of a complex product must be real")
        alpha, beta = complex(alpha).real, complex(beta).real
    real = a.dtype.to_real()

    def part(v: Operand, which: int) -> Operand:
        return Operand(
            v.buffer, real, v.shape, tuple(2 * s for s in v.strides), 2 * v.offset + which
        )

    for which, (first, second, sign) in enumerate((((0, 0), (1, 1), -1), ((0, 1), (1, 0), 1))):
        c = part(out, which)
        d = part(bias, which) if bias is not None else None
        (i, j), (k, m) = first, second
        matmul(
            backend, part(a, i), part(b, j), c, alpha=alpha, beta=beta, bias=d, schedule=schedule
        )
        matmul(
            backend,
            part(a, k),
            part(b, m),
            c,
            alpha=sign * alpha,
            beta=1,
            bias=c,
            schedule=schedule,
        )


def _run(backend: Backend, dt: dtype, p: Product, schedule: str | None) -> None:
    if p.k == 0:
        p = p._replace(alpha=0)
    cpu = schedule == "cpu" if schedule else backend.info.kind == "cpu"
    if p.m == 1 or p.n == 1:
        q = p if p.n == 1 else p.transposed()
        if gemv.takes(q, cpu):
            gemv.run(backend, dt, q, cpu)
            return
    (_run_cpu if cpu else _run_gpu)(backend, dt, dt, p)


# ---- work-items as lanes


def _gpu_kernel(backend: Backend, dt: dtype, out: dtype) -> tuple[Kernel, int]:
    group = 16 if backend.info.max_group >= 256 else 8
    acc = accumulator(dt)

    def make() -> tuple[str, str, list[Any]]:
        name = f"gemm_gpu_{dt.code}_{out.code}"
        source = render("gemm_gpu", fn=name, G=group, W=4, BK=16, **access_variables(dt, out, 8))
        return name, source, [*_SIDES, np.int32, SCALARS[acc], SCALARS[acc], *[LONG] * 14]

    return built(backend, ("gpu", dt, out), make), group


def _run_gpu(backend: Backend, dt: dtype, out_dt: dtype, p: Product) -> None:
    kernel, group = _gpu_kernel(backend, dt, out_dt)
    rows, cols = ceil_div(p.m, 4 * group), ceil_div(p.n, 4 * group)
    batches = p.outer * p.inner
    # Too few groups to fill the device over a long K: cut K.
    room = 2 * backend.info.compute_units // (rows * cols * batches)
    if p.kstep == 0 and p.inner == 1 and room > 1 and p.k >= 2 * PIECE:
        pieces = min(room, p.k // PIECE)
        in_pieces(
            backend,
            dt,
            out_dt,
            p,
            ceil_div(p.k, pieces),
            lambda wide, q: _run_gpu(backend, dt, wide, q),
        )
        return
    acc = accumulator(dt)
    args = (*_side_args(p, acc), p.m, p.n, p.k, batches, p.inner, p.kstep, *spread_args(p))
    # Some devices allow 65535 groups in the third dim; the kernel walks on through it.
    backend.launch(
        kernel, (rows * group, cols * group, min(batches, 65535)), (group, group, 1), args
    )


def _side_args(p: Product, acc: str) -> tuple[Any, ...]:
    a, b, c, d = p.a, p.b, p.out, p.bias or p.out
    return (
        a.buffer,
        a.offset,
        a.row,
        a.col,
        b.buffer,
        b.offset,
        b.row,
        b.col,
        c.buffer,
        c.offset,
        c.row,
        c.col,
        d.buffer,
        d.offset,
        d.row,
        d.col,
        int(p.bias is not None),
        number(acc, p.alpha),
        number(acc, p.beta),
    )


# ---- work-items as threads


class _Plan(NamedTuple):
    """How one product runs on a CPU; a function of sizes and strides only."""

    transposed: bool
    pack_a: bool
    pack_b: bool
    grid: tuple[int, int, int]
    bm: int
    bn: int
    kc: int
    per: int


_plans: dict[tuple[Any, ...], tuple[_Plan, Kernel]] = {}


def _pack_room(backend: Backend, acc: str) -> int:
    """Return how many packed numbers of b local memory takes beside packed rows and the tile."""
    size = 8 if acc in ("double", "ulong") else 4
    return min(PACK_BYTES, max(backend.info.local_mem // 2, 8192)) // size


def _k_room(backend: Backend) -> int:
    return K_ROOM if backend.info.local_mem >= 1 << 16 else 64


def _cpu_kernel(backend: Backend, dt: dtype, out: dtype, pack_a: bool, pack_b: bool) -> Kernel:
    def make() -> tuple[str, str, list[Any]]:
        acc = accumulator(dt)
        name = f"gemm_{dt.code}_{out.code}_{'p' if pack_a else 'd'}{'p' if pack_b else 'd'}"
        rows, lanes = tile(backend, acc)
        source = render(
            "gemm_cpu",
            fn=name,
            pack_a=pack_a,
            pack_b=pack_b,
            MR=rows,
            NV=2,
            b_room=_pack_room(backend, acc),
            k_room=_k_room(backend),
            **access_variables(dt, out, lanes),
        )
        return name, source, [*_SIDES, np.int32, SCALARS[acc], SCALARS[acc], *[LONG] * 18]

    return built(backend, ("cpu", dt, out, pack_a, pack_b), make)


def _cost(p: Product, mr: int, lanes: int, narrow: bool) -> tuple[float, bool, bool]:
    """Estimate the vector instructions of a product as written, and whether to pack a and b."""
    nr = 2 * lanes
    rows, cols = ceil_div(p.m, mr), ceil_div(p.n, nr)
    work: float = rows * mr * cols * 2 * p.k
    store = p.m * p.n * (2 / lanes if p.out.col == 1 else 2)
    pack_b = narrow or p.b.col != 1 or p.n < nr or (p.m > 8 * mr and p.k * p.n > 1 << 14)
    pack_a = narrow or p.m < mr or (p.a.col != 1 and p.k > 128)
    if pack_b:
        work += p.k * cols * nr / (lanes if p.b.col == 1 else 4 if p.b.row == 1 else 0.7)
    return work + store, pack_a, pack_b


def _plan(backend: Backend, dt: dtype, p: Product) -> _Plan:
    """Choose how the product is written, what is packed and how it is cut into work-items."""
    acc = accumulator(dt)
    mr, lanes = tile(backend, acc)
    nr = 2 * lanes
    narrow = dt.itemsize < 4  # converted once, while packing, rather than at every use
    chosen, turned = _cost(p, mr, lanes, narrow), p.transposed()
    other = _cost(turned, mr, lanes, narrow)
    transposed = other[0] < 0.9 * chosen[0]
    if transposed:
        p, chosen = turned, other
    _, pack_a, pack_b = chosen
    rows, cols = ceil_div(p.m, mr), ceil_div(p.n, nr)
    batches = p.outer * p.inner
    # Enough work-items to keep every core busy, none too small to be worth its start.
    room = _pack_room(backend, acc)
    length = max(p.kstep or p.k, 1)
    wanted = min(max(p.m * p.n * length * batches // TASK_WORK, 1), 4 * backend.info.compute_units)
    kc = length
    if pack_a:
        kc = ceil_div(kc, ceil_div(kc, _k_room(backend)))
    bn, bm = min(cols, max(256 // nr, 1)), min(rows, 512 // mr)

    def tasks() -> int:
        return ceil_div(cols, bn) * ceil_div(rows, bm) * batches

    if pack_b:  # columns are packed once per block of rows: rather cut columns
        while bn > 1 and bn * nr * min(kc, 256) > room:
            bn = (bn + 1) // 2
        while bn > 2 and tasks() < wanted:
            bn = (bn + 1) // 2
        kc = ceil_div(kc, ceil_div(kc, room // (bn * nr)))
    while tasks() < wanted and (bn > 1 or bm > 1):
        if bm > 1 and (pack_b or bm > bn):
            bm = (bm + 1) // 2
        elif bn > 1:
            bn = (bn + 1) // 2
        else:
            bm = (bm + 1) // 2
    per = max(1, batches // max(wanted, 1)) if tasks() == batches else 1
    grid = (ceil_div(cols, bn), ceil_div(rows, bm), ceil_div(batches, per))
    return _Plan(transposed, pack_a, pack_b, grid, bm * mr, bn * nr, kc, per)


def _run_cpu(backend: Backend, dt: dtype, out_dt: dtype, p: Product) -> None:
    a, b, c = p.a, p.b, p.out
    key = (
        backend,
        dt,
        out_dt,
        p.m,
        p.n,
        p.k,
        p.outer,
        p.inner,
        p.kstep,
        a.row,
        a.col,
        b.row,
        b.col,
        c.row,
        c.col,
    )
    found = _plans.get(key)
    if found is None:
        plan = _plan(backend, dt, p)
        found = plan, _cpu_kernel(backend, dt, out_dt, plan.pack_a, plan.pack_b)
        if len(_plans) > 8192:
            _plans.clear()
        _plans[key] = found
    plan, kernel = found
    if p.kstep == 0:

        def run(wide: dtype, q: Product) -> None:
            _run_cpu(backend, dt, wide, q)

        if p.inner == 1 and p.k >= 2 * PIECE:
            missing = backend.info.compute_units // (plan.grid[0] * plan.grid[1] * plan.grid[2])
            if missing > 1:
                in_pieces(
                    backend, dt, out_dt, p, ceil_div(p.k, min(missing * 2, p.k // PIECE)), run
                )
                return
        # Sums between blocks of K must not be rounded to 16 bits.
        if plan.kc < p.k and out_dt.itemsize == 2 and out_dt.is_floating_point:
            in_pieces(backend, dt, out_dt, p, p.k, run)
            return
    if plan.transposed:
        p = p.transposed()
    args = (
        *_side_args(p, accumulator(dt)),
        p.m,
        p.n,
        p.k,
        plan.bm,
        plan.bn,
        plan.kc,
        p.outer * p.inner,
        plan.per,
        p.inner,
        p.kstep,
        *spread_args(p),
    )
    backend.launch(kernel, plan.grid, (1, 1, 1), args)
