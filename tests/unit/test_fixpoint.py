"""LLVM's fixpoint check is disabled for PoCL versions that would end the process over it."""

from __future__ import annotations

import ctypes
import mmap
import platform
import sys

import pytest

from cltensor.runtime import fixpoint

Parse = ctypes.CFUNCTYPE(
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_size_t,
)
needs_x86 = pytest.mark.skipif(
    not sys.platform.startswith("linux") or platform.machine() != "x86_64",
    reason="the instructions are x86-64's",
)


def test_the_pocls_that_check() -> None:
    text = "OpenCL 3.0 PoCL {}  Linux, None+Asserts, RELOC, SPIR-V, LLVM {}, SLEEF, DISTRO"
    assert fixpoint.checks((6, 0), text.format("6.0+debian", "18.1.8"))
    assert not fixpoint.checks((5, 0), text.format("5.0+debian", "16.0.6"))
    assert not fixpoint.checks((7, 0), text.format("7.0", "19.1.7"))
    assert not fixpoint.checks((3, 0), "OpenCL 2.0 pocl 3.0, LLVM 14.0.6")


@needs_x86
@pytest.mark.parametrize(
    "given",
    [
        b"",
        b"instcombine",
        b"(instcombine",
        b"(instcombine)",
        b"(instcombine<use-loop-info>)",
        b"function(simplifycfg),function(loop(loop-barriers)),function(instcombine),workgroup",
        b"inline," * 3000 + b"function(instcombine)",
    ],
    ids=["empty", "bare", "cut", "alone", "options", "list", "too long"],
)
def test_the_list_on_its_way(given: bytes) -> None:
    """The detour inserts the option once, and passes on the other arguments and the result."""
    seen: list[tuple[int | None, ...]] = []
    lists: list[bytes] = []

    def parse(out: int, builder: int, manager: int, start: int, length: int) -> int:
        seen.append((out, builder, manager))
        lists.append(ctypes.string_at(start, length))
        return out

    kept = Parse(parse)
    call = Parse(fixpoint.detour(ctypes.cast(kept, ctypes.c_void_p).value or 0))
    assert call(1 << 40, 2, 3, given, len(given)) == 1 << 40
    assert seen == [(1 << 40, 2, 3)]
    expected = given.replace(b"(instcombine)", b"(instcombine<no-verify-fixpoint>)")
    assert lists == [given if len(given) > 20000 else expected]


@needs_x86
def test_an_address_is_exchanged_in_memory_that_is_not_writable() -> None:
    protection, flags = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    start = fixpoint.call_c("mmap", None, mmap.PAGESIZE, protection, flags, -1, 0)
    ctypes.c_uint64.from_address(start + 80).value = 0x123456789ABC
    fixpoint.call_c("mprotect", start, mmap.PAGESIZE, mmap.PROT_READ)
    parts = [(start, start + mmap.PAGESIZE, mmap.PROT_READ)]
    assert list(fixpoint.places(parts, 0x123456789ABC)) == [(start + 80, mmap.PROT_READ)]
    assert not list(fixpoint.places(parts, 0x123456789ABD))
    fixpoint.write(start + 80, 7, mmap.PROT_READ)
    assert ctypes.c_uint64.from_address(start + 80).value == 7
    with pytest.raises(OSError, match="Cannot allocate memory"):
        fixpoint.call_c("mprotect", mmap.PAGESIZE, mmap.PAGESIZE, mmap.PROT_READ)
