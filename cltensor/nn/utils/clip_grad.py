"""Clipping gradients by their norm over all parameters, or element by element. Nothing here waits for the device.

Owns the norm of many tensors in few launches; scaling goes through ops/multi.py.
"""

from __future__ import annotations

import types
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from ... import creation
from ...amp.state import STATE as AUTOCAST
from ...autograd import no_grad
from ...ops import multi
from ...ops.composite import at_once
from ...ops.elsewhere import refuse
from ...ops.norms import vector_norm
from ...ops.row import FUNCTIONS
from ...tensor import Tensor

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
]

# In elements: smaller tensors are first copied into one, which is cheaper than a launch for each.
_SMALL = 1 << 14
_SCALE = multi.chain("scale", "g = g * coef", "g", "", "coef")
_COPY = multi.chain("copy", "to = g", "to", "g")
_LIMIT = multi.chain("limit", "g = where(g < low, low, where(g > high, high, g))", "g", "")


def _listed(tensors: Tensor | Iterable[Tensor]) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _grads(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    return [p.grad for p in _listed(parameters) if p.grad is not None]


def _refuse_sparse(tensors: list[Tensor], name: str) -> None:
    """Raise torch's error for sparse gradients."""
    if not all(t._strided for t in tensors):
        raise refuse(name)


@no_grad()
def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Return the norm of all elements together. error_if_nonfinite: RuntimeError (and a wait) if it is not finite."""
    tensors, norm_type = _listed(tensors), float(norm_type)
    if not tensors:
        return creation.tensor(0.0)
    _refuse_sparse(tensors, "linalg_vector_norm")
    (total,) = _measure(tensors, norm_type, AUTOCAST.active)
    if error_if_nonfinite and not total.isfinite():
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be clipped. To disable this error "
            "and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


@at_once
def _measure(tensors: Sequence[Tensor], norm_type: float, casts: bool) -> list[Tensor]:
    """Return the norm of all tensors' elements together.

    `casts` is whether autocast is on: it affects how 16-bit numbers are measured, so replays for both cases are kept
    apart.
    """
    device = tensors[0].device
    joined = tensors if norm_type == 0 else _joined(tensors)
    norms = [vector_norm(t, norm_type).to(device) for t in joined]
    return [norms[0] if len(norms) == 1 else vector_norm(FUNCTIONS["stack"](norms), norm_type)]


@at_once
def _share(total: Sequence[Tensor], max_norm: float, casts: bool) -> list[Tensor]:
    """Return the factor by which gradients of this total norm are to be multiplied; `casts` as above."""
    return [(max_norm / (total[0] + 1e-6)).clamp(max=1.0)]


def _joined(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return tensors with the same elements, the small ones of each device and dtype copied into one."""
    large: list[Tensor] = []
    small: dict[Any, list[Tensor]] = {}
    for t in tensors:
        if t.numel() >= _SMALL:
            large.append(t)
        else:
            small.setdefault((t.device, t.dtype), []).append(t)
    for group in small.values():
        large.append(group[0] if len(group) == 1 else _flat(group))
    return large


def _flat(tensors: list[Tensor]) -> Tensor:
    """Return the elements of all tensors in one 1-D tensor."""
    flat = tensors[0].new_empty(sum(t.numel() for t in tensors))
    places, start = [], 0
    for t in tensors:
        places.append(flat[start : start + t.numel()].view(t.shape))
        start += t.numel()
    multi.apply(_COPY, [places, tensors], {})
    return flat


@no_grad()
def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    total_norm: Tensor,
    foreach: bool | None = None,
) -> None:
    """Scale gradients by max_norm / total_norm, unless that is above 1."""
    grads = _grads(parameters)
    if grads:
        share = _share((total_norm,), float(max_norm), AUTOCAST.active)
        multi.apply(_SCALE, [grads], {}, share)


@no_grad()
def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the gradients of parameters so that their total norm is at most max_norm; return the total norm before."""
    generated = isinstance(parameters, types.GeneratorType)
    parameters = _listed(parameters)
    if generated and not parameters:
        warnings.warn(
            "`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=3
        )
    total = get_total_norm(_grads(parameters), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


def clip_grad_norm(*args: Any, **kwargs: Any) -> Tensor:
    """Deprecated name of `clip_grad_norm_`."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(*args, **kwargs)


@no_grad()
def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Limit every element of the gradients to [-clip_value, clip_value]."""
    limit, grads = float(clip_value), _grads(parameters)
    _refuse_sparse(grads, "clamp_min_")
    multi.apply(_LIMIT, [grads], {"low": -limit, "high": limit})
