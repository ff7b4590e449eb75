"""Reductions of jagged tensors: over the ragged dim as segments, over other dims on the values; softmax along both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ops.row import FUNCTIONS as F
from ..tensor import Tensor
from .elements import spread
from .shape import to_padded_tensor
from .table import op
from .tensor import JaggedTensor, compact, make, place

# What does not change a result: fills up sequences for reductions that are no segment reductions.
_NEUTRAL = {"sum": 0, "mean": 0, "prod": 1, "any": 0, "all": 1}
_SEGMENTS = {"sum": "sum", "mean": "mean", "prod": "prod", "amax": "max", "amin": "min"}


def _dims(x: JaggedTensor, dim: Any, name: str) -> tuple[int, ...]:
    given = dim if isinstance(dim, tuple | list) else (dim,)
    dims = tuple(place(d, x.ndim) for d in given)
    if 0 in dims and x._at not in dims:
        raise RuntimeError(
            f"{name}(): reducing along the batch dimension but not the ragged dimension is not supported for nested tensors"
        )
    if x._at in dims and 0 not in dims and len(dims) > 1:
        raise RuntimeError(
            f"{name}(): reducing along a ragged and non-batch dimension is not supported for nested tensors"
        )
    return dims


def _neutral(name: str, x: Any) -> Any:
    if name in _NEUTRAL:
        return _NEUTRAL[name]
    low = name in ("amax", "max", "argmax")
    if x.dtype.is_floating_point:
        return float("-inf") if low else float("inf")
    if x.dtype.itemsize == 1 and not x.is_signed():
        return 0 if low else 1
    bits = 8 * x.dtype.itemsize - 1
    return -(1 << bits) if low else (1 << bits) - 1


def _reduced(name: str, x: JaggedTensor, dim: Any, keepdim: bool, **given: Any) -> Any:
    """Reduce over some dims."""
    func = F[name]
    x = compact(x)
    dims, at, one = _dims(x, dim, name), x._at, not isinstance(dim, tuple | list)
    if at not in dims:
        inside = [d - 1 for d in dims]
        made = func(x._v, inside[0] if one else inside, keepdim=keepdim, **given)
        moved = 0 if keepdim else sum(d < at for d in dims)
        return _wrap(made, x, at - moved)
    if 0 in dims:
        inside = [d - 1 for d in dims if d]
        made = func(x._v, inside, keepdim=keepdim, **given)
        return made.unsqueeze(0) if keepdim else made
    if name in _SEGMENTS and x.dtype.is_floating_point:
        values = x._v if given.get("dtype") is None else x._v.to(given["dtype"])
        rows = values.movedim(at - 1, 0)
        made = F["segment_reduce"](
            rows, _SEGMENTS[name], offsets=x._pattern.offsets, axis=0, unsafe=True
        )
        return made.unsqueeze(at) if keepdim else made
    padded = to_padded_tensor(x, _neutral(name, x))
    return func(padded, at if one else [at], keepdim=keepdim, **given)


def _wrap(made: Any, x: JaggedTensor, at: int) -> Any:
    if isinstance(made, Tensor):
        return make(made, x._pattern, at)
    return type(made)(make(v, x._pattern, at) for v in made)


def _reduction(name: str, whole: bool = True) -> Callable[..., Any]:
    def fn(input: JaggedTensor, dim: Any = None, keepdim: bool = False, **given: Any) -> Any:
        if "axis" in given:
            dim = given.pop("axis")
        if dim is None or dim == ():
            if not whole and name not in ("amax", "amin"):
                raise NotImplementedError(f"{name}(): not supported for NestedTensor without dim")
            return F[name](compact(input)._v, **given)
        return _reduced(name, input, dim, keepdim, **given)

    return fn


for _name in ("sum", "mean", "prod", "amax", "amin", "any", "all", "max", "min"):
    op(_name)(_reduction(_name))
for _name in ("argmax", "argmin"):
    op(_name)(_reduction(_name, whole=False))


def _softmax(name: str, x: JaggedTensor, dim: int, dtype: Any) -> JaggedTensor:
    d = place(dim, x.ndim)
    if d == 0:
        raise RuntimeError(
            f"{name}(): not supported when reducing across the batch dimension for NestedTensor"
        )
    if d != x._at:
        return make(F[name](x._v, d - 1, dtype=dtype), x._pattern, x._at)
    if x._pattern.lengths is not None:
        raise RuntimeError(
            f"{name}(): not supported where lengths is not None if reducing across the ragged dimension for NestedTensor"
        )
    values = x._v if dtype is None else x._v.to(dtype)
    if not values.numel():
        return make(values, x._pattern, d)
    t = make(values, x._pattern, d)
    top = _reduced("amax", t.detach(), d, False)
    away = values - spread(top, t)
    total = spread(_reduced("sum", make(away.exp(), x._pattern, d), d, False), t)
    return make(away.exp() / total if name == "softmax" else away - total.log(), x._pattern, d)


@op("softmax")
def softmax(
    input: JaggedTensor, dim: Any = None, _stacklevel: int = 3, dtype: Any = None
) -> JaggedTensor:
    """exp(x) / sum(exp(x)) along a dim, within each sequence along the ragged one."""
    return _softmax("softmax", input, -1 if dim is None else dim, dtype)


@op("log_softmax")
def log_softmax(
    input: JaggedTensor, dim: Any = None, _stacklevel: int = 3, dtype: Any = None
) -> JaggedTensor:
    """The logarithm of `softmax`."""
    return _softmax("log_softmax", input, -1 if dim is None else dim, dtype)
