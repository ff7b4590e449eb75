"""Rules for functions that accept leading batch dims, as those of matrices do: the hidden dimension is one more."""

from __future__ import annotations

from typing import Any

from ...tensor import Tensor
from ..calls import Call, named_rule, rule


@rule(
    "det linalg_det slogdet linalg_slogdet logdet inverse linalg_inv linalg_inv_ex cholesky linalg_cholesky linalg_cholesky_ex "
    "cholesky_inverse svd linalg_svd linalg_svdvals qr linalg_qr linalg_eig linalg_eigvals linalg_eigh linalg_eigvalsh "
    "matrix_exp linalg_matrix_exp matrix_power linalg_matrix_power pinverse linalg_pinv linalg_lu_factor linalg_lu_factor_ex linalg_lu lu "
    "linalg_ldl_factor linalg_ldl_factor_ex linalg_matrix_rank linalg_cond geqrf tril triu lu_unpack "
    "orgqr linalg_householder_product"
)
def matrices(call: Call, *args: Any, **kwargs: Any) -> Any:
    """Call on a batch of matrices."""
    if kwargs.get("out") is not None:
        return call.fallback()
    tensors = [a for a in (*args, *kwargs.values()) if isinstance(a, Tensor)]
    several = len(tensors) > 1
    if len(tensors[0].shape) < 2 or (several and any(t.ndim == 0 for t in tensors)):
        return call.fallback()
    made = [call.full(a) if isinstance(a, Tensor) else a for a in args]
    named = {k: call.full(v) if isinstance(v, Tensor) else v for k, v in kwargs.items()}
    return call.hide(call.f(*made, **named))


@rule(
    "linalg_solve linalg_solve_ex linalg_solve_triangular triangular_solve cholesky_solve lu_solve linalg_lu_solve linalg_ldl_solve linalg_lstsq"
)
def systems(call: Call, *args: Any, **kwargs: Any) -> Any:
    """Solve systems with a batch of matrices; a vector right-hand side is solved for as a matrix of one column."""
    if kwargs.get("out") is not None:
        return call.fallback()
    given = list(args)
    tensors = [a for a in given if isinstance(a, Tensor)]
    vector = call.name in ("linalg_solve", "linalg_solve_ex") and (
        len(tensors[1].shape) == 1
        or (
            len(tensors[0].shape) - 1 == len(tensors[1].shape)
            and tensors[1].shape == tensors[0].shape[:-1]
        )
    )
    if any(len(t.shape) < 2 for t in tensors if t.dtype.category > 1) and not vector:
        return call.loop()
    if not kwargs.get("left", True) and vector:
        return call.fallback()
    if call.name == "linalg_lstsq" and any(len(t.shape) != 2 for t in tensors):
        return call.fallback()
    pivoted = call.name in ("lu_solve", "linalg_lu_solve", "linalg_ldl_solve")
    if vector:
        given = [a.unsqueeze(-1) if a is tensors[1] else a for a in given]
    # Pivots have one dim fewer than the matrices they belong to.
    ranks = [
        len(a.shape) + (pivoted and a.dtype.category == 1) if isinstance(a, Tensor) else 0
        for a in given
    ]
    ndim = max(ranks)
    made = [
        _widened(call.full(a), ndim - n) if isinstance(a, Tensor) else a
        for a, n in zip(given, ranks, strict=True)
    ]
    found = call.f(*made, **kwargs)
    if call.name == "linalg_lstsq":
        return type(found)([_each_slice(call, t) for t in found])
    out = call.hide(found)
    if not vector:
        return out
    if isinstance(out, tuple):
        return type(out)((out[0].squeeze(-1), *out[1:]))
    return out.squeeze(-1)


def _each_slice(call: Call, t: Any) -> Any:
    """Return a result of `lstsq` for each slice; one that `lstsq` does not compute is a tensor of shape (0,) without batch dims."""
    return call.hide(t.expand(call.size, 0) if tuple(t.shape) == (0,) else t)


def _widened(value: Any, missing: int) -> Any:
    """Insert `missing` dims of size 1 after the first dim."""
    return value.reshape(value.shape[0], *(1,) * missing, *value.shape[1:]) if missing else value


@named_rule("diag_embed")
def diag_embed(call: Call, given: dict[str, Any]) -> Any:
    """Return matrices whose diagonals are the rows of the last dim."""
    ndim = len(given["input"].shape) + 1
    dims = [given[n] % ndim + 1 for n in ("dim1", "dim2")]
    return call.hide(call.f(call.front(given["input"]), given["offset"], *dims))


@rule("diag")
def diag(call: Call, input: Any, diagonal: int = 0, **kwargs: Any) -> Any:
    """Return the diagonal of a matrix, or the matrix with a given diagonal."""
    return input.diag_embed(diagonal) if len(input.shape) == 1 else input.diagonal(diagonal).clone()


@rule("diagflat")
def diagflat(call: Call, input: Any, offset: int = 0) -> Any:
    """Return a matrix with all elements of the input on one of its diagonals."""
    return input.reshape(-1).diag_embed(offset)


@rule("trace")
def trace(call: Call, input: Any) -> Any:
    """Return the sum of a matrix's diagonal."""
    if len(input.shape) != 2:
        return call.fallback()
    return input.diagonal().sum(-1)


@rule("fliplr flipud")
def flipped(call: Call, input: Any) -> Any:
    """Reverse columns or rows."""
    return input.flip(int(call.name == "fliplr"))
