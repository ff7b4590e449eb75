"""`torch._custom_ops`: the older path to `library`, which some libraries still import."""

from __future__ import annotations

from . import library

__all__ = ["custom_op", "impl", "impl_abstract"]

custom_op, impl, impl_abstract = library.custom_op, library.impl, library.impl_abstract
