"""What floats are made of: signs, neighbours, exponents, the step at zero, and values that are not finite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import dtypes
from ..autograd import record as graph
from . import core, return_types, writes
from .core import Tensor
from .refusals import refusal
from .row import FLOAT, FUNCTIONS, METHODS, Row, public
from .selection import where
from .values import largest, real

copysign = Row(
    "copysign", {"f": "copysign(x, y)"}, promote=FLOAT, args=("input", "other"), reference=np.copysign, numbers="y", number_nodes={"y": "CopysignBackward1"},
    grad={"x": lambda g, x, result: where(x == 0, 0.0, g * (result / x)), "y": lambda g: writes.nothing(g)},
    doc="The magnitude of `input` with the sign of `other`, that of zeros, too.",
)  # fmt: skip


class _NextAfter(Row):
    """The row `nextafter`: OpenCL's builtin steps in float32; numbers of 16 bits are stepped by their bits."""

    short = False

    def general(self, xs: Sequence[Tensor]) -> Tensor:
        """Apply without gradient."""
        dt = core.result_type(xs)
        if dt.itemsize != 2 or dt.category != 2:
            return super().general(xs)
        bits = [x.detach().to(dt).view(dtypes.int16) for x in xs]
        return _next_bits(*bits, 0x7C00 if dt is dtypes.float16 else 0x7F80).view(dt)


def _in_order(bits: str) -> str:
    """Return the formula that maps a float's bits to an integer ordered as the floats are; it is its own inverse."""
    return f"where({bits} < 0, -32768 - {bits}, {bits})"


_KX, _KY = _in_order("x"), _in_order("y")
_next_bits = Row(
    "nextafter_bits",
    {
        "i": f"where((x & 32767) > z, x, where((y & 32767) > z or {_KX} == {_KY}, y, "
        + _in_order(f"({_KX} + where({_KX} < {_KY}, 1, -1))")
        + "))"
    },
    args=("input", "other", "infinity"),
    public=False,
)
nextafter = _NextAfter(
    "nextafter",
    {"f": "nextafter(x, y)"},
    args=("input", "other"),
    reference=np.nextafter,
    node="NextafterBackward0",
    grad={"x": lambda g, x, y: where(x == y, 0.0, g), "y": lambda g: writes.nothing(g)},
    doc="The next number of the dtype from `input` towards `other`.",
)


class _OneType(Row):
    """A row that refuses operands and results of different dtypes."""

    short = False

    def _told(self) -> str:
        return super()._told().replace("promote to", "are of")

    def general(self, xs: Sequence[Tensor]) -> Tensor:
        """Apply without gradient."""
        self._check(xs)
        return super().general(xs)

    def bind(self, xs: tuple, kwargs: dict[str, Any], name: str = "") -> tuple[tuple, Any]:
        """Match arguments to operands by torch's names."""
        xs, out = super().bind(xs, kwargs, name)
        if out is not None:
            self._check((*xs, out))
        return xs, out

    def _check(self, tensors: Sequence[Tensor]) -> None:
        if any(t.dtype.is_complex for t in tensors):
            raise refusal(self.name, dtypes.complex64)
        if any(t.dtype is not tensors[0].dtype for t in tensors):
            raise RuntimeError(
                f"{self.name} is not yet implemented for tensors with different dtypes."
            )


heaviside = _OneType(
    "heaviside",
    {"bif": "where(x == 0, y, where(x > 0, 1, 0))"},
    args=("input", "values"),
    reference=np.heaviside,
    underivable="heaviside",
    doc="The step function: 0 below 0, 1 above, `values` at 0.",
)


@public()
def nan_to_num(
    input: Tensor,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Replace NaN and infinities by numbers (zero and the dtype's extremes by default)."""
    if nan is not None or posinf is not None or neginf is not None:
        nan, posinf, neginf = [
            None if v is None else real("nan_to_num", name, v)
            for name, v in (("nan", nan), ("posinf", posinf), ("neginf", neginf))
        ]
    if input.dtype.category < 2:
        value = input.clone()
    elif input.dtype.category == 3:
        parts = [nan_to_num(part, nan, posinf, neginf) for part in (input.real, input.imag)]
        value = FUNCTIONS["complex"](*parts)
    else:
        most = largest(input.dtype)
        value = nan_row(
            input,
            0.0 if nan is None else nan,
            most if posinf is None else posinf,
            -most if neginf is None else neginf,
        )
    return value if out is None else writes.deliver(value, out, "nan_to_num", (input,))


nan_row = Row(
    "nan_to_num", {"f": "where(x != x, y, where(x == inf, z, where(x == -inf, w, x)))"}, args=("input", "nan", "posinf", "neginf"), public=False,
    graph_inputs=1, grad={"x": lambda g, x: where(x.isfinite(), g, 0.0)},
)  # fmt: skip
METHODS["nan_to_num_"] = lambda t, *a, **k: writes.assign(t, lambda x: nan_to_num(x, *a, **k))

mantissa = Row("mantissa", {"f": "mantissa(x)"}, public=False)
exponent = Row("exponent", {"f": "exponent(x)"}, public=False)


@public()
def frexp(input: Tensor, *, out: tuple[Tensor, Tensor] | None = None) -> Any:
    """Split into a mantissa in [0.5, 1) and an int32 exponent of two."""
    if input.dtype.category != 2:
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    x = input.detach()
    pair = mantissa(x), exponent(x).to(dtypes.int32)
    if graph.needs_grad(input):
        graph.record(
            "FrexpBackward0",
            (input,),
            pair,
            lambda ctx, g, _: g / ctx.exponent.exp2(),
            {"exponent": pair[1].detach()},
        )
    if out is not None:
        names = [dtypes.C_NAMES[t.dtype.name] for t in (x, *out)]
        if out[0].dtype is not x.dtype:
            raise RuntimeError(
                f"torch.frexp() expects mantissa to have dtype {names[0]} but got {names[1]}"
            )
        if out[1].dtype is not dtypes.int32:
            raise RuntimeError(
                f"torch.frexp() expects exponent to have int dtype but got {names[2]}"
            )
        pair = tuple(writes.deliver(v, o, "frexp", (input,)) for v, o in writes.each(pair, out))
    return return_types.frexp(pair)
