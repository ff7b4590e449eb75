"""`torch._custom_ops`: the older path to `library`, which some libraries still import."""

from __future__ import annotations

from .library import custom_op, impl, impl_abstract

__all__ = ["custom_op", "impl", "impl_abstract"]
