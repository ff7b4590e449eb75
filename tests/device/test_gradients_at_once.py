"""Nodes whose gradients are replayed as one call: they equal those of the ops called one by one, from one replay."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from support import data, on_device

import cltensor as ct
from cltensor import nn
from cltensor.ops import composite
from cltensor.runtime import STATS

F = nn.functional


@contextmanager
def one_by_one() -> Iterator[None]:
    composite.FOLLOWED.append(None)
    try:
        yield
    finally:
        composite.FOLLOWED.pop()


def attention(x: Any) -> Any:
    return F.scaled_dot_product_attention(x, x * 2, x + 1, is_causal=True)


def looked_up(**how: Any) -> Callable:
    def fn(weight: Any) -> Any:
        at = ct.tensor([[2, 0, 2], [1, 3, 2]], device=weight.device)
        return F.embedding(at, weight, **how)

    return fn


LAYERS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "linear": (nn.Linear(6, 5), (4, 6)),
    "linear of a batch": (nn.Linear(6, 5), (2, 3, 6)),
    "linear without a bias": (nn.Linear(6, 5, bias=False), (4, 6)),
    "linear of one row": (nn.Linear(6, 1), (1, 6)),
    "linear of no rows": (nn.Linear(6, 5), (0, 6)),
    "large linear": (nn.Linear(512, 128), (96, 512)),
    "large linear without a bias": (nn.Linear(512, 128, bias=False), (96, 512)),
    "columns": (lambda x: x.t() @ x, (4, 3)),
    "layer norm": (nn.LayerNorm(6), (4, 3, 6)),
    "layer norm of two dims": (nn.LayerNorm((3, 6), bias=False), (4, 3, 6)),
    "group norm": (nn.GroupNorm(2, 4), (3, 4, 5)),
    "batch norm": (nn.BatchNorm2d(4), (3, 4, 2, 5)),
    "batch norm by given": (nn.BatchNorm1d(4).eval(), (3, 4)),
    "convolution": (nn.Conv2d(4, 6, 3, padding=1, groups=2), (2, 4, 5, 5)),
    "transposed convolution": (nn.ConvTranspose1d(4, 3, 2, stride=2), (2, 4, 5)),
    "attention": (attention, (2, 3, 4, 8)),
    "embedding": (looked_up(), (4, 3)),
    "embedding with padding": (looked_up(padding_idx=2), (4, 3)),
    "embedding by frequency": (looked_up(scale_grad_by_freq=True), (4, 3)),
}


def gradients(layer: Any, x: Any, g: Any, **how: Any) -> list[Any]:
    leaf = x.clone().requires_grad_()
    parameters = list(layer.parameters()) if isinstance(layer, nn.Module) else []
    out = layer(leaf)
    return list(ct.autograd.grad(out, [leaf, *parameters], g, **how))


def on(device: Any, layer: Any) -> Any:
    return copy.deepcopy(layer).to(device) if isinstance(layer, nn.Module) else layer


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("pending", [False, True])
def test_gradients_equal_those_of_single_ops(name: str, pending: bool) -> None:
    layer, shape = LAYERS[name]
    for seed in range(3):  # the second call is noted, the third one replayed
        x = on_device(data(*shape, seed=seed)).float()
        layer = on(x.device, layer)
        g = on_device(data(*layer(x).shape, seed=9 + seed)).float()
        found = gradients(layer, x, g + 1 if pending else g)
        with one_by_one():
            wanted = gradients(layer, x, g + 1 if pending else g)
        for a, b in zip(found, wanted, strict=True):
            assert a.stride() == b.stride()
            ct.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", LAYERS)
def test_second_gradients_are_recorded(name: str) -> None:
    layer, shape = LAYERS[name]
    x = on_device(data(*shape)).float()
    layer = on(x.device, layer)
    g = on_device(data(*layer(x).shape, seed=9)).float().requires_grad_()
    for a in gradients(layer, x, g, create_graph=True):
        assert a.requires_grad or not a.numel()


ONE = ["linear", "linear of a batch", "layer norm", "convolution", "embedding"]


@pytest.mark.parametrize("name", ONE)
def test_one_replay_computes_them(name: str) -> None:
    layer, shape = LAYERS[name]
    x = on_device(data(*shape)).float().requires_grad_()
    layer = on(x.device, layer)
    g = ct.ones_like(layer(x))
    for _ in range(3):
        out = layer(x)
        ct.opencl.synchronize()
        before = STATS.replays, STATS.launches
        out.backward(g)
    replays = STATS.replays - before[0]
    assert replays == 1, (replays, STATS.launches - before[1])
