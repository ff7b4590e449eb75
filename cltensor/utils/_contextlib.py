"""`torch.utils._contextlib`: bases of context managers that decorate functions, too, as `no_grad` does."""

from __future__ import annotations

from typing import Any

from ..autograd.mode import Mode


class _DecoratorContextManager(Mode):
    """A context manager that also decorates functions and generators; `clone` makes the one that a call runs in."""


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """One without arguments, so that it may decorate without being called."""

    def __new__(cls, orig_func: Any = None) -> Any:
        """Make one; decorate a function that is given."""
        made = object.__new__(cls)
        return made if orig_func is None else made(orig_func)
