"""The processor names that PoCL is given, and the place in its memory where they are written."""

from __future__ import annotations

import ctypes
import sys

import pytest

from cltensor.backends import cpu
from cltensor.runtime import processor

BASE = "abm avx avx2 bmi1 bmi2 f16c fma movbe popcnt sse4_1 sse4_2 ssse3"
SKYLAKE = f"{BASE} avx512bw avx512cd avx512dq avx512f avx512vl"
ICELAKE = (
    f"{SKYLAKE} avx512_bitalg avx512_vbmi2 avx512_vnni avx512_vpopcntdq avx512ifma avx512vbmi"
    " gfni vaes vpclmulqdq"
)


@pytest.mark.parametrize(
    ("flags", "name"),
    [
        (ICELAKE + " sha_ni", "icelake-server"),
        (SKYLAKE, "skylake-avx512"),
        (BASE + " avx512f", "haswell"),
        (BASE, "haswell"),
        ("popcnt sse4_1 sse4_2 ssse3 avx", "nehalem"),
        ("sse2", "x86-64"),
    ],
)
def test_best_name_needs_only_what_is_there(flags: str, name: str) -> None:
    assert processor.best_name(frozenset(flags.split())) == name


@pytest.mark.parametrize(
    ("flags", "capability"),
    [(ICELAKE, "AVX512"), (SKYLAKE, "AVX512"), (BASE, "AVX2"), ("sse2", "DEFAULT")],
)
def test_capability_in_words_of_torch(
    monkeypatch: pytest.MonkeyPatch, flags: str, capability: str
) -> None:
    monkeypatch.setattr(cpu, "facts", lambda: {"flags": frozenset(flags.split())})
    assert cpu.get_cpu_capability() == capability


@pytest.mark.parametrize(
    ("flags", "part"),
    [(ICELAKE, False), (SKYLAKE, False), (BASE, False), (f"{BASE} avx512f", True)],
)
def test_a_part_of_avx512(monkeypatch: pytest.MonkeyPatch, flags: str, part: bool) -> None:
    monkeypatch.setattr(processor, "facts", lambda: {"flags": frozenset(flags.split())})
    assert processor.wide_in_part() is part


class Record:
    """Memory laid out like the driver's record of a device: words, some of which point to text."""

    def __init__(self, *words: bytes | int) -> None:
        self.texts = [ctypes.create_string_buffer(w) for w in words if isinstance(w, bytes)]
        texts = iter(self.texts)
        values = [ctypes.addressof(next(texts)) if isinstance(w, bytes) else w for w in words]
        self.words = (ctypes.c_uint64 * 256)(*values)
        self.address = ctypes.addressof(self.words)

    def text(self, index: int) -> bytes:
        return ctypes.string_at(self.words[index])


@pytest.fixture
def flags(monkeypatch: pytest.MonkeyPatch) -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("reads /proc")
    processor.rename.cache_clear()  # records of earlier tests may have been at the same addresses
    monkeypatch.setattr(processor, "facts", lambda: {"flags": frozenset(BASE.split())})


@pytest.mark.usefixtures("flags")
def test_a_generic_processor_gets_a_name() -> None:
    record = Record(7, 1 << 40, b"generic", b"x86_64-unknown-linux-gnu", b"generic", b"generic")
    assert processor.rename(record.address) == "haswell"
    assert [record.text(n) for n in (2, 4, 5)] == [b"generic", b"haswell", b"generic"]
    assert processor.rename(record.address) == "haswell"  # the second call gives the same


@pytest.mark.usefixtures("flags")
@pytest.mark.parametrize(("has", "name"), [(ICELAKE, b"icelake-server"), (BASE, b"znver3")])
def test_avx512_is_made_use_of_where_zen_4_is_taken_for_zen_3(
    monkeypatch: pytest.MonkeyPatch, has: str, name: bytes
) -> None:
    monkeypatch.setattr(processor, "facts", lambda: {"flags": frozenset(has.split())})
    record = Record(b"x86_64-pc-linux-gnu", b"znver3")
    processor.rename(record.address)
    assert record.text(1) == name


@pytest.mark.usefixtures("flags")
@pytest.mark.parametrize(
    "words",
    [(b"x86_64-pc-linux", b"znver3"), (b"aarch64-linux", b"generic"), (b"generic",), (), (1, 2, 3)],
    ids=["known", "aarch64", "alone", "nothing", "numbers"],
)
def test_other_records_are_left_alone(words: tuple[bytes | int, ...]) -> None:
    record = Record(*words)
    before = list(record.words)
    assert processor.rename(record.address) == ""
    assert list(record.words) == before


@pytest.mark.usefixtures("flags")
def test_no_record_is_no_crash() -> None:
    assert processor.rename(1 << 46) == ""
