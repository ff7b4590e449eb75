"""Convolution, pooling, norms over channels and resizing, forward and backward."""

from __future__ import annotations

import math
from typing import Any

from benchmarks.case import Case, Kit, Make, Run, on


def _backward(x: tuple[int, ...], w: tuple[int, ...], call: Any) -> Make:
    """Return the `make` of a case that computes both gradients; the forward pass runs once and is not timed."""

    def make(kit: Kit) -> Run:
        a, b = kit.rand(*x, grad=True), kit.rand(*w, seed=1, grad=True)
        out = call(kit.torch, a, b)
        g = kit.rand(*out.shape, seed=2)
        return lambda: kit.torch.autograd.grad(out, (a, b), g, retain_graph=True)

    return make


def _conv(
    name: str,
    x: tuple[int, ...],
    w: tuple[int, ...],
    bars: tuple[float, float] | None = None,
    also: tuple[str, ...] = (),
    **how: int,
) -> list[Case]:
    """Return the cases of a convolution and of its gradients; x: input shape, w: (out, in / groups, size, ...)."""

    def call(torch: Any, a: Any, b: Any) -> Any:
        return getattr(torch.nn.functional, f"conv{len(x) - 2}d")(a, b, **how)

    padding, stride = how.get("padding", 0), how.get("stride", 1)
    places = math.prod((n + 2 * padding - k) // stride + 1 for n, k in zip(x[2:], w[2:]))
    moved = 4.0 * (math.prod(x) + math.prod(w) + x[0] * w[0] * places)
    flops = 2.0 * x[0] * places * math.prod(w)
    first, second = bars or (None, None)
    return [
        Case("conv", f"{name}, forward", on(call, x, w), moved, flops, first, bars is not None, also=also),
        Case("conv", f"{name}, both backwards", _backward(x, w, call), 2 * moved, 2 * flops, second, bars is not None),
    ]  # fmt: skip


def _channels_last(call: Any, x: tuple[int, ...], *factors: tuple[int, ...]) -> Make:
    """Return the `make` of a case, forward and backward, with channels-last images and incoming gradient."""

    def make(kit: Kit) -> Run:
        torch = kit.torch
        order = {"memory_format": torch.channels_last}
        given = [kit.rand(*x).contiguous(**order).requires_grad_()]
        given += [kit.rand(*f, seed=k, grad=True) for k, f in enumerate(factors, 1)]
        g = kit.rand(*call(torch, *given).shape, seed=9).contiguous(**order)
        return lambda: torch.autograd.grad(call(torch, *given), given, g)

    return make


def _depthwise(torch: Any, x: Any, w: Any) -> Any:
    return torch.nn.functional.conv2d(x, w, padding=3, groups=x.shape[1])


def _transposed_conv(torch: Any, x: Any, w: Any) -> Any:
    return torch.nn.functional.conv_transpose2d(x, w, stride=2, padding=1)


def _batch_norm(torch: Any, x: Any, w: Any, b: Any) -> Any:
    return torch.nn.functional.batch_norm(x, None, None, w, b, training=True).relu()


def _fixed_norm(torch: Any, x: Any, mean: Any, spread: Any) -> Any:
    return torch.nn.functional.batch_norm(x, mean, spread.abs() + 0.5)


def _group_norm(torch: Any, x: Any, w: Any, b: Any) -> Any:
    return torch.nn.functional.group_norm(x, 8, w, b).relu()


def _pool(name: str, *args: Any) -> Any:
    return lambda t, x: getattr(t.nn.functional, name)(x, *args)


def _double(mode: str) -> Any:
    return lambda t, x: t.nn.functional.interpolate(x, scale_factor=2, mode=mode)


SMALL, IMAGES, ODD = (8, 64, 56, 56), (16, 64, 56, 56), (16, 64, 55, 55)
BYTES, ODD_BYTES = 4.0 * math.prod(IMAGES), 4.0 * math.prod(ODD)
# Forward and backward of relu(norm) make six passes over memory: the input is read, the result is written, and read by
# the sum and by relu's gradient; the norm's gradient reads the input again and writes its own. Max pooling keeps where
# each maximum was: at least a byte.
CASES = [
    *_conv("3 x 3, 64 channels, 56², batch 8", SMALL, (64, 64, 3, 3), (0.7, 0.6), ("jax", "tinygrad"), padding=1),
    *_conv("3 x 3, 63 channels, 55², batch 8", (8, 63, 55, 55), (63, 63, 3, 3), padding=1),
    *_conv("1 x 1, 256 to 64, 56², batch 8", (8, 256, 56, 56), (64, 256, 1, 1)),
    *_conv("3 x 3, stride 2, 64 to 128, 56²", SMALL, (128, 64, 3, 3), padding=1, stride=2),
    *_conv("7 x 7, stride 2, 3 to 64, 224²", (4, 3, 224, 224), (64, 3, 7, 7), padding=3, stride=2),
    *_conv("3 x 3, 4 groups, 56², batch 8", SMALL, (64, 16, 3, 3), padding=1, groups=4),
    *_conv("3 x 3, depthwise, 56², batch 8", SMALL, (64, 1, 3, 3), padding=1, groups=64),
    *_conv("9, 64 channels, 4096 long, batch 8", (8, 64, 4096), (64, 64, 9), padding=4),
    Case("conv", "transposed 4 x 4, stride 2, 28², forward", on(_transposed_conv, (8, 64, 28, 28), (64, 64, 4, 4)), 4.0 * 8 * 64 * (28**2 + 56**2), 2.0 * 8 * 28**2 * 64 * 64 * 16),
    Case("pool", "max_pool2d 2 x 2, forward and backward", on(_pool("max_pool2d", 2), IMAGES, grad=True), 2.625 * BYTES, bar=1.0, quick=True),
    Case("pool", "max_pool2d 3 x 3, stride 2, 55², both ways", on(_pool("max_pool2d", 3, 2), ODD, grad=True), 2.625 * ODD_BYTES),
    Case("pool", "avg_pool2d 2 x 2, forward and backward", on(_pool("avg_pool2d", 2), IMAGES, grad=True), 2.5 * BYTES),
    Case("pool", "adaptive_avg_pool2d to 7², both ways", on(_pool("adaptive_avg_pool2d", 7), IMAGES, grad=True), 2.0 * BYTES),
    Case("norm", "batch_norm (training), forward and backward", on(_batch_norm, IMAGES, (64,), (64,), grad=True), 6 * BYTES, bar=1.0, quick=True),
    Case("norm", "batch_norm (training), 55², both ways", on(_batch_norm, ODD, (64,), (64,), grad=True), 6 * ODD_BYTES),
    Case("norm", "batch_norm (evaluating)", on(_fixed_norm, IMAGES, (64,), (64,)), 2 * BYTES),
    Case("norm", "group_norm, 8 groups, forward and backward", on(_group_norm, IMAGES, (64,), (64,), grad=True), 6 * BYTES),
    Case("norm", "batch_norm, channels last, both ways", _channels_last(_batch_norm, IMAGES, (64,), (64,)), 6 * BYTES),
    Case("norm", "group_norm, channels last, both ways", _channels_last(_group_norm, IMAGES, (64,), (64,)), 6 * BYTES),
    Case("pool", "max_pool2d 3 x 3, channels last, both ways", _channels_last(_pool("max_pool2d", 3, 2, 1), IMAGES), 2.625 * BYTES),
    Case("image", "channel_shuffle, channels last, both ways", _channels_last(lambda t, a: t.nn.functional.channel_shuffle(a, 4), IMAGES), 4 * BYTES),
    Case("image", "interpolate, bilinear, channels last, both ways", _channels_last(_double("bilinear"), IMAGES), 10 * BYTES),
    Case("conv", "7 x 7, depthwise, channels last, both ways", _channels_last(_depthwise, SMALL, (64, 1, 7, 7)), 2.5 * BYTES, 3 * 2 * 49 * BYTES / 8),
    Case("image", "interpolate, nearest, 56² to 112²", on(_double("nearest"), IMAGES), 4 * BYTES, bound="write"),
    Case("image", "interpolate, bilinear, 56² to 112²", on(_double("bilinear"), IMAGES), 4 * BYTES, bound="write"),
    Case("image", "interpolate, bilinear, forward and backward", on(_double("bilinear"), IMAGES, grad=True), 10 * BYTES),
]  # fmt: skip
