"""Copies and sums of tensors between devices of one process: `torch.nn.parallel.comm`, and `torch.cuda.comm`.

A device is given by an index, of a GPU, or by any name. Copies are differentiable.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...ops.row import FUNCTIONS
from ...runtime import device
from ...tensor import Tensor

__all__ = [
    "broadcast",
    "broadcast_coalesced",
    "gather",
    "reduce_add",
    "reduce_add_coalesced",
    "scatter",
]


def place(target: Any) -> device:
    """Return the device that an index, of a GPU, or a name stands for; the current GPU for None."""
    if target is None:
        return device("cuda")
    return device("cuda", target) if isinstance(target, int) else device(target)


def broadcast(
    tensor: Tensor, devices: Iterable[Any] | None = None, *, out: Sequence[Tensor] | None = None
) -> Any:
    """Return a tensor's copies on devices, itself where it is already; or copy it into the tensors in `out`."""
    if (devices is None) == (out is None):
        raise RuntimeError(
            f"Exactly one of 'devices' and 'out' must be specified, but got devices={devices} and out={out}"
        )
    if out is not None:
        return tuple(t.copy_(tensor) for t in out)
    return tuple(tensor.to(place(d)) for d in devices or ())


def broadcast_coalesced(
    tensors: Sequence[Tensor], devices: Iterable[Any], buffer_size: int = 10485760
) -> list[list[Tensor]]:
    """Return for each device the copies of all tensors."""
    return [[t.to(place(d)) for t in tensors] for d in devices]


def reduce_add(inputs: Sequence[Tensor], destination: Any = None) -> Tensor:
    """Return the sum of tensors of one shape on different devices, on the destination, by default the current GPU."""
    shapes = [tuple(t.shape) for t in inputs]
    for at, shape in enumerate(shapes):
        if shape != shapes[0]:
            want, got = ("x".join(map(str, s)) for s in (shapes[0], shape))
            raise ValueError(f"input {at} has invalid size: got {got}, but expected {want}")
    where = place(destination)
    total = inputs[0].to(where)
    for t in inputs[1:]:
        total = total + t.to(where)
    return total.clone() if len(inputs) == 1 else total


def reduce_add_coalesced(
    inputs: Sequence[Sequence[Tensor]], destination: Any = None, buffer_size: int = 10485760
) -> tuple[Tensor, ...]:
    """Return the sums of tensors that lie, one of each, on each device."""
    return tuple(reduce_add(parts, destination) for parts in zip(*inputs, strict=True))


def scatter(
    tensor: Tensor,
    devices: Sequence[Any] | None = None,
    chunk_sizes: Sequence[int] | None = None,
    dim: int = 0,
    streams: Any = None,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]:
    """Divide a tensor along a dim among devices, evenly or by `chunk_sizes`, or among the tensors in `out`."""
    if out is not None:
        for name, given in (("devices", devices), ("chunk_sizes", chunk_sizes)):
            if given is not None:
                raise RuntimeError(
                    f"'{name}' must not be specified when 'out' is specified, but got {name}={given}"
                )
        parts = tensor.split([t.shape[dim] for t in out], dim)
        return tuple(t.copy_(part) for t, part in zip(out, parts, strict=True))
    places = [place(d) for d in devices or ()]
    if not places:
        raise RuntimeError("Expected at least one device to scatter to")
    parts = tensor.chunk(len(places), dim) if chunk_sizes is None else tensor.split(list(chunk_sizes), dim)  # fmt: skip
    if chunk_sizes is not None and len(parts) != len(places):
        raise RuntimeError(
            f"Expected devices and chunk_sizes to be of same length, but got len(devices) = {len(places)} and "
            f"len(chunk_sizes) = {len(parts)}"
        )
    return tuple(part.to(where) for part, where in zip(parts, places, strict=False))


def gather(
    tensors: Sequence[Tensor], dim: int = 0, destination: Any = None, *, out: Tensor | None = None
) -> Tensor:
    """Join tensors of different devices along a dim, on the destination, by default the current GPU, or in `out`."""
    if out is not None:
        if destination is not None:
            raise RuntimeError(
                f"'destination' must not be specified when 'out' is specified, but got destination={destination}"
            )
        return out.copy_(FUNCTIONS["cat"]([t.to(out.device) for t in tensors], dim))
    where = place(destination)
    return FUNCTIONS["cat"]([t.to(where) for t in tensors], dim)
