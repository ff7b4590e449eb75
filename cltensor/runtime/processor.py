"""Which x86-64 processor this is, in LLVM's words, and telling a PoCL whose LLVM does not know it.

Owns the names and what each needs of a processor. Must not import pyopencl.

Note [Processors]. PoCL has its LLVM name the processor and hands that name to clang with every program. A processor of another
vendor than Intel that is younger than the LLVM is "generic", which clang refuses: no kernel builds (LLVM 14 in pip's PoCL 3.0 on
AMD Zen 5); or it is taken for the one before, and what is new goes unused: Zen 4 is "znver3", without AVX-512, though PoCL, which
sees that, links its builtins for it, and `exp(float16)` then crashes the compiler. PoCL offers no setting. The name is the pointer
after the one to the target's triple in its record of the device; where it is one of these two we let it point to the name of
another processor all of whose instructions this one has.
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

# What LLVM makes use of by itself, as Linux spells it, best processor first.
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
_RECORD = 1024  # bytes of PoCL's record of a device among which the name is looked for


@functools.cache
def facts() -> dict[str, frozenset[str]]:
    """Return what Linux says of the first processor: "flags", "vendor_id", "cpu family", ...; empty elsewhere."""
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
    """Say whether the processor has a part of AVX-512 only: LLVM generates AVX2 code for it."""
    flags = facts().get("flags", frozenset())
    return "avx512f" in flags and not flags >= _SKYLAKE


def best_name(flags: frozenset[str]) -> str:
    """Return LLVM's name of the best processor of our list all of whose instructions `flags` has."""
    return next(name for name, needs in _NEEDS.items() if flags >= needs)


@functools.cache
def rename(record: int) -> str:
    """Give PoCL's device at address `record` a processor that clang takes, if it has none or a lesser one; return its name, else "".

    Nothing is written unless the pair of names is there.
    """
    flags = facts().get("flags")
    if not flags:
        return ""
    name = best_name(flags)
    place = _place_of_name(record, [b"generic", *([b"znver3"] if flags >= _SKYLAKE else [])])
    if place is None:
        return ""
    # As PoCL makes its names: the copy is PoCL's, and outlives Python's modules.
    copy = ctypes.CDLL(None).strdup
    copy.argtypes, copy.restype = (ctypes.c_char_p,), ctypes.c_void_p
    ctypes.c_void_p.from_address(place).value = copy(name.encode())
    debug_line(1, "PoCL's compiler does not know this processor: it is told %s", name)
    return name


def _place_of_name(record: int, names: list[bytes]) -> int | None:
    """Return where the pointer to one of the names is, beside the one to a triple of x86-64; None if it is not."""
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
    """This process's memory at addresses that may be none: written to a pipe, which the system refuses to do from there."""

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
        """Return up to `size` bytes, which fit into a pipe; none where there is no memory."""
        count = self._write(self._in, address, size)
        return os.read(self._out, count) if count > 0 else b""

    def starts(self, address: int, text: bytes) -> bool:
        """Say whether there is such text."""
        return 0x1000 < address < 1 << 47 and self.read(address, len(text)) == text
