"""Sorting and what follows from order: the largest k, medians, modes, k-th values; gradients go back by position."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .. import dtypes
from ..autograd import record as graph
from ..codegen.order import sort as family
from ..memory_format import contiguous_format
from ..runtime import get_backend
from . import core, formats, return_types, writes
from .core import Tensor
from .dims import nonempty, one_dim, refuse, whole
from .extremes import deliver_pair, even_back, index_back
from .refusals import no_kernel
from .replay import Replayed
from .row import FUNCTIONS, public
from .values import check_out_dtype


def _run(fn: Callable, x: Tensor, *args: Any) -> list[Tensor]:
    return _sorted((x,), fn, *args)


@Replayed.of_memory
def _sorted(xs: Sequence[Tensor], fn: Callable, *args: Any) -> list[Tensor]:
    (x,) = xs
    backend = get_backend(x.device)
    with backend.lock:
        found = fn(backend, core.kernel_operand(x), *args)
    return [core.result(op, x.device) for op in found]


def _of_equals(x: Tensor, dim: int) -> list[Tensor]:
    """Return values and positions of a sort along an expanded `dim`: all elements are equal, so they stay in place."""
    n = x.shape[dim]
    places = FUNCTIONS["arange"](n, device=x.device).view(n, *(1,) * (x.ndim - 1 - dim))
    every = (x.detach(), places.expand(x.shape))
    return [v.clone(memory_format=contiguous_format) for v in every]


def _scatter_back(ctx: Any, g: Tensor, _: Any = None) -> Tensor:
    shape = ctx.shapes[0]
    return g.new_zeros(shape).scatter_(ctx.dim, ctx.indices, g) if len(shape) else g.reshape(())


_SAME = "Expected tensor for 'values' to have the same type as tensor for argument #2 'self'; but type torch.{got}Tensor does not equal torch.{made}Tensor"
_LONG = "Expected tensor for argument #1 'indices' to have scalar type Long; but got torch.{got}Tensor instead"
_WHILE = " (while checking arguments for median)"
_OF_MODE = "expected scalar type '{made}' but got '{got}' for "
_OTHER_DTYPE = {  # what torch says of `out=` tensors for values and indices
    "median": (_SAME + _WHILE, _LONG + _WHILE),
    "nanmedian": (_SAME + _WHILE, _LONG + _WHILE),
    "mode": (_OF_MODE + "values output", _OF_MODE + "indices output"),
    "kthvalue": (
        "output values must be of same type as input",
        "output indices must be of scalar type Long",
    ),
}


def _deliver(name: str, values: Tensor, indices: Tensor, out: Any, inputs: tuple) -> Any:
    if name in ("sort", "topk"):
        values, indices = deliver_pair(name, (values, indices), out, inputs[0])
    elif out is not None:
        if core.is_tensor(out):
            raise TypeError(f"{name}(): argument 'out' must be tuple of Tensors, not Tensor")
        pairs = writes.each((values, indices), out)
        for (made, given), text in zip(pairs, _OTHER_DTYPE[name], strict=True):
            names = {"made": made.dtype.scalar_name, "got": given.dtype.scalar_name}
            check_out_dtype(made.dtype, given, text.format(**names))
        apart = name == "kthvalue"
        values = writes.deliver(values, out[0], name, inputs, apart=apart)
        indices = writes.deliver(indices, out[1], name, inputs, apart=apart)
    return getattr(return_types, name)((values, indices))


@public()
def sort(
    input: Tensor,
    dim: int = -1,
    descending: bool = False,
    stable: bool | None = None,
    *,
    out: Sequence[Tensor] | None = None,
) -> Any:
    """Values in order along `dim`, equal ones in their old order, and their positions; NaN counts as the largest."""
    refuse(input, "sort")
    if input.dtype.is_complex:
        raise RuntimeError(" Sort does not support complex dtypes on CPU")
    at = one_dim("sort", dim, input.ndim)
    to = formats.strides_like("sort", input, None)
    equal = input.ndim and input.shape[at] > 1 and not input.stride(at)
    made = _of_equals(input, at) if equal else _run(family.sort, input, at, bool(descending))
    values, indices = (formats.settled(v, to) for v in made)
    if graph.needs_grad(input):
        graph.record(
            "SortBackward0" if stable is None else "SortBackward1",
            (input,),
            (values, indices),
            _scatter_back,
            {"indices": indices, "dim": at},
        )
    return _deliver("sort", values, indices, out, (input,))


@public()
def argsort(
    input: Tensor, dim: int = -1, descending: bool = False, stable: bool | None = None
) -> Tensor:
    """Positions (int64) that put `input` in order along `dim`."""
    return sort(input.detach(), dim, descending)[1]


@public()
def msort(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Values in order along the first dim."""
    return writes.deliver(sort(input, 0)[0], out, "msort", (input,))


@public()
def topk(
    input: Tensor,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,
    *,
    out: Sequence[Tensor] | None = None,
) -> Any:
    """The `k` largest (or smallest) elements along `dim` in order, and their positions."""
    refuse(input, "topk")
    if input.dtype.is_complex or input.dtype is dtypes.bool:
        kind = (
            " topk does not support complex"
            if input.dtype.is_complex
            else "topk does not support bool"
        )
        raise RuntimeError(f"{kind} dtypes on CPU")
    at = one_dim("topk", dim, input.ndim)
    values, indices = _run(family.topk, input, whole("topk", "k", k), at, bool(largest))
    if graph.needs_grad(input):
        graph.record(
            "TopkBackward0",
            (input,),
            (values, indices),
            _scatter_back,
            {"indices": indices, "dim": at},
        )
    return _deliver("topk", values, indices, out, (input,))


def _select(
    name: str, input: Tensor, dim: int, keepdim: bool, out: Any, fn: Callable, *args: Any, node: str
) -> Any:
    at = one_dim(name, dim, input.ndim)
    nonempty(f"{name.removeprefix('nan')}()", input, (at,) if input.ndim else ())
    if (input.dtype is dtypes.bool and name != "mode") or input.dtype.is_complex:
        raise no_kernel("median_out" if "median" in name else name + "_cpu", input.dtype)
    values, indices = (
        _run(fn, input, *args)
        if input.ndim
        else (input.detach().clone(), input.detach().new_zeros((), dtype=dtypes.int64))
    )
    if keepdim and input.ndim:
        values, indices = values.unsqueeze(at), indices.unsqueeze(at)
        values._view = indices._view = None
    if graph.needs_grad(input):
        graph.record(
            node,
            (input,),
            (values, indices),
            index_back,
            {"indices": indices, "dim": at, "keepdim": keepdim},
        )
    return _deliver(name, values, indices, out, (input,))


def _median(name: str, input: Tensor, dim: int | None, keepdim: bool, out: Any) -> Any:
    refuse(input, name)
    skip = name == "nanmedian"
    if dim is not None:
        at = one_dim(name, dim, input.ndim)
        return _select(
            name, input, at, keepdim, out, family.median, at, skip, node=f"{name.title()}Backward1"
        )
    if input.dtype is dtypes.bool or input.dtype.is_complex:
        raise no_kernel("median_cpu", input.dtype)
    flat = input.detach().reshape(-1)
    value = (
        _run(family.median, flat, 0, skip)[0]
        if flat.numel()
        else flat.new_full((), math.nan if flat.dtype.category == 2 else -(2**63))
    )
    if graph.needs_grad(input):
        saved = {"self": input, "result": value, "dim": tuple(range(input.ndim)), "keepdim": False}
        graph.record(f"{name.title()}Backward0", (input,), value, even_back, saved)
    return writes.deliver(value, out, name, (input,))


@public()
def median(
    input: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    out: Sequence[Tensor] | None = None,
) -> Any:
    """The lower median: of all elements, or along `dim` with its position; NaN if there is one."""
    return _median("median", input, dim, keepdim, out)


@public()
def nanmedian(
    input: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    out: Sequence[Tensor] | None = None,
) -> Any:
    """The lower median of what is not NaN: of all elements, or along `dim` with its position."""
    return _median("nanmedian", input, dim, keepdim, out)


@public()
def mode(
    input: Tensor, dim: int = -1, keepdim: bool = False, *, out: Sequence[Tensor] | None = None
) -> Any:
    """The most frequent value along `dim`, the smallest of equally frequent ones, and a position of it."""
    refuse(input, "mode")
    at = one_dim("mode", dim, input.ndim)
    return _select("mode", input, at, keepdim, out, family.mode, at, node="ModeBackward0")


@public()
def kthvalue(
    input: Tensor,
    k: int,
    dim: int = -1,
    keepdim: bool = False,
    *,
    out: Sequence[Tensor] | None = None,
) -> Any:
    """The `k`-th smallest value along `dim`, counted from 1, and its position."""
    refuse(input, "kthvalue")
    at, k = one_dim("kthvalue", dim, input.ndim), whole("kthvalue", "k", k)
    nonempty("kthvalue()", input, (at,) if input.ndim else ())
    if not 1 <= k <= (input.shape[at] if input.ndim else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {at}")
    return _select(
        "kthvalue", input, at, keepdim, out, family.kthvalue, k, at, node="KthvalueBackward0"
    )
