"""Products added to another tensor: addmm, addmv, addr, baddbmm, addbmm and their in-place forms.

Owns their checks, scales and gradients; the gradients are composed of the plain products. Must not know broadcasting
matmul.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import layouts
from ..autograd import record as graph
from ..autograd.hooks import type_string
from ..autograd.mode import unrecorded
from ..dtypes import C_NAMES, dtype
from . import core, writes
from .core import Tensor
from .dense import run
from .operands import check_tensor, check_tensors, refuse_bool, same_device
from .products import (
    adjoint,
    bmm,
    check_batches,
    check_bmm,
    check_inner,
    check_mv,
    column,
    gradients_at_once,
    multiplied,
    mv,
    other_factors,
    outer,
    pushed,
    reshaped,
    second_gradient,
)
from .row import public, with_inplace
from .values import check_value, conj, into


def _expandable(input: Tensor, shape: tuple[int, ...]) -> None:
    """Raise torch's errors of `expand` for a tensor that does not broadcast to the product."""
    layouts.expand(input.shape, input._strides, input._offset, shape)


def _scaled(x: Tensor, factor: Any) -> Tensor:
    return x if factor == 1 else x * conj(factor)


def _check_addmm(input: Any, mat1: Any, mat2: Any) -> None:
    check_tensors("addmm", ("input", "mat1", "mat2"), input, mat1, mat2)
    if len(mat1.shape) != 2:
        raise RuntimeError(f"mat1 must be a matrix, got {mat1.ndim}-D tensor")
    if len(mat2.shape) != 2:
        raise RuntimeError(f"mat2 must be a matrix, got {mat2.ndim}-D tensor")
    check_inner(mat1, mat2)
    if input.dtype is not mat2.dtype:
        raise RuntimeError(
            f"self and mat2 must have the same dtype, but got {input.dtype.scalar_name} and {mat2.dtype.scalar_name}"
        )
    if mat1.dtype is not mat2.dtype:
        raise RuntimeError(
            f"mat1 and mat2 must have the same dtype, but got {mat1.dtype.scalar_name} and {mat2.dtype.scalar_name}"
        )
    refuse_bool(mat1.dtype, "addmm_impl_cpu_")
    same_device(input, mat1, mat2)
    (m, _), (_, n) = mat1.shape, mat2.shape
    if input.shape == (n,):  # most calls
        return
    if input.ndim > 2:
        layouts.expand_shape(input.shape, (m, n), type_string(input))  # raises
    _expandable(input, (m, n))


@public()
def addmm(
    input: Tensor,
    mat1: Tensor,
    mat2: Tensor,
    out_dtype: dtype | None = None,
    *,
    beta: Any = 1,
    alpha: Any = 1,
    out: Tensor | None = None,
) -> Tensor:
    """Compute `beta * input + alpha * (mat1 @ mat2)` in one kernel; the input broadcasts to [M, N]."""
    if out_dtype is not None:
        input, mat1, mat2 = (x.to(out_dtype) for x in (input, mat1, mat2))
    _check_addmm(input, mat1, mat2)
    value = added(input, mat1, mat2, alpha, beta)
    return value if out is None else into(value, out, "addmm", (input, mat1, mat2))


def added(input: Tensor, mat1: Tensor, mat2: Tensor, alpha: Any = 1, beta: Any = 1) -> Tensor:
    """Return what `addmm` does, for operands that are known to fit."""
    value = run(mat1, mat2, input, alpha, beta)
    if graph.needs_grad(input, mat1, mat2):
        saved = {**other_factors(mat1, mat2, "mat1", "mat2"), "alpha": alpha, "beta": beta}
        saved["mat2_sym_strides"] = mat2._strides
        graph.record("AddmmBackward0", (input, mat1, mat2), value, _addmm_back, saved, _addmm_push)
    return value


def _shares(
    ctx: Any, g: Tensor, first: Callable[[], Tensor], second: Callable[[], Tensor]
) -> tuple:
    """Return the gradients of `beta * input + alpha * (a @ b)` by input, a and b; None for those that are not needed.

    first, second: compute the gradients of a and b without the factor alpha.
    """
    s, a, b = ctx.needs
    alpha, beta = ctx.alpha, ctx.beta
    shares = (g if s else None, first() if a else None, second() if b else None)
    if alpha == 1 and beta == 1:
        return shares
    factors = (beta, alpha, alpha)
    return tuple([v if v is None else _scaled(v, f) for v, f in zip(shares, factors, strict=True)])


def _sum_pushed(ctx: Any, out: Tensor, x: Any, product: Any) -> Any:
    """Return the tangent of `beta * input + alpha * product` from the tangents of its parts (None: no tangent)."""
    if product is not None and ctx.alpha != 1:
        product = product * ctx.alpha
    if x is not None:
        x = (x if ctx.beta == 1 else x * ctx.beta).expand(out.shape)
    return x if product is None else product if x is None else x + product


def _addmm_push(ctx: Any, out: Tensor, x: Any, a: Any, b: Any) -> Any:
    return _sum_pushed(ctx, out, x, pushed(multiplied, a, ctx.mat2, ctx.mat1, b))


def _baddbmm_push(ctx: Any, out: Tensor, x: Any, a: Any, b: Any) -> Any:
    return _sum_pushed(ctx, out, x, pushed(bmm, a, ctx.batch2, ctx.batch1, b))


def _addmm_back(ctx: Any, g: Tensor) -> tuple:
    by_input, by_a, by_b = ctx.needs
    a, b, strides = ctx.mat1 if by_b else None, ctx.mat2 if by_a else None, ctx.mat2_sym_strides
    if ctx.alpha == 1 and ctx.beta == 1:
        # A bias of one number for each column, as a layer has it, gets its gradient in the same call.
        total = by_input and ctx.shapes[0] == g.shape[1:]
        found = gradients_at_once(g, a, b, strides, total)
        if found is not None:
            return (found[2] if total else g if by_input else None, *found[:2])
    return _shares(
        ctx,
        g,
        lambda: multiplied(g, adjoint(b)),
        lambda: second_gradient(a, g, strides),
    )


@public()
def addmv(
    input: Tensor,
    mat: Tensor,
    vec: Tensor,
    *,
    beta: Any = 1,
    alpha: Any = 1,
    out: Tensor | None = None,
) -> Tensor:
    """Compute `beta * input + alpha * (mat @ vec)`; the input broadcasts to [M]."""
    for i, (name, x) in enumerate((("input", input), ("mat", mat), ("vec", vec))):
        check_tensor("addmv", name, i + 1, x)
    check_mv(input, mat, vec)
    bias = input.detach().expand((mat.shape[0],))
    value = reshaped(run(mat, column(vec), column(bias), alpha, beta), (mat.shape[0],))
    if graph.needs_grad(input, mat, vec):
        saved = {**other_factors(mat, vec, "mat", "vec"), "alpha": alpha, "beta": beta}
        graph.record("AddmvBackward0", (input, mat, vec), value, _addmv_back, saved)
    return value if out is None else into(value, out, "addmv", (input, mat, vec))


def _addmv_back(ctx: Any, g: Tensor) -> tuple:
    return _shares(ctx, g, lambda: outer(g, conj(ctx.vec)), lambda: mv(adjoint(ctx.mat), g))


@public()
def addr(
    input: Tensor,
    vec1: Tensor,
    vec2: Tensor,
    *,
    beta: Any = 1,
    alpha: Any = 1,
    out: Tensor | None = None,
) -> Tensor:
    """Compute `beta * input + alpha * outer(vec1, vec2)`; the input broadcasts to [N, M], dtypes promote."""
    for i, (name, x) in enumerate((("input", input), ("vec1", vec1), ("vec2", vec2))):
        check_tensor("addr", name, i + 1, x)
    if vec1.ndim != 1 or vec2.ndim != 1:
        raise RuntimeError(
            f"addr: Expected 1-D argument vec{1 if vec1.ndim != 1 else 2}, but got {(vec1 if vec1.ndim != 1 else vec2).ndim}-D"
        )
    _expandable(input, (vec1.shape[0], vec2.shape[0]))
    dt = core.result_type((input, vec1, vec2))
    for name, factor in (("beta", beta), ("alpha", alpha)):
        if factor.__class__ in (float, complex) and dt.category < 2:
            raise RuntimeError(
                f"For integral input tensors, argument {name} must not be a floating point number."
            )
        if factor.__class__ is bool and dt.category:
            raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
        check_value(factor, dt)
    with unrecorded():
        value = outer(vec1, vec2)
        if alpha != 1:
            value = value * alpha
        if beta != 0:
            value = value + (input if beta == 1 else input * beta)
        value = value.to(dt)
    if graph.needs_grad(input, vec1, vec2):
        saved = {**other_factors(vec1, vec2, "vec1", "vec2"), "alpha": alpha, "beta": beta}
        graph.record("AddrBackward0", (input, vec1, vec2), value, _addr_back, saved)
    return value if out is None else writes.deliver(value, out, "addr", (input, vec1, vec2))


def _addr_back(ctx: Any, g: Tensor) -> tuple:
    return _shares(ctx, g, lambda: mv(g, conj(ctx.vec2)), lambda: mv(g.t(), conj(ctx.vec1)))


@public()
def baddbmm(
    input: Tensor,
    batch1: Tensor,
    batch2: Tensor,
    out_dtype: dtype | None = None,
    *,
    beta: Any = 1,
    alpha: Any = 1,
    out: Tensor | None = None,
) -> Tensor:
    """Compute `beta * input + alpha * bmm(batch1, batch2)` in one kernel; the input broadcasts to [B, M, N]."""
    for i, (name, x) in enumerate((("input", input), ("batch1", batch1), ("batch2", batch2))):
        check_tensor("baddbmm", name, i + 1, x)
    if out_dtype is not None:
        input, batch1, batch2 = (x.to(out_dtype) for x in (input, batch1, batch2))
    check_batches(batch1, batch2)
    shape = (*batch1.shape[:2], batch2.shape[2])
    _expandable(input, shape)
    if input.dtype is not batch1.dtype or batch1.dtype is not batch2.dtype:
        names = [C_NAMES[x.dtype.name] for x in (input, batch1, batch2)]
        raise RuntimeError(
            f"Input dtypes must be the same, got: input {names[0]}, batch1: {names[1]}, batch2: {names[2]}"
        )
    refuse_bool(batch1.dtype, "baddbmm")
    same_device(input, batch1, batch2)
    value = run(batch1, batch2, input, alpha, beta)
    if graph.needs_grad(input, batch1, batch2):
        saved = {**other_factors(batch1, batch2, "batch1", "batch2"), "alpha": alpha, "beta": beta}
        graph.record(
            "BaddbmmBackward0", (input, batch1, batch2), value, _baddbmm_back, saved, _baddbmm_push
        )
    return value if out is None else into(value, out, "baddbmm", (input, batch1, batch2))


def _baddbmm_back(ctx: Any, g: Tensor) -> tuple:
    return _shares(ctx, g, lambda: bmm(g, adjoint(ctx.batch2)), lambda: bmm(adjoint(ctx.batch1), g))


@public()
def addbmm(
    input: Tensor,
    batch1: Tensor,
    batch2: Tensor,
    *,
    beta: Any = 1,
    alpha: Any = 1,
    out: Tensor | None = None,
) -> Tensor:
    """Compute `beta * input + alpha * (sum over the batch of batch1 @ batch2)`; one product over batch and K together."""
    for i, (name, x) in enumerate((("input", input), ("batch1", batch1), ("batch2", batch2))):
        check_tensor("addbmm", name, i + 1, x)
    if batch1.ndim != 3:
        raise RuntimeError("batch1 must be a 3D tensor")
    if batch2.ndim != 3:
        raise RuntimeError("batch2 must be a 3D tensor")
    b, m, k = batch1.shape
    if batch2.shape[0] != b:
        raise RuntimeError(
            f"batch1 and batch2 must have same number of batches, got {b} and {batch2.shape[0]}"
        )
    if batch2.shape[1] != k:
        raise RuntimeError(
            f"Incompatible matrix sizes for bmm ({m}x{k} and {batch2.shape[1]}x{batch2.shape[2]})"
        )
    _expandable(input, (m, batch2.shape[2]))
    if input.dtype is not batch2.dtype:
        raise RuntimeError(
            f"self and mat2 must have the same dtype, but got {input.dtype.scalar_name} and {batch2.dtype.scalar_name}"
        )
    check_bmm(batch1, batch2)
    same_device(input, batch1)
    with unrecorded():
        wide = batch1.transpose(0, 1).reshape(m, b * k)
        tall = batch2.reshape(b * k, batch2.shape[2])
    value = run(wide, tall, input, alpha, beta)
    if graph.needs_grad(input, batch1, batch2):
        saved = {**other_factors(batch1, batch2, "batch1", "batch2"), "alpha": alpha, "beta": beta}
        graph.record("AddbmmBackward0", (input, batch1, batch2), value, _addbmm_back, saved)
    return value if out is None else into(value, out, "addbmm", (input, batch1, batch2))


def _addbmm_back(ctx: Any, g: Tensor) -> tuple:
    s, a, b = ctx.needs
    alpha, batches = ctx.alpha, ctx.shapes[1][0]
    wide = g.unsqueeze(0).expand(batches, *g.shape)
    return (
        _scaled(g, ctx.beta) if s else None,
        _scaled(bmm(wide, adjoint(ctx.batch2)), alpha) if a else None,
        _scaled(bmm(adjoint(ctx.batch1), wide), alpha) if b else None,
    )


def _inplace(name: str, fn: Any) -> None:
    def checked(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        value = fn(self, *args, **kwargs)
        if value.shape != self.shape:
            raise RuntimeError(
                f"Bad in-place call: input tensor size {list(self.shape)} and output tensor size {list(value.shape)} should match"
            )
        return value

    with_inplace(name, checked)


for _name, _fn in (
    ("addmm", addmm),
    ("addmv", addmv),
    ("addr", addr),
    ("baddbmm", baddbmm),
):
    _inplace(_name, _fn)


@public("addbmm_", function=False)
def _addbmm_inplace(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """In-place form of `addbmm`; `self` may broadcast and is then resized to the result's shape."""
    return writes.assign(self, lambda x: addbmm(x, *args, **kwargs), resize=True)
