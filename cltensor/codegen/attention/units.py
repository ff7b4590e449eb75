"""Attention of 16-bit floats on NVIDIA's matrix units (templates/attention/units.mako, units_back.mako).

Owns which calls take this schedule, and the launches. Knows nothing of the other schedules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ... import dtypes
from ...layouts import numel
from ..products import gemm_mma
from ..products.product import LONG, built, ceil_div
from ..source import render
from .asked import INT, Attention, room_of, variables

if TYPE_CHECKING:
    from ...runtime import Backend, Buffer
    from ..operand import Operand

BLOCK = 64  # rows of a work-group, and of a tile
ITEMS = 128  # lanes of a work-group
WIDEST = 128  # the widest head of which two tiles fit in 48 KiB of local memory
GROUPS = 1 << 20  # work-groups of a launch, at most
# Heads whose rows are taken together: the keys of more would not fit in the second-level cache.
BAND = 64
# Registers per work-item, at most, by kernel and room for a head's width: three work-groups then run at once on a unit.
REGISTERS = {("forward", 64): 168}


def takes(backend: Backend, asked: Attention) -> bool:
    """Return whether a call takes this schedule."""
    _, _, width, depth = asked.sizes
    halves = asked.q.dtype in (dtypes.bfloat16, dtypes.float16)
    return halves and max(width, depth) <= WIDEST and gemm_mma.multiplies(backend)


def _way(x: Operand) -> str:
    """Return how rows are read: "k" where they have unit stride and start at multiples of 8 elements, else "any"."""
    outside = [s for n, s in zip(x.shape[:-1], x.strides[:-1], strict=True) if n > 1]
    straight = x.strides[-1] == 1 and all(s % 8 == 0 for s in (x.offset, *outside))
    return "k" if straight else "any"


def _places(room: int, code: str) -> dict[str, Any]:
    """Return the template variables that address the numbers of a tile in local memory and read them."""
    return {
        "unit": lambda r, c: gemm_mma.unit(r, c, room // 8),
        "number": lambda r, c: gemm_mma.number(r, c, room // 8),
        "value": lambda pointer: gemm_mma.value(pointer, code),
        "code": code,
        "W": room,
    }


def _run(
    backend: Backend,
    kind: str,
    asked: Attention,
    known: dict[str, Operand],
    results: list[Operand],
    sums: Buffer | None = None,
) -> None:
    batch = asked.batch
    length, keys, width, depth = asked.sizes
    room = room_of(max(width, depth))
    named = {**asked.named, **known}
    ways = {name: _way(named[name]) for name in "qkvg" if name in named}
    texts, types, args = asked.sides(known)
    forward = kind == "forward"

    def make() -> tuple[str, str, list[Any], tuple[str, ...]]:
        twin = "_twin" if gemm_mma.TWIN else ""
        name = f"{asked.kernel_name(kind)}_units{room}{twin}_{'_'.join(ways.values())}"
        source = render(
            "attention/units" if forward else "attention/units_back",
            fn=name,
            kind=kind,
            BAND=BAND,
            ways=ways,
            direct=not gemm_mma.TWIN,
            units=gemm_mma.instructions(),
            parameters=[
                t.replace(" half *", " ushort *") if t.split("*")[-1] in ways else t for t in texts
            ],
            **_places(room, asked.q.dtype.code),
            **variables(asked, 8),
        )
        buffers = [None] * (len(results) + (sums is not None))
        cap = REGISTERS.get((kind, room), 0)
        options = backend.info.with_registers(cap) if cap else ()
        longs = [LONG] * (4 * len(results))
        return name, source, [*types, *buffers, *longs, *[INT] * (8 + forward), np.float32], options

    key = ("attention units", kind, *asked.key, room, *ways.values(), gemm_mma.TWIN)
    tasks = numel(batch) * ceil_div(keys if kind == "by_keys" else length, BLOCK)
    args += [x.buffer for x in results] + ([sums] if sums is not None else [])
    args += [s for x in results for s in x.strides[:4]]
    args += [*batch[1:], tasks, length, keys, width, depth, int(asked.causal)]
    if forward:  # the flag whether results may be stored two at a time
        args.append(int(depth % 2 == 0 and all(s % 2 == 0 for s in results[0].strides[:4])))
    args.append(asked.scale)
    products = {"forward": 2, "by_query": 3, "by_keys": 4}[kind]
    work = numel(batch) * length * keys * (width + depth)
    backend.launch(
        built(backend, key, make),
        (min(tasks, GROUPS) * ITEMS,),
        (ITEMS,),
        args,
        flops=products * work,
    )


def forward(backend: Backend, asked: Attention, out: Operand, lse: Buffer) -> None:
    """Compute the results and the log-sum-exp of each row's scores."""
    _run(backend, "forward", asked, {}, [out], lse)


def backward(
    backend: Backend,
    asked: Attention,
    known: dict[str, Operand],
    want_q: bool,
    want_k: bool,
    made: tuple[Operand, ...],
) -> None:
    """Compute the gradients of queries (`want_q`), and of keys and values (`want_k`), into `made`."""
    if want_q:
        _run(backend, "by_query", asked, known, [made[0]])
    if want_k:
        _run(backend, "by_keys", asked, known, list(made[1:]))
