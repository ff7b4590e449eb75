"""`device` (which is `torch.device`), the default device, and `DeviceInfo`, the record of a device's capabilities.

Owns the names of devices and the OpenCL devices they stand for. Must not know queues or kernels.
"""

from __future__ import annotations

import functools
import re
import threading
from dataclasses import dataclass
from typing import Any

from cltensor.config import CONFIG

from . import fixpoint, loader, pocl, processor, threads

_TYPES = (
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia",
    "xla", "lazy", "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone",
)  # fmt: skip
_NAME = re.compile(r"([a-zA-Z_]+)(?::(0|[1-9][0-9]*))?")


def _parse(text: str) -> tuple[str, int | None]:
    if not text:
        raise RuntimeError("Device string must not be empty")
    match = _NAME.fullmatch(text)
    if match is None:
        raise RuntimeError(f"Invalid device string: '{text}'")
    if match[1] not in _TYPES:
        raise RuntimeError(
            f"Expected one of {', '.join(_TYPES)} device type at start of device string: {match[1]}"
        )
    return match[1], None if match[2] is None else int(match[2])


def _bad_arguments(*values: object) -> TypeError:
    got = ", ".join(type(value).__name__ for value in values)
    return TypeError(
        f"device() received an invalid combination of arguments - got ({got}), but expected one "
        "of:\n * (torch.device device)\n * (str type, int index = -1)\n"
    )


class device:
    """Name a device: `device("cpu")`, `device("opencl:1")`, `device("cuda", 0)`, `device(0)`.

    "cpu" is the OpenCL CPU device, whose memory is the host's; "opencl:N" the N-th OpenCL device,
    GPUs first, with memory of its own; "cuda:N" the N-th GPU. An int alone means "opencl:N".
    As a context manager it sets the default device. Raises RuntimeError for an unknown name.

    >>> device("cuda", 0)
    device(type='cuda', index=0)
    """

    __slots__ = ("_hash", "index", "type")

    type: str
    index: int | None

    def __new__(cls, type: Any = None, index: int | None = None) -> device:
        found: int | None
        if isinstance(type, device):
            if index is not None:
                raise TypeError(
                    "device(): argument 'type' (position 1) must be str, not torch.device"
                )
            return type
        if isinstance(type, str):
            if index is None:
                return _named(type)
            name, found = _parse(type)
            if isinstance(index, bool) or not hasattr(index, "__index__"):
                raise TypeError(
                    "device(): argument 'index' (position 2) must be int, not "
                    f"{index.__class__.__name__}"
                )
            if found is not None:
                raise RuntimeError(
                    "type (string) must not include an index because index was passed "
                    f"explicitly: {type}"
                )
            found = index.__index__()
        elif hasattr(type, "__index__") and not isinstance(type, bool) and index is None:
            name, found = "opencl", type.__index__()
        elif type is None and index is None:
            raise _bad_arguments()
        else:
            raise _bad_arguments(*((type,) if index is None else (type, index)))
        if found is not None and found < 0:
            raise RuntimeError("Device index must not be negative")
        return _make(name, found)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"attribute '{name}' of 'torch.device' objects is not writable")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"attribute '{name}' of 'torch.device' objects is not writable")

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, device):
            return NotImplemented
        return self is other or (self.type == other.type and self.index == other.index)

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined]

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (self.type,) if self.index is None else (self.type, self.index)

    def __enter__(self) -> device:
        global _scopes
        _stack().append(self)
        with _scope_lock:
            _scopes += 1
        return self

    def __exit__(self, *exc: object) -> None:
        global _scopes
        _stack().pop()
        with _scope_lock:
            _scopes -= 1


def _make(name: str, index: int | None) -> device:
    made = object.__new__(device)
    object.__setattr__(made, "type", name)
    object.__setattr__(made, "index", index)
    object.__setattr__(made, "_hash", hash((name, index)))
    return made


@functools.lru_cache(maxsize=64)
def _named(text: str) -> device:
    return _make(*_parse(text))


# --- the default device -------------------------------------------------------------------------

_local = threading.local()
_scope_lock = threading.Lock()
_scopes = 0  # `with device:` blocks now open in any thread
_default: device | None = None
_chosen: device | None = None  # the argument of `set_default_device`, if it was called


def _stack() -> list[device]:
    try:
        return _local.stack
    except AttributeError:
        stack: list[device] = []
        _local.stack = stack
        return stack


def default_device() -> device:
    """Return the device on which tensors are made when the caller names none.

    This is the innermost `with device:` of this thread, else what `set_default_device` set, else
    CLTENSOR_DEVICE, else "cpu" if there is an OpenCL CPU device, else "opencl:0".
    """
    global _default
    if _scopes and (stack := _stack()):
        return stack[-1]
    if _default is None:
        if CONFIG.device is not None:
            _default = device(CONFIG.device)
        else:
            found = platforms()
            _default = (
                device("cpu") if found.cpu is not None or not found.all else device("opencl", 0)
            )
    return _default


get_default_device = default_device


def home_type() -> str:
    """Return the type of the device a process starts with; printing and type names leave this type out."""
    return device(CONFIG.device).type if CONFIG.device is not None else "cpu"


def _parsed(value: Any) -> device | None:
    return None if value is None else device(value)


def set_default_device(device: Any) -> None:
    """Make a device, or that of a name, the default device; None restores the start value."""
    global _default, _chosen
    _default = _chosen = _parsed(device)


def chosen_device() -> device | None:
    """Return the device that `set_default_device` set; None if the default is the start value."""
    return _chosen


# --- what is there ------------------------------------------------------------------------------


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

    A PoCL is adjusted on the way: its compiler's processor name and its list of LLVM passes, where needed.
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
        if fixpoint.checks(version(dev.platform.version), dev.platform.version):
            fixpoint.spare()
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
        compiled_for=processor.rename(dev.int_ptr) if ours else "",
        inline=inline,
    )


def _number(dev: Any, name: str) -> int:
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
