"""What belongs to NVIDIA's CUDA alone: graphs, NCCL, the runtime library, sensors, profilers, GPUDirect.

Programs name these things, mostly behind a question whether they are there. Here they never are: the questions are answered so, and
everything else raises and says why. Owns names only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from ..reexport import absent
from ..runtime import get_backend
from .devices import named

has_half = True  # float16 tensors exist
has_magma = False

_RECORDS = "`cltensor.capture` records launches"
CUDAGraph, graph, make_graphed_callables = absent(
    "cltensor.cuda", "CUDAGraph graph make_graphed_callables", _RECORDS
)
ExternalStream, GreenContext, GdsFile = absent(
    "cltensor.cuda", "ExternalStream GreenContext GdsFile", "CUDA's interface, devices are OpenCL's"
)


def _missing(name: str, error: type[Exception], why: str) -> Callable[..., NoReturn]:
    def call(*args: Any, **kwargs: Any) -> NoReturn:
        raise error(f"cuda.{name}: {why}")

    call.__name__ = call.__qualname__ = name.rpartition(".")[2]
    call.__doc__ = f"{error.__name__}: {why}."
    return call


def is_current_stream_capturing() -> bool:
    """Return False: there are no CUDA graphs; `capture` records launches."""
    return False


graph_pool_handle = _missing("graph_pool_handle", NotImplementedError, _RECORDS)

# torch reads sensors by NVIDIA's nvidia-ml-py, and raises this where it is not installed.
clock_rate, device_memory_used, memory_usage, power_draw, temperature, utilization = (
    _missing(
        name,
        ModuleNotFoundError,
        "OpenCL devices tell nothing of load, clocks, power and heat; nvidia-ml-py reads them for NVIDIA's",
    )
    for name in (
        "clock_rate",
        "device_memory_used",
        "memory_usage",
        "power_draw",
        "temperature",
        "utilization",
    )
)


class CudaError(RuntimeError):
    """Raised by `check_error` for a code of CUDA's runtime library, which is not used here."""

    def __init__(self, code: int) -> None:
        super().__init__(f"CUDA error ({code})")


class DeferredCudaCallError(Exception):
    """torch's error for calls put off until CUDA starts; never raised here."""


class cudaStatus:
    """Two codes of CUDA's runtime library."""

    SUCCESS: int = 0
    ERROR_NOT_READY: int = 34


def check_error(res: int) -> None:
    """Raise CudaError for any code but 0."""
    if int(res) != cudaStatus.SUCCESS:
        raise CudaError(int(res))


cudart, current_blas_handle, current_solver_handle, start, stop, profile = (
    _missing(name, AssertionError, "Torch not compiled with CUDA enabled")
    for name in (
        "cudart",
        "current_blas_handle",
        "current_solver_handle",
        "profiler.start",
        "profiler.stop",
        "profiler.profile",
    )
)
get_stream_from_external = _missing(
    "get_stream_from_external", NotImplementedError, "devices are OpenCL's"
)
gds_register_buffer, gds_deregister_buffer = (
    _missing(f"gds.{name}", RuntimeError, "GPUDirect Storage is CUDA's, devices are OpenCL's")
    for name in ("gds_register_buffer", "gds_deregister_buffer")
)
_create_jit_fn, _create_multi_output_jit_fn = (
    _missing(f"jiterator.{name}", NotImplementedError, "OpenCL does not compile CUDA's C++")
    for name in ("_create_jit_fn", "_create_multi_output_jit_fn")
)


def get_sync_debug_mode() -> int:
    """Return 0: no call is watched for waiting. AssertionError if there is no GPU."""
    get_backend(named(None))
    return 0


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Accept 0, "default"; NotImplementedError for others: calls that wait for a device are not watched."""
    get_backend(named(None))
    if debug_mode in (0, "default"):
        return
    if debug_mode in ("warn", "error"):
        raise NotImplementedError("cuda.set_sync_debug_mode: calls that wait are not watched")
    if isinstance(debug_mode, str):
        raise RuntimeError(
            "invalid value of debug_mode, expected one of `default`, `warn`, `error`"
        )
    raise NotImplementedError("cuda.set_sync_debug_mode: calls that wait are not watched")


# --- NCCL --------------------------------------------------------------------------------------


def is_available(tensors: Any) -> bool:
    """Return False: there is no NCCL."""
    return False


_NCCL = "there is no NCCL; `cltensor.distributed` has collectives, `cltensor.cuda.comm` sums and copies between devices"
version, unique_id, init_rank, all_reduce, reduce, broadcast, all_gather, reduce_scatter = (
    _missing(f"nccl.{name}", RuntimeError, _NCCL)
    for name in (
        "version",
        "unique_id",
        "init_rank",
        "all_reduce",
        "reduce",
        "broadcast",
        "all_gather",
        "reduce_scatter",
    )
)
