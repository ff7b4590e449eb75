"""Products of few rows with few columns over a long K on a CPU (templates/gemm/gram.mako, dots.mako).

For instance moments of many points, normal equations, gradients of a narrow layer's weights. Memory bandwidth bounds
them, as each number is used a few times only; gemm_cpu.py would pack all of both operands first, and most of its
register tile would be padding. Owns which products take this schedule and how K is divided among work-items. Knows
nothing of tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..memory import Memory
from ..source import render
from .product import LONG, PACE, SIDE, Product, built, ceil_div, in_pieces, tile, traffic

if TYPE_CHECKING:
    from ...dtypes import dtype
    from ...runtime import Backend

MOST = 16  # rows and columns of float32, at most; of float64 half as many
LEAST = 256  # length of K, at least
BLOCK = 512  # numbers of K per partial sum, which bounds the rounding error
PIECE = 2048  # numbers of K that make a work-item worth its start
TILE = 4  # rows and columns whose dot products are accumulated together
SUMS = 8  # independent accumulator vectors, at least: a multiply-add takes four cycles, and two issue per cycle


def takes(dt: dtype, p: Product) -> bool:
    """Return whether a product takes this schedule."""
    return (
        dt.name in ("float32", "float64")
        and p.outer * p.inner == 1
        and not p.kstep
        and p.k >= LEAST
        and min(p.m, p.n) > 1
        and max(p.m, p.n) <= 4 * MOST // dt.itemsize
    )


def run(backend: Backend, dt: dtype, p: Product) -> bool:
    """Run a product that `takes` accepted; False, with nothing done, if it has an epilogue: this takes two launches."""
    if p.epilogue is not None:
        return False
    q = min(p, p.transposed(), key=lambda each: _cost(dt, each))
    alone = q.k * _padded(q.m) * _padded(q.n) < PACE * backend.info.wake_us
    pieces = 1 if alone else max(1, min(q.k // PIECE, 4 * backend.info.compute_units))
    in_pieces(backend, dt, dt, q, ceil_div(q.k, pieces), lambda _, part: _run(backend, dt, part))
    return True


def _padded(n: int) -> int:
    return 4 if n <= 4 else 8 if n <= 8 else 16


def _cost(dt: dtype, p: Product) -> int:
    """Estimate the instructions per number of K: one or two multiply-adds per row, and packing a strided B."""
    wide = _padded(p.n) * dt.itemsize > 32
    return _padded(p.m) * (1 + wide) + (0 if p.b.col == 1 else 2 * p.n)


def _run(backend: Backend, dt: dtype, p: Product) -> None:
    along_k = p.a.col == p.b.row == 1
    rows, lanes = (TILE, tile(backend, dt.reg)[1]) if along_k else (_padded(p.m), _padded(p.n))

    def make() -> tuple[str, str, list[Any]]:
        name = f"gemm_{'dots' if along_k else 'gram'}_{dt.code}_{rows}x{lanes}"
        variables: dict[str, Any] = {"fn": name, "memory": Memory(dt, lanes)}
        if along_k:
            text = render("gemm/dots", T=rows, BLOCK=2 * BLOCK, MOST=MOST, **variables)
        else:
            sets = max(1, SUMS // rows)
            text = render("gemm/gram", R=rows, V=lanes, S=sets, BLOCK=BLOCK, **variables)
        return name, text, [*SIDE, *SIDE, *SIDE, *[LONG] * 5]

    kernel = built(backend, ("gram", dt, along_k, rows, lanes), make)
    piece = p.kstep or p.k
    args = (*p.a.args, *p.b.args, *p.out.args, p.m, p.n, p.k, piece, p.out.inner)
    backend.launch(kernel, (ceil_div(p.k, piece),), (1,), args, *traffic(dt, dt, p))
