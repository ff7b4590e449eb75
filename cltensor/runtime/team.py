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

Owns the threads, the loaded functions and how arguments are laid out for them. Must not know when a launch is made.
"""

from __future__ import annotations

import _thread
import contextlib
import ctypes
import functools
import itertools
import math
import os
import platform
import struct
import sys
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cltensor.config import CONFIG
from cltensor.errors import debug_line
from cltensor.symbols import is_symbol, plain

from .machine_code import Function
from .program import Kernel, kinds, plain_numbers
from .threads import processors, wanted

if TYPE_CHECKING:
    from .backend import Backend

PATIENCE = 1 << 14  # turns of spinning before a helper sleeps: 0.2 to 0.8 ms
# Bytes of memory traffic above which a launch is posted: LATER always, some 40 us; SOON if it is not the first since the
# host waited, some 10 us. PER_BYTE: arithmetic operations that count as one byte.
LATER, SOON, PER_BYTE = 3 << 18, 1 << 18, 6
# The kernels of team.cl and their numbers of arguments.
CODE = {"team_run": 4, "team_post": 4, "team_wait": 3, "team_help": 3, "team_probe": 3}
_ALIGN = 128  # bytes; the alignment of local arrays
_MOST_ARGS = 96  # LAUNCH_ARGS in team.cl
_CLOSED = 1 << 62  # CLOSED in team.cl: no portions to take
_PROCESSORS = 1024  # PROCESSORS in team.cl
_NOWHERE = (1 << 64) - 1  # -1

# Offsets of fields in 8-byte words, as team.cl's structs have them: of `struct team`, `struct member`, `struct job`.
_CALLS, _PATIENCE, _MEMBERS, _LOCALS, _LOCAL_BYTES = 24, 27, 28, 29, 30
_PLACING, _HERE, _SPARE, _FLUSH, _DONE, _BUSY, _TEAM_WORDS = 31, 33, 34, 51, 64, 65, 200
_ORDERS = 64  # ORDERS in team.cl
_THREAD, _PLACE, _SEMAPHORE, _NEXT, _MEMBER_WORDS = 1, 2, 8, 16, 120
_FUNCTION, _A, _B, _GROUPS, _LOCAL_PLACES, _JOB_WORDS = 0, 1, 2, 4, 5, 6
# Offsets in PoCL's context, by which a kernel learns its launch's number of groups, global offset and local size along
# each dimension; the rest of the context is for printf.
_GROUPS_THERE, _LOCAL_THERE, _CONTEXT_WORDS = 0, 6, 16


def possible(backend: Backend) -> bool:
    """Return whether a team is worth trying for the backend's device: whether this module knows the format of its
    machine code.
    """
    info = backend.info
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
        self._memory = _words(_TEAM_WORDS)
        self._members = _words(_MEMBER_WORDS * self.size)
        self._libc = ctypes.CDLL(None)
        waiting = ("sem_wait", "sem_post", "sched_yield")
        placing = ("sched_getcpu", "sched_setaffinity")
        self._memory[_CALLS : _CALLS + 3] = [self._address(name) for name in waiting]
        self._memory[_PLACING : _PLACING + 2] = [self._address(name) for name in placing]
        self._memory[_PATIENCE] = PATIENCE
        self._memory[_MEMBERS] = self.size
        self._memmove = self._address("memmove")
        self._local_memory = _words(0)
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
        asked = _words(8)  # the arguments of team_wait
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
        self._memory[:_CALLS] = self._memory[_BUSY] = 0  # all orders are done before a fork
        self._memory[_HERE] = self._memory[_SPARE] = _NOWHERE
        self._members[:] = 0
        self._members[_NEXT::_MEMBER_WORDS] = _CLOSED
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
        return int(self._memory[_MEMBERS])

    @threads.setter
    def threads(self, count: int) -> None:
        self.finish()
        self._memory[_MEMBERS] = max(1, min(count, self.size))
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
        bound = len(places) == self.size and places[-1] < _PROCESSORS
        if bound:
            self._memory[_SPARE] = places[0]
        semaphores = self._members.ctypes.data + 8 * _SEMAPHORE
        for member in range(1, self.size):
            address = semaphores + 8 * _MEMBER_WORDS * member
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
                words = self._members[_MEMBER_WORDS * member :]
                words[_PLACE], words[_THREAD] = place, _thread.get_native_id()
                # The caller may have been on this processor before it was this helper's: look again at the next launch.
                self._memory[_HERE] = _NOWHERE
        self._help(args, self.context)

    @property
    def places(self) -> dict[int, int]:
        """The processor that each bound helper runs on, by the native id of its thread."""
        members = self._members.reshape(-1, _MEMBER_WORDS)[1:]
        return {int(m[_THREAD]): int(m[_PLACE]) for m in members if m[_THREAD]}

    def local_places(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Return the offsets of local arrays of these sizes (bytes) in a member's local memory, after growing it if
        needed.
        """
        steps = [-(-size // _ALIGN) * _ALIGN for size in sizes]
        *places, total = itertools.accumulate(steps, initial=0)
        if total > self._memory[_LOCAL_BYTES]:
            self.finish()
            self._local_memory = _words(total // 8 * self.size)
            self._memory[_LOCALS] = self._local_memory.ctypes.data
            self._memory[_LOCAL_BYTES] = total
        return tuple(places)

    def launcher(
        self, name: str, function: Function, types: tuple[str | None, ...]
    ) -> Callable[..., None]:
        """Return `run(args, global_size, local_size, later=False)`, which launches the kernel, and posts the launch if
        `later`.
        """
        if function.local_sizes and len(types) + len(function.local_sizes) > _MOST_ARGS:
            raise RuntimeError(f"more than {_MOST_ARGS} arguments beside local arrays")
        return _bound(types)(name, Launch(self, function, types), self)

    def post(self, address: int, owner: Any) -> int:
        """Post an order for the jobs at `address` (arguments as `call` takes them) and return the order's number.

        The memory at `address` must not change until the order is done; its `owner` is kept alive so long.
        """
        if self.idle:
            self.start()
        kept, done = self._kept, self._progress[_DONE]
        if self.posted - done >= _ORDERS:
            self.wait_for(self.posted - _ORDERS // 2)
            done = self._progress[_DONE]
        while kept and kept[0][0] <= done:
            kept.popleft()
        self.posted = number = self.posted + 1
        kept.append((number, owner))
        self._post(address, self.context)
        return number

    def wait_for(self, orders: int) -> None:
        """Return when the first `orders` orders are done; the caller takes part in what is left of them."""
        if self._progress[_DONE] < orders:
            self._awaited[0] = orders
            self._wait(self._wait_args, self.context)

    def finish(self) -> None:
        """Return when all posted orders are done."""
        self.wait_for(self.posted)

    def playlist(self, commands: Sequence[Command]) -> Playlist:
        """Return a Playlist, which runs these commands one after the other, any number of times."""
        return Playlist(self, self._memmove, commands)

    @property
    def patience(self) -> int:
        """How many turns a helper spins, waiting for work, before it sleeps."""
        return int(self._memory[_PATIENCE])

    @patience.setter
    def patience(self, turns: int) -> None:
        self._memory[_PATIENCE] = turns

    @property
    def flush(self) -> bool:
        """Whether kernels treat denormal operands and results as zeros."""
        return bool(self._memory[_FLUSH])

    @flush.setter
    def flush(self, wanted: bool) -> None:
        self.finish()
        self._memory[_FLUSH] = wanted

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


# --- arguments ----------------------------------------------------------------------------------


class Launch:
    """Memory for the launches of one kernel: the arguments of team_run, the job, its context, its arguments.

    Layout in 8-byte words: team_run's four arguments, the count of jobs (the fourth points at it), three unused; the
    job; the context; a pointer for each argument; the numbers to which pointers of number arguments point; the offsets
    of local arrays.
    """

    JOB = 8
    CONTEXT = JOB + _JOB_WORDS
    ARGS = CONTEXT + _CONTEXT_WORDS

    def __init__(self, team: Team, function: Function, types: tuple[str | None, ...]) -> None:
        count = len(types)
        self.numbers = scalars = self.ARGS + count
        places = scalars + count
        self.words = words = _words(places + 2 + len(function.local_sizes))
        self.memory = memoryview(words).cast("B")  # type: ignore[arg-type]
        self.view = self.memory.cast("Q")  # a memoryview, because numpy takes longer to set a word
        base = self.address = words.ctypes.data
        words[0:5] = [*team.base, base + 8 * self.JOB, base + 8 * 4, 1]
        job = self.JOB
        words[job + _FUNCTION] = function.address
        words[job + _A] = base + 8 * self.ARGS
        words[job + _B] = base + 8 * self.CONTEXT
        # Addresses of the numbers, one for each argument (a buffer's is unused).
        self.scalars = [base + 8 * (scalars + i) for i in range(count)]
        words[self.ARGS : self.ARGS + count] = self.scalars
        self.locals = 0
        if function.local_sizes:
            found = team.local_places(function.local_sizes)
            words[places : places + 2 + len(found)] = [count, len(found), *found]
            self.locals = base + 8 * places
        words[job + _LOCAL_PLACES] = self.locals

    def put(self, index: int, kind: str, value: Any) -> None:
        """Set one number argument."""
        place = self.scalars[index] - self.address
        struct.pack_into("=" + CODES[kind[1:]], self.memory, place, value)

    def set_sizes(
        self, name: str, global_size: tuple[int, ...], local_size: tuple[int, ...] | None
    ) -> int:
        """Set numbers of groups and local sizes; return the total of groups.

        RuntimeError if the global size is not a multiple.
        """
        groups, local, left = _grid(global_size, local_size or (1,) * len(global_size))
        if left:
            raise RuntimeError(
                f"{name}, launched with {global_size} in groups of {local_size}: not a multiple"
            )
        for i, (n, m) in enumerate(zip(groups, local, strict=True)):
            self.view[self.CONTEXT + _GROUPS_THERE + i] = n
            self.view[self.CONTEXT + _LOCAL_THERE + i] = m
        self.view[self.JOB + _GROUPS] = count = math.prod(groups)
        return count


CODES = {
    "b1": "?", "i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I",
    "i8": "q", "u8": "Q", "f2": "e", "f4": "f", "f8": "d",
}  # fmt: skip


@functools.cache
def _bound(types: tuple[str | None, ...]) -> Callable[..., Callable[..., None]]:
    """Return `bind(name, launch, team)`, which returns `run(args, global_size, local_size, later)` for a kernel with
    such arguments.

    The source is generated, because `run` is most of a small launch's time: a loop over the arguments would cost more
    than the call. Sizes stay set from launch to launch, and so do the pointers to numbers.
    """
    numbers = [i for i, kind in enumerate(types) if kind is not None]
    places = "; ".join(
        f"words[{Launch.ARGS + i}] = a{i}.address" for i, kind in enumerate(types) if kind is None
    )
    code = "="
    for kind in types:
        letter = "" if kind is None else CODES[kind[1:]]
        code += f"{letter}{8 - struct.calcsize('=' + letter)}x"
    values = "".join(f", a{i}" for i in numbers)
    text = f"""
def bind(name, launch, team):
    memory, words, address, call, context = launch.memory, launch.view, launch.address, team.call, team.context
    size, local, groups, order = None, None, 0, 0
    def run(args, global_size, local_size, later=False, repaired=False):
        nonlocal size, local, groups, order
        if order:
            team.wait_for(order)
            order = 0
        try:
            {"".join(f"a{i}, " for i in range(len(types))) + "= args" if types else "pass"}
            {places or "pass"}
            {f"pack_into(memory, {8 * (Launch.ARGS + len(types))}{values})" if numbers else "pass"}
        except Exception as error:
            if repaired:
                raise
            return run(plain_numbers(name, types, args, error), global_size, local_size, later, True)
        if (global_size is not size and global_size != size) or local_size != local:
            groups = launch.set_sizes(name, global_size, local_size)
            size, local = global_size, local_size
        if later:
            order = team.post(address, launch)
            return
        if groups > 1 and team.idle:
            team.start()
        call(address, context)
    return run
"""
    namespace: dict[str, Any] = {
        "pack_into": struct.Struct(code).pack_into, "plain_numbers": plain_numbers, "types": types,
    }  # fmt: skip
    exec(text, namespace)
    made: Callable[[str, Launch, Team], Callable[..., None]] = namespace["bind"]
    return made


def _grid(size: tuple[int, ...], group: tuple[int, ...]) -> tuple[list[int], list[int], int]:
    """Return number of groups and local size, each along three dimensions, and the sum of the remainders."""
    pairs = [divmod(n, g) for n, g in zip(size, group, strict=True)]
    fill = [1] * (3 - len(pairs))
    return [n for n, _ in pairs] + fill, [*group, *fill], sum(left for _, left in pairs)


def _context() -> np.ndarray:
    words = _words(_CONTEXT_WORDS)
    words[_GROUPS_THERE : _GROUPS_THERE + 3] = words[_LOCAL_THERE : _LOCAL_THERE + 3] = 1
    return words


def _words(count: int) -> np.ndarray:
    """Return `count` zeroed 8-byte words, aligned to `_ALIGN` bytes."""
    raw = np.zeros(count + _ALIGN // 8, np.uint64)
    start = -(raw.ctypes.data // 8) % (_ALIGN // 8)
    return raw[start : start + count]


# --- recordings ---------------------------------------------------------------------------------


class Command(NamedTuple):
    """A launch, or a copy between buffers if `kernel` is None."""

    kernel: Kernel | None
    global_size: tuple[int, ...]  # work-items
    local_size: tuple[int, ...]  # work-items of a work-group
    # Of the kernel; for a copy: destination, its offset, source, its offset, the number of bytes (offsets count bytes,
    # too).
    args: Sequence[Any]


class Playlist:
    """Commands run by one call, with their own memory for all arguments.

    `symbols`: Symbols among the arguments, which `tell` replaces.
    """

    def __init__(self, team: Team, memmove: int, commands: Sequence[Command]) -> None:
        self._team = team
        jobs = _words(_JOB_WORDS * len(commands))
        self._jobs = memoryview(jobs).cast("B").cast("Q")  # type: ignore[arg-type]
        self._launches: list[Launch | None] = []
        self._copies: dict[int, list[Any]] = {}  # command -> the copy's arguments
        self.symbols: list[Any] = []
        self._set: list[Callable[[int], None]] = []  # for each symbol, what sets its number
        self.moves = False  # whether offsets of copies are among the symbols
        for i, command in enumerate(commands):
            job = jobs[_JOB_WORDS * i : _JOB_WORDS * (i + 1)]
            if command.kernel is None:
                dst, dst_offset, src, src_offset, nbytes = plain(command.args)
                job[:] = [memmove, dst.address + dst_offset, src.address + src_offset, nbytes, 0, 0]
                self._copies[i] = args = [None, dst_offset, None, src_offset]
                for k in (1, 3):
                    self.moves |= self._open(command.args[k], partial(args.__setitem__, k))
                self._open(
                    command.args[4], partial(self._jobs.__setitem__, _JOB_WORDS * i + _B + 1)
                )
                self._launches.append(None)
            else:
                launch = self._launch(i, command.kernel, command)
                job[:] = launch.words[Launch.JOB : Launch.JOB + _JOB_WORDS]
                self._launches.append(launch)
        self._address = jobs.ctypes.data
        self._order = _words(
            8
        )  # what team_run gets: the team, its members, the first job, how many
        self._play = self._order.ctypes.data
        self._order[0:3] = [*team.base, self._address]
        self._order[3:5] = [self._play + 8 * 4, len(commands)]
        self._number = 0  # the last order that plays this list and may not be done; 0: none

    def _launch(self, number: int, kernel: Kernel, command: Command) -> Launch:
        assert kernel.function is not None
        types = kinds(kernel.arg_types)
        launch = Launch(self._team, kernel.function, types)
        size, local = command.global_size, command.local_size
        launch.set_sizes(kernel.name, plain(size), local)
        groups = [n // g for n, g in zip(size, local, strict=True)]
        for d, n in enumerate(groups):
            self._open(n, partial(launch.view.__setitem__, Launch.CONTEXT + _GROUPS_THERE + d))
        if any(map(is_symbol, groups)):
            self._open(
                math.prod(groups), partial(self._jobs.__setitem__, _JOB_WORDS * number + _GROUPS)
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
                self._open(value, put)
        return launch

    def _open(self, number: Any, put: Callable[[Any], None]) -> bool:
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
            _JOB_WORDS * command + (_B if index else _A),
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
        order[2], order[4] = self._address + 8 * _JOB_WORDS * command, 1
        self.run()
        order[2:5] = all_of_them
