"""What the dense-product kernels share: element access, the record of one product, split-K with its second pass.

Knows nothing of schedules (gemm.py, gemv.py) or tensors.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ... import dtypes
from ...errors import BuildError, debug_line
from ..source import include, render

if TYPE_CHECKING:
    from ...dtypes import dtype
    from ...runtime import Backend, Buffer, Kernel
    from .epilogue import Epilogue

PACE = 50_000  # multiply-adds per microsecond of one CPU thread, at most
# A GPU's work-items compute 8 x 8 results each if a work-group may use at least WIDE_LOCAL bytes of local memory, and
# there are at least WIDE_GROUPS work-groups per compute unit.
WIDE_LOCAL = 48 << 10
WIDE_GROUPS = 1.5
NARROW = 64  # rows or columns up to which half of such a work-group's tile would be empty
LONG = np.int64
SIDE = [None, LONG, LONG, LONG]  # argument types of `Side.args`
SIDES = SIDE * 4
_SIZES = {
    "char": 1,
    "uchar": 1,
    "short": 2,
    "ushort": 2,
    "int": 4,
    "uint": 4,
    "float": 4,
    "long": 8,
    "ulong": 8,
    "double": 8,
}
_kernels: dict[tuple[Any, ...], Kernel] = {}


class Access(NamedTuple):
    """Source text that converts elements of a storage type to the accumulator's type (load) and back (store)."""

    cl: str
    acc: str
    code: str

    def load(self, place: str) -> str:
        if self.code == "f16":
            return f"vload_half(0, &{place})"
        if self.code == "bf16":
            return f"as_float((uint){place} << 16)"
        return place if self.cl == self.acc else f"({self.acc}){place}"

    def loadv(self, pointer: str, lanes: int) -> str:
        if self.code == "f16":
            return f"clt_load_f16_float{lanes}({pointer})"
        text = f"*(__global const {self.cl}{lanes}_u *)({pointer})"
        if self.code == "bf16":
            return f"as_float{lanes}(convert_uint{lanes}({text}) << 16)"
        if self.cl == self.acc:
            return text
        if self.cl in ("char", "short"):
            return f"as_uint{lanes}(convert_int{lanes}({text}))"
        return (
            f"as_{self.acc}{lanes}({text})"
            if self.cl in ("int", "long")
            else f"convert_{self.acc}{lanes}({text})"
        )

    def store(self, value: str, pointer: str, index: str) -> str:
        if self.code == "f16":
            return f"vstore_half_rte({value}, {index}, {pointer})"
        if self.code == "bf16":
            return f"({pointer})[{index}] = clt_to_bf16_float({value})"
        return f"({pointer})[{index}] = ({self.cl})({value})"

    def storev(self, value: str, pointer: str, lanes: int) -> str:
        if self.code == "f16":
            return f"clt_store_f16_float{lanes}({value}, {pointer})"
        if self.code == "bf16":
            return f"*(__global ushort{lanes}_u *)({pointer}) = clt_to_bf16_float{lanes}({value})"
        if self.cl in ("int", "long"):
            value = f"as_{self.cl}{lanes}({value})"
        elif self.cl != self.acc:
            value = f"convert_{self.cl}{lanes}({value})"
        return f"*(__global {self.cl}{lanes}_u *)({pointer}) = {value}"


def accumulator(dt: dtype) -> str:
    """Return the OpenCL type that products of `dt` are accumulated in; unsigned for integers, so that they wrap."""
    if dt.category == 1:
        return "ulong" if dt.itemsize == 8 else "uint"
    return dt.reg


SCALARS: dict[str, Any] = {
    "float": np.float32,
    "double": np.float64,
    "uint": np.uint32,
    "ulong": np.uint64,
}


def number(acc: str, value: float) -> float | int:
    """Convert a Python scalar to what a kernel argument of type `acc` takes."""
    if acc == "uint":
        return int(value) & 0xFFFFFFFF
    return int(value) & 0xFFFFFFFFFFFFFFFF if acc == "ulong" else value


@cache
def headers(codes: tuple[str, ...], lanes: int) -> tuple[str, ...]:
    """Return the headers that a kernel over storage types of these codes includes."""
    texts = [include("limits")]
    if "f16" in codes or "bf16" in codes:
        texts += [f"#define CLT_LANES {lanes}", include("half")]
    return tuple(texts)


def access_variables(dt: dtype, out: dtype, lanes: int) -> dict[str, Any]:
    """Return the template variables for reading elements of `dt` and reading or writing elements of `out`."""
    acc = accumulator(dt)
    ta, to = Access(dt.cl, acc, dt.code), Access(out.cl, acc, out.code)
    return {
        "ta": dt.cl,
        "to": out.cl,
        "acc": acc,
        "V": lanes,
        "unaligned": [
            (t, _SIZES[t])
            for t in sorted({"ushort" if t == "half" else t for t in (dt.cl, out.cl, acc)})
        ],
        "headers": headers((dt.code, out.code), lanes),
        "load": lambda place, which="ta": (ta if which == "ta" else to).load(place),
        "loadv": lambda p, which="ta": (ta if which == "ta" else to).loadv(p, lanes),
        "store": to.store,
        "storev": lambda v, p: to.storev(v, p, lanes),
    }


_PROBE = """
__kernel void cltensor_probe_registers(__global int *out) {
#ifdef __AVX512F__
  out[0] = 16;
#else
  out[0] = 8;
#endif
}
"""
_tiles: dict[Backend, tuple[int, int]] = {}


def _wide_registers(backend: Backend) -> bool:
    """Return whether kernels have 32 vector registers of 64 bytes; with 16 of 32 bytes a larger register tile spills.

    The vector width PoCL reports may exceed what its compiler can use (one older than the processor knows less), so a
    probe kernel checks the compiler's macros. Other drivers compile for a generic processor first, where the macros say
    nothing: their reported width is taken.
    """
    if not backend.info.is_pocl:
        return backend.info.native_lanes >= 16
    out = backend.alloc(4)
    kernel = backend.kernel("cltensor_probe_registers", _PROBE, [None])
    backend.launch(kernel, (1,), (1,), (out,))
    return bool(backend.read(out, 0, 4).view(np.int32)[0] == 16)


def tile(backend: Backend, acc: str) -> tuple[int, int]:
    """Return (rows, lanes of a vector) of a CPU's register tile, which is two vectors wide, for an accumulator type."""
    found = _tiles.get(backend)
    if found is None:
        found = _tiles[backend] = (8, 16) if _wide_registers(backend) else (6, 8)
    return found if acc in ("float", "uint") else (found[0], found[1] // 2)


_PAIRS = """
CLT_PAIRS __kernel void cltensor_probe_pairs(__global float *out, __global const int *in) {
  uint a = 7, b, c = 1, d;
  __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  out[0] = 0;
  if (a >> 5 & 1) {
    clt_sums sum = 1;
    sum = clt_dot(sum, (clt_pairs)in[0], (clt_pairs)in[1]);
    out[0] = ((const float *)&sum)[sizeof(sum) / sizeof(float) - 1];
  }
}
"""
_dots: dict[Backend, bool] = {}


def dots(backend: Backend) -> bool:
    """Return whether kernels can use the processor's dot products of pairs of bfloat16 numbers (cl_kernels/dot.cl).

    PoCL's compiler has to accept inline assembly, and takes some processors with these instructions for older ones: so
    a probe kernel asks both the compiler and, by cpuid, the processor.
    """
    found = _dots.get(backend)
    if found is None:
        found = backend.info.takes_assembly and platform.machine() in ("x86_64", "AMD64")
        found = _dots[backend] = found and _probe_dots(backend)
    return found


def _probe_dots(backend: Backend) -> bool:
    out, pair = backend.alloc(4), backend.alloc(8)
    try:
        kernel = backend.kernel("cltensor_probe_pairs", include("dot") + _PAIRS, [None, None])
    except BuildError as error:
        debug_line(1, "no products of pairs: %s", error)
        return False
    backend.write(pair, 0, np.array([0x40003FC0, 0x40403F80], np.uint32))  # (1.5, 2) and (1, 3)
    backend.launch(kernel, (1,), (1,), (out, pair))
    return float(backend.read(out, 0, 4).view(np.float32)[0]) == 8.5


def lane_step(backend: Backend, acc: str, width: int) -> int:
    """Return the length of a step: how much of K a GPU's work-group keeps in local memory. Results do not depend on it.

    `width` is 4 or 8. Work-items with 8 x 8 results copy as many numbers for a step of 8 as those with 4 x 4 do for a
    step of 16, and then manage with 128 registers.
    """
    step = backend.tuned.get("gemm.step", 16) * 4 // width
    return step if SCALARS[acc]().itemsize == 4 else min(step, 16)


def takes_wide_items(backend: Backend, acc: str) -> bool:
    """Return whether a GPU's work-items may compute 8 x 8 results of a product each, rather than 4 x 4.

    With 8 x 8, four loads from local memory feed 64 multiply-adds; with 4 x 4 two feed 16, for which local memory is
    only half fast enough. But 8 x 8 needs registers: devices with little local memory have few of those, too, and
    Intel's compilers run many work-items in the registers of one thread.
    """
    info = backend.info
    large = info.max_group >= 256 and info.local_mem >= WIDE_LOCAL
    return large and acc not in ("double", "ulong") and "Intel" not in info.vendor


def lane_width(backend: Backend, acc: str, group: int, rows: int, columns: int, count: int) -> int:
    """Return how many rows, and columns, of a product each of a GPU's work-items computes: 8 or 4.

    8 needs enough work-groups (of `group` by `group` work-items) to fill the device. Results do not depend on it.
    """
    if group < 16 or min(rows, columns) <= NARROW or not takes_wide_items(backend, acc):
        return 4
    tiles = ceil_div(rows, 8 * group) * ceil_div(columns, 8 * group) * count
    return 8 if tiles >= WIDE_GROUPS * backend.info.compute_units else 4


def lane_options(backend: Backend, width: int) -> tuple[str, ...]:
    """Return the build options of a kernel with work-items of `width` (see `lane_width`).

    They bound the registers of wide ones: NVIDIA's compiler would use so many that two work-groups cannot run at once.
    """
    return backend.info.with_registers(128) if width > 4 else ()


class Side(NamedTuple):
    """One operand of a product: buffer, offset, strides of its two matrix dims and of two batch dims, in elements."""

    buffer: Buffer
    offset: int
    row: int  # from one row to the next
    col: int  # from one column to the next
    outer: int  # along the outer batch dim
    inner: int  # along the inner batch dim

    @property
    def args(self) -> tuple[Any, ...]:
        """The kernel arguments that describe a matrix: buffer, offset, row and column stride."""
        return self.buffer, self.offset, self.row, self.col

    def transposed(self) -> Side:
        return self._replace(row=self.col, col=self.row)


class Product(NamedTuple):
    """The sizes and operands of out[z] = beta * bias[z] + alpha * (a[z] @ b[z]), z an index of two batch dims."""

    a: Side
    b: Side
    out: Side
    bias: Side | None
    m: int  # rows of a and out
    n: int  # columns of b and out
    k: int  # columns of a, rows of b
    outer: int  # size of the outer batch dim
    inner: int  # size of the inner batch dim
    alpha: float
    beta: float
    kstep: int = 0  # not 0: split-K; the inner batch dim indexes pieces of K of this length
    epilogue: Epilogue | None = None  # a chain whose outputs are stored in place of the product

    def transposed(self) -> Product:
        """Return the same product written out^T = b^T a^T."""
        bias = self.bias.transposed() if self.bias is not None else None
        return self._replace(
            a=self.b.transposed(),
            b=self.a.transposed(),
            out=self.out.transposed(),
            bias=bias,
            epilogue=self.epilogue.transposed() if self.epilogue else None,
            m=self.n,
            n=self.m,
        )


def ceil_div(a: int, b: int) -> int:
    """Return a / b rounded up."""
    return -(-a // b)


def lane_group(backend: Backend) -> int:
    """Return the work-group size for GPU kernels that divide their lanes among rows and K themselves."""
    return next((g for g in (256, 128, 64) if g <= backend.info.max_group), 8)


def built(backend: Backend, key: tuple[Any, ...], make: Callable[[], tuple[Any, ...]]) -> Kernel:
    """Return the kernel of a key, built at first use from `make()`: name, source, argument types, perhaps options."""
    found = _kernels.get((backend, key))
    if found is None:
        found = _kernels[backend, key] = backend.kernel(*make())
    return found


def traffic(dt: dtype, out: dtype, p: Product) -> tuple[int, int]:
    """Return the fewest bytes a product can move, and its floating-point operations, as `Backend.launch` takes them."""
    batches = p.outer * (1 if p.kstep else p.inner)
    nbytes = (p.m * p.k + p.k * p.n) * dt.itemsize + p.m * p.n * out.itemsize
    return batches * nbytes, 2 * batches * p.m * p.n * p.k


def side_args(p: Product, acc: str) -> tuple[Any, ...]:
    """Return the operands and factors of a product, in the order kernels take them."""
    bias = p.bias or p.out
    return *p.a.args, *p.b.args, *p.out.args, *bias.args, *ending_args(p, acc)


def ending_args(p: Product, acc: str) -> tuple[Any, ...]:
    """Return whether there is a bias, and the factors of the product and of the bias."""
    return int(p.bias is not None), number(acc, p.alpha), number(acc, p.beta)


def ending_types(acc: str) -> list[Any]:
    """Return the argument types of `ending_args`."""
    return [np.int32, SCALARS[acc], SCALARS[acc]]


def spread_args(p: Product) -> tuple[Any, ...]:
    """Return the batch strides of a product's operands, in the order kernels take them."""
    a, b, c, d = p.a, p.b, p.out, p.bias or p.out
    return a.outer, a.inner, b.outer, b.inner, c.outer, c.inner, d.outer, d.inner


def in_pieces(
    backend: Backend,
    dt: dtype,
    out_dt: dtype,
    p: Product,
    piece: int,
    run: Callable[[dtype, Product], object],
    lanes: bool = False,
) -> None:
    """Compute a product by split-K: `run` makes partial products in the accumulator's dtype, a second launch adds them.

    `piece` is the length of a piece of K. The inner batch dim indexes the pieces, unless there is only one, which
    serves to accumulate in a wider dtype. `lanes` says that a work-item is a lane.
    """
    acc = accumulator(dt)
    pieces = max(ceil_div(p.k, piece), 1)
    assert pieces == 1 or p.inner == 1
    wide = WIDE[acc]
    partial = backend.alloc(p.outer * p.inner * pieces * p.m * p.n * wide.itemsize)
    matrix = p.m * p.n
    if pieces == 1:
        out = Side(partial, 0, p.n, 1, p.inner * matrix, matrix)
        q = p._replace(out=out, bias=None, alpha=1, beta=0)
    else:
        q = p._replace(
            a=p.a._replace(inner=piece * p.a.col),
            b=p.b._replace(inner=piece * p.b.row),
            bias=None,
            alpha=1,
            beta=0,
            out=Side(partial, 0, p.n, 1, pieces * matrix, matrix),
            inner=pieces,
            kstep=piece,
        )
    run(wide, q)

    combine = _combine_on_lanes if lanes else _combine
    combine(backend, dt, out_dt, p, pieces, partial)


def _combine(
    backend: Backend, dt: dtype, out_dt: dtype, p: Product, pieces: int, partial: Buffer
) -> None:
    acc, span = accumulator(dt), 256

    def make() -> tuple[str, str, list[Any]]:
        name = f"gemm_combine_{out_dt.code}"
        types = [None, LONG, *SIDE, *SIDE, *ending_types(acc), *[LONG] * 8]
        return name, render("gemm/combine", fn=name, **access_variables(dt, out_dt, 8)), types

    c, d = p.out, p.bias or p.out
    backend.launch(
        built(backend, ("combine", acc, out_dt), make),
        (ceil_div(p.n, span), p.m, p.outer * p.inner),
        (1, 1, 1),
        (
            *(partial, pieces, *c.args, *d.args, *ending_args(p, acc), p.m, p.n, span, p.inner),
            *(c.outer, c.inner, d.outer, d.inner),
        ),
    )


def _combine_on_lanes(
    backend: Backend, dt: dtype, out_dt: dtype, p: Product, pieces: int, partial: Buffer
) -> None:
    acc, group, numbers, batches = accumulator(dt), lane_group(backend), p.m * p.n, p.outer * p.inner  # fmt: skip
    # A lane adds up some of a number's pieces. With few numbers more lanes share each, down to 8 neighbouring numbers
    # per work-group, so that neighbouring lanes still read adjacent memory.
    columns = group
    while columns > 8 and 8 * group // columns < pieces and numbers * batches < columns * 4 * backend.info.compute_units:  # fmt: skip
        columns //= 2

    def make() -> tuple[str, str, list[Any]]:
        name = f"gemm_combine_lanes_{out_dt.code}"
        types = [None, LONG, *SIDE, *SIDE, *ending_types(acc), *[LONG] * 3, np.int32, *[LONG] * 5]
        variables = access_variables(dt, out_dt, 8)
        return name, render("gemm/combine_lanes", fn=name, G=group, **variables), types

    c, d = p.out, p.bias or p.out
    backend.launch(
        built(backend, ("combine lanes", acc, out_dt), make),
        (ceil_div(numbers, columns) * group, min(batches, 65535)),
        (group, 1),
        (
            *(partial, pieces, *c.args, *d.args, *ending_args(p, acc), p.m, p.n, batches, columns),
            *(p.inner, c.outer, c.inner, d.outer, d.inner),
        ),
    )


WIDE = {
    "float": dtypes.float32,
    "double": dtypes.float64,
    "uint": dtypes.uint32,
    "ulong": dtypes.uint64,
}
