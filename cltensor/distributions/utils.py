"""Helpers of distributions: broadcasting of parameters, conversion between probabilities and logits, lazy attributes.

`ops` and `linalg` give this library's functions under torch's names.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from .. import dtypes
from ..autograd import enable_grad
from ..creation import tensor
from ..ops.linalg.table import LINALG
from ..ops.row import FUNCTIONS
from ..overrides import handle_torch_function, is_tensor_like
from ..tensor import Tensor

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

ops: Any = types.SimpleNamespace(**FUNCTIONS)
linalg: Any = types.SimpleNamespace(**LINALG)
euler_constant = 0.57721566490153286060
Number = int | float | bool


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Broadcast tensors and numbers together; numbers take the dtype and device of the first tensor.

    ValueError for anything else.
    """
    likes = [isinstance(v, Tensor) or is_tensor_like(v) for v in values]
    if not all(like or isinstance(v, Number) for v, like in zip(values, likes, strict=True)):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__."
        )
    first = next((v for v in values if isinstance(v, Tensor)), None)
    dt = dtypes.get_default_dtype() if first is None else first.dtype
    place = None if first is None else first.device
    made = [
        v if like else tensor(v, dtype=dt, device=place)
        for v, like in zip(values, likes, strict=True)
    ]
    if not all(isinstance(v, Tensor) for v in made):
        return handle_torch_function(ops.broadcast_tensors, made, *made)
    if all(v.shape == made[0].shape for v in made):
        return tuple(made)
    return tuple(ops.broadcast_tensors(*made))


def _sum_rightmost(value: Any, dim: int) -> Any:
    """Sum over the last `dim` dimensions."""
    return value if dim == 0 else value.reshape((*value.shape[: value.ndim - dim], -1)).sum(-1)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Return the probabilities of logits: log-odds of 0/1 (`is_binary`) or scores along the last dimension."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Keep probabilities away from 0 and 1."""
    eps = dtypes.finfo(probs.dtype).eps
    return probs.clamp(eps, 1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Return the logits of probabilities."""
    safe = clamp_probs(probs)
    return safe.log() - (-safe).log1p() if is_binary else safe.log()


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Put the last dim's elements, D (D + 1) / 2 for diag 0, into lower triangles of D × D matrices, row by row."""
    n = round((-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2)  # fmt: skip
    rows, columns = ops.tril_indices(n, n, diag, device=vec.device)
    index = (rows * n + columns).expand(vec.shape)
    flat = vec.new_zeros((*vec.shape[:-1], n * n)).scatter(-1, index, vec)
    return flat.reshape((*vec.shape[:-1], n, n))


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """Take the elements of the lower triangles, row by row. ValueError for a diagonal out of range."""
    n = mat.shape[-1]
    if diag < -n or diag >= n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = ops.tril_indices(n, n, diag, device=mat.device)
    flat = mat.reshape((*mat.shape[:-2], n * n))
    return flat.index_select(-1, rows * n + columns)


class lazy_property:
    """An attribute that is computed when it is first asked for, and kept."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped, self.name = wrapped, wrapped.__name__
        self.__doc__ = wrapped.__doc__

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with enable_grad():
            value = self.wrapped(instance)
        instance.__dict__[self.name] = value
        return value


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Tensor:
    """Draw standard normal numbers. Under torch's name, as libraries import it."""
    return ops.randn(shape, dtype=dtype, device=device)


def rand_like(shape: Any, parameter: Tensor) -> Tensor:
    """Draw numbers uniform in (0, 1), with a parameter's dtype and device."""
    made = ops.rand(shape, dtype=parameter.dtype, device=parameter.device)
    return made.clamp(min=dtypes.finfo(parameter.dtype).tiny)
