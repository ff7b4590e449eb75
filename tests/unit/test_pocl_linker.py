"""When PoCL is lent a linker: where `ld` is missing, or any library that PoCL tells it to link."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cltensor.runtime import pocl

LIBGCC = "usr/lib/gcc/x86_64-linux-gnu/12/libgcc.a"


@pytest.mark.parametrize(
    ("program", "files", "links"),
    [
        ("/usr/bin/ld", (LIBGCC, "usr/lib/x86_64-linux-gnu/libc.so"), True),
        ("/usr/bin/ld", ("usr/lib64/gcc/x86_64-suse-linux/13/libgcc.a", "usr/lib64/libc.so"), True),
        ("/usr/bin/ld", (LIBGCC,), False),
        ("/usr/bin/ld", ("usr/lib/x86_64-linux-gnu/libc.so",), False),
        ("/usr/bin/ld", (), False),
        (None, (LIBGCC, "usr/lib/x86_64-linux-gnu/libc.so"), False),
    ],
)
def test_what_the_system_must_have(
    program: str | None,
    files: tuple[str, ...],
    links: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: program)
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    assert pocl._system_links(tmp_path) is links
