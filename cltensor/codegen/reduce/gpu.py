"""How a GPU's work-groups divide reductions, and kernels that pass over rows several times.

A group has `across` lanes along outputs times `along` lanes along an output's elements; neighbouring lanes lie along the
dim that is contiguous in memory. Lanes along the elements are merged in local memory. Where outputs are few, each is cut
into parts for several groups, which a second launch merges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .prologue import Split

if TYPE_CHECKING:
    from ...runtime import DeviceInfo

GROUP = 128  # lanes of a work-group where more are not needed
LANES = 2048  # lanes per compute unit that keep memory busy
# Lanes of the largest work-groups, half as many for states of 8-byte numbers: more would leave a lane too few
# registers.
WIDE = 1024
COLUMNS = 32  # neighbouring outputs that a group reads, at most: whole cache lines
STRIP = 8  # neighbouring outputs of a group, at least, where wider strips would make too few groups
AT_ONCE = 8  # elements that a lane reads before it adds the first
# Lanes along an output, at least; and how many contiguous elements an output has at least for lanes to lie along it.
LEAST = 16
# Elements per lane up to which one group per output takes less time than parts and a second launch.
ALONE = 64
PARTED = 512  # lanes of a group that reduces a part
# Registers that a lane of the largest groups has for a row's elements; lanes of smaller groups have twice as many.
HELD = 16


class Division(NamedTuple):
    """How a reduction is divided among work-groups of across x along lanes."""

    across: int  # outputs that a group takes at a time
    along: int  # lanes that share the elements of an output
    groups: int
    parts: int  # into which the elements of an output are divided, among groups
    pchunk: int  # elements of a part
    narrow: bool  # positions fit 32 bits

    @property
    def group(self) -> int:
        """Lanes of a group."""
        return self.across * self.along


def power(n: int) -> int:
    """Return the least power of two that is not less than n."""
    return 1 << max(0, n - 1).bit_length()


def largest(info: DeviceInfo, size: int, wide: bool = False) -> int:
    """Return how many lanes a group may have if each needs `size` bytes of local memory; `wide`: of 8-byte numbers."""
    most = min(info.max_group, WIDE >> wide, info.local_mem // (2 * size))
    return max(1, 1 << (most.bit_length() - 1))


def divide(
    info: DeviceInfo, cut: Split, row: bool, size: int, wide: bool, parts: int | None = None
) -> Division:
    """Divide a reduction with states of `size` bytes; `row`: an output's elements are contiguous, else outputs are."""
    nout, nred, most = cut.nout, max(cut.nred, 1), largest(info, size, wide)
    wanted, least = info.compute_units * LANES, min(GROUP, most)
    if row:
        across, along = 1, min(max(power(-(-nred // AT_ONCE)), LEAST), least)
        enough = wanted // 2
    else:
        across, along = min(power(nout), COLUMNS, most), 1
        enough = wanted * 3 // 8
    while across * along < most and nred > along * AT_ONCE and nout * along < enough:
        along *= 2
    if nout * along >= enough or nred <= along * ALONE:
        wanted_parts = 1
        # Where there is little work, narrower strips make more groups.
        while not row and across > STRIP and nout * along < enough and nred > along * AT_ONCE:
            across, along = across // 2, along * 2
    else:
        along = max(1, min(PARTED // 2 if row else PARTED, most) // across)
        wanted_parts = max(1, min(wanted // (nout * along), nred // (along * AT_ONCE * 2)))
    across = max(across, least // along)
    wanted_parts = max(parts or wanted_parts, -(-nred // (1 << 30)))
    pchunk = -(-nred // wanted_parts)
    if pchunk >= along * AT_ONCE * 4:
        pchunk = -(-pchunk // (along * AT_ONCE)) * along * AT_ONCE
    parts = -(-nred // pchunk)
    groups = min(-(-nout // across) * parts, info.compute_units * 128)
    return Division(across, along, groups, parts, pchunk, max(nred, nout * parts) <= 1 << 30)


def divide_merge(info: DeviceInfo, nout: int, parts: int, size: int) -> Division:
    """Divide the merging of parts, which are stored part-major: a lane gets a few parts of an output."""
    most = min(largest(info, size), PARTED)  # merging states takes many registers
    along = min(max(power(-(-parts // 4)), min(power(parts), LEAST) if nout < GROUP else 1), most)
    across = min(power(nout), max(1, min(GROUP, most) // along))
    groups = min(-(-nout // across), info.compute_units * 128)
    return Division(across, along, groups, 1, parts, nout * parts <= 1 << 30)


class Rows(NamedTuple):
    """How a kernel over rows is divided among work-groups of across x along lanes."""

    across: int  # rows that a group takes at a time
    along: int  # lanes that share the elements of a row
    groups: int
    held: int  # elements that a lane keeps in registers; 0 if each pass reads them again
    narrow: bool  # positions fit 32 bits


def divide_rows(
    info: DeviceInfo, cut: Split, row: bool, size: int, wide: bool, words: int, most_held: int
) -> Rows:
    """Divide a kernel that passes over rows several times.

    `size`: bytes of local memory per lane; `wide`: of 8-byte numbers; `words`: registers per element that a lane keeps;
    `most_held`: elements that a lane may keep, at most.
    """
    nout, nred, most = cut.nout, cut.nred, largest(info, size, wide)
    needed = power(-(-nred // AT_ONCE))
    if row:
        across, along = 1, min(max(needed, min(LEAST, power(-(-nred // 2)))), most)
        while nout * along < info.compute_units * LANES // 8 and nred > along * 4 and along < most:
            along *= 2
    else:
        across = min(power(nout), COLUMNS, most)
        along = min(needed, most // across)
        # Where there are few rows, narrower strips make more groups.
        while across > STRIP and nred > along * AT_ONCE and nout < info.compute_units * across:
            across, along = across // 2, along * 2
    group = max(across * along, min(GROUP, most))
    held = -(-nred // along)
    if held > most_held or held * words > (HELD if group > PARTED else 2 * HELD):
        held = 0
    groups = min(-(-nout * along // group), info.compute_units * 128)
    return Rows(group // along, along, groups, held, nout * nred <= 1 << 30)
