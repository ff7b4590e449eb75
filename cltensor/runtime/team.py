"""A team of threads that runs PoCL's machine code instead of PoCL's queue: a launch is a function call.

Note [Team]. PoCL hands a launch to sleeping threads and wakes the caller when they are done, which takes 40 to 70 us,
where the kernel itself often takes five. But PoCL compiles a kernel to a plain function of (arguments, context,
work-group's index), in a shared library inside the program's binary, and on the "cpu" device buffers are memory of the
process. So the library is loaded and the function called directly. The calling thread and helper threads, which stay
awake for a while, divide the work-groups of a launch among them as OpenMP's teams do; each takes its own share first,
so that it finds in its cache what it wrote in the previous launch. If the caller runs on the processor to which a
helper is bound, that helper is bound to the free processor. A launch of one group costs a microsecond, since no helper
needs to be told. One call plays all launches of a recording.

A short launch is done when the call returns. A long one, or one behind unfinished ones, may be posted (`post`): it
becomes an order, which the first helper starts while the caller goes on with its Python. That costs some microseconds,
which a program that waits for each launch would lose: what is not long counts as long only if the host has not waited
since the launch before. Orders are done one after the other. A thread that waits for an order works on it, and starts
it if no helper has: waking a helper may take longer. The only host memory that an order reads is its own memory of
arguments, which is kept, and not set again, until the order is done. Buffers record which order used them last, as with
a queue (backend.py).

The team's loop and the calls themselves are kernels, too (cl_kernels/team.cl). All this works with PoCL 3 on Linux and
x86-64 only, where the layout of binaries and contexts is known; a probe verifies it. Everywhere else, and with
CLTENSOR_TEAM=0, launches go to the queue; sums may then be divided differently, because other drivers favour one
work-group for larger amounts of work.

Owns the threads and the orders posted to them. Must not know how a launch's arguments are laid out (team_launch.py) or
when a launch is made.
"""

from __future__ import annotations

import _thread
import contextlib
import ctypes
import itertools
import os
import platform
import sys
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cltensor.config import CONFIG
from cltensor.errors import debug_line

from .machine_code import Function
from .team_launch import Launch, binder
from .team_layout import (
    ALIGN,
    CLOSED,
    CONTEXT_GROUPS,
    CONTEXT_LOCAL,
    CONTEXT_WORDS,
    LAUNCH_ARGS,
    MEMBER_NEXT,
    MEMBER_PLACE,
    MEMBER_SEMAPHORE,
    MEMBER_THREAD,
    MEMBER_WORDS,
    NOWHERE,
    ORDERS,
    PROCESSORS,
    TEAM_BUSY,
    TEAM_CALLS,
    TEAM_DONE,
    TEAM_FLUSH,
    TEAM_HERE,
    TEAM_LOCAL_BYTES,
    TEAM_LOCALS,
    TEAM_MEMBERS,
    TEAM_PATIENCE,
    TEAM_PLACING,
    TEAM_SPARE,
    TEAM_WORDS,
    aligned_words,
)
from .threads import processors, wanted

if TYPE_CHECKING:
    from .platforms import DeviceInfo

PATIENCE = 1 << 14  # turns of spinning before a helper sleeps: 0.2 to 0.8 ms
# Bytes of memory traffic above which a launch is posted: LATER always, some 40 us; SOON if it is not the first since the
# host waited, some 10 us. PER_BYTE: arithmetic operations that count as one byte.
LATER, SOON, PER_BYTE = 3 << 18, 1 << 18, 6


def possible(info: DeviceInfo) -> bool:
    """Return whether a team is worth trying on a device: whether the format of its machine code is known here."""
    return (
        info.is_pocl
        and info.name.startswith("pthread-")
        and sys.platform == "linux"
        and platform.machine() == "x86_64"
        and sys.maxsize > 1 << 32
        and CONFIG.team
    )


def is_long(work: float, waited: bool) -> bool:
    """Return whether a launch of so much work (bytes) is to be posted; waited: whether the host has waited since the
    launch before.
    """
    return work > (LATER if waited else SOON)


class Team:
    """The threads of one backend, the calling thread included. The backend's lock guards it."""

    def __init__(self, machine_code: Callable[[str], Function], compute_units: int) -> None:
        """Load the team's own kernels by `machine_code`.

        RuntimeError where the probe fails or their format is unexpected.
        """
        self.size = max(1, min(compute_units, processors()))
        self._memory = aligned_words(TEAM_WORDS)
        self._members = aligned_words(MEMBER_WORDS * self.size)
        self._libc = ctypes.CDLL(None)
        waiting = ("sem_wait", "sem_post", "sched_yield")
        placing = ("sched_getcpu", "sched_setaffinity")
        self._memory[TEAM_CALLS : TEAM_CALLS + 3] = [self._address(name) for name in waiting]
        self._memory[TEAM_PLACING : TEAM_PLACING + 2] = [self._address(name) for name in placing]
        self._memory[TEAM_PATIENCE] = PATIENCE
        self._memory[TEAM_MEMBERS] = self.size
        self.memmove = self._address("memmove")
        self._local_memory = aligned_words(0)
        # A kernel's function also takes its group's index along x, y, z; team.cl's kernels are single groups and do not
        # read it.
        prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
        self.call = prototype(machine_code("team_run").address)
        self._post = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(
            machine_code("team_post").address
        )
        self._wait = prototype(machine_code("team_wait").address)
        self._help = prototype(machine_code("team_help").address)
        self.posted = 0  # orders posted so far
        # (number of an order, owner of the memory that the order reads), kept until the order is done.
        self._kept: deque[tuple[int, Any]] = deque()
        self._progress = memoryview(self._memory).cast("B").cast("q")  # type: ignore[arg-type]
        asked = aligned_words(8)  # the arguments of team_wait
        self._wait_args = asked.ctypes.data
        asked[0:3] = [*self.base, self._wait_args + 8 * 3]
        self._awaited = memoryview(asked).cast("B").cast("q")[3:]  # type: ignore[arg-type]
        self._own_context = _context()
        self.context = self._own_context.ctypes.data
        self._arguments: list[Any] = []  # the helpers' arguments, kept alive
        self.forget_helpers()
        self._probed = machine_code("team_probe")
        self.threads = 1
        self.probe()
        self.threads = wanted(self.size)

    def forget_helpers(self) -> None:
        """Reset the team so that new helpers start when needed: at first, and in a forked child, where the old threads
        do not exist.
        """
        self._memory[:TEAM_CALLS] = self._memory[TEAM_BUSY] = 0  # all orders are done before a fork
        self._memory[TEAM_HERE] = self._memory[TEAM_SPARE] = NOWHERE
        self._members[:] = 0
        self._members[MEMBER_NEXT::MEMBER_WORDS] = CLOSED
        self._arguments.clear()
        self.idle = self.size > 1  # there are to be helpers, and they have not been started

    def _address(self, name: str) -> int:
        return ctypes.cast(getattr(self._libc, name), ctypes.c_void_p).value or 0

    @property
    def base(self) -> tuple[int, int]:
        """The addresses of the team's and the members' structs."""
        return self._memory.ctypes.data, self._members.ctypes.data

    @property
    def threads(self) -> int:
        """How many threads may work on a launch."""
        return int(self._memory[TEAM_MEMBERS])

    @threads.setter
    def threads(self, count: int) -> None:
        self.finish()
        self._memory[TEAM_MEMBERS] = max(1, min(count, self.size))
        self.several = self.threads > 1

    def start(self) -> None:
        """Start the helper threads, unless `threads` is 1; called before the first launch of more than one group."""
        if self.threads == 1:
            return
        self.idle = False
        places = sorted(os.sched_getaffinity(0))
        # With a thread for every processor, each helper is bound to its own, because woken threads often land on the
        # caller's processor. The first processor is left to the caller; if the caller runs on another one, that one's
        # helper is bound to the free processor at the next launch.
        bound = len(places) == self.size and places[-1] < PROCESSORS
        if bound:
            self._memory[TEAM_SPARE] = places[0]
        semaphores = self._members.ctypes.data + 8 * MEMBER_SEMAPHORE
        for member in range(1, self.size):
            address = semaphores + 8 * MEMBER_WORDS * member
            self._libc.sem_init(ctypes.c_void_p(address), 0, 0)
            number = np.array([member], np.int64)
            args = np.array([*self.base, number.ctypes.data], np.uint64)
            try:
                place = places[member] if bound else None
                _thread.start_new_thread(self._live, (args.ctypes.data, member, place))
            except RuntimeError as error:
                debug_line(1, "no more than %d threads: %s", member, error)
                self.size = member
                self.threads = min(self.threads, member)
                break
            self._arguments.append((args, number))

    def _live(self, args: int, member: int, place: int | None) -> None:
        """Run a helper's thread: bind it to the processor `place`, if any, and work for ever."""
        if place is not None:
            with contextlib.suppress(OSError):
                os.sched_setaffinity(0, {place})
                words = self._members[MEMBER_WORDS * member :]
                words[MEMBER_PLACE], words[MEMBER_THREAD] = place, _thread.get_native_id()
                # The caller may have been on this processor before it was this helper's: look again at the next launch.
                self._memory[TEAM_HERE] = NOWHERE
        self._help(args, self.context)

    @property
    def places(self) -> dict[int, int]:
        """The processor that each bound helper runs on, by the native id of its thread."""
        members = self._members.reshape(-1, MEMBER_WORDS)[1:]
        return {int(m[MEMBER_THREAD]): int(m[MEMBER_PLACE]) for m in members if m[MEMBER_THREAD]}

    def local_places(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Return the offsets of local arrays of these sizes (bytes) in a member's local memory, after growing it if
        needed.
        """
        steps = [-(-size // ALIGN) * ALIGN for size in sizes]
        *places, total = itertools.accumulate(steps, initial=0)
        if total > self._memory[TEAM_LOCAL_BYTES]:
            self.finish()
            self._local_memory = aligned_words(total // 8 * self.size)
            self._memory[TEAM_LOCALS] = self._local_memory.ctypes.data
            self._memory[TEAM_LOCAL_BYTES] = total
        return tuple(places)

    def launcher(
        self, name: str, function: Function, types: tuple[str | None, ...]
    ) -> Callable[..., None]:
        """Return `run(args, global_size, local_size, later=False)`, which launches the kernel, and posts the launch if
        `later`.
        """
        if function.local_sizes and len(types) + len(function.local_sizes) > LAUNCH_ARGS:
            raise RuntimeError(f"more than {LAUNCH_ARGS} arguments and local arrays")
        return binder(types)(name, Launch(self, function, types), self)

    def post(self, address: int, owner: Any) -> int:
        """Post an order for the jobs at `address` (arguments as `call` takes them) and return the order's number.

        The memory at `address` must not change until the order is done; its `owner` is kept alive so long.
        """
        if self.idle:
            self.start()
        kept, done = self._kept, self._progress[TEAM_DONE]
        if self.posted - done >= ORDERS:
            self.wait_for(self.posted - ORDERS // 2)
            done = self._progress[TEAM_DONE]
        while kept and kept[0][0] <= done:
            kept.popleft()
        self.posted = number = self.posted + 1
        kept.append((number, owner))
        self._post(address, self.context)
        return number

    def wait_for(self, orders: int) -> None:
        """Return when the first `orders` orders are done; the caller takes part in what is left of them."""
        if self._progress[TEAM_DONE] < orders:
            self._awaited[0] = orders
            self._wait(self._wait_args, self.context)

    def finish(self) -> None:
        """Return when all posted orders are done."""
        self.wait_for(self.posted)

    @property
    def patience(self) -> int:
        """How many turns a helper spins, waiting for work, before it sleeps."""
        return int(self._memory[TEAM_PATIENCE])

    @patience.setter
    def patience(self, turns: int) -> None:
        self._memory[TEAM_PATIENCE] = turns

    @property
    def flush_denormal(self) -> bool:
        """Whether kernels treat denormal operands and results as zeros."""
        return bool(self._memory[TEAM_FLUSH])

    @flush_denormal.setter
    def flush_denormal(self, wanted: bool) -> None:
        self.finish()
        self._memory[TEAM_FLUSH] = wanted

    def probe(self) -> None:
        """Launch a kernel over all three dimensions.

        RuntimeError if its arguments, ids or sizes do not arrive as intended.
        """
        groups, local = (3, 2, 2), (1, 1, 1)
        out = np.zeros((2, 2, 3, 4), np.int64)
        run = self.launcher("team_probe", self._probed, (None, "<i8", "<f4"))
        run((_Memory(out.ctypes.data), 7, 2.0), groups, local)
        z, y, x = np.meshgrid(range(2), range(2), range(3), indexing="ij")
        wanted = [i + 100 * n + 10000 for i, n in zip((x, y, z), groups, strict=True)]
        if not np.array_equal(out, np.stack([*wanted, np.full_like(x, 9)], -1)):
            raise RuntimeError("kernels are told other things than we know of")


class _Memory(NamedTuple):
    """Stands in for a Buffer as a kernel's argument: memory of the host at an address."""

    address: int


def _context() -> np.ndarray:
    words = aligned_words(CONTEXT_WORDS)
    words[CONTEXT_GROUPS : CONTEXT_GROUPS + 3] = words[CONTEXT_LOCAL : CONTEXT_LOCAL + 3] = 1
    return words
