"""`profile`: collects events according to a schedule of steps, and hands them on.

Owns the user's object. session.py collects the records, events.py turns them into events.
"""

from __future__ import annotations

import enum
import os
import socket
import time
import uuid
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from .events import EventList, events_of
from .session import Session, record_function
from .trace import write


class ProfilerActivity(enum.Enum):
    """The kinds of activity.

    CPU stands for host ranges; launches are always collected, on every device that is used.
    """

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(enum.Enum):
    """What a profile does during one step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


_NONE, _WARMUP, _RECORD, _SAVE = ProfilerAction


def supported_activities() -> set[ProfilerActivity]:
    """Return CPU, and CUDA where there is a GPU."""
    from cltensor.runtime.platforms import platforms

    found = {ProfilerActivity.CPU}
    return found | {ProfilerActivity.CUDA} if platforms().gpus else found


def kineto_available() -> bool:
    """Return True: device activity is always traced."""
    return True


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:
    """Return a schedule, a function of the step: it skips `skip_first` steps, then repeats cycles of waiting, warm-up
    and recording.

    There are `repeat` cycles (0: without end). The last active step of a cycle is RECORD_AND_SAVE. With
    `skip_first_wait` the first cycle does not wait. AssertionError for invalid numbers.
    """
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), "
            f"active={active} (need > 0), repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        warnings.warn(
            "Profiler won't be using warmup, this can skew profiler results", stacklevel=2
        )
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return _NONE
        cycle, place = divmod(step - skip_first + (wait if skip_first_wait else 0), length)
        if place < wait or 0 < repeat <= cycle:
            return _NONE
        if place < wait + warmup:
            return _WARMUP
        return _SAVE if place == length - 1 else _RECORD

    return action


def _default_schedule_fn(step: int) -> ProfilerAction:
    """Return RECORD: without a schedule every step is recorded."""
    return _RECORD


def tensorboard_trace_handler(
    dir_name: str,
    worker_name: str | None = None,
    use_gzip: bool = False,
    use_python_export: bool = False,
) -> Callable[[Any], None]:
    """Return an `on_trace_ready` handler that writes each trace into a folder, under a unique name."""

    def handler(prof: profile) -> None:
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise RuntimeError("Can't create directory: " + dir_name) from error
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return handler


class Trace:
    """Consecutive sessions and their events; shared by `profile` and the older interface in autograd/profiler.py."""

    def __init__(
        self, *, use_device: str | None, with_flops: bool, acc_events: bool, **wanted: bool
    ) -> None:
        self.wanted, self.acc_events = wanted, acc_events
        self.use_device, self.with_flops = use_device or "opencl", with_flops
        self.session: Session | None = None
        self.found: EventList | None = None
        self.metadata: dict[str, Any] = {}

    def start(self) -> None:
        """Start collecting."""
        session = Session(**self.wanted)
        session.start()
        self.session = session

    def stop(self) -> None:
        """Stop collecting, and turn the session's records into events."""
        session, self.session = self.session, None
        if session is None:
            return
        session.stop()
        events = events_of(session, self.use_device, self.with_flops)
        if self.acc_events and self.found is not None:
            events = self.found.like([*self.found, *events])
        self.found = events

    def events(self) -> EventList:
        """Return the events of the last session, or of all sessions with `acc_events`.

        RuntimeError before the first `stop`.
        """
        if self.found is None:
            raise RuntimeError("Profiler didn't finish running")
        return self.found


class profile:
    """Collect what a program does: `with profile() as prof: ...; print(prof.key_averages().table())`.

    `activities` without ProfilerActivity.CPU collects no host ranges. `record_shapes`, `profile_memory`, `with_stack` and
    `with_modules` note more about each; `with_flops` adds a column for products and convolutions. With a `schedule` the
    program calls `step()` after each of its steps, and `on_trace_ready(prof)` is called whenever a cycle ends.
    `acc_events` keeps the events of all cycles.
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity | dict[ProfilerActivity, list[str]]] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        self.activities = supported_activities() if activities is None else _activities(activities)
        if use_cuda is not None:
            warnings.warn(
                "`use_cuda` is deprecated, use `activities` argument instead",
                FutureWarning,
                stacklevel=2,
            )
            change = self.activities.add if use_cuda else self.activities.discard
            change(ProfilerActivity.CUDA)
        if not self.activities:
            raise AssertionError("No valid profiler activities found")
        self.record_shapes = record_shapes
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_flops, self.with_modules, self.acc_events = with_flops, with_modules, acc_events
        self.use_device = "cuda" if ProfilerActivity.CUDA in self.activities else None
        self.schedule = schedule or _default_schedule_fn
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.custom_trace_id_callback = custom_trace_id_callback
        self.step_num = 0
        self.current_action = self.schedule(0)
        self.profiler: Trace | None = None
        self._step: record_function | None = None
        self._metadata: dict[str, Any] = {}

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    # --- when

    def start(self) -> None:
        """Begin the current step, with the action that the schedule has for it."""
        self._change(_NONE, self.current_action)
        self._begin_step()

    def stop(self) -> None:
        """End the step and, if it was recorded, the cycle."""
        self._end_step()
        self._change(self.current_action, None)

    def step(self) -> None:
        """End the program's current step and begin the next one."""
        self._end_step()
        before, after = self.current_action, self.schedule(self.step_num + 1)
        self.step_num += 1
        self.current_action = after
        self._change(before, after)
        self._begin_step()

    def _begin_step(self) -> None:
        if self.record_steps:
            self._step = record_function(f"ProfilerStep#{self.step_num}")
            self._step.__enter__()

    def _end_step(self) -> None:
        if self._step is not None:
            self._step.__exit__(None, None, None)
            self._step = None

    def _change(self, before: ProfilerAction, after: ProfilerAction | None) -> None:
        """Start or stop collecting between the actions of two steps; `after` is None at the end."""
        running = before in (_RECORD, _SAVE)
        if running and after in (_NONE, _WARMUP) and before is _RECORD:
            warnings.warn(f"Incorrect schedule: RECORD followed by {after.name}", stacklevel=3)
            self._stop(ready=False)
        elif running and (after is None or before is _SAVE):
            self._stop(ready=True)
            running = False
        elif before is _WARMUP and after is _NONE:
            warnings.warn("Incorrect schedule: WARMUP followed by NONE", stacklevel=3)
        if after in (_RECORD, _SAVE) and not running:
            self._start()

    def _start(self) -> None:
        if self.profiler is None or not self.acc_events:
            self.profiler = Trace(
                use_device=self.use_device,
                with_flops=self.with_flops,
                acc_events=self.acc_events,
                host=ProfilerActivity.CPU in self.activities,
                shapes=self.record_shapes,
                memory=self.profile_memory,
                stacks=self.with_stack,
                modules=self.with_modules,
            )
            trace_id = self.custom_trace_id_callback or (lambda: uuid.uuid4().hex.upper())
            self.profiler.metadata["trace_id"] = trace_id()
        self.profiler.start()

    def _stop(self, ready: bool) -> None:
        assert self.profiler is not None
        self.profiler.stop()
        if ready and self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def toggle_collection_dynamic(
        self, enable: bool, activities: Iterable[ProfilerActivity]
    ) -> None:
        """From now on collect, or do not collect, host ranges (for CPU) or launches (for any other activity)."""
        session = None if self.profiler is None else self.profiler.session
        if session is not None:
            for activity in activities:
                setattr(session, "host" if activity is ProfilerActivity.CPU else "device", enable)

    # --- what

    def _trace(self, purpose: str) -> Trace:
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {purpose}")
        return self.profiler

    def events(self) -> EventList:
        """Return all events, not added up: host ranges by their start, then kernels and copies."""
        return self._trace("accessing events").events()

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """Add the events up by name, and by input shapes and innermost stack frames if asked to."""
        events = self._trace("getting key averages").events()
        return events.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def get_trace_id(self) -> str | None:
        """Return the id of the current cycle's trace."""
        return None if self.profiler is None else self.profiler.metadata["trace_id"]

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:
        """Write the trace as JSON for chrome://tracing, Perfetto or TensorBoard, compressed if `path` ends in ".gz"."""
        trace = self._trace("exporting chrome trace")
        write(trace.events(), path, {**trace.metadata, **self._metadata})

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write stacks weighed by `metric`, for flame graphs; needs `with_stack`."""
        self._trace("exporting stacks").events().export_stacks(path, metric)

    def add_metadata(self, key: str, value: str) -> None:
        """Add a text to the trace file."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Add a value, given as JSON text, to the trace file. ValueError if the text is not JSON."""
        import json

        self._metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json


def _activities(given: Iterable[Any]) -> set[ProfilerActivity]:
    groups = [item if isinstance(item, dict) else (item,) for item in given]
    return {a for group in groups for a in group if isinstance(a, ProfilerActivity)}
