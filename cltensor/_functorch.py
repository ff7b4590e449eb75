"""`torch._functorch`: the pieces of `vmap` that libraries with containers of their own replace."""

from __future__ import annotations

from .batching import mapping
from .reexport import expose

__all__: list[str] = []

expose(globals(), {"vmap": mapping})
