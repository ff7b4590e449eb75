"""Launches and copies that a team runs one after the other by one call, any number of times.

Owns the memory of all their arguments, and the places in it that change from play to play. Must not know what a play is
for: recording.py and trace.py do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from cltensor.symbols import is_symbol, plain

from .kernel import Kernel, kinds
from .team_launch import Launch
from .team_layout import CONTEXT_GROUPS, JOB_A, JOB_B, JOB_GROUPS, JOB_WORDS, aligned_words

if TYPE_CHECKING:
    from .team import Team


class Command(NamedTuple):
    """A launch, or a copy between buffers if `kernel` is None."""

    kernel: Kernel | None
    global_size: tuple[int, ...]  # work-items
    local_size: tuple[int, ...]  # work-items of a work-group
    # Of the kernel; for a copy: destination, its offset, source, its offset, number of bytes. Offsets count bytes.
    args: Sequence[Any]


class Playlist:
    """Commands run by one call, with their own memory for all arguments.

    `symbols`: Symbols among the arguments, which `tell` replaces.
    """

    def __init__(self, team: Team, commands: Sequence[Command]) -> None:
        self._team = team
        jobs = aligned_words(JOB_WORDS * len(commands))
        self._jobs = memoryview(jobs).cast("B").cast("Q")  # type: ignore[arg-type]
        self._launches: list[Launch | None] = []
        self._copies: dict[int, list[Any]] = {}  # command -> the copy's arguments
        self.symbols: list[Any] = []
        self._set: list[Callable[[int], None]] = []  # for each symbol, what sets its number
        self.moves = False  # whether offsets of copies are among the symbols
        for i, command in enumerate(commands):
            job = jobs[JOB_WORDS * i : JOB_WORDS * (i + 1)]
            if command.kernel is None:
                job[:] = self._copy(i, command.args)
                self._launches.append(None)
            else:
                launch = self._launch(i, command.kernel, command)
                job[:] = launch.words[Launch.JOB : Launch.JOB + JOB_WORDS]
                self._launches.append(launch)
        self._address = jobs.ctypes.data
        # What team_run gets: the team, its members, the first job, how many.
        self._order = aligned_words(8)
        self._play = self._order.ctypes.data
        self._order[0:3] = [*team.base, self._address]
        self._order[3:5] = [self._play + 8 * 4, len(commands)]
        self._number = 0  # the last order that plays this list and may not be done; 0: none

    def _copy(self, number: int, args: Sequence[Any]) -> list[int]:
        """Return the job of a copy: a plain call of memmove."""
        dst, dst_offset, src, src_offset, nbytes = plain(args)
        self._copies[number] = kept = [None, dst_offset, None, src_offset]
        for k in (1, 3):
            self.moves |= self._if_symbol(args[k], partial(kept.__setitem__, k))
        place = JOB_WORDS * number + JOB_B + 1
        self._if_symbol(args[4], partial(self._jobs.__setitem__, place))
        return [
            self._team.memmove, dst.address + dst_offset, src.address + src_offset, nbytes, 0, 0
        ]  # fmt: skip

    def _launch(self, number: int, kernel: Kernel, command: Command) -> Launch:
        """Return the memory of a launch's arguments, set; what is a Symbol among them is entered in `symbols`."""
        assert kernel.function is not None
        types = kinds(kernel.arg_types)
        launch = Launch(self._team, kernel.function, types)
        size, local = command.global_size, command.local_size
        launch.set_sizes(kernel.name, plain(size), local)
        groups = [n // g for n, g in zip(size, local, strict=True)]
        for d, n in enumerate(groups):
            self._if_symbol(
                n, partial(launch.view.__setitem__, Launch.CONTEXT + CONTEXT_GROUPS + d)
            )
        if any(map(is_symbol, groups)):
            self._if_symbol(
                math.prod(groups), partial(self._jobs.__setitem__, JOB_WORDS * number + JOB_GROUPS)
            )
        words = launch.words
        for i, (kind, value) in enumerate(zip(types, command.args, strict=True)):
            if kind is None:
                words[Launch.ARGS + i] = value.address
            else:
                launch.put(i, kind, *plain([value]))
                put = partial(launch.put, i, kind)
                if kind == "<i8":  # the most frequent kind, which a memoryview sets faster
                    put = partial(launch.memory.cast("q").__setitem__, launch.numbers + i)
                self._if_symbol(value, put)
        return launch

    def _if_symbol(self, number: Any, put: Callable[[Any], None]) -> bool:
        """Return whether a number is a Symbol; if so, enter it in `symbols`, and `put` as what sets it."""
        if not is_symbol(number):
            return False
        self.symbols.append(number)
        self._set.append(put)
        return True

    def tell(self, numbers: Sequence[int]) -> None:
        """Set the numbers in the places of the symbols, in the order of `symbols`."""
        for put, number in zip(self._set, numbers, strict=True):
            put(number)

    def slot(self, command: int, index: int) -> tuple[Any, int, int]:
        """Return where the address of a command's buffer argument is kept: memory, the word in it, and the offset to
        add to the address.
        """
        launch = self._launches[command]
        if launch is not None:
            return launch.view, Launch.ARGS + index, 0
        return (
            self._jobs,
            JOB_WORDS * command + (JOB_B if index else JOB_A),
            self._copies[command][index + 1],
        )

    def put(self, command: int, index: int, kind: str, value: Any) -> None:
        """Set a number argument of a launch."""
        launch = self._launches[command]
        assert launch is not None
        launch.put(index, kind, value)

    def wait(self) -> None:
        """Return when no posted order plays this list any more; needed before any of its arguments is set."""
        if self._number:
            self._team.wait_for(self._number)
            self._number = 0

    def run(self) -> None:
        """Run the commands now; the team must have no unfinished orders."""
        team = self._team
        if team.idle:
            team.start()
        team.call(self._play, team.context)

    def post(self) -> None:
        """Post an order that runs the commands."""
        self._number = self._team.post(self._play, self)

    def run_one(self, command: int) -> None:
        """Run one of the commands alone."""
        order = self._order
        all_of_them = order[2:5].copy()
        order[2], order[4] = self._address + 8 * JOB_WORDS * command, 1
        self.run()
        order[2:5] = all_of_them
