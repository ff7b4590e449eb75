"""`cltensor.utils._foreach_utils`: group tensors for `_foreach_*` and fused steps of optimisers written for torch."""

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
    """Return the types of devices on which a `_foreach_*` function processes many tensors in one launch."""
    return ["opencl"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """Return the types of devices that have fused optimiser steps."""
    return ["cpu", "opencl"]


def _group_tensors_by_device_and_dtype(
    tensorlistlist: Sequence[Sequence[Any]], with_indices: bool = False
) -> dict[tuple[device, dtype], tuple[TensorListList, Indices]]:
    """Group parallel lists by the first list's devices and dtypes: (device, dtype) -> (parts of the lists, indices).

    Items at the same index of the lists stay together. Lists behind the first may be empty, or hold None or numbers.
    The indices of a group's items in the given lists are returned only if `with_indices`.
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
