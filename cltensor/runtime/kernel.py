"""`Kernel`: a function of a built program, and how its arguments reach the driver.

Owns the functions, generated for each signature, that set a kernel's arguments and enqueue it. Must not know how
programs are built, or when kernels are launched.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .eventless import Enqueue
    from .machine_code import Function

Launcher = Callable[[Any, Any, tuple[int, ...], "tuple[int, ...] | None", Sequence[Any], int], bool]


class BuiltProgram:
    """A built program, and whether it still has to be written to the disk cache."""

    __slots__ = ("binary", "cl", "coded", "key", "unsaved")

    def __init__(self, cl: Any, key: str, unsaved: bool, binary: bytes | None = None) -> None:
        self.cl = cl  # the driver's program; None while only the machine code is needed
        self.key = key
        self.unsaved = unsaved
        # Whether the team runs its machine code, without the driver.
        self.coded = binary is not None
        self.binary = binary  # contains the machine code; None once a kernel is loaded and the binary is on disk


class Kernel:
    """A function of a built program, with fixed argument types; launched by its backend only."""

    __slots__ = ("arg_types", "call", "cl", "fresh", "function", "name", "program", "run")

    def __init__(
        self,
        name: str,
        cl: Any,
        program: BuiltProgram,
        arg_types: tuple[Any, ...],
        function: Function | None = None,
        call: Callable[..., None] | None = None,
        enqueue: Enqueue | None = None,
    ) -> None:
        self.name = name
        self.cl = cl  # the driver's kernel; None if the team runs the kernel
        self.program = program
        self.arg_types = arg_types
        self.function = function  # the machine code for the team, if it runs the kernel
        # Runs the machine code: call(args, global_size, local_size, later=False).
        self.call = call
        self.run = _not_on_a_queue if enqueue is None else _launcher(kinds(arg_types), enqueue)
        self.fresh = program.unsaved

    def __repr__(self) -> str:
        return f"Kernel({self.name!r})"


def _not_on_a_queue(*args: Any) -> bool:
    raise AssertionError("this kernel has no object of the driver's")


_CODES = {
    "b1": "b", "i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I",
    "i8": "l", "u8": "L", "f4": "f", "f8": "d",
}  # fmt: skip


@functools.cache
def _launcher(kinds: tuple[str | None, ...], enqueue: Enqueue, timed: bool = False) -> Launcher:
    """Return `run(kernel, queue, global, local, args, seq)`, which sets the arguments and enqueues the kernel.

    `run` marks the buffers as used by launch `seq` and returns whether numpy can see one of them; the `timed` variant
    returns the driver's event instead. Its source is generated, because a loop over the arguments would take as long
    as the driver's call.
    """
    from pyopencl import _cl

    count = len(kinds)
    buffers = [i for i, kind in enumerate(kinds) if kind is None]
    packed = [i for i, kind in enumerate(kinds) if kind is not None and kind[1:] in _CODES]
    others = [i for i in range(count) if i not in buffers and i not in packed]
    body = []
    if count:
        body.append(f"{', '.join(f'a{i}' for i in range(count))}, = args")
    if hasattr(_cl.Kernel, "_set_arg_multi") and hasattr(_cl.Kernel, "_set_arg_buf_pack_multi"):
        if buffers:
            pairs = ", ".join(f"{i}, a{i}.cl" for i in buffers)
            body.append(f"k._set_arg_multi(({pairs},))")
        if packed:
            codes = {i: _CODES[str(kinds[i])[1:]].encode() for i in packed}
            triples = ", ".join(f"{i}, {codes[i]!r}, a{i}" for i in packed)
            body.append(f"k._set_arg_buf_pack_multi(({triples},))")
    else:
        body += [f"k.set_arg({i}, a{i}.cl)" for i in buffers]
        others = sorted(packed + others)
    body += [f"k.set_arg({i}, t{i}(a{i}))" for i in others]
    body.append("event = " * timed + "enqueue(queue, k, global_size, local_size)")
    if buffers:
        body.append(" = ".join(f"a{i}.seq" for i in buffers) + " = seq")
    seen = " or ".join(f"a{i}.exported" for i in buffers) or "False"
    body.append("return " + ("event" if timed else seen))
    text = "def run(k, queue, global_size, local_size, args, seq):\n    " + "\n    ".join(body)
    names: dict[str, Any] = {"enqueue": enqueue}
    names.update({f"t{i}": np.dtype(kinds[i]).type for i in others})
    exec(text, names)
    return names["run"]


def timed_launcher(kernel: Kernel) -> Callable[..., Any]:
    """Return a variant of `kernel.run` that returns the launch's event."""
    from pyopencl import enqueue_nd_range_kernel

    return _launcher(kinds(kernel.arg_types), enqueue_nd_range_kernel, True)


def plain_numbers(
    name: str, types: Sequence[str | None], args: Sequence[Any], error: Exception
) -> list[Any]:
    """Return the arguments with each number as a Python number wrapped to its type, after a launch failed with `error`.

    Raises `error` again if the arguments were such numbers already, and TypeError if their count is wrong.
    """
    if len(args) != len(types):
        raise TypeError(f"{name} takes {len(types)} arguments, got {len(args)}") from error
    plain = []
    with np.errstate(over="ignore"):
        for a, kind in zip(args, types, strict=True):
            value = a if kind is None else np.dtype(kind).type(a)
            plain.append(value.item() if isinstance(value, np.generic) else value)
    if all(type(a) is type(b) and a == b for a, b in zip(plain, args, strict=True)):
        raise error
    return plain


def kinds(arg_types: tuple[Any, ...]) -> tuple[str | None, ...]:
    """Return the kind of each argument: None for a Buffer, numpy's dtype string ("<f4") for a number."""
    return tuple(None if t is None else np.dtype(t).str for t in arg_types)
