"""Functions of tensors that a module class names among its attributes: torch's are built in, and are no methods.

Knows nothing of modules but that they are classes.
"""

from __future__ import annotations

import re
from types import FunctionType

# Where functions of tensors say that they are from.
_BUILT_IN = re.compile(
    rf"{__package__.partition('.')[0]}(\.(ops|creation|nn\.functional|linalg|fft|special)\b|$)"
)


def unbind(cls: type) -> None:
    """Have such attributes of a class called without the module."""
    for name, value in list(vars(cls).items()):
        if value.__class__ is FunctionType and _BUILT_IN.match(value.__module__ or ""):
            setattr(cls, name, staticmethod(value))
