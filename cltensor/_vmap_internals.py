"""`torch._vmap_internals`: `vmap` where older libraries look for it."""

from __future__ import annotations

from .batching import vmap

__all__ = ["vmap"]

_vmap = vmap
