"""The linker that PoCL uses where the system has none: its libraries load and compute what those of the real linker
do."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cltensor.runtime import linker

COMPILER = shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")
pytestmark = pytest.mark.skipif(
    COMPILER is None or sys.platform != "linux" or os.uname().machine != "x86_64",
    reason="objects for x86-64 are made by a compiler",
)

SOURCE = r"""
#include <math.h>
#include <string.h>
extern char **environ;
static int counts[4] = {1, 2, 3, 4};
static int room[1000];
int *places[3] = {counts + 1, counts + 3, room + 7};
const char *const names[2] = {"first", "second"};
static int twice(int x) { return 2 * x; }
static int thrice(int x) { return 3 * x; }
int (*const ways[2])(int) = {twice, thrice};
__attribute__((weak)) extern int nowhere(void);
int choose(int k) {
  switch (k) {
    case 0: return 11; case 1: return 7; case 2: return 5; case 3: return 3; case 4: return 2; case 5: return 13;
    default: return -1;
  }
}
double total(const double *xs, int n) {
  double sum = 0, copy[64];
  memcpy(copy, xs, n * sizeof(double));
  for (int i = 0; i < n; i++) sum += cos(copy[i]) * ways[i & 1](i) + *places[i % 2];
  return sum + strlen(names[n & 1]) + choose(n);
}
int next(void) { return ++*places[2]; }
int has(void) { return (environ != 0) + 2 * (nowhere != 0) + 4 * (room[7] > 0); }
"""


def compiled(folder: Path, source: str, *flags: str) -> Path:
    text, out = folder / "a.c", folder / "a.o"
    text.write_text(source)
    subprocess.run([str(COMPILER), *flags, "-c", text, "-o", out], check=True)
    return out


def linked(folder: Path, source: str, *flags: str) -> ctypes.CDLL:
    """Compile and link with the command line that PoCL uses."""
    made = folder / f"made{len(list(folder.iterdir()))}.so"
    arguments = [
        "-shared",
        "-o",
        str(made),
        "-L/usr/lib",
        str(compiled(folder, source, *flags)),
        "-lgcc",
    ]
    command = [sys.executable, "-IS", linker.__file__, *arguments]
    subprocess.run(command, check=True)
    ctypes.CDLL("libm.so.6", ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(str(made))


@pytest.mark.parametrize(
    "flags", ["-O0", "-O2", "-O2 -fno-plt", "-O3 -fno-jump-tables", "-O1 -ffunction-sections"]
)
def test_what_it_makes_is_loaded_and_runs(flags: str, tmp_path: Path) -> None:
    ours = linked(tmp_path, SOURCE, "-fPIC", *flags.split())
    subprocess.run(
        [str(COMPILER), "-fPIC", "-shared", tmp_path / "a.c", "-o", tmp_path / "theirs.so", "-lm"],
        check=True,
    )
    theirs = ctypes.CDLL(str(tmp_path / "theirs.so"))
    xs = (ctypes.c_double * 20)(*[0.37 * k for k in range(20)])
    for library in (ours, theirs):
        library.total.restype = ctypes.c_double
    for n in range(20):
        assert ours.total(xs, n) == pytest.approx(theirs.total(xs, n), rel=1e-12)
        assert ours.choose(n) == theirs.choose(n)
    # A data symbol of the C library, an undefined weak function, zero-initialised memory (.bss).
    assert ours.has() == theirs.has() == 1
    assert [ours.next() for _ in range(3)] == [1, 2, 3]
    assert ours.has() == 5


@pytest.mark.parametrize(
    ("source", "flags", "why"),
    [
        ("__thread int t; int f(void) { return t; }", "-fPIC", "data of threads"),
        ("int t; int *f(void) { return &t; }", "-fno-pic -mcmodel=large -fcommon", "the symbol t"),
        (
            "int g(void); int t[9]; int f(long i) { return t[i]; }",
            "-fno-pic -fno-pie -O2",
            "relocations of type",
        ),
    ],
)
def test_what_kernels_do_not_have_is_refused(
    source: str, flags: str, why: str, tmp_path: Path
) -> None:
    with pytest.raises(linker.Refused, match=why):
        linker.Library(compiled(tmp_path, source, *flags.split()).read_bytes())


def test_other_work_is_the_real_linkers(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    real = tmp_path / "ld"
    real.write_text('#!/bin/sh\necho real "$@"\n')
    real.chmod(0o755)
    command = [sys.executable, "-IS", linker.__file__, "a.o", "b.o"]
    env = {"PATH": str(tmp_path)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "real a.o b.o\n"
    env["COMPILER_PATH"] = str(tmp_path)  # our linker finds itself here, and must not run itself
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "install binutils" in done.stderr
