"""OpenCL underneath: devices, memory, programs, launches. Knows no tensors, dtypes or ops."""

from .backend import (
    Backend,
    device_info,
    device_list,
    get_backend,
    in_use,
    synchronize,
)
from .device import (
    DeviceInfo,
    default_device,
    device,
    get_default_device,
    home_type,
    set_default_device,
)
from .forks import start_method, survives_fork
from .memory import Buffer
from .program import Kernel
from .recording import Counter, Recorder, Recording, RecordingError, Slot
from .stats import STATS
from .trace import Numbers, Trace

__all__ = [
    "STATS",
    "Backend",
    "Buffer",
    "Counter",
    "DeviceInfo",
    "Kernel",
    "Numbers",
    "Recorder",
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
    "synchronize",
]
