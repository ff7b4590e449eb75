"""LLVM's name for this x86-64 processor, and setting that name in a PoCL whose LLVM does not know the processor.

Owns the names and the instruction sets each of them requires. Must not import pyopencl.

Note [Processors]. PoCL asks its LLVM for the name of the processor and passes that name to clang with every program.
For a processor not from Intel that is newer than the LLVM, the name is either "generic", which clang rejects, so that
no kernel builds (LLVM 14 in pip's PoCL 3.0 on AMD Zen 5); or that of an older processor, so that new instructions go
unused: Zen 4 becomes "znver3", without AVX-512, while PoCL itself sees AVX-512 and links the builtins for it, and
`exp(float16)` then crashes the compiler. PoCL has no setting for this. In PoCL's device record the pointer to the name
follows the pointer to the target triple; where the name is one of these two, the pointer is changed to the name of
another processor, all of whose instructions this one has.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
import platform
import struct
import sys

from cltensor.errors import debug_line

# The instruction sets that LLVM makes use of by itself, in Linux' spelling, for the names in `_NEEDS` (best processor
# first).
_BASE = frozenset(["abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "popcnt"])
_SKYLAKE = _BASE | frozenset(["avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"])
_ICELAKE = _SKYLAKE | frozenset(
    [
        "avx512_bitalg",
        "avx512_vbmi2",
        "avx512_vnni",
        "avx512_vpopcntdq",
        "avx512ifma",
        "avx512vbmi",
        "gfni",
        "vaes",
        "vpclmulqdq",
    ]
)
_NEEDS = {
    "icelake-server": _ICELAKE,
    "skylake-avx512": _SKYLAKE,
    "haswell": _BASE,
    "nehalem": frozenset(["popcnt", "sse4_1", "sse4_2", "ssse3"]),
    "x86-64": frozenset(),
}
_RECORD = 1024  # bytes of PoCL's device record that are searched for the pointer to the name


@functools.cache
def facts() -> dict[str, frozenset[str]]:
    """Return the first processor's entries in /proc/cpuinfo ("flags", "vendor_id", ...); empty where there are none."""
    found: dict[str, frozenset[str]] = {}
    if platform.machine() != "x86_64" or not sys.platform.startswith("linux"):
        return found
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                name, _, value = line.partition(":")
                if not value:
                    break
                found[name.strip()] = frozenset(value.split())
    except OSError:
        return {}
    return found


def wide_in_part() -> bool:
    """Return whether the processor has only a part of AVX-512, so that LLVM generates AVX2 code for it."""
    flags = facts().get("flags", frozenset())
    return "avx512f" in flags and not flags >= _SKYLAKE


def best_name(flags: frozenset[str]) -> str:
    """Return LLVM's name of the best processor in `_NEEDS` whose required instruction sets are all in `flags`."""
    return next(name for name, needs in _NEEDS.items() if flags >= needs)


@functools.cache
def rename(record: int) -> str:
    """Replace the processor's name in PoCL's device record at address `record` if it is "generic" or too old; return
    the new name, else "".

    Nothing is written unless the pointers to triple and name are both found.
    """
    flags = facts().get("flags")
    if not flags:
        return ""
    name = best_name(flags)
    place = _place_of_name(record, [b"generic", *([b"znver3"] if flags >= _SKYLAKE else [])])
    if place is None:
        return ""
    # PoCL allocates its names by strdup, too. The copy belongs to PoCL, which may use it after Python's modules are
    # gone.
    copy = ctypes.CDLL(None).strdup
    copy.argtypes, copy.restype = (ctypes.c_char_p,), ctypes.c_void_p
    ctypes.c_void_p.from_address(place).value = copy(name.encode())
    debug_line(1, "PoCL's compiler does not know this processor: it is told %s", name)
    return name


def _place_of_name(record: int, names: list[bytes]) -> int | None:
    """Return the address of the pointer to one of `names` that follows a pointer to an x86-64 triple.

    None if there is none.
    """
    with _Memory() as memory:
        found = memory.read(record, _RECORD)
        words = struct.unpack(f"{len(found) // 8}Q", found[: len(found) // 8 * 8])
        for index, (triple, name) in enumerate(itertools.pairwise(words)):
            if memory.starts(triple, b"x86_64-") and any(
                memory.starts(name, n + b"\0") for n in names
            ):
                return record + 8 * (index + 1)
    return None


class _Memory:
    """Safe reads of this process's memory at possibly invalid addresses: write() to a pipe fails for these instead of
    crashing.
    """

    def __enter__(self) -> _Memory:
        self._out, self._in = os.pipe()
        self._write = ctypes.CDLL(None).write
        self._write.argtypes = ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t
        self._write.restype = ctypes.c_ssize_t
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._out)
        os.close(self._in)

    def read(self, address: int, size: int) -> bytes:
        """Return up to `size` bytes (they must fit into the pipe); b"" where the address is invalid."""
        count = self._write(self._in, address, size)
        return os.read(self._out, count) if count > 0 else b""

    def starts(self, address: int, text: bytes) -> bool:
        """Return whether the memory at `address` begins with `text`."""
        return 0x1000 < address < 1 << 47 and self.read(address, len(text)) == text
