"""Combinations of vectors' elements: meshgrid, which gives views, and the products and combinations made of it.

Owns no kernel. Must not know how tensors are joined: it asks `stack`.
"""

from __future__ import annotations

import itertools
from typing import Any

from ..errors import warn_once
from .core import Tensor
from .join import listed, stack, tensor_list
from .row import FUNCTIONS, public


@public(method=False)
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Expand vectors to a grid: one view per vector. `indexing`: "ij", or "xy" with the first two vectors' dimensions swapped."""
    xs = tensor_list("meshgrid", listed(tensors))
    if not xs:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for x in xs:
        if x.ndim > 1:
            raise RuntimeError(
                f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {x}"
            )
        if x.dtype is not xs[0].dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
        if x.device != xs[0].device:
            raise RuntimeError("meshgrid expects all tensors to have the same device")
    if indexing is None:
        warn_once(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument."
        )
        indexing = "ij"
    if indexing not in ("xy", "ij"):
        raise RuntimeError(
            f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}'
        )
    swap = indexing == "xy" and len(xs) >= 2
    if swap:
        xs[0], xs[1] = xs[1], xs[0]
    dims = tuple(x.numel() for x in xs)
    grids = [
        x.reshape((1,) * d + (-1,) + (1,) * (len(xs) - d - 1)).expand(dims)
        for d, x in enumerate(xs)
    ]
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


@public(method=False)
def cartesian_prod(*tensors: Any) -> Tensor:
    """Return all combinations of elements of vectors as rows; a single vector as it is."""
    xs = tensor_list("cartesian_prod", listed(tensors))
    for x in xs:
        if x.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(x.shape)}")
    if len(xs) == 1:
        return xs[0]
    return stack([g.reshape(-1) for g in meshgrid(xs, indexing="ij")], 1)


@public()
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Return the combinations of r elements of a vector, in order: (number of them, r). RuntimeError for other than 1-D."""
    if input.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return input.new_empty((0,))
    places = meshgrid([FUNCTIONS["arange"](input.numel(), device=input.device)] * r, indexing="ij")
    mask = None
    for a, b in itertools.pairwise(places):
        ordered = a <= b if with_replacement else a < b
        mask = ordered if mask is None else mask & ordered
    if mask is None:
        return stack([input], 1)
    return stack([x.masked_select(mask) for x in meshgrid([input] * r, indexing="ij")], 1)
