"""Host scalars in a dtype's storage format: as words that a kernel takes, as bytes, or on the device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .. import dtypes
from .operand import Operand
from .region import empty

if TYPE_CHECKING:
    from ..runtime import Backend

Scalar = complex | float | int | bool


def scalar_words(dt: dtypes.dtype, value: Scalar) -> tuple[int, int]:
    """Return the storage bits of a scalar as two signed 64-bit words."""
    raw = scalar_bytes(dt, value).ljust(16, b"\0")
    return tuple(int(v) for v in np.frombuffer(raw, np.int64))  # type: ignore[return-value]


def scalar_bytes(dt: dtypes.dtype, value: Scalar) -> bytes:
    """Return the bytes of `value` stored as `dt`; integers wrap."""
    if dt is dtypes.bfloat16:
        bits = int(np.float32(complex(value).real).view(np.uint32))
        if value != value:
            return b"\xc0\x7f"
        return (((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) & 0xFFFF).to_bytes(2, "little")
    if dt is dtypes.complex32:
        value = complex(value)
        return np.array([value.real, value.imag], np.float16).tobytes()
    assert dt.np is not None
    if dt.category == dtypes.INTEGRAL:
        number = int(value.real if isinstance(value, complex) else value)
        return (number & (2 ** (8 * dt.itemsize) - 1)).to_bytes(dt.itemsize, "little")
    with np.errstate(over="ignore"):
        return np.array(value).astype(dt.np).tobytes()


def scalar_operand(
    backend: Backend, dt: dtypes.dtype, value: Scalar, shape: Sequence[int] = ()
) -> Operand:
    """Put a scalar on the device and expand it to `shape`."""
    one = empty(backend, dt, ())
    backend.write(one.buffer, 0, np.frombuffer(scalar_bytes(dt, value), np.uint8))
    return one._replace(shape=tuple(shape), strides=(0,) * len(shape))
