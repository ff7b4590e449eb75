"""The QR factorization, and Householder reflectors by themselves, with their gradients.

The factorization is a kernel's (see factors.py); gradients are formulas over tensors, so they are differentiable again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...autograd import dual
from ...autograd import record as graph
from ...autograd.engine import grad
from ...autograd.mode import enable_grad, is_grad_enabled, unrecorded
from ...errors import warn_once
from .. import writes
from ..core import Tensor
from ..dims import check_flag
from ..row import FUNCTIONS, public
from . import factors
from .matrices import adjoint, check_float, check_matrix, diag, diagonal, named, tril, triu
from .solve import deliver_all, solve_triangular

Qr = named("qr", "Q", "R")
LinalgQr = named("linalg_qr", "Q", "R")


def _qr(A: Tensor, mode: Any) -> tuple[Tensor, Tensor]:
    check_matrix(A, "linalg.qr")
    check_float(A, "linalg.qr", "geqrf_cpu")
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    found, r = factors.qr(A, mode)
    q = A.new_empty(0) if found is None else found
    if graph.needs_grad(A):
        graph.record("LinalgQrBackward0", (A,), (q, r), _qr_back, {"Q": q, "R": r, "mode": mode})
    return q, r


def _copy_up(x: Tensor) -> Tensor:
    """Return X + X^H for an upper triangle X, with the diagonal real and not doubled."""
    d = diagonal(x)
    strict = triu(x, 1)
    return strict + adjoint(strict) + diag(d.real if d.dtype.is_complex else d)


def _qr_back(ctx: Any, gq: Tensor, gr: Tensor) -> Tensor:
    q, r, mode = ctx.Q, ctx.R, ctx.mode
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, mode='reduced') if you are going to differentiate through linalg.qr."
        )
    m, n = ctx.shapes[0][-2:]
    if mode == "complete" and m > n:
        raise RuntimeError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols."
        )
    if m >= n:
        return _square_qr_back(q, r, gq, gr)
    # Wide: A = [X | Y] with X = Q U the square case and Y = Q V.
    u, v = r.narrow(-1, 0, m), r.narrow(-1, m, n - m)
    gu, gv = gr.narrow(-1, 0, m), gr.narrow(-1, m, n - m)
    gx = _square_qr_back(q, u, gq + (q @ v) @ adjoint(gv), gu)
    return FUNCTIONS["cat"]((gx, q @ gv), -1)


def _square_qr_back(q: Tensor, r: Tensor, gq: Tensor, gr: Tensor) -> Tensor:
    inner = _copy_up(triu(gr @ adjoint(r) - adjoint(q) @ gq))
    return solve_triangular(adjoint(r), gq + q @ inner, upper=False, left=False)


def linalg_qr(A: Tensor, mode: str = "reduced", *, out: Sequence[Tensor] | None = None) -> Any:
    """Factorize A = Q R: mode "reduced", "complete" (square Q) or "r" (no Q)."""
    return LinalgQr(deliver_all(_qr(A, mode), out, "linalg_qr", (A,)))


@public()
def qr(input: Tensor, some: bool = True, *, out: Sequence[Tensor] | None = None) -> Any:
    """Factorize input = Q R (deprecated in favour of linalg.qr)."""
    check_flag("qr", "some", some, 2)
    warn_once(
        "torch.qr is deprecated in favor of torch.linalg.qr and will be removed in a future PyTorch release.\n"
        "The boolean parameter 'some' has been replaced with a string parameter 'mode'.\n"
        "Q, R = torch.qr(A, some)\nshould be replaced with\nQ, R = torch.linalg.qr(A, 'reduced' if some else 'complete')"
    )
    return Qr(deliver_all(_qr(input, "reduced" if some else "complete"), out, "qr", (input,)))


# ------------------------------------------------------------------------------------------- Householder reflectors

Geqrf = named("geqrf", "a", "tau")


@public()
def geqrf(input: Tensor, *, out: Sequence[Tensor] | None = None) -> Any:
    """Factorize into R (upper triangle) and Householder vectors (below it), with their factors tau."""
    if input.ndim < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    check_float(input, "", "geqrf_cpu")
    values = factors.geqrf(input.detach())
    if graph.needs_grad(input):
        graph.record("GeqrfBackward0", (input,), values, _geqrf_back)
    return Geqrf(deliver_all(values, out, "geqrf", (input,)))


def _geqrf_back(ctx: Any, *_: Any) -> None:
    raise NotImplementedError("the derivative for 'geqrf' is not implemented.")


def _recorded(
    value: Tensor, node: str, fn: Callable[..., Tensor], inputs: tuple[Tensor, ...]
) -> Tensor:
    """Record a value as one node, whose backward computes the value again by `fn`, a chain of differentiable ops, and
    differentiates that.
    """
    if graph.needs_grad(*inputs):
        saved = {f"input{i}": x for i, x in enumerate(inputs)}

        def back(ctx: Any, g: Tensor) -> tuple:
            again = is_grad_enabled()
            xs = [dual.again(getattr(ctx, name)) for name in saved]
            with enable_grad():
                result = fn(*xs)
            if not result.requires_grad:  # without a reflector, the result depends on no input
                return (None,) * len(xs)
            return grad(result, xs, g, create_graph=again, allow_unused=True)

        graph.record(node, inputs, value, back, saved)
    return value


def _reflect(q: Tensor, v: Tensor, tau: Tensor) -> Tensor:
    """(I - tau v v^H) Q."""
    return q - tau * (v @ (adjoint(v) @ q))


def _reflectors(A: Tensor, tau: Tensor) -> list[tuple[Tensor, Tensor]]:
    m, k = A.shape[-2], tau.shape[-1]
    vectors = tril(A.narrow(-1, 0, k), -1) + FUNCTIONS["eye"](m, k, dtype=A.dtype, device=A.device)
    return [(vectors.narrow(-1, i, 1), tau.narrow(-1, i, 1).unsqueeze(-1)) for i in range(k)]


def _householder(A: Tensor, tau: Tensor) -> Tensor:
    q = FUNCTIONS["eye"](A.shape[-2], A.shape[-1], dtype=A.dtype, device=A.device).expand(A.shape)
    for v, t in reversed(_reflectors(A, tau)):
        q = _reflect(q, v, t)
    return q


def householder_product(A: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the first columns of the product of Householder reflectors, as `geqrf` leaves them."""
    if A.ndim < 2:
        raise RuntimeError(
            "torch.linalg.householder_product: input must have at least 2 dimensions."
        )
    if A.shape[-2] < A.shape[-1]:
        raise RuntimeError(
            "torch.linalg.householder_product: input.shape[-2] must be greater than or equal to input.shape[-1]"
        )
    if tau.ndim == 0:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")
    if A.shape[-1] < tau.shape[-1]:
        raise RuntimeError(
            "torch.linalg.householder_product: input.shape[-1] must be greater than or equal to tau.shape[-1]"
        )
    if tau.ndim != A.ndim - 1:
        raise RuntimeError(
            "torch.linalg.householder_product: Expected tau to have one dimension less than input, but got tau.ndim equal to "
            f"{tau.ndim} and input.ndim is equal to {A.ndim}"
        )
    if tau.shape[:-1] != A.shape[:-2]:
        raise RuntimeError(
            "torch.linalg.householder_product: Expected batch dimensions of tau to be equal to input.shape[:-2], but got "
            f"{list(tau.shape[:-1])}"
        )
    if A.dtype is not tau.dtype:
        raise RuntimeError(
            f"torch.linalg.householder_product: tau dtype {tau.dtype.scalar_name} does not match input dtype {A.dtype.scalar_name}"
        )
    check_float(A, "", "orgqr_cpu")
    return writes.deliver(
        _recorded(
            factors.reflected(A, tau), "LinalgHouseholderProductBackward0", _householder, (A, tau)
        ),
        out,
        "linalg_householder_product",
        (A, tau),
    )


@public("orgqr")
def orgqr(input: Tensor, input2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the first n columns (…, m, n) of a product of k Householder reflectors.

    The reflectors are as `geqrf` returns them: vectors (…, m, n) and factors (…, k), m >= n >= k.
    """
    return householder_product(input, input2, out=out)


def _check_reflectors(input: Tensor, tau: Tensor, other: Tensor, side: int) -> None:
    """Raise torch's errors for operands of `ormqr` that do not fit, in the order torch checks."""
    for name, x in (("input", input), ("other", other)):
        if x.ndim < 2:
            raise RuntimeError(f"torch.ormqr: {name} must have at least 2 dimensions.")
    if other.shape[side] != input.shape[-2]:
        raise RuntimeError(f"torch.ormqr: other.shape[{side}] must be equal to input.shape[-2]")
    if not tau.ndim:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")
    if tau.shape[-1] != min(other.shape[side], input.shape[-1]):
        raise RuntimeError(
            f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])"
        )
    if tau.ndim != input.ndim - 1:
        raise RuntimeError(
            f"torch.ormqr: Expected tau to have one dimension less than input, but got tau.ndim equal to {tau.ndim} and input.ndim is equal to {input.ndim}"
        )
    if other.ndim != input.ndim:
        raise RuntimeError(
            f"torch.ormqr: Expected other to have the same number of dimensions as input, but got other.ndim equal to {other.ndim} and input.ndim is equal to {input.ndim}"
        )
    batch = tuple(input.shape[:-2])
    for name, own in (("tau", tuple(tau.shape[:-1])), ("other", tuple(other.shape[:-2]))):
        if own != batch:
            raise RuntimeError(
                f"torch.ormqr: Expected batch dimensions of {name} to be equal to input.shape[:-2], but got {list(own)}"
            )
    for name, x in (("tau", tau), ("other", other)):
        if x.dtype is not input.dtype:
            raise RuntimeError(
                f"torch.ormqr: Expected input and {name} to have the same dtype, but input has dtype{input.dtype.scalar_name} and {name} has dtype {x.dtype.scalar_name}"
            )
    check_float(input, "", "ormqr_cpu")


@public()
def ormqr(
    input: Tensor,
    tau: Tensor,
    other: Tensor,
    left: bool = True,
    transpose: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Multiply by the square matrix of Householder reflectors, or its adjoint, from the left or right."""
    _check_reflectors(input, tau, other, -2 if left else -1)

    def product(a: Tensor, tau: Tensor, c: Tensor) -> Tensor:
        x = c if left else adjoint(c)
        flip = transpose if left else not transpose
        factors = _reflectors(a, tau)
        for v, t in factors if flip else reversed(factors):
            x = _reflect(x, v, t.conj() if flip else t)
        return x if left else adjoint(x)

    with unrecorded():
        given = other.detach() if left else adjoint(other.detach())
        value = factors.reflected(input, tau, given, transpose if left else not transpose)
        value = value if left else factors.by_columns(adjoint(value).mT.contiguous())
    value = _recorded(value, "OrmqrBackward0", product, (input, tau, other))
    return writes.deliver(value, out, "ormqr", (input, tau, other))
