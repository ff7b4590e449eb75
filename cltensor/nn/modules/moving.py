"""The arguments of `Module.to`, and the settings of how it changes parameters."""

from __future__ import annotations

from typing import Any

from ...ops.destination import destination

CONVERSION = {"overwrite": False, "swap": False}  # `torch.__future__`'s settings


def parse_to(*args: Any, memory_format: Any = None, **named: Any) -> tuple[Any, Any, bool, Any]:
    """Return device, dtype, `non_blocking` and memory format from the arguments of `Module.to`, which always moves in place."""
    device, dtype, non_blocking, copy = destination(args, **named)
    if copy is not None:
        raise RuntimeError(".to() does not accept copy argument")
    return device, dtype, non_blocking, memory_format
