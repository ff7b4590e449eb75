"""Recurrent networks: `lstm`, `gru`, `rnn_tanh`, `rnn_relu` and their cells.

A layer in one direction is a function over rows (data as PackedSequence holds it; a plain batch is the case where all steps
have the same size): the inputs of all steps are projected by one product, then a step is one product of the state and one
fused chain for the gates. Each layer records one node, whose gradient walks the steps backwards and leaves the weights' gradients
to products over all steps; a second derivative goes through plain ops instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..autograd import engine
from ..autograd import record as graph
from ..autograd.mode import enable_grad, no_grad
from . import dropout
from .core import Tensor, is_tensor
from .matmul import linear
from .row import FUNCTIONS, public, titled

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
NODE = "MkldnnRnnLayerBackward0"


def _cat(parts: Sequence[Tensor], dim: int = 0) -> Tensor:
    return parts[0] if len(parts) == 1 else FUNCTIONS["cat"](parts, dim)


# ------------------------------------------------------------------------------------------- one step


def _lstm_gates(pre: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    i, f, g, o = pre.chunk(4, -1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def _gru_gates(by_x: Tensor, by_h: Tensor, h: Tensor) -> Tensor:
    (xr, xz, xn), (hr, hz, hn) = by_x.chunk(3, -1), by_h.chunk(3, -1)
    n = (xn + (xr + hr).sigmoid() * hn).tanh()
    return n + (xz + hz).sigmoid() * (h - n)


def _activation(mode: str, pre: Tensor) -> Tensor:
    return pre.tanh() if mode == "rnn_tanh" else pre.relu()


def _add_product(bias: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return FUNCTIONS["addmm"](bias, a, b)


# ------------------------------------------------------------------------------------------- one layer, one direction


class Weights(NamedTuple):
    """The parameters of a layer in one direction; biases and projection may be None."""

    ih: Tensor
    hh: Tensor
    b_ih: Tensor | None
    b_hh: Tensor | None
    hr: Tensor | None


class _Trace(NamedTuple):
    """What a walk leaves for its gradient, a list entry per step."""

    pre: list[Any]
    states: list[Tensor]
    cells: list[Tensor]


def _steps(sizes: Sequence[int], reverse: bool) -> list[tuple[int, int]]:
    """Return (first row, rows) of each step in the order of the walk."""
    found, start = [], 0
    for size in sizes:
        found.append((start, size))
        start += size
    return found[::-1] if reverse else found


def _walk(
    mode: str, x: Tensor, h0: Tensor, c0: Tensor | None, w: Weights, steps: Sequence[tuple[int, int]],
    trace: _Trace | None,
) -> tuple[Tensor, Tensor, Tensor | None]:  # fmt: skip
    """Run the steps by differentiable ops; return (rows of output, last h, last c)."""
    gru = mode == "gru"
    joint = w.b_ih if gru or w.b_hh is None else w.b_ih + w.b_hh
    by_x, turned = linear(x, w.ih, joint), w.hh.t()
    rows = steps[0][1]
    h, c = h0[:rows], None if c0 is None else c0[:rows]
    done: list[tuple[Tensor, Tensor | None]] = []
    outputs: list[Tensor] = []
    for start, size in steps:
        if size < rows:  # the sequences that end here
            done.append((h[size:], None if c is None else c[size:]))
            h, c = h[:size], None if c is None else c[:size]
        elif size > rows:  # those that begin here, walking backwards
            h = _cat([h, h0[rows:size]])
            c = None if c is None or c0 is None else _cat([c, c0[rows:size]])
        rows = size
        before = h, c
        own = by_x.narrow(0, start, size)
        if gru:
            pre: Any = own, linear(h, w.hh, w.b_hh)
            h = _gru_gates(pre[0], pre[1], h)
        else:
            pre = _add_product(own, h, turned)
            if c is None:
                h = _activation(mode, pre)
            else:
                h, c = _lstm_gates(pre, c)
        if w.hr is not None:
            h = linear(h, w.hr)
        outputs.append(h)
        if trace is not None:
            trace.pre.append(pre)
            trace.states.append(before[0])
            trace.cells.append(before[1])
    done.append((h, c))
    order = [start for start, _ in steps]
    if order != sorted(order):
        outputs.reverse()
    hn = _cat([d[0] for d in reversed(done)])
    cn = None if c is None else _cat([d[1] for d in reversed(done)])
    return _cat(outputs), hn, cn


def _layer(
    mode: str, x: Tensor, h0: Tensor, c0: Tensor | None, w: Weights, sizes: Sequence[int], reverse: bool
) -> tuple[Tensor, Tensor, Tensor | None]:  # fmt: skip
    """One layer in one direction over rows (N, I): (rows, last h, last c), recorded as one node."""
    steps = _steps(sizes, reverse)
    inputs = (x, h0, c0, *w)
    record = graph.needs_grad(*inputs)
    with no_grad():
        plain: list[Any] = [None if t is None else t.detach() for t in inputs]
        trace = _Trace([], [], []) if record else None
        out, hn, cn = _walk(mode, plain[0], plain[1], plain[2], Weights(*plain[3:]), steps, trace)
        if len(steps) == 1 and hn is out:
            hn = hn.clone()
    if record:
        saved = dict(zip(("input", "hx", "cx", *Weights._fields), inputs, strict=True))
        saved |= {"mode": mode, "steps": steps, "trace": trace}
        graph.record(NODE, inputs, (out, hn) if cn is None else (out, hn, cn), _layer_back, saved)
    return out, hn, cn


def _layer_back(ctx: Any, *grads: Tensor) -> tuple:
    w = Weights(*[getattr(ctx, name) for name in Weights._fields])
    inputs = (ctx.input, ctx.hx, ctx.cx, *w)
    if graph.needs_grad(*inputs, *grads):
        return _layer_back_again(ctx, inputs, grads)
    return _Backward(ctx, w).run(*grads)


def _layer_back_again(ctx: Any, inputs: tuple, grads: tuple) -> tuple:
    """The gradients as functions that can be differentiated: run the layer again by plain ops."""
    # Aliases, so that an input that another was computed from gets only its own part.
    own: list[Any] = [None if t is None else t.view_as(t) for t in inputs]
    with enable_grad():
        results = _walk(ctx.mode, own[0], own[1], own[2], Weights(*own[3:]), ctx.steps, None)
    wanted = [i for i, need in enumerate(ctx.needs) if need]
    pairs = [(r, g) for r, g in zip(results, grads, strict=False) if r is not None]
    found = engine.grad(
        [r for r, _ in pairs],
        [own[i] for i in wanted],
        [g for _, g in pairs],
        create_graph=True,
        allow_unused=True,
    )
    out: list[Any] = [None] * len(inputs)
    for i, g in zip(wanted, found, strict=True):
        out[i] = g
    return tuple(out)


class _Backward:
    """The walk back through the steps of one layer: gradients of what the gates were computed from, then products."""

    def __init__(self, ctx: Any, w: Weights) -> None:
        self.ctx, self.w, self.mode = ctx, w, ctx.mode
        self.by_pre: list[Tensor] = []  # of the product of the state, step by step
        self.by_x: list[Tensor] = []  # of the projected input where it differs (gru)
        self.hidden: list[Tensor] = []  # what the projection was applied to, and its gradients
        self.by_projected: list[Tensor] = []

    def run(self, g: Tensor, gh: Tensor, gc: Tensor | None = None) -> tuple:
        steps = self.ctx.steps
        rows = steps[-1][1]
        dh, dc = gh[:rows] + g.narrow(0, *steps[-1]), None if gc is None else gc[:rows]
        first_h: list[Tensor] = []
        first_c: list[Tensor] = []
        for p in range(len(steps) - 1, -1, -1):
            before = steps[p - 1] if p else (0, 0)
            carry, product, dc = self._step(p, dh, dc)
            size, kept = steps[p][1], before[1]
            if p == 0:
                dh = product if carry is None else product + carry
                first_h.append(dh)
                if dc is not None:
                    first_c.append(dc)
                break
            if kept == size:
                more = g.narrow(0, *before)
                dh = product + more if carry is None else product + carry + more
                continue
            dh = product if carry is None else product + carry
            if kept < size:
                first_h.append(dh[kept:])
                dh = dh[:kept] + g.narrow(0, *before)
                if dc is not None:
                    first_c.append(dc[kept:])
                    dc = dc[:kept]
            else:
                dh = _cat([dh, gh[size:kept]]) + g.narrow(0, *before)
                dc = None if dc is None or gc is None else _cat([dc, gc[size:kept]])
        return self._totals(first_h[::-1], first_c[::-1])

    def _step(self, p: int, dh: Tensor, dc: Tensor | None) -> tuple:
        """Return what the state before gets directly (or None), through its product, and the cell before."""
        trace, w = self.ctx.trace, self.w
        pre, h, c = trace.pre[p], trace.states[p], trace.cells[p]
        direct = None
        if self.mode == "lstm":
            i, f, g, o = pre.chunk(4, -1)
            i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
            tc = (f * c + i * g).tanh()
            if w.hr is not None:
                self.hidden.append(o * tc)
                self.by_projected.append(dh)
                dh = dh @ w.hr
            dc = dc + dh * o * (1 - tc * tc)
            parts = [
                dc * g * i * (1 - i),
                dc * c * f * (1 - f),
                dc * i * (1 - g * g),
                dh * tc * o * (1 - o),
            ]
            dc = dc * f
            slope = _cat(parts, 1)
        elif self.mode == "gru":
            (xr, xz, xn), (hr, hz, hn) = pre[0].chunk(3, -1), pre[1].chunk(3, -1)
            r, z = (xr + hr).sigmoid(), (xz + hz).sigmoid()
            n = (xn + r * hn).tanh()
            by_n = dh * (1 - z) * (1 - n * n)
            by_r, by_z = by_n * hn * r * (1 - r), dh * (h - n) * z * (1 - z)
            self.by_x.append(_cat([by_r, by_z, by_n], 1))
            slope = _cat([by_r, by_z, by_n * r], 1)
            direct = dh * z
        elif self.mode == "rnn_tanh":
            y = pre.tanh()
            slope = dh * (1 - y * y)
        else:
            slope = dh * (pre > 0)
        self.by_pre.append(slope)
        return direct, slope @ w.hh, dc

    def _totals(self, first_h: list[Tensor], first_c: list[Tensor]) -> tuple:
        ctx, w = self.ctx, self.w
        starts = [start for start, _ in ctx.steps]
        forward = starts == sorted(starts)

        def rows(parts: list[Tensor], walked_back: bool = True) -> Tensor:
            """Join steps in the order of the data."""
            return _cat(parts[::-1] if walked_back == forward else parts)

        by_pre = rows(self.by_pre)
        by_x = rows(self.by_x) if self.by_x else by_pre
        states = rows(ctx.trace.states, False)
        needs = ctx.needs
        projected = None
        if w.hr is not None and needs[7]:
            projected = rows(self.by_projected).t() @ rows(self.hidden)
        return (
            by_x @ w.ih if needs[0] else None,
            _cat(first_h),
            _cat(first_c) if first_c else None,
            by_x.t() @ ctx.input if needs[3] else None,
            by_pre.t() @ states if needs[4] else None,
            by_x.sum(0) if needs[5] else None,
            by_pre.sum(0) if needs[6] else None,
            projected,
        )


# ------------------------------------------------------------------------------------------- networks

_BATCH = ("input", "hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional", "batch_first")  # fmt: skip
_PACKED = ("data", "batch_sizes", "hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional")  # fmt: skip


def _arguments(function: str, args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Match arguments to one of the two forms."""
    at = 1 if function == "lstm" else 2  # where only the packed form has a tensor
    packed = "batch_sizes" in kwargs or (len(args) > at and is_tensor(args[at]))
    names = _PACKED if packed else _BATCH
    given = dict(zip(names, args, strict=False)) | kwargs
    missing = [name for name in names if name not in given]
    if missing or len(args) > len(names) or len(given) > len(names):
        got = ", ".join("Tensor" if is_tensor(a) else type(a).__name__ for a in args)
        raise TypeError(f"{function}() received an invalid combination of arguments - got ({got})")
    return given


def _weights(params: Sequence[Tensor], biases: bool, projected: bool) -> list[Weights]:
    stride = (4 if biases else 2) + projected
    if len(params) % stride:
        raise RuntimeError("got an incorrect number of RNN parameters")
    found = []
    for at in range(0, len(params), stride):
        ih, hh, *rest = params[at : at + stride]
        hr = rest.pop() if projected else None
        b_ih, b_hh = rest if biases else (None, None)
        found.append(Weights(ih, hh, b_ih, b_hh, hr))
    return found


def _network(mode: str, args: tuple, kwargs: dict[str, Any]) -> tuple:
    given = _arguments(mode, args, kwargs)
    hx = given["hx"]
    if mode == "lstm" and len(hx) != 2:
        raise RuntimeError("lstm expects two hidden states")
    h0, c0 = hx if mode == "lstm" else (hx, None)
    projected = c0 is not None and h0.shape[2] != c0.shape[2]
    weights = _weights(given["params"], given["has_biases"], projected)
    directions = 2 if given["bidirectional"] else 1
    layers = given["num_layers"]
    if len(weights) != layers * directions:
        raise RuntimeError("got an incorrect number of RNN parameters")
    if "data" in given:
        x, sizes = given["data"], given["batch_sizes"].tolist()
        shape = None
    else:
        x = given["input"].transpose(0, 1) if given["batch_first"] else given["input"]
        shape = tuple(x.shape[:2])
        if not shape[0]:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        sizes = [shape[1]] * shape[0]
        x = x.reshape(shape[0] * shape[1], x.shape[2])
    _check_dtypes(x, weights[0].ih, h0)
    last_h: list[Tensor] = []
    last_c: list[Tensor] = []
    for layer in range(layers):
        outs = []
        for d in range(directions):
            at = layer * directions + d
            out, hn, cn = _layer(
                mode, x, h0[at], None if c0 is None else c0[at], weights[at], sizes, d == 1
            )
            outs.append(out)
            last_h.append(hn)
            if cn is not None:
                last_c.append(cn)
        x = _cat(outs, 1)
        if given["dropout"] and given["train"] and layer < layers - 1:
            x = dropout.apply(x, given["dropout"], True, False)
    if shape is not None:
        x = x.view(*shape, x.shape[1])
        x = x.transpose(0, 1) if given["batch_first"] else x
    ends = [FUNCTIONS["stack"](last_h)] + ([FUNCTIONS["stack"](last_c)] if last_c else [])
    return (x, *ends)


def _check_dtypes(x: Tensor, weight: Tensor, h: Tensor) -> None:
    if x.dtype is not weight.dtype or h.dtype is not x.dtype:
        other = weight if x.dtype is not weight.dtype else h
        raise RuntimeError(
            f"mat1 and mat2 must have the same dtype, but got {x.dtype.scalar_name} and {other.dtype.scalar_name}"
        )


def _public_network(mode: str, what: str) -> Callable[..., tuple]:
    def function(*args: Any, **kwargs: Any) -> tuple:
        return _network(mode, args, kwargs)

    function.__name__ = function.__qualname__ = mode
    states = "(h0, c0)" if mode == "lstm" else "h0"
    function.__doc__ = (
        f"Run {what} over (input (T, N, I), {states} (layers * directions, N, H), params, has_biases, num_layers, dropout, train, "
        "bidirectional, batch_first), or over packed (data, batch_sizes, ...). Returns the outputs and the last states."
    )
    return public(mode, method=False)(function)


lstm = _public_network("lstm", "a long short-term memory network")
gru = _public_network("gru", "a gated recurrent network")
rnn_tanh = _public_network("rnn_tanh", "an Elman network with tanh")
rnn_relu = _public_network("rnn_relu", "an Elman network with relu")

# ------------------------------------------------------------------------------------------- cells


def _check_cell(
    input: Tensor, w_ih: Tensor, w_hh: Tensor, states: Sequence[Tensor], gates: int
) -> None:
    if input.shape[1] != w_ih.shape[1]:
        raise RuntimeError(
            f"input has inconsistent input_size: got {input.shape[1]} expected {w_ih.shape[1]}"
        )
    hidden = w_hh.shape[1]
    for i, h in enumerate(states):
        if input.shape[0] != h.shape[0]:
            raise RuntimeError(
                f"Input batch size {input.shape[0]} doesn't match hidden{i} batch size {h.shape[0]}"
            )
        if h.shape[1] != hidden:
            raise RuntimeError(
                f"hidden{i} has inconsistent hidden_size: got {h.shape[1]}, expected {hidden}"
            )
    for name, w in (("weight_ih", w_ih), ("weight_hh", w_hh)):
        if w.shape[0] != gates * hidden:
            raise RuntimeError(
                f"{name} first dim must be {gates} * hidden_size = {gates * hidden}, but got {w.shape[0]}"
            )


@public(method=False)
def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """One LSTM step: input (N, I) and (h, c), both (N, H), to the next (h, c). RuntimeError for sizes that do not fit."""
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    _check_cell(input, w_ih, w_hh, hx, 4)
    return _lstm_gates(linear(input, w_ih, b_ih) + linear(hx[0], w_hh, b_hh), hx[1])


@public(method=False)
def gru_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """One GRU step: input (N, I) and h (N, H) to the next h. RuntimeError for sizes that do not fit."""
    _check_cell(input, w_ih, w_hh, (hx,), 3)
    return _gru_gates(linear(input, w_ih, b_ih), linear(hx, w_hh, b_hh), hx)


def _elman_cell(nonlinearity: str) -> Callable[..., Tensor]:
    name = f"rnn_{nonlinearity}_cell"

    @public(name, method=False)
    def cell(
        input: Tensor,
        hx: Tensor,
        w_ih: Tensor,
        w_hh: Tensor,
        b_ih: Tensor | None = None,
        b_hh: Tensor | None = None,
    ) -> Tensor:
        _check_cell(input, w_ih, w_hh, (hx,), 1)
        return getattr(linear(input, w_ih, b_ih) + linear(hx, w_hh, b_hh), nonlinearity)()

    return titled(
        cell,
        name,
        f"One Elman step with {nonlinearity}: input (N, I) and h (N, H) to the next h.",
    )


rnn_tanh_cell = _elman_cell("tanh")
rnn_relu_cell = _elman_cell("relu")
