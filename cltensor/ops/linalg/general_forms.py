"""Eigenvalues of matrices that are not Hermitian, by the kernels of `codegen.factor.schur`.

A matrix is balanced, reflectors make it Hessenberg, QR steps make it triangular, and eigenvectors of the triangular form are multiplied
back. Nothing here records gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...autograd.mode import unrecorded
from ...codegen.factor import parts, qr, schur
from ...codegen.operand import Operand
from ...runtime import get_backend
from .. import core
from ..composite import at_once
from ..core import Tensor
from ..replay import Replayed
from ..row import FUNCTIONS
from . import factors
from .diagonal_forms import scaled
from .diagonal_values import repeated, unconverged

# What `states` of the QR steps say of a matrix; 0 is done.
_UNFINISHED, _FAILED, _INFINITE = 1, 2, 3


def _matrices(x: Tensor) -> Operand:
    """View matrices stored by columns, [count, n, n or more], as column-major [count, n, n]."""
    count, n, _ = x.shape
    return parts.transposed(core.kernel_operand(x))._replace(shape=(count, n, n))


@Replayed.of_memory
def _reduced(xs: Sequence[Tensor], vectors: bool) -> list[Tensor]:
    """Balance matrices (…, n, n) and reduce them to Hessenberg form: return it, stored by columns [count, n, n or more],
    the states and values for the QR steps and, if `vectors`, Q, stored by columns [count, n, n], and the balancing's
    exchanges and scales [count, n].
    """
    backend, dev = get_backend(xs[0].device), xs[0].device
    with backend.lock:
        h, v, inverse, *balance = schur.hessenberg(backend, core.kernel_operand(xs[0]))
        count, n, _ = h.shape
        found = [h._replace(shape=(count, n, h.strides[2])), *schur.begin(backend, h)]
        if vectors:
            q = parts.identity(backend, h.dtype, count, n, n)
            below = parts.part(q, (1, n), (0, n))
            qr.multiply(backend, qr.blocks_of(backend, v, inverse), below, adjoint=False)
            found += [q, *balance]
    return [core.result(x, dev) for x in found]


@Replayed.of_memory
def _stepped(xs: Sequence[Tensor]) -> list[Tensor]:
    """Continue the QR steps in place, on what `_reduced` returns. Returns nothing."""
    h, states, values = xs[:3]
    backend = get_backend(h.device)
    with backend.lock:
        schur.go_on(
            backend,
            _matrices(h),
            core.kernel_operand(states),
            core.kernel_operand(values),
            _matrices(xs[3]) if len(xs) > 3 else None,
        )
    return []


@Replayed.of_memory
def _of_triangle(xs: Sequence[Tensor]) -> list[Tensor]:
    """Return the eigenvectors of triangular forms as [count, groups, n, width]."""
    h, values = xs
    backend = get_backend(h.device)
    with backend.lock:
        found = schur.back_substitute(backend, _matrices(h), core.kernel_operand(values))
    return [core.result(found, h.device)]


@at_once
def _eigenvectors(xs: Sequence[Tensor]) -> list[Tensor]:
    """Return eigenvectors of length 1, as rows [count, n, n]; their largest number is real.

    Operands: what `_reduced` returned, without the states, after the QR steps.
    """
    h, values, q, places, scales = xs
    n = values.shape[-1]
    x = _of_triangle([h, values])[0].transpose(1, 2).flatten(2).narrow(-1, 0, n)
    if q.dtype.is_complex:
        rows = x.mT @ q
    else:
        numbers = FUNCTIONS["view_as_real"](x.contiguous()).flatten(2)
        rows = FUNCTIONS["view_as_complex"]((q.mT @ numbers).unflatten(-1, (n, 2))).mT
    back = places.argsort(-1).unsqueeze(-2).expand(rows.shape)
    rows = (rows * scales.unsqueeze(-2)).gather(-1, back)
    size = rows.abs()
    most = size.amax(-1, keepdim=True)  # divided by it, no square overflows
    rows, size = rows / most, size / most
    length = size.square().sum(-1, keepdim=True).sqrt()
    here = FUNCTIONS["arange"](n, device=h.device) == size.argmax(-1, keepdim=True)
    largest = FUNCTIONS["where"](here, rows, 0.0).sum(-1, keepdim=True)
    phase = FUNCTIONS["where"](largest.imag == 0, FUNCTIONS["ones_like"](largest), largest.sgn())
    return [(rows * (phase.conj() / length)).contiguous()]


@at_once
def _begun(xs: Sequence[Tensor], vectors: bool) -> list[Tensor]:
    """Return the powers of 2 of `scaled`, and what `_reduced` returns for the matrices divided by them."""
    narrow, scale = scaled(xs[0])
    return [scale, *_reduced([narrow], vectors)]


def eig(A: Tensor, vectors: bool, function: str) -> tuple[Tensor, Tensor | None]:
    """Return the eigenvalues (…, n) of matrices (…, n, n), complex, in no order, and eigenvectors as columns.

    Errors name `function`. Waits for the device. Without `vectors`, the second is None.
    """
    with unrecorded():
        A = A.detach()
        *batch, n, _ = A.shape
        if not A.numel():
            made = A.new_empty(A.shape, dtype=A.dtype.to_complex())
            return made.new_empty(A.shape[:-1]), made if vectors else None
        scale, *found = _begun([A], vectors)
        h, states, values, *rest = found
        while True:
            _stepped(found[:4])
            if states.is_meta:
                break
            codes: Any = states._host()[:, 0]
            if (codes == _INFINITE).any():
                raise RuntimeError(
                    f"torch.{function}: input tensor should not contain infs or NaNs."
                )
            if (codes == _FAILED).any():
                where = int((codes == _FAILED).argmax()) if batch else None
                raise unconverged(f"torch.{function}", where, repeated("eigenvalues", n))
            if not (codes == _UNFINISHED).any():
                break
        rows = _eigenvectors([h, values, *rest])[0].view(*batch, n, n) if vectors else None
        values = values.view(*batch, n) * scale
    return values, None if rows is None else factors.by_columns(rows)
