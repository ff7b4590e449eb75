"""Permission from Linux to use the tile registers of Intel's Advanced Matrix Extensions (AMX).

Linux gives a process the eight kilobytes of tile state for each thread only after the process has asked for it.
Must not import pyopencl.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys

from cltensor.config import CONFIG
from cltensor.errors import debug_line

from .processor import facts

_ARCH_PRCTL = 158  # the number of this system call on x86-64
# ARCH_REQ_XCOMP_PERM and XFEATURE_XTILEDATA: Linux, Documentation/arch/x86/xstate.rst.
_REQUEST, _TILE_DATA = 0x1023, 18
_NEEDED = frozenset(["amx_tile", "amx_bf16", "avx512f"])


@functools.cache
def allowed() -> bool:
    """Return whether threads of this process may use AMX tiles.

    The first call asks Linux; forked children inherit the permission.
    """
    if not sys.platform.startswith("linux") or not CONFIG.amx:
        return False
    if not facts().get("flags", frozenset()) >= _NEEDED:
        return False
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    if call(ctypes.c_long(_ARCH_PRCTL), ctypes.c_long(_REQUEST), ctypes.c_long(_TILE_DATA)):
        debug_line(1, "no AMX: %s", os.strerror(ctypes.get_errno()))
        return False
    return True
