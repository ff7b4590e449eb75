"""Reductions, running sums, order and distinct values, under the standard's arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .. import dtypes
from ..ops.row import FUNCTIONS as F
from ..tensor import Tensor

__all__ = [
    "all", "any", "argmax", "argmin", "argsort", "count_nonzero", "cumulative_prod", "cumulative_sum", "max", "mean", "min", "nonzero",
    "prod", "searchsorted", "sort", "std", "sum", "unique_all", "unique_counts", "unique_inverse", "unique_values", "var",
]  # fmt: skip


def _axes(x: Tensor, axis: Any) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(x.ndim))
    return tuple(axis) if isinstance(axis, Sequence) else (axis,)


def _reduction(name: str, function: Callable[..., Any]) -> Callable[..., Tensor]:
    def reduce(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
        dims = _axes(x, axis)
        # An empty `dim` means all dims to torch, none to the standard.
        return function(x if x.ndim and dims else x.unsqueeze(0), dim=dims or (0,), keepdim=keepdims and bool(dims))  # fmt: skip

    reduce.__name__ = reduce.__qualname__ = name
    reduce.__doc__ = f"Reduce by {name} along axes, all by default."
    return reduce


max, min = _reduction("max", F["amax"]), _reduction("min", F["amin"])
mean = _reduction("mean", F["mean"])


def _truth(name: str, function: Callable[..., Any]) -> Callable[..., Tensor]:
    reduce = _reduction(name, function)

    def call(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
        return reduce(x.bool(), axis=axis, keepdims=keepdims)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = reduce.__doc__
    return call


all, any = _truth("all", F["all"]), _truth("any", F["any"])


def _summed(x: Tensor, dtype: Any) -> Tensor:
    """Return x in the dtype of its sum: that given, else int64 or uint64 for integers, as these are signed or not."""
    if dtype is None and not (x.dtype.is_floating_point or x.dtype.is_complex):
        unsigned = x.dtype.name.startswith("uint")
        dtype = dtypes.uint64 if unsigned else dtypes.int64
    return x if dtype is None else x.to(dtype)


def sum(x: Tensor, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Sum along axes, all by default."""
    return _add(_summed(x, dtype), axis=axis, keepdims=keepdims)


def prod(x: Tensor, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Multiply along axes, all by default."""
    made = _summed(x, dtype)
    for dim in sorted((d % x.ndim for d in _axes(x, axis)), reverse=True):
        made = F["prod"](made, dim, keepdims, dtype=made.dtype)
    return made if made is not x else made.clone()


def _add_up(x: Tensor, dim: Any, keepdim: bool) -> Tensor:
    return F["sum"](x, dim, keepdim, dtype=x.dtype)


_add = _reduction("sum", _add_up)


def _spread(name: str) -> Callable[..., Tensor]:
    function = F[name]

    def spread(
        x: Tensor, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False
    ) -> Tensor:
        return _reduction(name, lambda x, dim, keepdim: function(x, dim=dim, correction=correction, keepdim=keepdim))(x, axis=axis, keepdims=keepdims)  # fmt: skip

    spread.__name__ = spread.__qualname__ = name
    spread.__doc__ = f"Reduce by {name} along axes, all by default."
    return spread


var, std = _spread("var"), _spread("std")


def _first(name: str) -> Callable[..., Tensor]:
    def find(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
        return getattr(x, name)(dim=axis, keepdim=keepdims)

    find.__name__ = find.__qualname__ = name
    find.__doc__ = "Index of the first element that is the " + ("largest." if name == "argmax" else "smallest.")  # fmt: skip
    return find


argmax, argmin = _first("argmax"), _first("argmin")


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Return the indices of elements that are not zero, one array per axis. ValueError for an array without axes."""
    if not x.ndim:
        raise ValueError("nonzero of an array without axes")
    return F["nonzero"](x, as_tuple=True)


def count_nonzero(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Count what is not zero along axes, all by default."""
    return sum(x != 0, axis=axis, keepdims=keepdims)


def _running(name: str, start: int) -> Callable[..., Tensor]:
    function = F[name]

    def run(
        x: Tensor,
        /,
        *,
        axis: int | None = None,
        dtype: Any = None,
        include_initial: bool = False,
    ) -> Tensor:
        dim = 0 if axis is None else axis
        x = _summed(x, dtype)
        made = function(x, dim, dtype=x.dtype)
        if include_initial:
            shape = list(made.shape)
            shape[dim] = 1
            made = F["cat"]([made.new_full(shape, start), made], dim)
        return made

    return run


cumulative_sum, cumulative_prod = _running("cumsum", 0), _running("cumprod", 1)
for _fn, _name in ((cumulative_sum, "sum"), (cumulative_prod, "prod")):
    _fn.__name__ = _fn.__qualname__ = f"cumulative_{_name}"
    _fn.__doc__ = (
        f"Running {_name}s along an axis, begun by that of nothing with `include_initial`."
    )


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Sort along an axis."""
    return x.sort(dim=axis, descending=descending, stable=stable)[0]


def argsort(
    x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> Tensor:
    """Indices that sort along an axis."""
    return x.sort(dim=axis, descending=descending, stable=stable)[1]


def searchsorted(
    x1: Tensor, x2: Any, /, *, side: str = "left", sorter: Tensor | None = None
) -> Tensor:
    """Return the indices at which elements of x2 would be inserted in the sorted x1."""
    return F["searchsorted"](x1, x2, side=side, sorter=sorter)


class UniqueAll(NamedTuple):
    """Distinct values, the index of each one's first occurrence, the index of each element's value among them, and
    counts.
    """

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """Distinct values, and how often each occurs."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """Distinct values, and the index of each element's value among them."""

    values: Tensor
    inverse_indices: Tensor


def unique_values(x: Tensor, /) -> Tensor:
    """The distinct values."""
    return x.unique()


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The distinct values and their counts."""
    return UniqueCounts(*F["unique"](x, return_counts=True))


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The distinct values, and the index of each element's value among them."""
    return UniqueInverse(*F["unique"](x, return_inverse=True))


def unique_all(x: Tensor, /) -> UniqueAll:
    """The distinct values, the index of each one's first occurrence, the index of each element's value among them, and
    counts.
    """
    values, inverse, counts = F["unique"](x, return_inverse=True, return_counts=True)
    flat = inverse.flatten()
    places = flat.new_ones(flat.shape).cumsum(0) - 1
    first = flat.new_full((values.numel(),), x.numel()).scatter_reduce(0, flat, places, "amin")
    return UniqueAll(values, first, inverse, counts)
