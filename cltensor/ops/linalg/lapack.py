"""Where dense factorizations run: on the host, in numpy's LAPACK, batch by batch, counted as `host_ops`.

Owns moving matrices there and back, the checks all of them share, LinAlgError, and the few algorithms numpy lacks (LU with its
pivots, triangular substitution). Knows no gradient. Matrices come back column by column in memory, as LAPACK leaves them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...codegen.pointwise import IDENTITY
from ...dtypes import from_numpy
from ...layouts import contiguous_strides
from ...lazy import Expr, Scalar
from ...runtime import get_backend
from ...runtime.stats import STATS
from ...size import Size
from ...storage import Storage
from .. import core, return_types
from ..core import Tensor, is_tensor
from ..row import FUNCTIONS

Array = np.ndarray


class LinAlgError(RuntimeError):
    """A matrix that an algorithm of linear algebra cannot handle: singular, not positive-definite, not converging."""

    __module__ = "torch._C"
    __qualname__ = "_LinAlgError"


LinAlgError.__name__ = "_LinAlgError"


def named(name: str, *fields: str) -> Any:
    """Make a named tuple among the return types."""
    made = return_types._class(name, fields)
    setattr(return_types, name, made)
    return made


# ------------------------------------------------------------------------------------------- there and back


def host(*tensors: Tensor) -> Any:
    """Return the tensors as numpy sees them, counting one host op; not to be written to."""
    STATS.host_ops += 1
    arrays = [t._host() for t in tensors]
    return arrays[0] if len(arrays) == 1 else arrays


def device(array: Any, like: Tensor, *, columns: bool = True) -> Tensor:
    """Copy a result to the device of `like`; matrices keep LAPACK's order, column after column."""
    array = np.asarray(array)
    dt, shape = from_numpy(array.dtype), Size(array.shape)
    backend = get_backend(like.device)
    if array.ndim < 2 or not columns:
        return core.make(
            Storage.from_host(backend, np.ascontiguousarray(array)), shape, dt, like.device
        )
    storage = Storage.from_host(backend, np.ascontiguousarray(array.swapaxes(-1, -2)))
    strides = contiguous_strides((*shape[:-2], shape[-1], shape[-2]))
    return core.make(storage, shape, dt, like.device, (*strides[:-2], strides[-1], strides[-2]))


# ------------------------------------------------------------------------------------------- checks


def check_matrix(x: Any, function: str, name: str = "A") -> None:
    """Raise torch's errors unless `x` is a tensor with at least two dims."""
    if not is_tensor(x):
        raise TypeError(
            f"{function.replace('.', '_')}(): argument '{name}' (position 1) must be Tensor, not {type(x).__name__}"
        )
    if x.ndim < 2:
        raise RuntimeError(f"{function}: The input tensor {name} must have at least 2 dimensions.")


def check_float(x: Tensor, function: str) -> None:
    """Raise torch's errors unless the dtype is one LAPACK has."""
    if x.dtype.category < 2:
        raise RuntimeError(
            f"{function}: Expected a floating point or complex tensor as input. Got {x.dtype.scalar_name}"
        )
    if x.dtype.np is None or x.dtype.name == "float16":
        raise RuntimeError(
            f"{function}: Low precision dtypes not supported. Got {x.dtype.scalar_name}"
        )


def check_square(x: Any, function: str, name: str = "A") -> None:
    """Raise torch's errors unless `x` is a batch of square matrices."""
    check_matrix(x, function, name)
    if x.shape[-1] != x.shape[-2]:
        raise RuntimeError(
            f"{function}: {name} must be batches of square matrices, but they are {x.shape[-2]} by {x.shape[-1]} matrices"
        )


def first_bad(info: Array) -> tuple[str, int] | None:
    """Find the first matrix with an error code: how torch names it in a batch, and the code."""
    flat = info.reshape(-1)
    bad = np.flatnonzero(flat)
    if not bad.size:
        return None
    where = int(bad[0])
    return (f"(Batch element {where}): " if info.ndim else ""), int(flat[where])


# ------------------------------------------------------------------------------------------- algorithms


def lu(a: Array, pivot: bool = True) -> tuple[Array, Array, Array]:
    """Factorize (batches of) matrices: the packed factors, LAPACK's pivots (counted from 1), and info (the first zero pivot)."""
    m, n = a.shape[-2:]
    batch = a.shape[:-2]
    count, k = int(np.prod(batch)), min(m, n)
    packed = np.array(a).reshape(count, m, n)
    pivots = np.tile(np.arange(1, k + 1, dtype=np.int32), (count, 1))
    info = np.zeros(count, np.int32)
    each = np.arange(count)
    with np.errstate(all="ignore"):
        for j in range(k):
            if pivot:
                size = _magnitude(packed[:, j:, j])
                best = j + np.argmax(np.where(np.isnan(size), np.inf, size), axis=1)
                pivots[:, j] = best + 1
                packed[each, j], packed[each, best] = (
                    packed[each, best].copy(),
                    packed[each, j].copy(),
                )
            top = packed[:, j, j]
            zero = top == 0
            info[zero & (info == 0)] = j + 1
            if j + 1 < m:
                packed[:, j + 1 :, j] /= np.where(zero, 1, top)[:, None]
                packed[:, j + 1 :, j + 1 :] -= (
                    packed[:, j + 1 :, j, None] * packed[:, j, None, j + 1 :]
                )
    return packed.reshape(a.shape), pivots.reshape(*batch, k), info.reshape(batch)


def _magnitude(column: Array) -> Array:
    """What LAPACK compares when it looks for a pivot: for complex numbers the cheaper |re| + |im|."""
    return np.abs(column.real) + np.abs(column.imag) if column.dtype.kind == "c" else np.abs(column)


def permutation(pivots: Array, m: int) -> Array:
    """Turn LAPACK's row exchanges into matrices P with A = P L U."""
    flat = pivots.reshape(int(np.prod(pivots.shape[:-1])), pivots.shape[-1])
    rows = np.tile(np.arange(m), (len(flat), 1))
    each = np.arange(len(flat))
    for j in range(flat.shape[1]):
        other = flat[:, j] - 1
        rows[each, j], rows[each, other] = rows[each, other].copy(), rows[each, j].copy()
    made = np.zeros((len(flat), m, m))
    made[each[:, None], rows, np.arange(m)] = 1
    return made.reshape(*pivots.shape[:-1], m, m)


def substitute(a: Array, b: Array, upper: bool, unit: bool) -> Array:
    """Solve A X = B for triangular A, row by row; zeros on the diagonal give infinities."""
    n = a.shape[-1]
    shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), n, b.shape[-1])
    x = np.array(np.broadcast_to(b, shape))
    with np.errstate(all="ignore"):
        for i in reversed(range(n)) if upper else range(n):
            done = slice(i + 1, None) if upper else slice(0, i)
            x[..., i, :] -= (a[..., i, None, done] @ x[..., done, :])[..., 0, :]
            if not unit:
                x[..., i, :] /= a[..., i, i, None]
    return x


def cholesky(a: Array) -> tuple[Array, Array]:
    """Factorize (batches of) positive-definite matrices by their lower triangle: L, and info (the first bad minor)."""
    batch = a.shape[:-2]
    info = np.zeros(batch, np.int32)
    try:
        return np.linalg.cholesky(a), info
    except np.linalg.LinAlgError:
        pass
    made = np.zeros((int(np.prod(batch)), *a.shape[-2:]), a.dtype)
    codes = info.reshape(-1)
    for i, one in enumerate(a.reshape(-1, *a.shape[-2:])):
        for k in range(1, len(one) + 1):
            try:
                made[i, :k, :k] = np.linalg.cholesky(one[:k, :k])
            except np.linalg.LinAlgError:
                codes[i] = k
                break
    return made.reshape(a.shape), codes.reshape(batch)


# ------------------------------------------------------------------------------------------- parts of matrices


def adjoint(x: Tensor) -> Tensor:
    """Conjugate transpose."""
    t = x.transpose(-2, -1)
    return t.conj() if x.dtype.is_complex else t


def tril(x: Tensor, k: int = 0) -> Tensor:
    """Lower triangle, differentiable."""
    return FUNCTIONS["tril"](x, k)


def triu(x: Tensor, k: int = 0) -> Tensor:
    """Upper triangle, differentiable."""
    return FUNCTIONS["triu"](x, k)


def diagonal(x: Tensor) -> Tensor:
    """Diagonals of the last two dims."""
    return x.diagonal(0, -2, -1)


def diag(x: Tensor) -> Tensor:
    """Matrices with the last dim on their diagonals."""
    return FUNCTIONS["diag_embed"](x)


def eye_like(x: Tensor) -> Tensor:
    """The identity of a square matrix's size."""
    return FUNCTIONS["eye"](x.shape[-1], dtype=x.dtype, device=x.device)


def absent(g: Tensor) -> bool:
    """Tell whether an output's gradient is only zeros, as where nobody used that output."""
    if g._node is not None or g._requires:
        return False
    value = g._storage.value
    if value.__class__ is Expr and value.op is IDENTITY and value.args[0].__class__ is Scalar:
        return value.args[0].value == 0
    return not g.numel() or not bool((g != 0).any())
