"""The attention family: softmax(q k^T * scale + mask) v and its gradients, tile by tile, without a matrix of scores.

Operands have three batch dims (stride 0 where broadcast), then rows and columns, of any strides. Owns the schedules, the
division into tasks and the scratch memory. A kernel's key is dtypes and kind of mask, never a size. Knows nothing of
tensors, of dropout or of the gradient of a mask.

The sums' logarithms that `forward` returns are +inf for rows that see nothing: their probabilities are then zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import dtypes
from ..layouts import contiguous_strides, numel
from .operand import Operand
from .products import gemm_amx
from .products.product import (
    LONG,
    PACE,
    SCALARS,
    WIDE,
    Access,
    access_variables,
    accumulator,
    built,
    ceil_div,
    tile,
)
from .source import include, render

if TYPE_CHECKING:
    from ..dtypes import dtype
    from ..runtime import Backend, Buffer

INT = np.int32
CHUNK_TILES = 8  # register tiles in a chunk of query rows
CHUNKS = 8  # chunks of rows a task holds at most
GRAIN = 1 << 17  # multiplications that are worth a work-item, and its slice of scratch
FEW = 3  # queries that read keys and values where they lie
STEP = 64  # keys between two of such a query's corrections
PAD = 16  # numbers between rows in scratch, lest a column of a tile fall on few cache sets
GPU_BLOCK = 16  # rows of a tile of a work-group
GPU_WIDTH = 256  # the widest head a work-group has local memory and registers for


def takes(
    backend: Backend,
    dt: dtype,
    batch: tuple[int, ...],
    length: int,
    keys: int,
    width: int,
    depth: int,
) -> bool:
    """Tell whether the kernels handle these sizes; empty and enormous ones are left to plain ops."""
    if len(batch) > 3 or not numel(batch) * length * keys * width * depth:
        return False
    if max(length, keys) >= 1 << 27 or max(width, depth) >= 1 << 16:
        return False
    return backend.info.kind == "cpu" or _gpu_takes(backend, dt, width, depth)


def forward(
    backend: Backend,
    q: Operand,
    k: Operand,
    v: Operand,
    mask: Operand | None,
    causal: bool,
    scale: float,
    *,
    schedule: str | None = None,
) -> tuple[Operand, Operand]:
    """Compute (out, lse) for q [B, B', B'', L, E], k [..., S, E], v [..., S, Ev], mask [..., L, S] (bool or float).

    `out` has q's dtype and lies with the rows outside the last two batch dims, as attention heads are wanted next; `lse` is
    dense, of the accumulating type. `schedule` is "cpu" or "gpu"; by default the device decides.
    """
    cpu = backend.info.kind == "cpu" if schedule is None else schedule == "cpu"
    out = _result(backend, q, q.dtype, v.shape[-1])
    wide = WIDE[accumulator(q.dtype)]
    shape = q.shape[:-1]
    lse = Operand(
        backend.alloc(numel(shape) * wide.itemsize), wide, shape, contiguous_strides(shape)
    )
    asked = _Attention(q, k, v, mask, causal, scale)
    (_forward_cpu if cpu else _forward_gpu)(backend, asked, out, lse.buffer)
    return out, lse


def backward(
    backend: Backend,
    q: Operand,
    k: Operand,
    v: Operand,
    mask: Operand | None,
    g: Operand,
    lse: Operand,
    delta: Operand,
    causal: bool,
    scale: float,
    want_q: bool = True,
    want_k: bool = True,
    *,
    schedule: str | None = None,
) -> tuple[Operand, Operand, Operand]:
    """Compute the gradients of q, k and v from that of `out`; they have the joint batch dims and the accumulating type.

    `delta` [..., L] is the sum of out * g along each row. What is not wanted (queries; keys and values) is left undefined.
    """
    cpu = backend.info.kind == "cpu" if schedule is None else schedule == "cpu"
    wide = WIDE[accumulator(q.dtype)]
    made = (
        _result(backend, q, wide, q.shape[-1], q.shape[:-2]),
        _result(backend, k, wide, k.shape[-1], q.shape[:-2]),
        _result(backend, v, wide, v.shape[-1], q.shape[:-2]),
    )
    asked = _Attention(q, k, v, mask, causal, scale)
    known = {"g": g, "lse": lse, "delta": delta}
    (_backward_cpu if cpu else _backward_gpu)(backend, asked, known, want_q, want_k, made)
    return made


# ---- what the schedules share


class _Attention(NamedTuple):
    """What is asked for: operands and settings, and the sizes that follow from them."""

    q: Operand
    k: Operand
    v: Operand
    mask: Operand | None
    causal: bool
    scale: float

    @property
    def batch(self) -> tuple[int, ...]:
        return self.q.shape[:-2]

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Queries, keys, and the widths of keys and values."""
        return self.q.shape[-2], self.v.shape[-2], self.q.shape[-1], self.v.shape[-1]

    @property
    def key(self) -> tuple[dtype, dtype | None]:
        """What kernels differ by."""
        return self.q.dtype, None if self.mask is None else self.mask.dtype

    @property
    def named(self) -> dict[str, Operand]:
        named = {"q": self.q, "k": self.k, "v": self.v}
        return named if self.mask is None else {**named, "mask": self.mask}

    def kernel_name(self, kind: str) -> str:
        of = "" if self.mask is None else f"_mask_{self.mask.dtype.code}"
        return f"attention_{kind}_{self.q.dtype.code}{of}"


def _result(
    backend: Backend, like: Operand, dt: dtype, cols: int, batch: tuple[int, ...] | None = None
) -> Operand:
    """Allocate rows for an operand: dense where it is, else with the rows outside the heads."""
    shape = (*(like.shape[:-2] if batch is None else batch), like.shape[-2], cols)
    buffer = backend.alloc(numel(shape) * dt.itemsize)
    if batch is not None and _straight(like):
        return Operand(buffer, dt, shape, contiguous_strides(shape))
    heads = next((d for d in (1, 2) if shape[d - 1] != 1), 2)
    rows, inner = shape[3], shape[heads:3]
    strides = list(contiguous_strides((*shape[:heads], rows, *inner, cols)))
    return Operand(
        buffer, dt, shape, (*strides[:heads], *strides[heads + 1 : 4], strides[heads], 1)
    )


def _straight(x: Operand) -> bool:
    wanted = contiguous_strides(x.shape)
    return all(n == 1 or a == b for n, a, b in zip(x.shape, x.strides, wanted, strict=True))


def _mask_kind(mask: Operand | None) -> str:
    return "" if mask is None else "bool" if mask.dtype is dtypes.bool else "float"


def _sides(
    named: dict[str, Operand], rows_only: tuple[str, ...] = ()
) -> tuple[list[str], list[Any], list[Any]]:
    """Return the parameters, their types and the arguments that say where operands lie."""
    texts: list[str] = []
    types: list[Any] = []
    args: list[Any] = []
    for name, x in named.items():
        steps = ("0", "1", "2", "r") if name in rows_only else ("0", "1", "2", "r", "c")
        texts.append(f"__global const {x.dtype.cl} *{name}")
        texts += [f"const long {name}_{s}" for s in ("o", *steps)]
        types += [None] + [LONG] * (1 + len(steps))
        args += [x.buffer, x.offset, *x.strides]
    return texts, types, args


def _variables(asked: _Attention, lanes: int) -> dict[str, Any]:
    q, mask = asked.q, asked.mask
    acc = accumulator(q.dtype)
    found = access_variables(q.dtype, q.dtype, lanes)
    if acc == "float":
        heads = list(found["headers"])
        if not any("CLT_LANES" in h for h in heads):
            heads.insert(0, f"#define CLT_LANES {lanes}")
        found["headers"] = [*heads, include("elementary/exp", "elementary/log")]
    found["headers"] = [*found["headers"], include("flush")]
    found["mask"] = _mask_kind(mask)
    found["mask_type"] = "" if mask is None else mask.dtype.cl
    if mask is not None:
        if mask.dtype.code == "bf16" and q.dtype.code != "bf16":
            raise ValueError("a mask of 16 bits needs operands of its dtype")
        access = Access(mask.dtype.cl, acc, mask.dtype.code)
        found["mask_load"] = access.load
        found["mask_loadv"] = lambda place: access.loadv(place, lanes)
        typed = mask.dtype.cl if mask.dtype.code != "f16" else "ushort"
        if all(t != typed for t, _ in found["unaligned"]):
            found["unaligned"] = [*found["unaligned"], (typed, mask.dtype.itemsize)]
    else:
        found["mask_load"] = found["mask_loadv"] = None
    return found


# ---- work-items as threads


class _Blocks:
    """Sizes of a tile on a device, for an accumulating type: no more rows than there are, in whole register tiles."""

    def __init__(
        self, backend: Backend, acc: str, length: int, keys: int, tiles: bool = False
    ) -> None:
        self.MR, self.V = (gemm_amx.TILE, 16) if tiles else tile(backend, acc)
        if tiles:
            self.queries, self.keys = min(128, _up(length, 32)), min(256, _up(keys, 32))
            return
        self.queries = min(self.MR * CHUNK_TILES, _up(length, self.MR))
        # A multiple of the register tile's rows and columns, or more than the keys fill of either.
        needed = max(_up(keys, self.MR), _up(keys, 2 * self.V))
        self.keys = min(128 if self.MR == 8 else 96, _up(needed, self.V))

    def width(self, n: int) -> int:
        """Return how far apart rows of n numbers lie in scratch."""
        return _up(n, 2 * self.V) + PAD


def _up(n: int, step: int) -> int:
    return ceil_div(n, step) * step


def _scratch(
    backend: Backend, numbers: int, itemsize: int, tasks: int, work: int
) -> tuple[Buffer, int, int]:
    """Allocate a slice of scratch for each work-item; return it, the slice's length and the work-items."""
    slot = _up(numbers, 16)
    items = min(tasks, backend.info.compute_units * 4, ceil_div(work, GRAIN))
    if work < PACE // 2 * backend.info.wake_us:  # it takes twice a product's time
        items = 1
    return backend.alloc(items * slot * itemsize), slot, items


def _few_cpu(backend: Backend, asked: _Attention, out: Operand, lse: Buffer) -> None:
    acc, batch = accumulator(asked.q.dtype), asked.batch
    length, keys, width, depth = asked.sizes
    texts, types, args = _sides(asked.named)
    lanes = tile(backend, acc)[1]

    def make() -> tuple[str, str, list[Any]]:
        name = asked.kernel_name("few")
        text = render(
            "attention/few", fn=name, parameters=texts, BK=STEP, **_variables(asked, lanes)
        )  # fmt: skip
        return name, text, [*types, *[None] * 3, *[LONG] * 5, *[INT] * 8, SCALARS[acc]]

    kernel = built(backend, ("attention few", *asked.key), make)
    tasks = numel(batch) * length
    work = tasks * keys * (width + depth)
    numbers = _up(width, lanes) + _up(depth, lanes) + STEP
    scratch, slot, items = _scratch(backend, numbers, WIDE[acc].itemsize, tasks, work)
    args += [out.buffer, lse, scratch, slot, *out.strides[:4], *batch[1:], tasks]
    args += [length, keys, width, depth, int(asked.causal), asked.scale]
    backend.launch(kernel, (items,), (1,), args, flops=2 * work)


def _forward_cpu(backend: Backend, asked: _Attention, out: Operand, lse: Buffer) -> None:
    if asked.q.shape[-2] <= FEW and asked.k.strides[-1] == asked.v.strides[-1] == 1:
        _few_cpu(backend, asked, out, lse)
        return
    acc, batch = accumulator(asked.q.dtype), asked.batch
    length, keys, width, depth = asked.sizes
    tiles = _by_tiles(backend, asked)
    blocks = _Blocks(backend, acc, length, keys, tiles)
    texts, types, args = _sides(asked.named)

    def make() -> tuple[str, str, list[Any]]:
        name = asked.kernel_name("forward" + "_tiles" * tiles + "_twin" * (tiles and gemm_amx.TWIN))
        text = render(
            "attention/forward",
            fn=name,
            parameters=texts,
            products=("set", "scale"),
            amx=gemm_amx.instructions() if tiles else "",
            MR=blocks.MR,
            **_variables(asked, blocks.V),
        )
        return name, text, [*types, *[None] * 3, *[LONG] * 5, *[INT] * 12, SCALARS[acc]]

    kernel = built(backend, ("attention forward", *asked.key, tiles, gemm_amx.TWIN), make)
    batches = numel(batch)
    rows = _part(backend, batches, length, blocks.queries, CHUNKS)
    parts = ceil_div(length, rows)
    tasks = batches * parts
    le, lv, ls = blocks.width(width), blocks.width(depth), blocks.keys + PAD
    numbers = rows * (le + lv + blocks.V) + _up(rows, blocks.V) + 2 * _up(blocks.queries, blocks.V)
    if tiles:  # keys, values, probabilities and queries are pairs
        numbers += blocks.queries * (ls + blocks.keys // 2 + PAD)
        numbers += (_up(width, 32) + _up(depth, 32)) * blocks.keys // 2
    else:
        numbers += blocks.queries * ls + blocks.keys * (le + lv) + le * ls
    work = batches * length * keys * (width + depth)
    scratch, slot, items = _scratch(backend, numbers, WIDE[acc].itemsize, tasks, work)
    args += [out.buffer, lse, scratch, slot, *out.strides[:4], *batch[1:]]
    args += [tasks, parts, rows, length, keys, width, depth]
    args += [blocks.queries, blocks.keys, int(asked.causal), asked.scale]
    backend.launch(kernel, (items,), (1,), args, flops=2 * work)


def _by_tiles(backend: Backend, asked: _Attention) -> bool:
    """Whether products are made of tiles of bfloat16 numbers (see products/gemm_amx.py)."""
    length, keys, _, depth = asked.sizes
    fits = min(length, keys) >= gemm_amx.LEAST and depth % gemm_amx.TILE == 0
    return fits and asked.q.dtype is dtypes.bfloat16 and gemm_amx.multiplies(backend)


def _part(backend: Backend, batches: int, n: int, block: int, most: int) -> int:
    """Return how many rows a task takes: as many blocks as leave enough tasks for every core."""
    wanted = ceil_div(4 * backend.info.compute_units, batches)
    return block * max(1, min(most, ceil_div(n, block) // wanted))


def _backward_cpu(
    backend: Backend,
    asked: _Attention,
    known: dict[str, Operand],
    want_q: bool,
    want_k: bool,
    made: tuple[Operand, ...],
) -> None:
    acc, batch = accumulator(asked.q.dtype), asked.batch
    length, keys, width, depth = asked.sizes
    blocks = _Blocks(backend, acc, length, keys)
    texts, types, args = _sides({**asked.named, **known}, ("lse", "delta"))

    def make() -> tuple[str, str, list[Any]]:
        name = asked.kernel_name("backward")
        text = render(
            "attention/backward",
            fn=name,
            parameters=texts,
            products=("set", "add"),
            MR=blocks.MR,
            **_variables(asked, blocks.V),
        )
        return name, text, [*types, *[None] * 4, *[LONG] * 13, *[INT] * 16, SCALARS[acc]]

    kernel = built(backend, ("attention backward", *asked.key), make)
    le, lv, ls = blocks.width(width), blocks.width(depth), blocks.keys + PAD
    numbers = blocks.queries * (2 * le + lv + 2 * ls)
    numbers += blocks.keys * 2 * (le + lv) + (le + lv) * ls
    batches = numel(batch)
    work = batches * length * keys * 2 * (width + depth)
    # One task does both gradients with five products instead of three and four, if there are tasks enough.
    whole = want_q and want_k and batches >= 2 * backend.info.compute_units
    jobs = [(True, True)] if whole else [(True, False)] * want_q + [(False, True)] * want_k
    for by_q, by_k in jobs:
        q_rows = length if by_k else _part(backend, batches, length, blocks.queries, length)
        k_rows = keys if by_q else _part(backend, batches, keys, blocks.keys, keys)
        q_parts, k_parts = ceil_div(length, q_rows), ceil_div(keys, k_rows)
        tasks = batches * q_parts * k_parts
        scratch, slot, items = _scratch(backend, numbers, WIDE[acc].itemsize, tasks, work)
        rest = [*(x.buffer for x in made), scratch, slot, *(s for x in made for s in x.strides[:4])]
        rest += [*batch[1:], tasks, q_parts, q_rows, k_parts, k_rows, int(by_q), int(by_k)]
        rest += [
            length,
            keys,
            width,
            depth,
            blocks.queries,
            blocks.keys,
            int(asked.causal),
            asked.scale,
        ]
        products = 3 + 2 * by_k if by_q else 4
        backend.launch(kernel, (items,), (1,), args + rest, flops=work * products // 2)


# ---- work-items as lanes


def _gpu_room(width: int) -> int:
    """Return the width a kernel is built for: a power of two, for few kernels."""
    return max(32, 1 << (width - 1).bit_length())


def _gpu_takes(backend: Backend, dt: dtype, width: int, depth: int) -> bool:
    room = _gpu_room(max(width, depth))
    needed = GPU_BLOCK * (4 * (room + 4) + 2 * (GPU_BLOCK + 4)) * WIDE[accumulator(dt)].itemsize
    return room <= GPU_WIDTH and needed <= backend.info.local_mem


def _run_gpu(
    backend: Backend,
    kind: str,
    asked: _Attention,
    known: dict[str, Operand],
    results: list[Operand],
    extra: list[Buffer],
) -> None:
    """Launch one kernel of attention/gpu.mako: a work-group per block of rows, of keys for "by_keys"."""
    acc, batch = accumulator(asked.q.dtype), asked.batch
    length, keys, width, depth = asked.sizes
    room = _gpu_room(max(width, depth))
    texts, types, args = _sides({**asked.named, **known}, ("lse", "delta"))

    def make() -> tuple[str, str, list[Any]]:
        name = f"{asked.kernel_name(kind)}_gpu{room}"
        variables = _variables(asked, 8)
        text = render(
            "attention/gpu", fn=name, kind=kind, parameters=texts, B=GPU_BLOCK, W=room, **variables
        )
        buffers = len(results) + len(extra)
        return name, text, [
            *types, *[None] * buffers, *[LONG] * (4 * len(results)), *[INT] * 8, SCALARS[acc],
        ]  # fmt: skip

    kernel = built(backend, ("attention gpu", kind, *asked.key, room), make)
    tasks = numel(batch) * ceil_div(keys if kind == "by_keys" else length, GPU_BLOCK)
    args += [x.buffer for x in results] + extra + [s for x in results for s in x.strides[:4]]
    args += [*batch[1:], tasks, length, keys, width, depth, int(asked.causal), asked.scale]
    group = GPU_BLOCK * 4
    groups = min(tasks, 1 << 16)
    products = {"forward": 2, "by_query": 3, "by_keys": 4}[kind]
    work = numel(tuple(batch)) * length * keys * (width + depth)
    backend.launch(kernel, (groups * group,), (group,), args, flops=work * products)


def _forward_gpu(backend: Backend, asked: _Attention, out: Operand, lse: Buffer) -> None:
    _run_gpu(backend, "forward", asked, {}, [out], [lse])


def _backward_gpu(
    backend: Backend,
    asked: _Attention,
    known: dict[str, Operand],
    want_q: bool,
    want_k: bool,
    made: tuple[Operand, ...],
) -> None:
    if want_q:
        _run_gpu(backend, "by_query", asked, known, [made[0]], [])
    if want_k:
        _run_gpu(backend, "by_keys", asked, known, list(made[1:]), [])
