"""Pinning a batch, by loaders of the user's: in containers, and of objects with a `pin_memory` of their own. Pinning moves nothing here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...tensor import Tensor
from .collate import like_mapping, like_sequence


def pin_memory(data: Any, device: Any = None) -> Any:
    """Call `pin_memory` of the tensors in nested containers, and of other objects that have it; return the results likewise."""
    if isinstance(data, Tensor):
        return data.pin_memory(device)
    if isinstance(data, str | bytes):
        return data
    if isinstance(data, Mapping):
        return like_mapping(data, {key: pin_memory(value, device) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(pin_memory(value, device) for value in data))
    if isinstance(data, tuple):
        return [pin_memory(value, device) for value in data]
    if isinstance(data, Sequence):
        return like_sequence(data, [pin_memory(value, device) for value in data])
    return data.pin_memory() if hasattr(data, "pin_memory") else data
