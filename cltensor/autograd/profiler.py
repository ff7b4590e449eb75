"""torch.autograd.profiler, the profiler's older interface, over cltensor.profiler. Owns names only."""

from __future__ import annotations

from typing import Any

from ..profiler.events import EventList, FunctionEvent, FunctionEventAvg
from ..profiler.profiler import Trace
from ..profiler.session import record_function
from ..profiler.trace import write

__all__ = [
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "emit_itt",
    "emit_nvtx",
    "profile",
    "record_function",
]


class profile:
    """Collect what a program does: `with profile() as prof: ...; print(prof)`.

    `enabled=False` collects nothing. `use_device` names the columns of device times.
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
    ) -> None:
        self.enabled = enabled
        self.entered = False
        self._trace = Trace(
            use_device="cuda" if use_cuda else use_device,
            with_flops=with_flops,
            acc_events=acc_events,
            host=use_cpu,
            shapes=record_shapes or with_flops,
            memory=profile_memory,
            stacks=with_stack,
            modules=with_modules,
        )

    def __enter__(self) -> profile:
        if self.enabled:
            if self.entered:
                raise RuntimeError("Profiler context manager is not reentrant")
            self.entered = True
            self._trace.start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self.enabled:
            self._trace.stop()

    def __repr__(self) -> str:
        return (
            repr(self._trace.found)
            if self._trace.found is not None
            else "<unfinished torch.autograd.profile>"
        )

    def __str__(self) -> str:
        return (
            str(self._trace.found)
            if self._trace.found is not None
            else "<unfinished torch.autograd.profile>"
        )

    @property
    def function_events(self) -> EventList:
        """All events, not added up."""
        return self._trace.events()

    @property
    def self_cpu_time_total(self) -> float:
        """The total host time of all events, in microseconds."""
        return self._trace.events().self_cpu_time_total

    def table(self, *args: Any, **kwargs: Any) -> str:
        """Return the events as a table; arguments as `EventList.table`."""
        return self._trace.events().table(*args, **kwargs)

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """Add the events up by name, and by input shapes and innermost stack frames if asked to."""
        return self._trace.events().key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def total_average(self) -> FunctionEventAvg:
        """Add up all events."""
        return self._trace.events().total_average()

    def export_chrome_trace(self, path: str) -> None:
        """Write the trace as JSON for chrome://tracing."""
        write(self._trace.events(), path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write stacks weighed by `metric`; needs `with_stack`."""
        self._trace.events().export_stacks(path, metric)


class emit_itt:
    """Does nothing; accepted for programs that mark ranges for Intel's tools."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled

    def __enter__(self) -> emit_itt:
        return self

    def __exit__(self, *exc: object) -> None:
        pass


class emit_nvtx(emit_itt):
    """Ranges for NVIDIA's tools, which are not supported: entering raises AssertionError unless `enabled` is False."""

    def __enter__(self) -> emit_nvtx:
        if self.enabled:
            raise AssertionError("Torch not compiled with CUDA enabled")
        return self
