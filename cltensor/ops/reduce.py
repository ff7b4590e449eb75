"""Reductions: sums, means, products, truth, logsumexp. Forward and gradient side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import dtypes, layouts
from ..autograd import record as graph
from ..codegen.reduce import row_kinds
from ..dtypes import asked, dtype
from . import writes
from .composite import in_one
from .core import Tensor
from .dims import NO_DIM, check_flag, dims_of, names_none, nonempty, one_or_all, refuse
from .nn import rowwise
from .numpy_names import numpy_names
from .reducing import (
    Dims,
    accumulator,
    count,
    run,
    spread,
)
from .refusals import no_kernel, refusal
from .row import FUNCTIONS, public, titled
from .selection import where
from .slopes import slope
from .values import check_out_dtype, conj, result_dtype

_REAL_ONLY = "mean(): could not infer output dtype. {} dtype must be either a floating point or complex dtype. Got: {}"


# ------------------------------------------------------------------------------------------- sums


def summed(input: Tensor) -> dtype:
    """Return the dtype of sums and products of `input`: int64 for integers and bool, else its own."""
    return dtypes.int64 if input.dtype.category < 2 else input.dtype


def _sum_back(ctx: Any, g: Tensor) -> Tensor:
    shape = ctx.shapes[0]
    return spread(g, shape, ctx.dim, ctx.keepdim) if g.shape else g.expand(shape)


@public()
@numpy_names
def sum(
    input: Tensor,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: dtype | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Add up the elements over `dim` (all by default); integers and bool add up to int64, as bool by "or"."""
    refuse(input, "sum")
    if keepdim.__class__ is not bool:
        check_flag("sum", "keepdim", keepdim)
    dims = dims_of("sum", dim, len(input.shape))
    dt = result_dtype("sum", dtype, out, summed(input))
    kind, compute = ("max", dt) if dt is dtypes.bool else ("sum", accumulator(dt))
    (value,) = run(kind, input, dims, compute, (("value", dt),), keepdim=keepdim)
    if graph.needs_grad(input):
        name = "SumBackward0" if dim is None else "SumBackward1"
        graph.record(name, (input,), value, _sum_back, {"dim": dims, "keepdim": keepdim}, _sum_push)
    return value if out is None else writes.deliver(value, out, "sum", (input,))


def _sum_push(ctx: Any, out: Tensor, x: Tensor) -> Tensor:
    return sum(x, ctx.dim, ctx.keepdim, dtype=out.dtype)


def _mean_push(ctx: Any, out: Tensor, x: Tensor) -> Tensor:
    return mean(x, ctx.dim, ctx.keepdim, dtype=out.dtype)


def _mean_back(ctx: Any, g: Tensor) -> Tensor:
    return _sum_back(ctx, g) / count(ctx.shapes[0], ctx.dim)


@public()
@numpy_names
def mean(
    input: Tensor,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: dtype | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Average over `dim` (all by default). RuntimeError for integers without `dtype=`."""
    refuse(input, "mean")
    if keepdim.__class__ is not bool:
        check_flag("mean", "keepdim", keepdim)
    dt = asked(dtype, "mean") or input.dtype
    if dt.category < 2:
        raise RuntimeError(
            _REAL_ONLY.format("Input" if dtype is None else "Optional", dt.scalar_name)
        )
    if dtype is not None:
        check_out_dtype(dt, out)
    dims = dims_of("mean", dim, input.ndim)
    (value,) = run(
        "mean",
        input,
        dims,
        accumulator(dt),
        (("value", dt),),
        keepdim=keepdim,
        scale=count(input.shape, dims),
    )
    if graph.needs_grad(input):
        name = "MeanBackward0" if dim is None else "MeanBackward1"
        saved = {"dim": dims, "keepdim": keepdim}
        graph.record(name, (input,), value, _mean_back, saved, _mean_push)
    return writes.deliver(value, out, "mean", (input,))


def _nansum_back(ctx: Any, g: Tensor) -> Tensor:
    x = ctx.self
    return where(x.isnan(), 0.0, spread(g, x.shape, ctx.dim, ctx.keepdim))


@public()
@numpy_names
def nansum(
    input: Tensor,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: dtype | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Add up the elements over `dim`, NaN counting as zero."""
    refuse(input, "nansum")
    if input.dtype.is_complex:
        raise RuntimeError("nansum on CPU does not support complex inputs")
    if input.dtype.category < 2:
        return sum(input, dim, keepdim, dtype=dtype, out=out)
    dims = dims_of("nansum", dim, input.ndim)
    dt = result_dtype("nansum", dtype, out, input.dtype)
    if dt.category != 2:
        raise refusal("nansum", dt)
    (value,) = run("nansum", input, dims, accumulator(dt), (("value", dt),), keepdim=keepdim)
    if graph.needs_grad(input):
        graph.record(
            "NansumBackward0",
            (input,),
            value,
            _nansum_back,
            {"self": input, "dim": dims, "keepdim": keepdim},
        )
    return writes.deliver(value, out, "nansum", (input,))


@public()
@numpy_names
def nanmean(
    input: Tensor,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: dtype | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Average over `dim`, leaving NaN out."""
    if input.dtype.category < 2:
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but got {input.dtype.scalar_name}"
        )
    if dtype is not None and dtype.category < 2:
        raise RuntimeError(
            f"nanmean(): could not infer output dtype. Optional dtype must be either a floating point or complex dtype. Got: {dtype.scalar_name}"
        )
    (value,) = _mean_of_numbers((input,), dim, keepdim, dtype)
    return writes.deliver(value, out, "nanmean", (input,))


@in_one
def _mean_of_numbers(
    xs: Sequence[Tensor], dim: Dims, keepdim: bool, dtype: dtype | None
) -> list[Tensor]:
    (x,) = xs
    number = sum((~x.detach().isnan()), dim, keepdim)
    return [nansum(x, dim, keepdim, dtype=dtype) / number]


@public()
def count_nonzero(input: Tensor, dim: Dims = None) -> Tensor:
    """Count the elements that are not zero over `dim` (all by default)."""
    return _nonzero((input.detach(),), dim)[0]


@in_one
def _nonzero(xs: Sequence[Tensor], dim: Dims) -> list[Tensor]:
    return [sum(xs[0] != 0, dim)]


@public()
def hash_tensor(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    mode: int = 0,
    out: Tensor | None = None,
) -> Tensor:
    """XOR the elements, converted to float64 or int64 and read as 64-bit words, over `dim`; the result is uint64."""
    refuse(input, "hash_tensor")
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    if input.dtype.is_complex or input.dtype is dtypes.uint64:
        raise no_kernel("xor_sum_cpu", input.dtype)
    if out is not None and out.dtype is not dtypes.uint64:
        raise RuntimeError(
            f"Expected result to be of dtype uint64, but got {out.dtype.scalar_name}"
        )
    dims = dims_of("hash_tensor", dim, input.ndim)
    if not input.numel():
        if names_none(dim):
            raise RuntimeError(NO_DIM.format("hash_tensor").replace("()", "", 1))
        nonempty("hash_tensor", input, dims, dim)
    words = input.detach()
    if words.dtype.is_floating_point:
        words = words.to(dtypes.float64).view(dtypes.int64)
    (value,) = run("xor", words, dims, dtypes.int64, (("value", dtypes.int64),), keepdim=keepdim)
    return writes.deliver(value.view(dtypes.uint64), out, "hash_tensor")


def _prod_back(ctx: Any, g: Tensor) -> Tensor:
    x, dims, keepdim = ctx.self.to(g.dtype), ctx.dim, ctx.keepdim
    ctx.result  # noqa: B018  # torch's formula reads the result: this raises if the result was modified in place
    shape = x.shape
    if not len(shape):
        return g
    if graph.needs_grad(g, x) and x.numel():
        others = _product_of_others(x, dims)
        return spread(g, shape, dims, keepdim) * conj(others)
    return _prod_slope((g, x), dims, keepdim)[0]


@in_one
def _prod_slope(given: Sequence[Tensor], dims: tuple[int, ...], keepdim: bool) -> list[Tensor]:
    g, x = given
    zero = x == 0
    zeros = sum(zero, dims, True)
    # The product of all other elements: if none is zero, the total product divided by the element; if exactly one is,
    # the product of the others at that element, and 0 elsewhere; 0 if several are.
    rest = where(zero, 1.0, x)
    for d in dims:
        rest = prod(rest, d, True)
    others = where(
        zero, where(zeros == 1, rest, 0.0), where(zeros == 0, rest / where(zero, 1.0, x), 0.0)
    )
    return [spread(g, x.shape, dims, keepdim) * conj(others)]


def _product_of_others(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Return, for each element, the product of all others: of those before it times those after it, from two scans.

    Unlike dividing the product by the element, this has the right gradient where elements are zero, too.
    """
    flat, d = (x, dims[0]) if len(dims) == 1 else (x.reshape(-1), 0)
    count = flat.shape[d] - 1
    one = x.new_ones(flat.narrow(d, 0, 1).shape)
    cat, tail = FUNCTIONS["cat"], flat.narrow(d, 1, count).flip(d)
    before = cat([one, flat.narrow(d, 0, count)], d).cumprod(d)
    behind = cat([one, tail], d).cumprod(d).flip(d)
    return (before * behind).reshape(x.shape)


@public()
@numpy_names
def prod(
    input: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    dtype: dtype | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Multiply the elements over one `dim` (all by default); integers and bool give int64, as bool "and"."""
    refuse(input, "prod")
    if keepdim.__class__ is not bool:
        check_flag("prod", "keepdim", keepdim)
    dims = one_or_all("prod", dim, input.ndim)
    dt = result_dtype("prod", dtype, out, summed(input))
    kind, compute = ("min", dt) if dt is dtypes.bool else ("prod", accumulator(dt))
    (value,) = run(kind, input, dims, compute, (("value", dt),), keepdim=keepdim)
    if graph.needs_grad(input):
        name = "ProdBackward0" if dim is None else "ProdBackward1"
        saved = {"self": input, "result": value, "dim": dims, "keepdim": keepdim}
        graph.record(name, (input,), value, _prod_back, saved)
    return writes.deliver(value, out, "prod", (input,))


# ------------------------------------------------------------------------------------------- truth


def _truth(name: str, kind: str, doc: str) -> Any:
    @public(name)
    @numpy_names
    def truth(
        input: Tensor, dim: Dims = None, keepdim: bool = False, *, out: Tensor | None = None
    ) -> Tensor:
        refuse(input, name)
        if keepdim.__class__ is not bool:
            check_flag(name, "keepdim", keepdim)
        if out is not None and out.dtype not in (dtypes.bool, dtypes.uint8):
            raise RuntimeError(
                f"{name} only supports bool tensor for result, got: {out.dtype.scalar_name}"
            )
        dt = dtypes.uint8 if input.dtype is dtypes.uint8 else dtypes.bool
        dims = () if dim is not None and names_none(dim) else dims_of(name, dim, input.ndim)
        (value,) = run(kind, input, dims, dtypes.bool, (("value", dt),), keepdim=keepdim)
        return writes.deliver(value, out, name, ())

    return titled(truth, name, doc)


any = _truth("any", "max", "Whether some element is not zero, over `dim` (all by default).")
all = _truth("all", "min", "Whether every element is not zero, over `dim` (all by default).")

# ------------------------------------------------------------------------------------------- exponentials


_share = slope(
    "logsumexp_slope",
    "x * exp(y - where(z == -inf, 0, z))",
    lambda g, x, top: g * conj((x - where(top == -math.inf, 0.0, top)).exp()),
)


def _logsumexp_back(ctx: Any, g: Tensor) -> Tensor:
    x = ctx.self
    top, g = (spread(v, x.shape, ctx.dim, ctx.keepdim) for v in (ctx.result, g))
    return _share(g, x, top)


def _complex_logsumexp(x: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    if not x.numel():
        return sum(x.exp(), dims, keepdim).log()
    top = x.real.amax(dims, True)
    top = top.masked_fill(top.isinf(), 0)
    value = sum((x - top).exp(), dims, True).log() + top
    return value if keepdim else value.reshape([n for d, n in enumerate(x.shape) if d not in dims])


@public(aliases=())
@numpy_names
def logsumexp(
    input: Tensor, dim: Dims, keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Logarithm of the sum of exponentials over `dim`, without overflow."""
    refuse(input, "logsumexp")
    if dim is None:
        raise TypeError("logsumexp(): argument 'dim' must be tuple of ints, not NoneType")
    dims = dims_of("logsumexp", dim, input.ndim)
    if input.dtype.is_complex:
        value = _complex_logsumexp(input.detach(), dims, keepdim)
    else:
        dt = input.dtype if input.dtype.category == 2 else dtypes.get_default_dtype()
        if dt is input.dtype and dims and rowwise.few_from_cache(input, dims):
            _, (value,) = rowwise.run(row_kinds.LOGSUMEXP, (input,), dims, dt)
            value = rowwise.fresh(value, layouts.reduced_shape(input.shape, dims, keepdim)).to(dt)
        else:
            found = run("logsumexp", input, dims, accumulator(dt), [("value", dt)], keepdim=keepdim)
            value = found[0]
    if graph.needs_grad(input):
        graph.record(
            "LogsumexpBackward0",
            (input,),
            value,
            _logsumexp_back,
            {"self": input, "result": value, "dim": dims, "keepdim": keepdim},
        )
    return writes.deliver(value, out, "logsumexp", (input,))
