"""The three pieces of a convolution, each linear in two operands and each a gradient of the others.

With x [N, G*C, *S], w [O, C, *K] and y [N, O, *P] the number sum(y * conv(x, w)) is linear in all three; leaving one out
gives a piece: "y" is the convolution, "x" its gradient by the input (the transposed convolution), "w" its gradient by the
weight. The gradients of a piece are the other two, so derivatives of any order are convolutions again. Knows kernels and
layouts; arguments are checked by convolution.py.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from math import gcd, prod
from typing import Any, NamedTuple

from ... import dtypes, layouts
from ...autograd import record as graph
from ...autograd.mode import unrecorded
from ...codegen.conv import correlation as kernels
from ...codegen.operand import Operand
from ...runtime import get_backend
from ...size import Size
from ...storage import new_storage
from .. import core, formats
from ..composite import replayable, settled
from ..core import Tensor
from ..kinds import Sizes
from ..replay import Replayed
from ..row import FUNCTIONS

_OPERANDS = {"y": "xw", "x": "yw", "w": "yx"}
AGAIN = "ConvolutionBackwardBackward0"


class Spec(NamedTuple):
    """How a kernel moves over its input; one number per spatial dim."""

    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int


def piece(
    kind: str,
    a: Tensor,
    b: Tensor,
    spec: Spec,
    size: tuple[int, ...],
    node: str = AGAIN,
    bias: Tensor | None = None,
    saved: dict[str, Any] | None = None,
) -> Tensor:
    """Compute the piece `kind` from the other two, `a` and `b` in the order of `_OPERANDS`; differentiable.

    `size` holds its spatial sizes. The bias is added along dim 1. `saved`: further attributes of the grad node.
    """
    with unrecorded():
        operands = (a, b) if bias is None else (a, b, bias)
        (value,) = _computed(operands, kind, spec, Sizes(size))
    if graph.needs_grad(a, b, bias):
        kept = {"input": a, "weight": b, "kind": kind, "spec": spec}
        graph.record(node, (a, b, bias), value, _back, kept | (saved or {}), _push)
    return value


def _push(ctx: Any, out: Tensor, a: Tensor | None, b: Tensor | None, bias: Tensor | None) -> Tensor:
    size = tuple(out.shape[2:])
    parts = [
        piece(ctx.kind, first, second, ctx.spec, size)
        for first, second in ((a, ctx.weight), (ctx.input, b))
        if first is not None and second is not None
    ]
    if bias is not None:
        parts.append(bias.reshape([-1 if d == 1 else 1 for d in range(out.ndim)]).expand(out.shape))
    return functools.reduce(operator.add, parts)


def _back(ctx: Any, g: Tensor) -> tuple:
    given = g, ctx.input, ctx.weight
    sizes = Sizes([tuple(shape[2:]) for shape in ctx.shapes[:2]])
    alone = replayable(given) and not graph.needs_grad(*given)
    return tuple(
        (_slopes_at_once if alone else _slopes)(given, ctx.kind, ctx.spec, sizes, ctx.needs)
    )


def _slopes(
    given: Sequence[Tensor],
    kind: str,
    spec: Spec,
    sizes: Sequence[tuple[int, ...]],
    needs: tuple[bool, ...],
) -> list[Tensor | None]:
    """Return the gradients of a piece's operands and bias. given: its own gradient, and the operands; sizes: theirs."""
    g, *operands = given
    grads: list[Tensor | None] = [None, None, None]
    names = _OPERANDS[kind]
    for i, other in enumerate(reversed(operands)):
        if needs[i]:
            there = {kind: g, names[1 - i]: other.conj()}
            a, b = (there[name] for name in _OPERANDS[names[i]])
            found = piece(names[i], a, b, spec, sizes[i])
            grads[i] = found if found._node is not None else _placed(found, *reversed(operands))
    if needs[2]:
        grads[2] = g.sum((0, *range(2, g.ndim)))
    return grads


@Replayed.of_memory
def _slopes_at_once(given: Sequence[Tensor], *settings: Any) -> list[Tensor | None]:
    with unrecorded():
        return settled(_slopes(given, *settings))


def _placed(found: Tensor, *operands: Tensor) -> Tensor:
    """Lay a gradient out as the convolution's result was: channels last where an operand is."""
    to = [formats.images(t, found.shape) for t in operands]
    return formats.settled(found, to[0] or to[1])


# ------------------------------------------------------------------------------------------- operands


def _three(sizes: tuple[int, ...], fill: int) -> kernels.Three:
    return (fill,) * (3 - len(sizes)) + sizes  # type: ignore[return-value]


def _window(spec: Spec) -> kernels.Window:
    return kernels.Window(_three(spec.stride, 1), _three(spec.dilation, 1), _three(spec.padding, 0))


def _apart(t: Tensor, groups: int) -> Operand:
    """Return images [N, G*C, *S] viewed as [G, N, C, s0, s1, s2]."""
    v = core.kernel_operand(t)
    c, by = v.shape[1] // groups, v.strides[1]
    return v._replace(
        shape=(groups, v.shape[0], c, *_three(tuple(v.shape[2:]), 1)),
        strides=(c * by, v.strides[0], by, *_three(tuple(v.strides[2:]), 0)),
    )


def _filters(w: Tensor, groups: int) -> Operand:
    """Return filters [G*O, C, *K] viewed as [G, O, C, k0, k1, k2]."""
    v = core.kernel_operand(w)
    o, by = v.shape[0] // groups, v.strides[0]
    return v._replace(
        shape=(groups, o, v.shape[1], *_three(tuple(v.shape[2:]), 1)),
        strides=(o * by, by, v.strides[1], *_three(tuple(v.strides[2:]), 0)),
    )


def _shifts(bias: Tensor | None, groups: int) -> Operand | None:
    if bias is None:
        return None
    v = core.kernel_operand(bias)
    per = v.shape[0] // groups
    return v._replace(shape=(groups, per), strides=(per * v.strides[0], v.strides[0]))


def _new(like: Tensor, other: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Allocate a result, channels last in memory where an operand is."""
    backend = get_backend(like.device)
    nbytes = layouts.numel(shape) * like.dtype.itemsize
    strides = formats.images(like, shape) or formats.images(other, shape)
    storage = new_storage(backend, backend.alloc(nbytes), nbytes)
    return core.make(storage, Size(shape), like.dtype, like.device, strides)


# ------------------------------------------------------------------------------------------- the pieces


def _complex(run: Callable, a: Tensor, b: Tensor, bias: Tensor | None, *rest: Any) -> Tensor:
    """Compute a complex piece from four real ones."""
    parts = [[FUNCTIONS[part](t) for part in ("real", "imag")] for t in (a, b)]
    (ar, ai), (br, bi) = parts
    shift_r, shift_i = (
        (None, None) if bias is None else (FUNCTIONS["real"](bias), FUNCTIONS["imag"](bias))
    )
    re = run(ar, br, shift_r, *rest) - run(ai, bi, None, *rest)
    im = run(ar, bi, shift_i, *rest) + run(ai, br, None, *rest)
    return FUNCTIONS["complex"](re, im)


def _forward(
    x: Tensor, w: Tensor, bias: Tensor | None, spec: Spec, size: tuple[int, ...]
) -> Tensor:
    if x.dtype.is_complex:
        return _complex(_forward, x, w, bias, spec, size)
    groups = spec.groups
    out = _new(x, w, (x.shape[0], w.shape[0], *size))
    kernels.correlate(
        get_backend(x.device),
        _apart(x, groups),
        _filters(w, groups),
        _apart(out, groups),
        _window(spec),
        _shifts(bias, groups),
    )
    return out


class _Phase(NamedTuple):
    """Positions first, first + stride, … of an input's dim, which a correlation of stride 1 with some taps computes."""

    first: int
    places: int  # how many positions
    tap: int  # the last tap that reaches them, with which the correlation begins, since taps are flipped
    taps: int  # how many taps reach them; 0: none does
    step: int  # the correlation's dilation
    pad: int  # the correlation's padding


def _phases(size: int, taps: int, stride: int, dilation: int, padding: int) -> list[_Phase]:
    """Split a dim of the input by positions' remainders modulo the stride.

    Each part is a correlation of stride 1 with some of the taps, flipped. Position q receives tap k from place
    (q + padding - k * dilation) / stride of the output where that is an integer.
    """
    shared = gcd(stride, dilation)
    period = stride // shared  # taps that reach a position lie this far apart
    found = []
    for q in range(min(stride, size)):
        k = next((k for k in range(min(taps, period)) if (q + padding - k * dilation) % stride == 0), None)  # fmt: skip
        places = -(-(size - q) // stride)
        if k is None:
            found.append(_Phase(q, places, 0, 0, 1, 0))
            continue
        count, step = -(-(taps - k) // period), dilation // shared
        base = (q + padding - k * dilation) // stride
        found.append(
            _Phase(q, places, k + (count - 1) * period, count, step, (count - 1) * step - base)
        )
    return found


def _transposed(
    y: Tensor, w: Tensor, bias: Tensor | None, spec: Spec, size: tuple[int, ...]
) -> Tensor:
    if y.dtype.is_complex:
        return _complex(_transposed, y, w, bias, spec, size)
    groups, backend = spec.groups, get_backend(y.device)
    out = _new(y, w, (y.shape[0], w.shape[1] * groups, *size))
    source, filters, target = _apart(y, groups), _filters(w, groups), _apart(out, groups)
    shifts = _shifts(bias, groups)
    window = _window(spec)
    if kernels.spread(backend, source, filters, target, window, shifts):
        return out
    ways = [
        _phases(target.shape[3 + d], filters.shape[3 + d], window.stride[d], window.step[d], window.pad[d])
        for d in range(3)
    ]  # fmt: skip
    periods = [s // gcd(s, d) for s, d in zip(window.stride, window.step, strict=True)]
    for phase in itertools.product(*ways):
        g, o, c = filters.strides[:3]
        at = target.strides[3:]
        by = filters.strides[3:]
        f = filters._replace(
            shape=(groups, filters.shape[2], filters.shape[1], *(p.taps for p in phase)),
            strides=(g, c, o, *(-s * n for s, n in zip(by, periods, strict=True))),
            offset=filters.offset + sum(p.tap * s for p, s in zip(phase, by, strict=True)),
        )
        part = target._replace(
            shape=(*target.shape[:3], *(p.places for p in phase)),
            strides=(*target.strides[:3], *(s * n for s, n in zip(at, window.stride, strict=True))),
            offset=target.offset + sum(p.first * s for p, s in zip(phase, at, strict=True)),
        )
        steps, pads = tuple(p.step for p in phase), tuple(p.pad for p in phase)
        move = kernels.Window((1, 1, 1), steps, pads)  # type: ignore[arg-type]
        kernels.correlate(backend, source, f, part, move, shifts)
    return out


def _weight(y: Tensor, x: Tensor, bias: None, spec: Spec, size: tuple[int, ...]) -> Tensor:
    if y.dtype.is_complex:
        return _complex(_weight, y, x, None, spec, size)
    groups = spec.groups
    shape = (y.shape[1], x.shape[1] // groups, *size)
    found = kernels.weigh(
        get_backend(y.device),
        _apart(x, groups),
        _apart(y, groups),
        _three(size, 1),
        _window(spec),
    )
    parts = core.result(found, y.device).reshape(found.shape[0], prod(shape))
    total = parts[0] if found.shape[0] == 1 else parts.sum(0)
    return total.reshape(shape).to(y.dtype)


_RUN: dict[str, Callable] = {"y": _forward, "x": _transposed, "w": _weight}


def _paired(operands: Sequence[Tensor], kind: str, spec: Spec, size: tuple[int, ...]) -> bool:
    """Return whether 16-bit operands are multiplied in pairs as they are, instead of being widened to float32."""
    a, b = operands[:2]
    if spec.groups > 1 or not (a._contig and b._contig and a.numel() and b.numel()):
        return False
    filters = (a.shape[1], b.shape[1], *size) if kind == "w" else tuple(b.shape)
    places = size if kind == "y" else tuple(a.shape[2:])
    return kernels.pairs(get_backend(a.device), a.dtype, kind, filters, places, _window(spec))


@Replayed.of_memory
def _computed(
    operands: Sequence[Tensor], kind: str, spec: Spec, size: tuple[int, ...]
) -> list[Tensor]:
    dt = operands[0].dtype
    backend, wide = get_backend(operands[0].device), dt
    if kernels.widens(backend, dt) and not _paired(operands, kind, spec, size):
        wide = dtypes.float32
    a, b, *bias = [t.detach().to(wide) for t in operands]
    return [_RUN[kind](a, b, bias[0] if bias else None, spec, size).to(dt)]
