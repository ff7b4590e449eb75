"""Shape of a GPU's Fourier transforms that hold their numbers in registers (fft/block.mako).

Owns how many lanes take a line, how many lines a work-group takes, the layout of local memory between stages and the
order of twiddle factors in their table. Knows nothing of devices' memory, operands and launches (see fft.py).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

RADICES = frozenset((2, 3, 4, 5, 7, 8))  # those with a butterfly in the template
SHORTEST = 16  # shortest line
GROUP = 128  # lanes of a work-group, about, where lines are short
WIDEST_GROUP = 512  # lanes of a work-group, at most: room for several neighbouring lines
# Neighbouring lines that a work-group takes together where memory is contiguous across lines, if they fit.
COLUMNS = 8
LOCAL_BYTES = 40960  # local memory of a work-group, at most
# Numbers of a line that a lane holds: at least, at most, and at most where a work-group's size limits the lanes.
NUMBERS = (6, 10, 16)
BANKS = WARP = 32  # banks of local memory, lanes of a warp


class Stage(NamedTuple):
    """A Stockham stage."""

    r: int  # radix
    s: int  # neighbouring butterflies that have the same twiddle factors: the product of the radices before
    per_lane: int  # butterflies of a lane
    # Where powers 1, 2 and 4 of the stage's twiddle factors begin in their table.
    twiddles: tuple[int, ...]


class Layout(NamedTuple):
    """Local memory between two stages: number i of line b is at `b * line + i * step`, padding not counted."""

    line: int
    step: int
    block: int  # words of a line after which padding follows
    pad: int  # words of padding after each block
    words: int  # in all


class Shape(NamedTuple):
    """What fft/block.mako is rendered for."""

    lanes: int  # that share a line
    width: int  # lines of a work-group
    stages: tuple[Stage, ...]
    # Of local memory, for each exchange between lanes: those between stages, and those for half spectra.
    layouts: tuple[Layout, ...]


def _lanes(n: int, radices: Sequence[int], most: int) -> int:
    """Return how many lanes take a line, such that few of them idle; 0 where each would hold too many numbers."""
    least, usual, limit = NUMBERS
    cost = {}
    for lanes in range(-(-n // usual), min(most, n // least) + 1):
        width = max(GROUP // lanes, 1)
        warps = -(-lanes * width // WARP) / width
        cost[lanes] = warps * sum(-(-n // (r * lanes)) * r for r in radices)
    if cost:  # of the best, the one nearest to 8 numbers per lane
        best = min(cost.values())
        return min((x for x in cost if cost[x] == best), key=lambda x: abs(n - 8 * x))
    return most if n <= limit * most else 0


def _layout(
    n: int, lanes: int, width: int, wrote: tuple[int, int, bool], read_across: bool
) -> Layout:
    """Return the layout of what a stage writes, runs of s numbers r * s apart, in local memory.

    It is padded such that the lanes of a warp meet no bank conflicts, neither writing nor reading. `wrote` is (s, r,
    whether neighbouring lanes take neighbouring lines).
    """
    s, r, across = wrote
    step = width if across and read_across else 1
    run = s * step
    padded = run < BANKS and run & (run - 1) == 0 and r % 2 == 0
    # Where a line has few lanes, a warp also holds lanes of its neighbours, which use the banks between.
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
    """Return the shape of a transform of lines of length n; None where n is too short or long.

    Also None where a radix has no butterfly in the template. `across`, `out_across`: neighbouring lanes read, or
    write, neighbouring lines. `pairs`: a half spectrum is split before the first stage; `whole`: one is joined after
    the last (transforms to and from real numbers).
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
    """Return (entries, power, s) for each part of the table of twiddle factors.

    Entry p of a part is exp(-2 pi i p * power * s / n).
    """
    return [
        (n // (st.s * st.r), 1 << k, st.s) for st in shape.stages for k in range(len(st.twiddles))
    ]
