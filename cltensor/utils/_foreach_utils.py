"""`cltensor.utils._foreach_utils`: how optimisers written for torch sort tensors for `_foreach_*` and fused steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from ..dtypes import dtype
from ..runtime import device
from ..tensor import Tensor

TensorListList: TypeAlias = list[list[Tensor | None]]
Indices: TypeAlias = list[int]

_foreach_supported_types = [Tensor]


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Return the types of devices whose tensors `_foreach_*` takes many of in a launch."""
    return ["opencl"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """Return the types of devices that have fused optimiser steps."""
    return ["cpu", "opencl"]


def _group_tensors_by_device_and_dtype(
    tensorlistlist: Sequence[Sequence[Any]], with_indices: bool = False
) -> dict[tuple[device, dtype], tuple[TensorListList, Indices]]:
    """Sort parallel lists of tensors by device and dtype of the first list's; the places where they stood are the second of each pair.

    What stands at one place of the lists stays together. The other lists may be empty, or hold None or numbers.
    """
    found: dict[tuple[device, dtype], tuple[TensorListList, Indices]] = {}
    for place, t in enumerate(tensorlistlist[0]):
        lists, places = found.setdefault((t.device, t.dtype), ([[] for _ in tensorlistlist], []))
        for made, given in zip(lists, tensorlistlist, strict=True):
            if given:
                made.append(given[place])
        if with_indices:
            places.append(place)
    return found


def _device_has_foreach_support(device: device) -> bool:
    return device.type in [*_get_foreach_kernels_supported_devices(), "cpu"]


def _has_foreach_support(tensors: Sequence[Any], device: device) -> bool:
    return _device_has_foreach_support(device) and all(
        t is None or type(t) in _foreach_supported_types for t in tensors
    )
