"""`cltensor.distributed`: the answer that there is none, in the words programs ask with.

`is_available()` is False, as in a torch built without it; names that programs import at their top exist and raise when used.
"""

from __future__ import annotations

from typing import Any, NoReturn


def is_available() -> bool:
    """Return False."""
    return False


is_initialized = is_nccl_available = is_gloo_available = is_mpi_available = is_available
is_torchelastic_launched = is_available


def _absent(name: str) -> Any:
    def call(*args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(
            f"distributed.{name}(): cltensor works on the devices of one process (distributed.is_available() is False)"
        )

    call.__name__ = call.__qualname__ = name
    call.__doc__ = "RuntimeError: there is one process."
    return call


for _name in (
    "all_gather",
    "all_reduce",
    "barrier",
    "broadcast",
    "destroy_process_group",
    "gather",
    "get_rank",
    "get_world_size",
    "init_process_group",
    "new_group",
    "recv",
    "reduce",
    "scatter",
    "send",
):
    globals()[_name] = _absent(_name)
