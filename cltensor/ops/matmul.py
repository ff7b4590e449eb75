"""Products of tensors of any rank, made of the ones that have a kernel: matmul, linear, bilinear, powers.

Follows torch in what folds into one matrix product and what becomes a batch, so that the graph has the same nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from .. import layouts
from ..autograd import record as graph
from ..autograd.mode import unrecorded
from . import core, writes
from .added_products import added, addmm
from .composite import at_once
from .core import Tensor
from .dense import run
from .dims import whole
from .operands import check_tensor, check_tensors
from .products import bmm, check_bmm, dot, mm, mv, record_bmm
from .row import FUNCTIONS, public
from .shape import aliased, contiguous_view, expand, reshape, t, view_back
from .values import into


def unsafe_view(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Give a fresh contiguous result another shape; unlike a view it is independent of `x` for in-place writes."""
    out = core.Registry.alias(x, shape, None, x._offset)
    if graph.needs_grad(x):
        graph.record("UnsafeViewBackward0", (x,), out, view_back)
    return out


def _squeezed(x: Tensor, dim: int) -> Tensor:
    """Drop a dimension of a fresh result in place, as torch's `squeeze_` records it."""
    shape, strides, offset = layouts.squeeze(x.shape, x._strides, x._offset, dim)
    out = core.Registry.alias(x, shape, strides, offset)
    out._vc.value += 1  # a fresh tensor's counter: a write like any other
    if graph.needs_grad(x):
        graph.record("SqueezeBackward4", (x,), out, view_back)
    return out


def _folds(a: Tensor, b: Tensor) -> bool:
    """Return whether torch folds the batch dims of one operand into the rows of a single matrix product.

    That needs an operand of more than two dims, and another of at most two.
    """
    larger, smaller = (a, b) if a.ndim >= b.ndim else (b, a)
    if larger.ndim < 3 or smaller.ndim > 2:
        return False
    if graph.needs_grad(smaller):
        return True
    if a.ndim == 2:
        return False
    if not larger.numel():
        return True
    shape, strides = larger.shape, larger._strides
    if larger is b:
        shape = (*shape[:-2], shape[-1], shape[-2])
        strides = (*strides[:-2], strides[-1], strides[-2])
    return all(strides[i] == strides[i + 1] * shape[i + 1] for i in range(len(shape) - 2))


@public()
def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Multiply as `@` does: vectors, matrices and batches of matrices, whose batch dims broadcast.

    [K] by [K] is a dot product, a vector on the left or right loses its dim. RuntimeError for 0-dim operands, sizes and
    dtypes that do not fit.
    """
    check_tensors("matmul", ("input", "other"), input, other)
    value = plain_matmul(input, other)
    return value if out is None else into(value, out, "matmul", (input, other))


def plain_matmul(a: Tensor, b: Tensor) -> Tensor:
    """Return `a @ b` of two tensors."""
    da, db = len(a.shape), len(b.shape)
    if da == 2 and db == 2:
        return mm(a, b)
    if not da or not db:
        raise RuntimeError(
            f"both arguments to matmul need to be at least 1D, but they are {da}D and {db}D"
        )
    if db == 1 and da <= 2:
        return dot(a, b) if da == 1 else mv(a, b)
    if da == 1 and db == 2:
        return _squeezed(mm(a.unsqueeze(0), b), 0)
    if da == db:  # equal batches, as in most calls, need no expanding
        (*batch, _, k), (*other, m, _) = a.shape, b.shape
        if k == m and batch == other and not graph.needs_grad(a, b):
            check_bmm(a, b)
            return run(a, b)
    if _folds(a, b):
        return _folded(a, b)
    if da == 3 and db == 3 and a.shape[0] != b.shape[0]:
        # A batch of size 1 that needs a gradient is dropped: the folded product's gradient then sums over the batch by
        # itself.
        if a.shape[0] == 1 and graph.needs_grad(a):
            return plain_matmul(a.squeeze(0), b)
        if b.shape[0] == 1 and graph.needs_grad(b):
            return plain_matmul(a, b.squeeze(0))
    return _batched(a, b)


def _folded(a: Tensor, b: Tensor) -> Tensor:
    straight = a.ndim >= b.ndim
    wide = a if straight else b.transpose(-2, -1)
    small = b if straight else a.t() if a.ndim == 2 else a
    shape = wide.shape[:-1]
    rows = wide.reshape(layouts.numel(shape), wide.shape[-1])
    if small.ndim == 1:
        return unsafe_view(mv(rows, small), shape)
    product = mm(rows, small)
    if not product._contig:  # of a sparse matrix
        product = product.contiguous()
    value = unsafe_view(product, (*shape, small.shape[1]))
    return value if straight else value.transpose(-2, -1).contiguous()


def _batched(a: Tensor, b: Tensor) -> Tensor:
    n, k = (a.shape[-2] if a.ndim > 1 else 1), a.shape[-1]
    m, p = (b.shape[-2], b.shape[-1]) if b.ndim > 1 else (b.shape[0], 1)
    batch = layouts.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    count = layouts.numel(batch)
    if m != k:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{count}, {k}] but got: [{count}, {m}]."
        )
    check_bmm(a, b)
    vector = b.ndim == 1
    shape = (*batch, *((n,) if a.ndim > 1 else ()), *(() if vector else (p,)))
    if not graph.needs_grad(a, b):
        with unrecorded():
            left = expand(a, (*batch, n, k))
            right = expand(b.unsqueeze(-1) if vector else b, (*batch, m, p))
        value = run(left, right)
        return (
            value
            if value.shape == shape
            else core.make(value._storage, shape, value.dtype, value.device)
        )
    wide_a, wide_b = expand(a, (*batch, n, k)), expand(b, (*batch, m) if vector else (*batch, m, p))
    # These are saved for the gradient. Where they are copies, the copies stay pending until backward reads them: the
    # product itself reads the expanded operands in place.
    flat_a = reshape(wide_a, (count, n, k))
    flat_b = reshape(wide_b, (count, m)).unsqueeze(-1) if vector else reshape(wide_b, (count, m, p))
    with unrecorded():
        found = run(wide_a, wide_b.unsqueeze(-1) if vector else wide_b)
    product = record_bmm(
        core.make(found._storage, (count, n, p), found.dtype, found.device), flat_a, flat_b
    )
    return unsafe_view(product.squeeze(-1) if vector else product, shape)


# ------------------------------------------------------------------------------------------- layers


def linear(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Compute `input @ weight.T + bias` over the last dim: [..., K] by [N, K] -> [..., N]; the bias is added in the kernel."""
    check_tensors("linear", ("input", "weight"), input, weight)
    if not input.shape or not weight.shape:
        raise RuntimeError(
            f"both arguments to linear need to be at least 1D, but they are {input.ndim}D and {weight.ndim}D"
        )
    if out is not None:
        inputs = (input, weight) if bias is None else (input, weight, bias)
        return writes.deliver(linear(input, weight, bias), out, "linear", inputs)
    if bias is None:
        return plain_matmul(input, t(weight))
    sizes = tuple(input.shape)
    matrix = len(sizes) == 2
    if matrix or (len(weight.shape) == 2 and input.is_contiguous()):
        *batch, width = sizes
        try:
            fits = _fits(sizes, input, weight, bias)
        except AttributeError:
            check_tensor("linear", "bias", 3, bias)
            raise
        if fits and not graph.needs_grad(input, weight, bias):
            flat = input if matrix else aliased(input, (prod(batch), width))
            turned = aliased(weight, (width, weight.shape[0]), weight._strides[::-1])
            value = run(flat, turned, bias)
        else:
            flat = input if matrix else contiguous_view(input, (prod(batch), width))
            value = (added if fits else addmm)(bias, flat, t(weight))
        return value if matrix else contiguous_view(value, (*batch, weight.shape[0]))
    product = plain_matmul(input, weight.t())
    # torch adds the bias in place here, so that its dtype does not promote the result's.
    return product + bias if bias.dtype is product.dtype else product.add_(bias)


def _fits(sizes: tuple[int, ...], input: Tensor, weight: Tensor, bias: Tensor) -> bool:
    """Return whether a layer's operands are as in most calls, so that `addmm` need not check them."""
    dt, dev = input.dtype, input.device
    return (
        len(weight.shape) == 2
        and weight.shape == (*bias.shape, sizes[-1])
        and weight.dtype is dt is bias.dtype
        and weight.device is dev is bias.device
        and dt.category >= 2
        and input._strided
        and weight._strided
    )


def _trilinear(x: Tensor, weight: Tensor, y: Tensor) -> Tensor:
    """Compute sum over i, j of x[n, i] * weight[o, i, j] * y[n, j]."""
    o, i, j = weight.shape
    with unrecorded():
        part = mm(x, weight.permute(1, 0, 2).reshape(i, o * j)).view(-1, o, j)
        value = bmm(part, y.unsqueeze(-1)).squeeze(-1)
    if graph.needs_grad(x, weight, y):
        graph.record(
            "TrilinearBackward0",
            (x, weight, y),
            value,
            _trilinear_back,
            {"i1": x, "i2": weight, "i3": y},
        )
    return value


def _trilinear_back(ctx: Any, g: Tensor) -> tuple:
    x, weight, y = ctx.i1, ctx.i2, ctx.i3
    o, i, j = weight.shape
    needs = ctx.needs
    gx = gw = gy = None
    if needs[0]:
        part = mm(y, weight.permute(2, 0, 1).reshape(j, o * i)).view(-1, o, i)
        gx = bmm(g.unsqueeze(1), part.conj()).squeeze(1)
    if needs[1]:
        pairs = (g.unsqueeze(2) * x.conj().unsqueeze(1)).reshape(-1, o * i)
        gw = mm(pairs.t(), y.conj()).view(o, i, j)
    if needs[2]:
        part = mm(x, weight.permute(1, 0, 2).reshape(i, o * j)).view(-1, o, j)
        gy = bmm(g.unsqueeze(1), part.conj()).squeeze(1)
    return gx, gw, gy


@public(method=False)
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute y[..., o] = input1 @ weight[o] @ input2 (+ bias[o]) for weight [O, I, J]."""
    if input1.ndim != input2.ndim:
        raise RuntimeError(
            f"bilinear(): input dimensions do not match: got {input1.ndim} and {input2.ndim}"
        )
    for d in range(input1.ndim - 1):
        if input1.shape[d] != input2.shape[d]:
            raise RuntimeError(
                f"bilinear(): input batch dimensions do not match at dim {d}: got {input1.shape[d]} and {input2.shape[d]}"
            )
    o, i, j = weight.shape
    if input1.shape[-1] != i:
        raise RuntimeError(
            f"bilinear(): input1 size does not match weight size: got {input1.shape[-1]} but expected {i}"
        )
    if input2.shape[-1] != j:
        raise RuntimeError(
            f"bilinear(): input2 size does not match weight size: got {input2.shape[-1]} but expected {j}"
        )
    if bias is not None and bias.shape[0] != o:
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {bias.shape[0]} but expected {o}"
        )
    rows = layouts.numel(input1.shape[:-1])
    value = _trilinear(input1.reshape(rows, i), weight, input2.reshape(rows, j)).reshape(
        *input1.shape[:-1], o
    )
    return value if bias is None else value + bias


# ------------------------------------------------------------------------------------------- powers


@public()
def matrix_power(input: Tensor, n: int, *, out: Tensor | None = None) -> Tensor:
    """Raise (batches of) square matrices to an integer power by repeated squaring; negative powers invert."""
    if input.ndim < 2:
        raise RuntimeError(
            "linalg.matrix_power: The input tensor A must have at least 2 dimensions."
        )
    if input.shape[-1] != input.shape[-2]:
        raise RuntimeError(
            f"linalg.matrix_power: A must be batches of square matrices, but they are {input.shape[-2]} by {input.shape[-1]} matrices"
        )
    n = whole("linalg_matrix_power", "n", n)
    steps = abs(n) > 1 and not graph.needs_grad(input)
    value = _power_at_once([input], n)[0] if steps else _power(input, n)
    return value if out is None else into(value, out, "matrix_power", (input,))


def _power(x: Tensor, n: int) -> Tensor:
    if n == 0:
        return x.clone().copy_(
            FUNCTIONS["eye"](x.shape[-1], dtype=x.dtype, device=x.device).expand(x.shape)
        )
    if n < 0:
        x, n = FUNCTIONS["inverse"](x), -n
        if n == 1:
            return x
    if n == 1:
        return x.clone()
    if n == 3:
        return plain_matmul(plain_matmul(x, x), x)
    result = square = None
    while n:
        square = x if square is None else plain_matmul(square, square)
        if n & 1:
            result = square if result is None else plain_matmul(result, square)
        n >>= 1
    return result


@at_once
def _power_at_once(xs: Sequence[Tensor], n: int) -> list[Tensor]:
    return [_power(xs[0], n)]
