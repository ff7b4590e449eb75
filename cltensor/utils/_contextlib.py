"""`torch.utils._contextlib`: base classes of context managers that also work as decorators, as `no_grad` does."""

from __future__ import annotations

from typing import Any

from ..autograd.mode import Mode


class _DecoratorContextManager(Mode):
    """A context manager that also decorates functions and generators: each call runs in a new one, made by `clone`."""


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """Such a context manager without arguments, which can be used as a decorator without parentheses."""

    def __new__(cls, orig_func: Any = None) -> Any:
        """Return a new context manager, or `orig_func`, if given, decorated with one."""
        made = object.__new__(cls)
        return made if orig_func is None else made(orig_func)
