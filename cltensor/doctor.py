"""`python -m cltensor`: report the drivers and devices found, whether they compute correctly, and what is missing.

Calls that may crash inside a driver run in a child process. Knows the runtime only, no tensors.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from . import version
from .errors import format_bytes
from .runtime import children, disk_cache, loader, pocl
from .runtime.folders import cache_dir, writable

_LIMIT = 120.0  # seconds for a child
_VENDORS = {
    "0x10de": ("NVIDIA", "install NVIDIA's driver with OpenCL (Debian, Ubuntu: nvidia-opencl-icd)"),
    "0x1002": (
        "AMD",
        "install rocm-opencl-runtime, or mesa-opencl-icd and set RUSTICL_ENABLE=radeonsi",
    ),
    "0x8086": ("Intel", "install intel-opencl-icd"),
}


def main(arguments: Sequence[str] = ()) -> int:
    """Print the report; return 0 when at least one device computes correctly, else 1."""
    if list(arguments[:1]) == ["--child"]:
        print(json.dumps(_child(arguments[1])))
        return 0
    if arguments:
        print("usage: python -m cltensor    (no arguments)")
        return 2
    print(
        f"cltensor {version.package}, the interface of torch {version.__version__.partition('+')[0]}"
    )
    print(f"  {'Python':26} {platform.python_version()} on {platform.platform()}")
    for name in ("pyopencl", "numpy", "pocl-binary-distribution", "intel-opencl-rt"):
        print(f"  {name:26} {_version(name)}")
    _report_cache()
    found, trouble = _in_child("list")
    fixes: list[str] = []
    usable = 0
    if found is None:
        print(f"\nOpenCL does not start: {trouble}")
        fixes.append(_fix_start(trouble))
    else:
        usable = _report_devices(found, fixes)
    fixes += _missing(found)
    if fixes:
        print("\nTo fix or improve")
        for fix in dict.fromkeys(fixes):
            print(f"  - {fix}")
    print(f"\n{'Ready' if usable else 'Not usable'}: {usable} working device{'s' * (usable != 1)}.")
    return 0 if usable else 1


def _report_cache() -> None:
    count, size = disk_cache.usage()
    folder = cache_dir()
    state = "" if writable(folder) else "  NOT WRITABLE"
    print(f"  {'kernel cache':26} {folder}: {count} kernels, {format_bytes(size)}{state}")


def _report_devices(found: dict[str, Any], fixes: list[str]) -> int:
    """Print drivers, platforms and devices; return how many devices compute correctly."""
    print(f"\nOpenCL loader: {', '.join(found['loaders']) or 'unknown'}")
    if len(found["loaders"]) > 1:
        fixes.append("two OpenCL loaders are in one process, which can crash: remove one of them")
    for name, value in found["environment"].items():
        print(f"  {name}={value}")
    print("\nPlatforms")
    for item in found["platforms"]:
        print(f"  {item['name']} | {item['version']} | {item['devices']} devices")
    return sum([_report_device(name, info, fixes) for name, info in found["devices"].items()])


def _report_device(name: str, info: dict[str, Any], fixes: list[str]) -> bool:
    """Print what there is to know of a device, add to `fixes` what it needs, and return whether it computes correctly."""
    print(f"\n{name}: {info['name']} ({info['vendor']})")
    print(f"  driver        {info['platform']} {info['driver_version']}")
    print(f"  version       {info['device_version']}")
    if info["compiled_for"]:
        print(
            f"  compiled for  {info['compiled_for']}: the driver's compiler does not know this processor"
        )
    print(
        f"  size          {info['compute_units']} compute units, "
        f"{format_bytes(info['global_mem'])}, one buffer up to "
        f"{format_bytes(info['max_alloc'])}, local {format_bytes(info['local_mem'])}, "
        f"groups up to {info['max_group']}, arguments up to {info['arg_bytes']} bytes"
    )
    features = ("fp64", "fp16", "subgroups", "int64_atomics")
    print(f"  has           {', '.join(n for n in features if info[n]) or 'no extras'}")
    print(f"  has not       {', '.join(n for n in features if not info[n]) or 'nothing'}")
    if info["missing_linker"]:
        print("  self-test     not run: `ld` is missing")
        fixes.append(str(info["missing_linker"]))
        return False
    result, trouble = _in_child(name)
    if result is None:
        print(f"  self-test     FAILED: {trouble}")
        fixes.append(f"{name}: update or remove the driver {info['platform']}; it {trouble}")
        return False
    return _report_test(name, info, result, fixes)


def _report_test(name: str, info: dict[str, Any], result: dict[str, Any], fixes: list[str]) -> bool:
    """Print the result of a device's self-test, and how the device is used; return whether all numbers were right."""
    wrong = {test: outcome for test, outcome in result["tests"].items() if outcome != "ok"}
    for test, outcome in wrong.items():
        print(f"  self-test     {test}: {outcome}")
    if result["host_shared"]:
        print("  memory        shared with the host, numpy() copies nothing")
    if result["threads"]:
        print(f"  launches      calls of a team of {result['threads']} threads (CLTENSOR_TEAM)")
    if info["tuned"]:
        print(f"  tuned         {', '.join(f'{k} {v}' for k, v in info['tuned'].items())}")
    if wrong:
        fixes.append(f"{name}: kernels give wrong results; update {info['platform']} or avoid it")
    else:
        print(f"  self-test     ok ({len(result['tests'])} kernels)")
    return not wrong


def _missing(found: dict[str, Any] | None) -> list[str]:
    """Return a sentence of advice for each missing driver, permission or setting."""
    fixes = []
    devices = {} if found is None else found["devices"]
    if found is not None and "cpu" not in devices:
        fixes.append(
            "no OpenCL CPU device: pip install pocl-binary-distribution (Linux, x86-64) or "
            'pip install "cltensor[intel]" (Linux and Windows, x86-64)'
        )
    if (
        any(Path("/etc/OpenCL/vendors").glob("*rusticl*.icd"))
        and not os.environ.get("RUSTICL_ENABLE")
        and not any(info["platform"] == "rusticl" for info in devices.values())
    ):
        fixes.append(
            "Mesa's rusticl is installed but off: set RUSTICL_ENABLE to its driver "
            "(radeonsi, iris, nouveau, panfrost, llvmpipe)"
        )
    if not any(info["kind"] == "gpu" for info in devices.values()):
        fixes += _unused_gpus()
    if not writable(cache_dir()):
        fixes.append(
            f"{cache_dir()} is not writable, so every process compiles anew: set CLTENSOR_CACHE_DIR"
        )
    return fixes


def _unused_gpus() -> list[str]:
    """Return for each GPU that Linux knows why OpenCL may not: a missing permission or driver."""
    fixes = []
    for node in sorted(Path("/sys/class/drm").glob("renderD*")):
        try:
            vendor = _VENDORS.get((node / "device" / "vendor").read_text().strip())
        except OSError:
            continue
        if vendor is None:
            continue
        file = Path("/dev/dri") / node.name
        if file.exists() and not os.access(file, os.R_OK | os.W_OK):
            fixes.append(
                f"no permission for {file}: sudo usermod -aG render $USER, then log in anew"
            )
        else:
            fixes.append(f"this machine's {vendor[0]} GPU has no OpenCL driver: {vendor[1]}")
    return fixes


def _fix_start(trouble: str) -> str:
    if "No module named 'pyopencl'" in trouble:
        return "pip install pyopencl"
    if os.environ.get("OCL_ICD_VENDORS"):
        return f"unset OCL_ICD_VENDORS (now {os.environ['OCL_ICD_VENDORS']})"
    return "start with one driver: OCL_ICD_VENDORS=<its .icd file> python -m cltensor"


# --- children -----------------------------------------------------------------------------------


def _in_child(what: str) -> tuple[dict[str, Any] | None, str]:
    """Run `_child(what)` in another process; return its result, or None and what went wrong."""
    return children.ask(("cltensor", "--child", what), _LIMIT)


def _child(what: str) -> dict[str, Any]:
    return _list() if what == "list" else _self_test(what)


def _list() -> dict[str, Any]:
    from .runtime import device_info, device_list, tuning
    from .runtime.device import resolve
    from .runtime.platforms import clean, lacks_linker

    cl = loader.load()
    names = device_list()
    try:
        platforms = cl.get_platforms()
    except cl.Error:
        platforms = []
    devices = {}
    for name in names:
        record = device_info(name)
        info = asdict(record) | {"tuned": dict(tuning.load(record))}
        info["missing_linker"] = pocl.linker_error() if lacks_linker(resolve(name)[1]) else None
        devices[str(name)] = info
    counts = []
    for item in platforms:
        try:
            count = len(item.get_devices())
        except cl.Error:
            count = 0
        counts.append({"name": clean(item.name), "version": clean(item.version), "devices": count})
    prefixes = ("OCL_ICD_", "POCL_", "RUSTICL_", "CLTENSOR_", "PYOPENCL_", "COMPILER_PATH")
    return {
        "loaders": _loaded_libraries("libOpenCL"),
        "environment": {k: v for k, v in sorted(os.environ.items()) if k.startswith(prefixes)},
        "platforms": counts,
        "devices": devices,
    }


def _loaded_libraries(part: str) -> list[str]:
    try:
        with open("/proc/self/maps") as file:
            return sorted({line.split(maxsplit=5)[5].strip() for line in file if part in line})
    except OSError:
        return []


_KERNELS = """
__kernel void add(__global float *out, __global const float *a, long n) {
  for (long i = get_global_id(0); i < n; i += get_global_size(0)) out[i] = a[i] + 1.0f;
}
__kernel void vector(__global float *out, __global const float *a, long n) {
  for (long i = get_global_id(0) * 16; i + 16 <= n; i += get_global_size(0) * 16)
    vstore16(exp(vload16(0, a + i)), 0, out + i);
}
__kernel void group(__global float *out, __global const float *a, long n) {
  __local float tile[16];
  long i = get_global_id(0);
  int l = get_local_id(0);
  tile[l] = a[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  out[i] = tile[15 - l];
}
__kernel void half_storage(__global float *out, __global const float *a, long n) {
  __private long i = get_global_id(0);
  vstore_half(a[i], 2 * i, (__global half *)out);
  vstore_half(vload_half(2 * i, (__global const half *)out), 2 * i + 1, (__global half *)out);
}
"""
_DOUBLE = """
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
__kernel void wide(__global float *out, __global const float *a, long n) {
  double x = a[get_global_id(0)];
  out[get_global_id(0)] = (float)((x + 1e-12 - x) * 1e12);
}
"""


def _self_test(name: str) -> dict[str, Any]:
    import numpy as np

    from .runtime import device, get_backend

    backend = get_backend(device(name))
    n = 256
    values = (np.arange(n) / n - 0.5).astype(np.float32)
    halves = np.repeat(values.astype(np.float16), 2).view(np.float32)
    cases = [
        ("add", _KERNELS, values + 1, 8, 1, 1e-6),
        ("vector", _KERNELS, np.exp(values), 2, 1, 1e-6),
        ("group", _KERNELS, values.reshape(-1, 16)[:, ::-1].reshape(-1), n, 16, 0),
        ("half_storage", _KERNELS, halves, n, 1, 0),
    ]
    if backend.info.fp64:
        cases.append(("wide", _DOUBLE, np.ones(n, np.float32), n, 1, 1e-3))
    tests = {}
    for kernel_name, source, expected, size, group, tolerance in cases:
        kernel = backend.kernel(kernel_name, source, (None, None, np.int64))
        out, a = backend.alloc(n * 4), backend.alloc(n * 4)
        backend.write(out, 0, np.zeros(n, np.float32))
        backend.write(a, 0, values)
        backend.launch(kernel, (size,), (group,), (out, a, n))
        found = backend.read(out, 0, n * 4).view(np.float32)
        if tolerance:
            right = np.allclose(found, expected, rtol=tolerance, atol=tolerance)
        else:
            right = np.array_equal(found.view(np.uint32), expected.view(np.uint32))
        tests[kernel_name] = "ok" if right else "wrong numbers"
    team = backend.team
    threads = 0 if team is None else team.threads
    return {"tests": tests, "host_shared": backend.info.host_shared, "threads": threads}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        package = sys.modules.get(name)
        return getattr(package, "__version__", "not installed")
