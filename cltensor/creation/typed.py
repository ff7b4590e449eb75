"""Construction by type: `Tensor(…)`, `FloatTensor(…)`, `t.new(…)` and `t.new_tensor(…)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import dtypes
from ..dtypes import dtype as DType
from ..ops.convert import place
from ..runtime import device
from ..size import Size
from ..storages import TypedStorage
from ..tensor import Tensor
from .data import copied, from_data, read_as
from .factory import prototyped, shape_of
from .filled import blank

_CONSTRUCTOR_FORM = (
    "constructor of the form torch.Tensor(tensor, device=device) is not supported.  "
    "Use torch.tensor(...) or torch.as_tensor(...)"
)
_NEW_FORM = (
    "new of the form tensor.new(tensor, device=device) is not supported.  Use torch.as_tensor(...)"
)


def legacy_new(args: tuple, dt: DType | None, dev: Any, home: Any = None) -> Tensor:
    """Make what `Tensor(…)`, `FloatTensor(…)` and `t.new(…)` return: ints or a Size are sizes, anything else is data.

    `dev` is the device asked for, `home` that of the tensor whose `new` was called.
    """
    kind, dt = dt, dt or dtypes.get_default_dtype()
    at, first = place(home), args[0] if args else None
    if dev is not None:
        if len(args) == 1 and isinstance(first, Tensor):
            raise RuntimeError(f"Legacy tensor {_NEW_FORM if home else _CONSTRUCTOR_FORM} instead.")
        if (asked := device(dev).type) != at.type:
            raise RuntimeError(
                f"legacy constructor expects device type: {at.type} but device type: {asked} was passed"
            )
        at = place(dev)
    if not args:
        return blank(Size((0,)), dt, at)
    if len(args) == 1 and isinstance(first, Tensor):
        if kind not in (None, first.dtype):
            wanted, got = _options(kind, at), _options(first.dtype, first.device)
            raise TypeError(f"expected {wanted} (got {got})")
        return first.alias()
    if (isinstance(first, Size) and len(args) == 1) or all(
        isinstance(a, int) and not isinstance(a, bool) for a in args
    ):
        return blank(shape_of("new", args), dt, at)
    if len(args) == 1 and hasattr(first, "untyped"):  # a storage, whose memory the tensor shares
        held: DType = getattr(first, "dtype", dt)
        if held is not dt:
            raise RuntimeError(
                f"Expected a Storage of type {dt.scalar_name} or an UntypedStorage, but got type {held.scalar_name} for argument 1 'storage'"
            )
        return blank(Size((0,)), dt, first.device).set_(first)
    if len(args) == 1 and isinstance(first, list | tuple | np.ndarray | Sequence):
        return from_data(first, dt, at)
    got = ", ".join(type(a).__name__ for a in args)
    raise TypeError(
        f"new() received an invalid combination of arguments - got ({got}), but expected one of: (*sizes) (Tensor other) (Sequence data)"
    )


def _options(dt: DType, dev: device) -> str:
    return (
        f"TensorOptions(dtype={dtypes.C_NAMES[dt.name]}, device={dev.type}, layout=Strided, requires_grad=false (default), "
        "pinned_memory=false (default), memory_format=(nullopt))"
    )


@prototyped
def new_tensor(self: Tensor, data: Any, *, dt: DType, dev: device) -> Tensor:
    """Copy data into a tensor with this one's dtype and device unless said otherwise."""
    if isinstance(data, Tensor):
        return copied(data, dt, dev, "tensor.new_tensor")
    if isinstance(data, TypedStorage):
        return read_as(data, dt).to(dev, copy=True)
    return from_data(data, dt, dev)


def new(self: Tensor, *args: Any, size: Any = None, device: Any = None) -> Tensor:
    """Construct as this tensor's type does."""
    if size is not None:
        args = (Size(size),)
    return legacy_new(args, self.dtype, device, self.device)


for _method in (new_tensor, new):
    setattr(Tensor, _method.__name__, _method)
