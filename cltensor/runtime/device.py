"""`device` (which is `torch.device`), the default device, and the OpenCL device that a name stands for.

Owns the names of devices. Must not know what the devices can do, queues or kernels.
"""

from __future__ import annotations

import functools
import re
import threading
from typing import Any

from cltensor.config import CONFIG

from .platforms import platforms

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

    __slots__ = ("index", "type")

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


_made: dict[tuple[str, int | None], device] = {}


def _make(name: str, index: int | None) -> device:
    """Return the device of this type and index: there is one object for each, so that comparing and hashing need no Python."""
    found = _made.get((name, index))
    if found is None:
        new = object.__new__(device)
        object.__setattr__(new, "type", name)
        object.__setattr__(new, "index", index)
        found = _made.setdefault((name, index), new)
    return found


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


# --- the devices that names stand for -----------------------------------------------------------


def device_list() -> list[device]:
    """Return the available devices: "cpu" first, then every OpenCL device as "opencl:N"."""
    found = platforms()
    names = [] if found.cpu is None else [device("cpu")]
    return names + [device("opencl", n) for n in range(len(found.all))]


def resolve(dev: device) -> tuple[device, Any, bool]:
    """Return the device's canonical name, its pyopencl device, and whether it should share memory with the host."""
    if dev.type == "cpu":
        cpu = platforms().cpu
        if cpu is None:
            raise RuntimeError(
                "there is no OpenCL CPU device: pip install pocl-binary-distribution (Linux, x86-64) or "
                'pip install "cltensor[intel]"; `python -m cltensor` says what was found'
            )
        return device("cpu"), cpu, True
    if dev.type == "opencl":
        return _nth(dev, platforms().all, "OpenCL device")
    if dev.type == "cuda":
        gpus = platforms().gpus
        if not gpus:
            raise AssertionError(
                "Torch not compiled with CUDA enabled: there is no OpenCL GPU either "
                "(`python -m cltensor` lists what there is)"
            )
        return _nth(dev, gpus, "GPU")
    raise RuntimeError(f"there is no backend for device type '{dev.type}': use cpu, opencl or cuda")


def _nth(dev: device, devices: tuple[Any, ...], what: str) -> tuple[device, Any, bool]:
    index = dev.index or 0
    if index >= len(devices):
        raise RuntimeError(
            f"{dev}: invalid device ordinal, there {'is' if len(devices) == 1 else 'are'} "
            f"{len(devices)} {what}{'' if len(devices) == 1 else 's'}"
        )
    return device("opencl", platforms().all.index(devices[index])), devices[index], False
