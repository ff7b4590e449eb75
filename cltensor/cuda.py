"""`cltensor.cuda`: torch's functions for GPUs. A GPU here is any OpenCL device of that type."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from . import opencl
from .errors import OutOfMemoryError  # noqa: F401 - torch.cuda has it, and its memory module
from .ops.convert import canonical
from .ops.random.generator import default_for
from .reexport import absent, expose
from .runtime import default_device, get_backend
from .runtime import device as _device
from .runtime.device import DeviceInfo, platforms


def is_available() -> bool:
    """Tell whether there is a GPU."""
    return device_count() > 0


def device_count() -> int:
    """Return the number of GPUs."""
    return len(platforms().gpus)


def __getattr__(name: str) -> Any:
    if name == "nvtx":  # loaded when first used
        from .profiler import nvtx

        return nvtx
    if name == "_initialized":
        return is_initialized()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _name(device: Any) -> _device:
    if device is None:
        return _device("cuda", current_device())
    return _device("cuda", device) if isinstance(device, int) else _device(device)


def current_device() -> int:
    """Return the index of the GPU that "cuda" means."""
    found = default_device()
    return found.index or 0 if found.type == "cuda" else 0


def set_device(device: Any) -> None:
    """Check the name, and do nothing else: the device must be named where tensors are made."""
    _name(device)


class device:
    """Context in which a GPU is the default device."""

    def __init__(self, device: Any) -> None:
        self._device = _name(device)

    def __enter__(self) -> None:
        self._device.__enter__()

    def __exit__(self, *exc: object) -> None:
        self._device.__exit__(*exc)


def get_device_name(device: Any = None) -> str:
    """Return the GPU's name."""
    return get_backend(_name(device)).info.name


def get_device_properties(device: Any = None) -> DeviceInfo:
    """Return the record of a GPU's properties."""
    return get_backend(_name(device)).info


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Return (0, 0): OpenCL devices have no CUDA capability."""
    get_backend(_name(device))
    return (0, 0)


_BYTES = (
    "memory_allocated",
    "max_memory_allocated",
    "memory_reserved",
    "max_memory_reserved",
)
FORWARDED = ("synchronize", *_BYTES, "reset_peak_memory_stats", "memory_stats")


def forwarded(name: str, named: Callable[[Any], _device | None]) -> Any:
    """Return a function of `cltensor.opencl` that applies to the device `named(argument)`.

    If `named` returns None, there is no GPU: functions for bytes then return 0, the others do nothing.
    """
    fn = getattr(opencl, name)
    nothing = 0 if name in _BYTES else None

    def call(device: Any = None) -> Any:
        found = named(device)
        return nothing if found is None else fn(found)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = fn.__doc__
    return call


for _fn in (*FORWARDED, "empty_cache"):
    globals()[_fn] = forwarded(_fn, lambda device: _name(device) if is_available() else None)


def is_initialized() -> bool:
    """Tell whether there is a GPU."""
    return is_available()


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Tell whether bfloat16 can be stored: always."""
    return True


def is_tf32_supported() -> bool:
    """Tell whether float32 products may round to tf32: never."""
    return False


def manual_seed(seed: int) -> None:
    """Seed the current GPU's generator; do nothing if there is no GPU."""
    if is_available():
        default_for(canonical(_name(None))).manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all GPUs."""
    for i in range(device_count()):
        default_for(canonical(_name(i))).manual_seed(int(seed))


def get_rng_state(device: Any = "cuda") -> Any:
    """Return the state of a GPU's generator as a uint8 tensor."""
    return default_for(canonical(_name(device))).get_state()


def get_rng_state_all() -> list[Any]:
    """Return the states of all GPUs' generators."""
    return [get_rng_state(i) for i in range(device_count())]


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Put a GPU's generator back into a state."""
    default_for(canonical(_name(device))).set_state(new_state)


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    """Put all GPUs' generators back into states."""
    for i, state in enumerate(new_states):
        set_rng_state(state, i)


def seed() -> None:
    """Seed the current GPU's generator with a number from the operating system; do nothing if there is no GPU."""
    if is_available():
        default_for(canonical(_name(None))).seed()


def seed_all() -> None:
    """Seed the generators of all GPUs with one number from the operating system."""
    shared: int | None = None
    for i in range(device_count()):
        generator = default_for(canonical(_name(i)))
        if shared is None:
            shared = generator.seed()
        else:
            generator.manual_seed(shared)


def initial_seed() -> int:
    """Return the seed of the current GPU's generator."""
    return default_for(canonical(_name(None))).initial_seed()


class Stream:
    """A queue of a device's work. Each device has only one here, so that all its Stream objects mean the same."""

    def __init__(self, device: Any = None, priority: int = 0, **options: Any) -> None:
        self.device, self.priority = _name(device), priority

    def synchronize(self) -> None:
        """Wait for all work started so far."""
        opencl.synchronize(self.device)

    def query(self) -> bool:
        """Wait, then return True."""
        self.synchronize()
        return True

    def wait_stream(self, stream: Stream) -> None:
        """Do nothing: a device's work runs in order."""

    def wait_event(self, event: Event) -> None:
        """Do nothing: a device's work runs in order."""

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event, a new one if none is given."""
        event = Event(enable_timing=True) if event is None else event
        event.record(self)
        return event

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exc: object) -> None:
        pass


class Event:
    """A point in a device's work. `record` waits for all earlier work and then takes the host's time."""

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        self._timing, self._time = enable_timing, math.nan

    def record(self, stream: Stream | None = None) -> None:
        """Wait for all work started so far and take the time."""
        opencl.synchronize(None if stream is None else stream.device)
        self._time = time.perf_counter()

    def wait(self, stream: Stream | None = None) -> None:
        """Do nothing: a device's work runs in order."""

    def query(self) -> bool:
        """Return True: `record` has waited for the work before it."""
        return True

    def synchronize(self) -> None:
        """Do nothing: `record` has waited for the work before it."""

    def elapsed_time(self, end_event: Event) -> float:
        """Return the milliseconds from this event to another; RuntimeError unless both record times."""
        if not (self._timing and end_event._timing):
            raise RuntimeError("Both events must be created with argument 'enable_timing=True'.")
        if math.isnan(self._time) or math.isnan(end_event._time):
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        return (end_event._time - self._time) * 1e3


class StreamContext:
    """A context that does nothing: a device has one stream."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        pass


def stream(stream: Stream | None) -> StreamContext:
    """Return a context that does nothing: a device has one stream."""
    return StreamContext(stream)


def current_stream(device: Any = None) -> Stream:
    """Return the device's stream."""
    return Stream(device)


default_stream = current_stream


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Return the device's free and total bytes; all that this process's pool does not hold counts as free."""
    info = get_backend(_name(device)).info
    return info.global_mem - opencl.memory_reserved(_name(device)), info.global_mem


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """Return the counters of the pool as lines of text."""
    return "\n".join(f"{k:26} {v:>16,}" for k, v in opencl.memory_stats(_name(device)).items())


def ipc_collect() -> None:
    """Do nothing: memory is not shared between processes."""


def is_current_stream_capturing() -> bool:
    """Return False: there are no CUDA graphs; `capture` records launches."""
    return False


def _renamed(old: str, new: str, text: str) -> Callable[..., Any]:
    def call(device: Any = None) -> Any:
        warnings.warn(text, FutureWarning, stacklevel=2)
        return globals()[new](device=device)

    call.__name__ = call.__qualname__ = old
    call.__doc__ = f"Deprecated name of `{new}`."
    return call


memory_cached, max_memory_cached = (
    _renamed(old, new, f"`torch.cuda.{old}` has been renamed to `torch.cuda.{new}`")
    for old, new in (
        ("memory_cached", "memory_reserved"),
        ("max_memory_cached", "max_memory_reserved"),
    )
)
reset_max_memory_allocated, reset_max_memory_cached = (
    _renamed(
        old,
        "reset_peak_memory_stats",
        f"torch.cuda.{old} now calls torch.cuda.reset_peak_memory_stats, which resets /all/ peak memory stats.",
    )
    for old in ("reset_max_memory_allocated", "reset_max_memory_cached")
)

CUDAGraph, graph, make_graphed_callables = absent(
    __name__, "CUDAGraph graph make_graphed_callables", "`cltensor.capture` records launches"
)
expose(
    globals(),
    {
        "graphs": "CUDAGraph graph make_graphed_callables",
        "streams": "Event Stream StreamContext",
        "memory": "OutOfMemoryError empty_cache max_memory_allocated max_memory_reserved mem_get_info memory_allocated memory_reserved "
        "memory_stats memory_summary reset_peak_memory_stats",
        "random": "get_rng_state get_rng_state_all initial_seed manual_seed manual_seed_all seed seed_all set_rng_state "
        "set_rng_state_all",
    },
)
