"""`torch._functorch`: the functions of `vmap` that libraries replace to support containers of their own, and what the
package `functorch` held before it became `torch.func`.
"""

from __future__ import annotations

from ..batching import mapping
from ..reexport import expose

__all__: list[str] = []

expose(globals(), {"vmap": mapping})
