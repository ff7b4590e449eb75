"""The globals a checkpoint names, found without unpickling, and the byte order assumed for files that do not record theirs.

Interprets only the pickle opcodes that name globals; builds no objects.
"""

from __future__ import annotations

import enum
import io
import pickletools
from typing import Any

from .archive import Reader, is_zip, source
from .options import load
from .rebuild import allowed
from .unpickler import modern, user_allows


class SourceChangeWarning(Warning):
    """Category of torch's warnings about a layer whose source changed after it was saved."""


class LoadEndianness(enum.Enum):
    """Byte orders that can be assumed for a file that does not record its own."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


def get_default_load_endianness() -> LoadEndianness | None:
    """Return the byte order assumed for files that do not record theirs; None means little-endian."""
    return load.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Set the byte order assumed for files that do not record theirs. TypeError unless a LoadEndianness or None."""
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    load.endianness = endianness


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """List the classes and functions a checkpoint names that `load(weights_only=True)` would refuse.

    ValueError for a file that is no checkpoint in the zip format.
    """
    with source(f) as (file, path):
        if not is_zip(file):
            raise ValueError("Expected input to be a checkpoint returned by torch.save")
        names = _names(Reader(file, path).get("data.pkl"))
    return [n for n in names if allowed(n) is None and not user_allows(n)]


def _names(data: bytes) -> list[str]:
    """Return the globals that a pickle names, in the order of their first occurrence."""
    found: dict[str, None] = {}
    texts: list[Any] = []  # the strings pushed so far: STACK_GLOBAL takes the last two
    memo: dict[Any, Any] = {}
    last: Any = None
    for code, argument, _ in pickletools.genops(io.BytesIO(data)):
        if code.name in ("GLOBAL", "INST"):
            module, _, name = argument.partition(" ")
            found[".".join(modern(module, name))] = None
            last = None
        elif code.name == "STACK_GLOBAL":
            module, name = texts[-2:]
            found[".".join(modern(module, name))] = None
            last = None
        elif "UNICODE" in code.name:
            texts.append(argument)
            last = argument
        elif "GET" in code.name:
            last = memo.get(argument)
            if last is not None:
                texts.append(last)
        elif "PUT" in code.name:
            memo[argument] = last
        elif code.name == "MEMOIZE":
            memo[len(memo)] = last
        else:
            last = None
    return list(found)


__all__ = [
    "LoadEndianness",
    "SourceChangeWarning",
    "get_default_load_endianness",
    "get_unsafe_globals_in_checkpoint",
    "set_default_load_endianness",
]
