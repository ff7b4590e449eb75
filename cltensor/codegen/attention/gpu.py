"""Attention on a GPU: a work-group takes a block of rows, or a single query and a part of the keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ...layouts import numel
from ..products.product import LONG, SCALARS, WIDE, accumulator, built, ceil_div
from ..source import render
from . import units
from .asked import FEW, INT, STEP, Attention, room_of, up, variables

if TYPE_CHECKING:
    from ...dtypes import dtype
    from ...runtime import Backend, Buffer
    from ..operand import Operand

WIDTH = 256  # the widest head that a work-group has local memory and registers for
FEW_KEYS = 128  # more keys than this are split among work-groups where there are only a few queries
REGISTERS = 128  # registers per work-item of a tile, at most: four work-groups then run at once
GROUPS = 4  # work-groups per compute unit that splitting the keys aims at
PARTS = 64  # parts of the keys, at most
GROUP = 128  # lanes of a work-group in the kernels without tiles


class _Tile(NamedTuple):
    """How a work-group divides a tile of scores: down x across lanes, each with rows x cols scores."""

    down: int  # lanes along the tile's rows
    across: int  # lanes along its columns
    rows: int  # of scores per lane
    cols: int  # of scores per lane
    shared: bool = False  # keys and values take turns in one tile of local memory

    def numbers(self, kind: str, width: int) -> int:
        """Return how many numbers of local memory the kernel of a kind takes, for heads of a width."""
        mine, others = self.down * self.rows, self.across * self.cols
        pitch, table = width + 4, mine * (others + 4)
        if kind != "forward":
            tables = 2 * table + 2 * others if kind == "by_keys" else table
            return 2 * (mine + others) * pitch + tables
        stats = mine * (self.across + 6)
        if self.shared:
            return (mine + others) * pitch + table + stats
        return (mine + others) * pitch + max(others * pitch, table + pitch) + stats


_SMALL = _Tile(8, 8, 2, 2)  # also for few rows
_TILES = {
    "forward": (_Tile(8, 16, 4, 4), _Tile(8, 16, 4, 4, True), _Tile(8, 16, 4, 2), _Tile(8, 16, 4, 2, True), _Tile(8, 8, 4, 4)),
    "by_query": (_Tile(8, 16, 4, 2), _Tile(8, 8, 4, 4)),
    "by_keys": (_Tile(8, 16, 4, 2), _Tile(8, 8, 4, 4)),
}  # fmt: skip


def _tile(backend: Backend, dt: dtype, kind: str, rows: int, room: int) -> _Tile:
    """Choose the largest tile for which there are enough local memory, lanes, rows and columns of results."""
    size = WIDE[accumulator(dt)].itemsize
    for tile in _TILES[kind]:
        fits = tile.numbers(kind, room) * size <= backend.info.local_mem
        if (
            fits
            and rows > _SMALL.down * _SMALL.rows
            and 4 * tile.across <= room
            and tile.down * tile.across <= backend.info.max_group
        ):
            return tile
    return _SMALL


def takes(backend: Backend, dt: dtype, width: int, depth: int) -> bool:
    """Return whether a kernel fits the device: heads `width` wide (queries and keys) and `depth` wide (values)."""
    room = room_of(max(width, depth))
    size = WIDE[accumulator(dt)].itemsize
    return room <= WIDTH and _SMALL.numbers("by_keys", room) * size <= backend.info.local_mem


def _run(
    backend: Backend,
    kind: str,
    asked: Attention,
    known: dict[str, Operand],
    results: list[Operand],
    lse: Buffer | None = None,
) -> None:
    """Launch one kernel of attention/gpu.mako: a work-group per block of queries, or of keys for "by_keys"."""
    acc, batch = accumulator(asked.q.dtype), asked.batch
    length, keys, width, depth = asked.sizes
    room, own = room_of(max(width, depth)), keys if kind == "by_keys" else length
    tile = _tile(backend, asked.q.dtype, kind, own, room)
    texts, types, args = asked.sides(known)

    def make() -> tuple[str, str, list[Any], tuple[str, ...]]:
        name = f"{asked.kernel_name(kind)}_gpu{room}"
        text = render(
            "attention/gpu",
            fn=name,
            kind=kind,
            parameters=texts,
            W=room,
            DOWN=tile.down,
            ACROSS=tile.across,
            R=tile.rows,
            C=tile.cols,
            shared=tile.shared,
            **variables(asked, 8),
        )
        numbers = [*[LONG] * (4 * len(results)), *[INT] * 11, SCALARS[acc]]
        buffers = len(results) + 2 * (kind == "forward")
        return (
            name,
            text,
            [*types, *[None] * buffers, *numbers],
            backend.info.with_registers(REGISTERS),
        )

    kernel = built(backend, ("attention gpu", kind, *asked.key, room, tile), make)
    batches = numel(batch)
    tasks = batches * ceil_div(own, tile.down * tile.rows)
    parts, part_keys, partial = 1, keys, results[0].buffer
    args += [x.buffer for x in results]
    if kind == "forward" and asked.ragged is None:
        step = tile.across * tile.cols
        wanted = min(GROUPS * backend.info.compute_units // tasks, keys // (4 * step))
        parts, part_keys = _parts(keys, step, wanted)
        if parts > 1:
            partial = _partial(backend, asked, parts)
    if kind == "forward":
        args += [lse, partial]
    args += [s for x in results for s in x.strides[:4]]
    args += [*batch[1:], batches, tasks * parts, parts, part_keys]
    args += [length, keys, width, depth, int(asked.causal), asked.scale]
    group = tile.down * tile.across
    groups = min(tasks * parts, 1 << 16)
    products = {"forward": 2, "by_query": 3, "by_keys": 4}[kind]
    work = batches * length * keys * (width + depth)
    backend.launch(kernel, (groups * group,), (group,), args, flops=work * products)
    if parts > 1 and lse is not None:
        _join(backend, asked, partial, parts, results[0], lse)


def _parts(keys: int, step: int, wanted: int) -> tuple[int, int]:
    """Split keys into about `wanted` parts of whole steps; return the number of parts and the keys in one."""
    part = up(ceil_div(keys, max(1, min(wanted, PARTS))), step)
    return ceil_div(keys, part), part


def _partial(backend: Backend, asked: Attention, parts: int) -> Buffer:
    """Allocate the partial results of all parts of the keys: per query a row of sums, largest score and denominator."""
    numbers = numel(asked.q.shape[:-1]) * parts * (asked.sizes[3] + 2)
    return backend.alloc(numbers * WIDE[accumulator(asked.q.dtype)].itemsize)


def _join(
    backend: Backend, asked: Attention, partial: Buffer, parts: int, out: Operand, lse: Buffer
) -> None:
    """Combine the partial results for parts of the keys into `out` and `lse`."""
    rows, depth = numel(asked.q.shape[:-1]), asked.sizes[3]
    group = min(GROUP, backend.info.max_group)

    def make() -> tuple[str, str, list[Any]]:
        name = f"attention_join_{asked.q.dtype.code}"
        text = render("attention/join", fn=name, GROUP=group, **variables(asked, 8))
        return name, text, [*[None] * 3, *[LONG] * 4, *[INT] * 2, LONG, *[INT] * 3]

    kernel = built(backend, ("attention join", *asked.key, group), make)
    args = [partial, out.buffer, lse, *out.strides[:4], *asked.batch[1:], rows, parts]
    args += [asked.sizes[0], depth]
    backend.launch(kernel, (up(rows * depth, group),), (group,), args)


def _few(backend: Backend, asked: Attention, out: Operand, lse: Buffer) -> None:
    """Compute attention with a work-group for each query and part of the keys, then combine the parts."""
    acc, batch = accumulator(asked.q.dtype), asked.batch
    length, keys, width, depth = asked.sizes
    room, group = room_of(max(width, depth)), min(GROUP, backend.info.max_group)
    texts, types, args = asked.sides()

    def make() -> tuple[str, str, list[Any]]:
        name = f"{asked.kernel_name('few')}_gpu{room}"
        text = render(
            "attention/few_gpu",
            fn=name,
            parameters=texts,
            BK=STEP,
            W=room,
            GROUP=group,
            **variables(asked, 8),
        )
        return name, text, [*types, None, *[INT] * 10, SCALARS[acc]]

    kernel = built(backend, ("attention few gpu", *asked.key, room, group), make)
    rows = numel(batch) * length
    wanted = 2 * GROUPS * backend.info.compute_units // rows
    parts, part_keys = _parts(keys, STEP, wanted)
    partial = _partial(backend, asked, parts)
    args += [partial, *batch[1:], rows * parts, parts, part_keys]
    args += [length, keys, width, depth, int(asked.causal), asked.scale]
    work = rows * keys * (width + depth)
    groups = min(rows * parts, 1 << 16)
    backend.launch(kernel, (groups * group,), (group,), args, flops=2 * work)
    _join(backend, asked, partial, parts, out, lse)


def forward(backend: Backend, asked: Attention, out: Operand, lse: Buffer) -> None:
    """Compute attention: `out`, and `lse`, the logarithm of each row's sum of exponentials, for the gradient."""
    length, keys, _, _ = asked.sizes
    if length <= FEW and keys > FEW_KEYS and asked.ragged is None:
        _few(backend, asked, out, lse)
    elif units.takes(backend, asked):
        units.forward(backend, asked, out, lse)
    else:
        _run(backend, "forward", asked, {}, [out], lse)


def backward(
    backend: Backend,
    asked: Attention,
    known: dict[str, Operand],
    want_q: bool,
    want_k: bool,
    made: tuple[Operand, ...],
) -> None:
    """Compute gradients of queries (`want_q`), of keys and values (`want_k`), into the operands `made`, from the `known` ones."""
    if units.takes(backend, asked):
        units.backward(backend, asked, known, want_q, want_k, made)
        return
    if want_q:
        _run(backend, "by_query", asked, known, [made[0]])
    if want_k:
        _run(backend, "by_keys", asked, known, list(made[1:]))
