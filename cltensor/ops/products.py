"""The products that have a kernel: matrix by matrix, by vector, dot products, and their forms that add to another tensor.

Owns their checks and gradients. Knows nothing of broadcasting matmul, which is made of these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import dtypes, layouts
from ..autograd import record as graph
from ..autograd.mode import unrecorded
from ..dtypes import C_NAMES, dtype
from ..runtime import device
from . import core, writes
from .core import Tensor
from .dense import run
from .row import public, with_inplace
from .shape import t
from .values import check_value, conj, into

# ------------------------------------------------------------------------------------------- checks


def check_tensor(function: str, name: str, position: int, x: Any) -> None:
    """Raise torch's TypeError for an operand that is not a tensor."""
    if not isinstance(x, core._Registry.tensor):
        raise TypeError(
            f"{function}(): argument '{name}' (position {position}) must be Tensor, not {type(x).__name__}"
        )


def check_tensors(function: str, names: Sequence[str], *operands: Any) -> None:
    """Raise torch's TypeError for the first of a function's operands that is not a tensor."""
    for position, x in enumerate(operands):
        if not isinstance(x, core._Registry.tensor):
            check_tensor(function, names[position], position + 1, x)


def same_device(*tensors: Tensor) -> device:
    """Return the device of all operands; RuntimeError in torch's words if they differ."""
    dev = tensors[0].device
    for x in tensors:
        if x.device is not dev and x.device != dev:
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but found at least two devices, {dev} and {x.device}!"
            )
    return dev


def refuse_bool(dt: dtype, kernel: str) -> None:
    """Raise torch's NotImplementedError for products of bool."""
    if dt is dtypes.bool:
        raise NotImplementedError(f"\"{kernel}\" not implemented for 'Bool'")


def _check_inner(mat1: Tensor, mat2: Tensor) -> None:
    (m, k), (rows, n) = mat1.shape, mat2.shape
    if k != rows:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({m}x{k} and {rows}x{n})")


def _adjoint(x: Tensor) -> Tensor:
    turned = t(x) if len(x.shape) == 2 else x.transpose(-2, -1)
    return turned.conj() if x.dtype.category == 3 else turned


def _pair(a: Tensor, b: Tensor, first: str = "self", second: str = "mat2") -> dict[str, Any]:
    """Save the factors that gradients need: each other's."""
    return {first: a if graph.needs_grad(b) else None, second: b if graph.needs_grad(a) else None}


# ------------------------------------------------------------------------------------------- two factors


@public()
def mm(
    input: Tensor, mat2: Tensor, out_dtype: dtype | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Multiply [M, K] by [K, N]; no broadcasting. RuntimeError for other ranks, sizes that differ, dtypes that differ."""
    check_tensors("mm", ("input", "mat2"), input, mat2)
    if len(input.shape) != 2:
        raise RuntimeError("self must be a matrix")
    if len(mat2.shape) != 2:
        raise RuntimeError("mat2 must be a matrix")
    _check_inner(input, mat2)
    if out_dtype is not None:
        input, mat2 = input.to(out_dtype), mat2.to(out_dtype)
    if input.dtype is not mat2.dtype:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {C_NAMES[input.dtype.name]} != {C_NAMES[mat2.dtype.name]}"
        )
    refuse_bool(input.dtype, "addmm_impl_cpu_")
    same_device(input, mat2)
    value = _product(input, mat2)
    return value if out is None else into(value, out, "mm", (input, mat2))


def _product(a: Tensor, b: Tensor) -> Tensor:
    """Multiply matrices that are known to fit."""
    value = run(a, b)
    if graph.needs_grad(a, b):
        saved = {**_pair(a, b), "mat2_sym_strides": b._strides}
        graph.record("MmBackward0", (a, b), value, _mm_back, saved, _mm_push)
    return value


def _pushed(fn: Callable, a: Any, b: Any, c: Any, d: Any) -> Tensor | None:
    """The tangent of a product: fn(a, b) + fn(c, d), where a and d are the factors' tangents, if they have one."""
    if a is None or d is None:
        return fn(c, d) if d is not None else None if a is None else fn(a, b)
    return fn(a, b) + fn(c, d)


def _mm_push(ctx: Any, out: Tensor, a: Any, b: Any) -> Any:
    return _pushed(_product, a, ctx.mat2, ctx.self, b)


def _mm_back(ctx: Any, g: Tensor) -> tuple:
    a, b = ctx.needs
    return (
        _product(g, _adjoint(ctx.mat2)) if a else None,
        _second_gradient(ctx.self, g, ctx.mat2_sym_strides) if b else None,
    )


def _second_gradient(first: Tensor, g: Tensor, strides: tuple[int, ...]) -> Tensor:
    """Compute first^H @ g as the second factor lies in memory, so that a transposed weight's gradient needs no copy.

    It runs at once: nothing may ask for it before the optimiser does, and until then it would hold its operands.
    """
    columns = strides[0] == 1 and strides[1] != 1
    value = _product(t(g), conj(first)) if columns else _product(_adjoint(first), g)
    value._storage.buffer()
    return t(value) if columns else value


def _check_batches(batch1: Tensor, batch2: Tensor) -> None:
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
    _check_batches(input, mat2)
    if out_dtype is not None:
        input, mat2 = input.to(out_dtype), mat2.to(out_dtype)
    check_bmm(input, mat2)
    value = record_bmm(run(input, mat2), input, mat2)
    return value if out is None else into(value, out, "bmm", (input, mat2))


def check_bmm(input: Tensor, mat2: Tensor) -> None:
    """Raise torch's errors for dtypes and devices of a batched product."""
    if input.dtype is not mat2.dtype:
        raise RuntimeError(
            f"expected scalar type {input.dtype.scalar_name} but found {mat2.dtype.scalar_name}"
        )
    refuse_bool(input.dtype, "bmm")
    same_device(input, mat2)


def record_bmm(value: Tensor, input: Tensor, mat2: Tensor) -> Tensor:
    """Give a batched product its history."""
    if graph.needs_grad(input, mat2):
        saved = _pair(input, mat2)
        graph.record("BmmBackward0", (input, mat2), value, _bmm_back, saved, _bmm_push)
    return value


def _bmm_push(ctx: Any, out: Tensor, a: Any, b: Any) -> Any:
    return _pushed(bmm, a, ctx.mat2, ctx.self, b)


def _bmm_back(ctx: Any, g: Tensor) -> tuple:
    a, b = ctx.needs
    return (bmm(g, _adjoint(ctx.mat2)) if a else None, bmm(_adjoint(ctx.self), g) if b else None)


def _check_mv(name: Tensor | None, mat: Tensor, vec: Tensor) -> None:
    if mat.ndim != 2 or vec.ndim != 1:
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


def _column(x: Tensor) -> Tensor:
    """A vector as a matrix of one column, without history."""
    return core.make(x._storage, (*x.shape, 1), x.dtype, x.device, (*x._strides, 1), x._offset)


def _row(x: Tensor) -> Tensor:
    return core.make(
        x._storage, (1, *x.shape), x.dtype, x.device, (max(x.shape[0], 1), *x._strides), x._offset
    )


def _reshaped(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A fresh contiguous result in another shape."""
    return core.make(x._storage, shape, x.dtype, x.device)


@public()
def mv(input: Tensor, vec: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Multiply a matrix [M, K] by a vector [K]."""
    check_tensors("mv", ("input", "vec"), input, vec)
    _check_mv(None, input, vec)
    value = _reshaped(run(input, _column(vec)), (input.shape[0],))
    if graph.needs_grad(input, vec):
        graph.record("MvBackward0", (input, vec), value, _mv_back, _pair(input, vec, "self", "vec"))
    return value if out is None else into(value, out, "mv", (input, vec))


def _mv_back(ctx: Any, g: Tensor) -> tuple:
    a, b = ctx.needs
    return (outer(g, conj(ctx.vec)) if a else None, mv(_adjoint(ctx.self), g) if b else None)


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
    value = _reshaped(run(_row(input), _column(tensor)), ())
    if graph.needs_grad(input, tensor):
        graph.record(
            "DotBackward0",
            (input, tensor),
            value,
            _dot_back,
            _pair(input, tensor, "self", "tensor"),
        )
    return value if out is None else into(value, out, "dot", (input, tensor))


def _dot_back(ctx: Any, g: Tensor) -> tuple:
    a, b = ctx.needs
    return (g * conj(ctx.tensor) if a else None, g * conj(ctx.self) if b else None)


@public()
def vdot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Sum the products of two vectors' elements, the first conjugated."""
    _check_dot(input, other, "vdot", "other")
    value = _reshaped(run(_row(conj(input)), _column(other)), ())
    if graph.needs_grad(input, other):
        graph.record(
            "VdotBackward0", (input, other), value, _vdot_back, _pair(input, other, "self", "other")
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


# ------------------------------------------------------------------------------------------- added to a tensor


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
    _check_inner(mat1, mat2)
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
        sizes = list(input.shape)
        raise RuntimeError(
            f"expand(torch.{input.dtype.scalar_name}Tensor{{{sizes}}}, size={[m, n]}): the number of sizes provided (2) must be "
            f"greater or equal to the number of dimensions in the tensor ({input.ndim})"
        )
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
    value = run(mat1, mat2, input, alpha, beta)
    if graph.needs_grad(input, mat1, mat2):
        saved = {**_pair(mat1, mat2, "mat1", "mat2"), "alpha": alpha, "beta": beta}
        saved["mat2_sym_strides"] = mat2._strides
        graph.record("AddmmBackward0", (input, mat1, mat2), value, _addmm_back, saved, _addmm_push)
    return value if out is None else into(value, out, "addmm", (input, mat1, mat2))


def _shares(
    ctx: Any, g: Tensor, first: Callable[[], Tensor], second: Callable[[], Tensor]
) -> tuple:
    """Return the gradients of `beta * input + alpha * (first factor @ second factor)` that are asked for."""
    s, a, b = ctx.needs
    alpha, beta = ctx.alpha, ctx.beta
    shares = (g if s else None, first() if a else None, second() if b else None)
    if alpha == 1 and beta == 1:
        return shares
    factors = (beta, alpha, alpha)
    return tuple([v if v is None else _scaled(v, f) for v, f in zip(shares, factors, strict=True)])


def _sum_pushed(ctx: Any, out: Tensor, x: Any, product: Any) -> Any:
    """The tangent of `beta * input + alpha * product` from those of its parts."""
    if product is not None and ctx.alpha != 1:
        product = product * ctx.alpha
    if x is not None:
        x = (x if ctx.beta == 1 else x * ctx.beta).expand(out.shape)
    return x if product is None else product if x is None else x + product


def _addmm_push(ctx: Any, out: Tensor, x: Any, a: Any, b: Any) -> Any:
    return _sum_pushed(ctx, out, x, _pushed(_product, a, ctx.mat2, ctx.mat1, b))


def _baddbmm_push(ctx: Any, out: Tensor, x: Any, a: Any, b: Any) -> Any:
    return _sum_pushed(ctx, out, x, _pushed(bmm, a, ctx.batch2, ctx.batch1, b))


def _addmm_back(ctx: Any, g: Tensor) -> tuple:
    return _shares(
        ctx,
        g,
        lambda: _product(g, _adjoint(ctx.mat2)),
        lambda: _second_gradient(ctx.mat1, g, ctx.mat2_sym_strides),
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
    _check_mv(input, mat, vec)
    bias = input.detach().expand((mat.shape[0],))
    value = _reshaped(run(mat, _column(vec), _column(bias), alpha, beta), (mat.shape[0],))
    if graph.needs_grad(input, mat, vec):
        saved = {**_pair(mat, vec, "mat", "vec"), "alpha": alpha, "beta": beta}
        graph.record("AddmvBackward0", (input, mat, vec), value, _addmv_back, saved)
    return value if out is None else into(value, out, "addmv", (input, mat, vec))


def _addmv_back(ctx: Any, g: Tensor) -> tuple:
    return _shares(ctx, g, lambda: outer(g, conj(ctx.vec)), lambda: mv(_adjoint(ctx.mat), g))


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
        saved = {**_pair(vec1, vec2, "vec1", "vec2"), "alpha": alpha, "beta": beta}
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
    _check_batches(batch1, batch2)
    shape = (*batch1.shape[:2], batch2.shape[2])
    _expandable(input, shape)
    if input.dtype is not batch1.dtype or batch1.dtype is not batch2.dtype:
        names = [
            x.dtype.name.replace("float32", "float").replace("float64", "double")
            for x in (input, batch1, batch2)
        ]
        raise RuntimeError(
            f"Input dtypes must be the same, got: input {names[0]}, batch1: {names[1]}, batch2: {names[2]}"
        )
    refuse_bool(batch1.dtype, "baddbmm")
    same_device(input, batch1, batch2)
    value = run(batch1, batch2, input, alpha, beta)
    if graph.needs_grad(input, batch1, batch2):
        saved = {**_pair(batch1, batch2, "batch1", "batch2"), "alpha": alpha, "beta": beta}
        graph.record(
            "BaddbmmBackward0", (input, batch1, batch2), value, _baddbmm_back, saved, _baddbmm_push
        )
    return value if out is None else into(value, out, "baddbmm", (input, batch1, batch2))


def _baddbmm_back(ctx: Any, g: Tensor) -> tuple:
    return _shares(
        ctx, g, lambda: bmm(g, _adjoint(ctx.batch2)), lambda: bmm(_adjoint(ctx.batch1), g)
    )


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
        saved = {**_pair(batch1, batch2, "batch1", "batch2"), "alpha": alpha, "beta": beta}
        graph.record("AddbmmBackward0", (input, batch1, batch2), value, _addbmm_back, saved)
    return value if out is None else into(value, out, "addbmm", (input, batch1, batch2))


def _addbmm_back(ctx: Any, g: Tensor) -> tuple:
    s, a, b = ctx.needs
    alpha, batches = ctx.alpha, ctx.shapes[1][0]
    wide = g.unsqueeze(0).expand(batches, *g.shape)
    return (
        _scaled(g, ctx.beta) if s else None,
        _scaled(bmm(wide, _adjoint(ctx.batch2)), alpha) if a else None,
        _scaled(bmm(_adjoint(ctx.batch1), wide), alpha) if b else None,
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
    """In-place form of `addbmm`; a self that broadcasts takes the result's shape."""
    return writes.assign(self, lambda x: addbmm(x, *args, **kwargs), resize=True)
