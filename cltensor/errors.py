"""Exceptions that users may catch, warnings shown once, and debug output. Must not know devices, tensors or ops."""

from __future__ import annotations

import sys
import warnings
from typing import ClassVar

from .config import CONFIG


class AcceleratorError(RuntimeError):
    """Raised by torch for a failure of a GPU's driver, and by nothing here; programs that catch it name it."""


class OutOfMemoryError(RuntimeError):
    """Raised when a device or the host cannot provide the memory requested."""


class BuildError(RuntimeError):
    """Raised when a driver rejects a kernel; the message holds the numbered source and the log."""


_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class that a class statement made


def class_name(value: object) -> str:
    """Return the name of a value's class as torch's TypeErrors print it: "list", "numpy.ndarray", "collections.OrderedDict".

    In C, a class of an extension module has its full name, a builtin or one defined in Python its name alone.
    """
    kind = type(value)
    if kind.__flags__ & _HEAP_TYPE or kind.__module__ == "builtins":
        return kind.__name__
    return f"{kind.__module__}.{kind.__name__}"


def debug_line(level: int, text: str, *args: object) -> None:
    """Print `text % args` to stderr when CLTENSOR_DEBUG is `level` or more."""
    if CONFIG.debug >= level:
        print("cltensor:", text % args if args else text, file=sys.stderr, flush=True)


class Warned:
    """The texts that `warn_once` has shown, and whether it shows them each time (`always`)."""

    texts: ClassVar[set[str]] = set()
    always = False


def caller_level() -> int:
    """Return the `stacklevel` with which the calling function's warning names the nearest line outside the package."""
    level, frame = 1, sys._getframe(1)
    package = __name__.partition(".")[0]
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        level, frame = level + 1, frame.f_back
    return level


def warn_once(text: str) -> None:
    """Show a UserWarning, once per process and text unless `Warned.always` is set."""
    if Warned.always or text not in Warned.texts:
        Warned.texts.add(text)
        warnings.warn(text, UserWarning, stacklevel=caller_level())


def format_bytes(count: int) -> str:
    """Return `count` bytes in words, as torch prints them: "2.00 GiB".

    >>> format_bytes(3 << 19)
    '1.50 MiB'
    """
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.2f} {unit}"
    return f"{count} bytes"


def number_lines(text: str) -> str:
    """Return `text` with each line numbered from 1."""
    lines = text.splitlines()
    width = len(str(len(lines)))
    return "\n".join(f"{i:{width}d} | {line}" for i, line in enumerate(lines, 1))
