"""The dense-product family: matrix-matrix, matrix-vector and dot products of strided operands.

Owns the choice of schedule, of the register tile and of the blocking, and the launches. A kernel's key is dtypes and how
its operands are read (directly or packed), never a shape or a stride. Knows nothing of tensors, broadcasting rules or
gradients: batch dims arrive already equal (stride 0 where broadcast).

Schedules: "cpu" (templates/gemm_cpu.mako: a work-item is a thread), "gpu" (templates/gemm_gpu.mako: a work-item is a
lane). Products with one row or one column go to codegen.gemv.
"""

from __future__ import annotations

import itertools
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import dtypes
from ..layout import collapse, contiguous_strides, numel
from .operand import Operand
from .source import include, render

if TYPE_CHECKING:
    from ..dtypes import dtype
    from ..runtime import Backend, Kernel

MR = 8  # rows of the register tile
PACK_BYTES = 256 * 1024  # local memory for packed columns, at most: a share of a core's second-level cache
K_ROOM = 512  # the longest block of K while rows are packed
TASK_WORK = 1 << 18  # multiply-adds that make a work-item worth its start

_kernels: dict[tuple[Any, ...], Kernel] = {}


class Access(NamedTuple):
    """How elements of a storage type become numbers of the accumulating type, and back."""

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
            return f"vload_half{lanes}(0, {pointer})"
        text = f"vload{lanes}(0, {pointer})"
        if self.code == "bf16":
            return f"as_float{lanes}(convert_uint{lanes}({text}) << 16)"
        if self.cl == self.acc:
            return text
        if self.cl in ("char", "short"):
            return f"as_uint{lanes}(convert_int{lanes}({text}))"
        return f"as_{self.acc}{lanes}({text})" if self.cl in ("int", "long") else f"convert_{self.acc}{lanes}({text})"

    def store(self, value: str, pointer: str, index: str) -> str:
        if self.code == "f16":
            return f"vstore_half_rte({value}, {index}, {pointer})"
        if self.code == "bf16":
            return f"({pointer})[{index}] = clt_to_bf16_float({value})"
        return f"({pointer})[{index}] = ({self.cl})({value})"

    def storev(self, value: str, pointer: str, lanes: int) -> str:
        if self.code == "f16":
            return f"vstore_half{lanes}_rte({value}, 0, {pointer})"
        if self.code == "bf16":
            return f"vstore{lanes}(clt_to_bf16_float{lanes}({value}), 0, {pointer})"
        if self.cl in ("int", "long"):
            value = f"as_{self.cl}{lanes}({value})"
        elif self.cl != self.acc:
            value = f"convert_{self.cl}{lanes}({value})"
        return f"vstore{lanes}({value}, 0, {pointer})"


def accumulator(dt: dtype) -> str:
    """Name the type in which sums of products of `dt` are kept; integers wrap, so unsigned ones serve them all."""
    if dt.category == 1:
        return "ulong" if dt.itemsize == 8 else "uint"
    return dt.reg


_SCALARS: dict[str, Any] = {"float": np.float32, "double": np.float64, "uint": np.uint32, "ulong": np.uint64}


def number(acc: str, value: float) -> float | int:
    """Convert a Python scalar to what a kernel argument of type `acc` takes."""
    if acc == "uint":
        return int(value) & 0xFFFFFFFF
    return int(value) & 0xFFFFFFFFFFFFFFFF if acc == "ulong" else value


@cache
def headers(codes: tuple[str, ...], lanes: int) -> tuple[str, ...]:
    """Return the texts a kernel over these storage types needs."""
    if "bf16" not in codes:
        return ()
    return (f"#define CLT_LANES {lanes}", include("half"))


def access_variables(dt: dtype, out: dtype, lanes: int) -> dict[str, Any]:
    """Return the template variables that read `dt` and read or write `out`."""
    acc = accumulator(dt)
    ta, to = Access(dt.cl, acc, dt.code), Access(out.cl, acc, out.code)
    return {
        "ta": dt.cl, "to": out.cl, "acc": acc, "V": lanes, "headers": headers((dt.code, out.code), lanes),
        "load": lambda place, which="ta": (ta if which == "ta" else to).load(place),
        "loadv": lambda p, which="ta": (ta if which == "ta" else to).loadv(p, lanes),
        "store": to.store, "storev": lambda v, p: to.storev(v, p, lanes),
    }  # fmt: skip


_LONG = np.int64
_CPU_ARGS = [None, _LONG, _LONG, _LONG] * 2 + [None, _LONG, _LONG, _LONG] * 2 + [np.int32]


def vector_lanes(backend: Backend, acc: str) -> int:
    """Return the vector width of the register tile: a cache line of the accumulating type."""
    return max(backend.info.lanes // (2 if acc in ("double", "ulong") else 1), 2)


def _pack_room(backend: Backend, acc: str) -> int:
    size = 8 if acc in ("double", "ulong") else 4
    return min(PACK_BYTES, max(backend.info.local_mem - 32768, 8192) // 2) // size


def _cpu_kernel(backend: Backend, dt: dtype, out: dtype, pack_a: bool, pack_b: bool) -> Kernel:
    key = (backend, "cpu", dt, out, pack_a, pack_b)
    found = _kernels.get(key)
    if found is None:
        acc = accumulator(dt)
        name = f"gemm_{dt.code}_{out.code}_{'p' if pack_a else 'd'}{'p' if pack_b else 'd'}"
        source = render(
            "gemm_cpu", fn=name, pack_a=pack_a, pack_b=pack_b, MR=MR, NV=2, b_room=_pack_room(backend, acc),
            k_room=K_ROOM, **access_variables(dt, out, vector_lanes(backend, acc)),
        )  # fmt: skip
        scalar = _SCALARS[acc]
        types = [*_CPU_ARGS, scalar, scalar, *[_LONG] * 18]
        found = _kernels[key] = backend.kernel(name, source, types)
    return found


class Side(NamedTuple):
    """One operand of one product: buffer, offset, strides of its two matrix dims and of two batch dims."""

    buffer: Any
    offset: int
    row: int
    col: int
    outer: int
    inner: int

    def transposed(self) -> Side:
        return self._replace(row=self.col, col=self.row)


class Product(NamedTuple):
    """out[z] = beta * bias[z] + alpha * (a[z] @ b[z]) over two batch dims, numbers only."""

    a: Side
    b: Side
    out: Side
    bias: Side | None
    m: int
    n: int
    k: int
    outer: int
    inner: int
    alpha: float
    beta: float
    kstep: int = 0  # not 0: the inner batch dim walks pieces of K of this length

    def transposed(self) -> Product:
        """Return the same product written out^T = b^T a^T."""
        bias = self.bias.transposed() if self.bias is not None else None
        return self._replace(
            a=self.b.transposed(), b=self.a.transposed(), out=self.out.transposed(), bias=bias, m=self.n, n=self.m
        )  # fmt: skip


def _ceil(a: int, b: int) -> int:
    return -(-a // b)


def _cost(p: Product, nr: int, lanes: int, narrow: bool) -> tuple[float, bool, bool]:
    """Estimate the vector instructions of a product as it is written, and whether to pack a and b."""
    rows, cols = _ceil(p.m, MR), _ceil(p.n, nr)
    work = rows * MR * cols * 2 * p.k
    store = p.m * p.n * (0.25 if p.out.col == 1 else 2)
    elems = p.k * cols * nr
    pack_b_cost = elems / (lanes if p.b.col == 1 else 4 if p.b.row == 1 else 0.7)
    pack_b = narrow or p.b.col != 1 or p.n < nr or (p.m > 8 * MR and p.k * p.n > 1 << 14)
    pack_a = narrow or p.m < MR or (p.a.col != 1 and p.k > 128)
    return work + store + pack_b * pack_b_cost, pack_a, pack_b


def _run_cpu(backend: Backend, dt: dtype, out_dt: dtype, p: Product) -> None:
    acc = accumulator(dt)
    lanes = vector_lanes(backend, acc)
    nr = 2 * lanes
    narrow = dt.cl != acc and acc not in ("uint", "ulong") or dt.itemsize < 4
    cost, pack_a, pack_b = _cost(p, nr, lanes, narrow)
    t = p.transposed()
    other = _cost(t, nr, lanes, narrow)
    if other[0] < 0.9 * cost:
        p, (cost, pack_a, pack_b) = t, other
    rows, cols = _ceil(p.m, MR), _ceil(p.n, nr)
    batches = p.outer * p.inner
    # Blocks: enough work-items to keep every core busy, none too small to be worth its start.
    room = _pack_room(backend, acc)
    units = backend.info.compute_units
    wanted = min(max(p.m * p.n * max(p.k, 1) * batches // TASK_WORK, 1), 4 * units)
    kc = max(p.k if p.kstep == 0 else p.kstep, 1)
    if pack_a and kc > K_ROOM:
        kc = _ceil(kc, _ceil(kc, K_ROOM))
    bn, bm = min(cols, max(256 // nr, 1)), min(rows, 512 // MR)
    if pack_b:
        while bn > 1 and bn * nr * min(kc, 256) > room:
            bn = (bn + 1) // 2
        while bn > 2 and _ceil(cols, bn) * _ceil(rows, bm) * batches < wanted:
            bn = (bn + 1) // 2
        if bn * nr * kc > room:
            kc = _ceil(kc, _ceil(kc, room // (bn * nr)))
    while _ceil(cols, bn) * _ceil(rows, bm) * batches < wanted and (bn > 1 or bm > 1):
        if bn > 1 and (not pack_b or bn >= bm):
            bn = (bn + 1) // 2
        elif bm > 1:
            bm = (bm + 1) // 2
        else:
            bn = (bn + 1) // 2
    tiles = _ceil(cols, bn) * _ceil(rows, bm)
    per = max(1, batches * tiles // max(wanted, 1) // tiles) if tiles * batches > wanted else 1
    kernel = _cpu_kernel(backend, dt, out_dt, pack_a, pack_b)
    a, b, c, d = p.a, p.b, p.out, p.bias or p.out
    args = (
        a.buffer, a.offset, a.row, a.col, b.buffer, b.offset, b.row, b.col, c.buffer, c.offset, c.row, c.col,
        d.buffer, d.offset, d.row, d.col, int(p.bias is not None), number(acc, p.alpha), number(acc, p.beta),
        p.m, p.n, p.k, bm * MR, bn * nr, kc, batches, per, p.inner, p.kstep,
        a.outer, a.inner, b.outer, b.inner, c.outer, c.inner, d.outer, d.inner,
    )  # fmt: skip
    backend.launch(kernel, (_ceil(cols, bn), _ceil(rows, bm), _ceil(batches, per)), (1, 1, 1), args)
