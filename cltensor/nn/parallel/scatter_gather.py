"""Batches divided among devices and put together again, through tuples, lists and dicts. Knows nothing of modules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...ops.row import FUNCTIONS
from ...runtime import device
from ...tensor import Tensor

__all__ = ["gather", "scatter", "scatter_kwargs"]

_cat: Callable[..., Tensor] = FUNCTIONS["cat"]


def _place(target: Any) -> device:
    place = device("cuda", target) if isinstance(target, int) else device(target)
    if place.type == "cpu":
        raise ValueError(f"Expected a non cpu device, but got: {place}")
    return place


def _alike(kind: type, parts: Any) -> Any:
    return kind(*parts) if hasattr(kind, "_fields") else kind(parts)


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """Return each device's part of the tensors in `inputs`, in the same kinds of containers; other values go to all.

    ValueError for "cpu" among the devices.
    """
    places = [_place(t) for t in target_gpus]

    def divide(x: Any) -> list[Any]:
        if isinstance(x, Tensor):
            parts = x.chunk(len(places), dim)
            return [part.to(place) for part, place in zip(parts, places, strict=False)]
        if isinstance(x, tuple | list) and x:
            return [_alike(type(x), part) for part in zip(*map(divide, x), strict=False)]
        if isinstance(x, dict) and x:
            values = zip(*map(divide, x.values()), strict=False)
            return [type(x)(zip(x, part, strict=True)) for part in values]
        return [x] * len(places)

    parts = divide(inputs)
    return tuple(parts) if isinstance(inputs, Tensor) else parts


def scatter_kwargs(
    inputs: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    target_gpus: Sequence[Any],
    dim: int = 0,
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """Return positional and keyword arguments of each device; the shorter list is filled up with empty ones."""
    given: list[Any] = scatter(inputs, target_gpus, dim) if inputs else []
    named: list[Any] = scatter(kwargs, target_gpus, dim) if kwargs else []
    count = max(len(given), len(named))
    given += [()] * (count - len(given))
    named += [{} for _ in range(count - len(named))]
    return tuple(given), tuple(named)


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """Put the devices' outputs together on one device: tensors one after the other (0-dim ones as a vector), containers by part."""
    first = outputs[0]
    place = device("cuda", target_device) if isinstance(target_device, int) else device(target_device)  # fmt: skip
    if isinstance(first, Tensor):
        return _cat([(o if o.ndim else o.view(1)).to(place) for o in outputs], dim)
    if first is None:
        return None
    if isinstance(first, dict):
        if any(len(o) != len(first) for o in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)((k, gather([o[k] for o in outputs], target_device, dim)) for k in first)
    return _alike(type(first), [gather(part, target_device, dim) for part in zip(*outputs, strict=True)])  # fmt: skip
