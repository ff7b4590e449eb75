"""Variance and standard deviation, alone or with the mean, in one pass."""

from __future__ import annotations

import math
import warnings
from typing import Any

from ..autograd import record as graph
from ..errors import caller_level
from . import writes
from .core import Tensor
from .dims import check_flag, dims_of, refuse
from .numpy_names import numpy_names
from .reduce import mean
from .reducing import Dims, accumulator, count, run, spread
from .row import public, titled
from .selection import where
from .slopes import slope


def _by_steps(g: Tensor, x: Tensor, average: Tensor, factor: float) -> Tensor:
    return g * (factor * (x - average))


_var_slope = slope("var_slope", "x * (w * (y - z))", _by_steps, exact=True)
_std_slope = slope(
    "std_slope",
    "where(y == 0, 0, x / (y * 2))",
    lambda g, result: where(result == 0, 0.0, g / (result * 2)),
)


def _var_back(ctx: Any, g: Tensor) -> Tensor:
    return _var_grad(ctx.self, g, ctx.dim, ctx.keepdim, ctx.correction, ctx.average)


def _var_grad(
    x: Tensor,
    g: Tensor,
    dims: tuple[int, ...],
    keepdim: bool,
    correction: float,
    average: Tensor | None = None,
) -> Tensor:
    """Return a variance's gradient. `average`: the saved mean, for a gradient that will not itself be differentiated."""
    n = count(x.shape, dims)
    factor = 2.0 / (n - correction) if n != correction else math.inf
    if not dims:
        average = x
    elif average is None or graph.needs_grad(x):
        average = mean(x, dims, True)
    else:
        average = spread(average, x.shape, dims, keepdim)
    gradient = _by_steps if x.dtype.is_complex else _var_slope
    return gradient(spread(g, x.shape, dims, keepdim), x, average, factor)


def _std_grad(
    x: Tensor,
    g: Tensor,
    result: Tensor,
    dims: tuple[int, ...],
    keepdim: bool,
    correction: float,
    average: Tensor | None = None,
) -> Tensor:
    return _var_grad(x, _std_slope(g, result), dims, keepdim, correction, average)


def _std_back(ctx: Any, g: Tensor) -> Tensor:
    return _std_grad(ctx.self, g, ctx.result, ctx.dim, ctx.keepdim, ctx.correction, ctx.average)


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


def _overload(
    name: str, args: tuple, dim: Any, unbiased: Any, keepdim: bool, correction: Any
) -> tuple[Any, bool, Any]:
    """Read (dim, unbiased, keepdim), (unbiased) or (dim, *, correction, keepdim) as dim, keepdim and correction."""
    rest = list(args)
    if rest and rest[0].__class__ is bool:
        unbiased = rest.pop(0)
    elif rest:
        dim = rest.pop(0)
        if rest:
            unbiased = rest.pop(0)
        if rest:
            keepdim = rest.pop(0)
    if rest or (unbiased is not None and correction is not None):
        raise TypeError(f"{name}() received an invalid combination of arguments")
    if keepdim.__class__ is not bool:
        check_flag(name, "keepdim", keepdim)
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    return dim, keepdim, correction


def _values(
    what: str, paired: bool, input: Tensor, dims: tuple[int, ...], keepdim: bool, dof: Any
) -> tuple[Tensor, Tensor | None]:
    """Return the var or std, and the mean if `paired` or a gradient needs it; complex variances sum those of the parts."""
    dt = input.dtype.to_real()
    if dt is input.dtype:
        outputs = [(what, dt)]
        if paired or graph.needs_grad(input):
            outputs.append(("mean", dt if paired else accumulator(dt)))
        found = run("var", input, dims, accumulator(dt), outputs, keepdim=keepdim, scale=dof)
        return found[0], found[1] if len(found) > 1 else None
    z = input.detach()
    real, imag = (
        run("var", part, dims, accumulator(dt), (("var", dt),), keepdim=keepdim, scale=dof)[0]
        for part in (z.real, z.imag)
    )
    value = real + imag
    return value.sqrt() if what == "std" else value, mean(z, dims, keepdim) if paired else None


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
    """Compute `name`: var, std, or one of them with the mean."""
    refuse(input, name)
    dim, keepdim, correction = _overload(name, args, dim, unbiased, keepdim, correction)
    if input.dtype.category < 2:
        raise RuntimeError(
            f"{name if '_mean' in name else 'std and var'} only support floating point and complex dtypes"
        )
    dims = dims_of(name, dim, input.ndim)
    what = name.split("_", maxsplit=1)[0]
    paired = name.endswith("_mean")
    dof = max(count(input.shape, dims) - correction, 0)
    if not dof or not input.numel():
        warnings.warn(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the "
            "reduction factor (input numel divided by output numel).",
            UserWarning,
            stacklevel=caller_level(),
        )
    value, average = _values(what, paired, input, dims, keepdim, dof)
    if not paired:
        if graph.needs_grad(input):
            saved = {"self": input, "dim": dims, "keepdim": keepdim, "correction": correction}
            saved["average"] = average
            if what == "std":
                graph.record("StdBackward0", (input,), value, _std_back, saved | {"result": value})
            else:
                graph.record("VarBackward0", (input,), value, _var_back, saved)
        return writes.deliver(value, out, name, (input,))
    if graph.needs_grad(input):
        saved = {
            "self": input,
            "dim": dims,
            "keepdim": keepdim,
            "correction": correction,
            "std": value if what == "std" else None,
        }
        graph.record(f"{what.title()}MeanBackward0", (input,), (value, average), _pair_back, saved)
    return value, average


def _alone(name: str, doc: str) -> Any:
    @public(name)
    @numpy_names
    def moment(
        input: Tensor,
        *args: Any,
        dim: Dims = None,
        unbiased: bool | None = None,
        keepdim: bool = False,
        correction: float | None = None,
        out: Tensor | None = None,
    ) -> Tensor:
        return _moments(name, input, args, dim, unbiased, keepdim, correction, out)

    return titled(moment, name, doc)


def _with_mean(name: str, doc: str) -> Any:
    @public(name, method=False)
    @numpy_names
    def moments(
        input: Tensor,
        *args: Any,
        dim: Dims = None,
        unbiased: bool | None = None,
        keepdim: bool = False,
        correction: float | None = None,
    ) -> tuple[Tensor, Tensor]:
        return _moments(name, input, args, dim, unbiased, keepdim, correction)

    return titled(moments, name, doc)


var = _alone(
    "var",
    "Variance over `dim` (all by default), the sum of squares divided by n - correction (1 by default).",
)
std = _alone("std", "Standard deviation over `dim` (all by default), see `var`.")
var_mean = _with_mean("var_mean", "Variance and mean over `dim` in one pass.")
std_mean = _with_mean("std_mean", "Standard deviation and mean over `dim` in one pass.")
