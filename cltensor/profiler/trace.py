"""A profile as a Chrome trace: JSON for chrome://tracing, Perfetto and TensorBoard.

In the trace the host's threads are one process, and each device is another; an arrow leads from the host range that
launched a kernel to the kernel. Must not know how events are collected.
"""

from __future__ import annotations

import gzip
import json
import os
import socket
from typing import Any

from .events import DeviceType, EventList

_CATEGORIES = {0: "cpu_op", 1: "cpu_op", 2: "user_annotation"}


def write(events: EventList, path: str, metadata: dict[str, Any] | None = None) -> None:
    """Write the trace to `path`, compressed if it ends in ".gz"; `metadata` goes beside the events."""
    host = os.getpid()
    devices: dict[str, int] = {}  # name -> its process in the trace
    trace: list[dict[str, Any]] = []
    for e in events:
        if e.device_type is DeviceType.CPU:
            trace.append(_host_event(e, host))
            continue
        name = e.details["device"]
        pid = devices.setdefault(name, len(devices))
        trace += _device_event(e, pid, host)
    threads = {e.thread for e in events if e.device_type is DeviceType.CPU}
    trace += _named("process_name", host, 0, name="python") + _named(
        "process_labels", host, 0, labels="CPU"
    )
    for thread in sorted(threads):
        trace += _named("thread_name", host, thread, name=f"thread {thread}")
    backends = {
        e.details["device"]: e.backend for e in events if e.device_type is not DeviceType.CPU
    }
    for name, pid in devices.items():
        trace += _named("process_name", pid, 0, name=backends[name].info.name)
        trace += _named("process_labels", pid, 0, labels=name) + _named(
            "thread_name", pid, 0, name="queue"
        )
    properties = [
        {
            "id": pid,
            "name": backends[name].info.name,
            "totalGlobalMem": backends[name].info.global_mem,
        }
        for name, pid in devices.items()
    ]
    data = {
        "schemaVersion": 1,
        "deviceProperties": properties,
        "host_name": socket.gethostname(),
        **(metadata or {}),
        "displayTimeUnit": "ms",
        "traceEvents": trace,
        "traceName": path,
    }
    with gzip.open(path, "wt") if str(path).endswith(".gz") else open(path, "w") as file:
        json.dump(data, file)


def _named(what: str, pid: int, tid: int, **args: Any) -> list[dict[str, Any]]:
    return [{"ph": "M", "name": what, "pid": pid, "tid": tid, "ts": 0, "args": args}]


def _host_event(e: Any, pid: int) -> dict[str, Any]:
    args: dict[str, Any] = {"External id": e.id}
    if e.input_shapes:
        args["Input Dims"] = e.input_shapes
    if e.stack:
        args["Call stack"] = ";".join(reversed(e.stack))
    if e.cpu_memory_usage or e.device_memory_usage:
        args["Bytes"] = e.cpu_memory_usage + e.device_memory_usage
    return _complete(e, _CATEGORIES[e.scope], pid, e.thread, args)


def _device_event(e: Any, pid: int, host: int) -> list[dict[str, Any]]:
    category = "kernel" if not e.name.startswith("Memcpy") else "gpu_memcpy"
    parent = e.launched_by
    args = {**e.details, "correlation": e.id}
    if parent is not None:
        args["External id"] = parent.id
    made = [_complete(e, category, pid, 0, args)]
    if parent is not None:
        start = {
            "ph": "s",
            "id": e.id,
            "pid": host,
            "tid": parent.thread,
            "cat": "ac2g",
            "name": "ac2g",
        }
        inside = min(max(e.time_range.start, parent.time_range.start), parent.time_range.end)
        end = {**start, "ph": "f", "pid": pid, "tid": 0, "bp": "e", "ts": e.time_range.start}
        made += [{**start, "ts": inside}, end]
    return made


def _complete(e: Any, category: str, pid: int, tid: int, args: dict[str, Any]) -> dict[str, Any]:
    return {
        "ph": "X", "cat": category, "name": e.trace_name, "pid": pid, "tid": tid, "ts": e.time_range.start,
        "dur": e.time_range.elapsed_us(), "args": args,
    }  # fmt: skip
