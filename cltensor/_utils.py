"""`torch._utils`: small pieces that libraries import: flat copies of lists of tensors, and which kind of device there is."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from . import cuda
from .ops.row import FUNCTIONS
from .tensor import Tensor

__all__: list[str] = []


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """Return the elements of some tensors behind each other."""
    return FUNCTIONS["cat"]([t.contiguous().view(-1) for t in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return views of a flat tensor with the shapes of some tensors, as many elements for each as it has."""
    parts = flat.split([t.numel() for t in tensors])
    return tuple([part.view(t.shape) for part, t in zip(parts, tensors, strict=True)])


def _get_available_device_type() -> str | None:
    """Return the name of the best kind of device beside the cpu, None where there is none."""
    return "cuda" if cuda.is_available() else None


def _get_device_module(device_type: str) -> Any:
    """Return the module for a kind of device. RuntimeError for a kind without one."""
    return sys.modules[__package__].get_device_module(device_type)


def _get_all_device_indices() -> list[int]:
    """Return the numbers of the devices of that kind."""
    return list(range(cuda.device_count()))
