"""Changing a tensor's storage or size: resize_, resize_as_, set_, record_stream; filling uninitialised memory."""

from __future__ import annotations

import functools
import operator
import warnings
from typing import Any

from .. import dtypes, layouts
from ..autograd import record as graph
from ..autograd import views
from ..dtypes import dtype
from ..errors import caller_level
from ..memory_format import preserve_format
from ..runtime import get_backend
from ..size import Size
from ..storage import Storage
from . import formats
from .core import Tensor, is_tensor, make
from .operands import check_tensor
from .refusals import raising
from .row import public
from .shape import sizes


class Uninitialised:
    """Whether uninitialised memory is filled with NaN, or the dtype's largest number, so that reading it is noticed."""

    wanted = True  # torch.utils.deterministic.fill_uninitialized_memory
    filled = False  # `wanted`, and deterministic algorithms are switched on


@public(function=False)
def resize_(self: Tensor, *size: Any, memory_format: Any = None) -> Tensor:
    """Change the shape in place; a storage that is too small grows and keeps its contents."""
    shape = Size(layouts.check_shape(sizes("resize_", size, "size")))
    if graph.needs_grad(self):
        raise RuntimeError("cannot resize variables that require grad")
    strides = formats.strides("resize_", memory_format, shape)
    if shape == self.shape and strides is None:
        return self
    held = self._storage.nbytes
    _grow(self._storage, layouts.storage_bytes(shape, strides, self._offset, self.dtype.itemsize))
    if Uninitialised.filled:
        _fill(self, held)
    self._set_layout(shape, strides or layouts.contiguous_strides(shape), self._offset)
    self._vc.value += 1
    return self


def _grow(storage: Storage, needed: int) -> None:
    if needed > storage.nbytes:
        if storage.shared:
            raise RuntimeError("Trying to resize storage that is not resizable")
        storage.resize(needed)


def _fill(t: Tensor, held: int) -> None:
    """Fill the bytes of a tensor's storage behind its first `held` bytes (its size before it grew)."""
    start = -(-held // t.itemsize)
    count = t._storage.nbytes // t.itemsize - start
    if count > 0:
        make(t._storage, (count,), t.dtype, t.device, (1,), start).fill_(dtypes.filler(t.dtype))


def _hold(
    storage: Storage,
    dt: dtype,
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None,
    offset: int,
    grows: bool,
) -> None:
    """Check that a storage can hold a layout, growing it if `grows`; else RuntimeError for a layout beyond its end."""
    layouts.check_shape(shape)
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    if strides is not None and (len(strides) != len(shape) or any(s < 0 for s in strides)):
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(shape)} and strides={list(strides)}"
        )
    steps = layouts.contiguous_strides(shape) if strides is None else strides
    needed = layouts.storage_bytes(shape, steps, offset, dt.itemsize)
    if grows:
        _grow(storage, needed)
    elif needed > storage.nbytes:
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides [], storage offset {offset}, and itemsize {dt.itemsize} requiring a storage size "
            f"of {needed} are out of bounds for storage of size {storage.nbytes}"
        )


@public(function=False)
def resize_as_(self: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """Change the shape to the other tensor's, and with `torch.preserve_format` the format."""
    check_tensor("resize_as_", "the_template", 1, the_template)
    if memory_format is preserve_format:
        memory_format = formats.suggested(the_template)
    return resize_(self, tuple(the_template.shape), memory_format=memory_format)


def _reshaped(self: Tensor, shape: tuple[Any, ...], name: str) -> Tensor:
    warnings.warn(f"non-inplace {name} is deprecated", stacklevel=caller_level())
    total = functools.reduce(operator.mul, shape, 1)
    if total != self.numel():
        wanted, own = ("x".join(map(str, sizes)) for sizes in (shape, self.shape))
        raise RuntimeError(
            f"requested resize to {wanted} ({total} elements in total), but the given tensor has a size of {own} ({self.numel()} elements). "
            "autograd's resize can only change the shape of a given tensor, while preserving the number of elements. "
        )
    return self.contiguous().view(shape)


@public(function=False)
def resize(self: Tensor, *sizes: int) -> Tensor:
    """Do what `reshape` does; deprecated. RuntimeError for another number of elements."""
    return _reshaped(self, sizes, "resize")


@public(function=False)
def resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """Reshape to the other tensor's shape; deprecated. RuntimeError for another number of elements."""
    return _reshaped(self, tuple(tensor.size()), "resize_as")


@public(function=False)
def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """Return what `Module.load_state_dict` swaps in for a parameter: self with other's values, or `assign`ed, other."""
    return other.detach() if assign else self.copy_(other).detach()


@public(function=False)
def record_stream(self: Tensor, s: Any) -> None:
    """Do nothing: a device executes in order, so memory is not reused while a stream reads it. Not for cpu, as in torch."""
    if self.device.type == "cpu":
        raise NotImplementedError(
            "Could not run 'aten::record_stream' with arguments from the 'CPU' backend."
        )


@public(function=False)
def is_distributed(self: Tensor) -> bool:
    """Return False: no part of a tensor is in another process."""
    return False


@public(function=False)
def set_(
    self: Tensor, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None
) -> Tensor:
    """Share another tensor's memory, or a storage's in the layout given. RuntimeError for another dtype or a layout out of it."""
    if is_tensor(source) and source.dtype is not self.dtype:
        wanted, got = (dtypes.C_NAMES[t.dtype.name] for t in (self, source))
        raise RuntimeError(f"Could not set tensor of type {got} to a tensor of type {wanted}")
    if not is_tensor(source) and getattr(source, "dtype", self.dtype) is not self.dtype:
        wanted, got = dtypes.C_NAMES[self.dtype.name], source.pickle_storage_type()[:-7]
        raise RuntimeError(
            f"Expected a Storage of type {wanted} or an UntypedStorage, but got type {got} for argument 1 'storage'"
        )
    views.check_inplace(self)
    self._acc = None
    self._vc.value += 1
    storage = Storage.empty(get_backend(self.device), 0) if source is None else source._storage
    if size is not None:
        shape, steps = tuple(size), None if stride is None else tuple(stride)
        # As in torch, the storage may grow only for given strides or new sizes.
        grows = steps is not None or shape != self.shape
        _hold(storage, self.dtype, shape, steps, storage_offset, grows)
        layout = (shape, steps or layouts.contiguous_strides(shape), storage_offset)
    elif is_tensor(source):
        layout = (source.shape, source._strides, source._offset)
    else:
        layout = ((storage.nbytes // self.itemsize,), (1,), 0)
    self._storage = storage
    self._set_layout(*layout)
    if graph.needs_grad(self):
        backward = raising("derivative for set_ is not implemented")
        graph.rebase(self, "NotImplemented", (self,), backward)
    return self
