"""Histograms over one or several dims: points counted, or their weights summed, in boxes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import dtypes
from . import return_types, writes
from .composite import in_one
from .core import Tensor, is_tensor
from .refusals import need_float
from .row import FUNCTIONS, public
from .statistics import counted, value_range

return_types.histogramdd = return_types._class("histogramdd", ("hist", "bin_edges"))


def _edges(x: Tensor, bins: Any, limits: Any) -> list[Tensor]:
    """Return the bins' edges along every dim of the points `x` (count, dims)."""
    dims = x.shape[1]
    per_dim = list(bins) if isinstance(bins, list | tuple) else [bins] * dims
    if len(per_dim) != dims:
        raise RuntimeError(
            "histogramdd: The size of bins must be equal to the innermost dimension of the input."
        )
    if limits is not None and len(limits) != 2 * dims:
        raise RuntimeError(
            f"torch.histogramdd: for a {dims}-dimensional histogram range should have {2 * dims} elements, but got {len(limits)}"
        )
    found = []
    for d, own in enumerate(per_dim):
        if is_tensor(own):
            _check_edges(x, own, d)
            found.append(own.detach())
            continue
        if own <= 0:
            raise RuntimeError(
                f"torch.histogram(): bins must be > 0, but got {own} for dimension {d}"
            )
        given = None if x.shape[0] else (0.0, 1.0)
        if limits is not None:
            given = low, high = tuple(limits[2 * d : 2 * d + 2])
            if low > high:
                raise RuntimeError(
                    f"torch.histogramdd: min should not exceed max, but got min {low:g} max {high:g} for dimension {d}"
                )
        low, high = value_range(
            f"torch.histogramdd: dimension {d}'s range", x[:, d], given, widen=0.5
        )
        found.append(FUNCTIONS["linspace"](low, high, own + 1, dtype=x.dtype, device=x.device))
    return found


def _name(t: Tensor) -> str:
    return dtypes.C_NAMES[t.dtype.name]


def _check_edges(x: Tensor, edges: Tensor, d: int) -> None:
    if edges.dtype is not x.dtype:
        raise RuntimeError(
            "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got "
            f"input with dtype {_name(x)} and bins for dimension {d} with dtype {_name(edges)}"
        )
    if edges.ndim != 1:
        raise RuntimeError(
            f"torch.histogramdd: bins tensor should have one dimension, but got {edges.ndim} dimensions "
            f"in the bins tensor for dimension {d}"
        )
    if not edges.numel():
        raise RuntimeError(
            "torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements in the "
            f"bins tensor for dimension {d}"
        )


def _laid(v: Tensor, dim: int, rank: int) -> Tensor:
    return v.view([-1 if d == dim else 1 for d in range(rank)])


@in_one
def _in_boxes(given: Sequence[Tensor], dims: int, density: bool) -> list[Tensor]:
    """Count the points x (count, dims), or sum their weights, in boxes. `given`: x, the edges along every dim, and weights
    if there are any.
    """
    x, edges, what = given[0], given[1 : dims + 1], given[dims + 1 :]
    place = x.new_zeros(x.shape[0]).long()
    inside = x.new_full(place.shape, bool(edges)).bool()  # a box without sides holds nothing
    for d, own in enumerate(edges):
        column, n = x[:, d].contiguous(), own.numel() - 1
        at = FUNCTIONS["searchsorted"](own.contiguous(), column, right=True) - 1
        inside = inside & (column >= own[0]) & (column <= own[-1])
        place = place * n + at.clamp(0, n - 1)
    shape = [own.numel() - 1 for own in edges]
    hist = counted(place, inside, math.prod(shape), *what).to(x.dtype).view(shape)
    if density:
        hist = hist / hist.sum()
        for d, own in enumerate(edges):
            hist = hist / _laid(own[1:] - own[:-1], d, dims)
    return [hist]


@public(method=False)
def histogramdd(
    input: Tensor,
    bins: Any,
    *,
    range: Any = None,
    weight: Tensor | None = None,
    density: bool = False,
    out: Any = None,
) -> Any:
    """Sum the weights (1 by default) of points (…, D) in boxes: equal ones within `range`, or between given edges.

    bins: boxes per dim (one or D numbers), or D tensors of edges. range: low and high of every dim in turn.
    Returns `hist` and `bin_edges`.
    """
    if input.ndim < 2:
        if not input.ndim:
            raise IndexError("Dimension specified as -1 but tensor has no dimensions")
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    need_float("histogramdd", input.dtype)
    if weight is not None and weight.dtype is not input.dtype:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should "
            f"have the same dtype, but got input({_name(input)}), and weight({_name(weight)})"
        )
    if weight is not None and weight.shape != input.shape[:-1]:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor excluding its innermost "
            f"dimension, but got input with shape {list(input.shape)} and weight with shape {list(weight.shape)}"
        )
    x = input.detach().reshape(math.prod(input.shape[:-1]), input.shape[-1])
    edges = _edges(x, bins, range)
    what = [] if weight is None else [weight.detach()]
    (hist,) = _in_boxes((x, *edges, *what), len(edges), density)
    if out is not None:
        hist = writes.deliver(hist, out[0], "histogramdd", (input,))
        edges = [
            writes.deliver(v, o, "histogramdd", ()) for v, o in zip(edges, out[1], strict=True)
        ]
    return return_types.histogramdd((hist, tuple(edges)))


@public()
def histogram(
    input: Tensor,
    bins: Any = 100,
    *,
    range: Any = None,
    weight: Tensor | None = None,
    density: bool = False,
    out: Any = None,
) -> Any:
    """Sum weights (1 by default) in bins: a number of equal ones within `range`, or between given edges. Returns it and the edges."""
    if is_tensor(bins) and range is not None:
        raise TypeError("histogram() received an invalid combination of arguments")
    if out is not None:
        for what, o, where in (("hist", out[0], ""), ("bin_edges", out[1], " for dimension 0")):
            if o.dtype is not input.dtype:
                raise RuntimeError(
                    f"torch.histogram: input tensor and {what} tensor should have the same dtype, but "
                    f"got input {_name(input)} and {what} {_name(o)}{where}"
                )
    hist, (edges,) = histogramdd(
        input.detach().reshape(-1, 1),
        [bins],
        range=range,
        weight=None if weight is None else weight.reshape(-1),
        density=density,
    )
    if out is not None:
        hist = writes.deliver(hist, out[0], "histogram", (input,))
        edges = writes.deliver(edges, out[1], "histogram", (input,))
    return return_types.histogram((hist, edges))
