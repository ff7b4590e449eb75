"""Layers: initial parameters, state kept between calls, and values against numpy or functions of nn.functional."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from support import close, data

import cltensor as ct
from cltensor import nn
from cltensor.autograd import gradcheck, gradgradcheck
from cltensor.func import functional_call
from cltensor.nn import functional as F
from cltensor.nn import init

pytestmark = pytest.mark.usefixtures("one_by_one")


def _on(a: np.ndarray) -> Any:
    return ct.tensor(a.tolist(), dtype=ct.float64 if a.dtype == np.float64 else None)


def _many() -> Any:
    return ct.empty(200, 100)


# ------------------------------------------------------------------------------------------- starts


@pytest.mark.parametrize(
    ("fill", "mean", "std"),
    [
        (lambda t: init.uniform_(t, -1, 3), 1.0, 4 / math.sqrt(12)),
        (lambda t: init.normal_(t, 2, 0.5), 2.0, 0.5),
        (lambda t: init.xavier_uniform_(t, 2), 0.0, 2 * math.sqrt(2 / 300)),
        (lambda t: init.xavier_normal_(t), 0.0, math.sqrt(2 / 300)),
        (lambda t: init.kaiming_uniform_(t, nonlinearity="relu"), 0.0, math.sqrt(2 / 100)),
        (lambda t: init.kaiming_normal_(t, mode="fan_out"), 0.0, math.sqrt(2 / 200)),
        (lambda t: init.trunc_normal_(t, 1, 2, -3, 5), 1.0, 2 * 0.8796),
        (lambda t: init.trunc_normal_(t, 0, 1, 1, 2), 1.3832, 0.2650),
        (lambda t: init.trunc_normal_(t, 0, 1, 4, 9), 4.2256, 0.2161),
        (lambda t: init.constant_(t, 5), 5.0, 0.0),
    ],
)
def test_distributions(fill: Any, mean: float, std: float) -> None:
    ct.manual_seed(1)
    t = _many()
    if mean == 4.2256:  # far out, where torch warns too
        with pytest.warns(UserWarning, match="mean is more than 2 std"):
            assert fill(t) is t
    else:
        assert fill(t) is t
    found = np.asarray(t.tolist())
    assert abs(found.mean() - mean) < 0.03 * max(std, 1e-3)
    assert abs(found.std() - std) <= 0.03 * std


def test_truncation_holds() -> None:
    for a, b in [(-0.5, 0.25), (1.0, 2.0)]:
        found = np.asarray(init.trunc_normal_(_many(), a=a, b=b).tolist())
        assert found.min() >= a and found.max() <= b


def test_structured_starts() -> None:
    close(init.eye_(ct.empty(2, 3)), np.eye(2, 3))
    weight = init.dirac_(ct.empty(4, 2, 3), 2)
    x = ct.tensor(data(1, 4, 5).tolist())
    close(F.conv1d(x, weight, padding=1, groups=2), x)
    zeros = (init.sparse_(ct.empty(10, 6), 0.25) == 0).sum(0)
    assert zeros.tolist() == [3] * 6
    p = nn.Parameter(ct.empty(2))
    assert init.ones_(p) is p and p.grad_fn is None


def test_orthogonal_start() -> None:
    for shape in [(6, 4), (4, 3, 2)]:
        q = init.orthogonal_(ct.empty(*shape), 2).reshape(shape[0], -1)
        close(q.T @ q if shape[0] > q.shape[1] else q @ q.T, 4 * np.eye(min(q.shape)), 1e-4)


def test_linear_and_convolutions_start_within_bounds() -> None:
    for layer, fan in [(nn.Linear(100, 50), 100), (nn.Conv2d(8, 20, 3), 72)]:
        for p in (layer.weight, layer.bias):
            top = p.abs().max().item()
            assert 0.5 / math.sqrt(fan) < top <= 1 / math.sqrt(fan) + 1e-7


def test_embedding_starts_with_a_zero_row_that_stays() -> None:
    table = nn.Embedding(5, 3, padding_idx=-2)
    assert table.padding_idx == 3
    close(table.weight[3], [0, 0, 0])
    table(ct.tensor([[3, 1], [1, 3]])).sum().backward()
    close(table.weight.grad, [[0] * 3, [2] * 3, [0] * 3, [0] * 3, [0] * 3])
    frozen = nn.Embedding.from_pretrained(ct.ones(2, 2))
    assert not frozen.weight.requires_grad


# ------------------------------------------------------------------------------------------- statistics


def _normed(a: np.ndarray, axes: tuple[int, ...], eps: float = 1e-5) -> np.ndarray:
    mean, var = a.mean(axes, keepdims=True), a.var(axes, keepdims=True)
    return (a - mean) / np.sqrt(var + eps)


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (lambda **k: nn.BatchNorm1d(3, **k), (5, 3)),
        (lambda **k: nn.BatchNorm2d(3, **k), (2, 3, 4, 2)),
        (lambda **k: nn.BatchNorm3d(3, **k), (2, 3, 2, 2, 2)),
    ],
)
def test_batch_norm_tracks_statistics(layer: Any, shape: tuple[int, ...]) -> None:
    axes = (0, *range(2, len(shape)))
    for momentum in (0.1, None):
        norm, mean, var = layer(momentum=momentum), np.zeros(3), np.ones(3)
        for step in range(1, 4):
            a = data(*shape, seed=step)
            factor = momentum or 1 / step
            mean = (1 - factor) * mean + factor * a.mean(axes)
            var = (1 - factor) * var + factor * a.var(axes, ddof=1)
            close(norm(_on(a)), _normed(a, axes), 1e-4)
        close(norm.running_mean, mean, 1e-4)
        close(norm.running_var, var, 1e-4)
        assert norm.num_batches_tracked.item() == 3
        norm.eval()
        wide = [-1, *[1] * (len(shape) - 2)]
        want = (a - mean.reshape(wide)) / np.sqrt(var.reshape(wide) + 1e-5)
        close(norm(_on(a)), want, 1e-4)
        assert norm.num_batches_tracked.item() == 3
        norm.reset_running_stats()
        close(norm.running_var, [1, 1, 1])


def test_instance_norm_is_over_each_image_of_a_channel() -> None:
    """The forward pass is one launch, also with weights; running statistics take the mean of those of the images."""
    norm, mean, var = nn.InstanceNorm2d(3, affine=True, track_running_stats=True), 0.0, 1.0
    with ct.no_grad():
        norm.weight.copy_(_on(data(3, seed=7)))
        norm.bias.copy_(_on(data(3, seed=8)))
    weight, bias = (v.tolist() for v in (norm.weight, norm.bias))
    for step, shape in ((1, (2, 3, 5, 7)), (2, (4, 3, 1, 9))):
        a, g = data(*shape, seed=step), data(*shape, seed=step + 3)
        mean = 0.9 * mean + 0.1 * a.mean((2, 3)).mean(0)
        var = 0.9 * var + 0.1 * a.var((2, 3), ddof=1).mean(0)
        x, leaf = _on(a).requires_grad_(), _on(a).requires_grad_()
        found = norm(x)
        centred = leaf - leaf.mean((2, 3), True)
        hat = centred / (centred.square().mean((2, 3), True) + 1e-5).sqrt()
        w, b = (ct.tensor(v).requires_grad_() for v in (weight, bias))
        expected = hat * w.reshape(3, 1, 1) + b.reshape(3, 1, 1)
        close(found, expected.tolist(), 1e-4)
        made = ct.autograd.grad(found, (x, norm.weight, norm.bias), _on(g))
        for one, other in zip(made, ct.autograd.grad(expected, (leaf, w, b), _on(g)), strict=True):
            close(one, other.tolist(), 1e-3)
    close(norm.running_mean, mean, 1e-4)
    close(norm.running_var, var, 1e-4)
    across = _on(np.ascontiguousarray(a.transpose(0, 2, 3, 1))).permute(0, 3, 1, 2)
    close(F.instance_norm(across), _normed(a, (2, 3)), 1e-4)
    norm.eval()
    spread = np.sqrt(var + 1e-5)[:, None, None]
    want = (a - mean[:, None, None]) / spread * data(3, seed=7)[:, None, None]
    close(norm(across), want + data(3, seed=8)[:, None, None], 1e-4)
    with ct.no_grad():
        x = _on(a)
        F.instance_norm(x, weight=norm.weight, bias=norm.bias)
        ct.opencl.synchronize()
        before = ct.stats()["launches"]
        F.instance_norm(x, weight=norm.weight, bias=norm.bias)
        ct.opencl.synchronize()
        assert ct.stats()["launches"] - before == 1


def test_norm_without_statistics_uses_the_batch() -> None:
    norm = nn.BatchNorm1d(3, track_running_stats=False).eval()
    a = data(5, 3)
    close(norm(_on(a)), _normed(a, (0,)), 1e-4)
    assert list(norm.state_dict()) == ["weight", "bias"]


def test_old_checkpoints_of_norms() -> None:
    norm = nn.BatchNorm1d(2)
    old = {k: v for k, v in norm.state_dict().items() if k != "num_batches_tracked"}
    norm.load_state_dict(old)  # saved before num_batches_tracked existed
    with pytest.raises(RuntimeError, match="Unexpected running stats buffer"):
        nn.InstanceNorm1d(2).load_state_dict({"running_mean": ct.ones(2)})


def test_dropout_follows_the_mode() -> None:
    x = ct.ones(1000)
    for layer in (nn.Dropout(0.25), nn.Dropout(0.25, inplace=True)):
        y = layer(x.clone())
        kept = (y != 0).sum().item()
        assert 650 < kept < 850 and y.max().item() == pytest.approx(4 / 3)
        close(layer.eval()(x), x)


def test_a_graph_of_dropout_holds_bytes() -> None:
    held = []
    x = ct.ones(1000, requires_grad=True)
    with ct.autograd.graph.saved_tensors_hooks(lambda t: held.append(t) or t, lambda t: t):
        y = nn.functional.dropout(x, 0.25)
        inside = nn.functional.dropout(x * 1, 0.25, inplace=True)
    assert [t.dtype for t in held] == [ct.bool] * 2
    for made in (y, inside):
        (g,) = ct.autograd.grad(made, x, ct.full((1000,), 3.0))
        close(g, made.detach() * 3)


# ------------------------------------------------------------------------------------------- values


def test_adaptive_log_softmax() -> None:
    ct.manual_seed(0)
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 7], div_value=2.0)
    x = ct.tensor(data(10, 8).tolist())
    full = layer.log_prob(x)
    close(full.exp().sum(1), np.ones(10), 1e-5)
    target = ct.tensor([0, 11, 3, 7, 6, 2, 5, 8, 9, 1])
    output, loss = layer(x, target)
    close(output, full.gather(1, target.unsqueeze(1)).squeeze(1))
    close(loss, -output.mean())
    assert layer.predict(x).tolist() == full.argmax(1).tolist()
    one = layer(x[1], target[1])
    close(one.output, output[1])
    loss.backward()
    assert all(p.grad is not None for p in layer.parameters())
    with pytest.raises(RuntimeError, match="Target values should be in"):
        layer(x, target + 1)


def test_lazy_layers_take_their_sizes_from_the_first_input() -> None:
    x = ct.tensor(data(2, 3, 6, 6).tolist())
    lazy = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(2))
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized"):
        _ = lazy[0].weight.shape
    for misuse in (lambda w: w + 1, lambda w: ct.mm(w, w), lambda w: w.view(1), len):
        with pytest.raises(ValueError, match=r"uninitialized parameter in .*LazyModule"):
            misuse(lazy[3].weight)
    assert lazy(x).shape == (2, 2)
    assert [type(m) for m in lazy] == [nn.Conv2d, nn.BatchNorm2d, nn.Flatten, nn.Linear]
    assert all(p.requires_grad for p in lazy.parameters())
    eager = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(64, 2))
    eager.load_state_dict(lazy.state_dict())
    close(eager.eval()(x), lazy.eval()(x))


def test_convolution_pads_by_its_mode() -> None:
    x = ct.tensor(data(1, 2, 5, 6).tolist())
    for mode in ("reflect", "replicate", "circular"):
        layer = nn.Conv2d(2, 3, (3, 4), padding="same", padding_mode=mode)
        padded = F.pad(x, (1, 2, 1, 1), mode=mode)
        close(layer(x), F.conv2d(padded, layer.weight, layer.bias))


def test_transposed_convolution_makes_the_size_asked_for() -> None:
    down, up = nn.Conv2d(1, 1, 3, stride=2), nn.ConvTranspose2d(1, 1, 3, stride=2)
    x = ct.tensor(data(1, 1, 6, 7).tolist())
    assert up(down(x), output_size=x.size()).shape == x.shape


def test_sequential_is_its_layers() -> None:
    x = ct.tensor(data(2, 3).tolist())
    net = nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.LayerNorm(4), nn.Softmax(-1))
    a = F.linear(x, net[0].weight, net[0].bias)
    close(net(x), F.softmax(F.layer_norm(F.gelu(a), [4], net[2].weight, net[2].bias), -1))
    close(net[:2](x), F.gelu(a))


@pytest.mark.fp64
def test_gradients_of_parameters() -> None:
    net = nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.Linear(2, 2)).double()
    names = [n for n, _ in net.named_parameters()]
    values = [p.detach().clone().requires_grad_() for p in net.parameters()]
    x = _on(data(2, 3).astype(np.float64)).requires_grad_()

    def call(x: Any, *values: Any) -> Any:
        return functional_call(net, dict(zip(names, values, strict=True)), (x,))

    assert gradcheck(call, (x, *values))
    assert gradgradcheck(call, (x, *values))


@pytest.mark.parametrize("name", ["mse_loss", "smooth_l1_loss", "huber_loss"])
def test_losses_of_16_bits_are_rounded_once(name: str) -> None:
    """The loss of an element is computed in one node of an expression, and so is its gradient."""
    loss = getattr(ct.nn.functional, name)
    x, y = (ct.tensor(data(6, 35, seed=s)).bfloat16() for s in (1, 2))
    exact, rounded = (
        [t.detach().requires_grad_() for t in pair] for pair in ((x.float(), y.float()), (x, y))
    )
    wanted, found = loss(*exact, reduction="none"), loss(*rounded, reduction="none")
    assert ct.equal(found.detach(), wanted.detach().bfloat16())
    g = ct.tensor(data(6, 35, seed=3)).bfloat16()
    for a, b in zip(
        ct.autograd.grad(wanted, exact, g.float()), ct.autograd.grad(found, rounded, g), strict=True
    ):
        assert ct.equal(b, a.bfloat16())
