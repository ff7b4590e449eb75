"""Functions of tensors among a module class's attributes: torch's are built-ins, which do not bind as methods.

Knows nothing of modules but that they are classes.
"""

from __future__ import annotations

import re
from types import FunctionType

# The `__module__` of the package's functions of tensors.
_BUILT_IN = re.compile(
    rf"{__package__.partition('.')[0]}(\.(ops|creation|nn\.functional|linalg|fft|special)\b|$)"
)


def unbind(cls: type) -> None:
    """Make static methods of such attributes of a class, so that they are called without the module."""
    for name, value in list(vars(cls).items()):
        if value.__class__ is FunctionType and _BUILT_IN.match(value.__module__ or ""):
            setattr(cls, name, staticmethod(value))
