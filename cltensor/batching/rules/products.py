"""Rules for matrix and tensor products: the hidden dimension is a batch dim of the matrices.

If only the left operand is batched, its slices are further rows of one matrix.
"""

from __future__ import annotations

import string
from typing import Any

from ...ops.row import FUNCTIONS
from ...tensor import Tensor
from ..batched import first
from ..calls import Call, rule


def _outer(value: Any, seen: int, ndim: int) -> Any:
    """Insert dims of size 1 after the batch dimension, so that `seen` visible dims become `ndim`."""
    missing = ndim - seen
    if missing > 0:
        shape = value.shape
        value = value.reshape(shape[0], *(1,) * missing, *shape[1:])
    return value


@rule("matmul linalg_matmul")
def matmul(call: Call, input: Any, other: Any, *, out: Any = None) -> Any:
    """Multiply vectors, matrices or batches of matrices."""
    if out is not None or not (isinstance(input, Tensor) and isinstance(other, Tensor)):
        return call.fallback()
    m, n = len(input.shape), len(other.shape)
    if not m or not n:
        return call.fallback()
    _agree(input, other)
    product = FUNCTIONS["matmul"]
    if not call.here(other) and n <= 2:  # the slices of `input` are further rows of one product
        x = call.front(input)
        return call.hide(product(x, other))
    if not call.here(input) and m <= 2 and n == 1:
        x = call.front(other)
        return call.hide(product(x, input if m == 1 else input.mT))
    x, y = call.front(input), call.front(other)
    if m == 1:
        x = x.unsqueeze(-2)
    if n == 1:
        y = y.unsqueeze(-1)
    rank = max(m, n, 2)
    if call.here(input):
        x = _outer(x, max(m, 2), rank)
    if call.here(other):
        y = _outer(y, max(n, 2), rank)
    made = product(x, y)
    if n == 1:
        made = made.squeeze(-1)
    if m == 1:
        made = made.squeeze(-1 if n == 1 else -2)
    return call.hide(made)


def _agree(x: Any, y: Any) -> None:
    """Raise `matmul`'s own error for operands whose sizes or dtypes differ, with their visible shapes in its text."""
    m, n = x.shape[-1], y.shape[-2 if len(y.shape) > 1 else -1]
    if m != n or x.dtype is not y.dtype:
        FUNCTIONS["matmul"](
            *[FUNCTIONS["empty"](t.shape, dtype=t.dtype, device=t.device) for t in (x, y)]
        )


def _checked(call: Call, x: Any, y: Any, m: int, n: int) -> Any:
    """Return the product of operands of `m` and `n` visible dims; for other ranks, raise the function's own error."""
    if len(x.shape) != m or len(y.shape) != n:
        return call.f(
            *[FUNCTIONS["empty"](t.shape, dtype=t.dtype, device=t.device) for t in (x, y)]
        )
    return FUNCTIONS["matmul"](x, y)


@rule("mm")
def mm(call: Call, input: Any, mat2: Any, *args: Any, **kwargs: Any) -> Any:
    """Multiply matrices."""
    if args or kwargs:
        return call.fallback()
    return _checked(call, input, mat2, 2, 2)


@rule("bmm")
def bmm(call: Call, input: Any, mat2: Any, *args: Any, **kwargs: Any) -> Any:
    """Multiply batches of matrices."""
    if args or kwargs:
        return call.fallback()
    return _checked(call, input, mat2, 3, 3)


@rule("mv")
def mv(call: Call, input: Any, vec: Any, **kwargs: Any) -> Any:
    """Multiply a matrix with a vector."""
    return _checked(call, input, vec, 2, 1)


@rule("dot inner_1d")
def dot(call: Call, input: Any, tensor: Any, **kwargs: Any) -> Any:
    """Return the dot product of two vectors."""
    if len(input.shape) == len(tensor.shape) == 1 and input.shape != tensor.shape:
        return call.f(
            *[FUNCTIONS["empty"](t.shape, dtype=t.dtype, device=t.device) for t in (input, tensor)]
        )
    return _checked(call, input, tensor, 1, 1)


@rule("vdot")
def vdot(call: Call, input: Any, other: Any, **kwargs: Any) -> Any:
    """Return the dot product of two vectors, the first conjugated."""
    return FUNCTIONS["dot"](input.conj() if input.is_complex() else input, other)


@rule("outer ger")
def outer(call: Call, input: Any, vec2: Any, **kwargs: Any) -> Any:
    """Return the outer product of two vectors."""
    return input.unsqueeze(-1) * vec2


@rule("linear")
def linear(call: Call, input: Any, weight: Any, bias: Any = None, **kwargs: Any) -> Any:
    """Apply a linear layer."""
    if kwargs.get("out") is not None:
        return call.fallback()
    if not call.here(weight):
        x = call.front(input)
        if not call.here(bias):
            return call.hide(call.f(x, weight, bias))
        made = call.hide(call.f(x, weight)) if call.here(input) else call.f(x, weight)
        return made + bias
    if len(weight.shape) == 2 and len(input.shape) <= 2:
        x, w = call.front(input), call.front(weight)
        rows = x.unsqueeze(-2) if len(input.shape) == 1 else x
        if bias is None or not call.here(bias) or len(bias.shape) != 1:
            made = FUNCTIONS["matmul"](rows, w.mT)
            made = made if bias is None else made + bias
        else:
            rows = rows if call.here(input) else rows.expand(call.size, *rows.shape)
            b = first(bias.value, bias.bdim).unsqueeze(1)
            made = FUNCTIONS["baddbmm"](b, rows, w.mT)
        return call.hide(made.squeeze(-2) if len(input.shape) == 1 else made)
    made = FUNCTIONS["matmul"](input, weight.mT if len(weight.shape) > 1 else weight)
    return made if bias is None else made + bias


@rule("addmm addmv addr baddbmm addbmm")
def added(call: Call, input: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1, out: Any = None) -> Any:  # fmt: skip
    """Return `beta * input + alpha * product(a, b)`, with the product that the function's name says."""
    if out is not None:
        return call.fallback()
    name = {"addmm": "mm", "addmv": "mv", "addr": "outer", "baddbmm": "bmm", "addbmm": "bmm"}[
        call.name
    ]
    if call.name == "addmm" and call.here(a) and call.here(b) and len(a.shape) == len(b.shape) == 2:
        first_ = call.front(input)
        if call.here(input):
            first_ = _outer(first_, len(input.shape), 2)
        rows, cols = call.front(a), call.front(b)
        return call.hide(
            FUNCTIONS["baddbmm"](
                first_.expand(call.size, rows.shape[1], cols.shape[2]),
                rows,
                cols,
                beta=beta,
                alpha=alpha,
            )
        )
    made = FUNCTIONS[name](a, b)
    if call.name == "addbmm":
        made = made.sum(0)
    if alpha != 1:
        made = made * alpha
    if beta == 0:
        return made.expand(FUNCTIONS["broadcast_tensors"](made, input)[0].shape)
    return made + (input if beta == 1 else input * beta)


@rule("inner")
def inner(call: Call, input: Any, other: Any, **kwargs: Any) -> Any:
    """Sum products over the last dim of both."""
    if not len(input.shape) or not len(other.shape):
        return input * other
    return FUNCTIONS["tensordot"](input, other, ([-1], [-1]))


@rule("einsum")
def einsum(call: Call, equation: Any, *operands: Any) -> Any:
    """Evaluate an einsum in which the hidden dimension has a letter that the equation does not use."""
    if len(operands) == 1 and isinstance(operands[0], tuple | list):
        operands = tuple(operands[0])
    if not isinstance(equation, str):
        return call.fallback()
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    free = next((c for c in string.ascii_letters if c not in equation), None)
    if free is None or len(terms) != len(operands):
        return call.fallback()
    if not arrow:
        letters = left.replace(",", "").replace("...", "")
        right = ("..." if "..." in left else "") + "".join(
            sorted(c for c in set(letters) if letters.count(c) == 1)
        )
    made = ",".join(free + t if call.here(o) else t for t, o in zip(terms, operands, strict=True))
    return call.hide(call.f(f"{made}->{free}{right}", *[call.front(o) for o in operands]))


@rule("tensordot")
def tensordot(call: Call, a: Any, b: Any, dims: Any = 2, out: Any = None) -> Any:
    """Contract pairs of dims, by einsum."""
    m, n = len(a.shape), len(b.shape)
    if isinstance(dims, Tensor) or out is not None:
        return call.fallback()
    if isinstance(dims, int):
        over_a, over_b = list(range(m - dims, m)), list(range(dims))
    else:
        over_a, over_b = ([d] if isinstance(d, int) else list(d) for d in dims)
        over_a, over_b = [d % m for d in over_a], [d % n for d in over_b]
    letters = iter(string.ascii_letters)
    of_a = [next(letters) for _ in range(m)]
    of_b = [next(letters) for _ in range(n)]
    for i, j in zip(over_a, over_b, strict=True):
        of_b[j] = of_a[i]
    kept = [c for d, c in enumerate(of_a) if d not in over_a]
    kept += [c for d, c in enumerate(of_b) if d not in over_b]
    return FUNCTIONS["einsum"](f"{''.join(of_a)},{''.join(of_b)}->{''.join(kept)}", a, b)


@rule("kron")
def kron(call: Call, input: Any, other: Any, **kwargs: Any) -> Any:
    """Return the Kronecker product."""
    ndim = max(len(input.shape), len(other.shape))
    a = input.reshape(*(1,) * (ndim - len(input.shape)), *input.shape)
    b = other.reshape(*(1,) * (ndim - len(other.shape)), *other.shape)
    pairs = [n for s in a.shape for n in (s, 1)]
    shape = [m * n for m, n in zip(a.shape, b.shape, strict=True)]
    others = [n for s in b.shape for n in (1, s)]
    return (a.reshape(pairs) * b.reshape(others)).reshape(shape)


@rule("bilinear")
def bilinear(call: Call, input1: Any, input2: Any, weight: Any, bias: Any = None) -> Any:
    """Apply a bilinear layer."""
    made = FUNCTIONS["einsum"]("...i,oij,...j->...o", input1, weight, input2)
    return made if bias is None else made + bias


@rule("cdist")
def cdist(call: Call, x1: Any, x2: Any, p: float = 2.0, compute_mode: Any = None) -> Any:
    """Return the distances between all pairs of rows."""
    ndim = max(len(x1.shape), len(x2.shape))
    a, b = (_outer(call.front(t), len(t.shape), ndim) if call.here(t) else t for t in (x1, x2))
    return call.hide(call.f(a, b, p, compute_mode))


@rule("scaled_dot_product_attention")
def attention(
    call: Call, query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: Any = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    """Compute attention, with the slices as further entries of the batch."""
    given = (query, key, value)
    ranks = {len(t.shape) for t in given}
    ndim = max(ranks)
    if len(ranks) != 1 or ndim < 2 or (dropout_p and call.randomness != "different"):
        return call.fallback()
    shapes = [call.full(t) for t in given]
    lead = shapes[0].shape[1:-2]
    if any(t.shape[1:-2] != lead for t in shapes) and not enable_gqa:
        return call.fallback()
    fold = ndim > 3
    rows = [t.flatten(0, 1) if fold else t for t in shapes]
    mask = attn_mask
    if mask is not None:
        whole = mask.expand(*lead, *mask.shape[-2:]) if len(mask.shape) < ndim or fold else mask
        mask = call.full(whole)
        mask = mask.flatten(0, 1) if fold else mask
    out = call.f(*rows, mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
    return call.hide(out.unflatten(0, (call.size, lead[0])) if fold else out)
