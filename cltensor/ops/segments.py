"""`segment_reduce`: sums, products, means and extremes of consecutive runs, given by their lengths or offsets.

Also the way between runs' offsets and a number for each element, under the names that libraries of graphs call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .. import dtypes
from ..autograd import record as graph
from ..autograd.mode import unrecorded
from ..codegen.index import segment as family
from ..runtime import get_backend
from . import core
from .core import Tensor
from .refusals import need_float, no_kernel
from .replay import Replayed
from .row import FUNCTIONS, public
from .selection import where

_INITIAL = {
    "sum": 0.0,
    "mean": 0.0,
    "prod": 1.0,
    "max": -float("inf"),
    "min": float("inf"),
}


def _offsets(
    data: Tensor, lengths: Tensor | None, offsets: Tensor | None, axis: int, unsafe: bool
) -> Tensor:
    """Return the checked offsets of the segments: where each begins, and where the last ends."""
    given = lengths if lengths is not None else offsets
    if given is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    name = "lengths" if lengths is not None else "offsets"
    if axis != given.ndim - 1:
        raise RuntimeError(
            f"segment_reduce(): Expected axis to be the last dimension of {name} but got {axis}."
        )
    core.common_device((data, given))
    _need_indices(given, f"_segment_reduce_{name}_cpu_kernel1")
    if data.ndim <= axis or given.shape[:-1] != data.shape[:axis]:
        raise RuntimeError(
            f"segment_reduce(): Expected {name} to have data's sizes before axis {axis}, but got {name} of shape {list(given.shape)} "
            f"for data of shape {list(data.shape)}."
        )
    if given is offsets:
        return offsets.detach().to(dtypes.int64)
    n = given.detach().to(dtypes.int64)
    if not unsafe:
        if n.numel() and bool((n < 0).any()):
            raise RuntimeError("lengths contains negative value!")
        if bool((n.sum(-1) != data.shape[axis]).any()):
            raise RuntimeError(
                "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe."
            )
    return FUNCTIONS["cat"]([n.new_zeros((*n.shape[:-1], 1)), n.cumsum(-1)], -1)


@Replayed.of_memory
def _reduced(given: Sequence[Tensor], way: str) -> list[Tensor]:
    backend, (x, bounds) = get_backend(given[0].device), map(core.kernel_operand, given)
    with backend.lock:
        return [core.result(family.reduce(backend, x, bounds, way), given[0].device)]


@Replayed.of_memory
def _filled(given: Sequence[Tensor], n: int) -> list[Tensor]:
    backend, (v, bounds) = get_backend(given[0].device), map(core.kernel_operand, given)
    with backend.lock:
        return [core.result(family.spread(backend, v, bounds, n), given[0].device)]


class Segments(NamedTuple):
    """Runs along dim `axis`, of size `n`. bounds: offsets (…, runs + 1), a row per index of the dims before."""

    bounds: Tensor
    axis: int
    n: int

    def sizes(self, ndim: int) -> Tensor:
        """Return the runs' lengths, shaped to broadcast with reduced tensors of `ndim` dims."""
        size = self.bounds[..., 1:] - self.bounds[..., :-1]
        return size.reshape(*size.shape, *[1] * (ndim - self.axis - 1))

    def reduce(self, x: Tensor, way: str, initial: float) -> Tensor:
        (value,) = _reduced([x.contiguous(), self.bounds], way)
        if initial == _INITIAL[way]:
            return value
        if way in ("sum", "prod"):
            return value + initial if way == "sum" else value * initial
        start = value.new_full((), initial)
        return value.maximum(start) if way == "max" else value.minimum(start)

    def spread(self, v: Tensor) -> Tensor:
        """Give every element its segment's value, 0 outside all segments; differentiable.

        The gradient sums each segment.
        """
        if not self.bounds.shape[-1] - 1:
            shape = (*v.shape[: self.axis], self.n, *v.shape[self.axis + 1 :])
            return v.new_zeros(shape)
        with unrecorded():
            (value,) = _filled([v.detach().contiguous(), self.bounds], self.n)
        graph.record("SegmentSpreadBackward0", (v,), value, _spread_back, {"segments": self})
        return value


def _spread_back(ctx: Any, g: Tensor) -> Tensor:
    return _reduce(g, ctx.segments, "sum", 0.0)


def _back(ctx: Any, g: Tensor) -> Tensor:
    segments, way, x, result = ctx.segments, ctx.way, ctx.data, ctx.result
    if way == "sum":
        return segments.spread(g)
    if way == "mean":
        return segments.spread(g / segments.sizes(g.ndim))
    if way == "prod":
        alone = (x == 0) | x.isnan()  # what the product cannot be divided by
        count = segments.spread(_reduce(alone.to(x.dtype), segments, "sum", 0.0))
        others = segments.spread(_reduce(where(alone, 1.0, x), segments, "prod", ctx.initial))
        whole = segments.spread(result)
        share = where(alone, where(count == 1, others, whole), whole / where(alone, 1.0, x))
        return segments.spread(g) * share
    chosen = (x == segments.spread(result)) | x.isnan()
    sharing = _reduce(chosen.to(x.dtype), segments, "sum", 0.0).clamp_min(1)
    return where(chosen, segments.spread(g / sharing), 0.0)


@public(method=False, aliases=("_segment_reduce",))
def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Tensor:
    """Reduce consecutive runs along `axis` by "sum", "prod", "mean", "max" or "min", also called "amax" and "amin".

    lengths (…, S) or offsets (…, S + 1) describe the runs, the leading dims being those of `data` before `axis`. A run of length
    0 gives `initial`, or the reduction's neutral value (nan for a mean).
    """
    reduce = {"amax": "max", "amin": "min"}.get(reduce, reduce)
    if reduce not in _INITIAL:
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
        )
    axis = axis + data.ndim if axis < 0 else axis
    bounds = _offsets(data, lengths, offsets, axis, unsafe)
    need_float("_segment_reduce_cpu", data.dtype)
    return _reduce(data, Segments(bounds.contiguous(), axis, data.shape[axis]), reduce, initial)


def _reduce(data: Tensor, segments: Segments, way: str, initial: float | None) -> Tensor:
    start = _INITIAL[way] if initial is None else float(initial)
    with unrecorded():
        x = data.detach()
        value = segments.reduce(x, "sum" if way == "mean" else way, start)
        if way == "mean":
            empty, sizes = float("nan") if initial is None else start, segments.sizes(x.ndim)
            value = where(sizes == 0, empty, value / sizes)
    saved = {"data": data, "result": value, "segments": segments, "way": way, "initial": start}
    graph.record("SegmentReduceBackward0", (data,), value, _back, saved)
    return value


def _need_indices(x: Tensor, kernel: str) -> None:
    if x.dtype not in (dtypes.int32, dtypes.int64):
        raise no_kernel(kernel, x.dtype)


@public(method=False)
def _convert_indices_from_coo_to_csr(
    input: Tensor, size: int, *, out_int32: bool = False
) -> Tensor:
    """Return where each of `size` rows begins, and where the last one ends, among elements whose row numbers are given in order."""
    if input.ndim != 1:
        raise RuntimeError(
            f"Input is supposed to be a vector, but got {input.ndim} dimensional tensor."
        )
    _need_indices(input, "convert_indices_from_coo_to_csr_cpu")
    rows = FUNCTIONS["arange"](size + 1, dtype=input.dtype, device=input.device)
    return FUNCTIONS["searchsorted"](input.contiguous(), rows, out_int32=out_int32)


@public(method=False)
def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """Return the row and column of each element, below the numbers of its batch; the column first if `transpose`."""
    _need_indices(crow_indices, "convert_indices_from_csr_to_coo_cpu")
    kind = dtypes.int32 if out_int32 else dtypes.int64
    ends, batch = crow_indices[..., 1:].contiguous(), tuple(crow_indices.shape[:-1])
    at = FUNCTIONS["arange"](col_indices.shape[-1], dtype=ends.dtype, device=ends.device)
    rows = FUNCTIONS["searchsorted"](ends, at.expand(*batch, -1).contiguous(), right=True)
    lines = [rows, col_indices]
    for place, dim in enumerate(batch):
        number = FUNCTIONS["arange"](dim, device=ends.device)
        lines.insert(place, number.reshape(-1, *[1] * (len(batch) - place)).expand_as(rows))
    if transpose:
        lines[-2:] = reversed(lines[-2:])
    return FUNCTIONS["stack"]([line.to(kind).reshape(-1) for line in lines])
