"""Contractions of listed dims: tensordot, inner, chains of products, Kronecker and cross products.

Made of views and the products of products.py; owns no kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import layouts
from ..autograd import record as graph
from ..autograd.mode import unrecorded
from ..dtypes import C_NAMES
from ..errors import warn_once
from . import core, writes
from .composite import in_one
from .core import Tensor, is_tensor
from .operands import check_tensor, check_tensors, same_dtype
from .products import dot, mm
from .replay import Replayed
from .row import FUNCTIONS, public
from .values import into

# ------------------------------------------------------------------------------------------- tensordot


@public(method=False)
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """Sum over dims of `a` paired with dims of `b`: a count (last of `a` with first of `b`) or two lists."""
    if is_tensor(dims):
        if dims.numel() > 1 and dims.shape[0] != 2:
            raise AssertionError(
                f"dims tensor must have size 2 in first dimension, got {dims.shape[0]}"
            )
        dims = dims.tolist() if dims.numel() > 1 else int(dims.item())
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.ndim, b.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        da, db = list(range(-dims, 0)), list(range(dims))
    else:
        da, db = dims
        da = [da] if isinstance(da, int) else list(da)
        db = [db] if isinstance(db, int) else list(db)
    value = _tensordot(a, b, da, db)
    return value if out is None else _into(value, out, "tensordot", (a, b))


def _into(value: Tensor, out: Tensor, function: str, inputs: tuple[Tensor, Tensor]) -> Tensor:
    """Deliver into `out`; torch's RuntimeError for one that requires grad and has another shape (`inner`'s text is tensordot's)."""
    if is_tensor(out) and out.shape != value.shape and graph.needs_grad(out):
        raise RuntimeError(
            "tensordot(): the 'out' tensor was specified and requires gradients, and its shape does not match the expected result. "
            "Either remove the 'out' argument, ensure it does not require gradients, or make sure its shape matches the expected output."
        )
    return writes.deliver(value, out, function, inputs)


def _tensordot(a: Tensor, b: Tensor, da: Sequence[int], db: Sequence[int]) -> Tensor:
    if len(da) != len(db):
        raise RuntimeError("both dimension lists should have same length")
    if a.dtype is not b.dtype:
        raise RuntimeError("both inputs should have same dtype")
    size = 1
    for i, j in zip(da, db, strict=True):
        n, m = a.shape[layouts.wrap_dim(i, a.ndim)], b.shape[layouts.wrap_dim(j, b.ndim)]
        if n != m and n != 1 and m != 1:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {n} in dim {i} and second has size {m} in dim {j}"
            )
        if n != m:
            # One side broadcasts: the other is summed over this dim first, with the same result.
            if m == 1:
                a = a.sum(i, keepdim=True, dtype=a.dtype)
            else:
                b = b.sum(j, keepdim=True, dtype=b.dtype)
        else:
            size *= n
    da, db = [layouts.wrap_dim(i, a.ndim) for i in da], [layouts.wrap_dim(j, b.ndim) for j in db]
    if len(set(da)) != len(da) or len(set(db)) != len(db):
        raise RuntimeError("dim appears multiple times in the list of dims")
    keep_a = [d for d in range(a.ndim) if d not in da]
    keep_b = [d for d in range(b.ndim) if d not in db]
    shape = (*[a.shape[d] for d in keep_a], *[b.shape[d] for d in keep_b])
    left, right = a.permute((*keep_a, *da)), b.permute((*db, *keep_b))
    if not keep_a and not keep_b and a.ndim == b.ndim == 1:
        return dot(left, right).view(shape)
    left = left.reshape(layouts.numel(tuple(a.shape[d] for d in keep_a)), size)
    right = right.reshape(size, layouts.numel(tuple(b.shape[d] for d in keep_b)))
    return mm(left, right).view(shape)


@public()
def inner(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Sum the products over the last dims: shapes (A, K) and (B, K) give (A, B), where A and B are any dims.

    With a 0-dim operand, this is the elementwise product.
    """
    check_tensor("inner", "input", 1, input)
    check_tensor("inner", "other", 2, other)
    if not input.ndim or not other.ndim:
        value = input * other
        return value if out is None else writes.deliver(value, out, "inner", (input, other))
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            f"inner() the last dimension must match on both input tensors but got shapes {list(input.shape)} and {list(other.shape)}"
        )
    value = _tensordot(input, other, [-1], [-1])
    return value if out is None else _into(value, out, "inner", (input, other))


# ------------------------------------------------------------------------------------------- chains


def _chain_order(sizes: list[int]) -> list[list[int]]:
    """Return where to split each sub-chain for the fewest multiplications (the textbook dynamic programme)."""
    n = len(sizes) - 1
    cost = [[0] * n for _ in range(n)]
    split = [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i][j], split[i][j] = min(
                (cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            )
    return split


def multi_dot(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Multiply two or more matrices in the cheapest order; the first and the last may be vectors."""
    ts = list(tensors)
    n = len(ts)
    if n < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {n}")
    shape: list[int] = []
    if ts[0].ndim == 1:
        ts[0] = ts[0].unsqueeze(0)
    elif ts[0].ndim == 2:
        shape.append(ts[0].shape[0])
    else:
        raise RuntimeError(f"multi_dot(): the first tensor must be 1D or 2D but got {ts[0].ndim}D")
    if ts[-1].ndim == 1:
        ts[-1] = ts[-1].unsqueeze(-1)
    elif ts[-1].ndim == 2:
        shape.append(ts[-1].shape[1])
    else:
        raise RuntimeError(f"multi_dot(): the last tensor must be 1D or 2D but got {ts[-1].ndim}D")
    for i in range(1, n - 1):
        if ts[i].ndim != 2:
            raise RuntimeError(f"multi_dot(): tensor {i} must be 2D but got {ts[i].ndim}D")
    for i in range(1, n):
        if ts[i].dtype is not ts[0].dtype:
            names = C_NAMES[ts[0].dtype.name], C_NAMES[ts[i].dtype.name]
            raise RuntimeError(
                f"multi_dot(): all tensors must have be the same dtype but tensor 0 is {names[0]} and tensor {i} {names[1]}"
            )
    for i in range(n - 1):
        if ts[i].shape[1] != ts[i + 1].shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i} and {i + 1} with shapes {list(tensors[i].shape)} and {list(tensors[i + 1].shape)} cannot be multiplied"
            )
    split = _chain_order([*[t.shape[0] for t in ts], ts[-1].shape[1]])

    def product(i: int, j: int) -> Tensor:
        return ts[i] if i == j else mm(product(i, split[i][j]), product(split[i][j] + 1, j))

    value = product(0, n - 1).view(tuple(shape))
    return value if out is None else into(value, out, "multi_dot", tuple(tensors))


@public(method=False)
def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """Multiply matrices in the cheapest order (deprecated in favour of linalg.multi_dot)."""
    warn_once(
        "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use torch.linalg.multi_dot instead, which accepts a list of "
        "two or more tensors rather than multiple parameters."
    )
    for m in matrices:
        if m.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {m.ndim}, expected 2 instead.")
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    return matrices[0] if len(matrices) == 1 else multi_dot(matrices, out=out)


# ------------------------------------------------------------------------------------------- element by element


@public()
def kron(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Replace every element of `input` by itself times `other`; the shape is the product of shapes, dim by dim."""
    check_tensors("kron", ("input", "other"), input, other)
    (value,) = _kron((input, other))
    return value if out is None else writes.deliver(value, out, "kron", (input, other))


@in_one
def _kron(given: Sequence[Tensor]) -> list[Tensor]:
    input, other = given
    rank = max(input.ndim, other.ndim)
    a = (1,) * (rank - input.ndim) + tuple(input.shape)
    b = (1,) * (rank - other.ndim) + tuple(other.shape)
    left = tuple(n for size in a for n in (size, 1))
    right = tuple(n for size in b for n in (1, size))
    value = _unsafe(input, left) * _unsafe(other, right)
    joint = tuple(n * m for n, m in zip(a, b, strict=True))
    if layouts.view_strides(value.shape, value._strides, joint) is None:
        # The product has the operands' memory order, in which the dims cannot be merged.
        value = value.contiguous()
    return [_unsafe(value, joint)]


def _unsafe(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return a tensor's memory in another shape, recorded as torch's UnsafeView: autograd does not treat it as a view."""
    from .shape import view_back

    strides = layouts.view_strides(x.shape, x._strides, shape)
    out = core.make(x._storage, shape, x.dtype, x.device, strides, x._offset)
    if graph.needs_grad(x):
        graph.record("UnsafeViewBackward0", (x,), out, view_back)
    return out


@Replayed.of_memory
def _crossed(vectors: Sequence[Tensor], dim: int) -> list[Tensor]:
    """Return the products of vectors that lie along `dim` of tensors whose other dims broadcast."""
    with unrecorded():
        (a0, a1, a2), (b0, b1, b2) = [
            v.unbind(dim) for v in FUNCTIONS["broadcast_tensors"](*vectors)
        ]
        parts = (a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0)
        return [FUNCTIONS["stack"](parts, dim)]


def linalg_cross(
    input: Tensor, other: Tensor, *, dim: int = -1, out: Tensor | None = None
) -> Tensor:
    """Cross product of vectors of three elements along a dim; other dims broadcast."""
    check_tensors("linalg_cross", ("input", "other"), input, other)
    if input.ndim != other.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    d = layouts.wrap_dim(dim, input.ndim)
    if input.shape[d] != 3 or other.shape[d] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {input.shape[d]} and {other.shape[d]}"
        )
    if input.shape != other.shape:
        layouts.broadcast_shapes(input.shape, other.shape)  # raises torch's error
    same_dtype(input, other)
    (value,) = _crossed((input.detach(), other.detach()), d)
    if graph.needs_grad(input, other):
        saved = {
            "self": input if graph.needs_grad(other) else None,
            "other": other if graph.needs_grad(input) else None,
            "dim": d,
        }
        graph.record("LinalgCrossBackward0", (input, other), value, _cross_back, saved)
    return value if out is None else writes.deliver(value, out, "linalg_cross", (input, other))


def _cross_back(ctx: Any, g: Tensor) -> tuple:
    a, b = ctx.needs
    return (
        linalg_cross(ctx.other.conj(), g, dim=ctx.dim) if a else None,
        linalg_cross(g, ctx.self.conj(), dim=ctx.dim) if b else None,
    )


@public()
def cross(
    input: Tensor, other: Tensor, dim: int | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Cross product along a dim of size 3; without `dim` the first such one (deprecated)."""
    check_tensors("cross", ("input", "other"), input, other)
    if dim is None:
        dim = next((d for d, n in enumerate(input.shape) if n == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
        warn_once(
            "Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass the dim explicitly or simply use torch.linalg.cross.\n"
            "The default value of dim will change to agree with that of linalg.cross in a future release."
        )
    return linalg_cross(input, other, dim=dim, out=out)
