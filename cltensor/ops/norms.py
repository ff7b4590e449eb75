"""Vector norms and distances: powers before a reduction and a root after it, all fused into its kernels.

The 1- and 2-norm of real numbers are reductions of their own: one launch, and replayed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import dtypes
from ..autograd import record as graph
from ..dtypes import asked, dtype, promote_types
from .composite import in_one
from .core import Number, Tensor
from .dims import dims_of, refuse
from .extremes import amax, amin
from .operands import check_tensors
from .reduce import sum
from .reducing import Dims, accumulator, run, spread
from .row import Row, public
from .selection import where
from .values import into, number

_KINDS = {1.0: "norm1", 2.0: "norm2"}


def _value(x: Tensor, p: float, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """Return the norm of a tensor over `dims`, without history; 16-bit floats are accumulated in float32."""
    if p in _KINDS and x.ndim and not x.dtype.is_complex:
        return run(
            _KINDS[p], x, dims, accumulator(x.dtype), (("value", x.dtype),), keepdim=keepdim
        )[0]
    return _in_steps((x,), p, dims, keepdim)[0]


@in_one
def _in_steps(xs: Sequence[Tensor], p: float, dims: tuple[int, ...], keepdim: bool) -> list[Tensor]:
    (x,) = xs
    return [_by_powers(x, p, dims, keepdim)]


def _by_powers(x: Tensor, p: float, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """Compute what `_value` returns by ops, one after the other."""
    if x.dtype.category == 2 and x.dtype.itemsize == 2:
        return _value(x.to(dtypes.float32), p, dims, keepdim).to(x.dtype)
    if p == 0:
        return sum(x != 0, dims or None, keepdim).to(x.dtype.to_real())
    x = x.abs()
    if p in _KINDS and x.ndim:
        return _value(x, p, dims, keepdim)
    if not x.ndim:
        return x
    if p == math.inf:
        return amax(x, dims, keepdim)
    if p == -math.inf:
        return amin(x, dims, keepdim)
    return sum(x**p, dims, keepdim) ** (1.0 / p)


def _back(ctx: Any, g: Tensor) -> Tensor | None:
    x, dims = ctx.self, ctx.dim
    if ctx.ord == 0:
        return None
    return gradient(
        x,
        spread(g, x.shape, dims, ctx.keepdim),
        spread(ctx.result, x.shape, dims, ctx.keepdim),
        ctx.ord,
        dims,
    )


_BY_TWO = Row("norm_back", {"f": "where(z == 0, 0, x * (y / z))"}, args=("input", "grad", "norm"), public=False)  # fmt: skip


def gradient(x: Tensor, g: Tensor, n: Tensor, p: float, dims: tuple[int, ...]) -> Tensor:
    """Return the gradient with respect to `x` of its p-norm `n` over `dims`, given the norm's gradient `g`."""
    if p == 0:
        return x * 0
    if p == 2 and not x.dtype.is_complex and not graph.differentiating():
        return _BY_TWO(x, g, n)
    if p == 2:
        # Without 0 / 0, also in its derivative.
        return where(n == 0, 0.0, x * (g / where(n == 0, 1.0, n)))
    sign, size = x.sgn() if x.dtype.is_complex else x.sign(), x.abs()
    if p == 1:
        return g * sign
    if math.isinf(p):
        hit = (size == n) | (size.isnan() & n.isnan())
        return where(hit, sign * (g / sum(hit, dims or None, True)), 0.0)
    if p < 2:
        return where(x == 0, 0.0, sign * size ** (p - 1) * g / where(n == 0, 1.0, n) ** (p - 1))
    return where(n == 0, 0.0, sign * size ** (p - 1) * g / where(n == 0, 1.0, n) ** (p - 1))


def check_wider(name: str, given: dtype, wanted: dtype) -> None:
    """Raise RuntimeError unless every number of the dtype `given` is one of `wanted`, and both are real or both complex."""
    if wanted.category < 2:
        raise RuntimeError(
            f"{name}: dtype should be floating point or complex, but got {wanted.scalar_name}"
        )
    if wanted.is_complex is not given.is_complex:
        kind = "complex" if given.is_complex else "real"
        raise RuntimeError(
            f"{name}: dtype should be {kind} for {kind} inputs, but got {wanted.scalar_name}"
        )
    if promote_types(given, wanted) is not wanted:
        raise RuntimeError(
            f"{name}: the dtype of the input ({given.scalar_name}) should be convertible without narrowing "
            f"to the specified dtype ({wanted.scalar_name})"
        )


def vector_norm(
    x: Tensor,
    ord: float = 2,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: dtype | None = None,
    out: Tensor | None = None,
    node: str = "LinalgVectorNormBackward0",
) -> Tensor:
    """The `ord`-norm of the elements over `dim` (all by default). RuntimeError for integers."""
    refuse(x, "linalg_vector_norm")
    if x.dtype.category < 2:
        raise RuntimeError(
            f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {x.dtype.scalar_name}"
        )
    p, dtype = float(ord), asked(dtype, "linalg_vector_norm")
    if dtype is not None:
        check_wider("linalg.vector_norm", x.dtype, dtype)
    dims = dims_of("linalg_vector_norm", dim, x.ndim)
    if p < 0 or p == math.inf:
        empty = [at for at, d in enumerate(dims) if not x.shape[d]]
        if empty:
            what = "an empty tensor because"
            if dim or dim == 0:
                given = dim if hasattr(dim, "__index__") else dim[empty[0]]
                what = f"the dimension {given}because this dimension is empty and"
            raise RuntimeError(
                f"linalg.vector_norm cannot compute the {p:g} norm on {what} the operation does not have an identity"
            )
    source = x.detach() if graph.needs_grad(x) else x
    if dtype is not None:
        source = source.to(dtype)
    value = _value(source, p, dims, keepdim)
    target = (dtype or x.dtype).to_real()
    if value.dtype is not target:
        value = value.to(target)
    if graph.needs_grad(x):
        graph.record(
            node,
            (x,),
            value,
            _back,
            {"self": x, "result": value, "ord": p, "dim": dims, "keepdim": keepdim},
        )
    return into(value, out, "linalg_vector_norm", (x,))


@public()
def norm(
    input: Tensor,
    p: Any = "fro",
    dim: Dims = None,
    keepdim: bool = False,
    out: Tensor | None = None,
    dtype: dtype | None = None,
) -> Tensor:
    """The p-norm over `dim` (all by default); "fro" is 2; "nuc" the sum of singular values of a matrix."""
    if isinstance(p, str) and (p != "fro" or (isinstance(dim, (tuple, list)) and len(dim) > 2)):
        from .linalg.matrix_norms import matrix_norm

        dims = range(input.ndim) if dim is None else (dim,) if hasattr(dim, "__index__") else dim
        return matrix_norm(input, p, dims, keepdim, dtype=dtype, out=out)
    if p is None or p == "fro":
        p = 2
    return vector_norm(input, p, dim, keepdim, dtype=dtype, out=out)


@public()
def dist(input: Tensor, other: Tensor, p: Number = 2) -> Tensor:
    """The p-norm of `input - other`, which broadcast together."""
    check_tensors("dist", ("input", "other"), input, other)
    delta = input.detach() - other.detach()
    if delta.dtype.category < 2:
        raise RuntimeError(
            f"norm(): input dtype should be either floating point or complex. Got {delta.dtype.scalar_name} instead."
        )
    p = float(number("dist", "p", p, 3))
    value = vector_norm(delta, p)
    if graph.needs_grad(input, other):
        graph.record(
            "DistBackward0",
            (input, other),
            value,
            _dist_back,
            {"self": input, "other": other, "result": value, "p": p},
        )
    return value


def _dist_back(ctx: Any, g: Tensor) -> tuple:
    delta = ctx.self - ctx.other
    grad = gradient(
        delta,
        g.expand(delta.shape),
        ctx.result.expand(delta.shape),
        ctx.p,
        tuple(range(delta.ndim)),
    )
    return grad, -grad
