"""Brings pyopencl in once, with every OpenCL runtime that pip installed findable.

Owns the drivers' environment: ICD folders, preloaded libraries, PoCL's variables, `ld`.
Must not know devices as users see them, contexts or kernels.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import glob
import hashlib
import os
import platform
import shutil
import socket
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from cltensor.config import CONFIG
from cltensor.errors import debug_line

_lock = threading.Lock()
_scratch: list[tuple[Path, int]] = []  # folders to remove at exit, and whose they are
_cl: Any = None
_loaded_in = 0  # pid of the process that touched a driver; 0 while none did

# In the order in which they need each other; names as in intel-cmplr-lib-rt and tbb.
_INTEL_LIBRARIES = ("libintlc.so.5", "libirng.so", "libimf.so", "libsvml.so", "libtbb.so.12")
_SCRATCH_VARIABLE = "CLTENSOR_POCL_SCRATCH"  # tells children that POCL_CACHE_DIR is not the user's
_TWINS = "pthread basic"
FORK_ERROR = (
    "Cannot re-initialize OpenCL in forked subprocess. To use OpenCL with multiprocessing, you "
    "must use the 'spawn' start method"
)


def load() -> Any:
    """Return the pyopencl module, prepared on the first call.

    Raises ImportError without pyopencl; RuntimeError in a child forked after a device was used.
    """
    global _cl, _loaded_in
    if _cl is not None and _loaded_in == os.getpid():
        return _cl
    with _lock:
        if _loaded_in and _loaded_in != os.getpid():
            raise RuntimeError(FORK_ERROR)
        if _cl is None:
            _prepare_pocl()
            _prepare_intel()
            import pyopencl

            _cl = pyopencl
        _loaded_in = os.getpid()
    return _cl


def forked() -> bool:
    """Say whether this process is a fork of one that had used a driver."""
    return _loaded_in not in (0, os.getpid())


@functools.cache
def cache_dir() -> Path:
    """Return the folder for compiled kernels: CLTENSOR_CACHE_DIR, else the user's cache folder."""
    if CONFIG.cache_dir is not None:
        return CONFIG.cache_dir
    import platformdirs

    return Path(platformdirs.user_cache_dir("cltensor"))


def writable(folder: Path) -> bool:
    """Make `folder` and say whether files can be created in it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder)
        os.close(handle)
        os.unlink(name)
    except OSError:
        return False
    return True


def linker_error() -> str | None:
    """Return what to tell the user when PoCL would find no `ld`, None when all is well.

    PoCL 3 runs `ld` at the first launch of each kernel and aborts the process when there is none.
    """
    if shutil.which("ld"):
        return None
    return (
        "PoCL, the OpenCL driver for the CPU, needs the program `ld`, which is not on PATH. "
        "Install it (Debian, Ubuntu: apt install binutils; Fedora: dnf install binutils), or "
        'install Intel\'s driver, which needs none: pip install "cltensor[intel]"'
    )


# --- PoCL ---------------------------------------------------------------------------------------


def _prepare_pocl() -> None:
    given = os.environ.get("POCL_CACHE_DIR")
    if given is None or given == os.environ.get(_SCRATCH_VARIABLE):  # a parent's, gone when it ends
        _make_scratch()
    _ask_for_twins()
    _fix_zen4_builtins()


def _ask_for_twins() -> None:
    """Have the wheel's PoCL offer its single-threaded device too (Note [Inline lane]).

    Only where it is the one PoCL around: the names of its devices changed with version 4. CLTENSOR_INLINE=0 turns it off.
    """
    if os.environ.get("CLTENSOR_INLINE") == "0":
        return
    if "POCL_DEVICES" in os.environ or "pyopencl" in sys.modules:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        ours = version("pocl-binary-distribution").startswith("3.")
    except PackageNotFoundError:
        return
    folder = Path(os.environ.get("OCL_ICD_VENDORS", "/etc/OpenCL/vendors"))
    if ours and not any("pocl" in path.name for path in (folder, *folder.glob("*.icd"))):
        os.environ["POCL_DEVICES"] = _TWINS


def asked_for_twins() -> bool:
    """Say whether PoCL's single-threaded device is there for us and not because the user wants it."""
    return os.environ.get("POCL_DEVICES") == _TWINS


def _make_scratch() -> None:
    """Give PoCL's files a folder of this process, removed at exit.

    PoCL's own cache is not shared between processes on purpose: it grows without bound, and an
    entry left half-written by a killed process fails every later one. Ours keeps the binaries.
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


# Registered before backend.py's exit function, so run after it: PoCL reads these files until then.
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


def _fix_zen4_builtins() -> None:
    """Give the wheel's PoCL 3.0 on AMD Zen 4 the AVX2 builtin library.

    Its LLVM 14 takes Zen 4 for Zen 3 and generates AVX2 code, while PoCL sees AVX-512 and links
    the AVX-512 builtins to it: `exp(float16)` then crashes the compiler. PoCL finds its library
    beside the path it was loaded from, so loading it first through a link in a folder of links
    whose AVX-512 file is the AVX2 one settles it; pyopencl's loader then gets the same handle.
    """
    if not sys.platform.startswith("linux") or not _is_zen4() or "pyopencl" in sys.modules:
        return
    from importlib.util import find_spec

    cl_spec, pocl_spec = find_spec("pyopencl"), find_spec("pocl_binary_distribution")
    if not (cl_spec and cl_spec.origin and pocl_spec and pocl_spec.origin):
        return
    libraries = Path(cl_spec.origin).parent / ".libs"
    files = Path(pocl_spec.origin).parent / ".libs"
    share = files / "share" / "pocl"
    avx2 = next(share.glob("kernel-*-avx2.bc"), None)
    avx512 = next(share.glob("kernel-*-avx512.bc"), None)
    driver = next(libraries.glob("libpocl*.so*"), None)
    if not (avx2 and avx512 and driver):
        return
    if not _scratch:  # the user chose PoCL's folder
        _scratch.append((Path(tempfile.mkdtemp(prefix="cltensor-pocl-")), os.getpid()))
    root = _scratch[0][0] / "links"
    try:
        new_share = root / "pocl_binary_distribution" / ".libs" / "share" / "pocl"
        new_share.mkdir(parents=True)
        (root / "pyopencl" / ".libs").mkdir(parents=True)
        for path in share.iterdir():
            (new_share / path.name).symlink_to(avx2 if path == avx512 else path)
        for path in files.glob("lib*"):
            (new_share.parent.parent / path.name).symlink_to(path)
        link = root / "pyopencl" / ".libs" / driver.name
        link.symlink_to(driver)
        ctypes.CDLL(str(link))
    except OSError as error:
        debug_line(1, "could not work around PoCL's builtins on this CPU: %s", error)
        shutil.rmtree(root, ignore_errors=True)


def _is_zen4() -> bool:
    if platform.machine() != "x86_64":
        return False
    try:
        with open("/proc/cpuinfo") as file:
            facts = {}
            for line in file:
                name, _, value = line.partition(":")
                if not value:
                    break
                facts[name.strip()] = value.split()
    except OSError:
        return False
    amd = facts.get("vendor_id") == ["AuthenticAMD"] and facts.get("cpu family") == ["25"]
    return amd and "avx512f" in facts.get("flags", ())


# --- Intel's runtime for CPUs -------------------------------------------------------------------


def intel_library() -> Path | None:
    """Return the path of the OpenCL driver that `pip install intel-opencl-rt` left, or None."""
    import site

    prefixes = [sys.prefix]
    with contextlib.suppress(AttributeError):
        prefixes.append(site.getuserbase())
    pattern = (
        ("Library", "bin", "intelocl64*.dll") if os.name == "nt" else ("lib", "libintelocl.so")
    )
    for prefix in prefixes:
        for found in sorted(glob.glob(os.path.join(glob.escape(prefix), *pattern))):
            return Path(found)
    return None


def _prepare_intel() -> None:
    driver = intel_library()
    if driver is None or "OCL_ICD_VENDORS" in os.environ:
        return
    if os.name == "nt":
        os.add_dll_directory(str(driver.parent))  # type: ignore[attr-defined]
        os.environ.setdefault("OCL_ICD_FILENAMES", str(driver))
        return
    for name in _INTEL_LIBRARIES:
        path = driver.with_name(name)
        try:
            ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
        except OSError as error:
            debug_line(1, "Intel's OpenCL is installed but %s does not load: %s", name, error)
            return
    folder = _icd_folder(driver)
    if folder is not None:
        os.environ["OCL_ICD_VENDORS"] = str(folder)


def _icd_folder(driver: Path) -> Path | None:
    """Write a folder with the system's .icd files and one that names `driver`."""
    entries = {"cltensor-intel.icd": f"{driver}\n"}
    for path in sorted(Path("/etc/OpenCL/vendors").glob("*.icd")):
        with contextlib.suppress(OSError):
            text = path.read_text()
            if Path(text.strip()).name != driver.name:
                entries[path.name] = text
    digest = hashlib.sha256(repr(sorted(entries.items())).encode()).hexdigest()[:16]
    parent = cache_dir() / "icd"
    if not writable(parent):
        parent = Path(tempfile.mkdtemp(prefix="cltensor-icd-"))
    folder = parent / digest
    try:
        if not folder.is_dir():
            fresh = Path(tempfile.mkdtemp(dir=parent))
            for name, text in entries.items():
                (fresh / name).write_text(text)
            try:
                fresh.rename(folder)
            except OSError:  # another process was faster
                shutil.rmtree(fresh, ignore_errors=True)
    except OSError as error:
        debug_line(1, "could not write %s: %s", folder, error)
        return None
    return folder
