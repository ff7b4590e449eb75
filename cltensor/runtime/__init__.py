"""OpenCL underneath: devices, memory, programs, launches. Knows no tensors, dtypes or ops."""

from .backend import Backend
from .device import (
    default_device,
    device,
    device_list,
    get_default_device,
    home_type,
    set_default_device,
)
from .forks import start_method, survives_fork
from .kernel import Kernel
from .memory import Buffer
from .platforms import DeviceInfo
from .recorder import ACTIVE, Counter, RecordingError, Slot
from .recording import Recording
from .registry import device_info, get_backend, in_use
from .stats import STATS
from .trace import Numbers, Trace

__all__ = [
    "ACTIVE",
    "STATS",
    "Backend",
    "Buffer",
    "Counter",
    "DeviceInfo",
    "Kernel",
    "Numbers",
    "Recording",
    "RecordingError",
    "Slot",
    "Trace",
    "default_device",
    "device",
    "device_info",
    "device_list",
    "get_backend",
    "get_default_device",
    "home_type",
    "in_use",
    "set_default_device",
    "start_method",
    "survives_fork",
]
