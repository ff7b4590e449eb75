"""Exceptions users may catch, warnings given once, and the debug line printer. Must not know devices, tensors or ops."""

from __future__ import annotations

import sys
import warnings
from typing import ClassVar

from .config import CONFIG


class OutOfMemoryError(RuntimeError):
    """Raised when a device or the host cannot give the memory asked for."""


class BuildError(RuntimeError):
    """Raised when a driver rejects a kernel; the message holds the numbered source and the log."""


def debug_line(level: int, text: str, *args: object) -> None:
    """Print `text % args` to stderr when CLTENSOR_DEBUG is `level` or more."""
    if CONFIG.debug >= level:
        print("cltensor:", text % args if args else text, file=sys.stderr, flush=True)


class Warned:
    """What `warn_once` has shown, and whether it shows that again."""

    texts: ClassVar[set[str]] = set()
    always = False


def warn_once(text: str, stacklevel: int = 4) -> None:
    """Show a UserWarning that a program sees once, however often its cause returns."""
    if Warned.always or text not in Warned.texts:
        Warned.texts.add(text)
        warnings.warn(text, UserWarning, stacklevel=stacklevel)


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
