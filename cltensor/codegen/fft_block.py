"""Shape of a GPU's Fourier transforms that hold their numbers in registers (fft_block.mako).

Owns how many lanes take a line, how many lines a group takes, how local memory lies between stages and the order of twiddles in
their table. It knows nothing of devices' memory, operands and launches (see fft.py).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

RADICES = frozenset((2, 3, 4, 5, 7, 8))  # whose butterflies are written out
SHORTEST = 16
GROUP = 128  # work-items that a group of short lines has about
WIDEST_GROUP = 512  # where lines lie side by side, so that enough of them are taken together
COLUMNS = 8  # lines side by side that are taken together, if they fit
LOCAL_BYTES = 40960
NUMBERS = (
    6,
    10,
    16,
)  # of a line that a lane holds: at least, at most, and at most where groups are small
BANKS = WARP = 32


class Stage(NamedTuple):
    """Radix, count of neighbours with equal twiddles, butterflies of a lane, and where powers 1, 2 and 4 of twiddles begin in the table."""

    r: int
    s: int
    per_lane: int
    twiddles: tuple[int, ...]


class Layout(NamedTuple):
    """Of number i of line b in local memory: `b * line + i * step`, and `pad` more after each `block` words of a line."""

    line: int
    step: int
    block: int
    pad: int
    words: int


class Shape(NamedTuple):
    """What fft_block.mako is rendered for."""

    lanes: int
    width: int
    stages: tuple[Stage, ...]
    layouts: tuple[Layout, ...]


def _lanes(n: int, radices: Sequence[int], most: int) -> int:
    """Return by how many lanes a line is taken so that few of them idle, 0 where they would have to hold too much."""
    least, usual, limit = NUMBERS
    cost = {}
    for lanes in range(-(-n // usual), min(most, n // least) + 1):
        width = max(GROUP // lanes, 1)
        warps = -(-lanes * width // WARP) / width
        cost[lanes] = warps * sum(-(-n // (r * lanes)) * r for r in radices)
    if cost:  # the nearest to 8 numbers a lane of the best
        best = min(cost.values())
        return min((x for x in cost if cost[x] == best), key=lambda x: abs(n - 8 * x))
    return most if n <= limit * most else 0


def _layout(
    n: int, lanes: int, width: int, wrote: tuple[int, int, bool], read_across: bool
) -> Layout:
    """Lay out what a stage wrote, runs of s numbers r * s apart: so that lanes of a warp meet in no bank, writing and reading."""
    s, r, across = wrote
    step = width if across and read_across else 1
    run = s * step
    padded = run < BANKS and run & (run - 1) == 0 and r % 2 == 0
    # Where a line has few lanes, its neighbours fill the banks between its own.
    block = 1 if not padded else run * r if lanes <= r and step == 1 else max(BANKS, run * r)
    pad = run if padded else 0
    words = n * step + n * step // block * pad
    if step > 1 or width == 1:
        return Layout(1 if step > 1 else words, step, block, pad, words)
    wish = max(1, BANKS // width) if read_across else lanes
    words += (wish - words) % BANKS
    return Layout(words, 1, block, pad, words * width)


@functools.lru_cache(maxsize=256)
def shape(
    n: int,
    radices: tuple[int, ...],
    across: bool,
    out_across: bool,
    pairs: bool,
    whole: bool,
    itemsize: int,
    max_group: int,
    local_mem: int,
) -> Shape | None:
    """Plan lines of length n; None where they are too short or too long, or a radix has no written butterfly.

    `pairs`, `whole`: halves of spectra are taken apart before the first stage, or joined after the last.
    """
    if n < SHORTEST or len(radices) < 2 or not RADICES.issuperset(radices):
        return None
    lanes = _lanes(n, radices, min(max_group, WIDEST_GROUP))
    if not lanes:
        return None
    stages, s, begin = [], 1, 0
    for r in radices:
        m = n // (s * r)
        powers = [power for power in (1, 2, 4) if power < r and m > 1]
        begins = tuple(begin + k * m for k in range(len(powers)))
        begin += len(powers) * m
        stages.append(Stage(r, s, -(-n // (r * lanes)), begins))
        s *= r
    wrote = [(BANKS, 1)] * pairs + [(st.s, st.r) for st in (stages if whole else stages[:-1])]
    aside = across or out_across
    most = max(min(max_group, WIDEST_GROUP) // lanes, 1)
    width = min(max(GROUP // lanes, COLUMNS if aside else 1), most)
    if aside:
        width = 1 << (width.bit_length() - 1)
    while width:
        layouts = tuple(
            _layout(n, lanes, width, (s, r, across if e == 0 else out_across), out_across)
            for e, (s, r) in enumerate(wrote)
        )
        if max(x.words for x in layouts) * 2 * itemsize <= min(local_mem, LOCAL_BYTES):
            return Shape(lanes, width, tuple(stages), layouts)
        width //= 2
    return None


def twiddles(shape: Shape, n: int) -> list[tuple[int, int, int]]:
    """For each part of the table: how many entries it has, and that of entry p is `p * power * s` of n turns."""
    return [
        (n // (st.s * st.r), 1 << k, st.s) for st in shape.stages for k in range(len(st.twiddles))
    ]
