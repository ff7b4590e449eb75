"""`torch._utils`: helpers that libraries import: flattening of lists of tensors, and the type of device available.

Pickles written by torch refer to the functions that rebuild tensors by this module's name, so they are here for
programs that put this package in torch's place.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import Any

from . import cuda
from .dtypes import dtype
from .ops.row import FUNCTIONS
from .serialization import rebuild
from .tensor import Tensor
from .utils.data.worker import Failure

__all__: list[str] = []

_rebuild_tensor, _rebuild_tensor_v2, _rebuild_tensor_v3 = rebuild.tensor_v1, rebuild.tensor_v2, rebuild.tensor_v3  # fmt: skip
_rebuild_parameter = rebuild.parameter
_rebuild_parameter_with_state = rebuild.parameter_with_state
_rebuild_sparse_tensor = rebuild.sparse
_rebuild_meta_tensor_no_storage = rebuild.meta_tensor


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """Return the elements of all tensors as one 1-d tensor."""
    return FUNCTIONS["cat"]([t.contiguous().view(-1) for t in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return consecutive parts of a flat tensor as views with the shapes of the given tensors."""
    parts = flat.split([t.numel() for t in tensors])
    return tuple([part.view(t.shape) for part, t in zip(parts, tensors, strict=True)])


def _element_size(kind: dtype) -> int:
    """Return the bytes of an element."""
    return kind.itemsize


def _get_available_device_type() -> str | None:
    """Return the type of the best device other than the cpu, None if there is none."""
    return "cuda" if cuda.is_available() else None


def _get_device_module(device_type: str) -> Any:
    """Return the module for a type of device. RuntimeError for a type without one."""
    return sys.modules[__package__].get_device_module(device_type)


def _get_all_device_indices() -> list[int]:
    """Return the indices of the GPUs."""
    return list(range(cuda.device_count()))


class ExceptionWrapper(Failure):
    """An exception to be raised again in another thread or process; by default the one being handled."""

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        kind, error, trace = exc_info or sys.exc_info()
        self.exc_type, self.where = kind, where
        self.exc_msg = "".join(traceback.format_exception(kind, error, trace))
        if error is not None:
            super().__init__(error, where)
