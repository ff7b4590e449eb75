"""`python -m cltensor.utils.collect_env`: what a report of an error needs to say of versions, processor and devices.

Fields are torch's. What belongs to CUDA or ROCm alone is not there, and is said so; devices and drivers are those of OpenCL.
"""

from __future__ import annotations

import locale
import platform
import re
import subprocess
import sys
from collections import namedtuple
from importlib import metadata
from typing import Any

from ..cpu.capabilities import get_capabilities
from ..version import __version__ as torch_version

_FIELDS = (
    "torch_version is_debug_build cuda_compiled_version gcc_version clang_version cmake_version os libc_version python_version "
    "python_platform is_cuda_available cuda_runtime_version cuda_module_loading nvidia_driver_version nvidia_gpu_models cudnn_version "
    "is_xpu_available pip_version pip_packages conda_packages hip_compiled_version hip_runtime_version miopen_runtime_version "
    "caching_allocator_config is_xnnpack_available cpu_info"
)
SystemEnv = namedtuple("SystemEnv", _FIELDS)  # type: ignore[misc]
# Packages whose versions matter, by parts of their names.
DEFAULT_PIP_PATTERNS = ("cltensor", "mako", "mypy", "numpy", "onnx", "pocl", "pyopencl", "torch", "triton")  # fmt: skip


def run(command: Any) -> tuple[int, str, str]:
    """Run a command; return its exit code and what it wrote to stdout and stderr."""
    shell = isinstance(command, str)
    done = subprocess.run(command, capture_output=True, shell=shell, check=False)
    text = locale.getpreferredencoding()
    return (
        done.returncode,
        done.stdout.decode(text, "replace").strip(),
        done.stderr.decode(text, "replace").strip(),
    )


def run_and_parse_first_match(run_lambda: Any, command: Any, regex: str) -> str | None:
    """Run a command; return the first group of the pattern in what it wrote, None if it fails."""
    code, out, _ = run_lambda(command)
    match = re.search(regex, out) if code == 0 else None
    return None if match is None else match[1]


def get_gcc_version(run_lambda: Any = run) -> str | None:
    """Return gcc's version, None without gcc."""
    return run_and_parse_first_match(run_lambda, "gcc --version", r"gcc (.*)")


def get_clang_version(run_lambda: Any = run) -> str | None:
    """Return clang's version, None without clang."""
    return run_and_parse_first_match(run_lambda, "clang --version", r"clang version (.*)")


def get_cmake_version(run_lambda: Any = run) -> str | None:
    """Return cmake's version, None without cmake."""
    return run_and_parse_first_match(run_lambda, "cmake --version", r"cmake (.*)")


def get_platform() -> str:
    """Return "linux", "win32", "cygwin" or "darwin"."""
    return "linux" if sys.platform.startswith("linux") else sys.platform


def get_os(run_lambda: Any = None) -> str:
    """Return the operating system's name and the machine's."""
    if get_platform() == "linux":
        try:
            name = platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
        except OSError:
            name = "Linux"
    else:
        name = f"{platform.system()} {platform.release()}"
    return f"{name} ({platform.machine()})"


def get_python_platform() -> str:
    """Return Python's name of the platform."""
    return platform.platform()


def get_libc_version() -> str:
    """Return the C library's name and version; "N/A" where it is not Linux's."""
    return "-".join(platform.libc_ver()) if get_platform() == "linux" else "N/A"


def get_cpu_info(run_lambda: Any = None) -> str:
    """Return the processor's architecture, number of cores and, on Linux, name and instruction sets."""
    found = get_capabilities()
    has = " ".join(name for name, value in found.items() if value is True)
    lines = [f"{k}: {v}" for k, v in found.items() if not isinstance(v, bool)]
    return "\n".join([*lines, *([f"instructions: {has}"] if has else [])])


def get_pip_packages(run_lambda: Any = None, patterns: Any = None) -> tuple[str, str]:
    """Return "pip" with its interpreter's version, and the versions of the packages that matter, a line each."""
    wanted = DEFAULT_PIP_PATTERNS if patterns is None else patterns
    found = {
        f"{d.metadata['Name']}=={d.version}"
        for d in metadata.distributions()
        if any(part in (d.metadata["Name"] or "").lower() for part in wanted)
    }
    return f"pip{sys.version[0]}", "\n".join(sorted(found))


def get_env_info() -> Any:
    """Return all of it as a named tuple."""
    from .. import cuda

    gpus = "\n".join(f"GPU {i}: {cuda.get_device_name(i)}" for i in range(cuda.device_count()))
    pip, packages = get_pip_packages()
    bits = sys.maxsize.bit_length() + 1
    known: dict[str, str | None] = {
        "torch_version": str(torch_version),
        "is_debug_build": "False",
        "gcc_version": get_gcc_version(),
        "clang_version": get_clang_version(),
        "cmake_version": get_cmake_version(),
        "os": get_os(),
        "libc_version": get_libc_version(),
        "python_version": f"{' '.join(sys.version.split())} ({bits}-bit runtime)",
        "python_platform": get_python_platform(),
        "is_cuda_available": str(cuda.is_available()),
        "nvidia_gpu_models": gpus or "No GPU",
        "is_xpu_available": "False",
        "pip_version": pip,
        "pip_packages": packages,
        "is_xnnpack_available": "False",
        "cpu_info": get_cpu_info(),
    }
    return SystemEnv(*(known.get(name, "N/A") for name in _FIELDS.split()))


def pretty_str(envinfo: Any) -> str:
    """Return the information as text."""
    from .. import opencl

    devices = [f"{d}: {opencl.get_device_properties(d).name} ({opencl.get_device_properties(d).platform_version})" for d in opencl.devices()]  # fmt: skip
    say = {k: "Could not collect" if v is None else v for k, v in envinfo._asdict().items()}
    return "\n".join(
        [
            f"PyTorch version: {say['torch_version']}",
            f"CUDA used to build PyTorch: {say['cuda_compiled_version']}",
            "",
            f"OS: {say['os']}",
            f"GCC version: {say['gcc_version']}",
            f"Clang version: {say['clang_version']}",
            f"CMake version: {say['cmake_version']}",
            f"Libc version: {say['libc_version']}",
            "",
            f"Python version: {say['python_version']}",
            f"Python platform: {say['python_platform']}",
            f"Is CUDA available: {say['is_cuda_available']}",
            f"GPU models and configuration: {say['nvidia_gpu_models']}",
            "OpenCL devices:",
            *(devices or ["none"]),
            "",
            "CPU:",
            say["cpu_info"],
            "",
            f"Versions of relevant libraries ({say['pip_version']}):",
            say["pip_packages"],
        ]
    )


def get_pretty_env_info() -> str:
    """Return all of it as text."""
    return pretty_str(get_env_info())


def main() -> None:
    """Print it."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
