"""Disabling an LLVM check in PoCL 4 to 6 on x86-64 that ends the process over correct kernels.

Owns the detour around the call by which PoCL passes its list of passes to LLVM. Must not import pyopencl.

Note [Fixpoint]. PoCL 4 to 6 names one of LLVM's passes, "instcombine", without options. LLVM from 18 on then verifies
that a second run of the pass would change nothing, and ends the process if it would: a self-test of LLVM, which its
developers expect to fail now and then. Which kernels fail is chance. No setting turns the check off, and the function
attribute that does came with LLVM 20; PoCL 7 no longer uses the pass. So the list of passes is changed on its way:
where it says "(instcombine)", LLVM gets "(instcombine<no-verify-fixpoint>)". PoCL's table of imported functions holds
the address of LLVM's function; it is replaced by the address of a few instructions, which edit the list and jump to
LLVM's function. They are machine code because PoCL may compile in threads of its own, under a lock (so only one list is
edited at a time), where waiting for Python's lock would be a deadlock.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import platform
import re
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

from cltensor.errors import debug_line

# llvm::Error PassBuilder::parsePassPipeline(ModulePassManager &, StringRef)
_PARSE = (
    "_ZN4llvm11PassBuilder17parsePassPipelineERNS_11PassManagerINS_6ModuleENS_15AnalysisManagerIS2_"
    "JEEEJEEENS_9StringRefE"
)
_OPTION = b"<no-verify-fixpoint>"
_ROOM = 1 << 14  # bytes reserved for the edited list; PoCL's lists have some 700

# On entry rcx is the start of the list and r8 its length (the StringRef); rdi (where the result goes), rsi and rdx are
# passed on.
_CODE = """
f30f1efa                endbr64
4889c8                  mov    rax, rcx                     ; where we look
4e8d4c01f3              lea    r9, [rcx + r8 - 13]          ; the last place where it may begin
49ba28696e7374636f6d    movabs r10, "(instcom"
49bb636f6d62696e6529    movabs r11, "combine)"
4c39c8            look: cmp    rax, r9
7760                    ja     pass
4c3b10                  cmp    r10, [rax]
7506                    jne    step
4c3b5805                cmp    r11, [rax + 5]
7405                    je     copy
48ffc0            step: inc    rax
ebeb                    jmp    look
4981f8{longest}   copy: cmp    r8, longest
7747                    ja     pass
57                      push   rdi
56                      push   rsi
4889ce                  mov    rsi, rcx
4e8d1c01                lea    r11, [rcx + r8]
488d480c                lea    rcx, [rax + 12]              ; up to the parenthesis
4829f1                  sub    rcx, rsi
49ba{room}              movabs r10, room
4c89d7                  mov    rdi, r10
f3a4                    rep movsb
4889f0                  mov    rax, rsi
48be{option}            movabs rsi, option
b914000000              mov    ecx, 20
f3a4                    rep movsb
4889c6                  mov    rsi, rax                     ; the rest
4c89d9                  mov    rcx, r11
4829f1                  sub    rcx, rsi
f3a4                    rep movsb
4c89d1                  mov    rcx, r10
4983c014                add    r8, 20
5e                      pop    rsi
5f                      pop    rdi
48b8{parse}       pass: movabs rax, parse
ffe0                    jmp    rax
"""


def checks(pocl: tuple[int, ...], platform_version: str) -> bool:
    """Return whether this version of PoCL makes LLVM verify a fixpoint.

    `platform_version` names the LLVM it was built with.
    """
    llvm = re.search(r"\bLLVM (\d+)", platform_version)
    return (4, 0) <= pocl < (7, 0) and llvm is not None and int(llvm[1]) >= 18


@functools.cache
def spare() -> bool:
    """Disable the check in the PoCL that is loaded; return whether that succeeded.

    Nothing is written unless the address is found as expected.
    """
    if not sys.platform.startswith("linux") or platform.machine() != "x86_64":
        return False
    try:
        for path, parts in _loaded("libpocl.so").items():
            parse = _address(getattr(ctypes.CDLL(path), _PARSE))
            for place, protection in places(parts, parse):
                write(place, detour(parse), protection)
                return True
    except (AttributeError, OSError) as error:
        debug_line(1, "PoCL's list of passes is left as it is: %s", error)
    return False


def detour(parse: int) -> int:
    """Return the address of new code that adds the option to the list and jumps to `parse`; the code is never freed."""
    page = mmap.PAGESIZE
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    start = call_c("mmap", None, page + _ROOM, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    values = {
        "longest": struct.pack("<i", _ROOM - len(_OPTION)),
        "room": struct.pack("<Q", start + page),
        "option": struct.pack("<Q", start + page // 2),
        "parse": struct.pack("<Q", parse),
    }
    text = "".join(line.split(maxsplit=1)[0] for line in _CODE.strip().splitlines())
    code = bytes.fromhex(text.format(**{name: value.hex() for name, value in values.items()}))
    ctypes.memmove(start, code, len(code))
    ctypes.memmove(start + page // 2, _OPTION, len(_OPTION))
    call_c("mprotect", start, page, mmap.PROT_READ | mmap.PROT_EXEC)
    return start


# --- this process's memory ----------------------------------------------------------------------


def _loaded(name: str) -> dict[str, list[tuple[int, int, int]]]:
    """Return the loaded libraries whose file name starts with `name`: path -> (start, end, protection) of each readable
    non-code mapping.
    """
    found: dict[str, list[tuple[int, int, int]]] = {}
    for line in Path("/proc/self/maps").read_text().splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and os.path.basename(fields[5]).startswith(name):
            start, end = (int(x, 16) for x in fields[0].split("-"))
            if fields[1].startswith("r") and fields[1][2] != "x":
                protection = mmap.PROT_READ | (mmap.PROT_WRITE if fields[1][1] == "w" else 0)
                found.setdefault(fields[5], []).append((start, end, protection))
    return found


def places(parts: list[tuple[int, int, int]], address: int) -> Iterator[tuple[int, int]]:
    """Yield each place in `parts` (start, end, protection) whose 8-byte word is `address`, with its protection."""
    for start, end, protection in parts:
        words = memoryview(ctypes.string_at(start, end - start)).cast("Q")
        yield from ((start + 8 * i, protection) for i, word in enumerate(words) if word == address)


def write(place: int, address: int, protection: int) -> None:
    """Write an address to `place`, making its page writable meanwhile; `protection` is what the page gets back."""
    page = place - place % mmap.PAGESIZE
    call_c("mprotect", page, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE)
    ctypes.c_uint64.from_address(place).value = address
    call_c("mprotect", page, mmap.PAGESIZE, protection)


def _address(function: ctypes._FuncPointer) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def call_c(name: str, *args: int | None) -> int:
    """Call a function of the C library; OSError where it returns -1."""
    function = getattr(ctypes.CDLL(None, use_errno=True), name)
    function.restype = ctypes.c_ssize_t
    result = int(function(*(None if arg is None else ctypes.c_size_t(arg) for arg in args)))
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
