"""Tensors from nothing, from Python data and from numpy: the factories of torch's namespace and the `new_*` methods."""

from __future__ import annotations

from ..ops.row import FUNCTIONS
from . import windows
from .data import as_tensor, asarray, from_numpy, frombuffer, tensor
from .filled import (
    empty,
    empty_like,
    empty_strided,
    eye,
    filled,
    full,
    full_like,
    ones,
    ones_like,
    scalar_tensor,
    zeros,
    zeros_like,
)
from .parse import parse
from .ranges import arange, linspace, logspace, range
from .typed import legacy_new

for _fn in (
    empty,
    zeros,
    ones,
    full,
    empty_like,
    zeros_like,
    ones_like,
    full_like,
    empty_strided,
    scalar_tensor,
    arange,
    range,
    linspace,
    logspace,
    eye,
    tensor,
    as_tensor,
    asarray,
    from_numpy,
    frombuffer,
):
    FUNCTIONS[_fn.__name__] = _fn

__all__ = [
    "arange",
    "as_tensor",
    "asarray",
    "empty",
    "empty_like",
    "empty_strided",
    "eye",
    "filled",
    "frombuffer",
    "from_numpy",
    "full",
    "full_like",
    "legacy_new",
    "linspace",
    "logspace",
    "ones",
    "ones_like",
    "parse",
    "range",
    "scalar_tensor",
    "tensor",
    "windows",
    "zeros",
    "zeros_like",
]
