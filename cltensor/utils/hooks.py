"""`cltensor.utils.hooks`: the type of what registering a hook returns, and a mark for hooks."""

from __future__ import annotations

from typing import Any

from ..autograd.hooks import RemovableHandle

__all__ = ["RemovableHandle", "unserializable_hook"]


def unserializable_hook(f: Any) -> Any:
    """Mark a hook as one that is not saved with its tensor."""
    f.__torch_unserializable__ = True
    return f
