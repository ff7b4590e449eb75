"""Factorizations and triangular solves by the kernels of `codegen.factor`, on tensors; and the parts of packed results.

Results are column-major, as torch's are from LAPACK. Nothing here records gradients or checks arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import dtypes, layouts
from ...autograd.mode import unrecorded
from ...codegen.factor import cholesky as cholesky_family
from ...codegen.factor import lu as lu_family
from ...codegen.factor import parts
from ...codegen.factor import qr as qr_family
from ...codegen.factor.triangular import invert, solve
from ...codegen.move.copies import dense
from ...codegen.operand import Operand
from ...codegen.region import empty
from ...layouts import contiguous_strides
from ...runtime import Backend, get_backend
from .. import core
from ..composite import at_once
from ..core import Tensor
from ..matmul import matmul
from ..replay import Replayed
from ..row import FUNCTIONS
from .matrices import diagonal


def by_columns(stored: Tensor) -> Tensor:
    """Return fresh matrices (…, n, m) transposed, as column-major (…, m, n), on the same storage.

    Autograd does not regard the result as a view of `stored`: it has a version counter of its own.
    """
    *batch, n, m = stored.shape
    *outer, row, column = contiguous_strides(tuple(stored.shape))
    return core.make(
        stored._storage, (*batch, m, n), stored.dtype, stored.device, (*outer, column, row)
    )


def as_stored(x: Operand, batch: Sequence[int], backend: Backend) -> Tensor:
    """Wrap column-major matrices [count, m, n] from `parts.by_columns` as they are stored: their transposes (…, n, m),
    row-major.
    """
    _, m, n = x.shape
    return core.result(x._replace(shape=(*batch, n, m)), backend.device)


def flattened(backend: Backend, x: Operand) -> Operand:
    """View matrices (…, m, n) as [count, m, n]; a copy where strides do not let the batch dims merge into one."""
    *batch, m, n = x.shape
    sizes, (strides,) = layouts.merge(tuple(batch), (x.strides[:-2],))
    if len(sizes) > 1:
        x = dense(backend, x)
        sizes, strides = (layouts.numel(tuple(batch)),), (m * n,)
    if not sizes:
        sizes, strides = (layouts.numel(tuple(batch)),), (0,)
    return x._replace(shape=(*sizes, m, n), strides=(*strides, *x.strides[-2:]))


def as_column(x: Operand) -> Operand:
    """View vectors (…, n) as matrices (…, n, 1)."""
    return x._replace(shape=(*x.shape, 1), strides=(*x.strides, 0))


def _operands(xs: Sequence[Tensor]) -> tuple[Backend, list[Operand]]:
    return get_backend(xs[0].device), [core.kernel_operand(x) for x in xs]


@Replayed.of_memory
def _lu(xs: Sequence[Tensor], exchanged: bool) -> list[Tensor]:
    backend, (x,) = _operands(xs)
    *batch, m, n = x.shape
    with backend.lock:
        a, pivots, info = _factorized(backend, x, exchanged)
    dev = xs[0].device
    return [
        as_stored(a, batch, backend),
        core.result(pivots._replace(shape=(*batch, min(m, n))), dev),
        core.result(info._replace(shape=tuple(batch)), dev),
    ]


def _factorized(
    backend: Backend, x: Operand, exchanged: bool = True
) -> tuple[Operand, Operand, Operand]:
    """Return the packed factors [count, m, n] of a column-major copy of x, pivots [count, min(m, n)] and info [count]."""
    a = parts.by_columns(backend, x)
    count, m, n = a.shape
    pivots = empty(backend, dtypes.int32, (count, min(m, n)))
    info = parts.zeros(backend, dtypes.int32, (count,))
    lu_family.lu(backend, a, pivots, info, exchanged)
    return a, pivots, info


def lu(A: Tensor, exchanged: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """Factorize (…, m, n): the packed factors, LAPACK's pivots (…, min(m, n)), counted from 1, and info (…): the first zero pivot.

    Unless `exchanged`, there is no pivoting: no rows are exchanged.
    """
    packed, pivots, info = _lu([A], exchanged)
    return by_columns(packed), pivots, info


@Replayed.of_memory
def _cholesky(xs: Sequence[Tensor]) -> list[Tensor]:
    backend, (x,) = _operands(xs)
    with backend.lock:
        a = parts.by_columns(backend, x)
        info = parts.zeros(backend, dtypes.int32, (a.shape[0],))
        cholesky_family.cholesky(backend, a, info)
    batch = x.shape[:-2]
    return [as_stored(a, batch, backend), core.result(info._replace(shape=batch), xs[0].device)]


@at_once
def _cholesky_factor(xs: Sequence[Tensor], upper: bool) -> list[Tensor]:
    (A,) = xs
    stored, info = _cholesky([A.mH if upper else A])
    # `stored` is L^T. The result is stored transposed, too: L as L^T, and U = L^H as U^T, the conjugate transpose of
    # `stored`.
    return [FUNCTIONS["tril"](stored.mH) if upper else FUNCTIONS["triu"](stored), info]


def cholesky(A: Tensor, upper: bool) -> tuple[Tensor, Tensor]:
    """Return L of A = L L^H or, if `upper`, U of A = U^H U, read from that triangle, and info (…): the first leading
    minor that is not positive.
    """
    factor, info = _cholesky_factor([A], upper)
    return by_columns(factor), info


# One triangular solve: whether the matrix is transposed, conjugated, upper triangular (before transposing), unit
# triangular.
Step = tuple[bool, bool, bool, bool]


def _go_through(backend: Backend, a: Operand, x: Operand, steps: Sequence[Step]) -> None:
    """Solve with triangles of A once for each step, in order, overwriting X."""
    for turned, conjugate, upper, unit in steps:
        matrix = parts.transposed(a) if turned else a
        solve(backend, matrix, x, upper=upper != turned, unit=unit, conjugate=conjugate)


@Replayed.of_memory
def _substituted(
    xs: Sequence[Tensor],
    steps: tuple[Step, ...],
    exchanged: str,
    right: bool,
) -> list[Tensor]:
    """Copy B and solve with A once for each of `steps`; return the solutions as they are stored.

    `right`: the right-hand side is B^T, read in place. Operands: A, B, and, unless `exchanged` is "", the pivots by
    which rows are exchanged: "before" the steps, or "after" them in reverse order.
    """
    backend, (a, b, *pivots) = _operands(xs)
    batch = b.shape[:-2]
    with backend.lock:
        made, a = parts.by_columns(backend, b), flattened(backend, a)
        x = parts.transposed(made) if right else made
        rows = flattened(backend, as_column(pivots[0])) if pivots else x
        n = x.shape[1]
        if exchanged == "before":
            lu_family.exchange(backend, x, rows, 0, n)
        _go_through(backend, a, x, steps)
        if exchanged == "after":
            lu_family.exchange(backend, x, rows, 0, n, backwards=True)
    return [as_stored(made, batch, backend)]


def _solved(
    A: Tensor,
    B: Tensor,
    steps: tuple[Step, ...],
    pivots: Tensor | None = None,
    exchanged: str = "",
    right: bool = False,
) -> Tensor:
    """Return the solutions as they are stored: column-major matrices as their row-major transposes.

    Batch dims broadcast.
    """
    given, n = alike(A, B), A.shape[-1]
    if pivots is not None:
        with unrecorded():
            given.append(pivots.contiguous().expand(*given[1].shape[:-2], n))
    return _substituted(given, steps, exchanged, right)[0]


def alike(A: Tensor, B: Tensor) -> list[Tensor]:
    """Return both with the same batch dims, expanded (and detached) where these differ, for kernels that read memory."""
    if A.shape[:-2] == B.shape[:-2]:
        return [A, B]
    batch = layouts.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    with unrecorded():
        return [x.detach().expand(*batch, *x.shape[-2:]) for x in (A, B)]


def triangular(A: Tensor, B: Tensor, upper: bool, left: bool, unit: bool) -> Tensor:
    """Solve AX = B (XA = B unless `left`) for triangular A (…, n, n); batch dims broadcast."""
    return by_columns(_solved(A, B, ((not left, False, upper, unit),), right=not left))


_LOW, _UP = (False, False, False, True), (False, False, True, False)  # of packed factors: L, U
_LOWER = (False, False, False, False)  # with a lower triangle


def lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    """Solve AX = B (XA = B unless `left`), or with A^H, by the packed factors and pivots of A; batch dims broadcast."""
    if not left:  # (X A)^T = A^T X^T, and A^H is the conjugate of A^T
        with unrecorded():
            return _by_lu(LU, pivots, B.mT, not adjoint, adjoint)
    return by_columns(_by_lu(LU, pivots, B, adjoint, adjoint))


def _by_lu(LU: Tensor, pivots: Tensor, B: Tensor, turned: bool, conjugate: bool) -> Tensor:
    low, up = (turned, conjugate, *_LOW[2:]), (turned, conjugate, *_UP[2:])
    if turned:
        return _solved(LU, B, (up, low), pivots, "after")
    return _solved(LU, B, (low, up), pivots, "before")


def cholesky_solve(factor: Tensor, B: Tensor, upper: bool) -> Tensor:
    """Solve AX = B for A = L L^H (U^H U where `upper`); batch dims broadcast."""
    return by_columns(_solved(factor, B, _halves(factor, upper)))


def _halves(factor: Tensor, upper: bool) -> tuple[Step, Step]:
    """Return the two steps that solve with a Cholesky factor; the first is with a lower triangle, as `_inverted` wants."""
    plain, adjoint = (False, False, upper, False), (True, factor.dtype.is_complex, upper, False)
    return (adjoint, plain) if upper else (plain, adjoint)


@Replayed.of_memory
def _inverted(xs: Sequence[Tensor], steps: tuple[Step, ...]) -> list[Tensor]:
    """Invert by steps as `_substituted` takes them, the first of which must be with a lower triangle; return the
    inverses as they are stored.

    Operands: the factors and, after LU, the pivots. These exchange rows of the matrix, hence columns of its inverse.
    """
    backend, (a, *pivots) = _operands(xs)
    *batch, n, _ = a.shape
    with backend.lock:
        a = flattened(backend, a)
        made = parts.identity(backend, a.dtype, a.shape[0], n, n)
        (turned, conjugate, _, unit), *others = steps
        invert(backend, parts.transposed(a) if turned else a, made, unit=unit, conjugate=conjugate)
        _go_through(backend, a, made, others)
        if pivots:
            columns, rows = parts.transposed(made), flattened(backend, as_column(pivots[0]))
            lu_family.exchange(backend, columns, rows, 0, n, backwards=True)
    return [as_stored(made, batch, backend)]


@at_once
def _inverse(xs: Sequence[Tensor]) -> list[Tensor]:
    packed, pivots, info = lu(*xs)
    return [*_inverted([packed, pivots], (_LOW, _UP)), info]


def inverse(A: Tensor) -> tuple[Tensor, Tensor]:
    """Invert (…, n, n); also return the number (…) of the first zero pivot, 0 where there is none."""
    value, info = _inverse([A])
    return by_columns(value), info


@at_once
def _solution(xs: Sequence[Tensor], left: bool, vector: bool) -> list[Tensor]:
    A, B = xs
    packed, pivots, info = lu(A)
    value = lu_solve(packed, pivots, B.unsqueeze(-1) if vector else B, left=left)
    return [value.squeeze(-1) if vector else value, info]


def solution(A: Tensor, B: Tensor, left: bool, vector: bool) -> tuple[Tensor, Tensor]:
    """Solve AX = B (XA = B unless `left`), with B (…, n) if `vector`; also return the number (…) of A's first zero
    pivot, 0 where there is none.
    """
    value, info = _solution([A, B], left, vector)
    return value, info


@at_once
def _cholesky_inverse(xs: Sequence[Tensor], upper: bool) -> list[Tensor]:
    (factor,) = xs
    zero = diagonal(factor) == 0
    first = zero.any(-1) * ((zero.cumsum(-1) == 0).sum(-1) + 1)
    return [*_inverted([factor], _halves(factor, upper)), first]


def cholesky_inverse(factor: Tensor, upper: bool) -> tuple[Tensor, Tensor]:
    """Invert A = L L^H (U^H U where `upper`), given the factor; also return the number (…) of its first zero diagonal
    element, 0 where there is none.
    """
    value, zero = _cholesky_inverse([factor], upper)
    return by_columns(value), zero


@Replayed.of_memory
def _exchanged(xs: Sequence[Tensor]) -> list[Tensor]:
    backend, (pivots, rows) = _operands(xs)
    batch, k = pivots.shape[:-1], pivots.shape[-1]
    with backend.lock:
        x, flat = parts.by_columns(backend, as_column(rows)), flattened(backend, as_column(pivots))
        lu_family.exchange(backend, x, flat, 0, k)
    return [core.result(x._replace(shape=(*batch, x.shape[1])), xs[0].device)]


def permutation(pivots: Tensor, m: int, dtype: dtypes.dtype) -> Tensor:
    """Turn LAPACK's row exchanges (…, k) into matrices P (…, m, m) with A = P L U."""
    with unrecorded():
        numbers = FUNCTIONS["arange"](m, dtype=dtypes.int32, device=pivots.device)
        rows = _exchanged([pivots.contiguous(), numbers.expand(*pivots.shape[:-1], m)])[0]
        return (rows.unsqueeze(-2) == numbers.unsqueeze(-1)).to(dtype)


@Replayed.of_memory
def _determinant(xs: Sequence[Tensor], logarithm: bool) -> list[Tensor]:
    backend, (x,) = _operands(xs)
    batch, dt = x.shape[:-2], x.dtype
    with backend.lock:
        packed, pivots, _ = _factorized(backend, x)
        value = empty(backend, dt, batch)
        logs = empty(backend, dt.to_real(), batch) if logarithm else None
        lu_family.determinant(backend, packed, pivots, value, logs)
    dev = xs[0].device
    return [core.result(v, dev) for v in (value, logs) if v is not None]


def determinant(A: Tensor) -> Tensor:
    """Return the determinants (…) of (…, n, n)."""
    return _determinant([A], False)[0]


def log_determinant(A: Tensor) -> tuple[Tensor, Tensor]:
    """Return the signs (…) of the determinants of (…, n, n) and the logarithms of their sizes."""
    sign, size = _determinant([A], True)
    return sign, size


@Replayed.of_memory
def _qr(xs: Sequence[Tensor], columns: int | None) -> list[Tensor]:
    """Return the packed factors and tau and, unless `columns` is None, that many columns of Q, as they are stored."""
    backend, (x,) = _operands(xs)
    *batch, m, n = x.shape
    k = min(m, n)
    with backend.lock:
        a = parts.by_columns(backend, x)
        count = a.shape[0]
        v = parts.flat(empty(backend, x.dtype, (count, k, m)), k, m)
        tau = empty(backend, x.dtype, (count, k))
        blocks = qr_family.qr(backend, a, v, tau)
        found = [
            as_stored(a, batch, backend),
            core.result(tau._replace(shape=(*batch, k)), xs[0].device),
        ]
        if columns is not None:
            q = parts.identity(backend, x.dtype, count, m, columns)
            qr_family.first_columns(backend, blocks, q)
            found.append(as_stored(q, batch, backend))
    return found


def geqrf(A: Tensor) -> tuple[Tensor, Tensor]:
    """Factorize (…, m, n): R with the reflectors' vectors below it, and the reflectors' factors tau (…, min(m, n))."""
    packed, tau = _qr([A], None)
    return by_columns(packed), tau


@at_once
def _qr_apart(xs: Sequence[Tensor], mode: str) -> list[Tensor]:
    """Return R, and Q unless the mode is "r", as they are stored."""
    m, n = xs[0].shape[-2:]
    k = m if mode == "complete" else min(m, n)
    packed, _, *q = _qr(xs, None if mode == "r" else k)
    return [FUNCTIONS["tril"](packed.narrow(-1, 0, k)), *q]


def qr(A: Tensor, mode: str) -> tuple[Tensor | None, Tensor]:
    """Factorize A = Q R: "reduced", "complete" (square Q) or "r" (no Q)."""
    r, *q = map(by_columns, _qr_apart([A], mode))
    return q[0] if q else None, r


@Replayed.of_memory
def _reflected(xs: Sequence[Tensor], adjoint: bool, columns: int) -> list[Tensor]:
    """Multiply Q, or its `adjoint`, by X; without X return the first `columns` columns of Q.

    Operands: the reflectors' vectors (…, m, k), 1 / tau (…, k), and maybe X.
    """
    backend, (v, inverse, *given) = _operands(xs)
    *batch, m, _ = v.shape
    with backend.lock:
        vectors, scales = parts.by_columns(backend, v), dense(backend, inverse)
        k = scales.shape[-1]
        blocks = qr_family.blocks_of(
            backend, vectors, scales._replace(shape=(vectors.shape[0], k), strides=(k, 1))
        )
        if given:
            x = parts.by_columns(backend, given[0])
            qr_family.multiply(backend, blocks, x, adjoint=adjoint)
        else:
            x = parts.identity(backend, v.dtype, vectors.shape[0], m, columns)
            qr_family.first_columns(backend, blocks, x)
    return [as_stored(x, batch, backend)]


@at_once
def _by_reflectors(xs: Sequence[Tensor], adjoint: bool) -> list[Tensor]:
    """Compute `reflected`, as it is stored, in one replayed call."""
    A, tau, *given = xs
    k = tau.shape[-1]
    low = A.narrow(-1, 0, k).tril(-1)
    vectors = low + FUNCTIONS["eye"](*low.shape[-2:], dtype=A.dtype, device=A.device)
    inverse = FUNCTIONS["where"](tau == 0, float("inf"), tau.reciprocal())
    return _reflected([vectors, inverse.expand(*A.shape[:-2], k), *given], adjoint, A.shape[-1])


def reflected(A: Tensor, tau: Tensor, X: Tensor | None = None, adjoint: bool = False) -> Tensor:
    """Multiply the product Q of the reflectors that `geqrf` leaves in A (…, m, n), or its adjoint, by X (…, m, k).

    Without X, return the first n columns of Q.
    """
    given = [A, tau] if X is None else [A, tau, X]
    return by_columns(_by_reflectors(given, adjoint)[0])


@Replayed.of_memory
def _least_squares(xs: Sequence[Tensor], wide: bool) -> list[Tensor]:
    """Minimise |A X - B| by A = Q R, for A (…, m, n) with m >= n; if `wide`, find the X of least norm with A^H X = B
    instead.

    Returns X and the packed factors, as they are stored. Unless `wide`, rows of X after the nth hold the rest of Q^H B:
    the residual.
    """
    backend, (x, b) = _operands(xs)
    *batch, m, n = x.shape
    with backend.lock:
        a = parts.by_columns(backend, x)
        count, k = a.shape[0], b.shape[-1]
        v = parts.flat(empty(backend, x.dtype, (count, n, m)), n, m)
        blocks = qr_family.qr(backend, a, v, empty(backend, x.dtype, (count, n)))
        r = parts.part(a, (0, n), (0, n))
        if wide:
            made = parts.flat(parts.zeros(backend, x.dtype, (count, k, m)), k, m)
            top = parts.part(made, (0, n), (0, k))
            parts.copy_into(backend, b, top)
            solve(backend, parts.transposed(r), top, upper=False, conjugate=x.dtype.is_complex)
            qr_family.multiply(backend, blocks, made, adjoint=False)
        else:
            made = parts.by_columns(backend, b)
            qr_family.multiply(backend, blocks, made, adjoint=True)
            solve(backend, r, parts.part(made, (0, n), (0, k)), upper=True)
    return [as_stored(made, batch, backend), as_stored(a, batch, backend)]


@at_once
def _minimised(xs: Sequence[Tensor]) -> list[Tensor]:
    a, b = xs
    m, n = a.shape[-2:]
    stored, _ = _least_squares([a.mH if m < n else a, b], m < n)
    left = stored.narrow(-1, n, max(m - n, 0)).abs().square().sum(-1)
    return [stored.narrow(-1, 0, n).contiguous(), left]


def least_squares(A: Tensor, B: Tensor) -> tuple[Tensor, Tensor]:
    """Minimise |A X - B|, and |X| where A (…, m, n) is wide, by QR, assuming A of full rank.

    Returns X (…, n, k), and the residual sums of squares (…, k), 0 where m <= n.
    """
    x, left = _minimised(alike(A, B))
    return by_columns(x), left


@at_once
def _minimised_if_certain(xs: Sequence[Tensor], rcond: float | None) -> list[Tensor]:
    a, b = xs
    m, n = a.shape[-2:]
    stored, packed = _least_squares([a.mH if m < n else a, b], m < n)
    low = packed.narrow(-1, 0, min(m, n)).tril()
    size, of_inverse = map(_size, (low, _inverted([low], (_LOWER,))[0]))
    # The ratio of the largest singular value to the smallest is at most |L| |L^-1|.
    certain = (size * of_inverse * least_ratio(a, rcond) < 1).all()
    ranks = FUNCTIONS["full"](b.shape[:-2], min(m, n), dtype=dtypes.int64, device=a.device)
    return [stored.narrow(-1, 0, n).contiguous(), ranks, certain, low, size, of_inverse]


@at_once
def _certain(xs: Sequence[Tensor], bound: float) -> list[Tensor]:
    """Repeat the test with a closer bound of the largest singular value than |L|: the fourth root of |(L^H L)^2|."""
    low, size, of_inverse = xs
    low = low / size[..., None, None]
    gram = matmul(low.mH, low)
    return [(_size(matmul(gram, gram)).sqrt().sqrt() * size * of_inverse * bound < 1).all()]


def _size(x: Tensor) -> Tensor:
    """Return the Frobenius norm."""
    return x.abs().square().sum((-2, -1)).sqrt()


def least_ratio(A: Tensor, rcond: float | None) -> float:
    """Return `rcond` or its default, eps times A's longer side: singular values up to this fraction of the largest
    count as zero.
    """
    return dtypes.finfo(A.dtype).eps * max(A.shape[-2:]) if rcond is None else rcond


def least_squares_if_certain(
    A: Tensor, B: Tensor, rcond: float | None
) -> tuple[Tensor, Tensor] | None:
    """Return X as `least_squares` does, and the ranks (…), if certainly no singular value counts as zero at `rcond`
    (`least_ratio`); else None.
    """
    x, ranks, certain, *sizes = _minimised_if_certain(alike(A, B), rcond)
    if certain.is_meta or not (certain or _certain(sizes, least_ratio(A, rcond))[0]):
        return None
    return by_columns(x), ranks


def first_bad(info: Tensor) -> tuple[str, int] | None:
    """Return how torch's errors name the first matrix with a nonzero info code, and the code; None if there is none, or
    on "meta".
    """
    if info.is_meta:
        return None
    codes: Any = info._host().reshape(-1)
    bad = codes.nonzero()[0]
    if not bad.size:
        return None
    where = int(bad[0])
    return (f"(Batch element {where}): " if info.ndim else ""), int(codes[where])
