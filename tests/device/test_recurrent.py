"""Recurrent networks against their cells and finite differences; the kernels' schedules; packing; launches; messages."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support import close, data

import cltensor as ct
from cltensor import nn
from cltensor.autograd import gradcheck, gradgradcheck
from cltensor.codegen import recurrent as kernels
from cltensor.nn.utils import rnn as packing
from cltensor.ops.nn import recurrent
from cltensor.runtime import STATS, get_backend

T, N, W, H = 4, 3, 2, 3
MODES = {
    "lstm": (nn.LSTM, nn.LSTMCell),
    "gru": (nn.GRU, nn.GRUCell),
    "rnn_tanh": (nn.RNN, nn.RNNCell),
}


def _state(mode: str, layers: int = 1) -> Any:
    h = ct.tensor(data(layers, N, H), dtype=ct.float64)
    return (h, h * 0.5) if mode == "lstm" else h


def _first(state: Any) -> Any:
    return state[0] if isinstance(state, tuple) else state


def _by_cells(cell: Any, x: Any, state: Any) -> Any:
    """Run a cell over the time steps of x (T, N, W); return the stacked outputs and the last state."""
    state = tuple(s[0] for s in state) if isinstance(state, tuple) else state[0]
    out = []
    for t in range(x.shape[0]):
        state = cell(x[t], state)
        out.append(_first(state))
    return ct.stack(out), state


@pytest.mark.parametrize("mode", MODES)
def test_a_layer_is_its_cell_step_by_step(mode: str, one_by_one: None) -> None:
    layer, cell = (kind(W, H, dtype=ct.float64) for kind in MODES[mode])
    with ct.no_grad():
        for name, p in cell.named_parameters():
            p.copy_(getattr(layer, f"{name}_l0"))
    x, state = ct.tensor(data(T, N, W), dtype=ct.float64), _state(mode)
    out, last = layer(x, state)
    expected, end = _by_cells(cell, x, state)
    close(out, expected.tolist(), 1e-12)
    close(_first(last)[0], _first(end).tolist(), 1e-12)
    g = ct.tensor(data(T, N, H), dtype=ct.float64)
    ct.autograd.backward((out, _first(last).sum()), (g, ct.ones((), dtype=ct.float64)))
    ct.autograd.backward((expected, _first(end).sum()), (g, ct.ones((), dtype=ct.float64)))
    for name, p in cell.named_parameters():
        close(getattr(layer, f"{name}_l0").grad, p.grad.tolist(), 1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_packed_sequences_run_each_to_its_end(mode: str, one_by_one: None) -> None:
    net = MODES[mode][0](W, H, 2, bidirectional=True, dtype=ct.float64)
    x = ct.tensor(data(T, N, W), dtype=ct.float64, requires_grad=True)
    lengths = [2, 4, 1]
    packed = packing.pack_padded_sequence(x, lengths, enforce_sorted=False)
    out, last = net(packed)
    padded, counts = packing.pad_packed_sequence(out)
    assert counts.tolist() == lengths
    alone = [net(x[:n, b : b + 1]) for b, n in enumerate(lengths)]
    for b, (own, end) in enumerate(alone):
        close(padded[: lengths[b], b], own[:, 0].tolist(), 1e-12)
        close(_first(last)[:, b], _first(end)[:, 0].tolist(), 1e-12)
    found = ct.autograd.grad(padded.square().sum() + _first(last).sum(), x)[0]
    total = sum(own.square().sum() + _first(end).sum() for own, end in alone)
    close(found, ct.autograd.grad(total, x)[0].tolist(), 1e-12)


@pytest.mark.parametrize("mode", kernels.GATES)
def test_derivatives_of_both_orders(mode: str, one_by_one: None) -> None:
    projected = {"proj_size": 1} if mode == "lstm" else {}
    for options in ({}, projected) if projected else ({},):
        kind = {"lstm": nn.LSTM, "gru": nn.GRU}.get(mode, nn.RNN)
        net = kind(2, 2, bidirectional=not options, dtype=ct.float64, **options)
        x = ct.tensor(data(2, 1, 2), dtype=ct.float64, requires_grad=True)
        weights = list(net.parameters())
        directions, states = (1, (1, 2)) if options else (2, (2, 2))

        def run(x: Any, *weights: Any, n: int = directions, states: Any = states) -> Any:
            first = [x.new_zeros(n, 1, size) for size in states]
            hx = tuple(first) if mode == "lstm" else first[0]
            return getattr(ct, mode)(x, hx, weights, True, 1, 0.0, True, n == 2, False)

        assert gradcheck(run, (x, *weights))
        rest = weights[1:]
        if kernels.GATES[mode] > 1:
            assert gradgradcheck(lambda x, w, rest=rest: run(x, w, *rest)[0], (x, weights[0]))


# ------------------------------------------------------------------------------------------- the kernels

PLANNED = [7, 7, 4, 1]  # batch rows of each step; walked in reverse, rows start at different steps
WALKS = [
    *((mode, "cpu", PLANNED, True) for mode in kernels.GATES),
    *((mode, "gpu", PLANNED, False) for mode in kernels.GATES),
    ("lstm", "gpu", [3, 3], True),
]


@pytest.mark.parametrize(("mode", "schedule", "sizes", "reverse"), WALKS)
def test_walks_give_what_plain_steps_give(
    mode: str, schedule: str, sizes: list[int], reverse: bool, dev: Any, one_by_one: None, poisoned: None
) -> None:  # fmt: skip
    units = 20  # not a multiple of the vector width: the last vector overlaps the one before it
    backend = get_backend(dev)
    wide, batch = kernels.GATES[mode] * units, sizes[0]
    lstm = mode == "lstm"

    def some(*shape: int) -> Any:
        return ct.tensor(data(*shape))

    def read(x: Any) -> np.ndarray:
        count = int(np.prod(x.shape))
        return backend.read(x.buffer, 0, count * 4).view(np.float32).reshape(x.shape)

    states = [some(batch, units), *([some(batch, units) * 0.5] if lstm else [])]
    inputs = [some(sum(sizes), wide), *states, some(wide, units) * units**-0.5, some(wide)]
    grads = [some(sum(sizes), units), *(s + 1 for s in states)]
    h0, c0 = (*map(recurrent._dense, states), None)[:2]
    by_x, weights, bias = map(recurrent._dense, (inputs[0], *inputs[-2:]))

    steps = kernels.plan(backend, sizes, reverse)
    walk = kernels.forward(
        backend, mode, by_x, h0, c0, weights, bias, steps, True, schedule=schedule
    )
    given = [recurrent._dense(g) for g in grads]
    slopes = kernels.backward(backend, mode, given, c0, weights, walk, steps, schedule=schedule)

    inputs = [x.requires_grad_() for x in inputs]
    zeros = ct.zeros(wide)
    own = recurrent.Weights(ct.eye(wide), inputs[-2], zeros, inputs[-1], None)
    results = recurrent._walk(
        mode,
        inputs[0],
        inputs[1],
        inputs[2] if lstm else None,
        own,
        recurrent._steps(sizes, reverse),
    )
    for found, expected in zip(walk[:3], results, strict=True):
        if expected is not None:
            close(read(found), expected.tolist(), 2e-6)
    wanted = ct.autograd.grad([r for r in results if r is not None], inputs[: 2 + lstm], grads)
    for found, expected in zip((slopes.by_x, slopes.h0, slopes.c0), wanted, strict=False):
        close(read(found), expected.tolist(), 2e-5)
    if mode == "gru":  # by_h, the gradient of the state's product, sums to that of the bias
        by_bias = ct.autograd.grad(
            recurrent._walk(mode, inputs[0], inputs[1], None, own, recurrent._steps(sizes, reverse))[:2],
            inputs[-1], grads,
        )[0]  # fmt: skip
        close(read(slopes.by_h).sum(0), by_bias.tolist(), 2e-5)


@pytest.mark.elsewhere
@pytest.mark.parametrize(("mode", "group", "rows"), [("lstm", 512, 1), ("gru", 128, 4), ("rnn_tanh", 256, 3)])  # fmt: skip
def test_lanes_share_units_and_their_products(
    mode: str, group: int, rows: int, dev: Any, poisoned: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The GPU schedule agrees with the CPU schedule where a work-group has more units than it handles at a time, and
    one or several batch rows.
    """
    backend, units, batch = get_backend(dev), 150, 7
    info = replace(backend.info, max_group=group, compute_units=batch // rows)
    monkeypatch.setattr(backend, "info", info)
    wide = kernels.GATES[mode] * units

    def some(*shape: int) -> Any:
        return recurrent._dense(ct.tensor(data(*shape)))

    def read(x: Any) -> np.ndarray:
        return backend.read(x.buffer, 0, int(np.prod(x.shape)) * 4).view(np.float32)

    by_x, h0, bias = some(3 * batch, wide), some(batch, units), some(wide)
    weights = recurrent._dense(ct.tensor(data(wide, units)) * units**-0.5)
    c0 = some(batch, units) if mode == "lstm" else None
    grads = [some(3 * batch, units), *[some(batch, units)] * (1 + (mode == "lstm"))]
    steps = kernels.plan(backend, [batch] * 3, True)
    found = []
    for schedule in ("cpu", "gpu"):
        walk = kernels.forward(backend, mode, by_x, h0, c0, weights, bias, steps, True, schedule=schedule)  # fmt: skip
        slopes = kernels.backward(backend, mode, grads, c0, weights, walk, steps, schedule=schedule)
        found.append([read(x) for x in (*walk, *slopes) if x is not None])
    for a, b in zip(*found, strict=True):
        close(a, b.tolist(), 2e-5)


def test_a_walk_without_trace_gives_the_same() -> None:
    net = nn.LSTM(W, H)
    x = ct.tensor(data(T, N, W))
    out = net(x)[0]
    with ct.no_grad():
        assert (net(x)[0] == out).all()


def test_launches_do_not_grow_with_steps() -> None:
    for mode in MODES:
        net = MODES[mode][0](W, H)
        counts = []
        for steps in (4, 4, 14):
            x = ct.zeros(steps, N, W)
            ct.opencl.synchronize()
            before = STATS.launches
            out = net(x)[0]
            ct.opencl.synchronize()
            between = STATS.launches
            ct.autograd.grad(out.sum(), list(net.parameters()))
            ct.opencl.synchronize()
            counts.append((between - before, STATS.launches - between))
        assert counts[2] == counts[1]
        assert counts[1][0] <= 6
        assert counts[1][1] <= 13


def test_cells_take_three_launches() -> None:
    for mode in MODES:
        cell, state = MODES[mode][1](W, H), ct.zeros(N, H)
        hx = (state, state.clone()) if mode == "lstm" else state
        with ct.no_grad():
            for turn in range(3):
                x = ct.zeros(N, W)
                ct.opencl.synchronize()
                before = STATS.launches
                out = cell(x, hx)
                ct.opencl.synchronize()
                # A process's first product also launches a probe of the vector registers.
                assert turn == 0 or STATS.launches - before <= 3
                del out


@pytest.mark.parametrize("mode", ["lstm", "gru"])
def test_gradients_of_gates_are_those_that_can_be_differentiated(mode: str) -> None:
    cell = MODES[mode][1](W, H)
    x, state = ct.tensor(data(N, W), requires_grad=True), ct.tensor(data(N, H), requires_grad=True)
    hx = (state, state * 0.5) if mode == "lstm" else state
    out = cell(x, hx)
    loss = sum((o * o).sum() for o in (out if mode == "lstm" else (out,)))
    inputs = [x, state, *cell.parameters()]
    plain = ct.autograd.grad(loss, inputs, retain_graph=True)
    for g, again in zip(plain, ct.autograd.grad(loss, inputs, create_graph=True), strict=True):
        close(g, again.detach(), 1e-5)


def test_16_bits_are_kept_wide_between_steps(one_by_one: None) -> None:
    net = nn.LSTM(W, H)
    x = ct.tensor(data(T, N, W), requires_grad=True)
    out, expected = net.bfloat16()(x.bfloat16())[0], net.float()(x)[0]
    assert out.dtype is ct.bfloat16
    close(out.float(), expected.tolist(), 2e-2)
    grads = [ct.autograd.grad(y.float().square().sum(), x)[0] for y in (out, expected)]
    close(grads[0], grads[1].tolist(), 5e-2)


@pytest.mark.parametrize("mode", ["lstm", "gru", "rnn_tanh", "rnn_relu"])
def test_nan_of_a_row_stays_in_it(mode: str) -> None:
    gates = {"lstm": 4, "gru": 3}.get(mode, 1)
    weights = [ct.tensor(data(*s)) for s in ((gates * H, W), (gates * H, H))]
    x, h = data(T, N, W), ct.zeros(1, N, H)
    x[1, 1, 0] = np.nan
    first = (h, h) if mode == "lstm" else h
    out = getattr(ct, mode)(ct.tensor(x), first, weights, False, 1, 0.0, False, False, False)[0]
    expected = np.zeros((T, N, H), bool)
    expected[1:, 1] = True
    np.testing.assert_array_equal(np.isnan(out.cpu().numpy()), expected)


@pytest.mark.parametrize("mode", ["lstm", "gru", "rnn_tanh"])
def test_weights_lie_anywhere_in_memory(mode: str) -> None:
    gates = {"lstm": 4, "gru": 3, "rnn_tanh": 1}[mode]
    shapes = [(gates * H, W), (gates * H, H), (gates * H,), (gates * H,)]
    flat = ct.tensor(data(sum(map(math.prod, shapes)) + 3)) / 4
    parts = flat[3:].split([math.prod(s) for s in shapes])
    views = [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]
    h = ct.tensor(data(1, N, H, seed=1))
    first = (h, h) if mode == "lstm" else h
    walk = getattr(ct, mode)
    found, expected = (
        walk(ct.tensor(data(T, N, W)), first, weights, True, 1, 0.0, False, False, False)[0]
        for weights in (views, [v.clone() for v in views])
    )
    assert found.tolist() == expected.tolist()


def test_layouts_and_dropout() -> None:
    net = nn.GRU(W, H, 2, batch_first=True, dropout=0.5)
    x = ct.tensor(data(N, T, W))
    first, again = net(x)[0], net(x)[0]
    assert first.tolist() != again.tolist()
    net.eval()
    whole, last = net(x)
    assert whole.shape == (N, T, H)
    assert last.shape == (2, N, H)
    one, end = net(x[1])
    close(one, whole[1].tolist(), 1e-6)
    close(end, last[:, 1].tolist(), 1e-6)


def test_padding_sequences() -> None:
    parts = [ct.tensor([1, 2]), ct.tensor([3, 4, 5]), ct.tensor([6])]
    assert packing.pad_sequence(parts).tolist() == [[1, 3, 6], [2, 4, 0], [0, 5, 0]]
    left = packing.pad_sequence(parts, True, -1, "left")
    assert left.tolist() == [[-1, 1, 2], [3, 4, 5], [-1, -1, 6]]
    packed = packing.pack_sequence(parts, enforce_sorted=False)
    assert packed.data.tolist() == [3, 1, 6, 4, 2, 5]
    assert packed.batch_sizes.tolist() == [3, 2, 1]
    assert packed.sorted_indices.tolist() == [1, 0, 2]
    assert [s.tolist() for s in packing.unpack_sequence(packed)] == [p.tolist() for p in parts]
    padded, lengths = packing.pad_packed_sequence(packed, True, total_length=4)
    assert padded.shape == (3, 4)
    assert lengths.tolist() == [2, 3, 1]
    assert packed.to(ct.float32).data.dtype is ct.float32
    grad = ct.ones(3, 2, 1, requires_grad=True)
    packing.pack_padded_sequence(grad, [3, 1]).data.sum().backward()
    assert grad.grad.flatten().tolist() == [1, 1, 1, 0, 1, 0]


def test_names_and_printed_form() -> None:
    net = nn.LSTM(W, H, 2, bias=False, bidirectional=True, proj_size=1)
    names = ["weight_ih", "weight_hh", "weight_hr"]
    ends = [f"l{layer}{suffix}" for layer in (0, 1) for suffix in ("", "_reverse")]
    assert [n for n, _ in net.named_parameters()] == [f"{a}_{b}" for b in ends for a in names]
    text = "LSTM(2, 3, proj_size=1, num_layers=2, bias=False, bidirectional=True)"
    assert repr(net) == text
    assert repr(nn.RNNCell(2, 3, nonlinearity="relu")) == "RNNCell(2, 3, nonlinearity=relu)"
    bound = 1 / np.sqrt(H)
    assert all(float(p.abs().max()) <= bound for p in net.parameters())
    net.weight_ih_l0 = nn.Parameter(ct.zeros_like(net.weight_ih_l0))
    assert net.all_weights[0][0] is net._flat_weights[0] is net.weight_ih_l0


def test_messages() -> None:
    x, net, cell = ct.zeros(T, N, W), nn.LSTM(W, H), nn.LSTMCell(W, H)
    h = ct.zeros(1, N, H)
    cases: list[tuple[Any, type, str]] = [
        (lambda: net(ct.zeros(T, N, W + 1)), RuntimeError, "Expected 2, got 3"),
        (lambda: net(ct.zeros(1)), ValueError, "LSTM: Expected input to be 2D or 3D, got 1D instead"),
        (lambda: net(x, (h[:, :1], h)), RuntimeError, r"Expected hidden\[0\] size \(1, 3, 3\), got \[1, 1, 3\]"),
        (lambda: net(x, (h[0], h)), RuntimeError, "hx and cx should also be 3-D but got"),
        (lambda: net(x.double()), ValueError, "RNN input dtype"),
        (lambda: nn.GRU(W, H, proj_size=1), ValueError, "only supported for LSTM"),
        (lambda: nn.RNN(W, H, nonlinearity="x"), ValueError, "Unknown nonlinearity 'x'"),
        (lambda: nn.LSTM(W, 0), ValueError, "hidden_size must be greater than zero"),
        (lambda: cell(ct.zeros(2, W + 1)), RuntimeError, "input has inconsistent input_size: got 3 expected 2"),
        (lambda: cell(ct.zeros(2, W), (h[0], h[0])), RuntimeError, "Input batch size 2 doesn't match hidden0 batch size 3"),
        (lambda: ct.gru(x, h, [h], True, 1, 0.0, True, False, False), RuntimeError, "incorrect number of RNN parameters"),
        (lambda: packing.pack_padded_sequence(x, [1, 2, 3]), RuntimeError, "must be sorted in decreasing order"),
        (lambda: packing.pack_padded_sequence(x, [3, 1, 0]), RuntimeError, "has to be greater than 0"),
        (lambda: packing.pad_sequence([]), RuntimeError, "received an empty list of sequences"),
    ]  # fmt: skip
    for call, kind, text in cases:
        with pytest.raises(kind, match=text):
            call()
