"""The profiler: torch.profiler's names.

A table's rows are the ops, gradient nodes and `record_function` ranges on the host, and the kernels and copies that
devices ran. Pointwise ops are lazy: their device time appears in the kernel that fuses them, whose name lists them,
under the range in which the values were needed. While a profile runs, each launch is waited for, so that launches do
not overlap and each time is exact.
"""

from . import itt
from .events import DeviceType, EventList, FunctionEvent, FunctionEventAvg, Kernel
from .profiler import (
    ProfilerAction,
    ProfilerActivity,
    kineto_available,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)
from .session import record_function

__all__ = [
    "DeviceType",
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "Kernel",
    "ProfilerAction",
    "ProfilerActivity",
    "itt",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]
