"""Which GPUs there are and what they are: the names of devices in `torch.cuda`, and the contexts that select one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..runtime import DeviceInfo, default_device, get_backend
from ..runtime import device as _device
from ..runtime.platforms import platforms


def is_available() -> bool:
    """Tell whether there is a GPU."""
    return device_count() > 0


def device_count() -> int:
    """Return the number of GPUs."""
    return len(platforms().gpus)


def is_initialized() -> bool:
    """Tell whether there is a GPU."""
    return is_available()


def named(device: Any) -> _device:
    """Return the device that an argument names: an index, a name, or None for the current one."""
    if device is None:
        return _device("cuda", current_device())
    return _device("cuda", device) if isinstance(device, int) else _device(device)


def init() -> None:
    """Do nothing: a device is opened when it is first used. AssertionError if there is no GPU."""
    get_backend(named(None))


_lazy_init = init  # libraries call either


def _lazy_call(callable: Callable[[], object], **kwargs: Any) -> None:
    """Call a function that is to run once there is a GPU: now, or never."""
    if is_available():
        callable()


def current_device() -> int:
    """Return the index of the GPU that "cuda" means."""
    found = default_device()
    return found.index or 0 if found.type == "cuda" else 0


def set_device(device: Any) -> None:
    """Check the name, and do nothing else: the device must be named where tensors are made."""
    named(device)


class device:
    """Context in which a GPU is the default device."""

    def __init__(self, device: Any) -> None:
        self._device: _device | None = named(device)

    def __enter__(self) -> None:
        if self._device is not None:
            self._device.__enter__()

    def __exit__(self, *exc: object) -> None:
        if self._device is not None:
            self._device.__exit__(*exc)


class device_of(device):
    """Context in which a tensor's or storage's GPU is the default device; for one elsewhere it does nothing."""

    def __init__(self, obj: Any) -> None:
        self._device = obj.device if obj.is_cuda else None


def get_device_name(device: Any = None) -> str:
    """Return the GPU's name."""
    return get_backend(named(device)).info.name


def get_device_properties(device: Any = None) -> DeviceInfo:
    """Return the record of a GPU's properties."""
    return get_backend(named(device)).info


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Return (0, 0): OpenCL devices have no CUDA capability."""
    get_backend(named(device))
    return (0, 0)


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Return False: tensors go from one GPU to another through host memory. AssertionError for a device not there."""
    for index in (device, peer_device):
        found = named(index)
        get_backend(found)
        if found.index is not None and found.index >= device_count():
            raise AssertionError(
                "Invalid device id" if index is device else "Invalid peer device id"
            )
    return False


def get_arch_list() -> list[str]:
    """Return an empty list: kernels are compiled for the device found, when they are first used."""
    return []


def get_gencode_flags() -> str:
    """Return an empty text: nvcc is not used."""
    return ""


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Tell whether bfloat16 can be stored: always."""
    return True


def is_tf32_supported() -> bool:
    """Tell whether float32 products may round to tf32: never."""
    return False
