"""What a kernel family is told about a tensor: memory, type and layout."""

from __future__ import annotations

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
