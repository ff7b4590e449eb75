"""`cltensor.func`: modules as functions of their parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .nn.modules.module import Module
from .nn.utils import stateless

__all__ = ["functional_call"]


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: dict[str, Any] | Sequence[dict[str, Any]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other parameters and buffers, named in a dict or in several, which it gets back changed.

    ValueError for a name in several dicts. tie_weights: a tensor that has several names is replaced under all of them.
    strict: RuntimeError unless all are named.
    """
    given = parameter_and_buffer_dicts
    if not isinstance(given, dict):
        given = _joined(given)
    return stateless.call(module, given, args, kwargs, tie_weights=tie_weights, strict=strict)


def _joined(dicts: Any) -> dict[str, Any]:
    if not isinstance(dicts, Sequence):
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(dicts)}"
        )
    if not all(isinstance(d, dict) for d in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    names = [name for d in dicts for name in d]
    repeated = [n for n in dict.fromkeys(names) if names.count(n) > 1]
    if repeated:
        raise ValueError(
            f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous"
        )
    return {name: value for d in dicts for name, value in d.items()}
