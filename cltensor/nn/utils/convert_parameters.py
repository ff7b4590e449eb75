"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...ops.row import FUNCTIONS
from ...tensor import Tensor
from ..modules.module import typename

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def _same_device(params: list[Any]) -> None:
    if len({p.device for p in params}) > 1:
        raise TypeError(
            "Found two parameters on different devices, this is currently not supported."
        )


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Return all elements of the parameters one after another; differentiable."""
    params = list(parameters)
    _same_device(params)
    return FUNCTIONS["cat"]([p.view(-1) for p in params])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Make the parameters views of pieces of a vector, in their order."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {typename(vec)}")
    params = list(parameters)
    _same_device(params)
    start = 0
    for p in params:
        end = start + p.numel()
        p.data = vec[start:end].view_as(p).data
        start = end
