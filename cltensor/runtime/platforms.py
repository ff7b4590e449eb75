"""The OpenCL devices of this machine, what each can do, and which of them "cpu" is.

Owns the enumeration, the drivers' strings and `DeviceInfo`, the record of a device's capabilities. Must not know the
names that users give to devices, queues or kernels.
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from typing import Any

from cltensor.config import CONFIG

from . import fixpoint, loader, pocl, processor, threads


@dataclass(frozen=True)
class DeviceInfo:
    """The capabilities of a device, probed once."""

    kind: str
    """Whose schedules it is given: "cpu", "gpu" or "accelerator"."""
    host_shared: bool
    """Kernels and numpy work on the same memory."""
    compute_units: int  # threads of a CPU that kernels run on; a GPU's multiprocessors
    lanes: int
    """float32 lanes worth using per work-item: 16 on a CPU, 1 on a GPU."""
    native_lanes: int
    """float32 lanes of a register, as the driver says: of PoCL that is not what its compiler makes use of."""
    max_group: int  # work-items of a work-group, at most
    local_mem: int  # bytes of local memory that a work-group may use
    max_alloc: int  # bytes of a single allocation, at most
    global_mem: int  # bytes
    arg_bytes: int  # bytes of a kernel's arguments, at most
    fp64: bool  # kernels may compute in double
    fp16: bool  # cl_khr_fp16: kernels may compute in half
    subgroups: bool  # cl_khr_subgroups or cl_intel_subgroups
    int64_atomics: bool  # both of OpenCL's extensions for 64-bit atomics
    build_options: tuple[str, ...]
    """Options that every program gets."""
    # The driver's strings, cleaned of padding.
    name: str
    vendor: str
    platform: str
    platform_version: str
    device_version: str
    driver_version: str
    is_pocl: bool
    compiled_for: str = ""
    """The processor that PoCL was told to compile for, where its compiler does not know this one."""
    team: bool = False
    """Launches are calls of a team of threads that waits awake (runtime/team.py)."""
    inline: bool = False
    """The driver runs what a thread enqueues in that thread, if asked to (cl_intel_exec_by_local_thread)."""
    has_memory: bool = True
    """There are values; not on "meta"."""

    @property
    def wake_us(self) -> int:
        """Microseconds of work below which one CPU thread finishes sooner alone than with a second one, which it must
        wake first.

        Measured on two processors. The values for drivers other than PoCL are smaller because their threads, too, stay
        awake for a while after work.
        """
        return 4 if self.team else 50 if self.is_pocl else 20 if self.inline else 12

    @property
    def is_nvidia(self) -> bool:
        """Whether the compiler is NVIDIA's, which takes PTX and options of its own."""
        return self.platform.startswith("NVIDIA")

    def with_registers(self, most: int) -> tuple[str, ...]:
        """Return the build options that limit a work-item to `most` registers, so that more groups run at once.

        Empty where the compiler has no such option.
        """
        return (f"-cl-nv-maxrregcount={most}",) if self.is_nvidia else ()

    @property
    def takes_assembly(self) -> bool:
        """Whether kernels may contain inline assembly of the CPU."""
        return self.is_pocl and pocl.NO_ASSEMBLY not in self.build_options

    @property
    def total_memory(self) -> int:
        """`global_mem`, by torch's name."""
        return self.global_mem

    @property
    def multi_processor_count(self) -> int:
        """`compute_units`, by torch's name."""
        return self.compute_units


def clean(text: str) -> str:
    """Return a driver's string without NUL padding and repeated spaces."""
    return " ".join(text.replace("\0", " ").split())


def describe(cl: Any, dev: Any, host_shared: bool) -> DeviceInfo:
    """Return what the driver says about `dev`; nothing is created or compiled.

    PoCL's compiler is prepared on the way (`_prepare_compiler`).
    """
    extensions = set(dev.extensions.split())
    kind = _kind(cl, dev)
    inline = "cl_intel_exec_by_local_thread" in extensions
    units = dev.max_compute_units
    if inline:  # Intel's runtime for CPUs reports all processors, but uses only as many as loader.py told it to
        units = threads.wanted(units)
    options: tuple[str, ...] = ()
    rounded = cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
    if dev.single_fp_config & rounded:
        options = ("-cl-fp32-correctly-rounded-divide-sqrt",)
    ours = is_pocl(dev)
    if ours:
        options += pocl.build_options(version(dev.platform.version))
    if clean(dev.platform.name) == "rusticl":
        options += ("-DCLT_NO_PREFETCH",)  # its translator ends the process over a prefetch
        # Also on a CPU: rusticl splits long vectors, or ends the process over them, and runs work-items side by side.
        kind = "gpu"
    return DeviceInfo(
        kind=kind,
        host_shared=host_shared,
        compute_units=units,
        lanes=16 if kind == "cpu" else 1,
        native_lanes=_number(dev, "native_vector_width_float"),
        max_group=dev.max_work_group_size,
        local_mem=dev.local_mem_size,
        max_alloc=dev.max_mem_alloc_size,
        global_mem=dev.global_mem_size,
        arg_bytes=dev.max_parameter_size,
        fp64="cl_khr_fp64" in extensions or _number(dev, "double_fp_config") != 0,
        fp16="cl_khr_fp16" in extensions,
        subgroups=bool(extensions & {"cl_khr_subgroups", "cl_intel_subgroups"}),
        int64_atomics={"cl_khr_int64_base_atomics", "cl_khr_int64_extended_atomics"} <= extensions,
        build_options=options,
        name=clean(dev.name),
        vendor=clean(dev.vendor),
        platform=clean(dev.platform.name),
        platform_version=clean(dev.platform.version),
        device_version=clean(dev.version),
        driver_version=clean(dev.driver_version),
        is_pocl=ours,
        compiled_for=_prepare_compiler(dev) if ours else "",
        inline=inline,
    )


def _prepare_compiler(dev: Any) -> str:
    """Turn off PoCL's check that ends the process (Note [Fixpoint]) and tell it the processor's name (Note [Processors]),
    each where needed; return the name it was told, else "".
    """
    text = dev.platform.version
    if fixpoint.checks(version(text), text):
        fixpoint.spare()
    return processor.rename(dev.int_ptr)


def _number(dev: Any, name: str) -> int:
    """Return a number that the driver says of a device; 0 where it does not know the query."""
    try:
        return int(getattr(dev, name))
    except Exception:  # the error for an unknown query differs from driver to driver
        return 0


def _kind(cl: Any, dev: Any) -> str:
    kinds = cl.device_type
    return "cpu" if dev.type & kinds.CPU else "gpu" if dev.type & kinds.GPU else "accelerator"


@dataclass(frozen=True)
class Platforms:
    """The OpenCL devices of this machine in a stable order, and which one "cpu" is."""

    # pyopencl devices.
    all: tuple[Any, ...]  # "opencl:N" is the N-th
    gpus: tuple[Any, ...]  # "cuda:N" is the N-th
    cpu: Any  # the device that "cpu" names; None if there is none


_found: Platforms | None = None
_found_lock = threading.Lock()


def platforms() -> Platforms:
    """List the OpenCL devices, once. GPUs come first, then accelerators, then CPUs."""
    global _found
    if _found is None:
        cl = loader.load()
        with _found_lock:
            if _found is None:
                _found = _enumerate(cl)
    return _found


def _enumerate(cl: Any) -> Platforms:
    try:
        found = cl.get_platforms()
    except cl.Error:  # PLATFORM_NOT_FOUND_KHR: no driver at all
        found = []
    listed = []
    for platform in found:
        try:
            devices = platform.get_devices()
        except cl.Error:  # a platform without devices
            continue
        for position, dev in enumerate(devices):
            rank = {"gpu": 0, "accelerator": 1, "cpu": 2}[_kind(cl, dev)]
            newest_first = tuple(-n for n in version(platform.version))
            listed.append(((rank, clean(platform.name), newest_first, position), dev))
    listed.sort(key=lambda item: item[0])
    devices = tuple(dev for _, dev in listed)
    return Platforms(
        all=devices,
        gpus=tuple(dev for dev in devices if _kind(cl, dev) == "gpu"),
        cpu=_choose_cpu([dev for dev in devices if _kind(cl, dev) == "cpu"]),
    )


def version(text: str) -> tuple[int, ...]:
    """Return (major, minor) of a platform's version string: PoCL's own version where the string names it, else the
    first pair.
    """
    match = re.search(r"(?:PoCL |pocl )v?(\d+)\.(\d+)", text) or re.search(r"(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def is_pocl(dev: Any) -> bool:
    """Return whether a pyopencl device is PoCL's."""
    return clean(dev.platform.name) == "Portable Computing Language"


def lacks_linker(dev: Any) -> bool:
    """Return whether launching on `dev` would abort the process because PoCL (before 4.0) finds no `ld`."""
    return is_pocl(dev) and version(dev.platform.version) < (4, 0) and bool(pocl.linker_error())


def _choose_cpu(cpus: list[Any]) -> Any:
    """Return the device that "cpu" names: the one CLTENSOR_CPU asks for, else PoCL's unless it cannot run, else any.

    None if there is none.
    """
    wanted = CONFIG.cpu
    if wanted is not None:
        part = {"pocl": "portable computing language"}.get(wanted.lower(), wanted.lower())
        matching = [dev for dev in cpus if part in clean(dev.platform.name).lower()]
        if not matching:
            names = ", ".join(sorted({repr(clean(dev.platform.name)) for dev in cpus})) or "none"
            raise RuntimeError(
                f"CLTENSOR_CPU={wanted} matches no OpenCL platform with a CPU device; "
                f"there are: {names}"
            )
        return matching[0]
    # CPU devices of rusticl and Oclgrind are for tests: they come last.
    order = ("Portable Computing Language", "Intel(R) OpenCL", "")

    def rank(dev: Any) -> tuple[bool, int]:
        name = clean(dev.platform.name)
        return lacks_linker(dev), next(i for i, part in enumerate(order) if part in name)

    return min(cpus, key=rank, default=None)
