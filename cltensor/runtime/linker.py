"""A minimal linker for PoCL: it turns a kernel's object file for x86-64 into a shared library.

PoCL 3 runs `ld` for each kernel, and aborts the process where `ld`, or a compiler library that PoCL names, is missing.
On such a machine pocl.py lets PoCL find a script that runs this file instead. The libraries themselves are not needed:
the C functions that a kernel calls are in the process already, and the dynamic loader finds them there.

This file runs as a script, without the package, because it must start quickly: it imports only built-in modules. Layout
and numbers follow the System V ABI (gabi, chapters 4 and 5) and its x86-64 supplement (section 4.4).
"""

from __future__ import annotations

import os
import sys
from struct import calcsize, iter_unpack, pack_into, unpack_from

PAGE = 0x1000
_HEADER, _SECTION, _SEGMENT = "<16sHHIQQQIHHHHHH", "<IIQQQQIIQQ", "<IIQQQQQQ"
_SYMBOL, _RELOCATION = "<IBBHQQ", "<QQq"

WRITE, ALLOC, EXECUTE, THREAD = 1, 2, 4, 0x400  # section flags SHF_*; THREAD is SHF_TLS
# Section types SHT_SYMTAB, SHT_RELA, SHT_NOBITS, SHT_REL.
SYMBOLS, RELOCATIONS, EMPTY, RELOCATIONS_WITHOUT_ADDEND = 2, 4, 8, 9
UNDEFINED, RESERVED = 0, 0xFF00  # section indices of symbols: SHN_UNDEF, SHN_LORESERVE
LOCAL, INDIRECT = 0, 10  # STB_LOCAL (a binding), STT_GNU_IFUNC (a type)
# Relocation types and the value each writes: S is the symbol's address, A the addend, P the place, G the symbol's slot
# in the GOT.
ABSOLUTE = 1  # S + A
RELATIVE_32, CALL = 2, 4  # S + A - P in 32 bits
RELATIVE_64 = 24  # S + A - P in 64 bits
SLOTS = (9, 41, 42)  # G + A - P
SLOT_ADDRESS = 6  # R_X86_64_GLOB_DAT, for the loader: a symbol's address
OWN_ADDRESS = 8  # R_X86_64_RELATIVE, for the loader: the library's load address plus A
# Tags (DT_*) of the entries in the dynamic table, which the loader reads.
NEEDED = 1
HASHES = 4
STRINGS, STRINGS_SIZE = 5, 10
DYNAMIC_SYMBOLS, SYMBOL_SIZE = 6, 11
FILLS, FILLS_SIZE, FILL_SIZE = 7, 8, 9
AT_ONCE = 24
TABLE = 11  # entries in the dynamic table, the terminating one included
# Segment types PT_LOAD, PT_DYNAMIC, PT_GNU_STACK; the last says that the stack is not executable.
LOAD, DYNAMIC, STACK = 1, 2, 0x6474E551
SEGMENTS = 5  # segments in the output
MACHINE = 62  # EM_X86_64


class Refused(Exception):
    """Raised for input that this linker does not support."""


class Section:
    """A section of the object file, with its address in the output."""

    def __init__(self, data: bytes, header: tuple) -> None:
        self.type, self.flags = header[1], header[2]
        self.offset, self.size, self.link, self.target, self.align = header[4:9]
        self.data = b"" if self.type == EMPTY else data[self.offset : self.offset + self.size]
        self.align = max(self.align, 1)
        self.address = 0
        self.relocations: list[tuple[int, int, int, int]] = []  # offset, type, symbol, addend

    @property
    def kind(self) -> str:
        """The segment for this section: "r", "x" or "w".

        A section with addresses that the loader fills in must be writable.
        """
        if self.flags & WRITE or any(r[1] == ABSOLUTE for r in self.relocations):
            return "w"
        return "x" if self.flags & EXECUTE else "r"


class Symbol:
    """A symbol of the object file; `number` is its index in the dynamic symbol table."""

    def __init__(self, name: bytes, fields: tuple) -> None:
        _, info, other, self.place, self.value, self.size = fields
        self.name, self.binding, self.type, self.visibility = name, info >> 4, info & 15, other & 3
        self.info = info
        self.number = 0

    @property
    def imported(self) -> bool:
        """Whether the symbol is defined in another library."""
        return self.place == UNDEFINED


def _read(data: bytes) -> tuple[list[Section], list[Symbol]]:
    """Parse an object file into its sections, with their relocations attached, and its symbols."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise Refused("not an object file of 64 bits, little-endian")
    header = unpack_from(_HEADER, data)
    if header[1:3] != (1, MACHINE):
        raise Refused("not an object file for x86-64")
    at, count, step = header[6], header[12], calcsize(_SECTION)
    sections = [Section(data, unpack_from(_SECTION, data, at + k * step)) for k in range(count)]
    symbols: list[Symbol] = []
    for section in sections:
        if section.type == SYMBOLS:
            names = sections[section.link].data
            for fields in iter_unpack(_SYMBOL, section.data):
                name = names[fields[0] : names.index(0, fields[0])]
                symbols.append(Symbol(name, fields))
    for section in sections:
        if section.type in (RELOCATIONS, RELOCATIONS_WITHOUT_ADDEND):
            target = sections[section.target]
            if not target.flags & ALLOC:
                continue
            if section.type != RELOCATIONS:
                raise Refused("relocations without addends")
            for offset, info, addend in iter_unpack(_RELOCATION, section.data):
                target.relocations.append((offset, info & 0xFFFFFFFF, info >> 32, addend))
    return sections, symbols


def _up(at: int, align: int) -> int:
    return -(-at // align) * align


class Library:
    """A shared library under construction. Virtual addresses equal offsets in the file.

    It has three parts, each on pages of its own: read-only (header, tables, constants), executable (code, and a jump
    for each imported function), writable by the loader or the program (dynamic table, addresses of symbols, data).
    """

    def __init__(self, data: bytes) -> None:
        self.sections, self.symbols = _read(data)
        self.parts = [s for s in self.sections if s.flags & ALLOC]
        if any(s.flags & THREAD for s in self.parts):
            raise Refused("data of threads")
        self.slots: dict[int, int] = {}  # symbol -> the place of its GOT slot
        self.stubs: dict[int, int] = {}  # imported function -> the place of the jump to it (PLT)
        self.absolute = 0  # number of absolute relocations
        self._find_demands()
        # The dynamic symbol table: symbols by their numbers from 1 on.
        self.seen = [
            s for s in self.symbols if s.name and s.binding != LOCAL and s.visibility in (0, 3)
        ]
        for number, s in enumerate(self.seen, 1):
            s.number = number
        self.names: list[int] = []  # offsets in `strings` of these symbols' names and of libc's
        self.strings = bytearray(b"\0")
        for name in (*[s.name for s in self.seen], b"libc.so.6"):
            self.names.append(len(self.strings))
            self.strings += name + b"\0"
        self.fills: list[tuple[int, int, int]] = []  # relocations for the loader

    def _find_demands(self) -> None:
        """Find which symbols need a GOT slot, a jump or an absolute address.

        Raise Refused for unsupported relocations.
        """
        for part in self.parts:
            for _, kind, number, _ in part.relocations:
                s = self.symbols[number]
                if s.place >= RESERVED or s.type == INDIRECT:
                    raise Refused(f"the symbol {s.name.decode()}")
                if kind not in (ABSOLUTE, RELATIVE_32, CALL, RELATIVE_64, *SLOTS) or (
                    s.imported and kind == RELATIVE_64
                ):
                    raise Refused(f"relocations of type {kind}")
                called = s.imported and kind in (RELATIVE_32, CALL)
                if called or kind in SLOTS:
                    self.slots[number] = 0
                if called:
                    self.stubs[number] = 0
                self.absolute += kind == ABSOLUTE

    def made(self) -> bytes:
        """Return the finished library's bytes."""
        self._lay_out()
        self.out = bytearray(self.stored)
        for part in self.parts:
            if part.type != EMPTY:
                self.out[part.address : part.address + part.size] = part.data
        self._fill_slots()
        for part in self.parts:
            for relocation in part.relocations:
                self._relocate(part, *relocation)
        self._write_tables()
        self._write_header()
        return bytes(self.out)

    def _lay_out(self) -> None:
        """Assign an address to every table, section, stub and slot."""
        count = len(self.seen) + 1
        self.symbols_at = calcsize(_HEADER) + SEGMENTS * calcsize(_SEGMENT)
        self.strings_at = self.symbols_at + count * calcsize(_SYMBOL)
        self.hashes_at = _up(self.strings_at + len(self.strings), 8)
        self.fills_at = _up(self.hashes_at + 4 * (3 + count), 8)
        at = self.fills_at + (len(self.slots) + self.absolute) * calcsize(_RELOCATION)
        self.read_end = at = self._place("r", at)
        self.code = at = _up(at, PAGE)
        at = _up(self._place("x", at), 8)
        for number in self.stubs:
            self.stubs[number] = at
            at += 8
        self.code_end = at
        self.table = at = _up(at, PAGE)
        at += TABLE * 16
        for number in self.slots:
            self.slots[number] = at
            at += 8
        data = [p for p in self.parts if p.kind == "w" and p.type != EMPTY]
        self.end = self._place("w", at)
        self.stored = max([at, *[p.address + p.size for p in data]])

    def _place(self, kind: str, at: int) -> int:
        """Place the sections of a kind from `at` on, those without bytes in the file (NOBITS) last.

        Return where they end.
        """
        of_kind = [p for p in self.parts if p.kind == kind]
        for part in sorted(of_kind, key=lambda p: p.type == EMPTY):
            part.address = _up(at, part.align)
            at = part.address + part.size
        return at

    def _address(self, s: Symbol) -> int:
        return self.sections[s.place].address + s.value

    def _ask(self, place: int, s: Symbol, kind: int, addend: int = 0) -> None:
        """Add a relocation: the loader is to write a symbol's address plus an addend to `place`."""
        if s.imported:
            self.fills.append((place, s.number << 32 | kind, addend))
        else:
            self.fills.append((place, OWN_ADDRESS, self._address(s) + addend))

    def _fill_slots(self) -> None:
        for number, slot in self.slots.items():
            self._ask(slot, self.symbols[number], SLOT_ADDRESS)
        for number, at in self.stubs.items():
            jump = self.slots[number] - (at + 6)
            pack_into("<HiH", self.out, at, 0x25FF, jump, 0x9066)  # jmp [rip + jump]; nop

    def _relocate(self, part: Section, offset: int, kind: int, number: int, addend: int) -> None:
        s, place = self.symbols[number], part.address + offset
        if kind == ABSOLUTE:
            self._ask(place, s, ABSOLUTE, addend)
            return
        if kind in SLOTS:
            goal = self.slots[number]
        else:
            goal = self.stubs[number] if s.imported else self._address(s)
        pack_into("<q" if kind == RELATIVE_64 else "<i", self.out, place, goal + addend - place)

    def _write_tables(self) -> None:
        count = len(self.seen) + 1
        for s, name in zip(self.seen, self.names, strict=False):
            where = (UNDEFINED, 0) if s.imported else (1, self._address(s))
            at = self.symbols_at + s.number * calcsize(_SYMBOL)
            pack_into(_SYMBOL, self.out, at, name, s.info, s.visibility, *where, s.size)
        self.out[self.strings_at : self.strings_at + len(self.strings)] = self.strings
        # The hash table has one bucket, with a chain through all symbols.
        chain = [*range(2, count), 0] if count > 1 else []
        first = min(1, len(self.seen))
        pack_into(f"<{3 + count}I", self.out, self.hashes_at, 1, count, first, 0, *chain)
        for k, fill in enumerate(self.fills):
            pack_into(_RELOCATION, self.out, self.fills_at + k * calcsize(_RELOCATION), *fill)
        table = {
            NEEDED: self.names[-1],
            HASHES: self.hashes_at,
            STRINGS: self.strings_at,
            STRINGS_SIZE: len(self.strings),
            DYNAMIC_SYMBOLS: self.symbols_at,
            SYMBOL_SIZE: calcsize(_SYMBOL),
            FILLS: self.fills_at,
            FILLS_SIZE: len(self.fills) * calcsize(_RELOCATION),
            FILL_SIZE: calcsize(_RELOCATION),
            AT_ONCE: 0,
        }
        for k, entry in enumerate(table.items()):  # the zeros behind them end the table
            pack_into("<QQ", self.out, self.table + 16 * k, *entry)

    def _write_header(self) -> None:
        identity = b"\x7fELF\x02\x01\x01" + bytes(9)
        sizes = (calcsize(_HEADER), calcsize(_SEGMENT), SEGMENTS, 0, 0, 0)
        pack_into(_HEADER, self.out, 0, identity, 3, MACHINE, 1, 0, sizes[0], 0, 0, *sizes)
        ends = [(0, self.read_end), (self.code, self.code_end), (self.table, self.stored)]
        segments = [
            (LOAD, flags, start, end - start, PAGE)
            for flags, (start, end) in zip((4, 5, 6), ends, strict=True)
        ]
        segments += [(DYNAMIC, 6, self.table, TABLE * 16, 8), (STACK, 6, 0, 0, 16)]
        for k, (kind, flags, start, size, align) in enumerate(segments):
            room = self.end - start if k == 2 else size
            at = calcsize(_HEADER) + k * calcsize(_SEGMENT)
            pack_into(_SEGMENT, self.out, at, kind, flags, start, start, start, size, room, align)


def main(arguments: list[str]) -> int:
    """Link as `ld` would with these arguments; run the real `ld`, if there is one, for what is not supported.

    Returns the exit status.
    """
    inputs = [a for a in arguments if a.endswith(".o")]
    try:
        if "-shared" not in arguments or len(inputs) != 1 or "-o" not in arguments:
            raise Refused("anything but one object file to a shared library")
        with open(inputs[0], "rb") as file:
            made = Library(file.read()).made()
        out = arguments[arguments.index("-o") + 1]
        with open(out, "wb") as file:
            file.write(made)
        os.chmod(out, 0o755)
    except Refused as refused:
        here = os.environ.get("COMPILER_PATH", "").split(os.pathsep)
        for folder in os.environ.get("PATH", "").split(os.pathsep):
            real = os.path.join(folder, "ld")
            if folder not in here and os.access(real, os.X_OK):
                os.execv(real, [real, *arguments])
        print(f"cltensor's linker does not link {refused}; install binutils", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
