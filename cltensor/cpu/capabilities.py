"""The processor's capabilities under torch's names, read from Linux's /proc/cpuinfo."""

from __future__ import annotations

import functools
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

# torch's names -> flags in /proc/cpuinfo.
_X86 = {
    "aes": "aes", "amx_bf16": "amx_bf16", "amx_fp16": "amx_fp16", "amx_int8": "amx_int8", "amx_tile": "amx_tile", "avx": "avx",
    "avx10_1": "avx10_1", "avx10_2": "avx10_2", "avx2": "avx2", "avx512_4fmaps": "avx512_4fmaps", "avx512_4vnniw": "avx512_4vnniw",
    "avx512_bf16": "avx512_bf16", "avx512_bitalg": "avx512_bitalg", "avx512_bw": "avx512bw", "avx512_cd": "avx512cd",
    "avx512_dq": "avx512dq", "avx512_f": "avx512f", "avx512_fp16": "avx512_fp16", "avx512_ifma": "avx512ifma",
    "avx512_vbmi": "avx512vbmi", "avx512_vbmi2": "avx512_vbmi2", "avx512_vl": "avx512vl", "avx512_vnni": "avx512_vnni",
    "avx512_vp2intersect": "avx512_vp2intersect", "avx512_vpopcntdq": "avx512_vpopcntdq", "avx_ne_convert": "avx_ne_convert",
    "avx_vnni": "avx_vnni", "avx_vnni_int16": "avx_vnni_int16", "avx_vnni_int8": "avx_vnni_int8", "bmi": "bmi1", "bmi2": "bmi2",
    "clflush": "clflush", "clflushopt": "clflushopt", "clwb": "clwb", "f16c": "f16c", "fma3": "fma", "fma4": "fma4", "lzcnt": "abm",
    "popcnt": "popcnt", "sha": "sha_ni", "sse": "sse", "sse2": "sse2", "sse3": "pni", "sse4_1": "sse4_1", "sse4_2": "sse4_2",
    "sse4a": "sse4a", "ssse3": "ssse3",
}  # fmt: skip
_ARM = {
    "neon": "asimd", "fp16_arith": "asimdhp", "bf16": "bf16", "i8mm": "i8mm", "dot": "asimddp", "sve": "sve", "sve2": "sve2",
    "sve_bf16": "svebf16", "sme": "sme", "sme2": "sme2", "atomics": "atomics", "fhm": "asimdfhm", "rdm": "asimdrdm", "crc32": "crc32",
    "aes": "aes", "sha1": "sha1", "sha2": "sha2", "pmull": "pmull",
}  # fmt: skip


@functools.cache
def get_capabilities() -> Mapping[str, Any]:
    """Return the processor's architecture, core count and name, and for each instruction set whether it is supported.

    Instruction sets are known on Linux only.
    """
    machine = platform.machine()
    found: dict[str, Any] = {"architecture": machine, "num_logical_cores": os.cpu_count()}
    fields = _first_processor()
    flags = set(fields.get("flags", fields.get("Features", "")).split())
    if flags:
        found |= {
            name: flag in flags for name, flag in (_X86 if "flags" in fields else _ARM).items()
        }
    if "model name" in fields:
        found["cpu_name"] = fields["model name"]
    return MappingProxyType(found)


def _first_processor() -> dict[str, str]:
    """Return the fields of the first processor in /proc/cpuinfo, by name; empty where there is no such file."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return {}
    lines = (line.partition(":") for line in text.partition("\n\n")[0].splitlines())
    return {name.strip(): value.strip() for name, _, value in lines}
