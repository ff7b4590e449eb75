"""`torch._jit_internal`: names for annotations and TorchScript's decorators; copies of torch's layers import them."""

from __future__ import annotations

from typing import Any, Dict, Final, List, Optional, Tuple, Union  # noqa: UP035 - importers ask for them by these names

from .jit import export, ignore, is_scripting, unused

BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = list

__all__ = [
    "Any",
    "BroadcastingList1",
    "BroadcastingList2",
    "BroadcastingList3",
    "Dict",
    "Final",
    "List",
    "Optional",
    "Tuple",
    "Union",
    "export",
    "ignore",
    "is_scripting",
    "unused",
]


def _copy_to_script_wrapper(fn: Any) -> Any:
    """Return a function as it is: there is no script module to copy it to."""
    return fn


_overload = _overload_method = _copy_to_script_wrapper
