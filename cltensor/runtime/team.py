"""A team of threads that runs the machine code PoCL made, in the place of PoCL's queue: a launch is a function call.

Note [Team]. PoCL hands a launch to threads that sleep, and wakes the caller when they are done: 40 to 70 us, where the
kernel often takes five. But what it compiles is a plain function of (arguments, context, group's place), in a shared
library inside of the program's binary, and on the "cpu" device buffers are memory of the process. So we load the
library and call it: the calling thread and helpers, which stay awake for a while, take the groups of a launch between
them, as OpenMP's teams do: each its own share first, so that it finds in its cache what it wrote in the launch before.
A helper that is bound to the processor where the caller runs is bound to the free one. One of a single group costs a
microsecond, as there is nobody to tell. A recording is played by one call for all of its launches.

A launch that is short is done when it returns. One that is long, or comes behind such, may be left to do (`post`): an order,
which the first helper begins while the caller goes on with its Python. Orders are done one after the other. Who waits for one
takes part in what is done, and begins what nobody has begun, for to wake a helper may take longer. What an order reads of the
host's is its own memory of arguments, which is not set again before the order is done, and kept until then. Buffers say
which order used them last, as with a queue (backend.py).

The loop of a team and the calls themselves are a kernel, too (cl_kernels/team.cl). PoCL 3, Linux and x86-64 only, where
the layout of its binaries and contexts is known; a probe says whether it is as we know it. Everywhere else, and with
CLTENSOR_TEAM=0, launches go to the queue; sums may then be divided differently, for there small work costs less undivided.

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

PATIENCE = 1 << 14  # turns a helper waits awake for work: 0.2 to 0.8 ms
# Bytes that a launch moves from which on the caller goes on meanwhile, some 40 us; so many operations count as one.
LATER, PER_BYTE = 3 << 18, 6
# The kernels of team.cl, and how many arguments each has.
CODE = {"team_run": 4, "team_post": 4, "team_wait": 3, "team_help": 3, "team_probe": 3}
_ALIGN = 128  # of local arrays
_MOST_ARGS = 96  # LAUNCH_ARGS in team.cl
_CLOSED = 1 << 62
_PROCESSORS = 1024  # PROCESSORS in team.cl
_NOWHERE = (1 << 64) - 1  # -1

# Places in 8-byte words, as team.cl has them: of a team, of a member, of a job.
_CALLS, _PATIENCE, _MEMBERS, _LOCALS, _LOCAL_BYTES = 24, 27, 28, 29, 30
_PLACING, _HERE, _SPARE, _FLUSH, _DONE, _BUSY, _TEAM_WORDS = 31, 33, 34, 51, 64, 65, 200
_ORDERS = 64  # ORDERS in team.cl
_THREAD, _PLACE, _SEMAPHORE, _NEXT, _MEMBER_WORDS = 1, 2, 8, 16, 120
_FUNCTION, _A, _B, _GROUPS, _LOCAL_PLACES, _JOB_WORDS = 0, 1, 2, 4, 5, 6
# What a kernel is told of its launch: groups, offset and local size along each dimension; the rest is for printf.
_GROUPS_THERE, _LOCAL_THERE, _CONTEXT_WORDS = 0, 6, 16


def possible(backend: Backend) -> bool:
    """Say whether the backend's device is one whose machine code is known to us, before it is tried."""
    info = backend.info
    return (
        info.is_pocl
        and info.name.startswith("pthread-")
        and sys.platform == "linux"
        and platform.machine() == "x86_64"
        and sys.maxsize > 1 << 32
        and CONFIG.team
    )


class Team:
    """The threads of one backend, the caller's with them. The backend's lock guards it."""

    def __init__(self, machine_code: Callable[[str], Function], compute_units: int) -> None:
        """Take the team's own kernels from `machine_code`; RuntimeError where it is not as we know it."""
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
        # A kernel's function takes the place of its group, too; ours is one group and does not ask.
        prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
        self.call = prototype(machine_code("team_run").address)
        self._post = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(
            machine_code("team_post").address
        )
        self._wait = prototype(machine_code("team_wait").address)
        self._help = prototype(machine_code("team_help").address)
        self.posted = 0  # orders
        # The number of an order, and whose memory it reads.
        self._kept: deque[tuple[int, Any]] = deque()
        self._progress = memoryview(self._memory).cast("B").cast("q")  # type: ignore[arg-type]
        self._waiting = _words(8)  # what team_wait gets
        self._waiting[0:3] = [*self.base, self._waiting.ctypes.data + 8 * 3]
        self._own_context = _context()
        self.context = self._own_context.ctypes.data
        self._arguments: list[Any] = []  # of the helpers
        self.forget_helpers()
        self._probed = machine_code("team_probe")
        self.threads = 1
        self.probe()
        self.threads = wanted(self.size)

    def forget_helpers(self) -> None:
        """Have new helpers begin when they are wanted: in the beginning, and in a forked child, where the old ones are not."""
        self._memory[:_CALLS] = self._memory[_BUSY] = 0  # before a fork all orders were done
        self._memory[_HERE] = self._memory[_SPARE] = _NOWHERE
        self._members[:] = 0
        self._members[_NEXT::_MEMBER_WORDS] = _CLOSED
        self._arguments.clear()
        self.idle = self.size > 1  # its helpers have not begun and are wanted

    def _address(self, name: str) -> int:
        return ctypes.cast(getattr(self._libc, name), ctypes.c_void_p).value or 0

    @property
    def base(self) -> tuple[int, int]:
        """The addresses of the team and of its members."""
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
        """Let the helpers begin; before the first launch of more than one group, unless one thread is to do it."""
        if self.threads == 1:
            return
        self.idle = False
        places = sorted(os.sched_getaffinity(0))
        # With a thread for every processor each helper has its own, for woken ones often land on the caller's. The first is
        # left to the caller; where that runs elsewhere, the helper there takes the free one at the next launch.
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
        """What a helper's thread does, for ever."""
        if place is not None:
            with contextlib.suppress(OSError):
                os.sched_setaffinity(0, {place})
                words = self._members[_MEMBER_WORDS * member :]
                words[_PLACE], words[_THREAD] = place, _thread.get_native_id()
                self._memory[_HERE] = _NOWHERE  # the caller may be there since before it was ours
        self._help(args, self.context)

    @property
    def places(self) -> dict[int, int]:
        """The processor that each helper is bound to, by the number that the system gives its thread."""
        members = self._members.reshape(-1, _MEMBER_WORDS)[1:]
        return {int(m[_THREAD]): int(m[_PLACE]) for m in members if m[_THREAD]}

    def local_places(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Return where a member's local memory has arrays of these sizes, after making it large enough."""
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
        """Return `run(args, global_size, local_size)`, which returns when the launch is done."""
        if function.local_sizes and len(types) + len(function.local_sizes) > _MOST_ARGS:
            raise RuntimeError(f"more than {_MOST_ARGS} arguments beside local arrays")
        return _bound(types)(name, Launch(self, function, types), self)

    def post(self, address: int, owner: Any) -> int:
        """Leave jobs to be done, as `call` does them, and return the order's number.

        Until it is done the memory at `address` stays as it is; `owner`, whose memory that is, is kept.
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
        """Return when so many orders are done, and do what is left of them."""
        if self._progress[_DONE] < orders:
            self._waiting[3] = orders
            self._wait(self._waiting.ctypes.data, self.context)

    def finish(self) -> None:
        """Return when all orders are done."""
        self.wait_for(self.posted)

    def playlist(self, commands: Sequence[Command]) -> Playlist:
        """Return what runs these commands again and again, one after the other."""
        return Playlist(self, self._memmove, commands)

    @property
    def patience(self) -> int:
        """How many turns a helper waits awake for work."""
        return int(self._memory[_PATIENCE])

    @patience.setter
    def patience(self, turns: int) -> None:
        self._memory[_PATIENCE] = turns

    @property
    def flush(self) -> bool:
        """Whether kernels take denormal numbers for zeros, operands and results."""
        return bool(self._memory[_FLUSH])

    @flush.setter
    def flush(self, wanted: bool) -> None:
        self.finish()
        self._memory[_FLUSH] = wanted

    def probe(self) -> None:
        """Launch a kernel over all three dimensions; RuntimeError if it is told other things than we mean."""
        groups, local = (3, 2, 2), (1, 1, 1)
        out = np.zeros((2, 2, 3, 4), np.int64)
        run = self.launcher("team_probe", self._probed, (None, "<i8", "<f4"))
        run((_Memory(out.ctypes.data), 7, 2.0), groups, local)
        z, y, x = np.meshgrid(range(2), range(2), range(3), indexing="ij")
        wanted = [i + 100 * n + 10000 for i, n in zip((x, y, z), groups, strict=True)]
        if not np.array_equal(out, np.stack([*wanted, np.full_like(x, 9)], -1)):
            raise RuntimeError("kernels are told other things than we know of")


class _Memory(NamedTuple):
    address: int


# --- arguments ----------------------------------------------------------------------------------


class Launch:
    """Memory for one kernel's launches: what team_run gets, the job, its context, its arguments.

    Words: four arguments of team_run, the count of jobs they point at, three unused; the job; the context; a pointer for each
    argument; the numbers that some of those point at; the places of local arrays.
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
        self.view = self.memory.cast("Q")  # numpy takes longer to set a word
        base = self.address = words.ctypes.data
        words[0:5] = [*team.base, base + 8 * self.JOB, base + 8 * 4, 1]
        job = self.JOB
        words[job + _FUNCTION] = function.address
        words[job + _A] = base + 8 * self.ARGS
        words[job + _B] = base + 8 * self.CONTEXT
        self.scalars = [base + 8 * (scalars + i) for i in range(count)]  # by argument
        words[self.ARGS : self.ARGS + count] = self.scalars
        self.locals = 0
        if function.local_sizes:
            found = team.local_places(function.local_sizes)
            words[places : places + 2 + len(found)] = [count, len(found), *found]
            self.locals = base + 8 * places
        words[job + _LOCAL_PLACES] = self.locals

    def put(self, index: int, kind: str, value: Any) -> None:
        """Set one number among the arguments."""
        place = self.scalars[index] - self.address
        struct.pack_into("=" + CODES[kind[1:]], self.memory, place, value)

    def set_sizes(
        self, name: str, global_size: tuple[int, ...], local_size: tuple[int, ...] | None
    ) -> int:
        """Set groups and local size; return how many groups there are. RuntimeError if they do not divide the work."""
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
    """Return what makes `run(args, global_size, local_size)` of a kernel with such arguments.

    Its text is generated, for it is most of a small launch: a loop over the arguments would cost more than the call. Sizes stay
    set from launch to launch, and so do the pointers at numbers.
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
    """Return groups and local size along three dimensions, and what is left over."""
    pairs = [divmod(n, g) for n, g in zip(size, group, strict=True)]
    fill = [1] * (3 - len(pairs))
    return [n for n, _ in pairs] + fill, [*group, *fill], sum(left for _, left in pairs)


def _context() -> np.ndarray:
    words = _words(_CONTEXT_WORDS)
    words[_GROUPS_THERE : _GROUPS_THERE + 3] = words[_LOCAL_THERE : _LOCAL_THERE + 3] = 1
    return words


def _words(count: int) -> np.ndarray:
    """Return zeroed memory of `count` words of 8 bytes, aligned as the widest loads want it."""
    raw = np.zeros(count + _ALIGN // 8, np.uint64)
    start = -(raw.ctypes.data // 8) % (_ALIGN // 8)
    return raw[start : start + count]


# --- recordings ---------------------------------------------------------------------------------


class Command(NamedTuple):
    """A launch; or, without a kernel, a copy between memories: dst, its offset, src, its offset, bytes."""

    kernel: Kernel | None
    global_size: tuple[int, ...]
    local_size: tuple[int, ...]
    args: Sequence[Any]


class Playlist:
    """Commands with memory of their own for all that they need, run by one call. `symbols`: numbers in them for which `tell` sets others."""

    def __init__(self, team: Team, memmove: int, commands: Sequence[Command]) -> None:
        self._team = team
        jobs = _words(_JOB_WORDS * len(commands))
        self._jobs = memoryview(jobs).cast("B").cast("Q")  # type: ignore[arg-type]
        self._launches: list[Launch | None] = []
        self._copies: dict[int, list[Any]] = {}  # arguments, by command
        self.symbols: list[Any] = []
        self._set: list[Callable[[int], None]] = []  # what sets the numbers for them
        self.moves = False  # whether places in the memory of a copy are among them
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
        self._number = 0  # of the last order to play it that may not be done

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
                if kind == "<i8":  # most of them, and sooner set so
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
        """Set others for the symbols."""
        for put, number in zip(self._set, numbers, strict=True):
            put(number)

    def slot(self, command: int, index: int) -> tuple[Any, int, int]:
        """Say where the address of a buffer among a command's arguments is: memory, the word in it, what to add to it."""
        launch = self._launches[command]
        if launch is not None:
            return launch.view, Launch.ARGS + index, 0
        return (
            self._jobs,
            _JOB_WORDS * command + (_B if index else _A),
            self._copies[command][index + 1],
        )

    def put(self, command: int, index: int, kind: str, value: Any) -> None:
        """Set a number among the arguments of a launch."""
        launch = self._launches[command]
        assert launch is not None
        launch.put(index, kind, value)

    def wait(self) -> None:
        """Return when no order is left that plays it; before anything in it is set."""
        if self._number:
            self._team.wait_for(self._number)
            self._number = 0

    def run(self) -> None:
        """Run the commands; no order is left."""
        team = self._team
        if team.idle:
            team.start()
        team.call(self._play, team.context)

    def post(self) -> None:
        """Leave an order to run the commands."""
        self._number = self._team.post(self._play, self)

    def run_one(self, command: int) -> None:
        """Run a single one of the commands."""
        order = self._order
        all_of_them = order[2:5].copy()
        order[2], order[4] = self._address + 8 * _JOB_WORDS * command, 1
        self.run()
        order[2:5] = all_of_them
