"""Norms of matrices, and condition numbers."""

from __future__ import annotations

import math
from typing import Any

from ...errors import warn_once
from ...layouts import wrap_dim
from .. import writes
from ..core import Tensor
from ..norms import check_wider, vector_norm
from ..row import public
from .matrices import check_float, check_matrix, check_square
from .solve import inv_ex
from .spectral import svdvals


def _order_of(ord: Any) -> Any:
    if isinstance(ord, str):
        if ord not in ("fro", "nuc"):
            raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    elif abs(ord) not in (1, 2, math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord:g} not supported.")
    return ord


def matrix_norm(
    A: Tensor,
    ord: float | str = "fro",
    dim: Any = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the norm of matrices over two dims: "fro", "nuc", 1, -1, 2, -2, inf or -inf."""
    check_matrix(A, "linalg.matrix_norm")
    if A.dtype.category < 2:
        raise RuntimeError(
            f"linalg.matrix_norm: Expected a floating point or complex tensor as input. Got {A.dtype.scalar_name}"
        )
    dims = tuple(dim)
    if len(dims) != 2:
        raise RuntimeError(
            f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dims))}"
        )
    rows, cols = (wrap_dim(d, A.ndim) for d in dims)
    if rows == cols:
        raise RuntimeError(
            f"linalg.matrix_norm: dims must be different. Got ({dims[0]}, {dims[1]})"
        )
    order = _order_of(ord)
    if dtype is not None:
        check_wider("linalg.matrix_norm", A.dtype, dtype)
        A = A.to(dtype)
    if order == "fro":
        value = vector_norm(A, 2, (rows, cols), keepdim)
    elif order == "nuc" or abs(order) == 2:
        check_float(A, "linalg.matrix_norm")
        s = svdvals(A.permute((*[d for d in range(A.ndim) if d not in (rows, cols)], rows, cols)))
        value = s.sum(-1) if order == "nuc" else _extreme(s, -1, False, order > 0)
        if keepdim:
            for d in sorted((rows, cols)):
                value = value.unsqueeze(d)
    else:
        first, second = (rows, cols) if abs(order) == 1 else (cols, rows)
        if second > first and not keepdim:
            second -= 1
        sums = vector_norm(A, 1, first, keepdim)
        value = _extreme(sums, second, keepdim, order > 0)
    return writes.deliver(value, out, "linalg_matrix_norm", (A,))


def _extreme(x: Tensor, dim: int, keepdim: bool, largest: bool) -> Tensor:
    """Return the largest or smallest norm along a dim; the largest along an empty dim is 0."""
    if largest:
        return x.amax(dim, keepdim) if x.shape[dim] else x.sum(dim, keepdim)
    return x.amin(dim, keepdim)


def linalg_norm(
    A: Tensor,
    ord: float | str | None = None,
    dim: Any = None,
    keepdim: bool = False,
    *,
    out: Tensor | None = None,
    dtype: Any = None,
) -> Tensor:
    """Return a vector norm over one dim or a matrix norm over two; by default over all of the tensor's dims."""
    dims = (dim,) if hasattr(dim, "__index__") else dim
    if dims is not None and len(dims) not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dims)}"
        )
    if ord is None:
        value = vector_norm(A, 2, dims, keepdim, dtype=dtype)
        return writes.deliver(value, out, "linalg_norm", (A,))
    if dims is None and A.ndim not in (1, 2):
        if isinstance(ord, str):
            check_matrix(A, "linalg.matrix_norm")
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.ndim}D."
        )
    if not isinstance(ord, str) and (A.ndim if dims is None else len(dims)) == 1:
        value = vector_norm(A, ord, dims, keepdim, dtype=dtype)
        return writes.deliver(value, out, "linalg_norm", (A,))
    if A.dtype.category < 2 and not isinstance(ord, str):
        raise RuntimeError(
            f"linalg.matrix_norm: Expected a floating point or complex tensor as input. Got {A.dtype.scalar_name}"
        )
    return matrix_norm(A, ord, (-2, -1) if dims is None else dims, keepdim, dtype=dtype, out=out)


def cond(A: Tensor, p: Any = None, *, out: Tensor | None = None) -> Tensor:
    """Return the condition number of matrices with respect to a norm (2 by default); inf for singular ones."""
    if A.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if not A.numel():
        value = A.new_zeros(A.shape[:-2], dtype=A.dtype.to_real())
        return writes.deliver(value, out, "linalg_cond", (A,))
    if p is None or p in (2, -2):
        s = svdvals(A)
        big, small = s.narrow(-1, 0, 1), s.narrow(-1, s.shape[-1] - 1, 1)
        value = (small / big if p == -2 else big / small).squeeze(-1)
        return writes.deliver(value, out, "linalg_cond", (A,))
    if not isinstance(p, str | int | float):
        raise TypeError(
            f"linalg_cond() received an invalid combination of arguments - got (Tensor, {type(p).__name__})"
        )
    if p not in (("fro", "nuc") if isinstance(p, str) else (1, -1, math.inf, -math.inf)):
        if isinstance(p, str):
            check_square(A, f"linalg.cond(ord={p})")
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    check_square(A, f"linalg.cond(ord={p})")
    inverse, info = inv_ex(A)
    if p == "nuc":
        s = svdvals(A)
        value = s.sum(-1) * s.reciprocal().sum(-1)
    else:
        value = matrix_norm(A, p) * matrix_norm(inverse, p)
    value = value.masked_fill(info != 0, math.inf).nan_to_num(math.inf, math.inf, -math.inf)
    return writes.deliver(value, out, "linalg_cond", (A,))


_DEPRECATED = (
    "at::{} is deprecated and it is just left for JIT compatibility. It will be removed in a future PyTorch release. "
    "Please use `linalg.{}` instead"
)


@public(method=False)
def nuclear_norm(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Return the sum of singular values; the one argument beside the matrix may be `keepdim`. Deprecated."""
    warn_once(_DEPRECATED.format("nuclear_norm", "matrix_norm(A, 'nuc', dim, keepdim)"))
    if dim.__class__ is bool and not keepdim:
        dim, keepdim = None, dim
    return matrix_norm(input, "nuc", (-2, -1) if dim is None else dim, keepdim, out=out)


@public(method=False)
def frobenius_norm(
    input: Tensor, dim: Any, keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Return the root of the sum of squares over dims. Deprecated."""
    warn_once(_DEPRECATED.format("frobenius_norm", "vector_norm(A, 2., dim, keepdim)"))
    return vector_norm(input, 2, dim or None, keepdim, out=out)
