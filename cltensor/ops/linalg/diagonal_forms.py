"""Eigenvalues of Hermitian matrices and singular values, by the kernels of `codegen.factor`.

Reflectors make a matrix tridiagonal or bidiagonal, diagonal_values.py finds that form's values and vectors, and the
reflectors are applied to the vectors. Nothing here records gradients.
"""

from __future__ import annotations

from collections.abc import Sequence

from ... import dtypes, layouts
from ...autograd.mode import unrecorded
from ...codegen.factor import condense, conquer, jacobi, parts, qr
from ...runtime import get_backend
from .. import core
from ..composite import at_once
from ..core import Tensor
from ..replay import Replayed
from ..row import FUNCTIONS
from . import factors
from .diagonal_values import diagonalized, eigenvectors, singular_vectors
from .matrices import diag, diagonal

# From this ratio of the sides on, A = Q R is factorized first, and R's singular values are found, as in LAPACK.
_LONG = 11 / 6


@Replayed.of_memory
def _condensed(xs: Sequence[Tensor], hermitian: bool) -> list[Tensor]:
    """Reduce matrices to real tridiagonal (`hermitian`) or bidiagonal form.

    Returns diagonals and off-diagonals, (…, n) each, then for each side the reflectors' vectors, as rows, and 1 / tau.
    """
    (x,) = xs
    backend = get_backend(x.device)
    batch = x.shape[:-2]
    with backend.lock:
        form = condense.tridiagonal if hermitian else condense.bidiagonal
        made = form(backend, core.kernel_operand(x))
    found = [made.diagonal, made.beside]
    for side in (made.left, made.right):
        if side is not None:
            vectors, inverse = side
            _, m, k = vectors.shape
            found.append(vectors._replace(shape=(vectors.shape[0], k, m), strides=(k * m, m, 1)))
            found.append(inverse)
    return [core.result(f._replace(shape=(*batch, *f.shape[1:])), x.device) for f in found]


@Replayed.of_memory
def _reflected(xs: Sequence[Tensor], first: int, columns: int) -> list[Tensor]:
    """Apply reflectors that begin in row `first` to the first `columns` columns of [[X, 0], [0, I]]; returns the
    transpose.

    Operands: the reflectors' vectors (…, k, m - first) and 1 / tau (…, k), X^T (…, n, n).
    """
    v, inverse, x = (core.kernel_operand(t) for t in xs)
    backend = get_backend(xs[0].device)
    *batch, k, rows = v.shape
    count, n, m = layouts.numel(tuple(batch)), x.shape[-1], rows + first
    with backend.lock:
        made = parts.identity(backend, x.dtype, count, m, columns)
        corner = parts.part(made, (0, n), (0, n))
        turned = (*x.strides[:-2], x.strides[-1], x.strides[-2])
        parts.copy_into(backend, x._replace(strides=turned), corner)
        scales = inverse._replace(shape=(count, k), strides=(k, 1))
        blocks = qr.blocks_of(backend, parts.flat(v, k, rows), scales)
        below = parts.part(made, (first, m), (0, columns))
        qr.multiply(backend, blocks, below, adjoint=False)
    found = made._replace(shape=(*batch, columns, m))
    return [
        core.result(found._replace(strides=layouts.contiguous_strides(found.shape)), xs[0].device)
    ]


def scaled(A: Tensor) -> tuple[Tensor, Tensor]:
    """Divide matrices by powers of 2, so that squares of their elements neither overflow nor vanish; also return these
    powers (…, 1).
    """
    largest = A.abs().amax((-2, -1))
    bound = 100 if largest.dtype.itemsize == 4 else 1000
    exponent = FUNCTIONS["frexp"](largest)[1].clamp(-bound, bound)
    scale = FUNCTIONS["ldexp"](FUNCTIONS["ones_like"](largest), exponent).unsqueeze(-1)
    return A / scale.unsqueeze(-1), scale


@at_once
def _hermitian(xs: Sequence[Tensor], upper: bool) -> list[Tensor]:
    """Return the powers of 2 of `scaled`, and what `_condensed` returns for the matrices divided by them."""
    (A,) = xs
    low = (A.mH if upper else A).tril(-1)
    narrow, scale = scaled(low + low.mH + diag(diagonal(A).real))
    return [scale, *_condensed([narrow], True)]


@Replayed.of_memory
def _small(xs: Sequence[Tensor], upper: bool, vectors: bool) -> list[Tensor]:
    """Return eigenvalues of small symmetric matrices, a flag for each matrix that is not finite and, if `vectors`, the
    eigenvectors as rows.
    """
    (x,) = xs
    backend = get_backend(x.device)
    with backend.lock:
        found = jacobi.eigenvalues(backend, core.kernel_operand(x), upper, vectors)
    return [core.result(f, x.device) for f in found if f is not None]


@at_once
def _general(xs: Sequence[Tensor]) -> list[Tensor]:
    narrow, scale = scaled(xs[0])
    return [scale, *_condensed([narrow], False)]


def _in_order(rows: Tensor, order: Tensor, signs: Tensor | None, dtype: dtypes.dtype) -> Tensor:
    """Return vectors (sides, …, n, n), as rows, in the given order (…, n), the first side's multiplied by `signs`.

    The operand has rows laid out as by `rotations.begin`: padded.
    """
    *batch, n = order.shape
    rows = rows.narrow(-1, 0, n).reshape(-1, *batch, rows.shape[-2], n)
    if signs is not None:
        rows = rows * FUNCTIONS["stack"]([signs, FUNCTIONS["ones_like"](signs)]).unsqueeze(-1)
    order = order.unsqueeze(-1).expand(len(rows), *order.shape, n)
    return rows.gather(-2, order).to(dtype)


@at_once
def _sizes_in_order(xs: Sequence[Tensor], descending: bool) -> list[Tensor]:
    """Return sorted eigenvalues or, if `descending`, singular values, whose signs are dropped.

    Operands: values, powers of 2.
    """
    values, scale = xs
    values = values.abs() if descending else values
    return [values.sort(-1, descending=descending)[0] * scale]


@at_once
def _eigenvectors(xs: Sequence[Tensor], n: int, dtype: dtypes.dtype) -> list[Tensor]:
    """Return sorted eigenvalues (…, n), and the eigenvectors as rows.

    Operands: values (…, n or more, padding being the greatest), powers of 2, vectors as rows, reflectors.
    """
    values, scale, rows, *reflectors = xs
    values, order = (x.narrow(-1, 0, n) for x in values.sort(-1))
    x = _in_order(rows, order, None, dtype)[0]
    if n > 1:
        x = _reflected([*reflectors, x], 1, n)[0]
    return [values * scale, x.contiguous()]


@at_once
def _singular_vectors(
    xs: Sequence[Tensor], n: int, dtype: dtypes.dtype, columns: int, turned: bool
) -> list[Tensor]:
    """Return sorted singular values (…, n), the left vectors as rows, and the right ones as columns, conjugated.

    `turned`: the factorized matrix was A^H. The vectors of A's longer side (the right ones if `turned`, else the left
    ones) are completed to `columns` vectors. Operands: values, n with signs or (by divide and conquer) more than n
    without, powers of 2, right and left vectors as rows, the reflectors of the longer side, those of the shorter.
    """
    values, scale, rows, v, v_inverse, u, u_inverse = xs
    more = values.shape[-1] - n
    s, order = (x.narrow(-1, more, n) for x in values.abs().sort(-1, descending=True))
    signs = None if more else FUNCTIONS["where"](values < 0, -1.0, 1.0).to(values.dtype)
    right, left = _in_order(rows, order, signs, dtype)
    long, short = (right, left) if turned and not more else (left, right)
    long = _reflected([v, v_inverse, long], 0, columns)[0]
    if n > 1:
        short = _reflected([u, u_inverse, short], 1, n)[0]
    left, right = (short, long) if turned else (long, short)
    return [s * scale, left.contiguous(), right.conj().mT.contiguous()]


def eigh(A: Tensor, upper: bool, vectors: bool, function: str) -> tuple[Tensor, Tensor | None]:
    """Return the eigenvalues (…, n), ascending, and the eigenvectors (…, n, n) of Hermitian matrices, of which one triangle is read.

    LinAlgError names `function`.
    """
    with unrecorded():
        A = A.detach()
        if not A.numel():
            values = A.new_empty(A.shape[:-1], dtype=A.dtype.to_real())
            return values, A.new_empty(A.shape) if vectors else None
        n = A.shape[-1]
        if jacobi.fits(get_backend(A.device), A.dtype, A.numel() // (n * n), n):
            values, infinite, *rows = _small([A.contiguous()], upper, vectors)
            # Matrices that are not finite take the general way below, which raises the error.
            if A.is_meta or not infinite._host().any():
                return values, factors.by_columns(rows[0]) if vectors else None
        scale, values, beside, *reflectors = _hermitian([A], upper)
        if vectors and n >= conquer.MANY:
            values, rows = eigenvectors(values, beside, function)
        else:
            rows = diagonalized("eigenvalues", values, beside, vectors, function)
        if not vectors:
            return _sizes_in_order([values, scale], False)[0], None
        values, x = _eigenvectors([values, scale, rows, *reflectors], n, A.dtype)
    return values, factors.by_columns(x)


def svd(
    A: Tensor, full: bool, vectors: bool, function: str
) -> tuple[Tensor | None, Tensor, Tensor | None]:
    """Factorize A (…, m, n) = U diag(S) V^H, k = min(m, n): U (…, m, k), S (…, k), descending, and V^H (…, k, n); `full`: square U and V.

    LinAlgError names `function`. Without `vectors`, U and V^H are None.
    """
    (*batch, m, n), turned = A.shape, A.shape[-2] < A.shape[-1]
    long, short = max(m, n), min(m, n)
    with unrecorded():
        A = A.detach()
        if not A.numel():
            eyes = (FUNCTIONS["eye"](k, dtype=A.dtype, device=A.device) for k in (m, n))
            u, vh = (e.expand(*batch, *e.shape).contiguous() for e in eyes)
            s = A.new_empty((*batch, short), dtype=A.dtype.to_real())
            if not vectors:
                return None, s, None
            return (u, s, vh) if full else (u.narrow(-1, 0, short), s, vh.narrow(-2, 0, short))
        tall = A.mH if turned else A
        if long >= _LONG * short and long > short:
            return _of_long(tall, full, vectors, function, turned)
        scale, values, beside, *reflectors = _general([tall])
        if vectors and short >= conquer.MANY:
            values, rows = singular_vectors(values, beside, function)
        else:
            rows = diagonalized("singular_values", values, beside, vectors, function, turned)
        if not vectors:
            return None, _sizes_in_order([values, scale], True)[0], None
        given = [values, scale, rows, *reflectors]
        s, u, vh = _singular_vectors(given, short, A.dtype, long if full else short, turned)
    return factors.by_columns(u), s, factors.by_columns(vh)


def _of_long(
    tall: Tensor, full: bool, vectors: bool, function: str, turned: bool
) -> tuple[Tensor | None, Tensor, Tensor | None]:
    """Factorize `tall` = Q R by the singular values of R.

    If `turned`, `tall` is A^H, and the factors are those of A = R^H Q^H.
    """
    n = tall.shape[-1]
    q, r = factors.qr(tall, ("complete" if full else "reduced") if vectors else "r")
    square = r.narrow(-2, 0, n)
    u, s, vh = svd(square.mH if turned else square, False, vectors, function)
    if u is None or vh is None or q is None:
        return None, s, None
    product = q.narrow(-1, 0, n) @ (vh.mH if turned else u)
    if full:
        product = FUNCTIONS["cat"]([product, q.narrow(-1, n, q.shape[-1] - n)], -1)
    if turned:
        return u, s, factors.by_columns(product.conj().contiguous())
    return factors.by_columns(product.mT.contiguous()), s, vh
