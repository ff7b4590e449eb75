"""Products of 16-bit floats and of float64 on NVIDIA's matrix units, or tensor cores (templates/gemm/mma.mako).

Owns which products take this schedule, how they are divided into tiles, and the launches. Knows nothing of tensors.
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
    accumulator,
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

LEAST = 16  # length of K, at least: below that a step is mostly zero padding
PIECE = 512  # the shortest piece of K for which split-K is worth its second pass
LOCAL = 48 << 10  # bytes of local memory that the largest tile fills
TWIN = 0  # not 0: emulate the matrix units in plain OpenCL C, on any GPU; slow, for tests
GROUPS = 65535  # work-groups in the third dim of a launch, at most; the kernel loops over any further matrices
NARROW = 32  # rows or columns up to which a tile of float64 would be half empty
FILLED = 3  # a tile size is taken only if there are tiles for this many quarters of the device's compute units


class Tile(NamedTuple):
    """The tiles of results of a work-group and of each of its warps, and how these go through K."""

    rows: int  # of a work-group's tile
    columns: int
    warp_rows: int  # of a warp's tile
    warp_columns: int
    stages: int  # steps of K that lie in local memory at a time
    step: int = 32  # numbers of K in a step
    parts: int = 1  # sets of warps that share each step

    @property
    def items(self) -> int:
        return self.rows // self.warp_rows * (self.columns // self.warp_columns) * 32 * self.parts

    def count(self, p: Product) -> int:
        """Return how many tiles cover one matrix of the result."""
        return ceil_div(p.m, self.rows) * ceil_div(p.n, self.columns)


# Large tiles read each operand fewer times, but there have to be enough of them to fill the device. Small tiles take
# long steps of K, for fewer barriers; where a unit has a single tile, twice as many warps share the steps.
TILES = (Tile(128, 128, 64, 32, 3), Tile(64, 64, 32, 32, 3, 64), Tile(64, 64, 32, 32, 3, 64, 2))
DOUBLE_TILES = (
    Tile(128, 64, 32, 32, 2, 16),
    Tile(64, 64, 32, 32, 3, 16),
    Tile(32, 64, 16, 32, 4, 16),
)

_PROBE = """
__kernel void cltensor_probe_units(__global const ushort *in, __global float *out) {
  __local uint4 memory[64];
  const clt_place all = CLT_PLACE(memory);
  const int lane = get_local_id(0);
  float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  uint x0, x1, x2, x3;
  CLT_COPY(CLT_UNIT(all, lane), in + 8 * lane, 16);
  CLT_COPIES_END();
  CLT_COPIES_WAIT(0);
  barrier(CLK_LOCAL_MEM_FENCE);
  clt_rows(x0, x1, x2, x3, CLT_UNIT(all, lane));
  clt_multiply_bf16(s, x, x0, x1);
  out[lane] = s0 + s3;
}
"""
_DOUBLE_PROBE = """
__kernel void cltensor_probe_double_units(__global const double *in, __global double *out) {
  const int lane = get_local_id(0);
  const double x0 = in[lane], x1 = x0, x2 = x0, x3 = x0, x4 = x0, x5 = x0, x6 = x0, x7 = x0;
  double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  clt_multiply_f64(s, x, x);
  out[lane] = s0 + s3;
}
"""
_LONG_K = "#define CLT_LONG_K\n"
_found: dict[Backend, bool] = {}
_double: dict[Backend, str] = {}


def has_units(backend: Backend) -> bool:
    """Return whether kernels can use matrix units: builds and runs a probe on NVIDIA's GPUs, once per backend."""
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


def double_units(backend: Backend) -> str:
    """Return the source of the float64 matrix operations, or of their emulation; empty where there are none."""
    if TWIN:
        return include("mma_copies_twin") if multiplies(backend) else ""
    found = _double.get(backend)
    if found is None:
        forms = (_LONG_K + include("mma_double"), include("mma_double")) * has_units(backend)
        found = _double[backend] = next((f for f in forms if _probe_double(backend, f)), "")
    return found


def _probe_double(backend: Backend, form: str) -> bool:
    numbers, out = backend.alloc(256), backend.alloc(256)
    try:
        kernel = backend.kernel("cltensor_probe_double_units", form + _DOUBLE_PROBE, [None, None])
    except BuildError as error:
        debug_line(1, "no products of float64 in this form: %s", error)
        return False
    backend.write(numbers, 0, np.full(32, 1.5 + 2.0**-20))
    backend.launch(kernel, (32,), (32,), (numbers, out))
    sums = backend.read(out, 0, 256).view(np.float64)
    return bool((sums == 2 * 16 * (1.5 + 2.0**-20) ** 2).all())


def multiplies(backend: Backend) -> bool:
    """Return whether this backend multiplies 16-bit floats on matrix units, real or emulated."""
    return has_units(backend) or bool(TWIN and backend.info.local_mem >= LOCAL)


def instructions() -> str:
    """Return the source of the matrix operations for 16-bit floats, or of their emulation."""
    return include("mma_twin" if TWIN else "mma")


def unit(r: str, c: str, units: int) -> str:
    """Return the index in local memory of unit `c` (8 numbers) of row `r`, in rows of `units` units.

    Units are swizzled: eight lanes that access one unit each of different rows meet no bank conflicts.
    """
    turned = f"(({r}) & 7)" if units % 8 == 0 else f"(({r}) >> 1 & 3)"
    return f"({r}) * {units} + (({c}) ^ {turned})"


def number(r: str, c: str, units: int) -> str:
    """Return the index in local memory of number `c` of row `r`, for 16-bit floats."""
    return f"8 * ({unit(r, f'({c}) / 8', units)}) + ({c}) % 8"


def double_unit(r: str, c: str, units: int) -> str:
    """Return the same as `unit` for units of two float64 numbers.

    Sixteen lanes that read four numbers in each of four rows meet no bank conflicts.
    """
    return f"({r}) * {units} + (({c}) ^ (({r}) & 3) * 2)"


def double_number(r: str, c: str, units: int) -> str:
    """Return the index in local memory of number `c` of row `r`, for float64."""
    return f"2 * ({double_unit(r, f'({c}) / 2', units)}) + ({c}) % 2"


def value(pointer: str, code: str) -> str:
    """Return the expression that reads a 16-bit float from local memory as float32."""
    if code == "f16":
        return f"vload_half(0, (__local const half *)({pointer}))"
    return f"as_float((uint)*({pointer}) << 16)"


def takes(backend: Backend, dt: dtype, p: Product) -> bool:
    """Return whether a product runs on matrix units.

    Of float64 only those do that fill the device and whose operands are aligned to whole units of 16 bytes.
    """
    large = p.k >= LEAST and min(p.m, p.n) > 1 and p.m * p.n >= LEAST * LEAST
    if dt is dtypes.float64:
        whole = large and min(p.m, p.n) > NARROW and _fill(backend, DOUBLE_TILES[-1], p)
        return whole and "any" not in _ways(dt, p) and bool(double_units(backend))
    return large and dt in (dtypes.bfloat16, dtypes.float16) and multiplies(backend)


def _way(side: Side, along: int, other: int, many: int) -> str:
    """Return how the kernel reads an operand: "k", "i" or "any" (see the template).

    `along` and `other` are the strides along K and along the operand's other dim, `many` the numbers in a unit of 16
    bytes.
    """
    if (side.offset | side.outer | side.inner) % many:
        return "any"
    if along == 1 and other % many == 0:
        return "k"
    return "i" if other == 1 and along % many == 0 else "any"


def _ways(dt: dtype, p: Product) -> tuple[str, str]:
    """Return how the kernel reads both operands."""
    many = 16 // dt.itemsize
    return _way(p.a, p.a.col, p.a.row, many), _way(p.b, p.b.row, p.b.col, many)


def _fill(backend: Backend, tile: Tile, p: Product) -> bool:
    """Return whether a product has enough of these tiles to fill the device."""
    return 4 * tile.count(p) * p.outer * p.inner >= FILLED * backend.info.compute_units


def _tile(backend: Backend, dt: dtype, p: Product) -> Tile:
    """Choose the largest tile of which the product has enough to fill the device; else the last one."""
    tiles = DOUBLE_TILES if dt.itemsize == 8 else TILES
    for tile in tiles[:-1]:
        full = p.m > tile.rows // 2 and p.n > tile.columns // 2
        if full and _fill(backend, tile, p):
            return tile
    return tiles[-1]


def _kernel(
    backend: Backend,
    dt: dtype,
    out_dt: dtype,
    tile: Tile,
    ways: tuple[str, str],
    program: Program | None,
) -> Kernel:
    def make() -> tuple[str, str, list[Any], tuple[str, ...]]:
        finish, double = epilogues.finish(program, 1) if program else None, dt.itemsize == 8
        twin = "twin_" if TWIN else ""
        divided = f"by{tile.parts}_" if tile.parts > 1 else ""
        name = f"gemm_mma{tile.rows}x{tile.columns}_{divided}{twin}{dt.code}_{out_dt.code}_{'_'.join(ways)}"
        name += epilogues.suffix(program)
        variables = access_variables(dt, out_dt, 8)
        if finish:  # whose text includes the headers for 16-bit floats already
            variables["headers"] = ()
        source = render(
            "gemm/mma",
            fn=name,
            code=dt.code,
            ways={"a": ways[0], "b": ways[1]},
            direct=not TWIN,
            units=double_units(backend) if double else instructions(),
            unit=double_unit if double else unit,
            number=double_number if double else number,
            value=value,
            BM=tile.rows,
            BN=tile.columns,
            WM=tile.warp_rows,
            WN=tile.warp_columns,
            STAGES=tile.stages,
            BK=tile.step,
            KS=tile.parts,
            finish=finish,
            **variables,
        )
        types = [
            *SIDES,
            *ending_types(accumulator(dt)),
            *[LONG] * 3,
            np.int32,
            np.int32,
            LONG,
            np.int32,
            np.int32,
            *[LONG] * 8,
        ]
        types += finish.types if finish else ()
        # Two work-groups of 256 then run at once on a unit that has 65,536 registers.
        few = backend.info.with_registers(128) if tile.items == 256 else ()
        return name, source, types, (*epilogues.options(backend, finish), *few)

    return built(backend, ("mma", dt, out_dt, tile, ways, program, TWIN), make)


def run(backend: Backend, dt: dtype, out_dt: dtype, p: Product) -> bool:
    """Run a product and store results of `out_dt`: the operands' dtype, or float32 for 16-bit floats.

    False, with nothing done, where its epilogue does not fit; none does with split-K.
    """
    program, fits = epilogues.fitted(backend, p.epilogue, 1)
    tile = _tile(backend, dt, p)
    batches, count = p.outer * p.inner, tile.count(p)
    # Too few work-groups to fill the device, and a long K: split K.
    room = backend.info.compute_units // (count * batches)
    if p.kstep == 0 and p.inner == 1 and room > 1 and p.k >= 2 * PIECE:
        if program is not None:
            return False
        piece = tile.step * ceil_div(p.k, tile.step * min(room, p.k // PIECE))
        in_pieces(backend, dt, out_dt, p, piece, lambda wide, q: run(backend, dt, wide, q))
        return True
    if not fits:
        return False
    c = p.out
    even = c.offset | c.row | (c.outer if p.outer > 1 else 0) | (c.inner if p.inner > 1 else 0)
    sizes = p.m, p.n, p.k, batches, p.inner, p.kstep
    fours = int(c.col == 1 and even % 4 == 0)
    across = ceil_div(p.n, tile.columns)
    args = (*side_args(p, accumulator(dt)), *sizes, fours, across, *spread_args(p))
    if p.epilogue is not None:
        args += tuple(p.epilogue.arguments())
    backend.launch(
        _kernel(backend, dt, out_dt, tile, _ways(dt, p), program),
        (count * tile.items, 1, min(batches, GROUPS)),
        (tile.items, 1, 1),
        args,
        *traffic(dt, out_dt, p),
    )
    return True
