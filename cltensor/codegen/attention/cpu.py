"""Attention on a CPU: a work-item is a thread, which copies blocks of queries and keys to its own scratch memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import dtypes
from ...layouts import numel
from ..products import gemm_amx
from ..products.product import LONG, PACE, SCALARS, WIDE, accumulator, built, ceil_div, tile
from ..source import render
from .asked import FEW, INT, STEP, Attention, up, variables

if TYPE_CHECKING:
    from ...runtime import Backend, Buffer
    from ..operand import Operand

CHUNK_TILES = 8  # register tiles in a block of query rows
CHUNKS = 8  # blocks of query rows per task, at most
GRAIN = 1 << 17  # multiply-adds that are worth a work-item and its slice of scratch
# Padding between rows in scratch, so that a column of a tile does not fall on few cache sets.
PAD = 16


class _Blocks:
    """Rows of queries and of keys in a tile, in whole register tiles, no more of them than cover the operands.

    `tiles` says that products use AMX tiles.
    """

    def __init__(
        self, backend: Backend, acc: str, length: int, keys: int, tiles: bool = False
    ) -> None:
        self.MR, self.V = (gemm_amx.TILE, 16) if tiles else tile(backend, acc)
        if tiles:
            self.queries, self.keys = min(128, up(length, 32)), min(256, up(keys, 32))
            return
        self.queries = min(self.MR * CHUNK_TILES, up(length, self.MR))
        # Keys of a tile: a multiple of the register tile's rows and columns (128 or 96), or at least all keys, padded
        # to whole register tiles along rows and along columns.
        needed = max(up(keys, self.MR), up(keys, 2 * self.V))
        self.keys = min(128 if self.MR == 8 else 96, up(needed, self.V))

    def width(self, n: int) -> int:
        """Return the row stride in scratch of rows of n numbers."""
        return up(n, 2 * self.V) + PAD


def _scratch(
    backend: Backend, numbers: int, itemsize: int, tasks: int, work: int
) -> tuple[Buffer, int, int]:
    """Allocate a slice of scratch for each work-item; return buffer, a slice's length and the number of work-items."""
    slot = up(numbers, 16)
    items = min(tasks, backend.info.compute_units * 4, ceil_div(work, GRAIN))
    # PACE is a product's: a multiply-add takes twice as long here.
    if work < PACE // 2 * backend.info.wake_us:
        items = 1
    return backend.alloc(items * slot * itemsize), slot, items


def _few(backend: Backend, asked: Attention, out: Operand, lse: Buffer) -> None:
    acc, batch = accumulator(asked.q.dtype), asked.batch
    length, keys, width, depth = asked.sizes
    texts, types, args = asked.sides()
    lanes = tile(backend, acc)[1]

    def make() -> tuple[str, str, list[Any]]:
        name = asked.kernel_name("few")
        text = render(
            "attention/few", fn=name, parameters=texts, BK=STEP, **variables(asked, lanes)
        )  # fmt: skip
        return name, text, [*types, *[None] * 3, *[LONG] * 5, *[INT] * 8, SCALARS[acc]]

    kernel = built(backend, ("attention few", *asked.key), make)
    tasks = numel(batch) * length
    work = tasks * keys * (width + depth)
    numbers = up(width, lanes) + up(depth, lanes) + STEP
    scratch, slot, items = _scratch(backend, numbers, WIDE[acc].itemsize, tasks, work)
    args += [out.buffer, lse, scratch, slot, *out.strides[:4], *batch[1:], tasks]
    args += [length, keys, width, depth, int(asked.causal), asked.scale]
    backend.launch(kernel, (items,), (1,), args, flops=2 * work)


def forward(backend: Backend, asked: Attention, out: Operand, lse: Buffer) -> None:
    """Compute attention: `out`, and `lse`, the logarithm of each row's sum of exponentials, for the gradient."""
    if asked.sizes[0] <= FEW and asked.k.strides[-1] == asked.v.strides[-1] == 1:
        _few(backend, asked, out, lse)
        return
    acc, batch = accumulator(asked.q.dtype), asked.batch
    length, keys, width, depth = asked.sizes
    tiles = _by_tiles(backend, asked)
    blocks = _Blocks(backend, acc, length, keys, tiles)
    texts, types, args = asked.sides()

    def make() -> tuple[str, str, list[Any]]:
        name = asked.kernel_name("forward" + "_tiles" * tiles + "_twin" * (tiles and gemm_amx.TWIN))
        text = render(
            "attention/forward",
            fn=name,
            parameters=texts,
            products=("set", "scale"),
            amx=gemm_amx.instructions() if tiles else "",
            MR=blocks.MR,
            **variables(asked, blocks.V),
        )
        return name, text, [*types, *[None] * 3, *[LONG] * 5, *[INT] * 12, SCALARS[acc]]

    kernel = built(backend, ("attention forward", *asked.key, tiles, gemm_amx.TWIN), make)
    batches = numel(batch)
    rows = _part(backend, batches, length, blocks.queries, CHUNKS)
    parts = ceil_div(length, rows)
    tasks = batches * parts
    le, lv, ls = blocks.width(width), blocks.width(depth), blocks.keys + PAD
    numbers = rows * (le + lv + blocks.V) + up(rows, blocks.V) + 2 * up(blocks.queries, blocks.V)
    # Keys, values, probabilities and queries are stored as bfloat16, two to a number of scratch.
    if tiles:
        numbers += blocks.queries * (ls + blocks.keys // 2 + PAD)
        numbers += (up(width, 32) + up(depth, 32)) * blocks.keys // 2
    else:
        numbers += blocks.queries * ls + blocks.keys * (le + lv) + le * ls
    work = batches * length * keys * (width + depth)
    scratch, slot, items = _scratch(backend, numbers, WIDE[acc].itemsize, tasks, work)
    args += [out.buffer, lse, scratch, slot, *out.strides[:4], *batch[1:]]
    args += [tasks, parts, rows, length, keys, width, depth]
    args += [blocks.queries, blocks.keys, int(asked.causal), asked.scale]
    backend.launch(kernel, (items,), (1,), args, flops=2 * work)


def _by_tiles(backend: Backend, asked: Attention) -> bool:
    """Return whether products use tiles of bfloat16 numbers (see products/gemm_amx.py)."""
    length, keys, _, depth = asked.sizes
    fits = min(length, keys) >= gemm_amx.LEAST and depth % gemm_amx.TILE == 0
    return fits and asked.q.dtype is dtypes.bfloat16 and gemm_amx.multiplies(backend)


def _part(backend: Backend, batches: int, n: int, block: int, most: int) -> int:
    """Return how many of `n` rows a task takes: at most `most` blocks, and few enough for tasks for every core."""
    wanted = ceil_div(4 * backend.info.compute_units, batches)
    return block * max(1, min(most, ceil_div(n, block) // wanted))


def backward(
    backend: Backend,
    asked: Attention,
    known: dict[str, Operand],
    want_q: bool,
    want_k: bool,
    made: tuple[Operand, ...],
) -> None:
    """Compute gradients of queries (`want_q`), of keys and values (`want_k`), into the operands `made`, from the `known` ones."""
    acc, batch = accumulator(asked.q.dtype), asked.batch
    length, keys, width, depth = asked.sizes
    blocks = _Blocks(backend, acc, length, keys)
    texts, types, args = asked.sides(known)

    def make() -> tuple[str, str, list[Any]]:
        name = asked.kernel_name("backward")
        text = render(
            "attention/backward",
            fn=name,
            parameters=texts,
            products=("set", "add"),
            MR=blocks.MR,
            **variables(asked, blocks.V),
        )
        return name, text, [*types, *[None] * 4, *[LONG] * 13, *[INT] * 16, SCALARS[acc]]

    kernel = built(backend, ("attention backward", *asked.key), make)
    le, lv, ls = blocks.width(width), blocks.width(depth), blocks.keys + PAD
    numbers = blocks.queries * (2 * le + lv + 2 * ls)
    numbers += blocks.keys * 2 * (le + lv) + (le + lv) * ls
    batches = numel(batch)
    work = batches * length * keys * 2 * (width + depth)
    # A task that computes both gradients takes five products; one task for each takes three and four, but gives more
    # tasks.
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
