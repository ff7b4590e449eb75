"""Complex numbers and their parts: conjugates and angles, numbers made of two real ones, and views either way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import dtypes, layouts
from ..autograd import dual, views
from ..autograd import record as graph
from ..autograd.mode import FORWARD
from ..size import Size
from . import core, writes
from .convert import cast
from .core import Tensor, is_tensor
from .operands import check_tensor, refuse_numbers
from .row import FUNCTIONS, REAL, Row, public
from .shape import as_dtype

conj_row = Row(
    "conj_physical",
    {"bif": "x", "c": "conj(x)"},
    reference=np.conj,
    grad={"x": lambda g: g.conj()},
    inplace_nodes=("ConjPhysicalBackward1",),
    doc="The complex conjugate, in memory of its own.",
)
angle_row = Row(
    "angle",
    {"f": "where(x != x, x, where(x < 0, pi, 0))", "c": "cplx(carg(x), 0)"},
    promote=REAL,
    public=False,
    grad={"x": lambda g, x: _angle_grad(g, x)},
)
complex_row = Row(
    "complex",
    {"c": "cplx(x, y)"},
    args=("real", "imag"),
    public=False,
    node="ComplexBackward0",
    grad={"x": lambda g: real(g), "y": lambda g: imag(g)},
)


def _angle_grad(g: Tensor, x: Tensor) -> Tensor:
    if not x.dtype.is_complex:
        return g * 0
    size = (x * x.conj()).real
    return FUNCTIONS["where"](size == 0, 0.0, complex(0.0, 1.0) * g * x / size)


@public()
def conj(input: Tensor) -> Tensor:
    """Conjugate; real tensors are returned as they are."""
    if not input.dtype.is_complex:
        return input
    out = conj_row.forward((input,))
    if graph.needs_grad(input):
        graph.record("ConjBackward0", (input,), out, lambda ctx, g: g.conj())
    return out


@public()
def conj_physical(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Conjugate, in memory of its own; real tensors are returned as they are."""
    if out is None and not input.dtype.is_complex:
        return input
    value = conj_row(input)
    return value if out is None else writes.deliver(value, out, "conj_physical", (input,))


@public()
def angle(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle of complex numbers in radians; 0 or pi for real ones."""
    value = angle_row(
        input if input.dtype.category > 1 else cast(input, dtypes.get_default_dtype())
    )
    return value if out is None else writes.deliver(value, out, "angle", (input,))


@public()
def resolve_conj(input: Tensor) -> Tensor:
    """Return the tensor: conjugation is never left pending on a view."""
    check_tensor("resolve_conj", "input", 1, input)
    return input


@public()
def resolve_neg(input: Tensor) -> Tensor:
    """Return the tensor: negation is never left pending on a view."""
    check_tensor("resolve_neg", "input", 1, input)
    return input


def _of_pair(row: Row, names: tuple[str, str], pair: tuple[Tensor, Tensor]) -> Tensor:
    """Compute complex numbers of two real tensors of one dtype, without gradient."""
    refuse_numbers(row.name, names, pair, (False, False))
    first, second = (x.dtype for x in pair)
    if first.category != 2 or second.category != 2:
        raise RuntimeError(
            f"Expected both inputs to be Half, Float or Double tensors but got {first.scalar_name} and {second.scalar_name}"
        )
    if first is not second:
        raise RuntimeError(
            f"Expected object of scalar type {first.scalar_name} but got scalar type {second.scalar_name} for second argument"
        )
    dt = first.to_complex()
    shape = Size(layouts.broadcast_shapes(*(x.shape for x in pair)))
    return core.compute(row.op(3), dt, dt, pair, shape, pair[0].device)


@public("complex", method=False)
def complex_(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Make complex numbers of two real tensors of one dtype."""
    value = _of_pair(complex_row, ("real", "imag"), (real, imag))
    if graph.needs_grad(real, imag):
        graph.record("ComplexBackward0", (real, imag), value, lambda ctx, g: (g.real, g.imag))
    return _deliver(value, out, "complex", (real, imag))


def _deliver(value: Tensor, out: Tensor | None, function: str, inputs: tuple) -> Tensor:
    if is_tensor(out) and out.dtype is not value.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {value.dtype.scalar_name} but got scalar type {out.dtype.scalar_name} for argument 'out'"
        )
    return writes.deliver(value, out, function, inputs)


polar_row = Row("polar", {"c": "cpolar(x, y)"}, args=("abs", "angle"), public=False)


@public(method=False)
def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Make complex numbers of magnitudes and angles, two real tensors of one dtype."""
    value = _of_pair(polar_row, ("abs", "angle"), (abs, angle))
    if graph.needs_grad(abs, angle):
        graph.record("PolarBackward0", (abs, angle), value, _polar_back, {"result": value})
    return _deliver(value, out, "polar", (abs, angle))


def _polar_back(ctx: Any, g: Tensor) -> tuple:
    turned = g.conj() * ctx.result
    return (g.conj() * ctx.result.sgn()).real, (turned * 1j).real


def _viewed(out: Tensor, input: Tensor, node: str, view: Callable, inverse: Callable) -> Tensor:
    """Record that `out` is `view(input)`."""
    if graph.needs_grad(input):
        graph.record(node, (input,), out, lambda ctx, g: inverse(g.contiguous()), push=dual.VIEW)
    views.mark_view(out, input, view)
    if FORWARD.open:
        dual.share(out, input, view)
    return out


def view_as_real(input: Tensor) -> Tensor:
    """View complex numbers as pairs of real ones in a new last dimension."""
    if not input.dtype.is_complex:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    out = as_dtype(
        input,
        input.dtype.to_real(),
        (*input.shape, 2),
        (*[s * 2 for s in input._strides], 1),
        input._offset * 2,
    )
    return _viewed(out, input, "ViewAsRealBackward0", view_as_real, view_as_complex)


def view_as_complex(input: Tensor) -> Tensor:
    """View pairs of real numbers in the last dimension as complex ones."""
    if input.dtype.category != 2 or input.dtype.name == "bfloat16":
        raise RuntimeError(
            f"view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: {input.dtype.scalar_name}"
        )
    if not input.ndim:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if input.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if input._strides[-1] != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(s % 2 for s in input._strides[:-1]):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    if input._offset % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    out = as_dtype(
        input,
        input.dtype.to_complex(),
        tuple(input.shape[:-1]),
        tuple(s // 2 for s in input._strides[:-1]),
        input._offset // 2,
    )
    return _viewed(out, input, "ViewAsComplexBackward0", view_as_complex, view_as_real)


FUNCTIONS["view_as_real"] = view_as_real
FUNCTIONS["view_as_complex"] = view_as_complex


def real(self: Tensor) -> Tensor:
    """The real part: a view of complex numbers, the tensor itself of real ones."""
    return view_as_real(self).select(-1, 0) if self.dtype.is_complex else self


def imag(self: Tensor) -> Tensor:
    """The imaginary part, a view."""
    if not self.dtype.is_complex:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return view_as_real(self).select(-1, 1)


def set_real(self: Tensor, value: Any) -> None:
    """Write the real part."""
    real(self)[...] = value


def set_imag(self: Tensor, value: Any) -> None:
    """Write the imaginary part; RuntimeError for real numbers."""
    imag(self)[...] = value


FUNCTIONS["real"], FUNCTIONS["imag"] = real, imag
