"""`torch._utils`: small pieces that libraries import: flat copies of lists of tensors, and which kind of device there is.

Pickles that torch wrote call their functions by this module's name, where a program has put this package in torch's place.
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
    """Return the elements of some tensors behind each other."""
    return FUNCTIONS["cat"]([t.contiguous().view(-1) for t in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return views of a flat tensor with the shapes of some tensors, as many elements for each as it has."""
    parts = flat.split([t.numel() for t in tensors])
    return tuple([part.view(t.shape) for part, t in zip(parts, tensors, strict=True)])


def _element_size(kind: dtype) -> int:
    """Return the bytes of an element."""
    return kind.itemsize


def _get_available_device_type() -> str | None:
    """Return the name of the best kind of device beside the cpu, None where there is none."""
    return "cuda" if cuda.is_available() else None


def _get_device_module(device_type: str) -> Any:
    """Return the module for a kind of device. RuntimeError for a kind without one."""
    return sys.modules[__package__].get_device_module(device_type)


def _get_all_device_indices() -> list[int]:
    """Return the numbers of the devices of that kind."""
    return list(range(cuda.device_count()))


class ExceptionWrapper(Failure):
    """An exception of another thread or process, by default the one being handled, to be raised again."""

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        kind, error, trace = exc_info or sys.exc_info()
        self.exc_type, self.where = kind, where
        self.exc_msg = "".join(traceback.format_exception(kind, error, trace))
        if error is not None:
            super().__init__(error, where)
