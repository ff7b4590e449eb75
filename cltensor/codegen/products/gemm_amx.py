"""Products of bfloat16 matrices with Intel's AMX tile instructions, on a CPU that has them (templates/gemm/amx.mako).

Owns which products take this schedule, how they are divided into work-items, and the launches. Knows nothing of
tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ... import dtypes
from ...errors import BuildError, debug_line
from ...runtime import amx
from ..source import include, render
from .product import (
    LONG,
    SIDE,
    SIDES,
    Product,
    Side,
    access_variables,
    built,
    ceil_div,
    ending_types,
    headers,
    in_pieces,
    side_args,
    spread_args,
    traffic,
)

if TYPE_CHECKING:
    from ...dtypes import dtype
    from ...runtime import Backend, Kernel

TILE = 32  # rows and columns of a tile of sums, and the K that one step adds to it
LEAST = 16  # rows and columns, at least: below that the tile is mostly zero padding
ROOM = 512 * 1024  # elements of B packed at a time: half of a core's own cache
# NEAR: elements of B packed at a time if a work-item has at most FEW tiles of rows.
NEAR, FEW = 64 * 1024, 4
LOCAL = 3 << 19  # bytes of local memory needed for ROOM and a strip of A
SPAN = 4096  # the longest block of K
PACE = 500_000  # multiply-adds per microsecond of one thread, at most
PIECE = 2048  # the shortest piece of K for which split-K is worth its second pass
# Elements from which on A is packed once up front, rather than again for each block of columns.
COPIED = 1 << 16
SHARE = 1 << 15  # elements of A that a work-item of that packing copies, at least
TWIN = 0  # not 0: use the emulation of tiles in plain OpenCL C, on any device; slow, for tests

_PROBE = """
__kernel void cltensor_probe_tiles(__global float *out, __global const int *in) {
  __local float sums[1024];
  clt_tiles_begin();
  clt_sums_begin(CLT_PLACE(sums), 128);
  clt_sums_add(CLT_PLACE(sums), 128, CLT_PLACE(in), 64, CLT_PLACE(in));
  clt_sums_end(CLT_PLACE(sums), 128);
  clt_tiles_end();
  out[0] = sums[1023];
}
"""
_found: dict[Backend, bool] = {}


def has_tiles(backend: Backend) -> bool:
    """Return whether kernels can use AMX tiles: checks processor, operating system and the driver's compiler."""
    found = _found.get(backend)
    if found is None:
        info = backend.info
        able = info.takes_assembly and info.local_mem >= LOCAL and amx.allowed()
        found = _found[backend] = able and _probe(backend)
    return found


def _probe(backend: Backend) -> bool:
    out, pairs = backend.alloc(4), backend.alloc(2048)
    try:
        kernel = backend.kernel("cltensor_probe_tiles", include("amx") + _PROBE, [None, None])
    except BuildError as error:
        debug_line(1, "no products of tiles: %s", error)
        return False
    backend.write(pairs, 0, np.full(512, 0x40003FC0, np.uint32))  # 1.5 and 2
    backend.launch(kernel, (1,), (1,), (out, pairs))
    return float(backend.read(out, 0, 4).view(np.float32)[0]) == 16 * (2.25 + 4)


def multiplies(backend: Backend) -> bool:
    """Return whether this backend multiplies bfloat16 matrices by tiles, real or emulated."""
    return bool(TWIN) or has_tiles(backend)


def instructions() -> str:
    """Return the source of the tile operations: the processor's instructions, or their emulation where TWIN is set."""
    return include("amx_twin" if TWIN else "amx")


def takes(backend: Backend, dt: dtype, p: Product) -> bool:
    """Return whether a product takes this schedule."""
    large = min(p.m, p.n) >= LEAST and p.k >= TILE
    return large and dt is dtypes.bfloat16 and p.epilogue is None and multiplies(backend)


class _Plan(NamedTuple):
    """How one product is divided into work-items."""

    transposed: bool  # out^T = b^T a^T is computed; all other fields describe that product
    copied: bool  # A is packed to contiguous rows by a launch of its own first
    grid: tuple[int, int, int]  # blocks of columns, blocks of rows, groups of matrices
    blocks: tuple[int, int, int, int, int]  # the template's BM, BN, GN, KC; matrices per work-item
    piece: int  # not 0: split-K, over pieces of K of this length


def _cost(p: Product) -> float:
    """Estimate the cycles for packing and storing in this orientation; the tiles' are the same when transposed."""
    stored = 0 if p.out.col == 1 else 2 * p.m * p.n
    rows = 0.0 if p.a.col == 1 and p.m >= TILE else 0.2 if 1 in (p.a.row, p.a.col) else 2
    columns = 0.15 if p.b.col == 1 else 0.2 if p.b.row == 1 else 2
    return stored + p.k * (p.m * rows + p.n * columns)


def _plan(backend: Backend, out_dt: dtype, p: Product) -> _Plan:
    """Choose the product's orientation (itself or transposed) and how it is divided into work-items."""
    turned = p.transposed()
    transposed = _cost(turned) < 0.9 * _cost(p)
    if transposed:
        p = turned
    rows, cols = ceil_div(p.m, TILE), ceil_div(p.n, TILE)
    batches, length = p.outer * p.inner, max(p.kstep or p.k, 1)
    kc = TILE * ceil_div(length, TILE * ceil_div(length, SPAN))
    units = backend.info.compute_units
    alone = p.m * p.n * length * batches < PACE * backend.info.wake_us
    # Divide columns before rows: every further block of rows packs all of its columns again.
    wanted = 1 if alone else 2 * units if batches == 1 else units
    across = ceil_div(cols, min(ceil_div(wanted, batches), cols))
    panels = ceil_div(cols, across)
    down = ceil_div(rows, min(ceil_div(wanted, panels * batches), rows))
    blocks = ceil_div(rows, down)
    per = max(1, batches // wanted) if panels * blocks == 1 else 1
    group = min(max((NEAR if down <= FEW else ROOM) // (kc * TILE), 1), across)
    piece = 0
    if not p.kstep:
        missing = units // (panels * blocks * batches)
        if p.inner == 1 and missing > 1 and not alone and p.k >= 2 * PIECE:
            piece = ceil_div(p.k, min(missing, p.k // PIECE))
        elif kc < p.k and out_dt.itemsize == 2:
            piece = p.k  # partial sums of one block of K must not be rounded to 16 bits before the next is added
    again = ceil_div(cols, group) > 1 and not (piece or p.kstep)
    copied = again and p.a.col != 1 and p.m * p.k * batches >= COPIED
    sizes = down * TILE, across * TILE, group * TILE, kc, per
    return _Plan(transposed, copied, (panels, blocks, ceil_div(batches, per)), sizes, piece)


def _kernel(backend: Backend, out_dt: dtype) -> Kernel:
    def make() -> tuple[str, str, list[Any]]:
        name = f"gemm_amx_{'twin_' if TWIN else ''}{out_dt.code}"
        source = render(
            "gemm/amx",
            fn=name,
            room=ROOM,
            span=SPAN,
            tiles=instructions(),
            direct=not TWIN,
            **access_variables(dtypes.bfloat16, out_dt, 16),
        )
        return name, source, [*SIDES, *ending_types("float"), *[LONG] * 19]

    return built(backend, ("amx", out_dt, TWIN, ROOM, SPAN), make)


def _rows(backend: Backend, p: Product) -> Side:
    """Pack the left operand: return a copy whose rows are contiguous in bfloat16."""
    a, outer, inner = p.a, p.outer if p.a.outer else 1, p.inner if p.a.inner else 1
    strips, pitch = ceil_div(p.m, TILE), TILE * (ceil_div(p.k, TILE) + 1)
    matrix = strips * TILE * pitch
    copied = backend.alloc(outer * inner * matrix * 2)

    def make() -> tuple[str, str, list[Any]]:
        texts = headers((), 16)
        source = render("gemm/amx_rows", fn="gemm_amx_rows", headers=texts)
        return "gemm_amx_rows", source, [*SIDE, None, *[LONG] * 7]

    tasks = min(strips, ceil_div(p.m * p.k, SHARE), 2 * backend.info.compute_units)
    block = TILE * ceil_div(strips, tasks)
    backend.launch(
        built(backend, ("amx rows",), make),
        (ceil_div(p.m, block), outer * inner, 1),
        (1, 1, 1),
        (*a.args, copied, p.m, p.k, pitch, block, inner, a.outer, a.inner),
        4 * outer * inner * p.m * p.k,
    )
    return Side(copied, 0, pitch, 1, inner * matrix if a.outer else 0, matrix if a.inner else 0)


def run(backend: Backend, out_dt: dtype, p: Product) -> None:
    """Run a product of bfloat16 matrices and store results of dtype `out_dt`."""
    plan = _plan(backend, out_dt, p)
    if plan.piece:
        in_pieces(
            backend, dtypes.bfloat16, out_dt, p, plan.piece, lambda wide, q: run(backend, wide, q)
        )
        return
    cost = traffic(dtypes.bfloat16, out_dt, p)
    if plan.transposed:
        p = p.transposed()
    if plan.copied:
        p = p._replace(a=_rows(backend, p))
    sizes = p.m, p.n, p.k, *plan.blocks[:4], p.outer * p.inner, plan.blocks[4], p.inner, p.kstep
    args = (*side_args(p, "float"), *sizes, *spread_args(p))
    backend.launch(_kernel(backend, out_dt), plan.grid, (1, 1, 1), args, *cost)
