"""What a type makes: `Tensor(…)`, `FloatTensor(…)`, `t.new(…)` and `t.new_tensor(…)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import dtypes
from ..dtypes import dtype as DType
from ..runtime import device
from ..size import Size
from ..tensor import Tensor
from .data import copied, from_data
from .factory import place, prototyped, shape_of
from .filled import blank


def legacy_new(args: tuple, dt: DType | None, dev: Any) -> Tensor:
    """What `Tensor(…)`, `FloatTensor(…)` and `t.new(…)` make: sizes as ints or a Size, else data."""
    dt = dt or dtypes.get_default_dtype()
    home = place(dev)
    if not args:
        return blank(Size((0,)), dt, home)
    first = args[0]
    if len(args) == 1 and isinstance(first, Tensor):
        return first.detach().to(home, dt) if first.dtype is not dt else first.alias()
    if (isinstance(first, Size) and len(args) == 1) or all(
        isinstance(a, int) and not isinstance(a, bool) for a in args
    ):
        return blank(shape_of("new", args), dt, home)
    if len(args) == 1 and isinstance(first, list | tuple | np.ndarray | Sequence):
        return from_data(first, dt, home)
    got = ", ".join(type(a).__name__ for a in args)
    raise TypeError(
        f"new() received an invalid combination of arguments - got ({got}), but expected one of: (*sizes) (Tensor other) (Sequence data)"
    )


@prototyped
def new_tensor(self: Tensor, data: Any, *, dt: DType, dev: device) -> Tensor:
    """Copy data into a tensor with this one's dtype and device unless said otherwise."""
    if isinstance(data, Tensor):
        return copied(data, dt, dev, "tensor.new_tensor")
    return from_data(data, dt, dev)


def new(self: Tensor, *args: Any, device: Any = None) -> Tensor:
    """Construct as this tensor's type does."""
    return legacy_new(args, self.dtype, self.device if device is None else device)


for _method in (new_tensor, new):
    setattr(Tensor, _method.__name__, _method)
