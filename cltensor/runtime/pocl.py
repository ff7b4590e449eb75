"""Preparation of PoCL, the OpenCL driver for the CPU that pip installs, before it is loaded.

Owns PoCL's environment variables, its folder of compiled files, the linker it runs where the system has none, and the
folder of links through which PoCL finds its own files, two of them replaced (Note [Links]). Must not import pyopencl.

Note [Links]. PoCL 3.0 looks for its files beside the path it was loaded from. Loading it first through a symbolic link,
in a folder of links to its files, makes it possible to replace some of them; pyopencl's loader then gets the same
handle. Two are replaced:

- The builtin library for AVX-512, on processors with only a part of AVX-512: PoCL sees AVX-512 and links those
  builtins, but its LLVM generates AVX2 code, and `exp(float16)` then crashes the compiler. PoCL gets the AVX2 builtins
  instead.
- The header of builtins: clang parses 14,000 declarations for every kernel, in 0.1 s, of which the kernel uses a dozen.
  Programs built with `BUILTINS` contain those they use (builtin_header.py); other programs in the process, and any that
  fail to build this way, read the whole header.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import hashlib
import json
import os
import platform
import shlex
import shutil
import socket
import sys
import tempfile
from pathlib import Path

from cltensor.errors import debug_line

from . import builtin_header, outline
from .folders import cache_dir, writable, write_whole
from .processor import wide_in_part
from .threads import limit_threads, number

BUILTINS = "-DCLTENSOR_BUILTINS"
NO_ASSEMBLY = "-DCLT_NO_ASSEMBLY"
# Kernels that needed the whole header. Tests assert that none of cltensor's own is among them.
lacking: list[str] = []
_scratch: list[tuple[Path, int]] = []  # folders to remove at exit, with the pid of their process
_short_header = False  # whether the loaded PoCL's header chooses the short version for `BUILTINS`
_declarations: Path | None = None  # JSON file of the declarations left out of the short header
_WHEELS = (3, 0)  # the version of pip's PoCL, the only one whose header is replaced
# Limits the threads of PoCL from 4 on, which runs kernels itself; a team is limited by runtime/team.py.
_MOST_THREADS = "POCL_CPU_MAX_CU_COUNT"
_SCRATCH_VARIABLE = "CLTENSOR_POCL_SCRATCH"  # tells children that POCL_CACHE_DIR is not the user's


def prepare() -> None:
    """Set PoCL up; called once, before the first driver is loaded."""
    given = os.environ.get("POCL_CACHE_DIR")
    # A folder set by a parent process is not reused: it is deleted when the parent ends.
    if given is None or given == os.environ.get(_SCRATCH_VARIABLE):
        _make_scratch()
    # Compile one version of each kernel, for any grid: specialised versions are no faster, and PoCL would compile
    # the general one as well when asked for a binary, which takes as long again.
    os.environ.setdefault("POCL_WORK_GROUP_SPECIALIZATION", "0")
    limit_threads(_MOST_THREADS)
    if _a_thread_per_processor():
        os.environ.setdefault("POCL_AFFINITY", "1")
    if _ours_links():
        _lend_linker()
    _link_files()


def _a_thread_per_processor() -> bool:
    """Return whether PoCL's threads may each be bound to a processor, from 0 up, as POCL_AFFINITY does.

    Unbound threads that wake together often land on the same processor, where one of them then does all the work of a
    kernel that takes less than a millisecond. PoCL aborts if it may not use one of the processors; and with fewer
    threads than processors, the threads of several processes would all be bound to the first ones.
    """
    if not hasattr(os, "sched_getaffinity"):
        return False
    ours = os.sched_getaffinity(0)
    limits = [number(name, len(ours)) for name in (_MOST_THREADS, "POCL_MAX_PTHREAD_COUNT")]
    return ours == set(range(os.cpu_count() or 0)) and min(limits) >= len(ours)


def build_options(version: tuple[int, ...]) -> tuple[str, ...]:
    """Return the build options for this version of PoCL.

    `NO_ASSEMBLY` from 4.0 on: PoCL 6 ends the process over inline assembly (an assertion in LLVM 18, reached from one
    of PoCL's passes). `BUILTINS` for the wheel's PoCL only: any other PoCL reads its own whole header, after which
    declaring a builtin again is an error.
    """
    options = (BUILTINS,) if _short_header and version == _WHEELS else ()
    return options if version < (4, 0) else (*options, NO_ASSEMBLY)


# --- the linker ---------------------------------------------------------------------------------


def linker_error() -> str | None:
    """Return the error text for the user if PoCL will find no `ld`; None if it will find one.

    PoCL 3 runs `ld` at the first launch of each kernel and aborts the process when there is none.
    """
    if shutil.which("ld") or _ours_links():
        return None
    return (
        "PoCL, the OpenCL driver for the CPU, needs the program `ld`, which is not on PATH. "
        "Install it (Debian, Ubuntu: apt install binutils; Fedora: dnf install binutils)"
    )


def _ours_links() -> bool:
    return sys.platform == "linux" and platform.machine() == "x86_64"


# PoCL makes `ld` link the C library, which takes most of the linker's time. All that a kernel needs of it is in the
# process already, and the system may lack the library's file. Compilers also search COMPILER_PATH and may find this
# script: for them it changes nothing.
_SHORT_OF_LIBRARIES = """#!/bin/sh
case "$*" in
  *"-o $POCL_CACHE_DIR/tempfile_"*)
    for word; do shift; case $word in {dropped}) ;; *) set -- "$@" "$word" ;; esac; done ;;
esac
exec {system} "$@"
"""


def _lend_linker(root: Path = Path("/")) -> None:
    """Put a script named `ld` on COMPILER_PATH for PoCL: the system's linker without libraries, or linker.py where
    there is none.
    """
    system = shutil.which("ld")
    if system:
        helpers = any(root.glob("usr/lib*/gcc/*/*/libgcc.a"))  # the compiler's own functions
        dropped = "-lc | -lgcc_s" if helpers else "-l*"
        script = _SHORT_OF_LIBRARIES.format(dropped=dropped, system=shlex.quote(system))
    else:
        program = Path(__file__).with_name("linker.py")
        script = (
            f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -IS {shlex.quote(str(program))} "$@"\n'
        )
    parent = cache_dir() if writable(cache_dir()) else Path(os.environ["POCL_CACHE_DIR"])
    folder = parent / f"linker-{hashlib.sha1(script.encode()).hexdigest()[:12]}"
    if not (folder / "ld").exists():
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f"ld-{os.getpid()}"
        part.write_text(script)
        part.chmod(0o755)
        part.replace(folder / "ld")
    given = os.environ.get("COMPILER_PATH", "").split(os.pathsep)
    if str(folder) not in given:
        os.environ["COMPILER_PATH"] = os.pathsep.join(filter(None, (str(folder), *given)))
    debug_line(1, "PoCL links by %s", system or "a linker of ours: the system has none")


# --- folders ------------------------------------------------------------------------------------


def _make_scratch() -> None:
    """Set POCL_CACHE_DIR to a folder of this process alone, removed at exit.

    PoCL's cache is deliberately not shared between processes: it grows without bound, and an entry that a killed
    process left half-written makes every later process fail. cltensor's own disk cache keeps the binaries.
    """
    parent = cache_dir() / "pocl"
    host = hashlib.sha1(socket.gethostname().encode()).hexdigest()[:8]
    if writable(parent):
        for left in parent.glob(f"{host}-*-*"):
            if not _alive(left.name.split("-")[1]):
                shutil.rmtree(left, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=f"{host}-{os.getpid()}-", dir=parent))
    else:
        folder = Path(tempfile.mkdtemp(prefix="cltensor-pocl-"))
    os.environ["POCL_CACHE_DIR"] = os.environ[_SCRATCH_VARIABLE] = str(folder)
    _scratch.append((folder, os.getpid()))


# Registered before registry.py's exit function and so run after it: until then PoCL reads these files.
@atexit.register
def _remove_scratch() -> None:
    for folder, pid in _scratch:
        if os.getpid() == pid:  # not in a forked child
            shutil.rmtree(folder, ignore_errors=True)


def _alive(pid: str) -> bool:
    if os.name != "posix" or not pid.isdigit():
        return True
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


# --- PoCL's own files ---------------------------------------------------------------------------


def _link_files() -> None:
    """Load the wheel's PoCL through a folder of symbolic links to its files (Note [Links])."""
    global _short_header
    if not sys.platform.startswith("linux") or "pyopencl" in sys.modules:
        return
    from importlib.util import find_spec

    cl_spec, pocl_spec = find_spec("pyopencl"), find_spec("pocl_binary_distribution")
    if not (cl_spec and cl_spec.origin and pocl_spec and pocl_spec.origin):
        return
    files = Path(pocl_spec.origin).parent / ".libs"
    share = files / "share" / "pocl"
    driver = next((Path(cl_spec.origin).parent / ".libs").glob("libpocl*.so*"), None)
    if driver is None or not share.is_dir():
        return
    if not _scratch:  # the user chose PoCL's folder
        _scratch.append((Path(tempfile.mkdtemp(prefix="cltensor-pocl-")), os.getpid()))
    root = _scratch[0][0] / "links"
    try:
        new_files = root / "pocl_binary_distribution" / ".libs"
        (new_files / "share" / "pocl" / "include").mkdir(parents=True)
        (root / "pyopencl" / ".libs").mkdir(parents=True)
        for path in files.glob("lib*"):
            (new_files / path.name).symlink_to(path)
        _link_builtins(share, new_files / "share" / "pocl")
        shortened = _link_header(share / "include", new_files / "share" / "pocl" / "include")
        link = root / "pyopencl" / ".libs" / driver.name
        link.symlink_to(driver)
        ctypes.CDLL(str(link))
        _short_header = shortened
    except OSError as error:
        debug_line(1, "PoCL is loaded as it is: %s", error)
        shutil.rmtree(root, ignore_errors=True)


def _link_builtins(share: Path, links: Path) -> None:
    avx2 = next(share.glob("kernel-*-avx2.bc"), None)
    for path in share.iterdir():
        if path.name != "include":
            swapped = avx2 and path.name.endswith("-avx512.bc") and wide_in_part()
            (links / path.name).symlink_to(avx2 if avx2 and swapped else path)


def _link_header(include: Path, links: Path) -> bool:
    """Link PoCL's headers, that of the builtins through a new file which includes the short or the whole one.

    Returns False, with all headers linked unchanged, where the short header cannot be made.
    """
    whole = include / "opencl-c.h"
    short = _apart(whole) if whole.is_file() else None
    for path in include.iterdir():
        if short is None or path != whole:
            (links / path.name).symlink_to(path)
    if short is None:
        return False
    (links / "opencl-c-whole.h").symlink_to(whole)
    (links / "opencl-c-short.h").symlink_to(short)
    (links / whole.name).write_text(
        f'#ifdef {BUILTINS[2:]}\n#include "opencl-c-short.h"\n#else\n#include "opencl-c-whole.h"\n#endif\n'
    )
    return True


def _apart(whole: Path) -> Path | None:
    """Return the file of the short header (what every program needs), made at first use.

    None where it cannot be written.
    """
    global _declarations
    stat = whole.stat()
    facts = f"{whole.name} {stat.st_size} {stat.st_mtime_ns} {revision()}"
    digest = hashlib.sha256(facts.encode()).hexdigest()[:24]
    folder = cache_dir() / "pocl-headers"
    kept, _declarations = folder / f"{digest}.h", folder / f"{digest}.json"
    if kept.is_file():
        return kept
    if not writable(folder):
        return None
    frame, declared = builtin_header.take_apart(whole.read_text())
    for path, text in ((_declarations, json.dumps(declared)), (kept, frame)):
        write_whole(path, text.encode())
    for old in folder.iterdir():
        if old.stat().st_mtime < kept.stat().st_mtime - 30 * 86400:
            old.unlink(missing_ok=True)
    return kept


@functools.cache
def revision() -> str:
    """Return a digest of the code behind `with_builtins`: a part of the disk cache's keys, since that code determines
    the program.
    """
    texts = [Path(str(module.__file__)).read_bytes() for module in (builtin_header, outline)]
    return hashlib.sha256(b"".join(texts)).hexdigest()[:24]


def with_builtins(source: str) -> str:
    """Return a program's text for a build with `BUILTINS`: the builtins it names, then its source with outlined kernel
    bodies.
    """
    return outline.PRELUDE + builtin_header.with_builtins(outline.outlined(source), _declared())


@functools.cache
def _declared() -> dict[str, str]:
    try:
        return json.loads(_declarations.read_text()) if _declarations else {}
    except OSError:  # the file is gone: programs that call a builtin then need the whole header
        return {}
