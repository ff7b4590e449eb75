"""Products of 16-bit floats by the matrix units of NVIDIA's GPUs (templates/gemm/mma.mako).

Owns which products these are, how they are cut, and the launches. Knows nothing of tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ... import dtypes
from ...errors import BuildError, debug_line
from ..source import include, render
from . import epilogue as epilogues
from .product import (
    LONG,
    SIDES,
    Product,
    Side,
    access_variables,
    built,
    ceil_div,
    ending_types,
    in_pieces,
    side_args,
    spread_args,
    traffic,
)

if TYPE_CHECKING:
    from ...dtypes import dtype
    from ...runtime import Backend, Kernel
    from ..pointwise import Program

STEP = 32  # numbers of K that are kept in local memory at a time
LEAST = 16  # of K that make a product worth its zeros
PIECE = 512  # the shortest piece of K worth a second pass
LOCAL = 48 << 10  # bytes of local memory that the largest tile fills
TWIN = 0  # not 0: on any GPU, in plain OpenCL C; slow, for tests
GROUPS = 65535  # in the third dim of a launch; the kernel walks on through it


class Tile(NamedTuple):
    """What a work-group makes at a time, and a warp of it; how many steps lie in local memory."""

    rows: int
    columns: int
    warp_rows: int
    warp_columns: int
    stages: int

    @property
    def items(self) -> int:
        return self.rows // self.warp_rows * (self.columns // self.warp_columns) * 32

    def count(self, p: Product) -> int:
        """How many of them a matrix is."""
        return ceil_div(p.m, self.rows) * ceil_div(p.n, self.columns)


# Measured on an H200: what a tile's operands are read from is the second-level cache, which gives 4.4 TB/s whatever the
# tile, so that large ones are quickest as long as they fill the device.
TILES = (Tile(128, 128, 64, 32, 3), Tile(64, 128, 32, 32, 3), Tile(64, 64, 32, 32, 3))

_PROBE = """
__kernel void cltensor_probe_units(__global const ushort *in, __global float *out) {
  __local uint4 memory[64];
  const clt_place all = CLT_PLACE(memory);
  const int lane = get_local_id(0);
  float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  uint x0, x1, x2, x3;
  CLT_COPY(CLT_UNIT(all, lane), in + 8 * lane, 8);
  CLT_COPIES_END();
  CLT_COPIES_WAIT(0);
  barrier(CLK_LOCAL_MEM_FENCE);
  clt_rows(x0, x1, x2, x3, CLT_UNIT(all, lane));
  clt_multiply_bf16(s, x, x0, x1);
  out[lane] = s0 + s3;
}
"""
_found: dict[Backend, bool] = {}


def has_units(backend: Backend) -> bool:
    """Say whether kernels can use matrix units: the driver's compiler is asked, and the device tried."""
    found = _found.get(backend)
    if found is None:
        able = backend.info.kind == "gpu" and backend.info.is_nvidia
        found = _found[backend] = able and _probe(backend)
    return found


def _probe(backend: Backend) -> bool:
    numbers, out = backend.alloc(512), backend.alloc(128)
    try:
        kernel = backend.kernel("cltensor_probe_units", include("mma") + _PROBE, [None, None])
    except BuildError as error:
        debug_line(1, "no products by matrix units: %s", error)
        return False
    backend.write(numbers, 0, np.full(256, 0x3FC0, np.uint16))  # 1.5
    backend.launch(kernel, (32,), (32,), (numbers, out))
    sums = backend.read(out, 0, 128).view(np.float32)
    return bool((sums == 2 * 16 * 2.25).all())


def multiplies(backend: Backend) -> bool:
    """Say whether products are made by matrix units here."""
    return has_units(backend) or bool(TWIN and backend.info.local_mem >= LOCAL)


def instructions() -> str:
    """Return what matrix units are asked with, or its twin."""
    return include("mma_twin" if TWIN else "mma")


def unit(r: str, c: str, units: int) -> str:
    """Say where unit c of 8 numbers of row r lies, of rows of `units`: eight lanes that read or write units of different rows meet all banks."""
    turned = f"(({r}) & 7)" if units % 8 == 0 else f"(({r}) >> 1 & 3)"
    return f"({r}) * {units} + (({c}) ^ {turned})"


def number(r: str, c: str, units: int) -> str:
    """Say where number c of row r lies."""
    return f"8 * ({unit(r, f'({c}) / 8', units)}) + ({c}) % 8"


def value(pointer: str, code: str) -> str:
    """Say which float32 number the 16 bits in local memory are."""
    if code == "f16":
        return f"vload_half(0, (__local const half *)({pointer}))"
    return f"as_float((uint)*({pointer}) << 16)"


def takes(backend: Backend, dt: dtype, p: Product) -> bool:
    """Say whether a product is made by matrix units."""
    large = p.k >= LEAST and min(p.m, p.n) > 1 and p.m * p.n >= LEAST * LEAST
    return large and dt in (dtypes.bfloat16, dtypes.float16) and multiplies(backend)


def _way(side: Side, along: int, other: int) -> str:
    """Say how an operand comes (see the template), given its strides along K and along its other dim."""
    if (side.offset | side.outer | side.inner) % 8:
        return "any"
    if along == 1 and other % 8 == 0:
        return "k"
    return "i" if other == 1 and along % 8 == 0 else "any"


def _tile(backend: Backend, p: Product) -> Tile:
    """Choose the largest tile of which there are enough."""
    batches = p.outer * p.inner
    for tile in TILES[:-1]:
        full = p.m > tile.rows // 2 and p.n > tile.columns // 2
        if full and 4 * tile.count(p) * batches >= 3 * backend.info.compute_units:
            return tile
    return TILES[-1]


def _kernel(
    backend: Backend,
    dt: dtype,
    out_dt: dtype,
    tile: Tile,
    ways: tuple[str, str],
    program: Program | None,
) -> Kernel:
    def make() -> tuple[str, str, list[Any], tuple[str, ...]]:
        finish = epilogues.finish(program, 1) if program else None
        twin = "twin_" if TWIN else ""
        name = f"gemm_mma{tile.rows}x{tile.columns}_{twin}{dt.code}_{out_dt.code}_{'_'.join(ways)}"
        name += epilogues.suffix(program)
        variables = access_variables(dt, out_dt, 8)
        if finish:  # which brings the texts for 16-bit floats
            variables["headers"] = ()
        source = render(
            "gemm/mma",
            fn=name,
            code=dt.code,
            ways={"a": ways[0], "b": ways[1]},
            direct=not TWIN,
            units=instructions(),
            unit=unit,
            number=number,
            value=value,
            BM=tile.rows,
            BN=tile.columns,
            WM=tile.warp_rows,
            WN=tile.warp_columns,
            STAGES=tile.stages,
            finish=finish,
            **variables,
        )
        types = [*SIDES, *ending_types("float"), *[LONG] * 6, np.int32, np.int32, *[LONG] * 8]
        types += finish.types if finish else ()
        # Two groups at once on a unit that has 65,536 registers.
        few = backend.info.with_registers(128) if tile.items == 256 else ()
        return name, source, types, (*epilogues.options(backend, finish), *few)

    return built(backend, ("mma", dt, out_dt, tile, ways, program, TWIN), make)


def run(backend: Backend, dt: dtype, out_dt: dtype, p: Product) -> bool:
    """Run a product of 16-bit floats, whose results are of `out_dt`: theirs, or float32.

    False, with nothing done, where the chain that it ends with does not fit: none does where K is cut.
    """
    program, fits = epilogues.fitted(backend, p.epilogue, 1)
    tile = _tile(backend, p)
    batches, count = p.outer * p.inner, tile.count(p)
    # Too few groups to fill the device over a long K: cut K.
    room = backend.info.compute_units // (count * batches)
    if p.kstep == 0 and p.inner == 1 and room > 1 and p.k >= 2 * PIECE:
        if program is not None:
            return False
        piece = STEP * ceil_div(p.k, STEP * min(room, p.k // PIECE))
        in_pieces(backend, dt, out_dt, p, piece, lambda wide, q: run(backend, dt, wide, q))
        return True
    if not fits:
        return False
    c = p.out
    even = c.offset | c.row | (c.outer if p.outer > 1 else 0) | (c.inner if p.inner > 1 else 0)
    ways = _way(p.a, p.a.col, p.a.row), _way(p.b, p.b.row, p.b.col)
    sizes = p.m, p.n, p.k, batches, p.inner, p.kstep
    pairs = int(c.col == 1 and even % 2 == 0)
    across = ceil_div(p.n, tile.columns)
    args = (*side_args(p, "float"), *sizes, pairs, across, *spread_args(p))
    if p.epilogue is not None:
        args += tuple(p.epilogue.arguments())
    backend.launch(
        _kernel(backend, dt, out_dt, tile, ways, program),
        (count * tile.items, 1, min(batches, GROUPS)),
        (tile.items, 1, 1),
        args,
        *traffic(dt, out_dt, p),
    )
    return True
