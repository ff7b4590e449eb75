"""Products by tiles of a work-group, on devices where a work-item is a lane (templates/gemm/gpu.mako).

Owns the tile that each product takes, how its operands are read, and when K is split among work-groups. Products with
few rows or columns, or too small for any of these tiles to fill the device, are gemm_sliced.py's. Knows nothing of
tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..source import render
from . import epilogue as epilogues
from . import product
from .product import (  # fmt: skip
    LONG,
    SCALARS,
    SIDES,
    Product,
    Side,
    access_variables,
    accumulator,
    built,
    ceil_div,
    ending_types,
    in_pieces,
    lane_group,
    lane_step,
    side_args,
    spread_args,
    takes_wide_items,
    traffic,
)

if TYPE_CHECKING:
    from ...dtypes import dtype
    from ...runtime import Backend, Kernel
    from ..pointwise import Program

FEW = 16  # rows or columns up to which most of any tile but THIN would be empty
STEPS = 8  # slabs that make a piece of K worth a second pass
FULL = 2  # work-groups that keep a compute unit busy
MANY = 3  # tiles per compute unit from which on it is busy without slices of K
# Registers of a work-item that computes 8 x 8 results, as NVIDIA's compiler is told: it needs as many, and with no more
# 16 warps run at once.
REGISTERS = 128


class Tile(NamedTuple):
    """The tile of results of a work-group, and how it is divided among work-items."""

    rows: int
    columns: int
    slices: int  # sets of work-items that share each slab of K, whose sums are then added
    fours: tuple[int, int]  # a work-item computes 4 * fours[0] rows by 4 * fours[1] columns
    slab: int  # how much of K lies in local memory at a time

    @property
    def lanes(self) -> int:
        return self.rows * self.columns // (16 * self.fours[0] * self.fours[1]) * self.slices

    def laid(self, p: Product) -> Tile:
        """Return the tile turned so that its long side is along the product's."""
        if p.m >= p.n or self.rows == self.columns:
            return self
        return self._replace(rows=self.columns, columns=self.rows, fours=self.fours[::-1])

    def count(self, p: Product) -> int:
        """Return how many of these tiles cover a product, all matrices of its batch together."""
        t = self.laid(p)
        return ceil_div(p.m, t.rows) * ceil_div(p.n, t.columns) * p.outer * p.inner

    def bytes(self, size: int) -> int:
        """Return the bytes of local memory of two slabs (one multiplied, one loaded) of numbers of `size` bytes."""
        return 2 * self.slab * (self.rows + self.columns + 8) * size


class Plan(NamedTuple):
    """How a product is divided among work-groups."""

    tile: Tile
    pieces: int = 1  # of K, each for work-groups of its own (split-K)


# Measured on an H100: reads of local memory bound a tile. A work-item with 8 x 8 results reads 16 numbers for 64
# multiply-adds, one with 4 x 4 reads 8 for 16. Slices of K give a compute unit enough warps where it has few tiles.
# With 16 x 8 results per work-item, the registers of two work-groups still fit on an NVIDIA unit.
LARGE, LARGE_NVIDIA = Tile(128, 128, 1, (2, 2), 8), Tile(128, 128, 1, (4, 2), 8)
MIDDLE, SLICED = Tile(64, 64, 1, (2, 2), 16), Tile(64, 64, 2, (2, 2), 16)
OBLONG, SMALL = Tile(64, 32, 4, (2, 1), 32), Tile(32, 32, 8, (2, 1), 64)
THIN = Tile(128, 16, 1, (2, 1), 16)


def plain(backend: Backend, dt: dtype) -> Tile:
    """Return the tile of devices whose work-items compute 4 x 4 results: 64 x 64, or 32 x 32 where groups are small."""
    acc = accumulator(dt)
    side = 64 if backend.info.max_group >= 256 else 32
    return _fitted(backend, dt, Tile(side, side, 1, (1, 1), max(lane_step(backend, acc, 4), 8)))


def _fitted(backend: Backend, dt: dtype, tile: Tile) -> Tile:
    size = SCALARS[accumulator(dt)]().itemsize
    while tile.slab > 8 and tile.bytes(size) > backend.info.local_mem:
        tile = tile._replace(slab=tile.slab // 2)
    return tile


def chosen(backend: Backend, dt: dtype, p: Product) -> Plan | None:
    """Return a product's plan for this schedule; None if it should not take it. Does not depend on its epilogue."""
    units, few = backend.info.compute_units, min(p.m, p.n)
    wide = takes_wide_items(backend, accumulator(dt))
    if few <= FEW:
        many = wide and few > 8 and THIN.count(p) >= MANY * units
        return Plan(THIN) if many else None
    large = LARGE_NVIDIA if backend.info.is_nvidia else LARGE
    if wide:
        if few > product.NARROW and large.count(p) >= product.WIDE_GROUPS * units:
            return Plan(large)
        # Operands read number by number take more registers for the copy to local memory. Tiles with 8 x 8 results per
        # work-item have fewer lanes to share that copy, and no registers left.
        even = few > 32 and "1" not in "".join(_ways(dt, p))
        tiles = [(MIDDLE, MANY), (SLICED, product.WIDE_GROUPS)] if even else []
        tiles += [(OBLONG, 0.75), (SMALL, 0.75)]
    else:
        slices = max(lane_group(backend) // 64, 1)
        small = _fitted(backend, dt, Tile(32, 32, slices, (1, 1), 8 * slices))
        tiles = [(plain(backend, dt), 0.5)] if few > 32 else []
        tiles += [(small, 0.75)]
    for tile, enough in tiles:
        if tile.count(p) >= enough * units:
            return Plan(tile)
    tile = tiles[-1][0] if few <= 32 or not wide else SLICED if even else OBLONG
    count, most = tile.count(p), p.k // (STEPS * tile.slab)
    pieces = min(ceil_div(FULL * units, count), most)
    if p.kstep or p.inner > 1 or pieces < 2 or 4 * count * pieces < 3 * units:
        return None
    return Plan(tile, pieces)


def run(backend: Backend, dt: dtype, out_dt: dtype, p: Product, plan: Plan) -> bool:
    """Run a product by a plan of `chosen`; False, with nothing done, where its epilogue does not fit."""
    if plan.pieces > 1:
        if p.epilogue is not None:
            return False
        slab = plan.tile.slab
        length = slab * ceil_div(p.k, slab * plan.pieces)

        def part(wide: dtype, q: Product) -> None:
            _launch(backend, dt, wide, q, plan.tile)

        in_pieces(backend, dt, out_dt, p, length, part, True)
        return True
    return _launch(backend, dt, out_dt, p, plan.tile)


def _ways(dt: dtype, p: Product) -> tuple[str, str]:
    """Return how the kernel reads both operands: "k4", "i4", "k1" or "i1" (`ways` in the template)."""
    a, b, k = p.a, p.b, p.k | p.kstep
    return _way(dt, a, a.row, a.col, p.m, k), _way(dt, b, b.col, b.row, p.n, k)


def _way(dt: dtype, side: Side, other: int, along: int, length: int, k: int) -> str:
    """Return how the kernel reads one operand, given its strides and sizes along its other dim and along K."""
    even = dt.itemsize == 4 and not (side.offset | side.outer | side.inner) % 4
    if along == 1:
        return "k4" if even and not (other | k) % 4 else "k1"
    return "i4" if even and other == 1 and not (along | length) % 4 else "i1"


def _launch(backend: Backend, dt: dtype, out_dt: dtype, p: Product, tile: Tile) -> bool:
    if abs(p.out.row) < abs(p.out.col):  # neighbouring lanes store along rows
        p = p.transposed()
    program, fits = epilogues.fitted(backend, p.epilogue, 1)
    if not fits:
        return False
    acc, tile, a, b, c = accumulator(dt), tile.laid(p), p.a, p.b, p.out
    even = c.col == 1 and not (c.offset | c.row | c.outer | c.inner | p.n) % 4
    quads = even and out_dt.itemsize == 4 and p.bias is None and program is None
    far = max(
        abs(a.row) * tile.rows + abs(a.col) * tile.slab,
        abs(b.col) * tile.columns + abs(b.row) * tile.slab,
    )
    batches = p.outer * p.inner
    args = (*side_args(p, acc), p.m, p.n, p.k, batches, p.inner, p.kstep, *spread_args(p))
    if p.epilogue is not None:
        args += tuple(p.epilogue.arguments())
    rows, columns = ceil_div(p.m, tile.rows), ceil_div(p.n, tile.columns)
    # Some devices allow only 65535 groups in the third dim; the kernel loops over any further matrices.
    backend.launch(
        _kernel(backend, dt, out_dt, tile, _ways(dt, p), quads, far >= 1 << 31, program),
        (rows * tile.lanes, columns, min(batches, 65535)),
        (tile.lanes, 1, 1),
        args,
        *traffic(dt, out_dt, p),
    )
    return True


def _kernel(
    backend: Backend,
    dt: dtype,
    out: dtype,
    tile: Tile,
    ways: tuple[str, str],
    quads: bool,
    far: bool,
    program: Program | None,
) -> Kernel:
    def make() -> tuple[str, str, list[Any], Any]:
        finish, acc = epilogues.finish(program, 1) if program else None, accumulator(dt)
        name = f"gemm_gpu{tile.rows}x{tile.columns}x{tile.slices}_{dt.code}_{out.code}_{'_'.join(ways)}{epilogues.suffix(program)}"
        text = render(
            "gemm/gpu", fn=name, R=tile.rows, C=tile.columns, P=tile.slices, HR=tile.fours[0], HC=tile.fours[1], KS=tile.slab,
            ways=dict(zip("ab", ways, strict=True)), quads=quads, offset="long" if far else "int", finish=finish,
            **access_variables(dt, out, 8),
        )  # fmt: skip
        types = [*SIDES, *ending_types(acc), *[LONG] * 14, *(finish.types if finish else ())]
        told = backend.info.with_registers(REGISTERS) if tile.fours[0] * tile.fours[1] <= 4 else ()
        return name, text, types, (*epilogues.options(backend, finish), *told)

    return built(backend, ("lanes", dt, out, tile, ways, quads, far, program), make)
