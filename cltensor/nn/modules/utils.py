"""`cltensor.nn.modules.utils`: sizes per dimension, and prefixes of state dicts, by torch's names."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .layer import ntuple

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    made = functools.partial(ntuple, n=n)
    made.__name__ = name  # type: ignore[attr-defined]
    return made


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: tuple[Any, ...], n: int) -> tuple[Any, ...]:
    """Return each element n times, the last first."""
    return tuple(x for x in reversed(t) for _ in range(n))


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Take a prefix, such as the "module." of a DataParallel, off the names of a state dict, in place."""
    for key in [k for k in state_dict if k.startswith(prefix)]:
        state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is not None:
        for key in [k for k in metadata if k and (k == prefix.rstrip(".") or k.startswith(prefix))]:
            metadata[key[len(prefix) :]] = metadata.pop(key)
