"""`torch._subclasses`: torch's fake tensors, which have no values; there are none here."""

from __future__ import annotations

from typing import Any

from .reexport import absent, expose

__all__ = ["FakeTensor", "FakeTensorConverter", "FakeTensorMode", "is_fake"]

FakeTensor, FakeTensorConverter, FakeTensorMode = absent(
    __name__, "FakeTensor FakeTensorConverter FakeTensorMode", "tensors always have values"
)


def is_fake(x: Any) -> bool:
    """Return False."""
    return False


expose(globals(), {"fake_tensor": "FakeTensor FakeTensorConverter FakeTensorMode is_fake"})
