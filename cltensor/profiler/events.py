"""The events of a profile and their averages: torch's FunctionEvent, FunctionEventAvg and EventList.

Times are microseconds since the profile began. An event on the host (device_type CPU) knows its children and the kernels
that ran inside it; a kernel or a copy is an event of its own, with device_type OPENCL. Must not know how events are
collected.
"""

from __future__ import annotations

import enum
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from cltensor.runtime.observe import rate

if TYPE_CHECKING:
    from cltensor.runtime import Backend

    from .session import Session


class DeviceType(enum.IntEnum):
    """Where an event ran."""

    CPU = 0
    CUDA = 1
    OPENCL = 5

    def __str__(self) -> str:
        return f"DeviceType.{self.name}"


class Kernel(NamedTuple):
    """A kernel that ran inside a host event; the duration is in microseconds."""

    name: str
    device: int
    duration: float


class Interval(NamedTuple):
    """An interval of time, in microseconds."""

    start: float
    end: float

    def elapsed_us(self) -> float:
        """Return its length."""
        return self.end - self.start


def format_time(us: float, unit: str | None = None) -> str:
    """Return a time as torch's tables print it, in `unit` ("s", "ms", "us") or the most suitable unit."""
    if unit is None:
        unit = "s" if us >= 1e6 else "ms" if us >= 1e3 else "us"
    return f"{us / {'s': 1e6, 'ms': 1e3, 'us': 1.0}[unit]:.3f}{unit}"


def _old(name: str) -> property:
    new = name.replace("cuda", "device")

    def get(self: Any) -> Any:
        warnings.warn(
            f"`{name}` is deprecated, please use `{new}` instead.", FutureWarning, stacklevel=2
        )
        return getattr(self, new)

    return property(get, doc=f"`{new}` by its old name.")


def _text(name: str) -> property:
    return property(lambda self: format_time(getattr(self, name)), doc=f"`{name}`, formatted.")


class _Times:
    """The attributes that events and averages derive from their totals and count."""

    count: int
    cpu_time_total: Any
    device_time_total: Any
    self_device_time_total: Any
    nbytes: int
    work: int
    backend: Backend | None

    cpu_time_str = _text("cpu_time")
    device_time_str = _text("device_time")
    cpu_time_total_str = _text("cpu_time_total")
    device_time_total_str = _text("device_time_total")
    self_cpu_time_total_str = _text("self_cpu_time_total")
    self_device_time_total_str = _text("self_device_time_total")
    cuda_time = _old("cuda_time")
    cuda_time_total = _old("cuda_time_total")
    self_cuda_time_total = _old("self_cuda_time_total")

    @property
    def cpu_time(self) -> float:
        """The average time of a call on the host."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """The average time of a call on the device."""
        return self.device_time_total / self.count if self.count else 0.0

    @property
    def rate(self) -> tuple[str, str]:
        """A kernel's rate ("25.1 GB/s") and its share of the device's peak ("93 %"); "" where unknown."""
        if self.backend is None:
            return "", ""
        return rate(self.backend, self.self_device_time_total * 1e3, self.nbytes, self.work)


class FunctionEvent(_Times):
    """One call of an op, one range, one kernel or one copy."""

    def __init__(
        self,
        id: int,
        name: str,
        thread: int,
        start_us: float,
        end_us: float,
        *,
        device_type: DeviceType = DeviceType.CPU,
        device_index: int = 0,
        use_device: str | None = None,
        input_shapes: list[Any] | None = None,
        stack: list[str] | None = None,
        scope: int = 0,
    ) -> None:
        self.id, self.thread, self.scope = id, thread, scope
        self.name = "ProfilerStep*" if name.startswith("ProfilerStep#") else name
        self.trace_name, self.overload_name, self.node_id, self.sequence_nr = name, "", -1, -1
        self.time_range = Interval(start_us, end_us)
        self.device_type, self.device_index, self.use_device = device_type, device_index, use_device
        self.input_shapes = input_shapes or []
        self.stack = stack or []
        self.kernels: list[Kernel] = []
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        self.count = 1
        self.flops = self.nbytes = self.work = 0
        self.backend: Backend | None = None
        self.cpu_memory_usage = self.device_memory_usage = 0
        self.is_async = self.is_remote = self.is_legacy = False
        self.is_user_annotation = scope == 2
        self.launched_by: FunctionEvent | None = None
        self.details: dict[str, Any] = {}

    @property
    def key(self) -> str:
        """The name by which events are grouped."""
        return self.name

    @property
    def cpu_time_total(self) -> float:
        """The time on the host in microseconds, children included."""
        return self.time_range.elapsed_us() if self.device_type is DeviceType.CPU else 0.0

    @property
    def self_cpu_time_total(self) -> float:
        """The time on the host without the children's."""
        return self.cpu_time_total - sum(c.cpu_time_total for c in self.cpu_children)

    @property
    def device_time_total(self) -> float:
        """For a host event, the device time of the kernels inside it, children included; for a kernel, its own time."""
        if self.device_type is not DeviceType.CPU:
            return self.time_range.elapsed_us()
        own = sum(k.duration for k in self.kernels)
        return own + sum(c.device_time_total for c in self.cpu_children)

    @property
    def self_device_time_total(self) -> float:
        """The time on the device without the children's."""
        return self.device_time_total - sum(c.device_time_total for c in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        """The bytes allocated on the cpu device, without the children's."""
        return self.cpu_memory_usage - sum(c.cpu_memory_usage for c in self.cpu_children)

    @property
    def self_device_memory_usage(self) -> int:
        """The bytes allocated on other devices, without the children's."""
        return self.device_memory_usage - sum(c.device_memory_usage for c in self.cpu_children)

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} device_type={self.device_type} "
            f"cpu_time={self.cpu_time_str} start_us={self.time_range.start} end_us={self.time_range.end} "
            f"cpu_children={[c.id for c in self.cpu_children]} {self.use_device}_time={self.device_time_str} "
            f"thread={self.thread} input_shapes={self.input_shapes}>"
        )


_SUMS = (
    "cpu_time_total", "self_cpu_time_total", "device_time_total", "self_device_time_total", "cpu_memory_usage",
    "self_cpu_memory_usage", "device_memory_usage", "self_device_memory_usage", "count", "flops", "nbytes", "work",
)  # fmt: skip
_FIRST = (
    "key", "node_id", "overload_name", "device_type", "use_device", "scope", "is_async", "is_remote", "is_legacy",
    "is_user_annotation", "cpu_parent", "cpu_children", "input_shapes", "stack", "backend",
)  # fmt: skip


class FunctionEventAvg(_Times):
    """The sums over all events of one key; `cpu_time` and `device_time` are averages per call."""

    key: str | None
    input_shapes: Any
    stack: list[str]
    self_cpu_time_total: float
    device_type: DeviceType
    use_device: str | None
    cpu_parent: Any
    flops: int
    cpu_memory_usage: int
    self_cpu_memory_usage: int
    device_memory_usage: int
    self_device_memory_usage: int

    def __init__(self) -> None:
        for name in _SUMS:
            setattr(self, name, 0)
        self.key = self.use_device = self.backend = self.cpu_parent = None
        self.device_type, self.input_shapes, self.stack = DeviceType.CPU, [], []

    def add(self, other: Any) -> FunctionEventAvg:
        """Add an event, or an average, of the same key."""
        if self.key is None:
            for name in _FIRST:
                setattr(self, name, getattr(other, name))
        if other.key != self.key:
            raise AssertionError(f"Expected keys to match, but got {other.key} vs {self.key}")
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str}  self_{self.use_device}_time={self.self_device_time_total_str} "
            f"{self.use_device}_time={self.device_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage}>"
        )


class EventList(list[Any]):
    """Events, or their averages, that print as a table."""

    def __init__(
        self,
        events: Iterable[Any] = (),
        *,
        use_device: str | None = None,
        profile_memory: bool = False,
        with_flops: bool = False,
    ) -> None:
        super().__init__(events)
        self.use_device = use_device
        self.profile_memory = profile_memory
        self.with_flops = with_flops

    def __str__(self) -> str:
        return self.table()

    @property
    def self_cpu_time_total(self) -> float:
        """The time on the host of all events together."""
        return sum(e.self_cpu_time_total for e in self)

    def like(self, events: Iterable[Any]) -> EventList:
        """Return other events with this list's settings."""
        return EventList(
            events,
            use_device=self.use_device,
            profile_memory=self.profile_memory,
            with_flops=self.with_flops,
        )

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """Return the events as a table, sorted by the attribute `sort_by`, such as "cpu_time_total" or
        "self_device_time_total".
        """
        from .table import table

        return table(
            self, sort_by, row_limit, max_src_column_width, max_name_column_width, max_shapes_column_width, header,
            top_level_events_only, time_unit,
        )  # fmt: skip

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """Add up the events by name, and by input shapes and the innermost frames of their stacks if asked to."""
        groups: dict[tuple[Any, ...], FunctionEventAvg] = {}
        for e in self:
            key: tuple[Any, ...] = (e.key, e.device_type, e.is_user_annotation)
            if group_by_input_shapes:
                key += (str(e.input_shapes),)
            key += tuple(e.stack[:group_by_stack_n])
            groups.setdefault(key, FunctionEventAvg()).add(e)
        for group in groups.values():
            group.stack = group.stack[:group_by_stack_n]
            if not group_by_input_shapes:
                group.input_shapes = ""
        return self.like(groups.values())

    def total_average(self) -> FunctionEventAvg:
        """Add up all events, whatever their names."""
        total = FunctionEventAvg()
        for e in self:
            total.key = None
            total.add(e)
        total.key = "Total"
        return total

    def export_chrome_trace(self, path: str) -> None:
        """Write the events for chrome://tracing."""
        from .trace import write

        write(self, path)

    def supported_export_stacks_metrics(self) -> list[str]:
        """Return the metrics that `export_stacks` accepts as weights of stacks."""
        return [f"self_{d}_time_total" for d in ("cpu", "cuda", "xpu", "privateuse1")]

    def export_stacks(self, path: str, metric: str) -> None:
        """Write a line for each event that has a stack, for flame graphs: its frames, outermost first, then
        the metric.
        """
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError(f"metric should be one of: {self.supported_export_stacks_metrics()}")
        blanks = str.maketrans(" ;\t\n", "____")
        with open(path, "w") as file:
            for e in self:
                value = int(getattr(e, device_attribute(metric)))
                if e.stack and value > 0:
                    frames = ";".join(frame.translate(blanks) for frame in reversed(e.stack))
                    file.write(f"{frames} {value}\n")


def device_attribute(name: str) -> str:
    """Return the attribute for a sort key or metric that contains a device's name: "cuda", "xpu", ... become
    "device".
    """
    for old in ("cuda", "xpu", "privateuse1", "opencl"):
        name = name.replace(old, "device")
    return name


def events_of(session: Session, use_device: str, with_flops: bool) -> EventList:
    """Return the events of a session's records: host events by their start, then kernels and copies."""
    made: dict[int, FunctionEvent] = {}
    found = EventList(use_device=use_device, profile_memory=session.memory, with_flops=with_flops)
    for number, r in enumerate(sorted(session.ranges, key=lambda r: (r.start, -r.end))):
        begin, end = (r.start - session.begin) / 1e3, (r.end - session.begin) / 1e3
        event = FunctionEvent(
            number, r.name, r.thread, begin, end, use_device=use_device, input_shapes=r.shapes, stack=r.stack, scope=r.scope,
        )  # fmt: skip
        event.cpu_memory_usage, event.device_memory_usage = r.memory
        made[id(r)] = event
        found.append(event)
    for r in session.ranges:
        event = made[id(r)]
        event.cpu_parent = made.get(id(r.parent))
        if event.cpu_parent is not None:
            event.cpu_parent.cpu_children.append(event)
    for number, (seen, inside) in enumerate(session.commands, len(found)):
        begin = (seen.start - session.begin) / 1e3
        index = seen.backend.device.index or 0
        event = FunctionEvent(
            number, seen.name, seen.thread, begin, begin + seen.ns / 1e3, device_type=DeviceType.OPENCL,
            device_index=index, use_device=use_device,
        )  # fmt: skip
        event.nbytes = seen.nbytes
        event.work = seen.flops
        event.flops = seen.flops
        event.backend = seen.backend
        event.details = {
            "device": str(seen.backend.device), "grid": list(seen.global_size), "block": list(seen.local_size),
            "bytes": seen.nbytes, "rate": " ".join(filter(None, seen.rate())), "built": seen.fresh,
        }  # fmt: skip
        host = event.launched_by = made.get(id(inside))
        if host is not None:
            host.flops += seen.flops
            host.kernels.append(Kernel(seen.name, index, seen.ns / 1e3))
        found.append(event)
    return found
