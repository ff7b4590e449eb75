"""A launch as a team takes it: the job, and the memory of the kernel's arguments and context.

Owns how arguments are laid out for PoCL's machine code, and the function, generated for each signature, that sets them
and launches. Must not know the team's threads or when a launch is made.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .kernel import plain_numbers
from .machine_code import Function
from .team_layout import (
    CONTEXT_GROUPS,
    CONTEXT_LOCAL,
    CONTEXT_WORDS,
    JOB_A,
    JOB_B,
    JOB_FUNCTION,
    JOB_GROUPS,
    JOB_LOCALS,
    JOB_WORDS,
    aligned_words,
)

if TYPE_CHECKING:
    from .team import Team


class Launch:
    """Memory for the launches of one kernel: the arguments of team_run, the job, its context, its arguments.

    Layout in 8-byte words: team_run's four arguments, the count of jobs (the fourth points at it), three unused; the
    job; the context; a pointer for each argument; the numbers to which pointers of number arguments point; the offsets
    of local arrays.
    """

    JOB = 8
    CONTEXT = JOB + JOB_WORDS
    ARGS = CONTEXT + CONTEXT_WORDS

    def __init__(self, team: Team, function: Function, types: tuple[str | None, ...]) -> None:
        count = len(types)
        self.numbers = scalars = self.ARGS + count
        places = scalars + count
        self.words = words = aligned_words(places + 2 + len(function.local_sizes))
        self.memory = memoryview(words).cast("B")  # type: ignore[arg-type]
        self.view = self.memory.cast("Q")  # a memoryview, because numpy takes longer to set a word
        base = self.address = words.ctypes.data
        words[0:5] = [*team.base, base + 8 * self.JOB, base + 8 * 4, 1]
        job = self.JOB
        words[job + JOB_FUNCTION] = function.address
        words[job + JOB_A] = base + 8 * self.ARGS
        words[job + JOB_B] = base + 8 * self.CONTEXT
        # Addresses of the numbers, one for each argument (a buffer's is unused).
        self.scalars = [base + 8 * (scalars + i) for i in range(count)]
        words[self.ARGS : self.ARGS + count] = self.scalars
        self.locals = 0
        if function.local_sizes:
            found = team.local_places(function.local_sizes)
            words[places : places + 2 + len(found)] = [count, len(found), *found]
            self.locals = base + 8 * places
        words[job + JOB_LOCALS] = self.locals

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
            self.view[self.CONTEXT + CONTEXT_GROUPS + i] = n
            self.view[self.CONTEXT + CONTEXT_LOCAL + i] = m
        self.view[self.JOB + JOB_GROUPS] = count = math.prod(groups)
        return count


CODES = {
    "b1": "?", "i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I",
    "i8": "q", "u8": "Q", "f2": "e", "f4": "f", "f8": "d",
}  # fmt: skip


@functools.cache
def binder(types: tuple[str | None, ...]) -> Callable[..., Callable[..., None]]:
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
