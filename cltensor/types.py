"""`cltensor.types`: names for annotations."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, TypeAlias

from .dtypes import dtype
from .memory_format import layout
from .runtime import device
from .size import Size
from .tensor import Tensor

__all__ = ["Device", "FileLike", "Number", "Storage"]

Number: TypeAlias = int | float | bool
Device: TypeAlias = device | str | int | None
FileLike: TypeAlias = str | os.PathLike[str] | Any
Storage: TypeAlias = Any
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_dtype, _device, _layout, _size = dtype, device, layout, Size | list[int] | tuple[int, ...]
