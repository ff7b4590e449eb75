"""`cltensor.backends.cpu`: which instructions the driver compiles kernels for."""

from __future__ import annotations

from ..runtime.processor import best_name, facts

_CAPABILITIES = {"icelake-server": "AVX512", "skylake-avx512": "AVX512", "haswell": "AVX2"}


def get_cpu_capability() -> str:
    """Return "AVX512" or "AVX2" if this processor has all of these instructions that compilers use, else "DEFAULT".

    Only known of x86-64 processors on Linux.
    """
    return _CAPABILITIES.get(best_name(facts().get("flags", frozenset())), "DEFAULT")
