"""Sums, products and elementwise functions of sparse tensors.

Functions that map zero to zero work on the values alone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from math import prod
from typing import Any

from .. import dtypes
from ..autograd import record as graph
from ..autograd.mode import unrecorded
from ..memory_format import sparse_coo
from ..ops import core, power, writes
from ..ops.arithmetic import no_bools
from ..ops.core import NUMBERS
from ..ops.elsewhere import HANDLERS
from ..ops.row import FUNCTIONS as F
from ..tensor import Tensor as Tensor_
from .convert import relaid, to_coo
from .pattern import Pattern
from .table import op
from .tensor import SparseTensor, coalesced, like, pack, summed, values_of

Tensor = Any


def into(made: Any, out: Any, name: str) -> Any:
    """Write a result into an `out=` tensor; NotImplemented if one of the two is sparse and the other dense."""
    if isinstance(made, SparseTensor) is not isinstance(out, SparseTensor):
        return NotImplemented
    if not isinstance(made, SparseTensor):
        return writes.deliver(made, out, name)
    if graph.needs_grad(made, out):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad."
        )
    return out._become(relaid(made, out.layout))


HANDLERS["into"] = into


def is_number(x: Any) -> bool:
    """Tell whether something is a number or a 0-dim dense tensor."""
    return x.__class__ in NUMBERS or (not isinstance(x, SparseTensor) and not x.shape)


# ------------------------------------------------------------------------------------------- sums


def _same_sizes(a: Tensor, b: Tensor) -> None:
    if a.shape != b.shape:
        if isinstance(a, SparseTensor) and isinstance(b, SparseTensor):
            if sparse_coo not in (a.layout, b.layout):
                raise RuntimeError(
                    f"torch.add: Expected input tensors to have the same shape, but got tensor `self` with shape {list(a.shape)} and tensor "
                    f"`other` with shape {list(b.shape)}"
                )
            raise RuntimeError(
                f"add: expected sizes of 'self' and 'other' to match, but {list(a.shape)} != {list(b.shape)}"
            )
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same size, but self has size {list(a.shape)} while other has size {list(b.shape)} "
            "(FYI: dense-sparse addition does not currently support broadcasting)"
        )


def _joined(a: SparseTensor, b: SparseTensor, alpha: Any) -> SparseTensor:
    """Return a + alpha * b: the values added where both share a pattern, else the entries of both concatenated."""
    _same_sizes(a, b)
    dt = core.result_type((a, b))
    kind = a.layout
    va, vb = values_of(a).to(dt), values_of(b).to(dt)
    if a._pattern is b._pattern:
        return like(a, F["add"](va, vb, alpha=alpha), "AddBackward0")
    if kind is not sparse_coo or b.layout is not sparse_coo:
        return relaid(_joined(to_coo(a), to_coo(b), alpha), kind)
    p, q = a._pattern, b._pattern
    if not p.count:
        return pack(q, vb * alpha if alpha != 1 else vb, a.shape, sparse_coo, "AddBackward0")
    if not q.count:
        return pack(p, va, a.shape, sparse_coo, "AddBackward0")
    if a.sparse_dim() != b.sparse_dim():
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same number of sparse dims, but self: {a.sparse_dim()}, other: {b.sparse_dim()}"
        )
    with unrecorded():
        indices = F["cat"]([p.indices, q.indices], 1)
    pattern = Pattern(p.sizes, indices, checked=p._checked and q._checked)
    values = F["cat"]([va, vb * alpha if alpha != 1 else vb])
    made = pack(pattern, values, a.shape, sparse_coo, "AddBackward0")
    return coalesced(made) if p.coalesced and q.coalesced else made


def _onto_dense(dense: Tensor, s: SparseTensor, alpha: Any) -> Tensor:
    """dense + alpha * s, as a new tensor."""
    _same_sizes(dense, s)
    dt = core.result_type((dense, s))
    values, p = values_of(s).to(dt), s._pattern
    if alpha != 1:
        values = values * alpha
    if not p.sizes:
        return dense + summed(values, p.keys, 1).reshape(s.shape)
    flat = dense.to(dt).reshape(prod(p.sizes), *s.shape[len(p.sizes) :])
    return flat.index_add(0, p.keys, values).reshape(s.shape)


@op("add", "add_scaled")
def add(input: Any, other: Any, alpha: Any = 1, **_: Any) -> Any:
    """Add sparse tensors, or a sparse one to a dense one."""
    if isinstance(input, SparseTensor):
        if isinstance(other, SparseTensor):
            return _joined(input, other, alpha)
        if input.layout is sparse_coo or is_number(other):
            raise RuntimeError(
                "add(sparse, dense) is not supported. Use add(dense, sparse) instead."
            )
        return _onto_dense(other * alpha if alpha != 1 else other, input, 1)
    if not core.is_tensor(input):
        raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    return _onto_dense(input, other, alpha)


@op("sub", "subtract", "sub_scaled")
def sub(input: Any, other: Any, alpha: Any = 1, **_: Any) -> Any:
    """Subtract a sparse tensor."""
    no_bools(input, other)
    return _renamed(add(input, other, -alpha))


def _renamed(made: Any) -> Any:
    """Give a difference, which was computed as a sum, a node of torch's name."""
    if isinstance(made, SparseTensor) and made._node is not None:
        return like(made, values_of(made), "SubBackward0")
    return made


@op("rsub")
def rsub(input: Any, other: Any, alpha: Any = 1) -> Any:
    """Compute other - alpha * input."""
    no_bools(other, input)
    return add(other, input, -alpha)


@op("add_", "add_scaled_")
def add_(self: Any, other: Any, alpha: Any = 1) -> Any:
    """Add a sparse tensor in place, to a sparse one or to a dense one."""
    if isinstance(self, SparseTensor):
        if not isinstance(other, SparseTensor):
            return add(self, other)
        return self._become(_joined(self, other, alpha))
    _same_sizes(self, other)
    if not dtypes.can_cast(dt := core.result_type((self, other)), self.dtype):
        raise RuntimeError(
            f"Can't convert result type {dt.scalar_name} to output {self.dtype.scalar_name} in add operation"
        )
    p, values = other._pattern, values_of(other).to(self.dtype)
    if alpha != 1:
        values = values * alpha
    if len(p.sizes) == 1:
        _add_rows(self, p, values)
        return self
    if self.is_contiguous() and p.sizes:
        _add_rows(self.view(prod(p.sizes), *self.shape[len(p.sizes) :]), p, values)
        return self
    return self.add_(other.to_dense(), alpha=alpha)


def _add_rows(dense: Tensor, p: Pattern, values: Tensor) -> None:
    """Add values to rows in place. A coalesced pattern names each row once, so that its rows need no sorting."""
    if p.coalesced and not graph.needs_grad(dense, values):
        dense.index_copy_(0, p.keys, dense.index_select(0, p.keys) + values)
    else:
        dense.index_add_(0, p.keys, values)


@op("sub_", "subtract_", "sub_scaled_")
def sub_(self: Any, other: Any, alpha: Any = 1) -> Any:
    """Subtract a sparse tensor in place."""
    no_bools(self, other)
    return add_(self, other, -alpha)


# ------------------------------------------------------------------------------------------- products


def _fits(sizes: Any, whole: Any) -> bool:
    """Return whether sizes broadcast to `whole`, which has as many dims."""
    return all(n in (1, m) for n, m in zip(sizes, whole, strict=True))


def gathered(dense: Tensor, s: SparseTensor) -> Tensor:
    """What a dense tensor, broadcast to the sizes of a sparse one, has at its entries; nothing is expanded."""
    p, dims = s._pattern, len(s._pattern.sizes)
    if dense.ndim > s.ndim or not _fits(dense.shape, s.shape[s.ndim - dense.ndim :]):
        raise RuntimeError(
            f"mul operands have incompatible sizes: {list(s.shape)} and {list(dense.shape)}"
        )
    x = dense.reshape((1,) * (s.ndim - dense.ndim) + tuple(dense.shape))
    sizes = x.shape[:dims]
    if tuple(sizes) == p.sizes and dims:
        keys = p.keys
    else:
        p.check()
        with unrecorded():
            keys = p.indices.new_zeros(p.count)
            for d in range(dims):
                if sizes[d] > 1:
                    keys = keys * sizes[d] + p.indices[d]
    return x.reshape(prod(sizes), *x.shape[dims:]).index_select(0, keys)


def _in_both(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    if not a.shape or not b.shape:
        s, number = (b, a) if b.shape or (not a.shape and a._nnz() == 1) else (a, b)
        values = values_of(s).to(core.result_type((a, b)))
        return like(s, values * number.to_dense(), "MulBackward0")
    if a._pattern.sizes != b._pattern.sizes or a.ndim != b.ndim:
        raise RuntimeError(
            "sparse_binary_op_intersection_cpu(): expects sparse inputs with equal dimensionality, number of sparse dimensions, and shape of "
            "sparse dimensions"
        )
    if a._pattern is b._pattern and (a._pattern.coalesced or a.layout is not sparse_coo):
        return like(a, values_of(a) * values_of(b), "MulBackward0")
    with unrecorded():
        made = _intersection(a, b)
    graph.record("MulBackward0", (a, b), made, _product_back, {"x": a, "y": b})
    return made


def _product_back(ctx: Any, g: Tensor) -> tuple:
    """Gradients of a product, with entries wherever the other factor and `g` have them."""
    return (
        mul(g, F["conj"](ctx.y)) if ctx.needs[0] else None,
        mul(g, F["conj"](ctx.x)) if ctx.needs[1] else None,
    )


def _intersection(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    if a.layout is not sparse_coo:
        return relaid(_intersection(to_coo(a), to_coo(b)), a.layout)
    a, b = coalesced(a), coalesced(to_coo(b))
    p, q = a._pattern, b._pattern
    found, place = q.find(p)
    here = found.nonzero().reshape(-1)
    place = place.index_select(0, here)
    pattern = Pattern(p.sizes, p.indices.index_select(1, here), coalesced=True, checked=True)
    values = a._v.index_select(0, here) * b._v.index_select(0, place)
    return SparseTensor._of(pattern, values, (*p.sizes, *values.shape[1:]))


def _repeated(s: SparseTensor, sizes: tuple[int, ...]) -> SparseTensor:
    """Return a COO tensor repeated along new leading dims of the given sizes."""
    p, values, count = s._pattern, values_of(s), prod(sizes)
    with unrecorded():
        which = F["arange"](count, device=p.indices.device)
        before = [
            (which.div(prod(sizes[d + 1 :]), rounding_mode="floor") % sizes[d]).repeat_interleave(p.count)
            for d in range(len(sizes))
        ]  # fmt: skip
        indices = F["cat"]((F["stack"](before), p.indices.repeat(1, count)))
    pattern = Pattern((*sizes, *p.sizes), indices, coalesced=p.coalesced, checked=p._checked)
    values = values.expand(count, *values.shape).reshape(count * p.count, *values.shape[1:])
    return pack(pattern, values, (*sizes, *s.shape))


@op("mul", "multiply")
def mul(input: Any, other: Any, **_: Any) -> Any:
    """Multiply by a number, by a dense tensor where there are entries, or by a sparse one where both have them."""
    s, x = (input, other) if isinstance(input, SparseTensor) else (other, input)
    if isinstance(x, SparseTensor):
        return _in_both(s, x)
    if is_number(x):
        return like(s, values_of(s) * x, "MulBackward0")
    before = x.ndim - s.ndim
    if before > 0 and s.layout is sparse_coo and _fits(x.shape[before:], s.shape):
        s = _repeated(s, tuple(x.shape[:before]))
    return like(s, values_of(s) * gathered(x, s), "MulBackward0")


@op("mul_", "multiply_")
def mul_(self: Any, other: Any) -> Any:
    """Multiply in place."""
    if not isinstance(self, SparseTensor):
        return self.mul_(other.to_dense())
    if not is_number(other) and other.ndim > self.ndim:
        gathered(other, self)  # raises torch's error
    return self._become(mul(self, other))


def _divisor(x: Any) -> str:
    return f"shape {list(x.shape)} for" if getattr(x, "shape", ()) else "a sparse"


@op("div", "divide", "true_divide", "div_number", "div_trunc", "div_floor")
def div(input: Any, other: Any, *, rounding_mode: str | None = None, **_: Any) -> Any:
    """Divide by a number."""
    if not isinstance(input, SparseTensor) or not is_number(other):
        raise RuntimeError(
            f"Sparse division requires a scalar or zero-dim dense tensor divisor (got {_divisor(other)} divisor)"
        )
    if rounding_mode is not None:
        input = coalesced(input) if input.layout is sparse_coo else input
    return like(
        input, F["div"](values_of(input), other, rounding_mode=rounding_mode), "DivBackward0"
    )


@op("floor_divide")
def floor_divide(input: Any, other: Any, **_: Any) -> Any:
    """Divide by a number and round down."""
    if not isinstance(input, SparseTensor) or not is_number(other):
        raise RuntimeError(
            f"Sparse floor division requires a scalar or zero-dim dense tensor divisor (got {_divisor(other)} divisor)"
        )
    s = coalesced(input) if input.layout is sparse_coo else input
    return like(s, F["floor_divide"](values_of(s), other), "NotImplemented")


@op("div_", "divide_", "true_divide_")
def div_(self: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """Divide by a number in place."""
    made = div(self, other, rounding_mode=rounding_mode)  # raises for a dense `self` or `other`
    return self._become(made)


@op("pow")
def pow_(input: Any, exponent: Any, **_: Any) -> Any:
    """Raise the elements to a power above zero."""
    if not isinstance(input, SparseTensor) or not is_number(exponent):
        return NotImplemented
    if exponent == 0:
        raise RuntimeError(
            "pow: cannot raise to zeroth power on sparse tensor; it would make the result tensor dense"
        )
    s = coalesced(input) if input.layout is sparse_coo else input
    return like(s, values_of(s) ** exponent, "PowBackward0")


HANDLERS["pow_scalar"] = pow_
for _exponent, _row in power.POWERS.items():
    HANDLERS[_row.name] = functools.partial(pow_, exponent=_exponent)


@op("square")
def square(input: Any, **_: Any) -> Any:
    """Square the elements."""
    return pow_(input, 2)


# ------------------------------------------------------------------------------------------- functions of elements

# Functions that map zero to zero and that torch has for sparse tensors.
UNARY = (
    "abs absolute asin arcsin asinh arcsinh atan arctan atanh arctanh ceil conj conj_physical deg2rad erf erfinv expm1 floor frac "
    "fix isinf isnan isneginf isposinf log1p nan_to_num neg negative positive rad2deg relu round sgn sign signbit sin sinh "
    "sqrt tan tanh trunc"
)


def _node(name: str) -> str:
    return name.title().replace("_", "") + "Backward0"


def _on_values(name: str, fn: Callable) -> Callable:
    @functools.wraps(fn)
    def apply(input: Any, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        s = (
            coalesced(input)
            if input.layout is sparse_coo and name not in ("neg", "negative")
            else input
        )
        made = like(s, fn(values_of(s), *args, **kwargs), _node(name))
        return made if out is None else into(made, out, name)

    return apply


def _in_place(apply: Callable, name: str = "") -> Callable:
    @functools.wraps(apply)
    def apply_(self: Any, *args: Any, **kwargs: Any) -> Any:
        if name in ("abs_", "absolute_") and self.dtype.category == 3:
            raise RuntimeError("In-place abs is not supported for complex tensors.")
        if name and self.layout is sparse_coo and not self._pattern.coalesced:
            raise RuntimeError(f"{name} requires coalesced input")
        return self._become(apply(self, *args, **kwargs))

    return apply_


@op("angle")
def angle(input: Any, **named: Any) -> Any:
    """Return the angles of a compressed matrix's numbers."""
    if input.layout is sparse_coo:
        return NotImplemented
    return _on_values("angle", F["angle"])(input, **named)


for _name in UNARY.split():
    _applied = op(_name)(_on_values(_name, F[_name]))
    if hasattr(Tensor_, _name + "_"):
        _strict = "" if _name in ("neg", "negative") else _name + "_"
        op(_name + "_", function=False, mixed=True)(_in_place(_applied, _strict))
for _name, _fn in {"pow_": pow_, "square_": square, "floor_divide_": floor_divide}.items():
    op(_name, function=False)(_in_place(_fn))
