"""A second lane for launches of one work-group on PoCL: in the calling thread, in 1 us.

Note [Inline lane]. PoCL hands a launch to its worker threads and wakes the caller when it is done:
10 to 40 us for a kernel of a few ns. Its "basic" device runs in the thread that asks. Both devices work
on the same host memory in one context, so a launch that could not use a second thread anyway, while
nothing is outstanding on the queue, goes to the basic one and is done when it returns. The machine
code is the same: the twin's program is made from the binary of the first, under the twin's name.
CLTENSOR_INLINE=0 turns the lane off.

Owns the twin device, its queue and its kernels. Must not know when a launch qualifies: that is the
backend's to say.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from cltensor.errors import debug_line

if TYPE_CHECKING:
    from .program import Kernel, Program, ProgramCache

WORTH = 3  # launches of one group after which a kernel gets its twin
_NAME = slice(8, 16)  # where a PoCL 3 binary says for which device it is
_NAME_PROBE = "__kernel void cltensor_name_probe(void) {}"


class InlineLane:
    """The basic device beside a PoCL device, in the same context."""

    def __init__(self, cl: Any, context: Any, twin: Any, programs: ProgramCache) -> None:
        self._cl = cl
        self._context = context
        self._twin = twin
        self._programs = programs
        self._name: bytes | None = None
        self.queue = cl.CommandQueue(context, twin)

    def kernel(self, kernel: Kernel) -> Any:
        """Return a twin of a launched kernel, or None when it cannot be made."""
        program = self.program(kernel)
        return None if program is None else self._cl.Kernel(program, kernel.name)

    def program(self, kernel: Kernel) -> Any:
        """Return the twin of a launched kernel's program, or None when it cannot be made."""
        ours = kernel.program
        if ours.twin is None:
            try:
                ours.twin = self._load(ours)
            except (self._cl.Error, RuntimeError) as error:
                debug_line(1, "%s stays on the queue: %s", kernel.name, error)
        return ours.twin

    def _load(self, ours: Program) -> Any:
        binary = self._programs.binary(ours)
        if binary is None or not binary.startswith(b"poclbin\0"):
            return None
        renamed = binary[: _NAME.start] + self._twin_name() + binary[_NAME.stop :]
        program = self._cl._cl._Program(self._context, [self._twin], [renamed])
        program.build(b"", [self._twin])
        return program

    def _twin_name(self) -> bytes:
        """The 8 bytes PoCL puts into binaries for the twin; asked once per machine, then from disk."""
        if self._name is None:
            from .program import disk_read, disk_write

            key = hashlib.sha256(f"inline name\0{self._programs.identity}".encode()).hexdigest()
            name = disk_read(key)
            if name is None or len(name) != 8:
                program = self._cl._cl._Program(self._context, _NAME_PROBE)
                program.build(b"", [self._twin])
                made = program.get_info(self._cl.program_info.BINARIES)
                name = next(bytes(b) for b in made if b)[_NAME]
                disk_write(key, name)
            self._name = name
        return self._name
