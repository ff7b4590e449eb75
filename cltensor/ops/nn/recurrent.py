"""Recurrent networks: `lstm`, `gru`, `rnn_tanh`, `rnn_relu` and their cells.

A layer in one direction is a function over rows (data as PackedSequence holds it; a plain batch is the case where all steps
have the same size): the inputs of all steps are projected by one product, then one kernel walks the steps (codegen/recurrent.py).
Each layer records one node, whose gradient is the walk back and a product for each weight. Second derivatives and projected
states go through plain ops, step by step.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...autograd import dual, engine
from ...autograd import record as graph
from ...autograd.mode import enable_grad, is_grad_enabled, unrecorded
from ...codegen import recurrent as kernels
from ...codegen.recurrent import GATES
from ...runtime import get_backend
from ...storage import Storage
from .. import core
from ..composite import FOLLOWED, SMALL, Composite, named, placed, present, settled
from ..core import Tensor, is_tensor
from ..matmul import linear
from ..replay import Replayed
from ..row import FUNCTIONS, public, titled
from . import dropout, gates

NODE = "MkldnnRnnLayerBackward0"


def _cat(parts: Sequence[Tensor], dim: int = 0) -> Tensor:
    return parts[0] if len(parts) == 1 else FUNCTIONS["cat"](parts, dim)


def _activation(mode: str, pre: Tensor) -> Tensor:
    return pre.tanh() if mode == "rnn_tanh" else pre.relu()


# ------------------------------------------------------------------------------------------- one layer, one direction


class Weights(NamedTuple):
    """The parameters of a layer in one direction; biases and projection may be None."""

    ih: Tensor
    hh: Tensor
    b_ih: Tensor | None
    b_hh: Tensor | None
    hr: Tensor | None


def _steps(sizes: Sequence[int], reverse: bool) -> list[tuple[int, int]]:
    """Return (first row, rows) of each step in the order of the walk."""
    found, start = [], 0
    for size in sizes:
        found.append((start, size))
        start += size
    return found[::-1] if reverse else found


def _walk(
    mode: str, x: Tensor, h0: Tensor, c0: Tensor | None, w: Weights, steps: Sequence[tuple[int, int]]
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
        own = by_x.narrow(0, start, size)
        if gru:
            h = gates.gru(own.chunk(3, -1), linear(h, w.hh, w.b_hh).chunk(3, -1), h)
        elif c is None:
            h = _activation(mode, FUNCTIONS["addmm"](own, h, turned))
        else:
            h, c = gates.lstm(FUNCTIONS["addmm"](own, h, turned).chunk(4, -1), c)
        if w.hr is not None:
            h = linear(h, w.hr)
        outputs.append(h)
    done.append((h, c))
    order = [start for start, _ in steps]
    if order != sorted(order):
        outputs.reverse()
    hn = _cat([d[0] for d in reversed(done)])
    cn = None if c is None else _cat([d[1] for d in reversed(done)])
    return _cat(outputs), hn.clone() if len(steps) == 1 else hn, cn


# ------------------------------------------------------------------------------------------- the kernels


def _takes(
    mode: str, x: Tensor, h0: Tensor, c0: Tensor | None, w: Weights, sizes: Sequence[int]
) -> bool:
    """Return whether the kernels can compute a layer.

    What does not fit is left to plain ops, which raise the right errors.
    """
    batch = sizes[0]
    inputs = [t for t in (x, h0, c0, *w) if t is not None]
    units = w.hh.shape[-1]
    wide = GATES[mode] * units
    state = (batch, units)
    return (
        w.hr is None
        and x.dtype.category == 2
        and all(t.dtype is x.dtype and t.device == x.device for t in inputs)
        and min(units, *sizes) > 0
        and sum(sizes) == x.shape[0]
        and all(a >= b for a, b in itertools.pairwise(sizes))
        and tuple(w.hh.shape) == (wide, units)
        and tuple(h0.shape) == state
        and (c0 is None or tuple(c0.shape) == state)
        and all(b is None or tuple(b.shape) == (wide,) for b in (w.b_ih, w.b_hh))
        and w.ih.shape[0] == wide
    )


def _dense(x: Tensor | None) -> Any:
    """Describe a tensor to the kernels, which compute in at least 32 bits and read contiguous rows."""
    if x is None:
        return None
    wide = x.float() if x.dtype.itemsize == 2 else x
    return core.kernel_operand(wide.detach().contiguous())


def _layer(
    mode: str, x: Tensor, h0: Tensor, c0: Tensor | None, w: Weights, sizes: Sequence[int], reverse: bool
) -> tuple[Tensor, Tensor, Tensor | None]:  # fmt: skip
    """Run one layer in one direction over rows (N, I); return (rows of output, last h, last c).

    Recorded as one node if the kernels compute it.
    """
    if not _takes(mode, x, h0, c0, w, sizes):
        return _walk(mode, x, h0, c0, w, _steps(sizes, reverse))
    inputs = (x, h0, c0, *w)
    record = graph.needs_grad(*inputs)
    small = _small(x, w, sizes)
    given, there = present(inputs)
    found = (_replayed if small else _computed)(given, there, mode, tuple(sizes), reverse, record)
    if record:
        saved = dict(zip(("input", "hx", "cx", *Weights._fields), inputs, strict=True))
        saved |= {
            "mode": mode,
            "sizes": tuple(sizes),
            "reverse": reverse,
            "small": small,
            "kept": found[3:],
        }
        results = tuple([t for t in found[:3] if t is not None])
        graph.record(NODE, inputs, results, _layer_back, saved)
    return found[0], found[1], found[2]


def _small(x: Tensor, w: Weights, sizes: Sequence[int]) -> bool:
    """Return whether Python takes longer than the kernels, so that the launches are worth replaying.

    Layers with steps of several sizes are not replayed: those sizes are copied from the host.
    """
    numbers = x.numel() + w.hh.numel() + x.shape[0] * w.hh.shape[0]
    return numbers <= SMALL and not FOLLOWED and sizes[-1] == sizes[0]


def _computed(
    given: Sequence[Tensor], there: tuple[bool, ...], mode: str, sizes: tuple[int, ...], reverse: bool, trace: bool
) -> list[Any]:  # fmt: skip
    """Return the rows of output, the last h and c, and what the gradient needs: cells, gates, preceding states.

    None for what does not exist.
    """
    x, h0, c0, *params = placed(given, there)
    w, backend = Weights(*params), get_backend(given[0].device)
    with unrecorded():
        by_x = _dense(linear(x, w.ih, w.b_ih))
        steps = kernels.plan(backend, sizes, reverse)
        states = _dense(h0), _dense(c0), _dense(w.hh), _dense(w.b_hh)
        walk = kernels.forward(backend, mode, by_x, *states, steps, trace)
        made = [None if op is None else core.result(op, given[0].device) for op in walk]
        ends = [None if t is None else t.to(given[0].dtype) for t in made[:3]]
        return settled([*ends, *made[3:]])


_replayed = Replayed.of_memory(_computed)


def _layer_back(ctx: Any, *grads: Tensor) -> tuple:
    inputs = (ctx.input, ctx.hx, ctx.cx, *[getattr(ctx, name) for name in Weights._fields])
    if graph.needs_grad(*inputs, *grads):
        return _layer_back_again(ctx, inputs, grads)
    given, there = present((*inputs, *ctx.kept))
    back = _replayed_back if ctx.small else _computed_back
    return tuple(back([*given, *grads], there, tuple(ctx.needs), ctx.mode, ctx.sizes, ctx.reverse))


def _computed_back(
    given: Sequence[Tensor], there: tuple[bool, ...], needs: tuple[bool, ...], mode: str, sizes: tuple[int, ...], reverse: bool
) -> list[Any]:  # fmt: skip
    """Return the gradients for a layer's inputs from those for its results."""
    x, h0, c0, *rest = placed(given, there)
    w, kept, grads = Weights(*rest[:5]), rest[5:8], given[sum(there) :]
    backend, device = get_backend(x.device), x.device
    with unrecorded():
        first, state = _dense(c0), _dense(h0)
        cells, gates_, before = [t if t is None else core.kernel_operand(t) for t in kept]
        walk = kernels.Walk(before, state, None, cells, gates_, before)  # type: ignore[arg-type]
        steps = kernels.plan(backend, sizes, reverse)
        slopes = [_dense(g) for g in grads]
        found = kernels.backward(backend, mode, slopes, first, _dense(w.hh), walk, steps)
        by_h = core.result(found.by_h, device)
        by_x = by_h if found.by_x is found.by_h else core.result(found.by_x, device)
        by_bias = by_x.sum(0) if needs[5] else None
        by_state_bias = None
        if needs[6]:  # a tensor of its own, since gradients are added to in place
            by_state_bias = by_h.sum(0) if by_bias is None or by_h is not by_x else by_bias.clone()
        results = [
            by_x @ w.ih.to(by_h.dtype) if needs[0] else None,
            core.result(found.h0, device),
            None if found.c0 is None else core.result(found.c0, device),
            by_x.t() @ x.to(by_h.dtype) if needs[3] else None,
            by_h.t() @ kept[2] if needs[4] else None,
            by_bias,
            by_state_bias,
            None,
        ]
        return settled(results)


_replayed_back = Replayed.of_memory(_computed_back)


def _layer_back_again(ctx: Any, inputs: tuple, grads: tuple) -> tuple:
    """Return gradients that can be differentiated, by running the layer again with plain ops."""
    # Aliases: where one input was computed from another, each must get only its own part of the gradient.
    own: list[Any] = [None if t is None else dual.again(t) for t in inputs]
    with enable_grad():
        steps = _steps(ctx.sizes, ctx.reverse)
        results = _walk(ctx.mode, own[0], own[1], own[2], Weights(*own[3:]), steps)
    wanted = [i for i, need in enumerate(ctx.needs) if need]
    pairs = [(r, g) for r, g in zip(results, grads, strict=False) if r is not None]
    found = engine.grad(
        [r for r, _ in pairs],
        [own[i] for i in wanted],
        [g for _, g in pairs],
        create_graph=is_grad_enabled(),
        allow_unused=True,
    )
    out: list[Any] = [None] * len(inputs)
    for i, g in zip(wanted, found, strict=True):
        out[i] = g
    return tuple(out)


# ------------------------------------------------------------------------------------------- networks

_BATCH = ("input", "hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional", "batch_first")  # fmt: skip
_PACKED = ("data", "batch_sizes", "hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional")  # fmt: skip


def _arguments(function: str, args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Match arguments to the form for batches or the form for packed sequences."""
    at = 1 if function == "lstm" else 2  # the position at which only the packed form has a tensor
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
    states = given["hx"] if mode == "lstm" else (given["hx"],)
    if "data" not in given and not (given["dropout"] and given["train"]):
        tensors = [given["input"], *states, *given["params"]]
        if _few(tensors) and not graph.needs_grad(*tensors):
            settings = [given[name] for name in _SETTINGS]
            return tuple(_inferred(tensors, mode, len(states), *settings))
    return _run(mode, given)


_SETTINGS = ("has_biases", "num_layers", "bidirectional", "batch_first")


def _few(tensors: Sequence[Tensor]) -> bool:
    """Return whether a network is so small that all of its launches are replayed as one call."""
    if FOLLOWED or any(t._storage.__class__ is not Storage for t in tensors):
        return False
    x, device = tensors[0], tensors[0].device
    if x.ndim != 3 or any(t.device != device for t in tensors):
        return False
    rows = x.shape[0] * x.shape[1]
    return sum([t.numel() + rows * t.shape[0] * (t.ndim == 2) for t in tensors]) <= SMALL


@Replayed.of_memory
def _inferred(tensors: Sequence[Tensor], mode: str, states: int, *settings: Any) -> list[Tensor]:
    x, *rest = tensors
    hx = tuple(rest[:states]) if mode == "lstm" else rest[0]
    given = dict(zip(_SETTINGS, settings, strict=True))
    given |= {"input": x, "hx": hx, "params": rest[states:], "dropout": 0.0, "train": False}
    with unrecorded():
        return settled(_run(mode, given))


def _run(mode: str, given: dict[str, Any]) -> tuple:
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
    x, by_x, by_h = tuple(input.shape), tuple(w_ih.shape), tuple(w_hh.shape)
    if x[1] != by_x[1]:
        raise RuntimeError(f"input has inconsistent input_size: got {x[1]} expected {by_x[1]}")
    hidden = by_h[1]
    for i, state in enumerate(states):
        h = tuple(state.shape)
        if x[0] != h[0]:
            raise RuntimeError(f"Input batch size {x[0]} doesn't match hidden{i} batch size {h[0]}")
        if h[1] != hidden:
            raise RuntimeError(
                f"hidden{i} has inconsistent hidden_size: got {h[1]}, expected {hidden}"
            )
    for name, w in (("weight_ih", by_x), ("weight_hh", by_h)):
        if w[0] != gates * hidden:
            raise RuntimeError(
                f"{name} first dim must be {gates} * hidden_size = {gates * hidden}, but got {w[0]}"
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
    h, c = _LSTM((input, *hx, w_ih, w_hh, b_ih, b_hh))
    return named("MulBackward0", h), c


def _lstm_step(
    input: Tensor, h: Tensor, c: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None
) -> tuple[Tensor, Tensor]:  # fmt: skip
    by_x, by_h = linear(input, w_ih, b_ih), linear(h, w_hh, b_hh)
    # Added before the split, so that the gates' gradients are joined once.
    if graph.needs_grad(by_x, by_h):
        return gates.lstm((by_x + by_h).chunk(4, -1), c)
    pre = [x + h for x, h in zip(by_x.chunk(4, -1), by_h.chunk(4, -1), strict=True)]
    return gates.lstm(pre, c)


_LSTM = Composite("AddBackward0", _lstm_step)


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
    return _GRU((input, hx, w_ih, w_hh, b_ih, b_hh))[0]


def _gru_step(
    input: Tensor, h: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None
) -> tuple[Tensor]:
    by_x, by_h = linear(input, w_ih, b_ih), linear(h, w_hh, b_hh)
    return (gates.gru(by_x.chunk(3, -1), by_h.chunk(3, -1), h),)


_GRU = Composite("AddBackward0", _gru_step)


def _elman_cell(nonlinearity: str) -> Callable[..., Tensor]:
    name = f"rnn_{nonlinearity}_cell"

    def step(
        input: Tensor,
        h: Tensor,
        w_ih: Tensor,
        w_hh: Tensor,
        b_ih: Tensor | None,
        b_hh: Tensor | None,
    ) -> tuple[Tensor]:
        return (getattr(linear(input, w_ih, b_ih) + linear(h, w_hh, b_hh), nonlinearity)(),)

    run = Composite(f"{nonlinearity.title()}Backward0", step)

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
        return run((input, hx, w_ih, w_hh, b_ih, b_hh))[0]

    return titled(
        cell,
        name,
        f"One Elman step with {nonlinearity}: input (N, I) and h (N, H) to the next h.",
    )


rnn_tanh_cell = _elman_cell("tanh")
rnn_relu_cell = _elman_cell("relu")
