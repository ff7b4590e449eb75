"""Imports pyopencl once, after making every OpenCL runtime that pip installed findable.

Owns the drivers' environment: ICD folders and preloaded libraries. PoCL's part is in pocl.py.
Must not know devices as users see them, contexts or kernels.
"""

from __future__ import annotations

import contextlib
import ctypes
import glob
import hashlib
import os
import shutil
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from cltensor.errors import debug_line

from . import pocl
from .folders import cache_dir, writable
from .threads import limit_threads

_lock = threading.Lock()
_cl: Any = None
_loaded_in = 0  # pid of the process that loaded pyopencl; 0 while none did

# In the order of their dependencies; names as in the wheels intel-cmplr-lib-rt and tbb.
_INTEL_LIBRARIES = ("libintlc.so.5", "libirng.so", "libimf.so", "libsvml.so", "libtbb.so.12")
FORK_ERROR = (
    "Cannot re-initialize OpenCL in forked subprocess. To use OpenCL with multiprocessing, you "
    "must use the 'spawn' start method"
)


def load() -> Any:
    """Return the pyopencl module; the first call prepares the drivers' environment and imports it.

    Raises ImportError without pyopencl; RuntimeError in a child forked after a device was used.
    """
    global _cl, _loaded_in
    if _cl is not None and _loaded_in == os.getpid():
        return _cl
    with _lock:
        if _loaded_in and _loaded_in != os.getpid():
            raise RuntimeError(FORK_ERROR)
        if _cl is None:
            pocl.prepare()
            _prepare_intel()
            import pyopencl

            _cl = pyopencl
        _loaded_in = os.getpid()
    return _cl


def loaded() -> bool:
    """Return whether this process has loaded pyopencl."""
    return _loaded_in == os.getpid()


def forked() -> bool:
    """Return whether this process is a fork of one that had loaded pyopencl."""
    return _loaded_in not in (0, os.getpid())


def keep_forever(*objects: Any) -> None:
    """Leak a reference to each object, so that none is ever released: drivers may abort on release."""
    for item in objects:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(item))


# --- Intel's runtime for CPUs -------------------------------------------------------------------


def intel_library() -> Path | None:
    """Return the path of the OpenCL driver that `pip install intel-opencl-rt` installed, or None."""
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
    # Unless told otherwise the driver offers 256 KiB of local memory, which is ordinary memory: less than
    # the fastest convolutions use, whose tiles are sized for a core's cache.
    os.environ.setdefault("CL_CONFIG_CPU_FORCE_LOCAL_MEM_SIZE", "1MB")
    # The compiler's vectoriser widens loops over vectors until values spill from registers: matrix products took
    # four times as long. cltensor's kernels use vector types explicitly and do not need the vectoriser.
    os.environ.setdefault("CL_CONFIG_USE_VECTORIZER", "False")
    limit_threads("DPCPP_CPU_NUM_CUS")
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
    """Return a folder, created if needed, with the system's .icd files and one that names `driver`.

    None if that fails.
    """
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
