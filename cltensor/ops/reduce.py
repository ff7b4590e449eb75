"""Reductions: sums, products, extremes and their positions, statistics, truth. Forward and gradient side by side."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

from .. import dtypes, layouts
from ..autograd import record as graph
from ..dtypes import dtype
from . import core, return_types
from .arithmetic import conj, maximum, minimum, where
from .core import Tensor
from .reducing import (
    Dims,
    accumulator,
    comparable,
    count,
    needs,
    numpy_names,
    pick_back,
    positioned,
    run,
    spread,
)
from .row import FUNCTIONS, public

_REAL_ONLY = "mean(): could not infer output dtype. {} dtype must be either a floating point or complex dtype. Got: {}"


def refuse(input: Any, name: str) -> None:
    """Raise torch's TypeError for an operand that is no tensor."""
    if not core.is_tensor(input):
        raise TypeError(
            f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}"
        )


def dims_of(name: str, dim: Any, ndim: int) -> tuple[int, ...]:
    """Wrap a `dim=` argument; None and () mean every dim."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    if dim.__class__ is not int and not isinstance(dim, tuple | list):
        if not hasattr(dim, "__index__"):
            raise TypeError(
                f"{name}(): argument 'dim' must be tuple of ints, not {type(dim).__name__}"
            )
        dim = dim.__index__()
    if isinstance(dim, tuple | list):
        for position, d in enumerate(dim):
            if not hasattr(d, "__index__"):
                raise TypeError(
                    f"{name}(): argument 'dim' failed to unpack the object at pos {position + 1} with error \"type must be tuple of ints,but got {type(d).__name__}\""
                )
        dim = tuple([d.__index__() for d in dim])
    return layouts.wrap_dims(dim, ndim)


def _one_dim(name: str, dim: Any, ndim: int) -> int:
    if not hasattr(dim, "__index__"):
        raise TypeError(f"{name}(): argument 'dim' must be int, not {type(dim).__name__}")
    return layouts.wrap_dim(dim.__index__(), ndim)


# ------------------------------------------------------------------------------------------- sums


def _sum_back(ctx: Any, g: Tensor) -> Tensor:
    return spread(g, ctx.shapes[0], ctx.dim, ctx.keepdim)


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
    """Add up the elements over `dim` (all by default); integers and bool add up to int64."""
    refuse(input, "sum")
    dims = dims_of("sum", dim, input.ndim)
    dt = dtype or (dtypes.int64 if input.dtype.category < 2 else input.dtype)
    (value,) = run("sum", input, dims, accumulator(dt), (("value", dt),), keepdim=keepdim)
    if needs(input):
        name = "SumBackward0" if dim is None else "SumBackward1"
        graph.record(name, (input,), value, _sum_back, {"dim": dims, "keepdim": keepdim})
    return core.deliver(value, out, "sum", (input,))


def _mean_back(ctx: Any, g: Tensor) -> Tensor:
    shape = ctx.shapes[0]
    return spread(g, shape, ctx.dim, ctx.keepdim) / count(shape, ctx.dim)


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
    dt = dtype or input.dtype
    if dt.category < 2:
        raise RuntimeError(
            _REAL_ONLY.format("Input" if dtype is None else "Optional", dt.scalar_name)
        )
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
    if needs(input):
        name = "MeanBackward0" if dim is None else "MeanBackward1"
        graph.record(name, (input,), value, _mean_back, {"dim": dims, "keepdim": keepdim})
    return core.deliver(value, out, "mean", (input,))


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
    if input.dtype.category < 2:
        return sum(input, dim, keepdim, dtype=dtype, out=out)
    x = input.detach()
    value = sum(where(x.isnan(), 0.0, x), dim, keepdim, dtype=dtype)
    if needs(input):
        graph.record(
            "NansumBackward0",
            (input,),
            value,
            _nansum_back,
            {"self": input, "dim": dims_of("nansum", dim, input.ndim), "keepdim": keepdim},
        )
    return core.deliver(value, out, "nansum", (input,))


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
    number = sum((~input.detach().isnan()), dim, keepdim)
    return core.deliver(nansum(input, dim, keepdim, dtype=dtype) / number, out, "nanmean", (input,))


@public()
def count_nonzero(input: Tensor, dim: Dims = None) -> Tensor:
    """Count the elements that are not zero over `dim` (all by default)."""
    return sum(input.detach() != 0, dim)


@public()
def trace(input: Tensor) -> Tensor:
    """Add up the main diagonal of a matrix."""
    if input.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input.ndim}")
    value = sum(input.detach().diagonal())
    if needs(input):
        graph.record("TraceBackward0", (input,), value, _trace_back)
    return value


def _trace_back(ctx: Any, g: Tensor) -> Tensor:
    from .reducing import positions

    rows, columns = ctx.shapes[0]
    return where(positions(rows, 0, 2, g.device) == positions(columns, 1, 2, g.device), g, 0.0)


def _prod_back(ctx: Any, g: Tensor) -> Tensor:
    x, dims, keepdim = ctx.self, ctx.dim, ctx.keepdim
    shape = x.shape
    if not len(shape):
        return g
    if graph.needs_grad(g, x) and x.numel():
        others = _product_of_others(x, dims)
        return spread(g, shape, dims, keepdim) * conj(others)
    zero = x == 0
    zeros = sum(zero, dims, True)
    # The product of the others: by division where no element is zero, of all but it where one is.
    rest = where(zero, 1.0, x)
    for d in dims:
        rest = prod(rest, d, True)
    others = where(
        zero, where(zeros == 1, rest, 0.0), where(zeros == 0, rest / where(zero, 1.0, x), 0.0)
    )
    return spread(g, shape, dims, keepdim) * conj(others)


def _product_of_others(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    """What is before each element times what is behind it: two scans, whose own gradient holds where elements are zero, too."""
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
    """Multiply the elements over one `dim` (all by default); integers and bool give int64."""
    refuse(input, "prod")
    if dim is None:
        dims = tuple(range(input.ndim))
    else:
        dims = (_one_dim("prod", dim, input.ndim),)[: input.ndim]
    dt = dtype or (dtypes.int64 if input.dtype.category < 2 else input.dtype)
    (value,) = run("prod", input, dims, accumulator(dt), (("value", dt),), keepdim=keepdim)
    if needs(input):
        name = "ProdBackward0" if dim is None else "ProdBackward1"
        graph.record(
            name, (input,), value, _prod_back, {"self": input, "dim": dims, "keepdim": keepdim}
        )
    return core.deliver(value, out, "prod", (input,))


# ------------------------------------------------------------------------------------------- extremes


def _even_back(ctx: Any, g: Tensor) -> Tensor:
    """Share the gradient between equal extremes."""
    x, result, dims, keepdim = ctx.self, ctx.result, ctx.dim, ctx.keepdim
    found = spread(result, x.shape, dims, keepdim)
    hit = x == found if x.dtype.category < 2 else (x == found) | (x.isnan() & found.isnan())
    return where(hit, spread(g, x.shape, dims, keepdim) / sum(hit, dims, True), 0.0)


def _index_back(ctx: Any, g: Tensor, _: Any = None) -> Tensor:
    return pick_back(g, ctx.indices, ctx.shapes[0], ctx.dim, ctx.keepdim)


def nonempty(name: str, input: Tensor, dims: Sequence[int]) -> None:
    """Raise torch's IndexError for a reduction without identity over nothing."""
    for d in dims:
        if input.shape[d] == 0:
            raise IndexError(f"{name}: Expected reduction dim {d} to have non-zero size.")


_NO_DIM = "{}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument."


def _no_complex(input: Tensor, kernel: str) -> None:
    if input.dtype.is_complex:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{input.dtype.scalar_name}'")


def _extreme(
    name: str, input: Tensor, args: tuple, dim: Any, keepdim: bool, other: Any, out: Any
) -> Any:
    refuse(input, name)
    if args:
        if core.is_tensor(args[0]):
            other, args = args[0], args[1:]
        else:
            dim, args = args[0], args[1:]
            if args:
                keepdim, args = args[0], args[1:]
        if args:
            raise TypeError(f"{name}() received an invalid combination of arguments")
    if other is not None:
        return (
            (maximum if name == "max" else minimum)(input, other)
            if out is None
            else core.deliver(
                (maximum if name == "max" else minimum)(input, other), out, name, (input, other)
            )
        )
    dt = input.dtype
    if dim is None:
        _no_complex(input, f"{name}_all")
        if not input.numel():
            raise RuntimeError(_NO_DIM.format(name))
        dims = tuple(range(input.ndim))
        (value,) = run(name, input, dims, comparable(dt), (("value", dt),))
        if needs(input):
            graph.record(
                f"{name.title()}Backward1",
                (input,),
                value,
                _even_back,
                {"self": input, "result": value, "dim": dims, "keepdim": False},
            )
        return core.deliver(value, out, name, (input,))
    if isinstance(dim, tuple | list):
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got (Tensor, tuple), but expected one of:\n * (Tensor input, *, Tensor out = None)\n * (Tensor input, Tensor other, *, Tensor out = None)\n * (Tensor input, int dim, bool keepdim = False, *, tuple of Tensors out = None)\n"
        )
    _no_complex(input, f"{name}_cpu")
    at = _one_dim(name, dim, input.ndim)
    dims = (at,) if input.ndim else ()
    nonempty(f"{name}()", input, dims)
    values, indices = run(
        f"arg{name}",
        input,
        dims,
        positioned(dt),
        (("value", dt), ("index", dtypes.int64)),
        keepdim=keepdim,
    )
    if needs(input):
        graph.record(
            f"{name.title()}Backward0",
            (input,),
            (values, indices),
            _index_back,
            {"indices": indices, "dim": at, "keepdim": keepdim},
        )
    if out is not None:
        values, indices = (
            core.deliver(values, out[0], name, (input,)),
            core.deliver(indices, out[1], name, (input,)),
        )
    return getattr(return_types, name)((values, indices))


@public()
@numpy_names
def max(
    input: Tensor,
    *args: Any,
    dim: int | None = None,
    keepdim: bool = False,
    other: Tensor | None = None,
    out: Any = None,
) -> Any:
    """Largest element of all; or values and first positions along a dim; or the elementwise maximum of two tensors."""
    return _extreme("max", input, args, dim, keepdim, other, out)


@public()
@numpy_names
def min(
    input: Tensor,
    *args: Any,
    dim: int | None = None,
    keepdim: bool = False,
    other: Tensor | None = None,
    out: Any = None,
) -> Any:
    """Smallest element of all; or values and first positions along a dim; or the elementwise minimum of two tensors."""
    return _extreme("min", input, args, dim, keepdim, other, out)


def _amax(name: str, input: Tensor, dim: Dims, keepdim: bool, out: Tensor | None) -> Tensor:
    refuse(input, name)
    kind = name[1:]
    _no_complex(input, f"{kind}_values_cpu")
    dims = dims_of(name, dim, input.ndim)
    if not input.numel():
        if len(dims) == input.ndim and (dim is None or dim == ()):
            raise RuntimeError(_NO_DIM.format(name))
        nonempty(f"{name}()", input, dims)
    (value,) = run(
        kind, input, dims, comparable(input.dtype), (("value", input.dtype),), keepdim=keepdim
    )
    if needs(input):
        graph.record(
            f"{name.title()}Backward0",
            (input,),
            value,
            _shared_back,
            {"self": input, "result": value, "dim": dims, "keepdim": keepdim},
        )
    return core.deliver(value, out, name, (input,))


def _shared_back(ctx: Any, g: Tensor) -> Tensor:
    """Share the gradient between equal extremes; a NaN extreme makes it NaN."""
    x, dims, keepdim = ctx.self, ctx.dim, ctx.keepdim
    hit = x == spread(ctx.result, x.shape, dims, keepdim)
    return hit * spread(g, x.shape, dims, keepdim) / sum(hit, dims, True)


@public()
@numpy_names
def amax(
    input: Tensor, dim: Dims = (), keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Largest element over `dim`, one or several; equal ones share the gradient."""
    return _amax("amax", input, dim, keepdim, out)


@public()
@numpy_names
def amin(
    input: Tensor, dim: Dims = (), keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Smallest element over `dim`, one or several; equal ones share the gradient."""
    return _amax("amin", input, dim, keepdim, out)


def _aminmax_back(ctx: Any, low: Tensor | None, high: Tensor | None) -> Tensor:
    x, dims = ctx.self, ctx.dim
    total: Any = None
    for g, result in ((low, ctx.min), (high, ctx.max)):
        if g is not None:
            hit = x == spread(result, x.shape, dims, ctx.keepdim)
            part = where(hit, spread(g, x.shape, dims, ctx.keepdim) / sum(hit, dims, True), 0.0)
            total = part if total is None else total + part
    return total


@public()
def aminmax(
    input: Tensor, *, dim: int | None = None, keepdim: bool = False, out: Any = None
) -> Any:
    """Smallest and largest element, of all or along a dim, in one pass."""
    _no_complex(input, "aminmax_cpu")
    if dim is None:
        dims = tuple(range(input.ndim))
    else:
        dims = (_one_dim("aminmax", dim, input.ndim),)[: input.ndim]
    if not input.numel():
        if dim is None:
            raise RuntimeError(
                "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
            )
        nonempty("aminmax", input, dims)
    dt = input.dtype
    low, high = run(
        "aminmax", input, dims, comparable(dt), (("min", dt), ("max", dt)), keepdim=keepdim
    )
    if needs(input):
        graph.record(
            "AminmaxBackward0",
            (input,),
            (low, high),
            _aminmax_back,
            {"self": input, "min": low, "max": high, "dim": dims, "keepdim": keepdim},
        )
    if out is not None:
        for o in out:
            if o.dtype is not dt:
                raise RuntimeError(
                    f"Expected out tensor to have dtype {dtypes.C_NAMES[dt.name]}, but got {dtypes.C_NAMES[o.dtype.name]} instead"
                )
        low, high = (
            core.deliver(low, out[0], "aminmax", (input,)),
            core.deliver(high, out[1], "aminmax", (input,)),
        )
    return return_types.aminmax((low, high))


def _arg(name: str, input: Tensor, dim: int | None, keepdim: bool, out: Tensor | None) -> Tensor:
    refuse(input, name)
    if input.dtype.is_complex or input.dtype is dtypes.bool:
        raise RuntimeError(
            f"{name}(): does not support {'complex' if input.dtype.is_complex else 'bool'} input"
        )
    if dim is None:
        dims = tuple(range(input.ndim))
    else:
        dims = (_one_dim(name, dim, input.ndim),)[: input.ndim]
    if dim is None and not input.numel():
        raise IndexError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0."
        )
    nonempty(f"{name}()", input, dims)
    (index,) = run(
        name, input, dims, positioned(input.dtype), (("index", dtypes.int64),), keepdim=keepdim
    )
    return core.deliver(index, out, name, ())


@public()
@numpy_names
def argmax(
    input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Position of the largest element, the first of equals: along `dim`, or in the flattened tensor."""
    return _arg("argmax", input, dim, keepdim, out)


@public()
@numpy_names
def argmin(
    input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Position of the smallest element, the first of equals: along `dim`, or in the flattened tensor."""
    return _arg("argmin", input, dim, keepdim, out)


# ------------------------------------------------------------------------------------------- truth


def _truth(
    name: str, kind: str, input: Tensor, dim: Dims, keepdim: bool, out: Tensor | None
) -> Tensor:
    refuse(input, name)
    dt = dtypes.uint8 if input.dtype is dtypes.uint8 else dtypes.bool
    dims = () if dim == () else dims_of(name, dim, input.ndim)
    (value,) = run(kind, input, dims, dtypes.bool, (("value", dt),), keepdim=keepdim)
    return core.deliver(value, out, name, ())


@public()
@numpy_names
def any(
    input: Tensor, dim: Dims = None, keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Whether some element is not zero, over `dim` (all by default)."""
    return _truth("any", "max", input, dim, keepdim, out)


@public()
@numpy_names
def all(
    input: Tensor, dim: Dims = None, keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Whether every element is not zero, over `dim` (all by default)."""
    return _truth("all", "min", input, dim, keepdim, out)


# ------------------------------------------------------------------------------------------- statistics


def _var_back(ctx: Any, g: Tensor) -> Tensor:
    return _var_grad(ctx.self, g, ctx.dim, ctx.keepdim, ctx.correction)


def _var_grad(
    x: Tensor, g: Tensor, dims: tuple[int, ...], keepdim: bool, correction: float
) -> Tensor:
    n = count(x.shape, dims)
    factor = 2.0 / (n - correction) if n != correction else math.inf
    return spread(g, x.shape, dims, keepdim) * (
        factor * (x - mean(x, dims, True) if dims else x - x)
    )


def _std_grad(
    x: Tensor, g: Tensor, result: Tensor, dims: tuple[int, ...], keepdim: bool, correction: float
) -> Tensor:
    return _var_grad(x, where(result == 0, 0.0, g / (result * 2)), dims, keepdim, correction)


def _std_back(ctx: Any, g: Tensor) -> Tensor:
    return _std_grad(ctx.self, g, ctx.result, ctx.dim, ctx.keepdim, ctx.correction)


def _pair_back(ctx: Any, g: Tensor | None, gm: Tensor | None) -> Tensor:
    x, dims, keepdim = ctx.self, ctx.dim, ctx.keepdim
    total: Any = None
    if g is not None:
        total = (
            _var_grad(x, g, dims, keepdim, ctx.correction)
            if ctx.std is None
            else _std_grad(x, g, ctx.std, dims, keepdim, ctx.correction)
        )
    if gm is not None:
        part = spread(gm, x.shape, dims, keepdim) / count(x.shape, dims)
        total = part if total is None else total + part
    return total


def _moments(
    name: str,
    input: Tensor,
    args: tuple,
    dim: Any,
    unbiased: Any,
    keepdim: bool,
    correction: Any,
    out: Any = None,
) -> Any:
    """Parse the overloads (dim, unbiased, keepdim), (unbiased) and (dim, *, correction, keepdim), then compute."""
    refuse(input, name)
    args_ = list(args)
    if args_ and args_[0].__class__ is bool:
        unbiased = args_.pop(0)
    elif args_:
        dim = args_.pop(0)
        if args_:
            unbiased = args_.pop(0)
        if args_:
            keepdim = args_.pop(0)
    if args_ or (unbiased is not None and correction is not None):
        raise TypeError(f"{name}() received an invalid combination of arguments")
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    if input.dtype.category < 2:
        raise RuntimeError(
            f"{name.replace('_mean', '')} and {'std' if name.startswith('var') else 'var'} only support floating point and complex dtypes"
            if "_mean" in name
            else "std and var only support floating point and complex dtypes"
        )
    dims = dims_of(name, dim, input.ndim)
    what = name.split("_", maxsplit=1)[0]
    paired = name.endswith("_mean")
    dt = input.dtype.to_real()
    n = count(input.shape, dims)
    dof = builtins.max(n - correction, 0)
    if dt is not input.dtype:
        z = input.detach()
        parts = [
            run("var", part, dims, accumulator(dt), (("var", dt),), keepdim=keepdim, scale=dof)[0]
            for part in (z.real, z.imag)
        ]
        value = parts[0] + parts[1]
        value = value.sqrt() if what == "std" else value
        average = mean(z, dims, keepdim) if paired else None
    else:
        outputs = ((what, dt), ("mean", dt)) if paired else ((what, dt),)
        found = run("var", input, dims, accumulator(dt), outputs, keepdim=keepdim, scale=dof)
        value, average = found[0], found[-1]
    if not paired:
        if needs(input):
            saved = {"self": input, "dim": dims, "keepdim": keepdim, "correction": correction}
            if what == "std":
                graph.record("StdBackward0", (input,), value, _std_back, saved | {"result": value})
            else:
                graph.record("VarBackward0", (input,), value, _var_back, saved)
        return core.deliver(value, out, name, (input,))
    if needs(input):
        saved = {
            "self": input,
            "dim": dims,
            "keepdim": keepdim,
            "correction": correction,
            "std": value if what == "std" else None,
        }
        graph.record(f"{what.title()}MeanBackward0", (input,), (value, average), _pair_back, saved)
    return value, average


@public()
@numpy_names
def var(
    input: Tensor,
    *args: Any,
    dim: Dims = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    correction: float | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Variance over `dim` (all by default), the sum of squares divided by n - correction (1 by default)."""
    return _moments("var", input, args, dim, unbiased, keepdim, correction, out)


@public()
@numpy_names
def std(
    input: Tensor,
    *args: Any,
    dim: Dims = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    correction: float | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Standard deviation over `dim` (all by default), see `var`."""
    return _moments("std", input, args, dim, unbiased, keepdim, correction, out)


@public(method=False)
@numpy_names
def var_mean(
    input: Tensor,
    *args: Any,
    dim: Dims = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Variance and mean over `dim` in one pass."""
    return _moments("var_mean", input, args, dim, unbiased, keepdim, correction)


@public(method=False)
@numpy_names
def std_mean(
    input: Tensor,
    *args: Any,
    dim: Dims = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Standard deviation and mean over `dim` in one pass."""
    return _moments("std_mean", input, args, dim, unbiased, keepdim, correction)


def _logsumexp_back(ctx: Any, g: Tensor) -> Tensor:
    x, result = ctx.self, ctx.result
    top = spread(result, x.shape, ctx.dim, ctx.keepdim)
    share = (x - where(top == -math.inf, 0.0, top)).exp()
    return spread(g, x.shape, ctx.dim, ctx.keepdim) * conj(share)


def _complex_logsumexp(x: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    if not x.numel():
        return sum(x.exp(), dims, keepdim).log()
    top = _amax("amax", x.real, dims, True, None)
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
    dims = dims_of("logsumexp", dim, input.ndim)
    if input.dtype.is_complex:
        value = _complex_logsumexp(input.detach(), dims, keepdim)
    else:
        dt = input.dtype if input.dtype.category == 2 else dtypes.get_default_dtype()
        (value,) = run("logsumexp", input, dims, accumulator(dt), (("value", dt),), keepdim=keepdim)
    if needs(input):
        graph.record(
            "LogsumexpBackward0",
            (input,),
            value,
            _logsumexp_back,
            {"self": input, "result": value, "dim": dims, "keepdim": keepdim},
        )
    return core.deliver(value, out, "logsumexp", (input,))
