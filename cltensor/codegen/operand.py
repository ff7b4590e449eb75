"""What a kernel family is told about a tensor: memory, type and layout."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..dtypes import dtype
    from ..runtime import Buffer


class Operand(NamedTuple):
    """A strided region of a device buffer; strides and offset count elements of `dtype`."""

    buffer: Buffer
    dtype: dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes of all elements, each index counted once, even where strides make elements share memory."""
        return math.prod(self.shape) * self.dtype.itemsize
