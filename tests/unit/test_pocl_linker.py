"""The linker that PoCL is given: the system's, without the libraries that kernels do not use, or ours where the system
has none."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from cltensor.runtime import linker, pocl

KERNEL = "-shared -o {scratch}/tempfile_a1.so -L/usr/lib k.so.o -lgcc --as-needed -lgcc_s --no-as-needed -lc -lgcc"
OTHER = "-shared -o {scratch}/../mine.so -L/usr/lib k.o -lgcc --as-needed -lgcc_s --no-as-needed -lc -lgcc"
pytestmark = pytest.mark.skipif(
    not pocl._ours_links(), reason="PoCL's wheel for x86-64 is lent one"
)


def lent(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the program that PoCL would run for `ld` on a system whose files are in `folder`."""
    scratch = folder / "the scratch"
    monkeypatch.setattr(pocl, "cache_dir", lambda: folder / "cache")
    monkeypatch.setenv("POCL_CACHE_DIR", str(scratch))
    monkeypatch.setenv("PATH", f"{folder}/bin:/bin:/usr/bin" if (folder / "bin").exists() else "")
    monkeypatch.setenv("COMPILER_PATH", "/of/the/users")
    pocl._lend_linker(folder)
    pocl._lend_linker(folder)  # again, as in a child process, which inherits its parent's variables
    first, second = os.environ["COMPILER_PATH"].split(os.pathsep)
    assert second == "/of/the/users"
    return Path(first, "ld")


@pytest.mark.parametrize(
    ("helpers", "of_a_kernel"),
    [
        (True, "-L/usr/lib k.so.o -lgcc --as-needed --no-as-needed -lgcc"),
        (False, "-L/usr/lib k.so.o --as-needed --no-as-needed"),
    ],
)
def test_the_systems_leaves_out_libraries_of_kernels_alone(
    helpers: bool, of_a_kernel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = tmp_path / "bin" / "ld"
    real.parent.mkdir()
    real.write_text("#!/bin/sh\nprintf '%s|' \"$@\"\n")
    real.chmod(0o755)
    if helpers:
        folder = tmp_path / "usr/lib64/gcc/x86_64-suse-linux/13"
        folder.mkdir(parents=True)
        (folder / "libgcc.a").touch()
    ld = lent(tmp_path, monkeypatch)
    scratch = os.environ["POCL_CACHE_DIR"]

    def passed_on(words: str) -> list[str]:
        given = [word.format(scratch=scratch) for word in words.split()]
        done = subprocess.run([ld, *given], capture_output=True, text=True, check=True)
        return done.stdout.split("|")[:-1]

    assert passed_on(KERNEL) == ["-shared", "-o", f"{scratch}/tempfile_a1.so", *of_a_kernel.split()]
    assert passed_on(OTHER) == [word.format(scratch=scratch) for word in OTHER.split()]


def test_ours_is_run_where_the_system_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert linker.__file__ in lent(tmp_path, monkeypatch).read_text()
