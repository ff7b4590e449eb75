"""The products of two factors that have a kernel: matrix by matrix, by vector, dot products.

Owns their checks and gradients. Must not know the forms that add to another tensor (added_products.py), nor broadcasting matmul,
both made of these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from ..autograd import record as graph
from ..dtypes import C_NAMES, dtype
from ..dtypes import bool as boolean
from . import core, writes
from .composite import placed, present, replayable
from .core import Tensor
from .dense import WAITS, by_vector, run
from .operands import check_tensor, check_tensors, refuse_bool, same_device, same_dtype
from .reducing import accumulator
from .reducing import run as reduce_run
from .replay import Replayed
from .row import public
from .shape import t
from .values import conj, into


def check_inner(mat1: Tensor, mat2: Tensor) -> None:
    """Raise torch's error for matrices that do not fit."""
    (m, k), (rows, n) = mat1.shape, mat2.shape
    if k != rows:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({m}x{k} and {rows}x{n})")


def adjoint(x: Tensor) -> Tensor:
    """Conjugate and transpose matrices."""
    turned = t(x) if len(x.shape) == 2 else x.transpose(-2, -1)
    return turned.conj() if x.dtype.category == 3 else turned


def other_factors(
    a: Tensor, b: Tensor, first: str = "self", second: str = "mat2"
) -> dict[str, Any]:
    """Return the factors to save for backward: each operand's gradient needs the other operand."""
    return {first: a if graph.needs_grad(b) else None, second: b if graph.needs_grad(a) else None}


@public()
def mm(
    input: Tensor, mat2: Tensor, out_dtype: dtype | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Multiply [M, K] by [K, N]; no broadcasting. RuntimeError for other ranks, sizes that differ, dtypes that differ."""
    tensor = core.Registry.tensor
    if input.__class__ is not tensor or mat2.__class__ is not tensor:
        check_tensors("mm", ("input", "mat2"), input, mat2)
    if len(input.shape) != 2:
        raise RuntimeError("self must be a matrix")
    if len(mat2.shape) != 2:
        raise RuntimeError("mat2 must be a matrix")
    check_inner(input, mat2)
    if out_dtype is not None:
        input, mat2 = input.to(out_dtype), mat2.to(out_dtype)
    _check_factors(input.dtype, mat2.dtype)
    if input.device is not mat2.device:
        same_device(input, mat2)
    value = multiplied(input, mat2)
    return value if out is None else into(value, out, "mm", (input, mat2))


def multiplied(a: Tensor, b: Tensor, waits: bool = True) -> Tensor:
    """Multiply matrices that are known to fit; `waits`: the product may stay pending."""
    value = run(a, b, waits=waits)
    if graph.needs_grad(a, b):
        saved = {**other_factors(a, b), "mat2_sym_strides": b._strides}
        graph.record("MmBackward0", (a, b), value, _mm_back, saved, _mm_push)
    return value


def pushed(fn: Callable, a: Any, b: Any, c: Any, d: Any) -> Tensor | None:
    """Return a product's tangent, fn(a, b) + fn(c, d); a and d are the factors' tangents, None if there is none."""
    if a is None or d is None:
        return fn(c, d) if d is not None else None if a is None else fn(a, b)
    return fn(a, b) + fn(c, d)


def _mm_push(ctx: Any, out: Tensor, a: Any, b: Any) -> Any:
    return pushed(multiplied, a, ctx.mat2, ctx.self, b)


def _mm_back(ctx: Any, g: Tensor) -> tuple:
    by_a, by_b = ctx.needs
    a, b, strides = ctx.self if by_b else None, ctx.mat2 if by_a else None, ctx.mat2_sym_strides
    return gradients_at_once(g, a, b, strides) or gradients(g, a, b, strides)


def gradients(g: Tensor, a: Tensor | None, b: Tensor | None, strides: tuple[int, ...]) -> tuple:
    """Return the gradients of `a @ b` by a and by b from that of the product, g; None for a factor whose partner is None.

    strides: those of b, also where b is None.
    """
    return (
        None if b is None else multiplied(g, adjoint(b)),
        None if a is None else second_gradient(a, g, strides),
    )


def gradients_at_once(
    g: Tensor,
    a: Tensor | None,
    b: Tensor | None,
    strides: tuple[int, ...],
    total: bool = False,
) -> tuple | None:
    """Return what `gradients` returns, with `total` followed by the sum of the rows of g, from one replayed call.

    If the products are large, that by a is computed apart, since it may stay pending. None where single ops are
    recorded or observed.
    """
    if g.dtype.category != 2 or not g._strided or graph.needs_grad(g, a, b):
        return None
    given, there = present((g, a, b))
    if not replayable(given):
        return None
    columns = strides[0] == 1 != strides[1]
    if b is None or prod(g.shape) * b.shape[0] < WAITS:
        return tuple(_gradients(given, there, columns, total))
    by_a = multiplied(g, adjoint(b))
    if a is None and not total:
        return by_a, None
    return by_a, *_gradients(*present((g, a, None)), columns, total)[1:]


@Replayed.of_memory
def _gradients(
    given: Sequence[Tensor], there: tuple[bool, ...], columns: bool, total: bool
) -> list[Tensor | None]:
    """Return the gradients of the factors, and with `total` the sum of the rows of g. columns: the second one lies by
    columns.
    """
    g, a, b = placed(given, there)
    found = [*gradients(g, a, b, (1, 2) if columns else (2, 1))]
    if total:
        dt = g.dtype
        found += reduce_run("sum", g, (0,), accumulator(dt), (("value", dt),))
    return found


def second_gradient(first: Tensor, g: Tensor, strides: tuple[int, ...]) -> Tensor:
    """Return first^H @ g in the memory order of the second factor, so that the gradient of a transposed weight needs no
    copy.

    The product does not stay pending: nobody may read the gradient before the optimiser does, and a pending product
    keeps its operands alive.
    """
    if strides[0] == 1 != strides[1]:
        return t(multiplied(t(g), conj(first), waits=False))
    return multiplied(adjoint(first), g, waits=False)


def check_batches(batch1: Tensor, batch2: Tensor) -> None:
    """Raise torch's errors for batches of matrices that do not fit."""
    if batch1.ndim != 3:
        raise RuntimeError("batch1 must be a 3D tensor")
    if batch2.ndim != 3:
        raise RuntimeError("batch2 must be a 3D tensor")
    b, _, k = batch1.shape
    if batch2.shape[0] != b or batch2.shape[1] != k:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{b}, {k}] but got: [{batch2.shape[0]}, {batch2.shape[1]}]."
        )


@public()
def bmm(
    input: Tensor, mat2: Tensor, out_dtype: dtype | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Multiply [B, M, K] by [B, K, N], matrix by matrix."""
    check_tensors("bmm", ("input", "mat2"), input, mat2)
    check_batches(input, mat2)
    if out_dtype is not None:
        input, mat2 = input.to(out_dtype), mat2.to(out_dtype)
    check_bmm(input, mat2)
    value = record_bmm(run(input, mat2), input, mat2)
    return value if out is None else into(value, out, "bmm", (input, mat2))


def check_bmm(input: Tensor, mat2: Tensor) -> None:
    """Raise torch's errors for dtypes and devices of a batched product; torch has a kernel of its own for small ones."""
    if input.dtype is not mat2.dtype or input.dtype is boolean:
        if input.shape[-2:].numel() * (mat2.shape[-1] if mat2.ndim > 1 else 1) < 400:
            refuse_bool(input.dtype, "bmm")
            same_dtype(input, mat2)
        _check_factors(input.dtype, mat2.dtype)
    if input.device is not mat2.device:
        same_device(input, mat2)


def _check_factors(first: dtype, second: dtype) -> None:
    if first is not second:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {C_NAMES[first.name]} != {C_NAMES[second.name]}"
        )
    if first is boolean:
        refuse_bool(first, "addmm_impl_cpu_")


def record_bmm(value: Tensor, input: Tensor, mat2: Tensor) -> Tensor:
    """Give a batched product its history."""
    if graph.needs_grad(input, mat2):
        saved = other_factors(input, mat2)
        graph.record("BmmBackward0", (input, mat2), value, _bmm_back, saved, _bmm_push)
    return value


def _bmm_push(ctx: Any, out: Tensor, a: Any, b: Any) -> Any:
    return pushed(bmm, a, ctx.mat2, ctx.self, b)


def _bmm_back(ctx: Any, g: Tensor) -> tuple:
    a, b = ctx.needs
    return (bmm(g, adjoint(ctx.mat2)) if a else None, bmm(adjoint(ctx.self), g) if b else None)


def check_mv(name: Tensor | None, mat: Tensor, vec: Tensor) -> None:
    """Raise torch's errors for a matrix, a vector and maybe a tensor to add to that do not fit."""
    if len(mat.shape) != 2 or len(vec.shape) != 1:
        raise RuntimeError(
            f"vector + matrix @ vector expected, got {1 if name is None else name.ndim}, {mat.ndim}, {vec.ndim}"
        )
    rows = mat.shape[0] if name is None or name.ndim != 1 else name.shape[0]
    if mat.shape[1] != vec.shape[0] or (rows != mat.shape[0] and rows != 1):
        raise RuntimeError(
            f"size mismatch, got input ({rows}), mat ({mat.shape[0]}x{mat.shape[1]}), vec ({vec.shape[0]})"
        )
    first = vec if name is None else name
    if mat.dtype is not vec.dtype or first.dtype is not mat.dtype:
        raise RuntimeError(
            f"addmv input tensors must have the same dtype, but got {first.dtype.scalar_name}, {mat.dtype.scalar_name}, and {vec.dtype.scalar_name}"
        )
    refuse_bool(mat.dtype, "addmv_impl_cpu")
    same_device(mat, vec, first)


def column(x: Tensor) -> Tensor:
    """Return a vector as a matrix of one column, without history."""
    return core.make(x._storage, (*x.shape, 1), x.dtype, x.device, (*x._strides, 1), x._offset)


def _row(x: Tensor) -> Tensor:
    return core.make(
        x._storage, (1, *x.shape), x.dtype, x.device, (max(x.shape[0], 1), *x._strides), x._offset
    )


def reshaped(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return a new contiguous result in another shape, without history."""
    return core.make(x._storage, shape, x.dtype, x.device)


@public()
def mv(input: Tensor, vec: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Multiply a matrix [M, K] by a vector [K]."""
    check_tensors("mv", ("input", "vec"), input, vec)
    check_mv(None, input, vec)
    value = by_vector(input, vec)
    if graph.needs_grad(input, vec):
        graph.record(
            "MvBackward0", (input, vec), value, _mv_back, other_factors(input, vec, "self", "vec")
        )
    return value if out is None else into(value, out, "mv", (input, vec))


def _mv_back(ctx: Any, g: Tensor) -> tuple:
    a, b = ctx.needs
    return (outer(g, conj(ctx.vec)) if a else None, mv(adjoint(ctx.self), g) if b else None)


def _check_dot(a: Any, b: Any, function: str, second: str) -> None:
    check_tensor(function, "input", 1, a)
    check_tensor(function, second, 2, b)
    if a.ndim != 1 or b.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {a.ndim}D and {b.ndim}D tensors")
    if a.dtype is not b.dtype:
        raise RuntimeError(
            f"dot : expected both vectors to have same dtype, but found {a.dtype.scalar_name} and {b.dtype.scalar_name}"
        )
    if a.shape != b.shape:
        n, m = a.shape[0], b.shape[0]
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{n}] and src [{m}] to have the same number of elements, but got {n} and {m} elements respectively"
        )
    refuse_bool(a.dtype, function)
    same_device(a, b)


@public()
def dot(input: Tensor, tensor: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Sum the products of two vectors' elements. RuntimeError where lengths or dtypes differ."""
    _check_dot(input, tensor, "dot", "tensor")
    value = reshaped(run(_row(input), column(tensor)), ())
    if graph.needs_grad(input, tensor):
        graph.record(
            "DotBackward0",
            (input, tensor),
            value,
            _dot_back,
            other_factors(input, tensor, "self", "tensor"),
        )
    return value if out is None else into(value, out, "dot", (input, tensor))


def _dot_back(ctx: Any, g: Tensor) -> tuple:
    a, b = ctx.needs
    return (g * conj(ctx.tensor) if a else None, g * conj(ctx.self) if b else None)


@public()
def vdot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Sum the products of two vectors' elements, the first conjugated."""
    _check_dot(input, other, "vdot", "other")
    value = reshaped(run(_row(conj(input)), column(other)), ())
    if graph.needs_grad(input, other):
        graph.record(
            "VdotBackward0",
            (input, other),
            value,
            _vdot_back,
            other_factors(input, other, "self", "other"),
        )
    return value if out is None else into(value, out, "vdot", (input, other))


def _vdot_back(ctx: Any, g: Tensor) -> tuple:
    a, b = ctx.needs
    return (conj(g) * ctx.other if a else None, g * ctx.self if b else None)


@public(aliases=("ger",))
def outer(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Multiply every element of a vector with every element of another: [N], [M] -> [N, M]."""
    check_tensor("outer", "input", 1, input)
    check_tensor("outer", "vec2", 2, vec2)
    if input.ndim != 1:
        raise RuntimeError(f"outer: Expected 1-D argument self, but got {input.ndim}-D")
    if vec2.ndim != 1:
        raise RuntimeError(f"outer: Expected 1-D argument vec2, but got {vec2.ndim}-D")
    value = input.reshape(input.shape[0], 1) * vec2
    return value if out is None else writes.deliver(value, out, "outer", (input, vec2))
