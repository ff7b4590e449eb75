"""Extremes and their positions: max, min, amax, amin, aminmax, argmax, argmin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import dtypes
from ..autograd import record as graph
from ..codegen.reduce import row_kinds
from . import core, return_types, writes
from .composite import at_once
from .core import Tensor
from .dims import (
    NO_DIM,
    check_flag,
    dims_of,
    names_none,
    no_complex,
    nonempty,
    one_dim,
    one_or_all,
    refuse,
)
from .nn import rowwise
from .numpy_names import numpy_names
from .reduce import sum
from .reducing import (
    Dims,
    comparable,
    pick_back,
    positioned,
    run,
    spread,
)
from .row import FUNCTIONS, public, titled
from .selection import maximum, minimum, where
from .values import check_out_dtype, into


def even_back(ctx: Any, g: Tensor) -> Tensor:
    """Return the gradient, divided evenly among equal extremes."""
    x, result, dims, keepdim = ctx.self, ctx.result, ctx.dim, ctx.keepdim
    found = spread(result, x.shape, dims, keepdim)
    hit = x == found if x.dtype.category < 2 else (x == found) | (x.isnan() & found.isnan())
    return where(hit, spread(g, x.shape, dims, keepdim) / sum(hit, dims, True), 0.0)


def index_back(ctx: Any, g: Tensor, _: Any = None) -> Tensor:
    """Put a gradient where the elements were taken from, by their saved indices; zeros elsewhere."""
    return pick_back(g, ctx.indices, ctx.shapes[0], ctx.dim, ctx.keepdim)


def deliver_pair(name: str, found: tuple[Tensor, Tensor], out: Any, input: Tensor) -> Any:
    """Return two results, or write them into a pair of `out=` tensors of exactly their dtypes."""
    if out is None:
        return found
    if core.is_tensor(out):
        raise TypeError(f"{name}(): argument 'out' must be tuple of Tensors, not Tensor")
    for value, o in writes.each(found, out):
        check_out_dtype(value.dtype, o)
    return tuple([writes.deliver(v, o, name, (input,)) for v, o in writes.each(found, out)])


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
        if dim is not None:
            raise TypeError(f"{name}() received an invalid combination of arguments")
        row = maximum if name == "max" else minimum
        return writes.deliver(row(input, other), out, row.name, (input, other))
    dt = input.dtype
    if dim is None:
        no_complex(input, f"{name}_all")
        if not input.numel():
            raise RuntimeError(NO_DIM.format(name))
        dims = tuple(range(input.ndim))
        (value,) = run(name, input, dims, comparable(dt), (("value", dt),))
        if graph.needs_grad(input):
            graph.record(
                f"{name.title()}Backward1",
                (input,),
                value,
                even_back,
                {"self": input, "result": value, "dim": dims, "keepdim": False},
            )
        return writes.deliver(value, out, name, (input,))
    if isinstance(dim, tuple | list):
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got (Tensor, tuple), but expected one of:\n * (Tensor input, *, Tensor out = None)\n * (Tensor input, Tensor other, *, Tensor out = None)\n * (Tensor input, int dim, bool keepdim = False, *, tuple of Tensors out = None)\n"
        )
    if input.dtype.is_complex:
        raise RuntimeError(f"{name}(): does not support complex input")
    if keepdim.__class__ is not bool:
        check_flag(name, "keepdim", keepdim)
    at = one_dim(name, dim, input.ndim)
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
    if graph.needs_grad(input):
        graph.record(
            f"{name.title()}Backward0",
            (input,),
            (values, indices),
            index_back,
            {"indices": indices, "dim": at, "keepdim": keepdim},
        )
    return getattr(return_types, name)(deliver_pair(name, (values, indices), out, input))


def _max_or_min(name: str, which: str) -> Any:
    @public(name)
    @numpy_names
    def extreme(
        input: Tensor,
        *args: Any,
        dim: int | None = None,
        keepdim: bool = False,
        other: Tensor | None = None,
        out: Any = None,
    ) -> Any:
        return _extreme(name, input, args, dim, keepdim, other, out)

    return titled(
        extreme,
        name,
        f"{which} element of all; or values and first positions along a dim; or the elementwise {name}imum of two tensors.",
    )


max = _max_or_min("max", "Largest")
min = _max_or_min("min", "Smallest")


def _amax(name: str, input: Tensor, dim: Dims, keepdim: bool, out: Tensor | None) -> Tensor:
    refuse(input, name)
    if keepdim.__class__ is not bool:
        check_flag(name, "keepdim", keepdim)
    kind = name[1:]
    no_complex(input, f"{kind}_values_cpu")
    dims = dims_of(name, dim, input.ndim)
    if not input.numel():
        if len(dims) == input.ndim and names_none(dim):
            raise RuntimeError(NO_DIM.format(name))
        nonempty(f"{name}()", input, dims, dim if len(dims) == 1 else None)
    (value,) = run(
        kind, input, dims, comparable(input.dtype), (("value", input.dtype),), keepdim=keepdim
    )
    if graph.needs_grad(input):
        graph.record(
            f"{name.title()}Backward0",
            (input,),
            value,
            _shared_back,
            {"self": input, "result": value, "dim": dims, "keepdim": keepdim},
        )
    if out is not None:
        names = [t.dtype.scalar_name for t in (value, out)]
        text = "Expected the dtype for input and out to match, but got {} for input's dtype and {} for out's dtype."
        check_out_dtype(value.dtype, out, text.format(*names))
    return writes.deliver(value, out, name, (input,))


def _shared(ctx: Any, g: Tensor, result: Tensor) -> Tensor:
    """Divide the gradient of an extreme among the elements equal to it; it is NaN for a NaN extreme."""
    x, dims, keepdim = ctx.self, ctx.dim, ctx.keepdim
    best, g = [spread(v, x.shape, dims, keepdim) for v in (result, g)]
    if dims and x.dtype.category == 2 and not graph.needs_grad(x, g) and rowwise.worth(x, dims):
        return rowwise.run(row_kinds.SHARED_BACK, (x, best, g), dims, x.dtype)[0]
    hit = x == best
    return hit * g / sum(hit, dims, True)


def _shared_back(ctx: Any, g: Tensor) -> Tensor:
    return _shared(ctx, g, ctx.result)


def _amax_or_amin(name: str, which: str) -> Any:
    @public(name)
    @numpy_names
    def extreme(
        input: Tensor, dim: Dims = (), keepdim: bool = False, *, out: Tensor | None = None
    ) -> Tensor:
        return _amax(name, input, dim, keepdim, out)

    return titled(
        extreme,
        name,
        f"{which} element over `dim`, one or several; equal ones share the gradient.",
    )


amax = _amax_or_amin("amax", "Largest")
amin = _amax_or_amin("amin", "Smallest")


def _aminmax_back(ctx: Any, low: Tensor | None, high: Tensor | None) -> Tensor:
    both = [_shared(ctx, g, v) for g, v in ((low, ctx.min), (high, ctx.max)) if g is not None]
    return both[0] if len(both) == 1 else both[0] + both[1]


@public()
def aminmax(
    input: Tensor,
    *,
    dim: int | None = None,
    keepdim: bool = False,
    out: Sequence[Tensor] | None = None,
) -> Any:
    """Smallest and largest element, of all or along a dim, in one pass."""
    no_complex(input, "aminmax_cpu")
    dims = one_or_all("aminmax", dim, input.ndim)
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
    if graph.needs_grad(input):
        graph.record(
            "AminmaxBackward0",
            (input,),
            (low, high),
            _aminmax_back,
            {"self": input, "min": low, "max": high, "dim": dims, "keepdim": keepdim},
        )
    return return_types.aminmax(deliver_pair("aminmax", (low, high), out, input))


@at_once
def _ends(given: Sequence[Tensor]) -> list[Tensor]:
    return [FUNCTIONS["stack"](given[0].aminmax())]


def span(x: Tensor) -> tuple[Any, Any]:
    """Return the least and the largest element, of at least one, as Python numbers; one read of the device."""
    low, high = _ends((x,))[0].tolist()
    return low, high


def _arg(name: str, input: Tensor, dim: int | None, keepdim: bool, out: Tensor | None) -> Tensor:
    refuse(input, name)
    if input.dtype.is_complex or input.dtype is dtypes.bool:
        raise RuntimeError(
            f"{name}(): does not support {'complex' if input.dtype.is_complex else 'bool'} input"
        )
    if keepdim.__class__ is not bool:
        check_flag(name, "keepdim", keepdim)
    dims = one_or_all(name, dim, input.ndim)
    if dim is None and not input.numel():
        raise IndexError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0."
        )
    nonempty(f"{name}()", input, dims)
    (index,) = run(
        name, input, dims, positioned(input.dtype), (("index", dtypes.int64),), keepdim=keepdim
    )
    return into(index, out, name, ())


def _argmax_or_argmin(name: str, which: str) -> Any:
    @public(name)
    @numpy_names
    def position(
        input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Tensor | None = None
    ) -> Tensor:
        return _arg(name, input, dim, keepdim, out)

    return titled(
        position,
        name,
        f"Position of the {which} element, the first of equals: along `dim`, or in the flattened tensor.",
    )


argmax = _argmax_or_argmin("argmax", "largest")
argmin = _argmax_or_argmin("argmin", "smallest")
