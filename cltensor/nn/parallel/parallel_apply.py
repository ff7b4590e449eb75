"""Modules called each on its own device: `torch.nn.parallel.parallel_apply`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...tensor import Tensor
from ..modules.module import Module
from . import comm

__all__ = ["get_a_var", "parallel_apply"]


def get_a_var(obj: Any) -> Tensor | None:
    """Return the first tensor in nested lists, tuples and dicts; None if there is none."""
    if isinstance(obj, Tensor):
        return obj
    if isinstance(obj, dict):
        obj = obj.items()
    elif not isinstance(obj, list | tuple):
        return None
    return next((found for found in map(get_a_var, obj) if found is not None), None)


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[Any] | None = None,
) -> list[Any]:
    """Call each module on its arguments, and return the results; what they launch runs on the devices at once.

    devices: the default device of each call; by default that of its first tensor.
    """
    kwargs_tup = [{}] * len(modules) if kwargs_tup is None else kwargs_tup
    if not len(modules) == len(inputs) == len(kwargs_tup):
        raise AssertionError(
            f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}"
        )
    results = []
    for at, (module, given, named) in enumerate(zip(modules, inputs, kwargs_tup, strict=True)):
        arguments = given if isinstance(given, list | tuple) else (given,)
        first = get_a_var(given)
        wanted = first.device if first is not None else None
        if devices is not None and devices[at] is not None:
            wanted = comm.place(devices[at])
        if wanted is None:
            results.append(module(*arguments, **named))
        else:
            with wanted:
                results.append(module(*arguments, **named))
    return results
